"""Reads partitions of a cluster in an event loop: `consumer/cluster_reader.py` for tasks.

A task for each broker polls it, and puts chunks into a bounded queue. One request is in flight
while the queue has no room, so that is what a slow consumer holds.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from broker import deadlines, errors
from broker.aio.access import AsyncAccess
from broker.aio.connection import AsyncConnection
from broker.client import backoff
from broker.client.cluster import BRIEFLY_S, Cluster, Patience, led_elsewhere
from broker.client.read_replicas import LEADER, ReadReplicas
from broker.consumer.chunk import Chunk
from broker.consumer.cluster_reader import (
    LEAST_LOOK_S,
    WITHOUT_LEADER,
    Arrivals,
    failure_of,
    new_readers,
)
from broker.consumer.fetch_session import DEFAULT_FETCH_BYTES, DEFAULT_MAX_WAIT_MS, FetchSession
from broker.consumer.partition_reader import PartitionReader
from broker.protocol.payload_filter import PayloadFilter
from broker.protocol.responses import BrokerAddress
from broker.topic import ReadRange, TopicPartition

_QUEUED_POLLS = 2
_REPLICAS_S = 1.0  # between looks whether the set of in-sync replicas is to be read again

_Placed = list[tuple[BrokerAddress, list[TopicPartition]]]


class _Source:
    """Partitions read at one broker, and the task that polls it."""

    def __init__(self, session: FetchSession, address: BrokerAddress) -> None:
        self.session = session
        self.address = address
        self.task: asyncio.Task[None] | None = None
        self.asked_s = 0.0  # when the last request was sent
        self.lost_since_s: float | None = None  # since when polls fail
        self.failures = 0  # of polls in a row
        self.patience = Patience()

    @property
    def is_done(self) -> bool:
        """Return whether its task has ended."""
        return self.task is None or self.task.done()


class AsyncClusterReader:
    """Reads partitions until all have reached their end; arguments as for `ClusterReader`.

    A poll that is cancelled loses nothing: the next one continues with what it had taken.
    """

    def __init__(
        self,
        access: AsyncAccess,
        ranges: Mapping[TopicPartition, ReadRange],
        *,
        fetch_bytes: int = DEFAULT_FETCH_BYTES,
        max_wait_ms: int = DEFAULT_MAX_WAIT_MS,
        payload_filter: PayloadFilter | None = None,
        read_from: str = LEADER,
        response_s: float,
        leader_wait_s: float,
        arrivals: Arrivals | None = None,
    ) -> None:
        self._access = access
        self._arrivals = arrivals
        self._cluster: Cluster = access.cluster
        self._replicas = ReadReplicas(self._cluster, read_from)
        self._topics = sorted({one.topic for one in ranges})
        self._readers = {
            partition: PartitionReader(partition, start, end)
            for partition, (start, end) in ranges.items()
        }
        self._make_session = partial(
            FetchSession,
            fetch_bytes=fetch_bytes,
            max_wait_ms=max_wait_ms,
            payload_filter=payload_filter,
            takes_followers=self._replicas.uses_followers,
        )
        self._ledger = access.client._counts.consumers()
        self._counts = self._ledger.show(self._readers)
        self._response_s = response_s
        self._silence_s = max_wait_ms / 1000 + BRIEFLY_S
        self._leader_wait_s = leader_wait_s
        self._sources: list[_Source] = []
        self._source_of: dict[TopicPartition, _Source] = {}
        self._seen_version = 0  # of `_replicas`
        self._replicas_at_s = 0.0
        # partitions whose leader is being searched: since when, and how many were asked since
        self._moves: dict[TopicPartition, tuple[float, int]] = {}
        self._queue: asyncio.Queue[tuple[_Source, list[Chunk] | Exception] | None] = asyncio.Queue(
            _QUEUED_POLLS
        )
        # taken from the queue, and not handled yet
        self._failed: tuple[_Source, Exception] | None = None
        self._chunks: deque[Chunk] = deque()
        self._ready: dict[TopicPartition, PartitionReader] = {}
        self._given: list[PartitionReader] = []  # by the last poll
        self._work: asyncio.Task[None] | None = None  # that the next poll waits for
        self._is_ended = False

    async def open(self) -> None:
        """Find the brokers, and begin to read."""
        for address, partitions in await self._access.look_up(self._place):
            self._read_at(partitions, address)

    def _place(self) -> _Placed:
        """Return the broker to read each partition from at first; in a thread."""
        self._replicas.refresh_if_due(self._topics)
        self._seen_version = self._replicas.version
        by_broker: dict[int, list[TopicPartition]] = {}
        for partition, reader in self._readers.items():
            if not reader.is_done:
                by_broker.setdefault(self._replicas.broker_of(partition), []).append(partition)
        placed: _Placed = []
        for broker_id, partitions in by_broker.items():
            if all(self._cluster.leader_id(one) == broker_id for one in partitions):
                placed.append((self._cluster.leader(partitions[0]), partitions))
                continue
            try:
                placed.append((self._cluster.address(broker_id), partitions))
            except errors.BrokerUnreachableError:
                placed += [(self._leader_of(one), [one]) for one in partitions]
        return placed

    def _leader_of(self, partition: TopicPartition) -> BrokerAddress:
        """Return the leader of a partition, which is read there from now on; in a thread."""
        self._replicas.leave([partition])
        return self._cluster.leader(partition)

    def end(self) -> None:
        """Stop reading; a poll that waits returns. Called in the loop."""
        self._is_ended = True
        self._ledger.hide(self._readers, self._counts)
        for task in self._tasks():
            task.cancel()
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait(None)

    async def ended(self) -> None:
        """Wait until the connections are closed, after `end`."""
        if tasks := self._tasks():
            await asyncio.wait(tasks)

    def _tasks(self) -> list[asyncio.Task[None]]:
        tasks = [self._work, *(one.task for one in self._sources)]
        return [one for one in tasks if one is not None]

    async def poll(self, timeout_s: float | None = None) -> list[PartitionReader] | None:
        """Return the partitions with new data, none after so long; None once all are read.

        The data must be decoded, and `take` called, before the next poll.
        """
        self._continue_with_given()
        loop = asyncio.get_running_loop()
        give_up_s = None if timeout_s is None else loop.time() + timeout_s
        while not self._is_ended:
            if self._work is not None:
                await self._work_done(self._work)
            elif self._failed is not None:
                self._work = asyncio.create_task(self._handle_failure(*self._failed))
            elif (refused := self._add_chunks()) is not None:
                self._work = asyncio.create_task(self._handle_refusal(refused))
            elif self._ready:
                self._given = list(self._ready.values())
                self._ready.clear()
                return self._given
            elif all(one.is_done for one in self._readers.values()):
                return None
            elif self._replicas.uses_followers and loop.time() >= self._replicas_at_s:
                self._work = asyncio.create_task(self._choose_again())
            elif self._arrivals is not None and self._arrivals.are_due:
                self._work = asyncio.create_task(self._add_arrivals(self._arrivals))
            elif not await self._take(give_up_s):
                return []
        return None

    async def _work_done(self, work: asyncio.Task[None]) -> None:
        """Wait for what was begun; if this is cancelled it continues, and the next poll waits."""
        await asyncio.wait([work])
        self._work = None
        if not work.cancelled():  # by `end`
            work.result()

    def _continue_with_given(self) -> None:
        """Request what follows the data that were decoded."""
        for reader in self._given:
            partition, end = reader.partition, reader.expected_end
            session = self._source_of[partition].session
            if reader.is_done:
                session.forget(partition)
            elif end > reader.offset + len(reader.data):
                session.expect(partition, end)  # a part of a large message has arrived
        self._given = []

    async def _take(self, give_up_s: float | None) -> bool:
        """Take what a task has put into the queue; return False if nothing comes in time."""
        if self._queue.empty() and give_up_s is not None:
            try:
                async with asyncio.timeout_at(give_up_s):
                    item = await self._queue.get()
            except TimeoutError:
                return False
        else:
            item = await self._queue.get()
        if item is None or item[0] not in self._sources:
            return True  # it has ended, or other tasks have its partitions
        source, found = item
        if isinstance(found, Exception):
            self._failed = source, found
            return True
        source.lost_since_s, source.failures = None, 0
        self._chunks.extend(one for one in found if self._source_of.get(one.partition) is source)
        return True

    def _add_chunks(self) -> Chunk | None:
        """Add chunks to their partitions, up to the second one with data of a partition.

        Returns:
            The next chunk, if it is an error and all before it are decoded.
        """
        while self._chunks:
            chunk = self._chunks[0]
            reader = self._readers[chunk.partition]
            if reader.is_done:  # it was requested ahead, or again from another broker
                self._source_of[chunk.partition].session.forget(chunk.partition)
                self._chunks.popleft()
                continue
            is_error = chunk.error != errors.NO_ERROR
            if self._ready and (is_error or chunk.partition in self._ready):
                return None  # the former ones must be decoded before
            if is_error:
                return chunk
            self._moves.pop(chunk.partition, None)
            reader.log_end = chunk.high_watermark
            if reader.add(chunk):
                self._ready[chunk.partition] = reader
            self._chunks.popleft()
        return None

    async def _handle_refusal(self, chunk: Chunk) -> None:
        """Read a partition elsewhere that the broker asked does not serve, if another may."""
        if chunk.error not in WITHOUT_LEADER and not await self._may_differ_at_leader(chunk):
            raise failure_of(chunk)
        await self._follow(chunk)
        self._chunks.popleft()

    async def _may_differ_at_leader(self, chunk: Chunk) -> bool:
        """Return whether an error is that of a follower, so that the leader must be asked."""
        if not self._replicas.uses_followers:
            return False
        if chunk.error == errors.OffsetNotAvailableError.code:
            return True
        # listed anew, as the broker may have led the partition when it was chosen
        leaders: Mapping[TopicPartition, int] = {}
        with suppress(*errors.UNANSWERED):
            leaders = await self._access.look_up(
                self._cluster.find_leaders, [chunk.partition.topic]
            )
        return leaders.get(chunk.partition) != self._source_of[chunk.partition].address.id

    async def _follow(self, chunk: Chunk) -> None:
        """Read a partition at its leader, as the broker asked is not, or does not know it yet."""
        partition, loop = chunk.partition, asyncio.get_running_loop()
        since_s, count = self._moves.get(partition, (loop.time(), 0))
        give_up_s = since_s + self._leader_wait_s
        if loop.time() > give_up_s:
            if self._wait_for([partition], "no leader"):
                return
            raise chunk.failure()  # no leader was found in time
        self._moves[partition] = since_s, count + 1
        if chunk.error == errors.NotLeaderError.code:
            await self._access.look_up(self._cluster.note_leader, partition, chunk.high_watermark)
        waits_s = backoff.waits_s()
        while True:
            try:
                leader = await self._access.look_up(self._leader_of, partition)
                self._read_at([partition], leader, backoff.wait_s(count + 1))
                return
            except errors.BrokerUnreachableError:
                # the broker that named this leader does not know yet that it is gone
                if loop.time() > give_up_s:
                    if self._wait_for([partition], "no leader"):
                        return
                    raise
            with suppress(*errors.UNANSWERED):
                await self._access.look_up(self._cluster.find_leaders, [partition.topic])
            await asyncio.sleep(next(waits_s))

    async def _choose_again(self) -> None:
        """Move partitions to other replicas, after the set of in-sync replicas was refreshed."""
        self._replicas_at_s = asyncio.get_running_loop().time() + _REPLICAS_S
        for address, partitions in await self._access.look_up(self._moved):
            for partition in partitions:
                self._source_of[partition].session.forget(partition)
            self._read_at(partitions, address)

    def _moved(self) -> _Placed:
        """Return the partitions for which another replica is chosen now; in a thread."""
        self._replicas.refresh_if_due(self._topics)
        if self._replicas.version == self._seen_version:
            return []
        self._seen_version = self._replicas.version
        moving: dict[int, list[TopicPartition]] = {}
        for partition, reader in self._readers.items():
            broker_id = self._replicas.broker_of(partition)
            source = self._source_of.get(partition)  # none if it is waited for
            if not reader.is_done and source is not None and broker_id != source.address.id:
                moving.setdefault(broker_id, []).append(partition)
        placed: _Placed = []
        for broker_id, partitions in moving.items():
            try:
                placed.append((self._cluster.address(broker_id), partitions))
            except errors.BrokerUnreachableError:
                self._replicas.leave(partitions)  # their present tasks keep them
        return placed

    async def _add_arrivals(self, arrivals: Arrivals) -> None:
        """Read partitions that have come, and those whose brokers are back."""
        found = await self._access.look_up(arrivals.look)
        readers = new_readers(found, self._counts)
        self._readers.update(readers)
        self._topics = sorted({*self._topics, *(one.topic for one in readers)})
        active = {one.address.id: one for one in self._source_of.values() if not one.is_done}
        for one in found:
            source = active.get(self._cluster.leader_id(one))
            if source is not None and source.session.partitions:
                self._source_of[one] = source
                source.session.seek(one, self._readers[one].offset)
                continue
            try:
                leader = await self._access.look_up(self._leader_of, one)
            except errors.BrokerUnreachableError as error:
                arrivals.wait_for([one], error)
            else:
                self._read_at([one], leader)
                active[leader.id] = self._source_of[one]

    def _wait_for(self, partitions: Sequence[TopicPartition], cause: object) -> bool:
        """Leave partitions until their broker is back; return False if no others are read."""
        if self._arrivals is None or len(self._source_of) <= len(partitions):
            return False
        for one in partitions:
            del self._source_of[one]
            self._moves.pop(one, None)
            self._readers[one].drop_data()
        self._arrivals.wait_for(partitions, cause)
        return True

    async def seek(self, partition: TopicPartition, offset: int, inner: int = 0) -> None:
        """Continue in a partition at another offset, or inside the wrapper there."""
        source = self._source_of.get(partition)
        leader = None
        if source is None and self._arrivals is None:  # its range was empty; else it is waited for
            leader = await self._access.look_up(self._leader_of, partition)
        self._readers[partition].restart_at(offset, inner)
        self._ready.pop(partition, None)
        if leader is not None:
            self._read_at([partition], leader)
        elif source is not None and partition in source.session.partitions:
            source.session.seek(partition, offset)
        elif source is not None and not self._readers[partition].is_done:
            # it was read to its end before
            self._read_at([partition], source.address)

    def _read_at(
        self, partitions: Sequence[TopicPartition], address: BrokerAddress, wait_s: float = 0.0
    ) -> None:
        """Read partitions, which no other task has, at a broker."""
        source = _Source(
            self._make_session({one: self._readers[one].offset for one in partitions}), address
        )
        for one in partitions:
            self._readers[one].drop_data()
            self._source_of[one] = source
        used = set(self._source_of.values())
        self._sources = [one for one in self._sources if one in used or not one.is_done]
        self._sources.append(source)
        self._start(source, wait_s)

    async def _handle_failure(self, source: _Source, error: Exception) -> None:
        """Read partitions of a lost broker at their new leaders; retry the others there."""
        if not isinstance(error, errors.BrokerError) or not error.is_retriable:
            raise error
        loop = asyncio.get_running_loop()
        source.lost_since_s = source.lost_since_s or source.asked_s
        left_s = self._leader_wait_s - (loop.time() - source.lost_since_s)
        session = source.session
        session.drop_request(error)
        # if leaders stay unknown, they are requested again after the next attempt
        with suppress(*errors.UNANSWERED):
            placed = await self._access.look_up(
                self._led_elsewhere,
                source.address.id,
                session.partitions,
                max(left_s, LEAST_LOOK_S),
            )
            for address, partitions in placed:
                for partition in partitions:
                    session.forget(partition)
                self._read_at(partitions, address)
        left = session.partitions
        is_late = loop.time() - source.lost_since_s >= self._leader_wait_s
        if not left or (is_late and self._wait_for(left, error)):
            self._sources = [one for one in self._sources if one is not source]
        elif is_late:
            raise error
        else:
            source.failures += 1
            self._start(source, backoff.wait_s(source.failures))
        self._failed = None

    def _led_elsewhere(
        self, broker_id: int, partitions: Sequence[TopicPartition], limit_s: float
    ) -> _Placed:
        """Return partitions that other brokers lead now; in a thread."""
        with deadlines.Limit(limit_s):
            self._replicas.leave(partitions)
            moved: dict[int, list[TopicPartition]] = {}
            for partition, leader in led_elsewhere(self._cluster, partitions, broker_id).items():
                moved.setdefault(leader, []).append(partition)
            return [(self._cluster.leader(some[0]), some) for some in moved.values()]

    def _start(self, source: _Source, wait_s: float) -> None:
        source.task = asyncio.create_task(
            self._fetch(source, wait_s), name=f"pylogctl-fetcher-{source.address.id}"
        )

    async def _fetch(self, source: _Source, wait_s: float) -> None:
        """Poll one broker and queue the chunks, until a poll fails; the task of a source."""
        connection: AsyncConnection | None = None
        try:
            await asyncio.sleep(wait_s)
            source.asked_s = asyncio.get_running_loop().time()
            with source.patience.attempt() as limit_s:
                connection = await self._access.connect(source.address, self._response_s, limit_s)
            await self._poll_at(source, connection)
        except Exception as error:  # noqa: BLE001  # for the poll that waits
            await self._queue.put((source, error))
        finally:
            if connection is not None:
                connection.close()
                await connection.closed()

    async def _poll_at(self, source: _Source, connection: AsyncConnection) -> None:
        session = source.session
        response: asyncio.Future[Any] | None = None
        while response is not None or session.is_wanting:
            source.asked_s = asyncio.get_running_loop().time()
            if response is None:
                response = self._ask(session, connection)
            await self._await(response, source, connection)
            answered, response = response, None
            try:
                found = answered.result()
            except errors.ServerError as error:
                if not session.drop_request(error):
                    raise
                continue
            if connection.hello is None:
                chunks = session.take_07(found)
                if not chunks:
                    await asyncio.sleep(session.empty_wait_s)
            else:
                chunks = session.take(found)
            has_messages = any(len(one.data) for one in chunks)
            if has_messages and session.is_wanting and connection.is_open:
                response = self._ask(session, connection)  # ahead, while these chunks are decoded
            await self._queue.put((source, session.filtered(chunks)))

    async def _await(
        self, response: asyncio.Future[Any], source: _Source, connection: AsyncConnection
    ) -> None:
        """Wait for a response; lose a broker that is silent while others lead its partitions."""
        wait_s = self._silence_s
        while not (await asyncio.wait([response], timeout=wait_s))[0]:
            heard_s = connection.heard_s
            wait_s = heard_s + self._silence_s - asyncio.get_running_loop().time()
            if wait_s > 0:  # a part of the response has come
                continue
            wait_s = self._silence_s
            partitions = source.session.partitions
            led: Mapping[TopicPartition, int] = {}
            with suppress(*errors.UNANSWERED):
                led = await self._access.look_up(
                    led_elsewhere, self._cluster, partitions, source.address.id
                )
            if led:
                waited_s = asyncio.get_running_loop().time() - source.asked_s
                where = f"broker {source.address.id} at {source.address.host}"
                raise errors.RequestTimeoutError(f"{where} has not answered for {waited_s:.1f}s")

    def _ask(self, session: FetchSession, connection: AsyncConnection) -> asyncio.Future[Any]:
        asked_s = time.monotonic()
        response: asyncio.Future[Any]
        if connection.hello is None:
            response = connection.ask(session.request_07())
        else:
            response = connection.request(session.request(connection.understands))
        response.add_done_callback(partial(self._note_response, asked_s))
        return response

    def _note_response(self, asked_s: float, response: asyncio.Future[Any]) -> None:
        if not response.cancelled() and response.exception() is None:
            self._counts.fetch_times.record(time.monotonic() - asked_s)
