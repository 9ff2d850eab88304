"""The input of a pipeline command: options to typed values, planned before Spark is started.

The cluster is opened once, for the plan, which also resolves offsets such as `-100`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from broker.consumer.boundaries import BoundaryFinder
from broker.errors import BrokerError
from broker.positions import ByTime, Mark, OffsetRange, parse_offset_spec, resolve
from broker.spark import options as source
from broker.spark.reading.planner import ReadPlan, plan_read
from broker.spark.reading.report import Omission, bounded, read_omissions
from broker.spark.runtime.temporary import temporary_directory
from broker.topic import TopicPartition
from pylogctl.cli.connections import open_for_requests
from pylogctl.cli.decoding import check_decode, latest_of
from pylogctl.cli.environment import CliError, Environment, UsageError
from pylogctl.cli.report import failure_of
from pylogctl.cli.security import security_of
from pylogctl.cli.selection import compile_patterns, split_patterns
from pylogctl.pipeline.options import NO_LOSS, NO_READ, LossChoice, ReadChoice, SparkChoice

_MAX_WARNINGS = 20
# recommendations in errors of the data source, and the options of commands for them
_FLAGS = {"; crc=skip ": "--corrupt skip", "; failOnDataLoss=false ": "--allow-data-loss"}


StreamOffsets = dict[str, Any]  # as a stream's source gives them to Spark


class PlannedReading(NamedTuple):
    """Options of a read, and its plan."""

    options: source.ReadOptions
    plan: ReadPlan

    @property
    def topics(self) -> list[str]:
        """Return the names of the planned topics, sorted."""
        return sorted({one.partition.topic for one in self.plan.ranges})

    @property
    def leaves_out(self) -> bool:
        """Return whether messages may be left out."""
        return self.options.crc is source.Crc.SKIP or not self.options.fail_on_data_loss

    def of_batch(self, topic: str | None = None) -> source.ReadOptions:
        """Return options that read exactly the planned ranges, of one topic or of all."""
        ranges = [one for one in self.plan.ranges if topic in (None, one.partition.topic)]
        return self.options.between(
            {one.partition: one.start for one in ranges}, {one.partition: one.end for one in ranges}
        )

    def of_stream_batch(self, begun: StreamOffsets, ended: StreamOffsets) -> source.ReadOptions:
        """Return options that read one batch of a stream, between its start and end offsets."""
        starts, ends = (
            # entries that are not topics contain a "/", which no topic's name may
            source.from_document({name: one for name, one in found.items() if "/" not in name})
            for found in (begun, ended)
        )
        read = [key for key, end in ends.items() if starts.get(key, end) < end]
        return self.options.between(
            {key: starts[key] for key in read}, {key: ends[key] for key in read}
        )

    def of_stream(self) -> source.ReadOptions:
        """Return options of a stream with the planned starts."""
        if self.options.starting.offset_of is None:
            return self.options
        starts = {one.partition: one.start for one in self.plan.ranges}
        return replace(self.options, starting=replace(source.FROM_START, by_partition=starts))


def cluster_of(env: Environment) -> source.Where:
    """Return the brokers or the ZooKeeper that the options name."""
    if env.settings.brokers:
        return source.Where(brokers=source.parse_brokers(",".join(env.settings.brokers), "brokers"))
    return source.Where(zookeeper=env.zookeeper)


def read_options(
    env: Environment,
    topics: Sequence[str],
    include: Sequence[str],
    choice: ReadChoice,
    loss: LossChoice,
) -> source.ReadOptions:
    """Return the options of a read.

    Either `topics` are named or `include` has expressions for them; all topics of segment files are
    read without both.
    """
    paths, decoding = tuple(choice.paths or ()), choice.decoding
    check_decode(decoding)
    if paths and decoding.decode is not None:
        raise UsageError("--decode asks brokers for schemas; it cannot be used with --path")
    if topics and include:
        raise UsageError("either name topics or give --include, not both")
    if not (topics or include or paths):
        raise UsageError("name topics, or give --include", "try: pylogctl topic list")
    selection = source.ALL_TOPICS
    if topics:
        selection = source.parse_topics(",".join(topics))
    elif include:
        compiled = compile_patterns(split_patterns(include), "--include")
        pattern = "|".join(f"(?:{one.text})" for one in compiled)
        selection = source.Selection(pattern=source.parse_topic_pattern(pattern, "--include"))
    return source.ReadOptions(
        where=source.Where(paths=paths) if paths else cluster_of(env),
        selection=selection,
        starting=_bound(env, choice.start, source.FROM_START, has_paths=bool(paths)),
        ending=_bound(env, choice.until, source.UP_TO_END, has_paths=bool(paths)),
        fail_on_data_loss=not loss.allow_data_loss,
        crc=source.Crc(loss.corrupt),
        decode=decoding.decode,
        reader_schema=_reader_of(env, topics, decoding.reader),
        connection=connection_of(env),
    )


def _reader_of(env: Environment, topics: Sequence[str], given: str | None) -> int | None:
    """Return the id of the reader's schema; the latest one is looked up."""
    if given != "latest":
        return None if given is None else int(given)
    if len(topics) != 1:
        raise UsageError("--reader latest is for one topic: name a schema by its id")
    from broker.tools.schemas import client_of

    with open_for_requests(env) as side:
        return latest_of(client_of(side), topics[0]).id


def connection_of(env: Environment) -> source.ConnectionOptions:
    """Return the timeouts and the security of a job's connections."""
    timeout_s = env.timeout_s(source.ConnectionOptions().timeout_s)
    return source.ConnectionOptions(timeout_s=timeout_s).secured(security_of(env))


def _bound(
    env: Environment, text: str | None, default: source.Bound, *, has_paths: bool
) -> source.Bound:
    if text is None:
        return default
    spec = parse_offset_spec([text], now_ms=env.clock.time_ms())
    ranges = [spec.default, *(offsets for _, offsets in spec.partitions)]
    if spec.file is not None or any(one.end is not None for one in ranges):
        raise UsageError(f"'{text}' names no single position; one side is enough here")
    mark = Mark.EARLIEST if default is source.FROM_START else Mark.LATEST
    if not spec.partitions:
        if isinstance(spec.default.start, ByTime):
            option = default.option.replace("Offsets", "Timestamp")
            return source.Bound(option, spec.default.start.time_ms, is_time=True)
        if spec.default.start is mark:
            return default
    if has_paths:
        raise UsageError(f"'{text}' needs brokers; of segment files only a time can be named")

    def offset_of(partition: TopicPartition, positions: BoundaryFinder) -> int:
        wanted = spec.range_for(partition).start or mark
        is_end = default is not source.FROM_START
        both = OffsetRange(None, wanted) if is_end else OffsetRange(wanted, None)
        made = resolve(both, partition, positions, warn=env.warn)
        found = made.start if made.end is None else made.end
        if found.inner:
            raise UsageError("an offset lies inside a compressed set; use ~N, a time or a size")
        return found.offset

    return replace(default, offset_of=offset_of)


def plan_reading(
    env: Environment,
    topics: Sequence[str],
    choice: ReadChoice = NO_READ,
    loss: LossChoice = NO_LOSS,
    *,
    on_absent: Callable[[str], object] | None = None,
) -> PlannedReading:
    """Plan a read, and warn of messages that are missing.

    A broker that is down is an error, unless data loss is allowed, or `on_absent` is given: it is
    called with a sentence.
    """
    options = read_options(env, topics, (), choice, loss)
    with naming_options():
        plan = plan_read(options, may_lack_brokers=on_absent is not None)
    report_absent(on_absent or env.warn, plan)
    warn_of_omissions(env, plan.omissions)
    return PlannedReading(options, plan)


@contextmanager
def reporting(
    env: Environment, readings: Sequence[PlannedReading], spark: SparkChoice
) -> Iterator[list[PlannedReading]]:
    """Yield readings whose tasks report omissions, and print these as warnings after the block.

    The omissions of tasks on a cluster are only in the logs of its executors.
    """
    with temporary_directory("pylogctl-omitted-") as path:
        if not spark.is_local and any(one.leaves_out for one in readings):
            env.warn("what is left out is reported in the logs of Spark's executors only")
        elif spark.is_local:
            readings = [
                one._replace(options=replace(one.options, report_path=path)) for one in readings
            ]
        try:
            with naming_options():
                yield list(readings)
        finally:  # a stream ends by a signal
            warn_of_omissions(env, read_omissions(path))


def report_absent(report: Callable[[str], object], plan: ReadPlan) -> None:
    """Report brokers that are down, with those that are read."""
    for text in plan.absent:
        homes = ", ".join(map(str, plan.homes))
        report(f"{text}; read: broker{'s' * (len(plan.homes) > 1)} {homes or '-'}")


def warn_of_omissions(env: Environment, omissions: Iterable[Omission]) -> None:
    """Warn of the first omissions one by one, and of the others in one line."""
    found = bounded(omissions)
    for one in found[:_MAX_WARNINGS]:
        size = f"{one.size_bytes} bytes from {one.start}"
        env.warn(f"{one.message} ({one.cause.value}, {size})")
    if others := found[_MAX_WARNINGS:]:
        count = sum(one.count for one in others)
        size_bytes = sum(one.size_bytes for one in others)
        env.warn(f"{count} more omissions, {size_bytes} bytes")


@contextmanager
def naming_options() -> Iterator[None]:
    """Make errors of the block recommend options of commands, not those of the data source."""
    try:
        yield
    except BrokerError as error:
        text = str(error)
        failure = failure_of(error)
        for option, flag in _FLAGS.items():
            message, found, effect = text.partition(option)
            if found and failure is not None:
                raise CliError(
                    failure.status,
                    message,
                    f"{flag} {effect.split(',')[0].strip()}",
                    code=failure.code,
                ) from error
        raise
