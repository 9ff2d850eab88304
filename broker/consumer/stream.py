"""A stream of a consumer group: the messages for one thread of the application.

Fetcher threads put chunks in, in order of each partition; the application takes messages, or whole
chunks, out. A message is handed out only while its partition is assigned and the ZooKeeper session
is certain to exist.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from operator import length_hint

from broker.consumer.chunk import Chunk, GroupMessage, InnerMessage
from broker.consumer.committer import AssignedPartition
from broker.consumer.membership import Lease
from broker.consumer.offset_store import position_after
from broker.errors import BrokerError, ConsumerTimeoutError, InvalidMessageError
from broker.protocol.codec import Fault, decode
from broker.protocol.message import MIN_ENTRY_BYTES, entry_bytes, has_length
from broker.protocol.message_set import describe_fault
from broker.topic import MessagePosition, TopicPartition

_NOTHING: Iterator[tuple[int, int, bytes]] = iter(())


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
        next_good_message: returns the offset of the next good message behind a corrupt one at an
            offset of a partition; None if unknown.
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
        next_good_message: Callable[[TopicPartition, int], int | None],
        is_wanted: Callable[[bytes], object] | None = None,
    ) -> None:
        self.name = name
        self._lease = lease
        self._max_chunks = max_chunks
        self._timeout_s = timeout_s
        self._on_room = on_room
        self._on_restart = on_restart
        self._is_wanted = is_wanted
        self._next_good_message = next_good_message
        self._changed = threading.Condition()  # guards _queue, _assigned_partitions, _is_ended
        self._queue: deque[tuple[AssignedPartition, Chunk | int | BrokerError]] = deque()
        self._assigned_partitions: dict[TopicPartition, AssignedPartition] = {}
        self._is_ended = False
        self._current: AssignedPartition | None = None
        self._messages = _NOTHING
        self._in_hand: GroupMessage | None = None
        self._fault: tuple[AssignedPartition, Fault] | None = None
        self._wanted_seek: tuple[AssignedPartition, int] | None = None
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

    def chunks(self) -> Iterator[AssignedPartition]:
        """Give a partition after each chunk that arrives, for applications that read whole buffers.

        Use this or messages, not both at once. Decode `data`, which starts at `offset` with an
        entry; call `take` before the next chunk is asked for, and `finish` once the messages are
        processed, at any time. With the connector's filter the data holds entries that the filter
        keeps whole: compressed sets with a matching message in them, and corrupt entries. It is
        empty where the filter has left out everything since the chunk before.

        Raises:
            OffsetOutOfRangeError, ConsumerTimeoutError: as for messages.
        """
        self._close_iterator()
        while (item := self._take_chunk(self._deadline_s())) is not None:
            assigned, chunk = item
            if self._add(assigned, chunk) and not assigned.is_revoked:
                yield assigned

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
        assigned = self._assigned(partition)
        if assigned is None:
            return -1
        offset = assigned.offset
        next_offset = self._next_good_message(partition, offset)
        if next_offset is None:
            data = assigned.data
            size = entry_bytes(data) if has_length(data) else 0
            if size < MIN_ENTRY_BYTES or assigned.is_truncated():
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
        assigned = self._assigned(partition)
        if assigned is None:
            return False
        if assigned is self._current:
            # the message in hand is finished first, when the next one is asked for
            assigned.current_messages.clear()
            self._wanted_seek = (assigned, offset)
        else:
            self._seek(assigned, offset)
        return True

    def _seek(self, assigned: AssignedPartition, offset: int) -> None:
        if self._fault and self._fault[0] is assigned:
            self._fault = None
        self._restart(assigned, offset)
        assigned.seek_offset = offset
        self._on_room()

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that the stream reads now."""
        with self._changed:
            return sorted(self._assigned_partitions)

    # What follows is for fetchers and for the rebalance.

    @property
    def is_full(self) -> bool:
        """Return whether fetchers should pause."""
        return len(self._queue) >= self._max_chunks

    def put(self, assigned: AssignedPartition, item: Chunk | int | BrokerError) -> None:
        """Queue a chunk, an offset to restart at, or an error; dropped after a revocation."""
        with self._changed:
            if not (assigned.is_revoked or self._is_ended):
                self._queue.append((assigned, item))
                self._changed.notify()

    def assign(self, assigned: AssignedPartition) -> None:
        """Read a partition from now on."""
        with self._changed:
            self._assigned_partitions[assigned.partition] = assigned

    def revoke(self, assigned: AssignedPartition) -> None:
        """Hand out nothing more of a partition, and drop what waits."""
        with self._changed:
            assigned.is_revoked = True
            assigned.current_messages.clear()
            self._assigned_partitions.pop(assigned.partition, None)
            kept = [one for one in self._queue if one[0] is not assigned]
            self._queue = deque(kept)
            self._changed.notify()
        self._on_room()

    def end(self) -> None:
        """End the iteration, dropping what waits."""
        with self._changed:
            self._is_ended = True
            self._queue.clear()
            self._changed.notify_all()

    def _assigned(self, partition: TopicPartition) -> AssignedPartition | None:
        with self._changed:
            return self._assigned_partitions.get(partition)

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
        while (assigned := self._await_messages()) is not None:
            partition, messages = assigned.partition, self._messages
            topic, inner = partition.topic, assigned.next_inner
            for offset, next_offset, payload in messages:
                message: GroupMessage = (topic, partition, offset, next_offset, payload)
                if next_offset == offset or inner:
                    message = InnerMessage(message, inner)
                    inner = assigned.next_inner = inner + 1 if next_offset == offset else 0
                if is_wanted is None or is_wanted(payload):
                    try:
                        yield message
                    except GeneratorExit:
                        self._in_hand = message
                        raise
                if inner:
                    assigned.finish_inner(MessagePosition(offset, inner))
                else:
                    assigned.finished = next_offset
                if now_s() >= lease.until_s:
                    break  # a release ends the loop by emptying the list

    def _finish(self, message: GroupMessage) -> None:
        assigned = self._current
        self._in_hand = None
        if assigned is None:
            return
        position = position_after(message)
        if position.inner:
            assigned.finish_inner(position)
        else:
            assigned.finished = position.offset

    def _await_messages(self) -> AssignedPartition | None:
        """Return the partition whose messages come next; None at the end of the stream."""
        deadline_s = self._deadline_s()
        if self._wanted_seek is not None:
            self._seek(*self._wanted_seek)
            self._wanted_seek = None
        while not self._is_ended:
            assigned = self._current
            if assigned is not None and assigned.is_revoked:
                self._current, self._messages, assigned = None, _NOTHING, None
            if assigned is not None and length_hint(self._messages):
                if self._lease.is_valid:
                    return assigned
                self._await_lease(deadline_s)
                continue
            self._current = None
            self._raise_fault()
            item = self._take_chunk(deadline_s)
            if item is None:
                break
            assigned, chunk = item
            if not assigned.is_blocked and self._add(assigned, chunk):
                self._decode(assigned)
            if chunk.skip_to is not None and deadline_s and time.monotonic() > deadline_s:
                raise self._timeout()
        return None

    def _decode(self, assigned: AssignedPartition) -> None:
        """Make the messages of a partition's data the current ones."""
        data, skip = assigned.data, assigned.skip
        whole = data.obj
        # joined chunks are bytes already, which the decoder need not copy
        buffer = whole if isinstance(whole, bytes) and len(whole) == len(data) else data
        messages, valid_bytes, fault = decode(buffer, assigned.offset)
        assigned.take(valid_bytes)
        # messages of a compressed set that were finished before the partition was assigned
        del messages[:skip]
        assigned.next_inner = skip if messages else 0
        if fault is Fault.PARTIAL:
            fault = Fault.SIZE if assigned.is_truncated() else Fault.NONE
        if fault:
            assigned.is_blocked = True
            self._fault = (assigned, fault)
        assigned.current_messages = messages
        self._current, self._messages = assigned, iter(messages)
        if not messages:
            assigned.finished = max(assigned.finished, assigned.offset)

    def _add(self, assigned: AssignedPartition, chunk: Chunk) -> bool:
        """Add a chunk to a partition's data; return False if it does not continue that."""
        try:
            return assigned.add(chunk)
        except InvalidMessageError:
            assigned.is_blocked = True
            raise

    def _raise_fault(self) -> None:
        fault, self._fault = self._fault, None
        if fault is not None and not fault[0].is_revoked:
            assigned, kind = fault
            raise InvalidMessageError(
                f"{assigned.partition}: {describe_fault(kind, assigned.offset)}; the partition "
                "stands still there until skip_corrupt or seek"
            )

    def _take_chunk(self, deadline_s: float | None) -> tuple[AssignedPartition, Chunk] | None:
        """Return the next chunk; None at the end of the stream."""
        while True:
            with self._changed:
                while not (self._queue or self._is_ended):
                    self._wait(deadline_s)
                if self._is_ended:
                    return None
                entry = self._queue.popleft() if self._lease.is_valid else None
                has_room = len(self._queue) == self._max_chunks // 2
            if entry is None:
                self._await_lease(deadline_s)
                continue
            assigned, item = entry
            if has_room:
                self._on_room()
            if isinstance(item, Chunk):
                return assigned, item
            if isinstance(item, BrokerError):
                raise item
            self._restart(assigned, item)

    def _restart(self, assigned: AssignedPartition, offset: int) -> None:
        self._on_restart(assigned.partition, offset)
        assigned.restart_at(offset)

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
