"""A member of a consumer group, as an iterator of messages."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Literal

from broker import deadlines
from broker.api.errors import Closed, translated
from broker.api.reader import ranges_of
from broker.api.values import (
    UNSET,
    PartitionLike,
    Place,
    Timeout,
    Unset,
    group_of,
    matcher_of,
    number_of,
    seconds_of,
    topic_of,
)
from broker.client.cluster import Connect
from broker.client.registry_cluster import RegistryCluster
from broker.config import ConsumerConfig
from broker.consumer.chunk import GroupMessage, InnerMessage
from broker.consumer.connector import ConsumerConnector
from broker.consumer.membership import Whitelist
from broker.consumer.offset_store import OffsetStore
from broker.consumer.stream import ConsumerStream
from broker.errors import ArgumentError, ConsumerTimeoutError
from broker.protocol.codec import Message, decode_messages
from broker.protocol.payload_filter import PayloadFilter
from broker.topic import TopicPartition
from broker.zk.registry import Registry

Commit = Literal["after", "before", "manual"]
"""When positions of a group are written: after messages were handled, before, or by `commit`."""


class Group(Iterator[Message]):
    """The messages of the partitions that a group assigns to this member; made by `Client.group`.

    The group spreads the partitions of its topics over its members, and continues after the last
    committed position, whichever member read before. With `commit="after"` a message counts as
    handled when the next one is asked for, so none is lost by a crash and a few may come twice; a
    message in hand when the iteration is left by an exception or `break` does not count. With
    `"before"` a few may be lost and none comes twice. It is for one thread at a time; `close`, from
    any thread, ends the iteration.

    Errors while iterating: `CorruptMessage`: the partition is blocked until `skip_corrupt` or
    `seek`, iterate again for the others; `OffsetOutOfRange`.
    """

    def __init__(
        self,
        name: str,
        topics: str | list[str] | re.Pattern[str],
        *,
        registry: Registry,
        connect: Connect,
        start: Literal["earliest", "latest"],
        commit: Commit,
        commit_every_s: float,
        offsets: OffsetStore | None,
        payload_filter: PayloadFilter | None,
        idle_s: float | None,
        timeout_s: float | None,
        on_close: Callable[[Group], object],
    ) -> None:
        reset = {"earliest": "smallest", "latest": "largest"}.get(start)
        if reset is None:
            raise ArgumentError(f"start is 'earliest' or 'latest', not {start!r}")
        if commit not in ("after", "before", "manual"):
            raise ArgumentError(f"commit is 'after', 'before' or 'manual', not {commit!r}")
        number_of("commit_every", commit_every_s, 0)
        if idle_s is not None:
            number_of("idle", idle_s, 0)
        group_of(name)
        if isinstance(topics, re.Pattern):
            if re.compile(topics.pattern).flags != topics.flags:  # others join by the text alone
                raise ArgumentError(
                    "flags of a group's pattern must be in its text, such as '(?i)orders'"
                )
        else:
            topics = [topic_of(one) for one in ([topics] if isinstance(topics, str) else topics)]
        self._commit = commit
        self._timeout_s = timeout_s  # of calls without one
        self._registry = registry
        self._connect = connect
        self._on_close = on_close
        self._is_closed = False
        config = ConsumerConfig.from_properties(
            {
                "groupid": name,
                "zk.connect": registry.session.connect,
                "autooffset.reset": reset,
                "autocommit.enable": "true" if commit == "after" else "false",
                "autocommit.interval.ms": str(max(1, round(1000 * commit_every_s))),
                "consumer.timeout.ms": "-1" if idle_s is None else str(max(1, int(1000 * idle_s))),
            }
        )
        self._connector = ConsumerConnector(
            config,
            offsets=offsets,
            registry=registry,
            connect=connect,
            payload_filter=payload_filter,
        )
        try:
            self._stream = self._subscribe(topics)
        except BaseException:
            self._connector.shutdown()
            raise
        self._payload_filter = payload_filter
        self._in_hand: GroupMessage | None = None
        self._committed: deque[Message] = deque()  # of one chunk, and not given out yet
        self._messages = self._iterate()

    def _subscribe(self, topics: list[str] | re.Pattern[str]) -> ConsumerStream:
        if isinstance(topics, re.Pattern):
            (stream,) = self._connector.create_message_streams_by_filter(Whitelist(topics.pattern))
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

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Message]:
        """Return the messages; see the class."""
        self._messages = self._iterate()
        return self._messages

    def __next__(self) -> Message:
        """Return the next message; see the class."""
        return next(self._messages)

    def _iterate(self) -> Iterator[Message]:
        if self._is_closed:
            return
        with translated(), suppress(ConsumerTimeoutError):
            yield from self._committed_first() if self._commit == "before" else self._handled()

    def _handled(self) -> Iterator[Message]:
        for message in self._stream:
            self._in_hand = message
            inner = message.inner if isinstance(message, InnerMessage) else 0
            yield Message(*message, inner)

    def _committed_first(self) -> Iterator[Message]:
        yield from self._left_of_chunk()
        for _ in self._committed_chunks():
            yield from self._left_of_chunk()

    def _committed_chunks(self) -> Iterator[None]:
        """Commit each chunk, and then have its messages in `_committed`."""
        is_wanted = None if self._payload_filter is None else self._payload_filter.compile()
        for assigned in self._stream.chunks():
            skip = assigned.inner
            partition = assigned.partition
            messages, valid_bytes, fault = decode_messages(
                assigned.data, assigned.offset, partition.topic, partition
            )
            assigned.take(valid_bytes)
            if assigned.finish(assigned.offset):
                self._connector.commit_offsets()
                wanted = messages[skip:]
                self._committed.extend(
                    one for one in wanted if is_wanted is None or is_wanted(one.value)
                )
                yield
            assigned.take_valid(0, fault)

    def _left_of_chunk(self) -> Iterator[Message]:
        while self._committed:
            yield self._committed.popleft()

    def commit(self) -> None:
        """Commit what was handled, with the message in hand; for `commit="manual"`.

        Raises:
            ArgumentError: positions are committed otherwise.
            Error: the store of the offsets failed.
            Closed: the group was left; its positions can be of another member now.
        """
        self._raise_if_closed()
        if self._commit != "manual":
            raise ArgumentError(f"this group commits by itself: commit='{self._commit}'")
        with translated():
            if self._in_hand is not None:
                self._stream.finish(self._in_hand)
            self._connector.commit_offsets()

    def seek(self, partition: PartitionLike, place: Place) -> None:
        """Continue in an assigned partition elsewhere; all before counts as handled.

        Raises:
            ArgumentError: not exactly one such partition is assigned, or `place` is malformed.
            NotABoundary, OffsetOutOfRange: no message is at this offset.
            Closed: the group was left.
        """
        self._raise_if_closed()
        chosen = self._assigned_one(partition)
        with translated():
            cluster = RegistryCluster(self._registry)
            ranges = ranges_of(cluster, self._connect, [chosen], place, None)
            self._stream.seek(chosen, ranges[chosen].start.offset)
        if self._committed and self._committed[0].partition == chosen:
            self._committed.clear()

    def skip_corrupt(self, partition: PartitionLike) -> int:
        """Skip the corrupt message that blocks a partition; return where it continues."""
        self._raise_if_closed()
        with translated():
            return self._stream.skip_corrupt(self._assigned_one(partition))

    def _assigned_one(self, partition: PartitionLike) -> TopicPartition:
        found = list(filter(matcher_of(partition), self.assigned))
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

        Args:
            timeout: seconds, after which the member is left to expire; by default the client's.

        Raises:
            Error: the commit failed; the group was left nevertheless.
        """
        seconds = seconds_of(self._timeout_s if isinstance(timeout, Unset) else timeout)
        if not self._is_closed:
            self._is_closed = True
            self._on_close(self)
            with translated(), deadlines.Limit(seconds):
                self._connector.shutdown()
