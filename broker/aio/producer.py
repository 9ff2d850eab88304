"""A producer for asyncio: queues messages, sends them in the event loop, and gives deliveries."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from threading import get_ident
from typing import Any

from broker.aio.access import AsyncAccess, AsyncClosedAtEnd
from broker.aio.send_loop import InThread, Lane, SendLoop
from broker.api import values
from broker.api.errors import BufferFull, Closed, Error, TimedOut, public
from broker.api.producer import ProducerCore, queued_of
from broker.api.values import (
    UNSET,
    Addressed,
    Headers,
    PartitionLike,
    Receipt,
    Stored,
    Timeout,
    Value,
    payloads_of,
)
from broker.client import backoff
from broker.errors import BrokerError
from broker.producer.delivery import Failures
from broker.producer.partitioner import Known
from broker.producer.parts import Parts
from broker.protocol.codec import Record
from broker.topic import TopicPartition

logger = logging.getLogger("pylogctl")

_MESSAGES_A_TURN = 64  # then other tasks have theirs


@dataclass(eq=False, repr=False, slots=True)
class AsyncDelivery:
    """The outcome of a call of `AsyncProducer.send`; `await` it for the receipt.

    The messages are sent whether it is awaited or not, and whatever becomes of a task that awaits
    it.
    """

    partition: TopicPartition
    left_count: int  # of its messages that are neither acknowledged nor failed
    failures: Failures
    can_move: bool
    record: Record | None = None  # see `Handle`
    counted_in: int = field(default=0, init=False)
    _offset: int = field(default=-1, init=False)
    _next_offset: int = field(default=-1, init=False)
    _error: BrokerError | None = field(default=None, init=False)
    # of tasks that await it
    _waiters: list[asyncio.Future[None]] | None = field(default=None, init=False)
    _callbacks: list[Callable[[AsyncDelivery], object]] | None = field(default=None, init=False)
    # for reports, which there are none of
    key: bytes | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return f"AsyncDelivery({self.partition.topic}, {'done' if self.done() else 'waiting'})"

    def done(self) -> bool:
        """Return whether the messages are acknowledged or have failed."""
        return not self.left_count

    def result(self) -> Receipt:
        """Return where the messages are.

        Raises:
            asyncio.InvalidStateError: it is not done.
            Error: they could not be delivered.
        """
        if (error := self.exception()) is not None:
            raise error
        return Receipt(self.partition.topic, self.partition, self._offset, self._next_offset)

    def exception(self) -> Error | None:
        """Return why the messages could not be delivered, None if they are acknowledged.

        Raises:
            asyncio.InvalidStateError: it is not done.
        """
        if self.left_count:
            raise asyncio.InvalidStateError(f"a message to '{self.partition.topic}' is on its way")
        self.notice()
        return None if self._error is None else public(self._error)

    def add_done_callback(self, fn: Callable[[AsyncDelivery], object]) -> None:
        """Call a function with this delivery, in the event loop, once it is done."""
        if not self.left_count:
            self._run(fn)
        elif self._callbacks is None:
            self._callbacks = [fn]
        else:
            self._callbacks.append(fn)

    def __await__(self) -> Generator[Any, None, Receipt]:
        """Wait until it is done, and return its result."""
        yield from self._done_by(None).__await__()
        return self.result()

    async def _done_by(self, give_up_s: float | None) -> bool:
        """Wait until it is done, or until a time (`loop.time`); return whether it is."""
        if self.left_count:
            # each task has a future of its own, so that a cancelled one takes nothing from others
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()
            if self._waiters is None:
                self._waiters = [waiter]
            else:
                self._waiters.append(waiter)
            timer = None if give_up_s is None else loop.call_at(give_up_s, _wake, waiter)
            try:
                await waiter
            finally:
                if timer is not None:
                    timer.cancel()
                if self._waiters is not None:
                    self._waiters.remove(waiter)
        return not self.left_count

    # what the engine calls

    def complete_message(self, offset: int, next_offset: int, error: BrokerError | None) -> None:
        """Complete the next of its messages."""
        if self._offset < 0:
            self._offset = offset
        self._next_offset = next_offset
        if error is not None:
            self._error = self._error or error
            self.failures.add(self, error)
        self.left_count -= 1
        if not self.left_count:
            waiters, self._waiters = self._waiters, None
            for waiter in waiters or ():
                _wake(waiter)
            if self._callbacks is not None:
                callbacks, self._callbacks = self._callbacks, None
                for fn in callbacks:
                    self._run(fn)

    def notice(self) -> None:
        """Note that the program knows of the failure, if there is one."""
        if self.counted_in:
            self.failures.notice(self)

    def _run(self, fn: Callable[[AsyncDelivery], object]) -> None:
        try:
            fn(self)
        except Exception:  # as `Future` does: it must not end what is going on here
            logger.exception("failure in a callback of a delivery to '%s'", self.partition.topic)


AsyncDelivery.__module__ = "pylogctl"  # not in its body, where dataclasses look it up


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class AsyncProducer(ProducerCore, AsyncClosedAtEnd):
    """Queues messages, and sends them in batches; made by `AsyncClient.producer`.

    For the tasks of one event loop. Leaving an `async with` block flushes; no message is lost in
    silence: one that was not delivered is raised by its delivery, given to `on_delivery`, or raised
    by the next `flush` or `close`.
    """

    __module__ = "pylogctl"

    def __init__(
        self,
        parts: Parts,
        access: AsyncAccess,
        on_delivery: Callable[[AsyncDelivery], object] | None = None,
        client: object = None,  # not to be dropped before; None: it ends this
    ) -> None:
        super().__init__(parts, on_delivery)
        self._client = client
        self._in_turn_count = 0  # messages queued since other tasks had their turn
        self._finding: dict[str, asyncio.Task[Known]] = {}  # partitions of topics
        self._in_thread: InThread = access.look_up
        self._sending = SendLoop(parts, access.look_up, access._note_end)
        access.sendings.add(self._sending)
        self._loop = self._sending.loop
        self._thread_id = get_ident()

    def __del__(self) -> None:
        sending = getattr(self, "_sending", None)
        if sending is not None and not sending.is_ended and self._client is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(sending.finish)
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)

    async def send(
        self,
        topic: str,
        value: Value | None,
        *,
        key: Value | None = None,
        partition: PartitionLike | None = None,
        headers: Headers | None = None,
        timestamp: datetime | int | None = None,
        timeout: Timeout = UNSET,
    ) -> AsyncDelivery:
        """Queue a message, and wait only while the buffer is full.

        If the task is cancelled meanwhile, nothing is queued.

        Args:
            topic: made by its first message, if brokers may.
            value: the message; text as UTF-8. None, for topics of format `kafka`: the key is
                deleted.
            key: chooses the partition by its hash; else any partition. Topics of format `kafka`
                store it.
            partition: the target; one that the topic has.
            headers: names and values, which topics of format `kafka` store.
            timestamp: a time, or milliseconds since 1970; by default now. Stored as headers are.
            timeout: seconds for room in the buffer, and for the first look at a topic; by default
                the client's. What is queued is sent within the client's, or fails.

        Raises:
            TooLarge, InvalidName: nothing is queued.
            BufferFull, TimedOut: there was no room in time, or no broker that told of the topic;
                nothing is queued.
            Unreachable: no broker was ever found.
            Closed: the producer is closed.
            TypeError: value, key, partition, headers or timestamp is of another type.
            ArgumentError: the topic is of format 0.7, which does not store what is given.
        """
        stored = values.stored_of(value, headers, timestamp)
        payload = b"" if value is None else values.payload_of(value)
        return await self._queue(topic, [payload], key, partition, timeout, stored=stored)

    async def send_many(
        self,
        topic: str,
        values: Iterable[Value],
        *,
        key: Value | None = None,
        partition: PartitionLike | None = None,
        timeout: Timeout = UNSET,
    ) -> AsyncDelivery:
        """Queue messages for one partition, in this order; all of them or none. See `send`."""
        return await self._queue(topic, payloads_of(values), key, partition, timeout)

    async def send_all(
        self, messages: Iterable[Addressed], *, timeout: Timeout = UNSET
    ) -> list[AsyncDelivery]:
        """Queue messages for several topics, in this order.

        If the task is cancelled meanwhile, those queued before are sent.

        Args:
            messages: each `(topic, value)` or `(topic, value, key)`; see `send`.
            timeout: seconds for all of them; as for `send`.

        Returns:
            A delivery for each message, in their order.

        Raises:
            Partial: some were not queued, of which the text names the first by place and topic;
                `failed` has their errors by their place ("0", "1", ..), `done` the deliveries of
                the others, which are sent. If all fail, the error of the first.
            TypeError: a message is of another form; nothing is queued.
        """
        checked = values.addressed_of(messages)
        give_up_s = self._deadline(timeout, None)
        deliveries: list[AsyncDelivery] = []
        failed: dict[int, Error] = {}
        for place, (topic, payload, key) in enumerate(checked):
            try:
                deliveries.append(await self._queue(topic, [payload], key, None, None, give_up_s))
            except Error as error:
                failed[place] = error
        return queued_of(deliveries, failed, checked)

    async def _queue(
        self,
        topic: str,
        payloads: list[bytes],
        key: Value | None,
        partition: PartitionLike | None,
        timeout: Timeout,
        give_up_s: float | None = None,
        stored: Stored | None = None,
    ) -> AsyncDelivery:
        """Queue messages for one partition; `give_up_s` (`loop.time`) replaces `timeout`."""
        self._validate()
        if timeout is not UNSET:
            self._seconds(timeout)  # it is a number
        key_bytes = values.key_of(key)
        try:
            count = len(payloads)
            self._in_turn_count += count
            if self._in_turn_count >= _MESSAGES_A_TURN:
                self._in_turn_count = 0
                await asyncio.sleep(0)
            known = self._parts.partitions.in_memory(values.topic_of(topic))
            if known is None or partition is not None:
                limit_s = self._deadline(timeout, give_up_s)
                target = await self._find_target(topic, key_bytes, partition, known, limit_s)
            else:
                target = self._parts.partitions.choose(topic, key_bytes, known)
            record = values.record_for(target, key_bytes, stored)
            if record is None and (stamper := self._parts.stamper) is not None:
                if not stamper.knows(topic):
                    await self._in_thread(partial(stamper.stamp, topic, []))  # it asks a broker
                payloads = stamper.stamp(topic, payloads)
            payloads = self._parts.packer.payloads(payloads)
            size_bytes = sum(map(len, payloads))
            can_move = key is None and partition is None and record is None
            delivery = AsyncDelivery(target, count, self._parts.failures, can_move, record)
            if record is not None:
                self._parts.packer.validate_records(delivery, payloads)
            home = self._parts.partitions.first_leader(target) if record else target.home
            lane = self._sending.lane(home)
            if not lane.has_room(count, size_bytes):
                limit_s = self._deadline(timeout, give_up_s)
                await self._wait_for_room(lane, count, size_bytes, target, limit_s)
        except BrokerError as error:  # as `translated` does, which takes longer
            if (found := public(error)) is error:
                raise
            raise found from error
        if self._is_closed:
            raise Closed("the producer is closed")
        if self._on_delivery is not None:
            delivery.add_done_callback(self._on_delivery)
        if count:
            self._sending.put(lane, target, payloads, delivery)
        return delivery

    def _validate(self) -> None:
        if self._is_closed:
            raise Closed("the producer is closed")
        # sooner known than which loop runs in this thread, which costs a system call
        if get_ident() != self._thread_id or not self._loop.is_running():
            loop = asyncio.get_running_loop()
            raise RuntimeError(f"the producer belongs to {self._loop}, and is used in {loop}")

    def _deadline(self, timeout: Timeout, give_up_s: float | None) -> float | None:
        if give_up_s is not None:
            return give_up_s
        seconds = self._seconds(timeout)
        return None if seconds is None else self._loop.time() + seconds

    async def _find_target(
        self,
        topic: str,
        key: bytes | None,
        partition: PartitionLike | None,
        known: Known | None,
        give_up_s: float | None,
    ) -> TopicPartition:
        """Return the partition for messages, and ask for those of the topic where necessary."""
        limit = asyncio.timeout_at(give_up_s)
        try:
            async with limit:
                found = await self._read(topic) if known is None else known
                if partition is not None:
                    meant = list(filter(values.matcher_of(partition), found.partitions))
                    if len(meant) == 1:
                        return meant[0]
                    one: TopicPartition = await self._in_thread(
                        self._one_partition, topic, partition
                    )
                    return one
        except TimeoutError as error:
            if not limit.expired():
                raise
            late = TimedOut(f"no broker says in time which partitions '{topic}' has")
            late.outcome = "not_done"
            raise late from error
        return self._parts.partitions.choose(topic, key, found)

    async def _read(self, topic: str) -> Known:
        """Ask for the partitions of a topic, and wait only if none were known before."""
        finding = self._find(topic)
        expired = self._parts.partitions.expired(topic)
        return await asyncio.shield(finding) if expired is None else expired

    def _find(self, topic: str) -> asyncio.Task[Known]:
        """Ask for the partitions of a topic, once for all tasks that wait for them."""
        task = self._finding.get(topic)
        if task is None:

            def end(done: asyncio.Task[Known]) -> None:
                del self._finding[topic]
                if not done.cancelled():
                    done.exception()  # nobody may wait any more

            task = self._loop.create_task(self._found(topic))
            self._finding[topic] = task
            task.add_done_callback(end)
        return task

    async def _found(self, topic: str) -> Known:
        """Return the partitions of a topic, asked for again after failures that may pass."""
        settings = self._parts.settings
        give_up_s = self._loop.time() + settings.delivery_timeout_s
        count = 0
        while True:
            try:
                found: Known = await self._in_thread(self._parts.partitions.find, topic)
                return found
            except BrokerError as error:
                wait_s = backoff.wait_s(count + 1)
                is_last = count == settings.retries or self._loop.time() + wait_s > give_up_s
                if is_last or self._is_closed or not error.is_retriable:
                    raise
            await asyncio.sleep(wait_s)
            count += 1

    async def _wait_for_room(
        self,
        lane: Lane,
        message_count: int,
        size_bytes: int,
        target: TopicPartition,
        give_up_s: float | None,
    ) -> None:
        try:
            async with asyncio.timeout_at(give_up_s):
                await self._sending.wait_for_room(lane, message_count, size_bytes)
        except TimeoutError as error:
            waiting = lane.accumulator.message_count
            raise BufferFull(
                f"{waiting} messages wait for broker {lane.home}: there is no room for "
                f"{message_count} to {target}"
            ) from error

    async def flush(self, timeout: Timeout = UNSET) -> None:
        """Return once all that was queued before is acknowledged.

        Raises:
            TimedOut: it is not, within `timeout` seconds.
            DeliveryFailed: messages were not delivered, and the program has not read that.
        """
        seconds = self._seconds(timeout)
        self._validate()
        try:
            async with asyncio.timeout(seconds):
                await self._sending.flush()
        except TimeoutError as error:
            raise TimedOut(f"queued messages are not delivered after {seconds:g}s") from error
        self._raise_failures()

    def _raise_failures(self) -> None:
        if (loss := self._sending.take_loss()) is not None:
            raise loss
        super()._raise_failures()

    async def close(self, timeout: Timeout = UNSET) -> None:
        """Flush, and end; deliveries that are not done within `timeout` seconds fail.

        If the task is cancelled meanwhile, they fail at once. A second call does nothing.

        Raises:
            DeliveryFailed: as for `flush`.
        """
        seconds = self._seconds(timeout)
        if self._is_closed:
            return
        self._validate()
        self._is_closed = True
        self._sending.refuse()
        try:
            async with asyncio.timeout(seconds):
                await self._sending.drained()
        except TimeoutError:
            pass  # the deliveries say it
        finally:
            self._sending.end()
        await self._sending.closed()
        self._raise_failures()
