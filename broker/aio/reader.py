"""Reads topics in an event loop, from a start to a stop: messages, or batches of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from queue import Empty
from typing import TypeVar

from broker.aio.access import AsyncAccess, Opened
from broker.aio.loading import TURN_MESSAGES, Loading, take_error
from broker.api.errors import Closed
from broker.api.reader import Reader
from broker.api.values import Batch, PartitionLike, Place
from broker.protocol.codec import Message
from broker.topic import TopicPartition

_CLOSE_S = 1.0  # for the thread of a reader, which may be asking brokers

_R = TypeVar("_R")


class AsyncReader(Loading[Reader]):
    """The messages of some partitions, from a start to a stop; made by `AsyncClient.read`.

    It begins by `async for`, `async with` or `await`, which raise what `Client.read` raises. It is
    as `Reader` otherwise: for one task at a time (`RuntimeError` for a second one), and `close`,
    by any task, ends the iteration. A task that is cancelled while it waits for a message loses
    none: the iteration can be taken up again.
    """

    _what = "reader"
    _closed_text = "the reader is closed"

    def __init__(self, access: AsyncAccess, make: Callable[[], Reader]) -> None:
        super().__init__(access)
        self._make = make
        self._closing: asyncio.Future[None] | None = None

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset in each partition up to which chunks were taken for the iteration."""
        return {} if self._source is None else self._source.positions

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """The offset in each partition at which the iteration ends; none for a stop of None."""
        return {} if self._source is None else self._source.ends

    async def _made(self) -> Reader:
        reader = await self._in_thread(self._make)
        reader._source.in_turns = True
        return reader

    async def _in_thread(self, call: Callable[[], _R]) -> _R:
        return await self._access.loop.run_in_executor(self._thread, call)

    async def _load(self) -> bool:
        failure = None if self._source is None else self._source._why_closed
        if failure is not None and not isinstance(failure, Closed):
            raise failure  # again, without the thread: `poll` of 0 s does not wait for it
        messages = await self._loaded(_next_messages)
        self._left = iter(messages or ())
        return messages is not None

    async def next_batch(self) -> Batch | None:
        """Return a whole chunk; None at the end. For `AsyncBatches`."""
        return await self._loaded(_next_batch)

    async def seek(self, partition: PartitionLike, place: Place) -> None:
        """Continue in one of the partitions elsewhere; what is in hand of it is not given any more.

        Raises:
            ArgumentError: the reader has not exactly one such partition, or `place` is malformed.
            NotABoundary, OffsetOutOfRange: no message is at this offset.
            Closed: the reader was closed, or has ended; after a failure that error again.
        """
        reader = await self._open()
        with self._alone():
            await self._in_thread(lambda: reader.seek(partition, place))

    async def close(self) -> None:
        """End the iteration and close its connections; by any task."""
        self.end()
        if self._beginning is None:  # else what it opens is closed by it
            self._end_thread()
        if self._closing is not None:
            await asyncio.wait([self._closing], timeout=_CLOSE_S)

    def _end_thread(self) -> None:
        """Have the thread close the source, once, and end."""
        reader = self._source
        if reader is not None and self._closing is None:
            reader._source.interrupt()
            self._closing = self._access.loop.run_in_executor(self._thread, reader.close)
            self._closing.add_done_callback(take_error)
        self._thread.shutdown(wait=False)

    def __del__(self) -> None:
        reader = self._source
        if (
            reader is not None and self._closing is None
        ):  # closed by the loop's thread, it may block
            reader._source.interrupt()
            with suppress(RuntimeError):  # at the end of the interpreter
                self._thread.submit(reader.close)
            self._thread.shutdown(wait=False)


def _next_messages(reader: Reader) -> list[Message | None] | None:
    """Return the messages of the next chunk, with None where other tasks have their turn.

    None at the end. `seek` empties the list.
    """
    try:
        if not reader._load():
            return None
    except Empty:
        return []
    messages: list[Message | None] = reader._in_hand  # type: ignore[assignment]  # not used further there
    for place in range(TURN_MESSAGES * (len(messages) // TURN_MESSAGES), 0, -TURN_MESSAGES):
        messages.insert(place, None)
    return messages


def _next_batch(reader: Reader) -> Batch | tuple[()] | None:
    try:
        return reader._next_batch()
    except Empty:
        return ()


class AsyncBatches(Opened, AsyncIterator[Batch]):
    """Whole chunks; with a filter they can hold messages that do not match."""

    def __init__(self, reader: AsyncReader) -> None:
        self._reader = reader

    async def _open(self) -> None:
        await self._reader

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def __anext__(self) -> Batch:
        """Return the next batch; see `AsyncReader`."""
        found = await self._reader.next_batch()
        if found is None:
            raise StopAsyncIteration
        return found

    async def close(self) -> None:
        """End the iteration and close its connections; by any task."""
        await self._reader.close()
