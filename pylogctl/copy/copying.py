"""Copying a topic: stretches of the source, as they are, to the partitions of another topic.

Reads with `pylogctl.consume.reading` and sends with the library's relay. Messages are counted, but
decoded only where the wanted part ends inside a compressed set.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.errors import BrokerError, InvalidMessageError
from broker.protocol.codec import Fault, Scan, boundaries, scan
from broker.protocol.message_set import (
    MessageSlice,
    describe_fault,
    find_damage,
    iter_entries,
    slice_messages,
)
from broker.protocol.primitives import Buffer
from broker.tools.relay import Parcel, Relay
from broker.topic import TopicPartition
from pylogctl.cli.errors import CliError
from pylogctl.cli.failures import CorruptMessages
from pylogctl.cli.report import failure_of
from pylogctl.cli.units import Pacer
from pylogctl.consume.reading import Reading, Stretch
from pylogctl.produce.readback import SentSets
from pylogctl.produce.sender import Batch, Confirmed, count_text


@dataclass(slots=True)
class Copied:
    """What is confirmed of one source partition; `size_bytes` is what it takes in a log."""

    target: TopicPartition
    next_offset: int
    message_count: int = 0
    size_bytes: int = 0


class Limits(NamedTuple):
    """How much to copy, and how fast; None for no limit."""

    max_messages: int | None
    pacer: Pacer | None
    paced_bytes: bool


@dataclass(slots=True)
class Copy:
    """Copies what a reading gives.

    Attributes:
        relay: sends it; flushed and closed by its owner if `run` fails.
        placement: where each source partition goes.
        copied: what is confirmed of each source partition so far.
        limits: how much, and how fast.
        should_stop: whether a signal asked to stop.
        advance: told of bytes as they are sent.
        corrupt: decides about corrupt messages.
        sent_sets: remembers what to verify; None for nothing.
    """

    relay: Relay
    placement: Mapping[TopicPartition, TopicPartition]
    copied: dict[TopicPartition, Copied]
    limits: Limits
    should_stop: Callable[[], bool]
    advance: Callable[[int], None]
    corrupt: CorruptMessages
    sent_sets: SentSets | None = None
    seconds: float = 0.0
    _sent_count: int = field(default=0, init=False)
    _has_failed: bool = field(default=False, init=False)

    @property
    def message_count(self) -> int:
        """Return how many messages are confirmed."""
        return sum(one.message_count for one in self.copied.values())

    @property
    def size_bytes(self) -> int:
        """Return what the confirmed messages take in a log."""
        return sum(one.size_bytes for one in self.copied.values())

    def run(self, reading: Reading) -> None:
        """Copy until the reading or the limit ends it, and wait until all of it can be read.

        Raises:
            CliError: the target failed, and the text says what is confirmed; or a message is
                corrupt and not to be skipped, and all before it is copied.
            BrokerError: a source broker failed.
        """
        started_s = time.monotonic()
        try:
            self._read(reading)
        except (BrokerError, CliError):
            if not self._has_failed:
                self._relay(self.relay.flush)
            raise
        self._relay(self.relay.flush)
        self.seconds = time.monotonic() - started_s

    def _read(self, reading: Reading) -> None:
        if self._remaining() == 0:
            return
        for stretches in reading.polls():
            for stretch in stretches:
                for part in self._parts(stretch):
                    next_offset = self._take(part, reading)
                    if self._remaining() == 0 or self.should_stop():
                        return
                    if next_offset is not None:
                        reading.skip_to(part.cursor.partition, next_offset)
                        break
            if self.should_stop():
                return

    def _remaining(self) -> int | None:
        limit = self.limits.max_messages
        return None if limit is None else limit - self._sent_count

    def _parts(self, stretch: Stretch) -> Iterator[Stretch]:
        """Give a stretch in parts that are small enough to go at an even rate."""
        pacer = self.limits.pacer
        if pacer is None:
            yield stretch
            return
        ends = boundaries(stretch.view)
        first = 0
        for place in range(1, len(ends) - 1):
            size = ends[place] - ends[first] if self.limits.paced_bytes else place - first
            if size >= pacer.burst:
                yield self._part(stretch, ends[first], ends[place])
                first = place
        yield self._part(stretch, ends[first], len(stretch.view))

    def _part(self, stretch: Stretch, start: int, end: int) -> Stretch:
        return stretch._replace(
            offset=stretch.offset + start,
            view=stretch.view[start:end],
            skip=0 if start else stretch.skip,
        )

    def _take(self, stretch: Stretch, reading: Reading) -> int | None:
        """Send what is wanted of a stretch.

        Returns:
            Where to go on, if that is not where the stretch was left: a corrupt message is there.
        """
        rest = stretch.view
        found = scan(rest)
        problem = ""
        try:
            cut = self._cut(stretch, found)
        except InvalidMessageError:
            damage = find_damage(rest, stretch.offset)
            if damage is None:
                raise
            problem = damage.text
            stretch = stretch._replace(view=rest[: damage.position])
            found = scan(stretch.view)
            cut = self._cut(stretch, found)
        if cut.message_count:
            self._send(stretch, cut.message_set, cut.message_count, cut.taken_bytes)
        place = stretch.cursor
        place.take(cut.taken_bytes)
        if cut.taken_bytes < found.valid_bytes:
            return None  # the limit lies inside a compressed set
        if found.fault and (found.fault is not Fault.PARTIAL or place.is_cut_for_good()):
            problem = describe_fault(found.fault, place.offset)
        if not problem:
            return None
        broken = next(iter_entries(rest[found.valid_bytes :], place.offset), None)
        return self.corrupt.pass_over(
            place.partition,
            place.offset,
            problem,
            reading.find_behind,
            None if broken is None else broken.next_offset,
        )

    def _cut(self, stretch: Stretch, found: Scan) -> MessageSlice:
        """Return what is wanted of the good part of a stretch."""
        end = stretch.cursor.end
        return slice_messages(
            stretch.view,
            found,
            stretch.offset,
            skip=stretch.skip,
            end=None if end is None or not end.inner else end,
            limit=self._remaining(),
        )

    def _send(self, stretch: Stretch, message_set: Buffer, count: int, taken: int) -> None:
        if self.limits.pacer is not None:
            self.limits.pacer.wait_for(count, len(message_set))
        source = stretch.cursor.partition
        parcel = Parcel(
            source,
            self.placement[source],
            message_set,
            count,
            stretch.offset + taken,
            self._confirm,
        )
        self._sent_count += count
        self._relay(lambda: self.relay.send(parcel))
        self.advance(taken)

    def _confirm(self, parcel: Parcel, base_offset: int) -> None:
        done = self.copied[parcel.source]
        if self.sent_sets is not None:
            first = self.message_count + 1
            batch = Batch(
                parcel.target, parcel.message_set, range(first, first + parcel.message_count)
            )
            self.sent_sets.note(Confirmed(batch, base_offset, parcel.message_set))
        done.message_count += parcel.message_count
        done.size_bytes += len(parcel.message_set)
        done.next_offset = parcel.next_offset

    def _relay(self, action: Callable[[], None]) -> None:
        """Do something with the target; say what is confirmed if it fails."""
        try:
            action()
        except BrokerError as error:
            self._has_failed = True
            failure = failure_of(error)
            assert failure is not None
            raise CliError(
                failure.status,
                f"{failure.message}; {count_text(self.message_count)} confirmed in the target",
                hints=[self.resume_hint(), *failure.hints],
                code=failure.code,
                details={"confirmed": self.message_count},
            ) from error

    def resume_hint(self) -> str:
        """Return how to copy the rest."""
        where = ",".join(f"{one.name}={done.next_offset}" for one, done in self.copied.items())
        return f"to copy the rest: -o {where}"
