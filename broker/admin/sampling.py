"""Sampling messages of a partition, evenly spaced or at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from zlib import crc32

from broker.consumer.boundaries import BoundaryFinder
from broker.consumer.partition_reader import naming_partition
from broker.positions import nth_message
from broker.protocol.codec import Record, RecordBatch, count_unfolded
from broker.protocol.compression import Codec
from broker.protocol.message_set import Entry, Message, messages_of
from broker.protocol.record_batch import MAGIC
from broker.topic import MessagePosition, ReadRange, TopicPartition

_WHOLE_BYTES = 1 << 20


def _message_of(record: Record, batch: RecordBatch) -> Message:
    value = record.value or b""
    codec = batch.codec or Codec.NONE
    return Message(record.offset, record.offset + 1, 0, MAGIC, codec, crc32(value), value)


@dataclass(frozen=True, slots=True)
class Sampler:
    """Chooses messages of one partition: with `random`, or evenly spaced from the first.

    A range up to `whole_bytes` is read whole, and messages are chosen by number. In a larger range
    offsets are chosen, and only the messages at them are read.
    """

    positions: BoundaryFinder
    partition: TopicPartition
    random: Random | None = None
    whole_bytes: int = field(default=_WHOLE_BYTES, kw_only=True)

    def sample(self, wanted: ReadRange, count: int) -> list[Message]:
        """Return up to `count` different messages of a range that has an end, by offset."""
        start, end = wanted.start, wanted.end
        assert end is not None, "a range to sample has an end"
        if self.partition.has_records:
            return [_message_of(*one) for one in self.records(wanted, count)]
        is_small = end.offset - start.offset <= self.whole_bytes
        found = self._by_number if is_small else self._by_position
        return list(found(start, end, count))

    def records(self, wanted: ReadRange, count: int) -> list[tuple[Record, RecordBatch]]:
        """Return up to `count` different records of a range, with the heads of their batches."""
        assert wanted.end is not None, "a range to sample has an end"
        end = wanted.end.offset
        found = {}
        for offset in self._choose(wanted.start.offset, end, count):
            if at := self.positions.record_at(self.partition, offset, end):
                found[at[0].offset] = at  # the same where offsets between have none
        return list(found.values())

    def _by_number(
        self, start: MessagePosition, end: MessagePosition, count: int
    ) -> Iterator[Message]:
        until = end.offset + (end.inner > 0)
        if start.offset >= until:
            return
        entries = self.positions.message_counts(self.partition, start.offset, until)
        last = sum(number for offset, number in entries if offset < end.offset) + end.inner
        wanted: dict[int, list[int]] = {}
        for index in self._choose(start.inner, last, count):
            point = nth_message(entries, index)
            wanted.setdefault(point.offset, []).append(point.inner)
        for offset, inners in wanted.items():
            yield from self._messages(self._entry(offset), inners)

    def _by_position(
        self, start: MessagePosition, end: MessagePosition, count: int
    ) -> Iterator[Message]:
        after = start
        for position in self._choose(start.offset, end.offset, count):
            wanted = max(position, after.offset)
            if wanted >= end.offset:
                return
            offset = self.positions.boundary_before(self.partition, wanted)
            entry = self._entry(offset)
            number = count_unfolded(entry.codec, entry.payload)[0] if entry.codec else 1
            # Messages of a wrapper have no positions of their own: its bytes are divided evenly.
            inner = (wanted - offset) * number // (entry.next_offset - offset)
            if offset == after.offset:
                inner = max(inner, after.inner)
            yield from self._messages(entry, [inner])
            after = MessagePosition(entry.next_offset)
            if inner + 1 < number:
                after = MessagePosition(offset, inner + 1)

    def _choose(self, first: int, last: int, count: int) -> list[int]:
        """Return up to `count` different numbers from `first` up to `last`, in order."""
        size = max(0, last - first)
        number = min(count, size)
        if self.random is not None:
            return sorted(self.random.sample(range(first, last), number))
        return [first + index * size // number for index in range(number)]

    def _entry(self, offset: int) -> Entry:
        with naming_partition(self.partition):
            return self.positions.entry_at(self.partition, offset)

    def _messages(self, entry: Entry, inners: Sequence[int]) -> Iterator[Message]:
        """Yield some messages of an entry, which may have millions of them."""
        with naming_partition(self.partition):
            yield from (one for one in messages_of(entry) if one.inner in inners)
