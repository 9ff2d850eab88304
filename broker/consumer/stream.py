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
from contextlib import suppress
from dataclasses import KW_ONLY, InitVar, dataclass
from operator import length_hint
from typing import Any

from broker.client.counts import ConsumerCounts
from broker.consumer.chunk import Chunk, GroupMessage, InnerMessage, RecordMessage
from broker.consumer.committer import AssignedPartition
from broker.consumer.membership import Lease
from broker.consumer.offset_store import partition_of, position_after
from broker.errors import BrokerError, ConsumerTimeoutError, InvalidMessageError
from broker.protocol.codec import Fault, Message, decode, scan_batches
from broker.protocol.message import MIN_ENTRY_BYTES, entry_bytes, has_length
from broker.protocol.message_set import describe_fault
from broker.protocol.read_message import messages_of_records
from broker.topic import MessagePosition, TopicPartition

Assigned = dict[TopicPartition, AssignedPartition]
OnNews = Callable[[Assigned, Assigned], object]

Found = Any
"""A message of a chunk: (offset, next offset, payload), or a `Message` where there are records."""

_NOTHING: Iterator[Found] = iter(())


@dataclass(eq=False, repr=False)
class ConsumerStream:
    """The messages of the partitions assigned to one consumer thread.

    For one thread at a time. Iterating gives a `GroupMessage` each; requesting the next message
    finishes the previous one, and only finished messages are committed. After an exception the
    iteration can be started again and continues behind the error.

    Args:
        name: for messages.
        lease: messages are handed out only while it is valid.
        max_chunks: how many chunks are queued before fetchers pause.
        timeout_s: the longest wait for a message before an error; None for no limit.
        on_room: called when paused fetchers can be resumed.
        on_restart: called with a partition and an offset before reading restarts there.
        is_wanted: whether the application gets a payload; all by default. Not applied by `chunks`.
        next_good_message: returns the offset of the next good message behind a corrupt one at an
            offset of a partition; None if unknown, the offset itself if it is to be read again.
    """

    name: str
    lease: Lease
    _: KW_ONLY
    max_chunks: int
    timeout_s: float | None
    on_room: Callable[[], None]
    on_restart: Callable[[TopicPartition, int], None]
    next_good_message: Callable[[TopicPartition, int], int | None]
    is_wanted: Callable[[bytes], object] | None = None
    counts: InitVar[ConsumerCounts | None] = None

    def __post_init__(self, counts: ConsumerCounts | None) -> None:
        self._counts = counts or ConsumerCounts()  # of the thread that takes messages
        self._changed = threading.Condition()  # guards _queue, _assigned_partitions, _is_ended
        self._queue: deque[tuple[AssignedPartition, Chunk | MessagePosition | BrokerError]] = (
            deque()
        )
        self._assigned_partitions: dict[TopicPartition, AssignedPartition] = {}
        self._is_ended = False
        self._current: AssignedPartition | None = None
        self._chunk_of: AssignedPartition | None = None  # which `chunks` gave last
        self._messages = _NOTHING
        self._in_hand: GroupMessage | None = None
        self._fault: tuple[AssignedPartition, Fault] | None = None
        self._wanted_seek: tuple[AssignedPartition, MessagePosition] | None = None
        self._wanted_rewind: AssignedPartition | None = None
        self._on_news: OnNews | None = None
        self._has_news = self._is_telling = False
        self._told: Assigned = {}  # to `_on_news`
        self._iterator: Iterator[GroupMessage] | None = None

    def __iter__(self) -> Iterator[GroupMessage]:
        """Return the messages; see the class.

        Raises:
            InvalidMessageError: the next message of a partition is corrupt. The partition is
                blocked until `skip_corrupt` or `seek`; iterating again reads the others.
            OffsetOutOfRangeError: a partition's offset is out of range and no reset is configured.
            InvalidPatternError: a broker cannot filter a partition with the connector's pattern.
                The partition is blocked until `seek`.
            ConsumerTimeoutError: no message within the timeout.
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

    def finish(self, message: GroupMessage | Message) -> None:
        """Mark the message given last as processed, before the next one is requested."""
        if self._current is not None and self._current.partition == partition_of(message):
            self._finish(message)

    def chunks(self) -> Iterator[AssignedPartition]:
        """Give a partition after each chunk, for applications that process whole buffers.

        Use this or iteration, not both at once. Decode `data`, which starts at `offset` with an
        entry; call `take` before the next chunk is requested, and `finish` at any time once the
        messages are processed. With the connector's filter the data also holds wrappers with a
        matching message in them and corrupt entries; it is empty after a skip.

        Raises:
            OffsetOutOfRangeError, ConsumerTimeoutError: as for messages.
        """
        self._close_iterator()
        while (item := self._take_chunk(self._deadline_s())) is not None:
            assigned, chunk = item
            is_new = not assigned.is_blocked and self._add(assigned, chunk)
            if is_new and self._begin_chunk(assigned):
                try:
                    yield assigned
                finally:
                    self._end_chunk()

    def _begin_chunk(self, assigned: AssignedPartition) -> bool:
        with self._changed:
            if assigned.is_leaving:
                return False
            self._chunk_of = assigned
            return True

    def _end_chunk(self) -> None:
        with self._changed:
            self._chunk_of = None
            self._changed.notify_all()

    def next_messages(
        self,
    ) -> tuple[AssignedPartition, Iterator[Found]] | None:
        """Return a partition and its next messages, None at the end of the stream.

        For applications that give them out by `hand_out`, or finish them by themselves. What they
        do not take from the iterator, which a revocation ends, comes again with the next call.
        Errors are those of `__iter__`.
        """
        assigned = self._await_messages()
        return None if assigned is None else (assigned, self._messages)

    def hand_out(self, assigned: AssignedPartition, position: MessagePosition) -> bool:
        """Finish all before a position; False if the partition was revoked or the stream ended."""
        with self._changed:
            if assigned.is_revoked or self._is_ended:
                return False
            assigned.finish_inner(position)
            return True

    def rewind_current(self) -> None:
        """Have messages of the partition in hand come again that were not handed out."""
        if self._current is not None:
            # the current message is finished first, when the next one is requested
            self._current.current_messages.clear()
            self._wanted_rewind = self._current

    def rewind(self) -> None:
        """Have messages come again that were taken and are not finished, but for blocked ones."""
        for assigned in self.assigned.values():
            if not assigned.is_blocked and assigned.position != (assigned.offset, assigned.inner):
                self._rewind(assigned)

    def skip_corrupt(self, partition: TopicPartition) -> int:
        """Skip the corrupt message at which a partition is blocked; it counts as finished.

        Returns:
            The offset at which the partition continues; -1 if it is not assigned to the stream.

        Raises:
            InvalidMessageError: the next message is unknown, as the broker is a 0.7 one and the
                message's length is corrupt too; use `seek`.
            BrokerError: the broker failed to find the next message.
        """
        assigned = self._assigned(partition)
        if assigned is None:
            return -1
        offset = assigned.offset
        next_offset = self.next_good_message(partition, offset)
        if partition.has_records and next_offset != offset:
            next_offset = max(next_offset or 0, assigned.after_damage())
        if next_offset is None:
            data = assigned.data
            size = entry_bytes(data) if has_length(data) else 0
            if size < MIN_ENTRY_BYTES or assigned.ends_beyond_log():
                raise InvalidMessageError(
                    f"{partition}: the message at {offset} has no length to skip by; seek to where "
                    "the next one starts (pylogctl log verify finds it)"
                )
            next_offset = offset + size
        self.seek(partition, next_offset)
        return next_offset

    def seek(self, partition: TopicPartition, offset: int, inner: int = 0) -> bool:
        """Continue in a partition at another message boundary; all before it counts as finished.

        With `inner` it continues inside the wrapper there, at the message of this index.

        Returns:
            False if the partition is not assigned to the stream.
        """
        assigned = self._assigned(partition)
        if assigned is None:
            return False
        if assigned is self._current:
            # the current message is finished first, when the next one is requested
            assigned.current_messages.clear()
            self._wanted_seek = (assigned, MessagePosition(offset, inner))
        else:
            self._seek(assigned, MessagePosition(offset, inner))
        return True

    def _seek(self, assigned: AssignedPartition, position: MessagePosition) -> None:
        if self._fault and self._fault[0] is assigned:
            self._fault = None
        self.on_restart(assigned.partition, position.offset)
        with self._changed:
            assigned.restart_at(*position)
            assigned.seek_offset = position.offset
            # perhaps the fetcher has found another start meanwhile
            self._take_restarts(assigned)
        self.on_room()

    def pause(self, partition: TopicPartition) -> None:
        """Hand out nothing of a partition until `resume`, or until it is assigned anew."""
        assigned = self._assigned(partition)
        if assigned is None or assigned.is_paused:
            return
        with self._changed:
            assigned.is_paused = True  # from now on its chunks are dropped
            queued = [item for one, item in self._queue if one is assigned]
            self._queue = deque(one for one in self._queue if one[0] is not assigned)
        for item in queued:
            if isinstance(item, MessagePosition):
                self._restart(assigned, item)
            elif isinstance(item, BrokerError):
                self._queue.append((assigned, item))
        if assigned is self._current:
            self.rewind_current()
        elif assigned.offset >= 0 and not assigned.is_blocked:
            assigned.rewind(MessagePosition(assigned.offset, assigned.inner))
        self.on_room()

    def resume(self, partition: TopicPartition) -> None:
        """Hand out the messages of a paused partition again."""
        assigned = self._assigned(partition)
        if assigned is None or not assigned.is_paused:
            return
        if assigned.offset >= 0 and assigned.seek_offset is None:
            assigned.seek_offset = assigned.offset  # chunks may have been dropped since
        assigned.is_paused = False
        self.on_room()

    def _rewind(self, assigned: AssignedPartition) -> None:
        if self._fault and self._fault[0] is assigned:
            self._fault, assigned.is_blocked = None, False
        position = assigned.position
        if position is not None and not assigned.is_revoked:
            assigned.rewind(position)
            self.on_room()

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions assigned to the stream now."""
        with self._changed:
            return sorted(self._assigned_partitions)

    def watch(self, on_news: OnNews) -> None:
        """Set what is called with revoked and newly assigned partitions, between two messages.

        The thread that takes messages calls it; the first time before the next message.
        """
        with self._changed:
            self._on_news = on_news
            self._note_news()

    @property
    def assigned(self) -> Assigned:
        """Return the partitions assigned to the stream now, with their positions."""
        with self._changed:
            return dict(self._assigned_partitions)

    @property
    def current(self) -> AssignedPartition | None:
        """Return the partition of the message given last."""
        return self._current

    # The methods below are called by fetcher threads and the coordinator.

    @property
    def is_full(self) -> bool:
        """Return whether fetchers should pause."""
        return len(self._queue) >= self.max_chunks

    def put(self, assigned: AssignedPartition, item: Chunk | MessagePosition | BrokerError) -> None:
        """Queue a chunk, a position to restart at, or an error; dropped after a revocation."""
        with self._changed:
            is_dropped = assigned.is_paused and isinstance(item, Chunk)
            if not (assigned.is_revoked or self._is_ended or is_dropped):
                self._queue.append((assigned, item))
                self._changed.notify_all()

    def put_start(self, assigned: AssignedPartition, start: MessagePosition) -> None:
        """Queue where a partition starts, unless the application sought another offset."""
        with self._changed:
            if assigned.offset < 0:
                self.put(assigned, start)

    def assign(self, assigned: AssignedPartition) -> None:
        """Add a partition."""
        assigned.counts = self._counts.of(assigned.partition.topic)
        with self._changed:
            self._assigned_partitions[assigned.partition] = assigned
            self._note_news()

    def revoke(self, assigned: AssignedPartition, wait_s: float = 0.0) -> None:
        """Remove a partition: drop its queued chunks, and hand out no more of its messages.

        The application has `wait_s` to finish a chunk of it that `chunks` gave; what it has not
        finished is read again by the next owner.
        """
        with self._changed:
            if assigned.is_revoked:
                return
            assigned.is_leaving = True
            self._changed.wait_for(
                lambda: self._chunk_of is not assigned or self._is_ended, timeout=wait_s
            )
            starts = self._take_restarts(assigned)
            if starts and assigned.offset < 0:  # so that the next owner starts there too
                assigned.restart_at(*starts[-1])
            assigned.is_revoked = True
            assigned.current_messages.clear()
            self._assigned_partitions.pop(assigned.partition, None)
            kept = [one for one in self._queue if one[0] is not assigned]
            self._queue = deque(kept)
            self._note_news()
        self.on_room()

    def await_told(self, assigned: AssignedPartition, timeout_s: float) -> None:
        """Wait until `watch` was told that a partition is revoked, if it knows of the partition."""
        partition = assigned.partition
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._is_ended
                    or not (self._is_telling or self._told.get(partition) is assigned)
                ),
                timeout_s,
            )

    def _note_news(self) -> None:
        self._has_news = self._on_news is not None
        self._changed.notify_all()

    def _tell_news(self) -> None:
        with self._changed:
            self._has_news = False
            former, now = self._told, self.assigned
            self._told, self._is_telling = now, True
        revoked = {key: one for key, one in former.items() if now.get(key) is not one}
        gained = {key: one for key, one in now.items() if former.get(key) is not one}
        try:
            if self._on_news is not None:
                self._on_news(revoked, gained)
        finally:
            with self._changed:
                self._is_telling = False
                self._changed.notify_all()

    def end(self) -> None:
        """End the iteration, and drop all queued chunks."""
        with self._changed:
            self._is_ended = True
            self._queue.clear()
            if (current := self._current) is not None:
                current.current_messages.clear()
            self._changed.notify_all()

    def _assigned(self, partition: TopicPartition) -> AssignedPartition | None:
        with self._changed:
            return self._assigned_partitions.get(partition)

    def _close_iterator(self) -> None:
        iterator, self._iterator = self._iterator, None
        if iterator is not None:
            try:
                iterator.close()  # type: ignore[attr-defined]  # made by `_iterate`, a generator
            except ValueError:  # it runs
                self._iterator = iterator
                raise RuntimeError("another thread takes messages at this moment") from None

    def _deadline_s(self) -> float | None:
        return None if self.timeout_s is None else time.monotonic() + self.timeout_s

    def _iterate(self) -> Iterator[GroupMessage]:
        """Give messages one by one; the inner loop is a hot path."""
        if self._in_hand is not None:
            self._finish(self._in_hand)
        lease, now_s, is_wanted = self.lease, time.monotonic, self.is_wanted
        while (assigned := self._await_messages()) is not None:
            partition, messages = assigned.partition, self._messages
            if partition.has_records:
                yield from self._iterate_records(assigned)
                continue
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
                if now_s() >= lease.until_s or self._has_news:
                    break  # a revocation ends the loop by emptying the list

    def _iterate_records(self, assigned: AssignedPartition) -> Iterator[GroupMessage]:
        lease, now_s, is_wanted = self.lease, time.monotonic, self.is_wanted
        message: Message
        for message in self._messages:
            if is_wanted is None or is_wanted(message.value):
                found = RecordMessage(message)
                try:
                    yield found
                except GeneratorExit:
                    self._in_hand = found
                    raise
            assigned.finished = message.next_offset
            if now_s() >= lease.until_s or self._has_news:
                break

    def _finish(self, message: GroupMessage | Message) -> None:
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
        """Return the partition of the next messages; None at the end of the stream."""
        deadline_s = self._deadline_s()
        while not self._is_ended:
            if self._has_news:
                self._tell_news()
            if self._wanted_rewind is not None:
                self._rewind(self._wanted_rewind)
                self._wanted_rewind = None
            if self._wanted_seek is not None:
                self._seek(*self._wanted_seek)
                self._wanted_seek = None
            assigned = self._current
            if assigned is not None and assigned.is_revoked:
                self._current, self._messages, assigned = None, _NOTHING, None
            if assigned is not None and length_hint(self._messages):
                if self.lease.is_valid:
                    return assigned
                self._await_lease(deadline_s)
                continue
            if assigned is not None and assigned.has_batches and not assigned.is_blocked:
                self._decode(assigned)
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
        if assigned.partition.has_records:
            self._decode_records(assigned)
            return
        data, skip = assigned.data, assigned.inner
        whole = data.obj
        # joined chunks are bytes, which the decoder need not copy
        buffer = whole if isinstance(whole, bytes) and len(whole) == len(data) else data
        messages, valid_bytes, fault = decode(buffer, assigned.offset)
        # messages of a wrapper that were finished before the partition was assigned
        del messages[:skip]
        assigned.take(valid_bytes, len(messages))
        assigned.next_inner = skip if messages else 0
        if fault is Fault.PARTIAL:
            fault = Fault.SIZE if assigned.ends_beyond_log() else Fault.NONE
        if fault:
            assigned.is_blocked = True
            self._fault = (assigned, fault)
        assigned.current_messages = messages
        self._current, self._messages = assigned, iter(messages)
        if not messages:
            assigned.finished = max(assigned.finished, assigned.offset)

    def _decode_records(self, assigned: AssignedPartition) -> None:
        """Decode record batches that have come, as many as may be in memory."""
        partition, records = assigned.partition, []
        try:
            records = assigned.take_records()
        except InvalidMessageError:
            assigned.is_blocked = True
            self._fault = (assigned, scan_batches(assigned.batches).fault or Fault.RECORDS)
        messages = messages_of_records(Message, partition, records, assigned.offset)
        assigned.current_messages = messages
        self._current, self._messages = assigned, iter(messages)
        if not messages:
            assigned.finished = max(assigned.finished, assigned.offset)

    def _add(self, assigned: AssignedPartition, chunk: Chunk) -> bool:
        try:
            return assigned.add(chunk)
        except InvalidMessageError:
            assigned.is_blocked = True
            raise

    def _raise_fault(self) -> None:
        fault, self._fault = self._fault, None
        if fault is not None and not fault[0].is_revoked:
            assigned, kind = fault
            if self._is_read_again(assigned):
                return
            raise InvalidMessageError(
                f"{assigned.partition}: {describe_fault(kind, assigned.offset)}; the partition "
                "is blocked there until skip_corrupt or seek"
            )

    def _is_read_again(self, assigned: AssignedPartition) -> bool:
        """Seek to the message at which a partition is blocked, if another replica may have it."""
        offset = assigned.offset
        with suppress(BrokerError):  # must not hide the damage
            if not assigned.inner and self.next_good_message(assigned.partition, offset) == offset:
                self._seek(assigned, MessagePosition(offset))
                return True
        return False

    def _take_chunk(self, deadline_s: float | None) -> tuple[AssignedPartition, Chunk] | None:
        """Return the next chunk; None at the end of the stream."""
        while True:
            if self._has_news:
                self._tell_news()
            with self._changed:
                while not (self._queue or self._is_ended or self._has_news):
                    self._wait(deadline_s)
                if self._is_ended:
                    return None
                if self._has_news:
                    continue
                entry = self._queue.popleft() if self.lease.is_valid else None
                has_room = len(self._queue) == self.max_chunks // 2
            if entry is None:
                self._await_lease(deadline_s)
                continue
            assigned, item = entry
            if has_room:
                self.on_room()
            if isinstance(item, Chunk):
                return assigned, item
            if isinstance(item, BrokerError):
                raise item
            self._restart(assigned, item)

    def _restart(self, assigned: AssignedPartition, position: MessagePosition) -> None:
        self.on_restart(assigned.partition, position.offset)
        assigned.restart_at(*position)

    def _take_restarts(self, assigned: AssignedPartition) -> list[MessagePosition]:
        """Remove a partition's positions from the queue; the caller holds `_changed`."""
        found = [one for one in self._queue if one[0] is assigned]
        restarts = [(one, at) for one, at in found if isinstance(at, MessagePosition)]
        for one in restarts:
            self._queue.remove(one)
        return [at for _, at in restarts]

    def _wait(self, deadline_s: float | None) -> None:
        """Wait for a change; the caller holds `_changed`."""
        timeout_s = None if deadline_s is None else deadline_s - time.monotonic()
        if timeout_s is not None and timeout_s <= 0:
            raise self._timeout()
        self._changed.wait(timeout_s)

    def _await_lease(self, deadline_s: float | None) -> None:
        timeout_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
        if not self.lease.wait(timeout_s):
            raise self._timeout()

    def _timeout(self) -> ConsumerTimeoutError:
        return ConsumerTimeoutError(f"nothing came to stream {self.name} in {self.timeout_s:g}s")
