"""A member of a consumer group in an event loop.

The member itself is one for threads: the session with ZooKeeper, the assignment of partitions, the
fetchers and the commits. A thread waits for the next chunk and decodes it; whole chunks cross to
the loop, which gives out their messages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from inspect import isawaitable
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from broker.aio.access import AsyncAccess
from broker.aio.loading import TURN_MESSAGES, Loading
from broker.api.errors import translated
from broker.api.group import Group, OnChange
from broker.api.values import UNSET, Timeout
from broker.consumer.committer import AssignedPartition
from broker.consumer.stream import Found
from broker.errors import ConsumerTimeoutError
from broker.protocol.codec import Message, make_message
from broker.topic import MessagePosition, TopicPartition

TURN_S = 0.1
"""How long the thread waits for messages before other calls of the group have their turn."""

AsyncOnChange = Callable[["AsyncGroup", frozenset[TopicPartition]], object]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _in_thread(
    call: Callable[Concatenate[Group, _P], _R],
) -> Callable[Concatenate[AsyncGroup, _P], Coroutine[Any, Any, _R]]:
    """Return a method of `AsyncGroup` that makes a call of `Group` in its thread."""

    @wraps(call)
    async def run(self: AsyncGroup, /, *args: _P.args, **named: _P.kwargs) -> _R:
        member = await self._open()

        def made() -> _R:
            if self._in_hand is not None:  # `Group.commit` counts it as handled
                member._in_hand = self._in_hand
            return call(member, *args, **named)

        if self._is_telling:  # its thread waits for the callback
            return await self._access.in_thread(made)
        return await self._access.loop.run_in_executor(self._thread, made)

    return run


class AsyncGroup(Loading[Group]):
    """The messages of the partitions that a group assigns to this member; `AsyncClient.group`.

    It joins by `async for`, `async with` or `await`, which raise what `Client.group` raises. It is
    as `Group` otherwise: for one task at a time, and `close`, by any task, ends the iteration. A
    task that is cancelled while it waits for a message loses none; one that is cancelled while it
    handles a message has not handled it, unless it asks for the next one.
    """

    _what = "group"
    _closed_text = "the group was left"

    def __init__(
        self,
        access: AsyncAccess,
        join: Callable[..., Group],
        *,
        idle_s: float | None,
        **callbacks: AsyncOnChange | None,
    ) -> None:
        super().__init__(access)
        self._idle_s = idle_s
        self._join = join
        self._callbacks = callbacks
        self._is_telling = False  # a callback runs

    @property
    def member_id(self) -> str:
        """The id of this member in the group; empty before it has joined."""
        return "" if self._source is None else self._source.member_id

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """The partitions assigned to this member now."""
        return frozenset() if self._source is None else self._source.assigned

    async def _made(self) -> Group:
        callbacks = {name: self._in_loop(one) for name, one in self._callbacks.items()}
        return await self._access.in_thread(self._join, **callbacks)

    def _in_loop(self, callback: AsyncOnChange | None) -> OnChange | None:
        """Return a function by which the member's thread has the loop run a callback."""
        if not callable(callback):
            return callback  # None, or refused by `Client.group`

        async def tell(changed: frozenset[TopicPartition]) -> None:
            self._is_telling = True
            try:
                if isawaitable(done := callback(self, changed)):
                    await done
            finally:
                self._is_telling = False

        loop = self._access.loop
        return lambda _, changed: asyncio.run_coroutine_threadsafe(tell(changed), loop).result()

    async def _pause(self) -> None:
        """Give other tasks their turn, and wait for the session with ZooKeeper."""
        lease = None if self._source is None else self._source._stream.lease
        if lease is None or lease.is_valid:
            await asyncio.sleep(0)
        else:
            await self._access.in_thread(lease.wait, TURN_S)

    async def _load(self) -> bool:
        await self._begun()
        since_s = self._access.loop.time()
        while (found := await self._loaded(_next_messages)) is not None:
            for message in found:
                self._left = _in_turns(message, found)
                return True
            if self._idle_s is not None and self._access.loop.time() - since_s >= self._idle_s:
                break
        return False

    commit: Final = _in_thread(Group.commit)
    seek: Final = _in_thread(Group.seek)
    pause: Final = _in_thread(Group.pause)
    resume: Final = _in_thread(Group.resume)
    skip_corrupt: Final = _in_thread(Group.skip_corrupt)

    def end(self) -> None:
        """End the iteration; the member for threads is still to be closed. For `AsyncClient`."""
        super().end()
        self._thread.shutdown(wait=False)

    async def close(self, timeout: Timeout = UNSET) -> None:
        """End the iteration, commit unless that is manual, and leave the group.

        Args:
            timeout: seconds, after which the member is left to expire; by default the client's.

        Raises:
            Error: the commit failed; the group was left nevertheless.
        """
        self.end()
        if self._source is not None:
            await self._access.in_thread(self._source.close, timeout)


def _next_messages(group: Group) -> Iterator[Message | None] | None:
    """Return the messages of the next chunk, none after `TURN_S`; None at the end."""
    try:
        with translated():
            if group._commit == "before":
                return group._next_batch()
            found = group._stream.next_messages()
            return None if found is None else _given_out(group, *found)
    except ConsumerTimeoutError:
        return iter(())


def _given_out(
    group: Group, assigned: AssignedPartition, messages: Iterator[Found]
) -> Iterator[Message | None]:
    """Give the messages of a chunk, each finished when the next is requested; in the loop.

    None while the session with ZooKeeper is not certain to exist.
    """
    partition, is_wanted, lease = assigned.partition, group._is_wanted, group._stream.lease
    topic, inner, now_s = partition.topic, assigned.next_inner, time.monotonic
    uncommitted = group._uncommitted if group._commit == "manual" else {}
    if partition.has_records:
        one: Message
        for one in messages:
            while now_s() >= lease.until_s:
                yield None
            if assigned.is_revoked:
                return
            if is_wanted is None or is_wanted(one.value):
                uncommitted[partition] = assigned
                yield one
            assigned.finished = one.next_offset
        return
    for offset, next_offset, value in messages:
        while now_s() >= lease.until_s:
            yield None
        if assigned.is_revoked:
            return
        place = inner
        if next_offset == offset or inner:
            inner = assigned.next_inner = inner + 1 if next_offset == offset else 0
        message = make_message(topic, partition, offset, next_offset, value, place)
        if is_wanted is None or is_wanted(message.value):
            uncommitted[partition] = assigned
            yield message
        if inner:
            assigned.finish_inner(MessagePosition(offset, inner))
        else:
            assigned.finished = next_offset


def _in_turns(first: Message | None, rest: Iterator[Message | None]) -> Iterator[Message | None]:
    """Give messages, and None after each `TURN_MESSAGES`."""
    yield first
    for number, message in enumerate(rest, 2):
        yield message
        if not number % TURN_MESSAGES:
            yield None
