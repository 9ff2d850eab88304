"""Synchronous producer: sends in the caller's thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from broker.producer.delivery import Delivery, Failures, OnDelivery, reports_of
from broker.producer.dispatcher import Dispatcher, Moved, OnWait
from broker.producer.encoder import Packer
from broker.producer.partitioner import TopicPartitions
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition


class SyncProducer:
    """Sends in the caller's thread, with a window of unacknowledged sets for each broker.

    Its methods are those of `Producer`; `waits`: `send` waits for the acknowledgement.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        partitions: TopicPartitions,
        packer: Packer,
        *,
        waits: bool,
        on_delivery: OnDelivery | None,
        failures: Failures,
    ) -> None:
        self._dispatcher = dispatcher
        self._partitions = partitions
        self._packer = packer
        self._waits = waits
        self._on_delivery = on_delivery
        self._failures = failures

    def send(self, topic: str, messages: Iterable[Any], key: bytes | None) -> Delivery:
        """Send the messages of one call as one set."""
        messages = messages if isinstance(messages, list) else list(messages)
        if self._on_delivery is None:
            message_set, _ = self._packer.pack_messages(topic, messages)
            partition = self._partitions.choose(topic, key)
            delivery = Delivery(
                partition,
                message_set,
                self._failures,
                can_move=key is None,
                message_count=len(messages),
            )
        else:
            delivery = self._reported(self._on_delivery, topic, messages, key)
        self._send(delivery)
        if self._waits:
            while not delivery.is_done:
                self._dispatcher.step()
                self._raise_failure()
            delivery.result()
        return delivery

    def _reported(
        self, on_delivery: OnDelivery, topic: str, messages: list[Any], key: bytes | None
    ) -> Delivery:
        payloads = self._packer.payloads(messages)
        message_set, is_wrapped = self._packer.pack(topic, payloads)

        def report(delivery: Delivery) -> None:
            reports = reports_of(
                delivery.partition,
                payloads,
                [key] * len(payloads),
                delivery.base_offset,
                is_wrapped=is_wrapped,
                error=delivery.error,
            )
            on_delivery(reports)

        partition = self._partitions.choose(topic, key)
        return Delivery(
            partition,
            message_set,
            None,
            report,
            can_move=key is None,
            message_count=len(payloads),
        )

    def send_set(
        self,
        partition: TopicPartition,
        message_set: Buffer,
        on_complete: Callable[[Delivery], None] | None,
        *,
        can_move: bool,
    ) -> Delivery:
        """Send a ready message set."""
        packed, is_wrapped = self._packer.compress(partition.topic, message_set)
        if is_wrapped and 0 < self.message_limit(partition) < len(packed) - ENTRY_OVERHEAD_BYTES:
            packed = message_set
        delivery = Delivery(partition, packed, None, on_complete, can_move=can_move)
        self._send(delivery)
        return delivery

    def _send(self, delivery: Delivery) -> None:
        self._dispatcher.send(delivery)
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure = self._dispatcher.take_failure()
        if failure is not None:
            raise failure

    def message_limit(self, partition: TopicPartition) -> int:
        """Return the largest payload that the leader of a partition takes; 0 if it is not known."""
        return self._dispatcher.message_limit(partition)

    def watch(self, on_wait: OnWait, on_move: Callable[[Moved], object] | None) -> None:
        """Set the callbacks for messages that wait, and for sets that move."""
        self._dispatcher.on_wait = on_wait
        if on_move is not None:
            self._dispatcher.on_move = on_move

    def poll(self) -> None:
        """Read the acknowledgements that have come."""
        self._dispatcher.poll()
        self._raise_failure()

    def flush(self, timeout_s: float | None) -> None:
        """Wait for all acknowledgements."""
        self._dispatcher.flush()
        self._raise_failure()

    def wait_until_readable(self) -> Collection[str]:
        """Wait until all that was sent can be read; return the topics it went to."""
        self.flush(None)
        self._dispatcher.await_readable()
        return self._dispatcher.topics

    def retry_now(self) -> None:
        """Make waiting sets due at once, as the cluster has changed; from any thread."""
        self._dispatcher.retry_now()

    def close(self, timeout_s: float | None) -> None:
        """Close all connections; deliveries that are not done stay undone."""
        self._dispatcher.close()
