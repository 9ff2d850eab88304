"""The client for asyncio: `Client` for the tasks of one event loop."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import warnings
from collections.abc import Callable, Collection, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakSet

from broker.aio.access import AsyncAccess, AsyncClosedAtEnd
from broker.aio.calls import AsyncCalls
from broker.aio.producer import AsyncDelivery, AsyncProducer
from broker.aio.reader import AsyncBatches, AsyncReader
from broker.api import values
from broker.api.client import Client, connect, filter_of
from broker.api.errors import Closed, DeliveryFailed, Error, TimedOut
from broker.api.producer import BATCH_BYTES, BUFFER_BYTES, CodecName, parts_of, receipts_of
from broker.api.reader import pattern_of
from broker.api.schema_calls import Encoders, SchemaLike
from broker.api.values import (
    UNSET,
    AcksLike,
    Headers,
    PartitionLike,
    Receipt,
    Start,
    Timeout,
    Unset,
    Value,
)
from broker.client.counts import MetricsRegistry
from broker.producer import unclosed
from broker.producer.partitioner import Partitioner, hash_partitioner
from broker.protocol.client_requests import Acks, PayloadFilter
from broker.protocol.compression import Codec

if TYPE_CHECKING:
    from broker.aio.group import AsyncGroup, AsyncOnChange
    from broker.aio.schemas import AsyncSchemaProducer
    from broker.api.group import Commit
    from broker.consumer.offset_store import OffsetStore
    from broker.schemas.values import RegisteredSchema

_THREADS = 8
_P = ParamSpec("_P")
_R = TypeVar("_R")

logger = logging.getLogger("pylogctl")


def _with_arguments_of(
    call: Callable[_P, object],
) -> Callable[[Callable[..., _R]], Callable[_P, _R]]:
    """Give a function the arguments of another one, and a `TypeError` at once for others."""
    shown = inspect.signature(call)

    def given(function: Callable[..., _R]) -> Callable[_P, _R]:
        @wraps(function)
        def checked(*args: _P.args, **named: _P.kwargs) -> _R:
            shown.bind(*args, **named)
            return function(*args, **named)

        checked.__signature__ = shown  # type: ignore[attr-defined]  # as help asks
        return checked

    return given


def _with_arguments_of_call(
    call: Callable[Concatenate[Client, _P], object],
) -> Callable[[Callable[..., _R]], Callable[Concatenate[AsyncClient, _P], _R]]:
    """Give a method the arguments of one of `Client`."""
    return _with_arguments_of(call)  # type: ignore[arg-type]  # but for the class of the object


@_with_arguments_of(connect)
def aconnect(*args: Any, **named: Any) -> Connecting:
    """Connect to a cluster; to be awaited, or entered with `async with`.

    Arguments and errors are those of `connect`. The client belongs to the loop that runs then.
    """
    return Connecting(partial(connect, *args, **named))


class Connecting:
    """A client that is being connected; `await` gives it, `async with` closes it as well."""

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._client: AsyncClient | None = None

    def __await__(self) -> Generator[Any, None, AsyncClient]:
        """Connect."""
        return self._connect().__await__()

    async def __aenter__(self) -> AsyncClient:
        self._client = await self._connect()
        return self._client

    async def __aexit__(self, *exc_info: object) -> None:
        if self._client is not None:
            await self._client.__aexit__(*exc_info)

    async def _connect(self) -> AsyncClient:
        threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="pylogctl-aio")
        made = threads.submit(self._make)
        try:
            client = await asyncio.wrap_future(made)
        except BaseException:
            made.add_done_callback(_close_unused)  # if this was cancelled
            threads.shutdown(wait=False)
            raise
        return AsyncClient(AsyncAccess(client, threads))


def _close_unused(made: Future[Client]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()


class AsyncClient(AsyncCalls, AsyncClosedAtEnd):
    """A cluster: sends, reads, joins groups, and orders. For the tasks of one event loop.

    Made by `aconnect`; a context manager. What it has opened ends with it. Messages are sent in the
    loop; a thread for each reader and group takes chunks from brokers, and their messages are given
    out in the loop. Other calls are those of `Client`, in a thread: if their task is cancelled,
    they continue. A call by another loop is a `RuntimeError`.
    """

    def __init__(self, access: AsyncAccess) -> None:
        self._access = access
        self._senders: dict[Acks, AsyncProducer] = {}  # of `send`
        self._producers: WeakSet[AsyncProducer] = WeakSet()
        self._sends_no_more = False
        self._readers: WeakSet[AsyncReader] = WeakSet()
        self._groups: WeakSet[AsyncGroup] = WeakSet()

    def __del__(self) -> None:
        access = getattr(self, "_access", None)
        if access is not None and not access.is_closed:
            try:
                access.loop.call_soon_threadsafe(access.drop)
            except RuntimeError:  # the loop is closed
                unclosed.later(partial(access.client.close, unclosed.LIMIT_S))
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)

    @property
    def closed(self) -> bool:
        """Whether the client is closed."""
        return self._access.is_closed

    async def send(
        self,
        topic: str,
        value: Value | None,
        *,
        key: Value | None = None,
        partition: PartitionLike | None = None,
        headers: Headers | None = None,
        timestamp: datetime | int | None = None,
        acks: AcksLike = Acks.COMMITTED,
        timeout: Timeout = UNSET,
    ) -> Receipt:
        """Send a message, and return where it is once the brokers have acknowledged it.

        If the task is cancelled, the message may be sent nevertheless.

        Args:
            topic: made by its first message, if brokers may.
            value: the message; text as UTF-8. None, for topics of format `kafka`: the key is
                deleted.
            key: chooses the partition by its hash; else any partition. Topics of format `kafka`
                store it.
            partition: the target; one that the topic has.
            headers: names and values, which topics of format `kafka` store.
            timestamp: a time, or milliseconds since 1970; by default now. Stored as headers are.
            acks: `COMMITTED`, `"all"` (flushed, and on all replicas in sync), `WRITTEN` or `NONE`.
            timeout: seconds; by default the client's.

        Raises:
            TimedOut: it is not acknowledged in time. If `outcome` is "unknown" it may be in the
                log, or still be sent.
            TooLarge, InvalidName, Unreachable, Closed, TypeError, ArgumentError: as for
                `AsyncProducer.send`.
            Error: the brokers refuse it.
        """
        seconds = self._seconds(timeout)
        give_up_s = self._deadline(seconds)
        stored = values.stored_of(value, headers, timestamp)
        payload = b"" if value is None else values.payload_of(value)
        delivery = await self._sender(acks)._queue(
            topic, [payload], key, partition, None, give_up_s, stored
        )
        if not await delivery._done_by(give_up_s):
            raise _late(delivery, seconds)
        return delivery.result()

    async def send_many(
        self,
        topic: str,
        values: Iterable[Value],
        *,
        key: Value | None = None,
        partition: PartitionLike | None = None,
        acks: AcksLike = Acks.COMMITTED,
        timeout: Timeout = UNSET,
    ) -> list[Receipt]:
        """Send messages, and return where each is; in this order if they go to one partition.

        With a `key` or a `partition` they do; else they are spread. See `send`.

        Raises:
            Partial: some were not acknowledged; `failed` has their errors by their place ("0",
                "1", ..), `done` the receipts of the others. If all fail, the error of the first.
        """
        seconds = self._seconds(timeout)
        give_up_s = self._deadline(seconds)
        sender = self._sender(acks)
        payloads = sender._checked(values)  # all are good, before the first is sent
        receipts: list[Receipt] = []
        failed: dict[int, Error] = {}
        deliveries: dict[int, AsyncDelivery] = {}
        for place, one in enumerate(payloads):
            try:
                deliveries[place] = await sender._queue(
                    topic, [one], key, partition, None, give_up_s
                )
            except Error as error:
                failed[place] = error
        for place, delivery in deliveries.items():
            if not await delivery._done_by(give_up_s):
                failed[place] = _late(delivery, seconds)
            elif (found := delivery.exception()) is not None:
                failed[place] = found
            else:
                receipts.append(delivery.result())
        return receipts_of(receipts, failed)

    def producer(
        self,
        *,
        acks: AcksLike = Acks.COMMITTED,
        codec: Codec | CodecName = "none",
        linger: float = 0.0,
        batch_bytes: int = BATCH_BYTES,
        buffer_bytes: int = BUFFER_BYTES,
        partitioner: Partitioner = hash_partitioner,
        on_delivery: Callable[[AsyncDelivery], object] | None = None,
        envelope: bool | None = False,
        idempotent: bool = False,
    ) -> AsyncProducer:
        """Return a producer, which queues messages and sends them in batches.

        Args:
            acks: as for `send`.
            codec: how batches are compressed: in the event loop.
            linger: seconds that a batch waits for more messages, unless the buffer is full. While a
                batch of a partition is on its way others gather in any case.
            batch_bytes: payload bytes that make a batch full.
            buffer_bytes: payload bytes that may be queued for one broker before `send` waits.
            partitioner: chooses partitions of messages without one.
            on_delivery: called with each delivery once it is done, in the event loop.
            envelope: whether time, host and sequence are put in front of each message, which fill
                its `timestamp` and `headers` when it is read. None: for topics with the setting
                `envelope=true`, for which a broker is asked once for each topic. Topics of format
                `kafka` get none: they store times.
            idempotent: whether messages to topics of format `0.7` are stored once, too, when they
                are sent again after a lost response; those of format `kafka` always are. Costs the
                broker a second write for each batch. Messages that may be stored wait for their
                broker, and do not go to another one.
        """
        self._check()
        client = self._access.client
        given = acks, codec, linger, batch_bytes, buffer_bytes, partitioner
        parts = parts_of(client, *given, envelope=envelope, idempotent=idempotent)
        producer = AsyncProducer(parts, self._access, on_delivery, self)
        self._producers.add(producer)
        return producer

    def schema_producer(
        self,
        schema: RegisteredSchema | SchemaLike = "auto",
        *,
        acks: AcksLike = Acks.COMMITTED,
        codec: Codec | CodecName = "none",
        linger: float = 0.0,
        partitioner: Partitioner = hash_partitioner,
        on_delivery: Callable[[AsyncDelivery], object] | None = None,
    ) -> AsyncSchemaProducer:
        """Return a producer that encodes values by a schema; see `producer`.

        Args:
            schema: an id, a schema, or `"auto"` for the latest of the topic's subject: its setting
                `schema.subject`, else `TOPIC-value`.
            acks: as for `producer`, as are the others.
        """
        self._check()
        from broker.aio.schemas import AsyncSchemaProducer  # late: few programs have schemas

        client = self._access.client
        encoders = Encoders(client, schema)
        parts = parts_of(client, acks, codec, linger, partitioner=partitioner)
        producer = AsyncSchemaProducer(encoders, parts, self._access, on_delivery, self)
        self._producers.add(producer)
        return producer

    @_with_arguments_of_call(Client.read)
    def read(
        self,
        topic: Any,
        *,
        limit: object = None,
        idle: object = None,
        filter: object = None,
        timeout: Timeout = UNSET,
        **named: Any,
    ) -> AsyncReader:
        """Return the messages of a topic from `start` to `stop`, as an asynchronous iterator.

        Arguments and errors are those of `Client.read`; the errors are raised when it begins: by
        `async for`, `async with` or `await`.
        """
        self._access.check()
        if limit is not None:
            values.whole_of("limit", limit, 0)
        if idle is not None:
            values.number_of("idle", idle, 0)
        self._seconds(timeout)  # raises unless it is one
        if pattern_of(topic) is None:
            values.topic_of(topic)
        named |= {"limit": limit, "idle": idle, "filter": filter_of(filter), "timeout": timeout}
        reader = AsyncReader(self._access, partial(self._access.client.read, topic, **named))
        self._readers.add(reader)
        return reader

    @_with_arguments_of_call(Client.read_batches)
    def read_batches(self, topic: Any, **named: Any) -> AsyncBatches:
        """Return the messages of a topic as they are in the log; see `read`."""
        return AsyncBatches(self.read(topic, **named))

    def group(
        self,
        name: str,
        topics: str | Collection[str] | re.Pattern[str],
        *,
        start: Start = "latest",
        commit: Commit = "after",
        commit_every: float = 5.0,
        offsets: OffsetStore | None = None,
        filter: bytes | str | PayloadFilter | None = None,
        idle: float | None = None,
        on_assigned: AsyncOnChange | None = None,
        on_revoked: AsyncOnChange | None = None,
        timeout: Timeout = UNSET,
    ) -> AsyncGroup:
        """Return the messages that a consumer group gives to this member of it.

        Arguments and errors are those of `Client.group`; `on_assigned` and `on_revoked` are called
        in the loop, with this group, and may be coroutine functions. The errors are raised when it
        joins: by `async for`, `async with` or `await`.
        """
        self._access.check()
        from broker.aio.group import TURN_S, AsyncGroup  # late: loads kazoo

        if idle is not None:
            values.number_of("idle", idle, 0)
        group = AsyncGroup(
            self._access,
            partial(
                self._access.client.group,
                name,
                topics,
                start=start,
                commit=commit,
                commit_every=commit_every,
                offsets=offsets,
                filter=filter_of(filter),
                idle=TURN_S,
                timeout=timeout,
            ),
            idle_s=idle,
            on_assigned=on_assigned,
            on_revoked=on_revoked,
        )
        self._groups.add(group)
        return group

    def register_metrics(self, registry: MetricsRegistry, **labels: str) -> None:
        """Have a registry of `prometheus_client` collect the metrics of this client until `close`.

        See `Client.register_metrics`; not a coroutine, as it asks nobody.
        """
        self._access.check()
        self._access.client.register_metrics(registry, **labels)

    def _check(self) -> None:
        self._access.check()
        if self._sends_no_more:
            raise Closed("the client is closed")

    def _sender(self, given: AcksLike) -> AsyncProducer:
        self._check()
        acks = values.acks_of(given)
        sender = self._senders.get(acks)
        if sender is None:
            parts = parts_of(self._access.client, acks)
            sender = self._senders[acks] = AsyncProducer(parts, self._access)
        return sender

    def _seconds(self, timeout: Timeout) -> float | None:
        return values.seconds_of(self._access.timeout_s if isinstance(timeout, Unset) else timeout)

    def _deadline(self, seconds: float | None) -> float | None:
        return None if seconds is None else self._access.loop.time() + seconds

    async def _end_sending(self, timeout: Timeout) -> None:
        """Close the producers, all at once; see `AsyncClient.close`."""
        self._sends_no_more = True
        senders = list(self._senders.values())
        producers = [*senders, *self._producers]
        ends = await asyncio.gather(
            *(one.close(timeout) for one in producers), return_exceptions=True
        )
        others = self._access.sendings - {one._sending for one in producers}  # were dropped
        if others:
            finishing = [asyncio.create_task(one.finished()) for one in others]
            await asyncio.wait(finishing, timeout=self._seconds(timeout))
        for producer, end in zip(producers, ends, strict=True):
            # what `send` has queued it has raised, or told that it was not in time
            is_known = producer in senders and isinstance(end, DeliveryFailed)
            if end is not None and not is_known:
                raise end

    async def close(self, timeout: Timeout = UNSET) -> None:
        """End what the client has opened; see `Client.close`. A second call does nothing."""
        if self.closed:
            return
        self._access.check()
        give_up_s = self._deadline(self._seconds(timeout))
        async with AsyncExitStack() as closing:  # all of it, even if this is cancelled
            closing.push_async_callback(self._end_rest, give_up_s)
            for reader in list(self._readers):
                closing.push_async_callback(reader.close)
            await self._end_sending(timeout)

    async def _end_rest(self, give_up_s: float | None) -> None:
        for sending in list(self._access.sendings):  # whose end was cancelled before it began
            sending.end_unclosed()
        for group in list(self._groups):
            group.end()  # the client for threads closes it
        rest_s = None if give_up_s is None else max(0.0, give_up_s - self._access.loop.time())
        await self._access.close(rest_s)


def _late(delivery: AsyncDelivery, seconds: float | None) -> TimedOut:
    text = f"a message to '{delivery.partition.topic}' is not acknowledged after {seconds:.2g}s"
    return TimedOut(text)
