"""Reads topics in an event loop, from a start to a stop: messages, or batches of them."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Collection, Generator, Iterator
from contextlib import suppress
from itertools import compress

from broker.aio.access import TURN_MESSAGES, AsyncAccess, OneTask, polled
from broker.aio.cluster_reader import AsyncClusterReader
from broker.api.errors import Closed, Error, translated
from broker.api.reader import one_of, poll_times, ranges_of, reading_of
from broker.api.values import Batch, PartitionLike, Place, Start, Stop, Timeout, cut_to
from broker.consumer.arrivals import Arrivals
from broker.consumer.partition_reader import PartitionReader, naming_partition
from broker.protocol.codec import Fault, Message, decode_messages, scan
from broker.protocol.payload_filter import PayloadFilter
from broker.topic import ReadRange, TopicPartition


class AsyncReader(AsyncIterator[Message]):
    """The messages of some partitions, from a start to a stop; made by `AsyncClient.read`.

    It begins by `async for`, `async with` or `await`, which raise what `Client.read` raises. It is
    as `Reader` otherwise: for one task at a time (`RuntimeError` for a second one), and `close`,
    by any task, ends the iteration. A task that is cancelled while it waits for a message loses
    none: the iteration can be taken up again.
    """

    def __init__(
        self,
        access: AsyncAccess,
        topic: str | re.Pattern[str],
        partition: PartitionLike | Collection[PartitionLike] | None,
        start: Start,
        stop: Stop,
        *,
        payload_filter: PayloadFilter | None,
        limit: int | None,
        idle_s: float | None,
        read_from: str,
        allow_missing: bool,
        timeout: Timeout,
    ) -> None:
        self.positions: dict[TopicPartition, int] = {}
        """The offset in each partition up to which chunks were taken for the iteration."""
        self.ends: dict[TopicPartition, int] = {}
        """The offset in each partition at which the iteration ends; none for a stop of None."""
        self._access = access
        self._what = topic, partition, start, stop
        self._filter = payload_filter
        self._is_wanted = None if payload_filter is None else payload_filter.compile()
        self._limit = limit
        self._idle_s = idle_s
        self._read_from = read_from
        self._allow_missing = allow_missing
        self._timeout = timeout
        self._beginning: asyncio.Task[None] | None = None
        self._source: AsyncClusterReader | None = None
        self._is_closed = False
        self._why_closed: Error | None = None  # None if it is at its end
        self._one_task = OneTask("reader")
        self._readers: list[PartitionReader] = []  # that have data which is not decoded
        self._fault: tuple[PartitionReader, Fault] | None = None  # behind what is in hand
        self._in_hand: list[Message] = []
        self._turn_end = 0  # in `_in_hand`, of the messages in `_left`
        self._left: Iterator[Message] = iter(())

    def __await__(self) -> Generator[object, None, AsyncReader]:
        """Begin, and return the reader."""
        yield from self._open().__await__()
        return self

    async def __aenter__(self) -> AsyncReader:
        await self._open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def __del__(self) -> None:
        source = getattr(self, "_source", None)
        if source is not None and not self._is_closed:
            with suppress(RuntimeError):  # the loop is closed
                self._access.loop.call_soon_threadsafe(source.end)

    async def _open(self) -> None:
        with self._one_task:
            await self._begun()
            if self._is_closed:  # meanwhile
                await self._end(self._why_closed)

    async def _begun(self) -> None:
        """Wait until it has begun; if this is cancelled it continues to do so."""
        if self._source is None:
            self._beginning = self._beginning or asyncio.create_task(self._begin())
            try:
                await asyncio.shield(self._beginning)
            finally:
                if self._beginning.done():
                    self._beginning = None

    async def _begin(self) -> None:
        self._access.check()
        if self._is_closed:
            raise Closed("the reader is closed")
        access = self._access
        timeout_s = access.seconds(self._timeout)
        response_s, max_wait_ms = poll_times(timeout_s, self._idle_s)
        leader_wait_s = math.inf if timeout_s is None else timeout_s
        with translated():
            ranges, arrivals = await access.repeated(self._timeout, self._reading)
            source = AsyncClusterReader(
                access,
                ranges,
                payload_filter=self._filter,
                max_wait_ms=max_wait_ms,
                read_from=self._read_from,
                response_s=response_s,
                leader_wait_s=leader_wait_s if access.may_retry else 0.0,
                arrivals=arrivals,
            )
            await source.open()
        self.positions.update((one, range.start.offset) for one, range in ranges.items())
        self.ends.update((one, range.end.offset) for one, range in ranges.items() if range.end)
        self._source = source

    def _reading(self) -> tuple[dict[TopicPartition, ReadRange], Arrivals | None]:
        """Return the range to read of each partition, and what gives later ones; in a thread."""
        access = self._access
        return reading_of(
            access.cluster,
            access.connect_blocking,
            *self._what,
            allow_missing=self._allow_missing,
        )

    def __aiter__(self) -> AsyncReader:
        return self

    async def __anext__(self) -> Message:
        """Return the next message; see the class."""
        while True:
            for message in self._left:
                return message
            if not await self._load():
                raise StopAsyncIteration

    async def poll(self, timeout: float) -> Message | None:
        """Return the next message; None after so many seconds without one, and at the end at once.

        Raises:
            Closed: the reader was closed.
        """
        if self._why_closed is not None:
            raise self._why_closed
        return await polled(self, timeout)

    async def _load(self) -> bool:
        """Take the next messages in hand; return False at the end."""
        with self._one_task:
            if self._turn_end >= len(self._in_hand):
                if (reader := await self._next_data()) is None:
                    await self._end(None)
                    return False
                self._decode(reader)
            start, self._turn_end = self._turn_end, self._turn_end + TURN_MESSAGES
            self._left = iter(self._in_hand[start : self._turn_end])
            if start:
                await asyncio.sleep(0)  # which `poll` may cancel: the messages are in hand
            return True

    def _decode(self, reader: PartitionReader) -> None:
        partition, is_wanted = reader.partition, self._is_wanted
        messages, valid_bytes, fault = decode_messages(
            reader.data, reader.offset, partition.topic, partition
        )
        cut_to(messages, reader.inner, reader.end)
        if is_wanted is not None:
            selected = is_wanted.select([one.value for one in messages])
            messages = list(compress(messages, selected))
        if self._limit is not None:
            del messages[self._limit :]
            self._limit -= len(messages)
        self._take(reader, valid_bytes, fault, len(messages))
        self._in_hand, self._turn_end = messages, 0

    async def next_batch(self) -> Batch | None:
        """Return a whole chunk; None at the end. For `AsyncBatches`."""
        with self._one_task:
            while (reader := await self._next_data()) is not None:
                start, skip, data = reader.offset, reader.inner, reader.data
                found = scan(data)
                self._take(reader, found.valid_bytes, found.fault, found.entry_count)
                if found.valid_bytes:
                    return Batch(
                        reader.partition, start, data[: found.valid_bytes], skip, reader.end
                    )
            await self._end(None)
            return None

    async def _next_data(self) -> PartitionReader | None:
        """Return a partition that has data, None at the end; no data are lost by cancellation."""
        if not self._is_closed:
            await self._begun()
        elif self._why_closed is not None and not isinstance(self._why_closed, Closed):
            raise self._why_closed
        source = self._source
        try:
            with translated():
                self._raise_fault()
                while source is not None and not self._is_closed and self._limit != 0:
                    if self._readers:
                        return self._readers.pop(0)
                    found = await source.poll(self._idle_s)
                    if not found:  # all are read, or it is idle
                        return None
                    self._readers = list(found)
        except Exception as error:
            await self._end(error if isinstance(error, Error) else None)
            raise
        return None

    def _take(
        self, reader: PartitionReader, valid_bytes: int, fault: Fault, message_count: int
    ) -> None:
        reader.take(valid_bytes, message_count)
        self.positions[reader.partition] = reader.offset
        self._fault = reader, fault

    def _raise_fault(self) -> None:
        if self._fault is not None:
            (reader, fault), self._fault = self._fault, None
            if reader.offset == self.positions[reader.partition]:  # else it was sought away
                with naming_partition(reader.partition):
                    reader.take_valid(0, fault)

    async def seek(self, partition: PartitionLike, place: Place) -> None:
        """Continue in one of the partitions elsewhere; what is in hand of it is not given any more.

        Raises:
            ArgumentError: the reader has not exactly one such partition, or `place` is malformed.
            NotABoundary, OffsetOutOfRange: no message is at this offset.
            Closed: the reader was closed, or has ended; after a failure that error again.
        """
        await self._open()
        source = self._source
        if source is None or self._is_closed:
            raise self._why_closed or Closed("the reader has ended")
        chosen = one_of(partition, self.positions)
        access = self._access
        with self._one_task, translated():
            ranges = await access.look_up(
                ranges_of, access.cluster, access.connect_blocking, [chosen], place, None
            )
            await source.seek(chosen, *ranges[chosen].start)
        self.positions[chosen] = ranges[chosen].start.offset
        if self._in_hand and self._in_hand[0].partition == chosen:
            self._drop_in_hand()

    def _drop_in_hand(self) -> None:
        self._in_hand, self._turn_end, self._left = [], 0, iter(())

    async def close(self) -> None:
        """End the iteration and close its connections; by any task."""
        await self._end(Closed("the reader is closed"))

    async def _end(self, why: Error | None) -> None:
        if not self._is_closed or isinstance(why, Closed):
            self._why_closed = why
        self._is_closed = True
        self._drop_in_hand()
        if self._source is not None:
            self._source.end()
            await self._source.ended()


class AsyncBatches(AsyncIterator[Batch]):
    """Whole chunks; with a filter they can hold messages that do not match."""

    def __init__(self, reader: AsyncReader) -> None:
        self._reader = reader

    def __await__(self) -> Generator[object, None, AsyncBatches]:
        """Begin, and return the batches."""
        yield from self._reader.__await__()
        return self

    async def __aenter__(self) -> AsyncBatches:
        await self._reader
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def __aiter__(self) -> AsyncBatches:
        return self

    async def __anext__(self) -> Batch:
        """Return the next batch; see `AsyncReader`."""
        found = await self._reader.next_batch()
        if found is None:
            raise StopAsyncIteration
        return found

    async def close(self) -> None:
        """End the iteration and close its connections; by any task."""
        await self._reader.close()
