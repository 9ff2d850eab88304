"""`pylogctl log replay`: sends the messages of segment files and archives to a topic."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from broker.errors import BrokerError, InvalidMessageError, LogCorruptError
from broker.log.aborted import AbortedTransactions, aborted_beside
from broker.log.offline.records import StoredBatch, iter_batches, position_of
from broker.log.offline.segments import (
    archived_base_offset_of,
    has_batches,
    open_segment,
    segment_bytes,
)
from broker.log.scan import scan_blocks
from broker.partition_patterns import parse_partition
from broker.producer.producer import Producer
from broker.protocol.codec import Record, decode_records, scan
from broker.protocol.message_set import build_set, describe_fault, find_damage, slice_messages
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
_ABORT = bytes(4)  # the key of the record that ends an aborted transaction
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
            try:
                run.send_all(meter)
            finally:
                _note_left_out(env, run)
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
    left_out: Counter[str] = field(default_factory=Counter, init=False)
    """Counts of Kafka's records that were not sent, and of keys and headers of those that were."""
    unlisted_aborts: list[int] = field(default_factory=list, init=False)
    """Offsets of the abort marks of transactions that were sent: no `.txnindex` lists them."""
    _open_transactions: set[tuple[Path, int]] = field(default_factory=set, init=False)
    """Directory and producer id of each transaction of which records were sent, and not its end."""

    def send_all(self, meter: Progress) -> None:
        """Send files up to the first damage, which is an error, or a signal."""
        try:
            try:
                for file in self.files:
                    if self.stop.is_set:
                        break
                    if has_batches(file.path):
                        self._send_batches(file, meter)
                    else:
                        self._send_file(file, meter)
            finally:
                if self.producer is not None:
                    self.producer.flush()
        except BrokerError as error:
            # the error of a damaged file hints itself how to send what is behind the damage
            hints = [] if isinstance(error, LogCorruptError) else [self.rest_text()]
            details = {**error.details, "confirmed": self.message_count}
            text = f"{self.total_text()} confirmed"
            raise explained(error, text, hints, **details) from error

    def _send_file(self, file: _Replayed, meter: Progress) -> None:
        base = archived_base_offset_of(file.path) or 0
        source = partition_of(file.path)
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
                        source,
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
                offset += found.valid_bytes
                place = offset - base, Path("repaired.pylog")
                raise self._damage_error(file, offset, f"{file.path}:{offset}: {problem}", *place)

    def _send_batches(self, file: _Replayed, meter: Progress) -> None:
        """Send the values of a file of Kafka, uncompressed."""
        source, end = partition_of(file.path), file.next_offset
        for values, end in self._values_of(file, meter):
            message_set, largest_bytes = build_set(values), max(map(len, values))
            facts = message_set, len(values), largest_bytes, end
            self._send(MirroredSet(source, self.target, *facts, file.confirm))
            if self.stop.is_set:
                return
        if not self.stop.is_set:
            file.end = end

    def _values_of(self, file: _Replayed, meter: Progress) -> Iterator[tuple[list[bytes], int]]:
        """Yield the values of each set to send of a file of Kafka, and the offset behind the last.

        Damage is raised once the values before it were yielded.
        """
        start, end = file.range.start.offset, file.range.end
        last = sys.maxsize if end is None else end.offset + (end.inner > 0)
        scale = file.path.stat().st_size / max(segment_bytes(file.path), 1)
        most_bytes = self._block_bytes()
        aborted = AbortedTransactions(aborted_beside([file.path]))
        values: list[bytes] = []
        size, next_offset, problem = 0, start, ""
        try:
            for batch in iter_batches(file.path, position_of(file.path, start), deep=False):
                if self.stop.is_set:
                    break
                decoded = decode_records(batch.data, with_control=True)
                if decoded.fault:
                    problem = describe_fault(decoded.fault, batch.head.position)
                    problem = f"{file.path}: {problem}"
                    break
                if decoded.records and decoded.records[0].offset >= last:
                    break
                records = [one for one in decoded.records if start <= one.offset < last]
                for offset, value in self._wanted(file, batch, records, aborted):
                    if values and size + len(value) > most_bytes:
                        yield values, next_offset
                        values, size = [], 0
                    values.append(value)
                    size += len(value)
                    next_offset = offset + 1
                meter.advance(round(batch.head.size * scale))
        except LogCorruptError as error:
            problem = str(error)
        if values:
            yield values, next_offset
        if problem:
            problem += f"; offset {next_offset} is the first that is not sent"
            raise self._damage_error(file, next_offset, problem, next_offset, Path("repaired.log"))

    def _wanted(
        self,
        file: _Replayed,
        batch: StoredBatch,
        records: Sequence[Record],
        aborted: AbortedTransactions,
    ) -> Iterator[tuple[int, bytes]]:
        """Yield offset and value of the records of a batch that are sent; count the rest."""
        head = batch.head
        transaction = file.path.parent, head.producer_id
        if head.is_control:
            self.left_out["control record"] += len(records)
            if transaction in self._open_transactions and head not in aborted:
                self.unlisted_aborts += [one.offset for one in records if one.key == _ABORT]
            self._open_transactions.discard(transaction)
        elif head in aborted:
            self.left_out["aborted record"] += len(records)
        else:
            if head.is_transactional:
                self._open_transactions.add(transaction)
            for record in records:
                if record.value is None:
                    self.left_out["tombstone"] += 1
                    continue
                self.left_out["key"] += record.key is not None
                self.left_out["header"] += len(record.headers)
                yield record.offset, record.value

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

    def _damage_error(
        self, file: _Replayed, offset: int, text: str, offset_in_copy: int, copy: Path
    ) -> LogCorruptError:
        return LogCorruptError(
            text,
            hints=[
                f"a copy without it: pylogctl log repair {_quoted(file.path)} --to {copy}",
                f"then {self._rest_text(copy, offset_in_copy, self.files.index(file))}",
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


def _note_left_out(env: Environment, run: _Run) -> None:
    found = {noun: counted(count, noun) for noun, count in run.left_out.items() if count}
    dropped = [found.pop(noun) for noun in ("key", "header") if noun in found]
    if found:
        env.note(f"left out: {', '.join(found.values())}")
    if dropped:
        what = ", ".join(["timestamps", *dropped])
        env.note(f"not kept, as 0.7's format has no place for them: {what}")
    if run.unlisted_aborts:
        env.warn(
            f"{counted(len(run.unlisted_aborts), 'aborted transaction')} sent, as no .txnindex "
            f"lists them; the first ends at offset {run.unlisted_aborts[0]}"
        )


def _summary(env: Environment, run: _Run, seconds: float) -> str:
    what = f"{run.total_text()} of {counted(len(run.files), 'file')}"
    if env.settings.dry_run:
        return f"{what} would go to {run.target}; nothing was sent"
    return f"{what} to {run.target} {pace_text(run.message_count, seconds)}"
