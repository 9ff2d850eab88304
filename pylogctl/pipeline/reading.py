"""The input of a pipeline command: options to typed values, planned before Spark is started.

The cluster is opened once, for the plan; offsets such as `-100`, which only it can resolve, are
resolved then.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from broker.errors import InvalidMessageError
from broker.spark.options import (
    ALL_TOPICS,
    FROM_START,
    UP_TO_END,
    Bound,
    ConnectionOptions,
    Crc,
    ReadOptions,
    Selection,
    Where,
    parse_brokers,
    parse_topic_pattern,
    parse_topics,
)
from broker.spark.planner import ReadPlan, plan_read
from broker.spark.report import read_omissions
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.offset_resolution import resolve
from pylogctl.cli.offsets import ByTime, Mark, OffsetRange, parse_offset_spec
from pylogctl.pipeline.options import NO_READ, ReadChoice, SparkChoice

if TYPE_CHECKING:
    from broker.consumer.boundaries import BoundaryFinder
    from broker.topic import TopicPartition


class Reading(NamedTuple):
    """Options of a read, and its plan."""

    options: ReadOptions
    plan: ReadPlan

    @property
    def topics(self) -> list[str]:
        """Return the names of the planned topics, sorted."""
        return sorted({one.partition.topic for one in self.plan.ranges})

    @property
    def leaves_out(self) -> bool:
        """Return whether messages may be left out."""
        return self.options.crc is Crc.SKIP or not self.options.fail_on_data_loss

    def of_batch(self, topic: str | None = None) -> ReadOptions:
        """Return options that read exactly the planned ranges, of one topic or of all."""
        ranges = [one for one in self.plan.ranges if topic in (None, one.partition.topic)]
        return self.options.between(
            {one.partition: one.start for one in ranges}, {one.partition: one.end for one in ranges}
        )

    def of_stream(self) -> ReadOptions:
        """Return options of a stream with the planned starts."""
        if self.options.starting.offset_of is None:
            return self.options
        starts = {one.partition: one.start for one in self.plan.ranges}
        return replace(self.options, starting=replace(FROM_START, by_partition=starts))


def cluster_of(env: Environment) -> Where:
    """Return the brokers or the ZooKeeper that the options name."""
    if env.settings.brokers:
        return Where(brokers=parse_brokers(",".join(env.settings.brokers), "brokers"))
    return Where(zookeeper=env.zookeeper)


def read_options(
    env: Environment, topics: Sequence[str], include: Sequence[str], choice: ReadChoice
) -> ReadOptions:
    """Return the options of a read.

    Args:
        env: has the addresses of brokers or ZooKeeper, and the time.
        topics: names of existing topics.
        include: alternative: regular expressions for names.
        choice: further options; all topics of its segment files are read if none is named.

    Raises:
        UsageError: topics are named in no way or in two, or a bound is malformed or unsupported.
        ConfigError: an address or an expression is malformed.
    """
    paths = tuple(choice.paths or ())
    if topics and include:
        raise UsageError("either name topics or give --include, not both")
    if not (topics or include or paths):
        raise UsageError("name topics, or give --include", hints=["try: pylogctl topic list"])
    selection = ALL_TOPICS
    if topics:
        selection = parse_topics(",".join(topics))
    elif include:
        pattern = "|".join(f"(?:{pattern})" for pattern in include)
        selection = Selection(pattern=parse_topic_pattern(pattern, "--include"))
    return ReadOptions(
        where=Where(paths=paths) if paths else cluster_of(env),
        selection=selection,
        starting=_bound(env, choice.start, FROM_START, has_paths=bool(paths)),
        ending=_bound(env, choice.until, UP_TO_END, has_paths=bool(paths)),
        fail_on_data_loss=not choice.allow_data_loss,
        crc=Crc.SKIP if choice.corrupt == "skip" else Crc.FAIL,
        connection=ConnectionOptions(timeout_s=env.timeout_s(ConnectionOptions().timeout_s)),
    )


def _bound(env: Environment, text: str | None, default: Bound, *, has_paths: bool) -> Bound:
    if text is None:
        return default
    spec = parse_offset_spec([text], now_ms=env.clock.time_ms())
    ranges = [spec.default, *(offsets for _, offsets in spec.partitions)]
    if spec.file is not None or any(one.end is not None for one in ranges):
        raise UsageError(f"'{text}' names no single position; one side is enough here")
    mark = Mark.EARLIEST if default is FROM_START else Mark.LATEST
    if not spec.partitions:
        if isinstance(spec.default.start, ByTime):
            option = default.option.replace("Offsets", "Timestamp")
            return Bound(option, spec.default.start.time_ms, is_time=True)
        if spec.default.start is mark:
            return default
    if has_paths:
        raise UsageError(f"'{text}' needs brokers; of segment files only a time can be named")

    def offset_of(partition: TopicPartition, positions: BoundaryFinder) -> int:
        wanted = OffsetRange(spec.range_for(partition).start or mark, None)
        found = resolve(wanted, partition, positions).start
        if found.inner:
            raise UsageError("an offset lies inside a compressed set; use ~N, a time or a size")
        return found.offset

    return replace(default, offset_of=offset_of)


def plan_reading(env: Environment, topics: Sequence[str], choice: ReadChoice = NO_READ) -> Reading:
    """Plan a read, and warn of messages that are gone.

    Raises:
        UsageError: an option is malformed or unsupported.
        BrokerError: a topic does not exist, messages are gone, or a broker does not respond.
    """
    options = read_options(env, topics, (), choice)
    plan = plan_read(options)
    for omission in plan.omissions:
        env.warn(omission.message)
    return Reading(options, plan)


@contextmanager
def reporting(
    env: Environment, readings: Sequence[Reading], spark: SparkChoice
) -> Iterator[list[Reading]]:
    """Yield readings whose tasks report omissions, and print these as warnings after the block.

    The omissions of tasks on a cluster are only in the logs of its executors.

    Raises:
        CliError: a message is damaged, and `--corrupt` is `fail`.
    """
    with tempfile.TemporaryDirectory(prefix="pylogctl-omitted-") as directory:
        path = Path(directory)
        if not spark.is_local and any(one.leaves_out for one in readings):
            env.warn("what is left out is reported in the logs of Spark's executors only")
        elif spark.is_local:
            readings = [
                one._replace(options=replace(one.options, report_path=path)) for one in readings
            ]
        try:
            yield list(readings)
        except InvalidMessageError as error:
            raise corrupt_error(error) from error
        finally:  # a stream ends by a signal
            for omission in read_omissions(path):
                size_bytes = omission.end - omission.start
                what = f"{omission.cause.value}, {size_bytes} bytes from {omission.start}"
                env.warn(f"{omission.message} ({what})")


def corrupt_error(error: InvalidMessageError) -> CliError:
    """Return the error of a damaged message for users of `--corrupt`."""
    return CliError(
        ExitStatus.CORRUPT,
        str(error).partition("; crc=")[0],
        hints=["--corrupt skip leaves it out"],
        code="INVALID_MESSAGE",
    )
