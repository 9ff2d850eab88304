"""`pylogctl mirror`: keep a copy of topics in another cluster, and check it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from pylogctl.cli import options as shared
from pylogctl.cli.connections import cluster_name
from pylogctl.cli.context import at_cluster
from pylogctl.cli.declarations import flag, option
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.options import accepts, offset_option
from pylogctl.cli.selection import TopicPatterns
from pylogctl.cli.tree import Command, new_app
from pylogctl.mirror.options import DEFAULT_GROUP, Map, MirrorGroup, Patterns, RunChoice

if TYPE_CHECKING:
    from pylogctl.cli.connections import Side
    from pylogctl.cli.offsets import Span
    from pylogctl.mirror.document import StatusRow, VerifyRow
    from pylogctl.mirror.plan import MirrorSelection

app = new_app("Mirror topics into another cluster.")


_PLAN = (shared.SUMMARY[0], *shared.OUTPUT[1:])


@app.command("run", cls=Command)
@accepts(
    _PLAN + shared.REGISTRY + shared.SECURITY + shared.PROPERTIES + shared.TIMEOUT + shared.CHANGE,
    exits=(ExitStatus.PARTIAL, ExitStatus.CONFIG, ExitStatus.CONFLICT, ExitStatus.CORRUPT),
    first="--from --to --include --exclude --topic-map -g --metrics-port",
    examples=(
        "pylogctl mirror run --from zk1:2181 --to zk2:2181 --dry-run",
        "pylogctl mirror run --from zk1:2181 --to zk2:2181 --yes",
        "pylogctl mirror run --from zk1:2181 --to brokers=b2:9092 --include 'app\\..*' "
        "--topic-map 's/^/dc1./' --yes",
    ),
)
def run(
    env: Environment,
    patterns: Patterns = shared.ALL_TOPICS,
    topic_map: Map = None,
    group: MirrorGroup = DEFAULT_GROUP,
    *,
    choice: RunChoice,
    from_cluster: shared.FromOption = None,
    to_cluster: shared.ToOption = None,
) -> None:
    """Mirror topics until stopped by a signal.

    Message sets are copied unchanged, in the order of their partition. Offsets are committed in the
    source after the target has acknowledged, so that no message is lost when a mirror is killed.
    Several mirrors of one group share the partitions. With --dry-run it shows which topics would be
    mirrored, and the names of their target topics.
    """
    from pylogctl.cli.confirmation import confirm
    from pylogctl.mirror.run import MirrorPlan, consumer_config
    from pylogctl.mirror.run import run as run_mirror

    selection = _selection(patterns, topic_map)
    source_env = at_cluster(env, from_cluster, takes_brokers=False)
    target_env = at_cluster(env, to_cluster)
    config = consumer_config(source_env, group)
    if env.settings.dry_run:
        _show_plan(env, source_env, target_env, selection)
        return

    def ask(topics: list[str]) -> None:
        plural = "" if len(topics) == 1 else "s"
        confirm(
            env,
            "mirror run",
            f"mirror {len(topics)} topic{plural} from {cluster_name(source_env)} to "
            f"{cluster_name(target_env)}?",
        )

    status = run_mirror(
        env, source_env, target_env, MirrorPlan(selection, group, choice, config), ask
    )
    if status:
        raise typer.Exit(status)


@app.command("status", cls=Command)
@accepts(
    shared.OUTPUT + shared.CLUSTER,
    exits=(ExitStatus.CONFIG, ExitStatus.NOT_FOUND, ExitStatus.THRESHOLD),
    examples=(
        "pylogctl mirror status --from zk1:2181",
        "pylogctl mirror status --from zk1:2181 --interval 10s",
        "pylogctl mirror status --from zk1:2181 --fail-above 64MiB",
    ),
)
def status(
    env: Environment,
    patterns: Patterns = shared.ALL_TOPICS,
    group: MirrorGroup = DEFAULT_GROUP,
    interval: float | None = option(
        "--interval DUR", "Limits", "Sample twice, this long apart, and show rates."
    ),
    fail_above: int | None = option(
        "--fail-above SIZE", "Limits", "Status 12 if the lag is larger than this."
    ),
    from_cluster: shared.FromOption = None,
) -> None:
    """Show the lag of a mirror, by the offsets committed in the source.

    Of the topics that the group consumes or has offsets of; with --include, of all that match.
    The last error of each topic is shown too, also of a mirror that has ended.
    """
    from broker.units import format_size
    from pylogctl.cli.render import render
    from pylogctl.mirror.document import STATUS

    selection = _selection(patterns, None)
    source_env = at_cluster(env, from_cluster, takes_brokers=False)
    rows = _status_rows(source_env, selection, group, interval, only_of_group=not patterns.include)
    render(env, STATUS, rows)
    lag = sum(row.lag_bytes for row in rows)
    if fail_above is not None and lag > fail_above:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"the lag is {format_size(lag)}; the limit is {format_size(fail_above)}",
            details={"lag_bytes": lag, "limit": fail_above},
        )


def _status_rows(
    source_env: Environment,
    selection: MirrorSelection,
    group: str,
    interval_s: float | None,
    *,
    only_of_group: bool,
) -> list[StatusRow]:
    """Sample once, or twice with an interval, and return the rows."""
    import time

    from broker.admin.groups import read_group
    from broker.client.registry_cluster import RegistryCluster
    from pylogctl.cli.connections import Side, connector, open_registry
    from pylogctl.mirror import plan as mirror_plan
    from pylogctl.mirror.errors import load_errors

    with open_registry(source_env) as registry:
        source = Side(RegistryCluster(registry), connector(source_env))
        topics = selection.topics(source)
        snapshot = read_group(registry.session, group, all_topics=topics)
        mirror_plan.check_has_mirrored(snapshot)
        if only_of_group:
            topics = [topic for topic in topics if topic in snapshot.topics]
        samples = [mirror_plan.take_sample(registry.session, group, source, topics)]
        if interval_s is not None:
            time.sleep(interval_s)
            samples.append(mirror_plan.take_sample(registry.session, group, source, topics))
        partitions = [one.partition for one in samples[-1].partitions]
        return mirror_plan.status_rows(
            samples, len(snapshot.members), load_errors(registry.session, group, partitions)
        )


@app.command("verify", cls=Command)
@accepts(
    shared.OUTPUT + shared.CONNECTION + shared.PROGRESS,
    exits=(ExitStatus.PARTIAL, ExitStatus.CONFIG, ExitStatus.NOT_FOUND, ExitStatus.CORRUPT),
    examples=(
        "pylogctl mirror verify --from zk1:2181 --to zk2:2181",
        "pylogctl mirror verify --from brokers=b1:9092 --to brokers=b2:9092 -o @-1d",
    ),
)
def verify(
    env: Environment,
    patterns: Patterns = shared.ALL_TOPICS,
    topic_map: Map = None,
    offset: list[str] | None = offset_option(
        "Offsets to compare in the source, START or START:END. Default: start:end."
    ),
    target_offset: list[str] | None = option(
        "--target-offset SPEC", "Selection", "Offsets to compare in the target. Default: start:end."
    ),
    exact: bool = flag(
        "--exact", "Limits", "Status 8 also if the target has surplus messages, such as duplicates."
    ),
    from_cluster: shared.FromOption = None,
    to_cluster: shared.ToOption = None,
) -> None:
    """Compare topics with their mirrors, by CRC and length of every message.

    The order and the partitions of messages are ignored. Status 8 means that the target lacks
    messages of the source.
    """
    from broker.units import count_text
    from pylogctl.cli.connections import open_side
    from pylogctl.cli.offsets import make_span
    from pylogctl.cli.render import render
    from pylogctl.mirror.document import VERIFY

    selection = _selection(patterns, topic_map)
    spans = [
        make_span(env, texts or [], from_beginning=False, exit_at_end=True)
        for texts in (offset, target_offset)
    ]
    with (
        open_side(at_cluster(env, from_cluster)) as source,
        open_side(at_cluster(env, to_cluster)) as target,
    ):
        names = {topic: selection.rename(topic) for topic in selection.topics(source)}
        broken = _report_away(env, source, names), _report_away(env, target, names.values())
        rows = [
            _verify_topic(env, topic, renamed, (source, spans[0]), (target, spans[1]))
            for topic, renamed in names.items()
            if topic not in broken[0] and renamed not in broken[1]
        ]
    render(env, VERIFY, rows)
    missing = sum(row.missing for row in rows)
    surplus = sum(row.surplus for row in rows)
    if missing or (exact and surplus):
        raise CliError(
            ExitStatus.CORRUPT,
            f"the target lacks {count_text(missing)} and has {surplus} more than the source",
            code="VERIFY_MISMATCH",
            details={"missing": missing, "surplus": surplus},
        )


def _report_away(env: Environment, side: Side, topics: Iterable[str]) -> set[str]:
    """Report partitions that cannot be read, and return their topics, which are not compared."""
    from broker.client.selection import causes_of_absence, partitions_of

    away = [one for topic in topics for one in partitions_of(side.cluster, topic).away]
    for cause in causes_of_absence(side.cluster, away):
        env.leave_out(cause)
    return {one.topic for one in away}


def _verify_topic(
    env: Environment, topic: str, renamed: str, source: tuple[Side, Span], target: tuple[Side, Span]
) -> VerifyRow:
    from broker.client.selection import partitions_of
    from pylogctl.cli.offset_resolution import resolve_ranges, total_bytes
    from pylogctl.cli.progress import progress
    from pylogctl.mirror.verify import compare_topics, verify_row

    ranges = [
        resolve_ranges(env, side, partitions_of(side.cluster, name), span)
        for (side, span), name in ((source, topic), (target, renamed))
    ]
    for found in ranges:
        for one in found.values():
            if one.start.inner or (one.end is not None and one.end.inner):
                raise UsageError("an offset lies inside a compressed set; use ~N, a time or a size")
    with progress(env, f"verify {topic}", sum(map(total_bytes, ranges))) as meter:
        difference = compare_topics(source[0], ranges[0], target[0], ranges[1], meter.advance)
    return verify_row(topic, renamed, difference)


def _selection(patterns: TopicPatterns, topic_map: list[str] | None) -> MirrorSelection:
    from broker.errors import ConfigError
    from pylogctl.mirror.plan import make_selection

    try:
        return make_selection(patterns.include, patterns.exclude, topic_map or [])
    except ConfigError as error:
        raise UsageError(str(error)) from error


def _show_plan(
    env: Environment, source_env: Environment, target_env: Environment, selection: MirrorSelection
) -> None:
    from pylogctl.cli.connections import open_side
    from pylogctl.cli.render import render
    from pylogctl.mirror.document import PLAN
    from pylogctl.mirror.plan import check_no_loop, plan_rows

    with open_side(source_env) as source, open_side(target_env) as target:
        check_no_loop(selection, source, target)
        render(env, PLAN, plan_rows(selection, source, target))
