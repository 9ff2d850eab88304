"""What a load will do: which ranges, which loads it takes back, what is missing.

Runs on the driver, before Spark is started.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from broker.errors import ConfigError
from broker.spark.manifest import Manifest
from broker.spark.offsets import EARLIEST, LATEST, Offsets, to_assignment, to_json
from broker.spark.options import ReadOptions, Selection, parse_read_options
from broker.spark.output import LoadOutput
from broker.spark.plans import ReadPlan, ReadTask, plan_read
from broker.spark.ranges import ByteRange
from broker.spark.report import Omission
from broker.topic import TopicPartition

TASK_BYTES = 64 << 20
"""The most of a task unless the option maxBytesPerPartition says otherwise."""
_ONE_PIECE = str(1 << 62)


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What a load will do.

    Attributes:
        number: of the load.
        read: ranges and tasks.
        known: where partitions are that earlier loads, but for those taken back, have.
        retiring: numbers of the loads that are taken back.
        absent: partitions that were loaded before, are wanted, and are not there now.
    """

    number: int
    read: ReadPlan
    known: Offsets
    retiring: tuple[int, ...] = ()
    absent: tuple[TopicPartition, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Return how many bytes of logs there are to load."""
        return sum(task.range.size_bytes for task in self.read.tasks)

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to load, and nothing to say of what is missing."""
        return not self.read.tasks and all(
            one.end == self.known.get(one.partition, one.end) for one in self.read.ranges
        )

    def offsets(self) -> Offsets:
        """Return where the load after this one goes on."""
        return self.known | {one.partition: one.end for one in self.read.ranges}

    def tasks_of(self, partition: TopicPartition) -> list[ReadTask]:
        """Return the tasks of one partition."""
        return [task for task in self.read.tasks if task.range.partition == partition]

    def omissions_of(self, partition: TopicPartition) -> list[Omission]:
        """Return what is missing of one partition already."""
        return [one for one in self.read.omissions if one.partition == partition]


def plan_load(options: Mapping[str, str], output: LoadOutput, *, rewinds: bool = False) -> LoadPlan:
    """Plan a load.

    A partition goes on where the last load ended. One that is in no load yet starts where the
    options say, by default at its log start offset.

    Args:
        options: of the data source, as for `frames.read_messages`.
        output: where loads go.
        rewinds: take back the loads that have anything behind the start the options say, and load
            that again, from where the loads that stay end; a partition that those have nothing of,
            from where the first one taken back starts.

    Raises:
        ConfigError: an option is malformed, or taking back would take more than is loaded again.
        DataLossError: what is to be loaded is gone, and that is not to be borne.
        BrokerError: what is asked for is not there, or cannot be reached.
    """
    options = {"maxBytesPerPartition": str(TASK_BYTES)} | dict(options)
    parsed = parse_read_options(options, is_stream=False)
    wanted = plan_read(replace(parsed, max_partition_bytes=int(_ONE_PIECE)))
    manifests = [output.manifest(number) for number in output.numbers()] if rewinds else []
    retiring = _behind(manifests, wanted.ranges)
    numbers = output.numbers()
    kept = [number for number in numbers if number not in {one.number for one in retiring}]
    known = output.manifest(kept[-1]).offsets if kept else {}
    _check_loaded_again(retiring, wanted.ranges)
    return LoadPlan(
        number=kept[-1] + 1 if kept else 1,
        read=_plan_from(options, wanted, _taken_back(retiring, wanted.ranges) | known),
        known=known,
        retiring=tuple(one.number for one in retiring),
        absent=_absent(parsed.selection, known, wanted.ranges),
    )


def _behind(manifests: Sequence[Manifest], wanted: Iterable[ByteRange]) -> list[Manifest]:
    """Return the first load that has something behind the wanted starts, and all after it."""
    starts = {one.partition: one.start for one in wanted}
    for place, manifest in enumerate(manifests):
        if any(one.end > starts.get(one.partition, one.end) for one in manifest.partitions):
            return list(manifests[place:])
    return []


def _check_loaded_again(retiring: Iterable[Manifest], wanted: Iterable[ByteRange]) -> None:
    names = {one.partition for one in wanted}
    for manifest in retiring:
        for one in manifest.partitions:
            if one.partition not in names and one.message_count:
                raise ConfigError(
                    f"load {manifest.number} would be taken back, and has {one.partition} too, "
                    "which would not be loaded again; add that topic, or start later"
                )


def _taken_back(retiring: Iterable[Manifest], wanted: Iterable[ByteRange]) -> Offsets:
    """Return where the partitions of loads that are taken back start: all of it is loaded again."""
    starts = {one.partition: one.start for one in wanted}
    for manifest in retiring:
        for one in manifest.partitions:
            if one.partition in starts:
                starts[one.partition] = min(starts[one.partition], one.start)
    return starts


def _absent(
    selection: Selection, known: Offsets, wanted: Iterable[ByteRange]
) -> tuple[TopicPartition, ...]:
    there = {one.partition for one in wanted}
    return tuple(sorted(key for key in known if selection.has_partition(key) and key not in there))


def _plan_from(options: Mapping[str, str], wanted: ReadPlan, known: Offsets) -> ReadPlan:
    """Plan again, known partitions from where they are to go on."""
    ranges = [_continued(one, known) for one in wanted.ranges]
    plan = plan_read(_between(options, ranges))
    made_anew = {
        one.partition
        for one in plan.ranges
        if one.start < known.get(one.partition, one.start)  # only if that is to be borne
    }
    if not made_anew:
        return plan
    again = [
        replace(one, start=EARLIEST, end=LATEST) if one.partition in made_anew else one
        for one in ranges
    ]
    replanned = plan_read(_between(options, again))
    return replace(replanned, omissions=plan.omissions)


def _continued(one: ByteRange, known: Offsets) -> ByteRange:
    start = known.get(one.partition, one.start)
    return ByteRange(one.partition, start, max(start, one.end))


def _between(options: Mapping[str, str], ranges: Sequence[ByteRange]) -> ReadOptions:
    """Return options that read these ranges and nothing else."""
    replaced = {"subscribe", "subscribepattern", "assign"}
    others = {
        name: value
        for name, value in options.items()
        if name.lower() not in replaced and not name.lower().startswith(("starting", "ending"))
    }
    bounds = {
        "assign": to_assignment(one.partition for one in ranges),
        "startingOffsets": to_json({one.partition: one.start for one in ranges}),
        "endingOffsets": to_json({one.partition: one.end for one in ranges}),
    }
    return parse_read_options(others | bounds, is_stream=False)
