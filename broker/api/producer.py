"""A producer that queues messages, sends them by threads, and gives a delivery for each call."""

from __future__ import annotations

import logging
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

from broker import deadlines
from broker.api import values
from broker.api.access import Access, ClosedAtEnd, repeated
from broker.api.errors import Closed, Error, Partial, TimedOut, public, translated
from broker.api.values import (
    UNSET,
    Addressed,
    Headers,
    PartitionLike,
    Receipt,
    Stored,
    Timeout,
    Unset,
    Value,
    payloads_of,
)
from broker.client.cluster import Cluster, Connect
from broker.errors import ArgumentError, BrokerError
from broker.producer import unclosed
from broker.producer.delivery import Delivery as FloorDelivery
from broker.producer.delivery import QueuedDelivery
from broker.producer.partitioner import Partitioner, hash_partitioner
from broker.producer.parts import Parts
from broker.producer.producer_pool import ProducerPool, refuse_senders
from broker.producer.settings import BatchRules, ProducerSettings, QueueRules
from broker.producer.stamper import Stamper, has_envelopes
from broker.protocol.compression import Codec
from broker.topic import TopicPartition

logger = logging.getLogger("pylogctl")

BATCH_BYTES = 1 << 20
BUFFER_BYTES = 32 << 20
MAX_AGE_S = 10.0  # of the partitions of a topic
COMMIT_S = 30.0  # that a broker may take to commit a set

CodecName = Literal["none", "gzip", "snappy", "lz4", "zstd"]

_D = TypeVar("_D")
_lock = threading.Lock()  # guards the callbacks of all deliveries


class Delivery:
    """The outcome of a call of `Producer.send`; the reading half of `concurrent.futures.Future`."""

    __module__ = "pylogctl"
    __slots__ = ("_callbacks", "_inner", "_producer")

    def __init__(self, producer: Producer, inner: FloorDelivery) -> None:
        self._producer = producer
        self._inner = inner
        inner.on_complete = self._complete
        self._callbacks: list[Callable[[Delivery], object]] = []
        if producer._on_delivery is not None:
            self._callbacks.append(producer._on_delivery)

    def __repr__(self) -> str:
        state = "done" if self.done() else "waiting"
        return f"Delivery({self._inner.partition.topic}, {state})"

    def done(self) -> bool:
        """Return whether the messages are acknowledged or have failed."""
        return self._inner.is_done

    def result(self, timeout: Timeout = UNSET) -> Receipt:
        """Return where the messages are, once they are acknowledged.

        Raises:
            TimedOut: they are not within `timeout` seconds; they may still be sent.
            Error: they could not be delivered; or this is called in a callback of the producer
                before the delivery is done.
        """
        if (error := self.exception(timeout)) is not None:
            raise error
        inner = self._inner
        partition = inner.partition
        return Receipt(partition.topic, partition, inner.base_offset, inner.next_offset)

    def exception(self, timeout: Timeout = UNSET) -> Error | None:
        """Return why the messages could not be delivered, None if they are acknowledged.

        Raises:
            TimedOut: as for `result`.
        """
        if not self._inner.is_done:
            self._wait(self._producer._seconds(timeout))
        error = self._inner.error
        return None if error is None else public(error)

    def _wait(self, seconds: float | None) -> None:
        if self._producer._pool.is_own_thread():
            raise Error("in a callback of its producer a delivery that is not done never gets done")
        started_s = time.monotonic()
        limit_s = deadlines.left_s(threading.TIMEOUT_MAX if seconds is None else seconds)
        if not self._inner.wait(limit_s):
            waited_s, topic = time.monotonic() - started_s, self._inner.partition.topic
            raise TimedOut(f"a message to '{topic}' is not acknowledged after {waited_s:.2g}s")

    def add_done_callback(self, fn: Callable[[Delivery], object]) -> None:
        """Call a function with this delivery once it is done, by a thread of the producer."""
        with _lock:
            if not self.done():
                self._callbacks.append(fn)
                return
        self._run(fn)

    def _complete(self, _: object) -> None:
        """Run the callbacks; called by the sender thread, once, or at once without messages."""
        with _lock:
            callbacks, self._callbacks = self._callbacks, []
        for fn in callbacks:
            self._run(fn)

    def _run(self, fn: Callable[[Delivery], object]) -> None:
        try:
            fn(self)
        except BaseException:  # `sys.exit` too: it must not end the thread of others
            topic = self._inner.partition.topic
            logger.exception("failure in a callback of a delivery to '%s'", topic)


def parts_of(
    client: Access,
    acks: values.AcksLike,
    codec: Codec | CodecName = "none",
    linger: float = 0.0,
    batch_bytes: int = BATCH_BYTES,
    buffer_bytes: int = BUFFER_BYTES,
    partitioner: Partitioner = hash_partitioner,
    *,
    envelope: bool | None = False,
    idempotent: bool = False,
) -> Parts:
    """Return what a producer of a client sends with; raise if an argument is not valid."""
    values.number_of("linger", linger, 0)
    values.whole_of("batch_bytes", batch_bytes, 1)
    values.whole_of("buffer_bytes", buffer_bytes, 1)
    values.callable_of("partitioner", partitioner)
    batches = BatchRules(
        capacity=buffer_bytes,
        capacity_bytes=buffer_bytes,
        batch_count=buffer_bytes,
        batch_bytes=batch_bytes,
        linger_s=linger,
    )
    timeout_s = client._timeout_s
    settings = ProducerSettings(
        values.acks_of(acks),
        codec if isinstance(codec, Codec) else codec_of(codec),
        timeout_s=COMMIT_S if timeout_s is None else min(COMMIT_S, timeout_s),
        delivery_timeout_s=math.inf if timeout_s is None else timeout_s,
        retries=client._retries,
        queueing=QueueRules(
            batches, lingers_when_full=False, refresh_s=MAX_AGE_S, logs_failures=False
        ),
        is_idempotent=idempotent,
    )
    return Parts(
        cluster=client._cluster,
        connect=client._connect,
        settings=settings,
        partitioner=partitioner,
        ledger=client._counts.producers,
        stamper=_stamper(client._cluster, client._connect, envelope),
    )


def _stamper(cluster: Cluster, connect: Connect, envelope: bool | None) -> Stamper | None:
    """Return what puts envelopes in front of messages; by the topics' settings for None."""
    if envelope is not None:
        return Stamper() if envelope else None

    def is_wanted(topic: str) -> bool:
        try:
            return has_envelopes(cluster, connect, topic)
        except BrokerError as error:
            logger.warning("messages to '%s' get no envelope; its setting: %s", topic, error)
            return False

    return Stamper(is_wanted)


def codec_of(name: object) -> Codec:
    """Return the codec that a name means."""
    try:
        return Codec[name.upper()] if isinstance(name, str) else Codec(name)  # type: ignore[arg-type]  # an error if it is none
    except (KeyError, ValueError):
        valid = ", ".join(one.name.lower() for one in Codec)
        raise ArgumentError(f"there is no codec '{name}'; valid: {valid}") from None


class ProducerCore:
    """What the producers for threads and for an event loop share."""

    def __init__(self, parts: Parts, on_delivery: Callable[[Any], object] | None) -> None:
        if on_delivery is not None:
            values.callable_of("on_delivery", on_delivery)
        self._parts = parts
        self._on_delivery = on_delivery
        self._is_closed = False

    def _seconds(self, timeout: Timeout) -> float | None:
        """Return the seconds that a timeout means, by default the client's; None for no limit."""
        if isinstance(timeout, Unset):
            timeout = self._parts.settings.delivery_timeout_s
        return values.seconds_of(timeout)

    def _checked(self, values: Iterable[Value]) -> list[bytes]:
        """Return the bytes of messages that may all be sent."""
        with translated():
            return self._parts.packer.payloads(payloads_of(values))

    def _one_partition(self, topic: str, partition: PartitionLike) -> TopicPartition:
        """Return the one partition of a topic that a value means; see `matcher_of`."""
        matches = values.matcher_of(partition)
        partitions = self._parts.partitions
        there = partitions.partitions(topic)
        if not any(map(matches, there)):  # it may be new
            partitions.refresh(topic)
            there = partitions.partitions(topic)
        found = list(filter(matches, there))
        if len(found) == 1:
            return found[0]
        shown = ", ".join(one.name for one in found or there)
        raise ArgumentError(f"{partition!r} is not one partition of topic '{topic}': {shown}")

    def _raise_failures(self) -> None:
        """Raise if messages were not delivered, and the program has not read that."""
        failure = self._parts.failures.take()
        if failure is not None:
            raise failure


class Producer(ProducerCore, ClosedAtEnd):
    """Queues messages, and sends them in batches by threads; made by `Client.producer`.

    For any number of threads. Leaving a `with` block flushes; no message is lost in silence: one
    that was not delivered is raised by its delivery, given to `on_delivery`, or raised by the next
    `flush` or `close`.
    """

    __module__ = "pylogctl"

    def __init__(
        self,
        parts: Parts,
        on_delivery: Callable[[Delivery], object] | None = None,
        on_close: Callable[[Producer], object] | None = None,  # None: its client ends it
    ) -> None:
        super().__init__(parts, on_delivery)
        self._on_close = on_close
        assert parts.settings.queueing is not None  # `parts_of`
        self._pool = ProducerPool(parts, parts.settings.queueing)
        if on_close is None:
            unclosed.forget(self._pool)  # `Client.send` tells of its messages

    def __del__(self) -> None:  # what is queued knows this object: that is done
        if not getattr(self, "_is_closed", True) and self._on_close is not None:
            unclosed.later(self.close)
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)

    def send(
        self,
        topic: str,
        value: Value | None,
        *,
        key: Value | None = None,
        partition: PartitionLike | None = None,
        headers: Headers | None = None,
        timestamp: datetime | int | None = None,
        timeout: Timeout = UNSET,
    ) -> Delivery:
        """Queue a message, and wait only while the buffer is full.

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
        return self._send(topic, [payload], key, partition, timeout, stored)

    def send_many(
        self,
        topic: str,
        values: Iterable[Value],
        *,
        key: Value | None = None,
        partition: PartitionLike | None = None,
        timeout: Timeout = UNSET,
    ) -> Delivery:
        """Queue messages for one partition, in this order; all of them or none. See `send`."""
        return self._send(topic, payloads_of(values), key, partition, timeout)

    def send_all(
        self, messages: Iterable[Addressed], *, timeout: Timeout = UNSET
    ) -> list[Delivery]:
        """Queue messages for several topics, in this order.

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
        deliveries: list[Delivery] = []
        failed: dict[int, Error] = {}
        with deadlines.Limit(self._seconds(timeout)):
            for place, (topic, payload, key) in enumerate(checked):
                try:
                    deliveries.append(self._send(topic, [payload], key, None, None))
                except Error as error:
                    failed[place] = error
        return queued_of(deliveries, failed, checked)

    def _send(
        self,
        topic: str,
        payloads: list[bytes],
        key: Value | None,
        partition: PartitionLike | None,
        timeout: Timeout,
        stored: Stored | None = None,
    ) -> Delivery:
        if self._is_closed:
            raise Closed("the producer is closed")
        values.topic_of(topic)
        key_bytes = values.key_of(key)
        try:
            with deadlines.Limit(self._seconds(timeout)):
                try:
                    target = self._target(topic, key_bytes, partition)
                except BrokerError as error:
                    retries = self._parts.settings.retries
                    is_final = retries == 0 or not error.is_retriable
                    if is_final or self._pool.is_own_thread():
                        raise
                    target = repeated(lambda: self._target(topic, key_bytes, partition), retries)
                record = values.record_for(target, key_bytes, stored)
                if self._parts.stamper is not None and record is None:
                    payloads = self._parts.stamper.stamp(topic, payloads)
                payloads = self._parts.packer.payloads(payloads)
                inner = QueuedDelivery(
                    target,
                    failures=self._parts.failures,
                    left_count=len(payloads),
                    can_move=key is None and partition is None and record is None,
                    record=record,
                )
                if record is not None:
                    self._parts.packer.validate_records(inner, payloads)
                delivery = Delivery(self, inner)
                self._pool.put(payloads, inner)
        except BrokerError as error:  # as `translated` does, which takes longer
            raise public(error) from error
        if not payloads:
            delivery._complete(inner)
        return delivery

    def _target(
        self, topic: str, key: bytes | None, partition: PartitionLike | None
    ) -> TopicPartition:
        if partition is None:
            return self._parts.partitions.choose(topic, key)
        return self._one_partition(topic, partition)

    def _abandon(self) -> None:
        """Take no more messages, without a flush; see `Client`."""
        self._is_closed = True

    def flush(self, timeout: Timeout = UNSET) -> None:
        """Return once all that was queued before is acknowledged.

        Raises:
            TimedOut: it is not, within `timeout` seconds.
            DeliveryFailed: messages were not delivered, and the program has not read that.
        """
        with translated(), deadlines.Limit(self._seconds(timeout)):
            self._pool.flush(deadlines.left_s(threading.TIMEOUT_MAX))
            self._raise_failures()

    def close(self, timeout: Timeout = UNSET) -> None:
        """Flush, and end; deliveries that are not done within `timeout` seconds fail.

        A second call does nothing.

        Raises:
            DeliveryFailed: as for `flush`.
        """
        seconds = self._seconds(timeout)
        refuse_senders("close")
        if self._is_closed:
            return
        self._is_closed = True
        try:
            with translated(), deadlines.Limit(seconds):
                self._pool.close(deadlines.left_s(threading.TIMEOUT_MAX))
                self._raise_failures()
        finally:
            if self._on_close is not None:
                self._on_close(self)


def receipts_of(receipts: list[Receipt], failed: Mapping[int, Error]) -> list[Receipt]:
    """Return the receipts of several messages; raise if some failed, by their place."""
    return _results_of(receipts, failed, "acknowledged", lambda _: "")


def queued_of(
    deliveries: list[_D], failed: Mapping[int, Error], checked: Sequence[tuple[str, Any, Any]]
) -> list[_D]:
    """Return the deliveries of several messages; raise if some are not queued, by their place."""
    return _results_of(
        deliveries, failed, "queued", lambda place: f"message {place} to '{checked[place][0]}': "
    )


def _results_of(
    results: list[_D], failed: Mapping[int, Error], done: str, name_of: Callable[[int], str]
) -> list[_D]:
    if not failed:
        return results
    place = min(failed)
    first = failed[place]
    if not results:
        raise first
    count = len(results) + len(failed)
    text = f"{len(failed)} of {count} messages were not {done}: {name_of(place)}{first}"
    by_place = {str(place): failed[place] for place in sorted(failed)}
    raise Partial(text, results, by_place) from first
