"""A stream of a consumer group: what one thread of the application reads.

Fetchers put bytes in, in order of each partition; the application takes messages, or whole
chunks, out. Nothing of a partition is handed out after it was released, nor while it is not
certain that this process still owns it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import NamedTuple

from broker.consumer.chunk import GroupMessage, InnerMessage
from broker.consumer.lease import Lease
from broker.consumer.offset_store import Position, position_after
from broker.consumer.owned import OwnedPartition
from broker.errors import BrokerError, ConsumerTimeoutError, InvalidMessageError
from broker.protocol.codec import Fault, decode
from broker.protocol.message import MIN_ENTRY_BYTES, entry_bytes, has_length
from broker.protocol.message_set import describe_fault
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition

_NOTHING: Iterator[tuple[int, int, bytes]] = iter(())


class Arrival(NamedTuple):
    """What a fetcher puts into a stream: bytes, a jump to another offset, or an error.

    `skip_to` is where to go on behind messages from `offset` on that a filter has left out.
    """

    owned: OwnedPartition
    offset: int
    data: Buffer = b""
    high_watermark: int = -1
    is_jump: bool = False
    skip_to: int | None = None
    error: BrokerError | None = None


class Chunk:
    """Bytes of one partition, for an application that works on whole buffers.

    Attributes:
        partition: where they are from.
        offset: the offset of the first byte, where an entry starts.
        data: a message set, usually with a partial entry at its end. With a filter it holds what
            the filter keeps whole: compressed sets with a wanted message in them, and damage. It
            is empty where the filter has left out everything since the chunk before.
    """

    __slots__ = ("_owned", "data", "offset", "partition")

    def __init__(self, owned: OwnedPartition, data: memoryview) -> None:
        self._owned = owned
        self.partition = owned.partition
        self.offset = owned.arrived.offset
        self.data = data

    def take(self, valid_bytes: int) -> None:
        """Say how much of the chunk is whole entries that were worked on.

        The rest comes again in front of the next chunk of the partition. Call it once, and before
        the next chunk is asked for.
        """
        self._owned.arrived.take(valid_bytes)

    def is_cut_for_good(self, valid_bytes: int) -> bool:
        """Say whether the partial entry at the end is damage: it claims to go past all there is.

        Args:
            valid_bytes: where in the chunk it starts; before `take`.
        """
        return self._owned.arrived.is_cut_for_good(valid_bytes)

    def finish(self, next_offset: int) -> bool:
        """Say that everything before an offset is done with, so that it may be committed.

        Args:
            next_offset: where an entry of the chunk starts or ends.

        Returns:
            False if the partition was released meanwhile: another member reads on from what was
            committed last.
        """
        if self._owned.is_released:
            return False
        self._owned.finished = next_offset
        return True


class ConsumerStream:
    """Messages of the partitions that one consumer thread owns, as they come and go.

    For one thread at a time. Iterating gives a `GroupMessage` each; asking for the next one
    finishes the one before, and only finished messages are committed. After an exception the
    iteration can be started again and goes on with what comes next.

    Args:
        name: the stream's name, for messages.
        lease: tells whether this process still owns what it owns.
        max_chunks: how many chunks wait before fetchers are told to pause.
        timeout_s: how long to wait for something before that is an error; None for ever.
        on_room: called when fetchers that were told to pause can go on.
        on_restart: called with a partition and an offset before the partition goes on there.
        is_wanted: says of a payload whether the application gets it; it gets all by default. Not
            for chunks, which come as they were fetched.
        find_behind: returns where the next good message is behind a damaged one at an offset of a
            partition; None if nobody knows.
    """

    def __init__(
        self,
        name: str,
        lease: Lease,
        *,
        max_chunks: int,
        timeout_s: float | None,
        on_room: Callable[[], None],
        on_restart: Callable[[TopicPartition, int], None],
        find_behind: Callable[[TopicPartition, int], int | None],
        is_wanted: Callable[[bytes], object] | None = None,
    ) -> None:
        self.name = name
        self._lease = lease
        self._max_chunks = max_chunks
        self._timeout_s = timeout_s
        self._on_room = on_room
        self._on_restart = on_restart
        self._is_wanted = is_wanted
        self._find_behind = find_behind
        self._changed = threading.Condition()  # guards _arrivals, _owned_partitions, _is_ended
        self._arrivals: deque[Arrival] = deque()
        self._owned_partitions: dict[TopicPartition, OwnedPartition] = {}
        self._is_ended = False
        self._current: OwnedPartition | None = None
        self._messages = _NOTHING
        self._in_hand: GroupMessage | None = None
        self._fault: tuple[OwnedPartition, Fault] | None = None
        self._wanted_seek: tuple[OwnedPartition, int] | None = None
        self._iterator: Iterator[GroupMessage] | None = None

    def __iter__(self) -> Iterator[GroupMessage]:
        """Return the messages; see the class.

        Raises:
            InvalidMessageError: the next message of a partition is corrupt. Its partition stands
                still until `skip_corrupt`; iterating again goes on with the others.
            OffsetOutOfRangeError: a partition's offset is not there and no reset is configured.
            PatternTooSlowError, InvalidPatternError: a broker cannot filter a partition with the
                pattern of the connector's filter. The partition stands still until `seek`.
            ConsumerTimeoutError: nothing came within the timeout.
        """
        self._close_iterator()
        self._iterator = self._iterate()
        return self._iterator

    def __next__(self) -> GroupMessage:
        """Return the next message; see `__iter__`."""
        if self._iterator is None:
            self._iterator = self._iterate()
        try:
            return next(self._iterator)
        except BaseException:
            self._iterator = None
            raise

    def finish(self, message: GroupMessage) -> None:
        """Say that a message is done with, before the next one is asked for.

        Args:
            message: the one that was given last.
        """
        if self._current is not None and self._current.partition == message[1]:
            self._finish(message)

    def chunks(self) -> Iterator[Chunk]:
        """Return whole buffers as they come, instead of messages; not both at once.

        Raises:
            OffsetOutOfRangeError, ConsumerTimeoutError: as for messages.
        """
        self._close_iterator()
        while True:
            deadline_s = self._deadline_s()
            arrival = self._take_arrival(deadline_s)
            if arrival is None:
                return
            data = self._add(arrival)
            if data is not None and not arrival.owned.is_released:
                yield Chunk(arrival.owned, data)

    def skip_corrupt(self, partition: TopicPartition) -> int:
        """Leave out the message that a partition stands still at, and count it as finished.

        Args:
            partition: as the error named it.

        Returns:
            The offset at which the partition goes on.

        Raises:
            InvalidMessageError: a 0.7 broker cannot tell where the next one starts, and the
                message's length is damaged too; `seek` there.
            BrokerError: the broker could not be asked.
        """
        owned = self._owned(partition)
        if owned is None:
            return -1
        offset = owned.arrived.offset
        next_offset = self._find_behind(partition, offset)
        if next_offset is None:
            rest = owned.arrived.add(b"")
            size = entry_bytes(rest) if has_length(rest) else 0
            if size < MIN_ENTRY_BYTES or owned.arrived.is_cut_for_good():
                raise InvalidMessageError(
                    f"{partition}: the message at {offset} has no length to skip by; seek to where "
                    "the next one starts (pylogctl log verify finds it)"
                )
            next_offset = offset + size
        self.seek(partition, next_offset)
        return next_offset

    def seek(self, partition: TopicPartition, offset: int) -> bool:
        """Go on in a partition at another offset, and count everything before it as finished.

        Args:
            partition: one that this stream owns.
            offset: where a message starts.

        Returns:
            False if the stream does not own the partition (any more).
        """
        owned = self._owned(partition)
        if owned is None:
            return False
        if owned is self._current:
            # the message in hand is finished first, when the next one is asked for
            owned.current_messages.clear()
            self._wanted_seek = (owned, offset)
        else:
            self._seek(owned, offset)
        return True

    def _seek(self, owned: OwnedPartition, offset: int) -> None:
        if self._fault and self._fault[0] is owned:
            self._fault = None
        self._restart(owned, offset)
        owned.seek_offset = offset
        self._on_room()

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that the stream reads now."""
        with self._changed:
            return sorted(self._owned_partitions)

    # What follows is for fetchers and for the rebalance.

    @property
    def is_full(self) -> bool:
        """Return whether fetchers should pause."""
        return len(self._arrivals) >= self._max_chunks

    def put(self, arrival: Arrival) -> None:
        """Put something in; it is dropped if the partition was released meanwhile."""
        with self._changed:
            if not (arrival.owned.is_released or self._is_ended):
                self._arrivals.append(arrival)
                self._changed.notify()

    def adopt(self, owned: OwnedPartition) -> None:
        """Read a partition from now on."""
        with self._changed:
            self._owned_partitions[owned.partition] = owned

    def release(self, owned: OwnedPartition) -> None:
        """Hand out nothing more of a partition, and drop what waits."""
        with self._changed:
            owned.is_released = True
            owned.current_messages.clear()
            self._owned_partitions.pop(owned.partition, None)
            kept = [one for one in self._arrivals if one.owned is not owned]
            self._arrivals = deque(kept)
            self._changed.notify()
        self._on_room()

    def end(self) -> None:
        """End the iteration, dropping what waits."""
        with self._changed:
            self._is_ended = True
            self._arrivals.clear()
            self._changed.notify_all()

    def _owned(self, partition: TopicPartition) -> OwnedPartition | None:
        with self._changed:
            return self._owned_partitions.get(partition)

    def _close_iterator(self) -> None:
        iterator, self._iterator = self._iterator, None
        if iterator is not None:
            iterator.close()  # type: ignore[attr-defined]  # it is one of our generators

    def _deadline_s(self) -> float | None:
        return None if self._timeout_s is None else time.monotonic() + self._timeout_s

    def _iterate(self) -> Iterator[GroupMessage]:
        """Give messages one by one; everything in the inner loop is paid for each message."""
        if self._in_hand is not None:
            self._finish(self._in_hand)
        lease, now_s, is_wanted = self._lease, time.monotonic, self._is_wanted
        while (owned := self._await_messages()) is not None:
            partition, messages = owned.partition, self._messages
            topic, inner = partition.topic, owned.next_inner
            for offset, next_offset, payload in messages:
                message: GroupMessage = (topic, partition, offset, next_offset, payload)
                if next_offset == offset or inner:
                    message = InnerMessage(message, inner)
                    inner = owned.next_inner = inner + 1 if next_offset == offset else 0
                if is_wanted is None or is_wanted(payload):
                    try:
                        yield message
                    except GeneratorExit:
                        self._in_hand = message
                        raise
                if inner:
                    owned.finish_inner(Position(offset, inner))
                else:
                    owned.finished = next_offset
                if now_s() >= lease.until_s:
                    break  # a release ends the loop by emptying the list

    def _finish(self, message: GroupMessage) -> None:
        owned = self._current
        self._in_hand = None
        if owned is None:
            return
        position = position_after(message)
        if position.inner_count:
            owned.finish_inner(position)
        else:
            owned.finished = position.offset

    def _await_messages(self) -> OwnedPartition | None:
        """Return the partition whose messages come next; None at the end of the stream."""
        deadline_s = self._deadline_s()
        if self._wanted_seek is not None:
            self._seek(*self._wanted_seek)
            self._wanted_seek = None
        while not self._is_ended:
            owned = self._current
            if owned is not None and owned.is_released:
                self._current, self._messages, owned = None, _NOTHING, None
            if owned is not None and length_hint(self._messages):
                if self._lease.is_valid:
                    return owned
                self._await_lease(deadline_s)
                continue
            self._current = None
            self._raise_fault()
            arrival = self._take_arrival(deadline_s)
            if arrival is None:
                break
            self._decode(arrival)
            if arrival.skip_to is not None and deadline_s and time.monotonic() > deadline_s:
                raise self._timeout()
        return None

    def _decode(self, arrival: Arrival) -> None:
        """Make the messages of an arrival the current ones."""
        owned = arrival.owned
        if owned.is_blocked:
            return
        data = self._add(arrival)
        if data is None:
            return
        whole = data.obj
        # what was put together out of pieces is bytes already, and need not be copied again
        buffer = whole if isinstance(whole, bytes) and len(whole) == len(data) else data
        decoded = decode(buffer, owned.arrived.offset)
        owned.arrived.take(decoded.valid_bytes)
        messages = decoded.messages
        owned.drop_finished(messages)
        fault = decoded.fault
        if fault is Fault.PARTIAL:
            fault = Fault.SIZE if owned.arrived.is_cut_for_good() else Fault.NONE
        if fault:
            owned.is_blocked = True
            self._fault = (owned, fault)
        owned.current_messages = messages
        self._current, self._messages = owned, iter(messages)
        if not messages:
            owned.finished = max(owned.finished, owned.arrived.offset)

    def _add(self, arrival: Arrival) -> memoryview | None:
        """Return all bytes of a partition that are not taken; None for what is no continuation."""
        owned = arrival.owned
        if arrival.skip_to is None:
            return owned.add(arrival.offset, arrival.data, arrival.high_watermark)
        try:
            return memoryview(b"") if owned.skip_to(arrival.offset, arrival.skip_to) else None
        except InvalidMessageError as error:
            owned.is_blocked = True
            raise InvalidMessageError(f"{owned.partition}: {error}") from error

    def _raise_fault(self) -> None:
        fault, self._fault = self._fault, None
        if fault is not None and not fault[0].is_released:
            owned, kind = fault
            raise InvalidMessageError(
                f"{owned.partition}: {describe_fault(kind, owned.arrived.offset)}; the partition "
                "stands still there until skip_corrupt or seek"
            )

    def _take_arrival(self, deadline_s: float | None) -> Arrival | None:
        """Return the next bytes; None at the end of the stream."""
        while True:
            with self._changed:
                while not (self._arrivals or self._is_ended):
                    self._wait(deadline_s)
                if self._is_ended:
                    return None
                arrival = self._arrivals.popleft() if self._lease.is_valid else None
                has_room = len(self._arrivals) == self._max_chunks // 2
            if arrival is None:
                self._await_lease(deadline_s)
                continue
            if has_room:
                self._on_room()
            if arrival.error is not None:
                raise arrival.error
            if not arrival.is_jump:
                return arrival
            self._restart(arrival.owned, arrival.offset)

    def _restart(self, owned: OwnedPartition, offset: int) -> None:
        self._on_restart(owned.partition, offset)
        owned.restart_at(offset)

    def _wait(self, deadline_s: float | None) -> None:
        """Wait for a change; caller holds `_changed`."""
        timeout_s = None if deadline_s is None else deadline_s - time.monotonic()
        if timeout_s is not None and timeout_s <= 0:
            raise self._timeout()
        self._changed.wait(timeout_s)

    def _await_lease(self, deadline_s: float | None) -> None:
        timeout_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
        if not self._lease.wait(timeout_s):
            raise self._timeout()

    def _timeout(self) -> ConsumerTimeoutError:
        return ConsumerTimeoutError(f"nothing came to stream {self.name} in {self._timeout_s:g}s")
