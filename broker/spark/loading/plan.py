"""The plan of a load: its ranges, the earlier loads it retires, and missing partitions.

Made on the driver before Spark is started, with brokers or files opened once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from broker.errors import (
    ConfigError,
    LogCorruptError,
    OffsetNotAvailableError,
    OutputConflictError,
)
from broker.spark.loading.output import LoadedFile, LoadOutput, Manifest, PartitionLoad, joined
from broker.spark.options import EARLIEST, LATEST, Offsets, ReadOptions
from broker.spark.reading import loss
from broker.spark.reading.cluster import repeated
from broker.spark.reading.planner import Logs, ReadPlan, open_logs, plan_ranges
from broker.spark.reading.ranges import ByteRange, CreationIds, Reached
from broker.spark.reading.report import Cause, Omission, bounded
from broker.topic import NO_HOME, TopicPartition

_TASK_BYTES = 64 << 20  # unless the option maxBytesPerPartition says otherwise
_UNCUT = 1 << 62


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The plan of a load."""

    number: int
    read: ReadPlan
    known: Offsets  # end offsets of the earlier loads, but for those to be retired
    retiring: tuple[int, ...] = ()  # numbers of loads
    absent: tuple[TopicPartition, ...] = ()  # selected and loaded before; no longer exist
    creation_ids: CreationIds = field(default_factory=dict)  # of all topics ever loaded

    @property
    def size_bytes(self) -> int:
        """Return the bytes of logs to load."""
        return sum(task.size_bytes for task in self.read.tasks)

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to load, and no loss to record either."""
        return not self.read.tasks and all(
            one.end == self.known.get(one.partition, one.end) for one in self.read.ranges
        )

    def offsets(self) -> Offsets:
        """Return the start offsets of the next load."""
        return self.known | {one.partition: one.end for one in self.read.ranges}

    def manifest(
        self,
        layout: Mapping[str, str],
        times_ms: tuple[int, int],
        parts: list[PartitionLoad],
        files: Iterable[LoadedFile] = (),
    ) -> Manifest:
        """Return the manifest of this load, by the results of its tasks; see `account`."""
        return Manifest(
            self.number,
            layout,
            *times_ms,
            partitions=account(self, parts),
            offsets=self.offsets(),
            files=tuple(files),
            creation_ids=self.creation_ids,
        )


def plan_load(options: ReadOptions, output: LoadOutput, *, rewinds: bool = False) -> LoadPlan:
    """Plan a load from the end of the last one, in new partitions from the start in the options.

    With `rewinds` the loads that have data past the start in the options are retired, and their
    data is loaded again: from the end of the remaining loads, or for a partition that those do not
    have, from the start of the first retired load. A leader that lacks messages loaded from a
    former one has `timeoutMs` to catch up.
    """

    def before(wanted: Sequence[ByteRange]) -> _Before:
        numbers = output.numbers()
        retiring: list[Manifest] = []
        if rewinds:
            retiring = _with_data_past([output.manifest(number) for number in numbers], wanted)
            _check_loaded_again(retiring, wanted)
        kept = numbers[: len(numbers) - len(retiring)]
        last = output.manifest(kept[-1]) if kept else None
        reached = Reached({}, {}) if last is None else Reached(last.offsets, last.creation_ids)
        return _Before(kept[-1] if kept else 0, reached, retiring)

    return _planned(options, before)


def plan_next(options: ReadOptions, number: int, reached: Reached) -> LoadPlan:
    """Plan load `number` from reached offsets, other partitions from the start in the options."""
    return _planned(options, lambda _: _Before(number - 1, reached))


class _Before(NamedTuple):
    """The loads before the planned one."""

    number: int  # of the last one that is kept
    reached: Reached
    retiring: Sequence[Manifest] = ()


def _planned(options: ReadOptions, before: Callable[[Sequence[ByteRange]], _Before]) -> LoadPlan:
    """Plan, and again while a new leader does not know yet how much is committed.

    `before` is called with the ranges between the bounds in the options.
    """

    def attempt() -> LoadPlan:
        whole = plan_ranges(logs, replace(options, max_partition_bytes=_UNCUT, min_partitions=None))
        number, reached, retiring = before(whole.ranges)
        names = {one.partition for one in whole.ranges}
        _check_same_format(reached.offsets, whole)
        present = logs.positions.creation_ids(names)
        former = reached.of_former_topics(present, names)
        again = [
            loss.of_former_topic(one.partition, reached.offsets[one.partition], one.start)
            for one in whole.ranges
            if one.partition in former
        ]
        loss.refuse(again, options)
        starts = _restarts(retiring, whole.ranges) | reached.offsets
        starts |= dict.fromkeys(former, EARLIEST)
        confirmed = {
            one.partition: max(one.end, reached.offsets.get(one.partition, 0))
            for one in whole.ranges
            if one.partition not in former and _is_same_topic(one.partition, reached, present)
        }
        read = _plan_from(logs, options, whole.ranges, starts, confirmed)
        absent = (
            key
            for key in reached.offsets
            if options.selection.has_partition(key) and key not in names
        )
        return LoadPlan(
            number + 1,
            replace(read, absent=whole.absent, omissions=(*again, *read.omissions)),
            reached.offsets,
            retiring=tuple(one.number for one in retiring),
            absent=tuple(sorted(absent)),
            creation_ids={**reached.creation_ids, **present},
        )

    with open_logs(options) as logs:
        return repeated(
            attempt,
            options.connection.timeout_s,
            is_temporary=lambda error: isinstance(error, OffsetNotAvailableError),
        )


def _check_same_format(known: Iterable[TopicPartition], read: ReadPlan) -> None:
    """Refuse to load Kafka's records among messages of 0.7, and the reverse."""
    for one in known:
        if (one.home == NO_HOME) != read.has_records and read.ranges:
            there, wanted = "messages of Kafka 0.7", "Kafka's records"
            if not read.has_records:
                there, wanted = wanted, there
            raise OutputConflictError(
                f"earlier loads have {there}, such as {one}, and this one {wanted}, with other "
                "columns; name another output"
            )


def _is_same_topic(partition: TopicPartition, reached: Reached, present: CreationIds) -> bool:
    """Return whether the reached offset of a partition is known to be of the present topic."""
    if partition in reached.offsets:
        return reached.is_known(partition)
    return (partition.topic, partition.home) in present


def _with_data_past(manifests: Sequence[Manifest], wanted: Iterable[ByteRange]) -> list[Manifest]:
    """Return the first load with data past the start of a range, and all later loads."""
    starts = {one.partition: one.start for one in wanted}
    for number, manifest in enumerate(manifests):
        if any(one.end > starts.get(one.partition, one.end) for one in manifest.partitions):
            return list(manifests[number:])
    return []


def _check_loaded_again(retiring: Iterable[Manifest], wanted: Iterable[ByteRange]) -> None:
    names = {one.partition for one in wanted}
    for manifest in retiring:
        for one in manifest.partitions:
            if one.partition not in names and one.message_count:
                raise ConfigError(
                    f"load {manifest.number} would be retired, and has messages of "
                    f"{one.partition}, which would not be loaded again; add that topic, or start "
                    "later"
                )


def _restarts(retiring: Iterable[Manifest], wanted: Iterable[ByteRange]) -> Offsets:
    """Return the start offsets from which the data of all retired loads is loaded again."""
    starts = {one.partition: one.start for one in wanted}
    for manifest in retiring:
        for one in manifest.partitions:
            if one.partition in starts:
                starts[one.partition] = min(starts[one.partition], one.start)
    return starts


def _plan_from(
    logs: Logs,
    options: ReadOptions,
    wanted: Iterable[ByteRange],
    starts: Offsets,
    confirmed: Offsets,
) -> ReadPlan:
    """Plan the wanted ranges from other starts; `confirmed` goes to `plan_ranges` as `reached`."""
    options = replace(options, max_partition_bytes=options.max_partition_bytes or _TASK_BYTES)
    begins = {one.partition: starts[one.partition] for one in wanted}
    ends = {one.partition: max(starts[one.partition], one.end) for one in wanted}
    plan = plan_ranges(logs, options.between(begins, ends), confirmed)
    recreated = [one.partition for one in plan.ranges if one.start < starts[one.partition]]
    if not recreated:
        return plan
    # the log ends before the last load did; with failOnDataLoss the plan has failed above
    begins |= dict.fromkeys(recreated, EARLIEST)
    ends |= dict.fromkeys(recreated, LATEST)
    again = plan_ranges(logs, options.between(begins, ends))
    return replace(again, omissions=plan.omissions)


def account(plan: LoadPlan, parts: list[PartitionLoad]) -> tuple[PartitionLoad, ...]:
    """Join the results of tasks by partition, and validate that they cover the plan exactly."""
    ranges = {one.partition: one for one in plan.read.ranges}
    notes: dict[ByteRange, list[Omission]] = {}
    bridges = []
    for omission in plan.read.omissions:
        planned = ranges[omission.partition]
        if omission.cause is not Cause.LOST:
            continue  # an incomplete message: a later load has it
        if omission.start < omission.end <= planned.end:
            bridges.append(_bridge(omission))
        else:
            notes.setdefault(planned, []).append(omission)
    loads = {one.partition: one for one in joined([*parts, *bridges])}
    for partition, planned in ranges.items():
        found = loads.get(partition) or PartitionLoad(partition, planned.start, planned.start)
        if found.end != planned.end or found.start > planned.start:
            raise LogCorruptError(
                f"{partition}: {found.start} to {found.end} was loaded, "
                f"and {planned.start} to {planned.end} was to be; nothing is committed"
            )
        if planned in notes:
            left_out = bounded((*notes[planned], *found.left_out))
            loads[partition] = replace(found, left_out=tuple(left_out))
    return tuple(loads[key] for key in sorted(loads))


def _bridge(omission: Omission) -> PartitionLoad:
    return PartitionLoad(omission.partition, omission.start, omission.end, left_out=(omission,))
