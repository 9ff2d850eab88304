"""The calls of `AsyncClient` that send messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from weakref import WeakSet

from broker.aio.access import AsyncAccess
from broker.aio.producer import AsyncDelivery, AsyncProducer
from broker.api.errors import Closed, DeliveryFailed, Error, TimedOut
from broker.api.producer import BATCH_BYTES, BUFFER_BYTES, CodecName, parts_of, receipts_of
from broker.api.values import (
    UNSET,
    AcksLike,
    PartitionLike,
    Receipt,
    Timeout,
    Unset,
    Value,
    acks_of,
    payload_of,
    seconds_of,
)
from broker.producer.partitioner import Partitioner, hash_partitioner
from broker.protocol.client_requests import Acks
from broker.protocol.compression import Codec

_POLL_S = 0.02


class SendCalls:
    """Sends for the tasks of one event loop."""

    def __init__(self, access: AsyncAccess) -> None:
        self._access = access
        self._senders: dict[Acks, AsyncProducer] = {}  # of `send`
        self._producers: WeakSet[AsyncProducer] = WeakSet()
        self._sends_no_more = False

    async def send(
        self,
        topic: str,
        value: Value,
        *,
        key: Value | None = None,
        partition: PartitionLike | None = None,
        acks: AcksLike = Acks.COMMITTED,
        timeout: Timeout = UNSET,
    ) -> Receipt:
        """Send a message, and return where it is once the brokers have acknowledged it.

        If the task is cancelled, the message may be sent nevertheless.

        Args:
            topic: made by its first message, if brokers may.
            value: the message; text as UTF-8.
            key: chooses the partition by its hash, and is not stored; else any partition.
            partition: the target; one that the topic has.
            acks: `COMMITTED`, `"all"` (flushed, and on all replicas in sync), `WRITTEN` or `NONE`.
            timeout: seconds; by default the client's.

        Raises:
            TimedOut: it is not acknowledged in time. If `outcome` is "unknown" it may be in the
                log, or still be sent.
            TooLarge, InvalidName, Unreachable, Closed, TypeError: as for `AsyncProducer.send`.
            Error: the brokers refuse it.
        """
        seconds = self._seconds(timeout)
        give_up_s = self._deadline(seconds)
        payload = payload_of(value)
        delivery = await self._sender(acks)._queue(
            topic, [payload], key, partition, None, give_up_s
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
        """
        self._check()
        client = self._access.client
        parts = parts_of(client, acks, codec, linger, batch_bytes, buffer_bytes, partitioner)
        producer = AsyncProducer(parts, self._access, on_delivery, self)
        self._producers.add(producer)
        return producer

    def _check(self) -> None:
        self._access.check()
        if self._sends_no_more:
            raise Closed("the client is closed")

    def _sender(self, given: AcksLike) -> AsyncProducer:
        self._check()
        acks = acks_of(given)
        sender = self._senders.get(acks)
        if sender is None:
            parts = parts_of(self._access.client, acks)
            sender = self._senders[acks] = AsyncProducer(parts, self._access)
        return sender

    def _seconds(self, timeout: Timeout) -> float | None:
        return seconds_of(self._access.timeout_s if isinstance(timeout, Unset) else timeout)

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


def _late(delivery: AsyncDelivery, seconds: float | None) -> TimedOut:
    text = f"a message to '{delivery.partition.topic}' is not acknowledged after {seconds:.2g}s"
    return TimedOut(text)
