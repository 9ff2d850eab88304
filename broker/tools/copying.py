"""Copies message sets, unchanged, from partitions of a topic to partitions of another one.

Messages are counted, but decoded only where the range ends inside a wrapper.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import PartitionReader
from broker.errors import BrokerError, InvalidMessageError
from broker.protocol.codec import Fault, Scan, boundaries, scan
from broker.protocol.message_set import (
    MessageSlice,
    describe_fault,
    find_damage,
    iter_entries,
    slice_messages,
)
from broker.tools.mirror_producer import MirroredSet, MirrorProducer
from broker.topic import TopicPartition
from broker.units import Pacer

FindBehind = Callable[[TopicPartition, int], int | None]
"""Returns the offset of the next valid message after a corrupt one, None if it is not known; the
corrupt one's own offset if it is to be read again."""


PassOver = Callable[[TopicPartition, int, str, FindBehind, int | None], int]
"""Called with the place of a corrupt message, what is wrong, and the offset behind it by its own
length field: returns where to continue, or raises."""


@dataclass(slots=True)
class Copied:
    """Target and progress of a source partition: confirmed messages, and their size in a log."""

    target: TopicPartition
    next_offset: int
    message_count: int = 0
    size_bytes: int = 0


class CopyLimits(NamedTuple):
    """How many messages to copy, and how fast; None for no limit."""

    max_messages: int | None
    pacer: Pacer | None


@dataclass(slots=True)
class Copy:
    """Copies the partitions of a reader.

    Attributes:
        producer: sends message sets; the caller closes it.
        should_stop: returns whether a signal arrived.
        advance: called with the number of bytes sent.
        on_confirmed: called with each set that the target has confirmed, before it is counted, and
            its offset there; -1 if the broker does not tell.
        has_failed: whether it is the target that failed.
    """

    producer: MirrorProducer
    copied: dict[TopicPartition, Copied]
    limits: CopyLimits
    should_stop: Callable[[], bool]
    advance: Callable[[int], None]
    pass_over: PassOver
    on_confirmed: Callable[[MirroredSet, int], None] | None = None
    seconds: float = 0.0
    has_failed: bool = field(default=False, init=False)
    _sent_count: int = field(default=0, init=False)

    @property
    def message_count(self) -> int:
        """Return how many messages the target confirmed."""
        return sum(one.message_count for one in self.copied.values())

    @property
    def size_bytes(self) -> int:
        """Return the size in a log of the confirmed messages."""
        return sum(one.size_bytes for one in self.copied.values())

    def run(self, source: ClusterReader) -> None:
        """Copy until the end of the ranges or the limit; wait until consumers can read all of it.

        If a message is corrupt and not skipped, all messages before it are copied.
        """
        started_s = time.monotonic()
        try:
            self._read(source)
        except Exception:
            if not self.has_failed:
                self._produce(self.producer.flush)
            raise
        self._produce(self.producer.flush)
        self.seconds = time.monotonic() - started_s

    def _read(self, source: ClusterReader) -> None:
        if self._remaining() == 0:
            return
        for readers in source.polls():
            for reader in readers:
                for size in self._part_sizes(reader.data):
                    next_offset = self._copy_part(reader, size, source)
                    if self._remaining() == 0 or self.should_stop():
                        return
                    if next_offset is not None:
                        source.seek(reader.partition, next_offset)
                        break
            if self.should_stop():
                return

    def _remaining(self) -> int | None:
        limit = self.limits.max_messages
        return None if limit is None else limit - self._sent_count

    def _part_sizes(self, data: memoryview) -> Iterator[int]:
        """Give the sizes of parts of the data, small enough for an even rate."""
        pacer = self.limits.pacer
        if pacer is None:
            yield len(data)
            return
        ends = boundaries(data)
        first = 0
        for index in range(1, len(ends) - 1):
            size = ends[index] - ends[first] if pacer.rate.in_bytes else index - first
            if size >= pacer.rate.burst:
                yield ends[index] - ends[first]
                first = index
        yield len(data) - ends[first]

    def _copy_part(self, reader: PartitionReader, size: int, source: ClusterReader) -> int | None:
        """Send the messages in the next `size` bytes of a partition.

        Returns the offset to continue at behind a corrupt message; None if there is none.
        """
        data = whole = reader.data[:size]
        found = scan(data)
        problem = ""
        try:
            cut = self._cut(reader, data, found)
        except InvalidMessageError:
            damage = find_damage(data, reader.offset)
            if damage is None:
                raise
            problem = damage.text
            data = data[: damage.position]
            found = scan(data)
            cut = self._cut(reader, data, found)
        if cut.message_count:
            self._send(reader, cut, found.max_payload_bytes)
        reader.take(cut.taken_bytes)
        if cut.taken_bytes < found.valid_bytes:
            return None  # the limit lies inside a wrapper
        if found.fault and (found.fault is not Fault.PARTIAL or reader.ends_beyond_log()):
            problem = describe_fault(found.fault, reader.offset)
        if not problem:
            return None
        corrupt = next(iter_entries(whole[found.valid_bytes :], reader.offset), None)
        return self.pass_over(
            reader.partition,
            reader.offset,
            problem,
            source.next_good_message,
            None if corrupt is None else corrupt.next_offset,
        )

    def _cut(self, reader: PartitionReader, data: memoryview, found: Scan) -> MessageSlice:
        end = reader.end
        return slice_messages(
            data,
            found,
            reader.offset,
            skip=reader.inner,
            end=None if end is None or not end.inner else end,
            limit=self._remaining(),
        )

    def _send(self, reader: PartitionReader, cut: MessageSlice, largest_bytes: int) -> None:
        if self.limits.pacer is not None:
            self.limits.pacer.wait_for(cut.message_count, len(cut.message_set))
        source, target = reader.partition, self.copied[reader.partition].target
        facts = cut.message_count, largest_bytes, reader.offset + cut.taken_bytes
        mirrored_set = MirroredSet(source, target, cut.message_set, *facts, self._confirm)
        self._sent_count += cut.message_count
        self._produce(lambda: self.producer.send(mirrored_set))
        self.advance(cut.taken_bytes)

    def _confirm(self, mirrored_set: MirroredSet, base_offset: int) -> None:
        done = self.copied[mirrored_set.source]
        if self.on_confirmed is not None:
            self.on_confirmed(mirrored_set, base_offset)
        done.message_count += mirrored_set.message_count
        done.size_bytes += len(mirrored_set.message_set)
        done.next_offset = mirrored_set.next_offset

    def _produce(self, action: Callable[[], None]) -> None:
        """Run an action of the producer, and note if it fails."""
        try:
            action()
        except BrokerError:
            self.has_failed = True
            raise
