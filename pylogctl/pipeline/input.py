"""What pipeline commands read: options of the command line as options of the data source `pylog`.

Asks a cluster only where an offset can be said in no other way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.offsets import ByTime, Mark, OffsetRange, OffsetSpec, parse_offset_spec

if TYPE_CHECKING:
    from broker.topic import TopicPartition

Topics = Annotated[
    list[str] | None, typer.Argument(metavar="TOPIC...", help="Topics to read.", show_default=False)
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="RE",
        help="Instead: topics whose whole name matches (repeatable).",
        rich_help_panel="Selection",
    ),
]
Paths = Annotated[
    list[Path] | None,
    typer.Option(
        "--path",
        metavar="PATH",
        help="Read segment files, directories or patterns instead of brokers (repeatable).",
        rich_help_panel="Input",
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="SPEC",
        help="Where to end. Default: where topics end now.",
        rich_help_panel="Selection",
    ),
]
DataLoss = Annotated[
    bool,
    typer.Option(
        "--allow-data-loss",
        help="Go on if messages to be read are gone, and say what is missing.",
        rich_help_panel="Safety",
    ),
]

Corrupt = Annotated[
    Literal["fail", "skip"],
    typer.Option(
        "--corrupt",
        help="What to do about messages that are damaged or cannot be decoded.",
        rich_help_panel="Safety",
    ),
]


def source_options(
    env: Environment,
    topics: Sequence[str],
    include: Sequence[str],
    paths: Sequence[Path] = (),
    *,
    allow_data_loss: bool = False,
) -> dict[str, str]:
    """Return the options of the data source that name what is read, without bounds.

    Args:
        env: says where brokers or registry are.
        topics: to be read; they must exist.
        include: regular expressions for names instead.
        paths: segment files instead of brokers; without topics all that they have.
        allow_data_loss: whether messages that are gone are no error.

    Raises:
        UsageError: topics are named in no way or in two.
    """
    if topics and include:
        raise UsageError("either name topics or give --include, not both")
    if not (topics or include or paths):
        raise UsageError("name topics, or give --include", hints=["try: pylogctl topic list"])
    options: dict[str, str] = {}
    if paths:
        options["paths"] = json.dumps([str(path) for path in paths])
    else:
        options |= cluster_options(env)
    if topics:
        options["subscribe"] = ",".join(topics)
    elif include:
        options["subscribePattern"] = "|".join(f"(?:{pattern})" for pattern in include)
    if env.settings.timeout_s is not None:
        options["timeoutMs"] = str(max(1, round(env.settings.timeout_s * 1000)))
    if allow_data_loss:
        options["failOnDataLoss"] = "false"
    return options


def check_cluster(env: Environment, *, has_paths: bool, to_topic: bool = False) -> None:
    """Check that no cluster is named where only segment files are used.

    Args:
        env: says where brokers or registry are; variables that do are not heeded.
        has_paths: whether segment files are read.
        to_topic: whether results go to a topic, which needs a cluster.

    Raises:
        UsageError: one is named.
    """
    named = {
        "PYLOGCTL_BROKER": ",".join(env.settings.brokers),
        "PYLOGCTL_ZOOKEEPER": env.settings.zookeeper,
    }
    by_option = [text for name, text in named.items() if text and text != env.environ.get(name)]
    if has_paths and by_option and not to_topic:
        raise UsageError("--path reads files; it cannot be used with --broker or --zookeeper")


def cluster_options(env: Environment) -> dict[str, str]:
    """Return the option of the data source that names the cluster."""
    if env.settings.brokers:
        return {"brokers": ",".join(env.settings.brokers)}
    return {"zk": env.zookeeper}


def bound_options(
    env: Environment, options: Mapping[str, str], start: str | None, end: str | None
) -> dict[str, str]:
    """Return options of the data source with bounds.

    Args:
        env: knows what time it is.
        options: what is read, from `source_options`.
        start: where to start, in the offset grammar; nothing is added if None.
        end: where to end, likewise.

    Raises:
        UsageError: a bound is malformed, or not possible on what is read.
        BrokerError: a broker or the registry does not answer.
    """
    bounds = dict(options)
    for side, text in (("starting", start), ("ending", end)):
        if text is not None:
            spec = parse_offset_spec([text], now_ms=env.clock.time_ms())
            bounds |= _bound(side, text, spec, options)
    return bounds


def _bound(side: str, text: str, spec: OffsetSpec, options: Mapping[str, str]) -> dict[str, str]:
    ranges = [spec.default, *(offsets for _, offsets in spec.partitions)]
    if spec.file is not None or any(one.end is not None for one in ranges):
        raise UsageError(f"'{text}' names no single point; one side is enough here")
    if not spec.partitions:
        match spec.default.start, side:
            case ByTime(time_ms), _:
                return {f"{side}Timestamp": str(time_ms)}
            case Mark.EARLIEST, "starting":
                return {"startingOffsets": "earliest"}
            case Mark.LATEST, "ending":
                return {"endingOffsets": "latest"}
    if "paths" in options:
        raise UsageError(f"'{text}' needs brokers; of segment files only a time can be named")
    return {f"{side}Offsets": _resolved(side, spec, options)}


def _resolved(side: str, spec: OffsetSpec, options: Mapping[str, str]) -> str:
    from broker.spark.offsets import to_json
    from broker.spark.options import SegmentPaths, parse_read_options
    from broker.spark.plans import open_cluster, select_partitions
    from broker.topic import MessagePosition
    from pylogctl.cli.offset_resolution import resolve

    parsed = parse_read_options(options, is_stream=False)
    assert not isinstance(parsed.where, SegmentPaths)
    default = Mark.EARLIEST if side == "starting" else Mark.LATEST
    found: dict[TopicPartition, MessagePosition] = {}
    with open_cluster(parsed.where, parsed.connection) as (cluster, positions):
        for partition in select_partitions(cluster, parsed.selection):
            wanted = OffsetRange(spec.range_for(partition).start or default, None)
            found[partition] = resolve(wanted, partition, positions).start
    if any(point.inner for point in found.values()):
        raise UsageError("an offset lies inside a compressed set; use ~N, a time or a size")
    return to_json({partition: point.offset for partition, point in found.items()})
