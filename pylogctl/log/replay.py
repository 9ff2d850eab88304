"""`pylogctl log replay`: sends the messages of segment files and archives to a topic."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker.errors import BrokerError, InvalidMessageError, LogCorruptError
from broker.log.offline.segments import archived_base_offset_of, open_segment
from broker.log.scan import scan_blocks
from broker.partition_patterns import parse_partition
from broker.producer.producer import Producer
from broker.protocol.codec import scan
from broker.protocol.message_set import describe_fault, find_damage, slice_messages
from broker.tools.mirror_producer import MirroredSet, MirrorProducer
from broker.topic import ReadRange, TopicPartition, validate_topic_name
from broker.units import Pacer, count_text, counted, format_size, parse_rate
from pylogctl.cli.connections import Absence, open_side
from pylogctl.cli.environment import Environment, ExitStatus
from pylogctl.cli.process import StopRequest, graceful_stop
from pylogctl.cli.progress import Progress, progress
from pylogctl.cli.render import render
from pylogctl.copy.run import producer_of_sets
from pylogctl.log.document import REPLAY, ReplayRow
from pylogctl.log.dump import partition_of, range_of
from pylogctl.produce.broker_loss import BrokerWaits
from pylogctl.produce.messages import partition_for
from pylogctl.produce.sender import explained, pace_text

_SET_BYTES = 512 << 10
_LEAST_BLOCK_BYTES = 16  # as `scan_blocks` needs


@dataclass(slots=True)
class _Replayed:
    """A file, and how much of it the target has confirmed."""

    path: Path
    range: ReadRange
    next_offset: int
    end: int | None = None  # where it is sent up to; None until it is read
    message_count: int = 0
    size_bytes: int = 0

    @property
    def is_done(self) -> bool:
        """Whether the target has confirmed all of it."""
        return self.end is not None and self.next_offset >= self.end

    def confirm(self, sent: MirroredSet, _base_offset: int) -> None:
        """Count a set that the target has confirmed."""
        self.next_offset = sent.next_offset
        self.message_count += sent.message_count
        self.size_bytes += len(sent.message_set)


def replay(
    env: Environment,
    paths: Sequence[Path],
    topic: str,
    partition: str | None,
    offset: str | None,
    rate: str | None,
) -> ExitStatus:
    """Send the messages of files, in order, to one partition; wait until consumers can read them.

    Compressed sets are sent as they are stored. Returns the status of a signal that ended it.
    """
    validate_topic_name(topic)
    total_bytes = sum(path.stat().st_size for path in paths)
    ranges = [range_of(path, offset, env.clock.time_ms()) for path in paths]
    files = [
        _Replayed(path, one, one.start.offset) for path, one in zip(paths, ranges, strict=True)
    ]
    started_s = env.clock.monotonic_s()
    with _open_producer(env, topic, partition) as (producer, target, stop):
        run = _Run(
            files,
            target,
            None if env.settings.dry_run else MirrorProducer(producer),
            None if rate is None else Pacer(parse_rate(rate), env.clock, stop.wait),
            stop,
        )
        with progress(env, "replay", total_bytes) as meter:
            run.send_all(meter)
    if env.settings.output is not None:
        render(env, REPLAY, [_row(one, run.target) for one in files])
    env.note(_summary(env, run, env.clock.monotonic_s() - started_s))
    if all(one.is_done for one in files):
        return ExitStatus.OK
    env.note(f"interrupted; {run.rest_text()}")
    return stop.status


@contextmanager
def _open_producer(
    env: Environment, topic: str, partition: str | None
) -> Iterator[tuple[Producer, TopicPartition, StopRequest]]:
    with ExitStack() as stack:
        side = stack.enter_context(open_side(env, absence=Absence.WARN, is_stream=True))
        producer = producer_of_sets(env, side)
        stack.callback(producer.close)
        if partition is None:
            target = producer.choose_partition(topic, None)
        else:
            target = partition_for(producer, topic, partition, parse_partition(partition))
        stop = stack.enter_context(graceful_stop())
        producer.watch(BrokerWaits(stop, env.warn).on_wait)
        yield producer, target, stop


@dataclass(slots=True)
class _Run:
    """Sends files to a partition; `producer` is None for a dry run."""

    files: Sequence[_Replayed]
    target: TopicPartition
    producer: MirrorProducer | None
    pacer: Pacer | None
    stop: StopRequest

    def send_all(self, meter: Progress) -> None:
        """Send files up to the first damage, which is an error, or a signal."""
        try:
            try:
                for file in self.files:
                    if self.stop.is_set:
                        break
                    self._send_file(file, meter)
            finally:
                if self.producer is not None:
                    self.producer.flush()
        except BrokerError as error:
            # of damage, the hints say how to go on behind it
            hints = [] if isinstance(error, LogCorruptError) else [self.rest_text()]
            details = {**error.details, "confirmed": self.message_count}
            text = f"{self.total_text()} confirmed"
            raise explained(error, text, hints, **details) from error

    def _send_file(self, file: _Replayed, meter: Progress) -> None:
        base = archived_base_offset_of(file.path) or 0
        (start, skip), end = file.range
        segment = open_segment(file.path)
        size = os.fstat(segment.fd).st_size
        scale = file.path.stat().st_size / max(size, 1)  # the meter counts bytes of packed files
        file.end = base + size if end is None else end.offset + (end.inner > 0)
        last = size if end is None or end.inner else end.offset - base
        blocks = scan_blocks(segment.fd, start - base, last, block_bytes=self._block_bytes())
        for block in blocks:
            offset, found = base + block.position, block.scan
            data = bytes(block.data)  # the block's memory is used again
            problem = ""
            try:
                cut = slice_messages(data, found, offset, skip=skip, end=end)
            except InvalidMessageError:
                damage = find_damage(data, offset)
                if damage is None:
                    raise
                problem = damage.text
                data = data[: damage.position]
                found = scan(data)
                cut = slice_messages(data, found, offset, skip=skip, end=end)
            if found.fault:
                problem = describe_fault(found.fault, offset + found.valid_bytes)
            skip = 0
            if cut.message_count:
                self._send(
                    MirroredSet(
                        partition_of(file.path),
                        self.target,
                        cut.message_set,
                        cut.message_count,
                        found.max_payload_bytes,
                        offset + cut.taken_bytes,
                        file.confirm,
                    )
                )
            meter.advance(round(found.valid_bytes * scale))
            if offset + found.valid_bytes >= file.end or self.stop.is_set:
                return
            if problem:
                raise self._damage_error(file, offset + found.valid_bytes, problem)

    def _block_bytes(self) -> int:
        if self.pacer is None or not self.pacer.rate.in_bytes:
            return _SET_BYTES
        return max(_LEAST_BLOCK_BYTES, min(_SET_BYTES, self.pacer.rate.burst))

    def _send(self, message_set: MirroredSet) -> None:
        if self.pacer is not None:
            self.pacer.wait_for(message_set.message_count, len(message_set.message_set))
        if self.producer is None:
            message_set.acknowledged(message_set, -1)
        else:
            self.producer.send(message_set)

    def _damage_error(self, file: _Replayed, offset: int, problem: str) -> LogCorruptError:
        position = offset - (archived_base_offset_of(file.path) or 0)
        copy = Path("repaired.pylog")
        return LogCorruptError(
            f"{file.path}:{offset}: {problem}",
            hints=[
                f"a copy without it: pylogctl log repair {_quoted(file.path)} --to {copy}",
                f"then {self._rest_text(copy, position, self.files.index(file))}",
            ],
            details={"file": str(file.path), "offset": offset},
        )

    @property
    def message_count(self) -> int:
        """Return how many messages the target has confirmed."""
        return sum(one.message_count for one in self.files)

    def total_text(self) -> str:
        """Return how many messages the target has confirmed, and their size."""
        size = format_size(sum(one.size_bytes for one in self.files))
        return f"{count_text(self.message_count)}, {size}"

    def rest_text(self) -> str:
        """Return how to send what is not confirmed."""
        file = next(one for one in self.files if not one.is_done)
        return self._rest_text(file.path, file.next_offset, self.files.index(file))

    def _rest_text(self, path: Path, offset: int, number: int) -> str:
        target = f"-t {_quoted(self.target.topic)} -p {self.target.name}"
        left_count = len(self.files) - number - 1
        more = f", then the {counted(left_count, 'file')} after it" if left_count else ""
        return f"to send the rest: pylogctl log replay {_quoted(path)} {target} -o {offset}{more}"


def _quoted(name: Path | str) -> str:
    return shlex.quote(str(name))


def _row(one: _Replayed, target: TopicPartition) -> ReplayRow:
    return ReplayRow(
        str(one.path),
        str(target),
        one.range.start.offset,
        one.next_offset,
        one.message_count,
        one.size_bytes,
    )


def _summary(env: Environment, run: _Run, seconds: float) -> str:
    what = f"{run.total_text()} of {counted(len(run.files), 'file')}"
    if env.settings.dry_run:
        return f"{what} would go to {run.target}; nothing was sent"
    return f"{what} to {run.target} {pace_text(run.message_count, seconds)}"
