"""A member of a consumer group, as an iterator of messages."""

from __future__ import annotations

import inspect
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from broker import deadlines, errors
from broker.api import values
from broker.api.errors import Closed, Conflict, translated
from broker.api.group_run import ChunkWork, Handler, RetryPolicy, Workers, retrying
from broker.api.reader import ranges_of
from broker.api.values import UNSET, PartitionLike, Place, Start, Timeout, Unset
from broker.client.cluster import Connect
from broker.client.counts import ClientCounts
from broker.client.registry_cluster import RegistryCluster
from broker.closing import SelfClosing
from broker.consumer.chunk import GroupMessage, InnerMessage, RecordMessage
from broker.consumer.committer import AheadCommits, AssignedPartition
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.consumer.membership import Whitelist
from broker.consumer.offset_store import OffsetStore, position_after
from broker.consumer.stream import Assigned, ConsumerStream, Found
from broker.errors import ArgumentError, ConsumerTimeoutError
from broker.patterns import Pattern
from broker.positions import Absolute, Mark, Position
from broker.producer import unclosed
from broker.protocol.client_requests import PayloadFilter
from broker.protocol.codec import Message, decode_messages, make_message
from broker.protocol.read_message import messages_of_records
from broker.topic import TopicPartition
from broker.zk.registry import Registry

OnChange = Callable[["Group", frozenset[TopicPartition]], object]
Commit = Literal["after", "before", "manual"]
"""When positions of a group are written: after messages were handled, before, or by `commit`."""

_LOOK_S = 0.1  # between two looks of a run at what its threads and its store do
_CLOSE_POLL_S = 0.01


@dataclass(frozen=True, kw_only=True)
class GroupSettings:
    """How a member consumes: what `Client.group` was asked for."""

    start: Start
    commit: Commit
    commit_every_s: float
    offsets: OffsetStore | None
    payload_filter: PayloadFilter | None
    idle_s: float | None
    on_assigned: OnChange | None
    on_revoked: OnChange | None
    timeout_s: float | None  # of calls without one

    def __post_init__(self) -> None:
        if self.commit not in ("after", "before", "manual"):
            raise ArgumentError(f"commit is 'after', 'before' or 'manual', not {self.commit!r}")
        values.number_of("commit_every", self.commit_every_s, 0)
        if self.idle_s is not None:
            values.number_of("idle", self.idle_s, 0)


class Group(Iterator[Message], SelfClosing):
    """The messages of the partitions that a group assigns to this member; made by `Client.group`.

    The group spreads the partitions of its topics over its members, and continues after the last
    committed position, whichever member read before. With `commit="after"` a message counts as
    handled when the next one is asked for, so none is lost by a crash and a few may come twice; a
    message in hand when the iteration is left by an exception or `break` does not count. With
    `"before"` it counts when it is given, and none comes twice: positions are committed in front,
    by as many messages as are handled in 10 ms, at least 1 and at most 1,000, and back when the
    partition is revoked or the group left; so many can be lost if the process is killed. The
    messages of a compressed set are committed together. It is for one thread at a time; `close`,
    from any thread, ends the iteration.

    Errors while iterating: `CorruptMessage`: the partition is blocked until `skip_corrupt` or
    `seek`, iterate again for the others; `OffsetOutOfRange`; `RuntimeError` for a second thread.
    """

    __module__ = "pylogctl"

    def __init__(
        self,
        name: str,
        topics: str | list[str] | Pattern,
        settings: GroupSettings,
        *,
        registry: Registry,
        connect: Connect,
        counts: ClientCounts,
        on_close: Callable[[Group], object],
    ) -> None:
        start_of = values.positions_of(settings.start, time.time_ns() // 1_000_000)
        commit, idle_s, payload_filter = settings.commit, settings.idle_s, settings.payload_filter
        values.group_of(name)
        if isinstance(topics, Pattern):
            if topics.ignore_case:  # others join by the text alone
                raise ArgumentError(
                    "flags of a group's pattern must be in its text, such as '(?i)orders'"
                )
        else:
            topics = [
                values.topic_of(one) for one in ([topics] if isinstance(topics, str) else topics)
            ]
        self._commit = commit
        self._timeout_s = settings.timeout_s
        self._registry = registry
        self._connect = connect
        self._on_close = on_close
        config = ConsumerConfig(
            group=name,
            zookeeper=registry.session.connect,
            out_of_range_reset="smallest",
            auto_commit=commit == "after",
            auto_commit_interval_ms=max(1, round(1000 * settings.commit_every_s)),
            consumer_timeout_ms=-1 if idle_s is None else max(1, int(1000 * idle_s)),
        )
        self._connector = ConsumerConnector(
            config,
            offsets=settings.offsets,
            registry=registry,
            connect=connect,
            payload_filter=payload_filter,
            counts=counts,
            commits_ahead=commit == "before",
            start_of=lambda one: _whole_message(start_of(one) or Mark.LATEST),
        )
        try:
            self._stream = self._subscribe(topics)
        except BaseException:
            self._connector.shutdown()
            raise
        self._is_wanted = None if payload_filter is None else payload_filter.compile()
        self._in_hand: GroupMessage | Message | None = None
        self._uncommitted: dict[TopicPartition, AssignedPartition] = {}  # if commits are manual
        self._ahead = AheadCommits(self._connector.commit_ahead)
        self._batch: Iterator[Message] = iter(())  # committed, if positions are committed before
        self._seek_counts: dict[TopicPartition, int] = {}
        self._on_assigned, self._on_revoked = settings.on_assigned, settings.on_revoked
        if commit == "manual" or self._on_assigned is not None or self._on_revoked is not None:
            tell = weakref.WeakMethod(self._tell_changes)  # threads know the stream

            def tell_changes(revoked: Assigned, gained: Assigned) -> None:
                if (found := tell()) is not None:
                    found(revoked, gained)

            self._stream.watch(tell_changes)
        self._user: threading.Thread | None = None  # iterates, or did so last
        self._is_inside = False  # it waits for the next message
        self._is_out = False  # it has a message in hand
        self._is_polling = False
        self._workers: Workers | None = None
        self._closing = threading.Event()
        self._is_closed = False
        self._messages = self._iterate()

    def _subscribe(self, topics: list[str] | Pattern) -> ConsumerStream:
        if isinstance(topics, Pattern):
            (stream,) = self._connector.create_message_streams_by_filter(Whitelist(topics.text))
            return stream
        return self._connector.create_shared_stream(topics)

    @property
    def member_id(self) -> str:
        """The id of this member in the group."""
        return self._connector.consumer_id

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """The partitions assigned to this member now."""
        return frozenset(self._stream.partitions)

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True):
            self._user = None  # nobody handles a message
            unclosed.later(self.close)
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)

    def __iter__(self) -> Iterator[Message]:
        """Return the messages; see the class."""
        self._messages = self._iterate()
        return self._messages

    def __next__(self) -> Message:
        """Return the next message; see the class."""
        self._raise_if_in_use()  # a generator that runs would raise `ValueError`
        return next(self._messages)

    def poll(self, timeout: float) -> Message | None:
        """Return the next message; None after so many seconds without one.

        Raises:
            Closed: the group was left.
        """
        self._raise_if_closed()
        self._raise_if_in_use()
        values.number_of("timeout", timeout, 0)
        idle_s, self._is_polling = self._stream.timeout_s, True
        self._stream.timeout_s = min(timeout, idle_s or 1e9)  # locks refuse some ten times as much
        try:
            is_over = inspect.getgeneratorstate(self._messages) == inspect.GEN_CLOSED
            return next(iter(self) if is_over else self._messages, None)
        finally:
            self._stream.timeout_s, self._is_polling = idle_s, False

    def _iterate(self) -> Generator[Message]:
        if self._is_closed:
            return
        self._user = threading.current_thread()
        begin = self._committed_first if self._commit == "before" else self._handled
        with translated():
            source = begin()
            while True:
                self._raise_if_in_use()
                self._is_inside = True
                try:
                    message = next(source, None)
                    is_over = message is None
                except ConsumerTimeoutError:
                    message, is_over, source = None, not self._is_polling, begin()
                finally:
                    self._is_inside = self._is_out = False
                if is_over:
                    return
                self._is_out = message is not None
                yield message  # type: ignore[misc]  # None for `poll` alone

    def _raise_if_in_use(self) -> None:
        if self._is_inside:
            raise RuntimeError("this group is being iterated at this moment")

    def _handled(self) -> Iterator[Message]:
        is_manual = self._commit == "manual"
        for message in self._stream:
            self._in_hand = message
            if is_manual and (assigned := self._stream.current) is not None:
                self._uncommitted[assigned.partition] = assigned
            if isinstance(message, RecordMessage):
                yield message.message
            else:
                inner = message.inner if isinstance(message, InnerMessage) else 0
                yield make_message(*message, inner)

    def _committed_first(self) -> Iterator[Message]:
        while True:
            yield from iter(lambda: next(self._batch, None), None)
            if (batch := self._next_batch()) is None:
                return
            self._batch = batch

    def _next_batch(self) -> Iterator[Message] | None:
        """Commit the next messages of a partition, and return them; None at the end.

        Each is handed out, and finished, as it is taken from the iterator.
        """
        found = self._stream.next_messages()
        if found is None:
            return None
        assigned, messages = found
        bounds = (
            ((one.offset, one.next_offset) for one in copy(messages))
            if assigned.partition.has_records
            else ((offset, next_offset) for offset, next_offset, _ in copy(messages))
        )
        count = self._ahead.commit(assigned, bounds)
        if not count:
            self._stream.rewind_current()
        return self._handed_out(assigned, islice(messages, count))

    def _handed_out(
        self, assigned: AssignedPartition, messages: Iterator[Found]
    ) -> Iterator[Message]:
        partition, is_wanted, inner = assigned.partition, self._is_wanted, assigned.next_inner
        if partition.has_records:
            message: Message
            for message in messages:
                if not self._stream.hand_out(assigned, position_after(message)):
                    return
                if is_wanted is None or is_wanted(message.value):
                    yield message
            return
        for offset, next_offset, value in messages:
            message = make_message(partition.topic, partition, offset, next_offset, value, inner)
            if next_offset == offset or inner:
                inner = assigned.next_inner = inner + 1 if next_offset == offset else 0
            if not self._stream.hand_out(assigned, position_after(message)):
                return
            if is_wanted is None or is_wanted(message.value):
                yield message

    def _take(
        self, assigned: AssignedPartition
    ) -> tuple[list[Message], errors.InvalidMessageError | None]:
        """Move past the data of a chunk; return its messages, and why the next one is corrupt."""
        skip, partition = assigned.inner, assigned.partition
        if partition.has_records:
            try:
                records = assigned.take_records()
            except errors.InvalidMessageError as error:
                assigned.is_blocked = True
                return [], error
            return messages_of_records(Message, partition, records, assigned.offset), None
        messages, valid_bytes, fault = decode_messages(
            assigned.data, assigned.offset, partition.topic, partition
        )
        del messages[:skip]
        try:
            assigned.take_valid(valid_bytes, fault, len(messages))
        except errors.InvalidMessageError as error:
            assigned.is_blocked = True
            return messages, error
        return messages, None

    def run(self, handler: Handler, *, parallel: int = 1, retry: RetryPolicy | None = None) -> None:
        """Hand all messages to a function, until the group is closed or `idle` is over.

        A message is done when the function returns. Those of a partition come in order, one at a
        time.

        Args:
            handler: called with each message. If it raises an exception that ends the run, and the
                message is not done; with `retry` the message is kept and tried again later.
            parallel: threads that call it, for different partitions; with 1 this thread does.
            retry: where messages are kept that fail, and when they are tried again.

        Raises:
            ArgumentError: the group commits by hand, which this does not.
            CorruptMessage, OffsetOutOfRange: as while iterating; what came before it is handled.
            RetryStoreError: a message that failed could not be kept; it is not done.
        """
        self._raise_if_closed()
        if not callable(handler):
            raise TypeError(f"give a function of a message, not {type(handler).__name__}")
        values.number_of("parallel", parallel, 1)
        if retry is not None and not isinstance(retry, RetryPolicy):
            raise TypeError(f"give retry as a RetryPolicy, not {type(retry).__name__}")
        if self._commit == "manual":
            raise ArgumentError("`run` commits by itself: commit='after' or 'before'")
        self._raise_if_in_use()
        with translated(), ExitStack() as stack:
            self._user, self._is_inside, self._is_out = threading.current_thread(), True, True
            stack.callback(self._end_run, self._stream.timeout_s)
            handle: Handler = handler
            work: Callable[[], object] = _no_work
            if retry is not None:
                keeping = retrying(handler, retry, self._closing.wait)
                handle, work = stack.enter_context(keeping)
            if (is_wanted := self._is_wanted) is not None:
                handle_wanted = handle
                handle = lambda one: is_wanted(one.value) and handle_wanted(one)  # noqa: E731
            ahead = self._ahead if self._commit == "before" else None
            workers = Workers(handle, self._may_handle, self._stream.hand_out, ahead, parallel)
            self._workers = stack.enter_context(workers)
            self._hand_out(self._workers, work)

    def _end_run(self, timeout_s: float | None) -> None:
        self._stream.timeout_s = timeout_s
        self._stream.rewind()
        self._workers = None
        self._is_inside = self._is_out = False

    def _hand_out(self, workers: Workers, work: Callable[[], object]) -> None:
        idle_s, self._stream.timeout_s = self._stream.timeout_s, _LOOK_S
        chunks = self._stream.chunks()
        quiet_since_s = time.monotonic()
        while True:
            work()
            workers.raise_failure()
            try:
                assigned = next(chunks, None)
            except ConsumerTimeoutError:
                chunks = self._stream.chunks()
                is_idle = idle_s is not None and time.monotonic() - quiet_since_s >= idle_s
                if is_idle and workers.is_idle:
                    return
                continue
            if assigned is None:
                workers.stop()
                return
            seek_count = self._seek_counts.get(assigned.partition, 0)
            while True:
                messages, fault = self._take(assigned)
                workers.add(ChunkWork(assigned, messages, assigned.offset, seek_count))
                if fault is not None:
                    raise fault
                if not assigned.has_batches:
                    break
            quiet_since_s = time.monotonic()

    def _may_handle(self, work: ChunkWork) -> bool:
        """Return whether work is still of this member, once that is certain."""
        assigned, partition = work.assigned, work.assigned.partition
        while not assigned.is_revoked:
            if self._seek_counts.get(partition, 0) != work.seek_count:
                return False
            if self._connector.is_certain and not assigned.is_paused:
                return True
            if self._closing.wait(_LOOK_S):
                return False
        return False

    def commit(self, message: Message | None = None) -> None:
        """Commit what was handled, with the message in hand; for `commit="manual"`.

        Args:
            message: commit the position behind this one, in its partition alone.

        Raises:
            ArgumentError: positions are committed otherwise.
            Conflict: a partition went without `on_revoked`, which see, or with the session, and
                another member reads its messages again; the positions of the others are committed.
            Error: the store of the offsets failed.
            Closed: the group was left; its positions can be of another member now.
        """
        self._raise_if_closed()
        if self._commit != "manual":
            raise ArgumentError(f"this group commits by itself: commit='{self._commit}'")
        with translated(), deadlines.Limit(self._timeout_s):
            lost = self._commit_all() if message is None else self._commit_behind(message)
        if lost:
            names = ", ".join(map(str, sorted(lost)))
            raise Conflict(f"{names} is not assigned to this member any more", "PARTITION_LOST")

    def _commit_all(self) -> set[TopicPartition]:
        if self._in_hand is not None:
            self._stream.finish(self._in_hand)
        begun = self._uncommitted.copy()  # a task of asyncio may get messages meanwhile
        lost = {one for one, assigned in begun.items() if assigned.is_released}
        lost |= self._connector.commit_offsets()
        self._uncommitted.clear()
        return lost

    def _commit_behind(self, message: Message) -> set[TopicPartition]:
        if not isinstance(message, Message):
            raise TypeError(f"give a message of this group, not {type(message).__name__}")
        partition = message.partition
        assigned = self._uncommitted.get(partition) or self._connector.assigned(partition)
        if assigned is None or assigned.is_released:
            self._uncommitted.pop(partition, None)
            return {partition}
        return (
            set() if self._connector.commit_at(assigned, position_after(message)) else {partition}
        )

    def seek(self, partition: PartitionLike, place: Place) -> None:
        """Continue in an assigned partition elsewhere; all before counts as handled.

        Raises:
            ArgumentError: not exactly one such partition is assigned, or `place` is malformed.
            NotABoundary, OffsetOutOfRange: no message is at this offset.
            Closed: the group was left.
        """
        self._raise_if_closed()
        chosen = self._assigned_one(partition)
        with translated(), deadlines.Limit(self._timeout_s):
            cluster = RegistryCluster(self._registry, self._connect)
            ranges = ranges_of(cluster, self._connect, [chosen], place, None)
            self._seek_counts[chosen] = self._seek_counts.get(chosen, 0) + 1
            self._stream.seek(chosen, *ranges[chosen].start)

    def pause(self, *partitions: PartitionLike) -> None:
        """Give no messages of some assigned partitions, or of all, until `resume`.

        Another assignment of a partition starts without a pause.

        Raises:
            ArgumentError: no such partition is assigned.
            Closed: the group was left.
        """
        for one in self._assigned_among(partitions):
            self._stream.pause(one)

    def resume(self, *partitions: PartitionLike) -> None:
        """Give the messages of paused partitions, or of all, again; errors are those of `pause`."""
        for one in self._assigned_among(partitions):
            self._stream.resume(one)

    def skip_corrupt(self, partition: PartitionLike) -> int:
        """Skip the corrupt message that blocks a partition; return where it continues."""
        self._raise_if_closed()
        with translated(), deadlines.Limit(self._timeout_s):
            return self._stream.skip_corrupt(self._assigned_one(partition))

    def _assigned_among(self, partitions: Sequence[PartitionLike]) -> list[TopicPartition]:
        self._raise_if_closed()
        there = self._stream.partitions
        for given in partitions:
            if not any(map(values.matcher_of(given), there)):
                shown = ", ".join(map(str, there)) or "none"
                raise ArgumentError(f"{given!r} is no assigned partition: {shown}")
        matchers = [values.matcher_of(given) for given in partitions]
        return [one for one in there if not matchers or any(fits(one) for fits in matchers)]

    def _tell_changes(self, revoked: Assigned, gained: Assigned) -> None:
        """Call `on_revoked` and `on_assigned`, between two messages."""
        if self._workers is not None:
            self._workers.await_end(revoked.values())
        in_time = [partition for partition, one in revoked.items() if not one.is_released]
        if revoked and self._on_revoked is not None:
            self._on_revoked(self, frozenset(revoked))
        for partition in in_time:  # it could be committed
            self._uncommitted.pop(partition, None)
        if gained and self._on_assigned is not None:
            self._on_assigned(self, frozenset(gained))

    def _assigned_one(self, partition: PartitionLike) -> TopicPartition:
        found = list(filter(values.matcher_of(partition), self.assigned))
        if len(found) != 1:
            shown = ", ".join(map(str, sorted(found or self.assigned))) or "none"
            raise ArgumentError(f"{partition!r} is not one assigned partition: {shown}")
        return found[0]

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise Closed("the group was left")

    def _abandon(self) -> None:
        """End the iteration; see `Client`."""
        self._is_closed = True

    def close(self, timeout: Timeout = UNSET) -> None:
        """End the iteration, commit unless that is manual, and leave the group.

        From another thread than the one that iterates, this first waits until that has handled the
        message in hand.

        Args:
            timeout: seconds, after which the member is left to expire; by default the client's.

        Raises:
            Error: the commit failed; the group was left nevertheless.
        """
        seconds = values.seconds_of(self._timeout_s if isinstance(timeout, Unset) else timeout)
        if not self._is_closed:
            self._is_closed = True
            self._closing.set()
            try:
                with translated(), deadlines.Limit(seconds):
                    self._stream.end()
                    self._await_handled()
                    self._connector.shutdown()
            finally:
                self._on_close(self)

    def _await_handled(self) -> None:
        """Wait until another thread that iterates has handled what it has in hand."""
        user, workers = self._user, self._workers
        own = threading.current_thread()
        if user is None or user is own or (workers is not None and own in workers.threads):
            return
        least_s = deadlines.left_s(threading.TIMEOUT_MAX) / 2  # for the commit
        while self._is_out and user.is_alive() and deadlines.left_s() > least_s:
            time.sleep(_CLOSE_POLL_S)


def _no_work() -> None:
    """Try no message again."""


def _whole_message(start: Position) -> Position:
    """Return a start, which for an offset inside a message is the next one."""
    return Absolute(start.position, nearest=True) if isinstance(start, Absolute) else start
