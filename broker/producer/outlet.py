"""The ways out of a producer, and the one that leads through the caller's thread."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from broker.client.cluster import Cluster, Connect
from broker.producer.channel import Channel
from broker.producer.delivery import Delivery, Failures, OnDelivery, reports_of
from broker.producer.encoder import Packer
from broker.producer.link import Link, SendRules
from broker.producer.routes import Routes
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition


class Outlet(Protocol):
    """Where a producer's payloads go."""

    def put(self, topic: str, payloads: list[bytes], key: bytes | None) -> Delivery:
        """Take the messages of one call."""

    def send_set(self, partition: TopicPartition, message_set: Buffer) -> Delivery:
        """Send a ready message set."""

    def flush(self, timeout_s: float | None) -> None:
        """Wait until all that was put is delivered or has failed."""

    def barrier(self) -> Collection[str]:
        """Wait until what was sent can be read; return the topics it went to."""

    def retry_now(self) -> None:
        """Go on with what waits for a broker, as the cluster has changed; from any thread."""

    def close(self, timeout_s: float | None) -> None:
        """End it."""


class SentDelivery(Delivery):
    """A delivery that remembers what it is made of, for reports."""

    __slots__ = ("is_wrapped", "key", "payloads")

    def __init__(
        self, partition: TopicPartition, message_set: Buffer, payloads: list[bytes]
    ) -> None:
        super().__init__(partition, message_set)
        self.payloads = payloads
        self.key: bytes | None = None
        self.is_wrapped = False


class DirectOutlet:
    """Sends in the caller's thread, with a window of unacknowledged sets for each broker.

    Args:
        cluster: says where brokers are.
        connect: makes connections to them.
        routes: picks partitions.
        packer: makes message sets.
        rules: how to send.
        max_in_flight: unacknowledged sets for each broker.
        waits: whether `put` waits for the acknowledgement.
        on_delivery: told what became of messages.
        failures: told of messages that were not delivered if `on_delivery` is not.
    """

    def __init__(
        self,
        cluster: Cluster,
        connect: Connect,
        routes: Routes,
        packer: Packer,
        rules: SendRules,
        *,
        max_in_flight: int,
        waits: bool,
        on_delivery: OnDelivery | None,
        failures: Failures,
    ) -> None:
        self._cluster = cluster
        self._connect = connect
        self._routes = routes
        self._packer = packer
        self._rules = rules
        self._max_in_flight = max_in_flight
        self._waits = waits
        self._on_delivery = on_delivery
        self._failures = failures
        self._channels: dict[int, Channel] = {}

    def put(self, topic: str, payloads: list[bytes], key: bytes | None) -> Delivery:
        """Send the messages of one call as one set.

        Raises:
            BrokerUnreachableError, RequestTimeoutError: the broker is gone, also after retries.
            BrokerError: the broker refuses the set (only if `waits`).
        """
        partition = self._routes.choose(topic, key)
        message_set, is_wrapped = self._packer.pack(topic, payloads)
        if self._on_delivery is None:
            delivery = Delivery(partition, message_set, self._failures)
        else:
            delivery = SentDelivery(partition, message_set, payloads)
            delivery.key, delivery.is_wrapped = key, is_wrapped
        channel = self._channel(partition)
        channel.send(delivery)
        if self._waits:
            channel.drain()
            delivery.result()
        return delivery

    def send_set(self, partition: TopicPartition, message_set: Buffer) -> Delivery:
        """Send a ready message set; what becomes of it is for the caller to ask."""
        delivery = Delivery(partition, message_set)
        self._channel(partition).send(delivery)
        return delivery

    def _channel(self, partition: TopicPartition) -> Channel:
        channel = self._channels.get(partition.home)
        if channel is None:
            channel = self._channels[partition.home] = Channel(
                open_link(self._cluster, self._connect, partition, self._rules),
                rules=self._rules,
                max_in_flight=self._max_in_flight,
                on_done=None if self._on_delivery is None else self._report,
            )
        return channel

    def _report(self, delivery: Delivery) -> None:
        if self._on_delivery is not None and isinstance(delivery, SentDelivery):
            self._on_delivery(
                reports_of(
                    delivery.partition,
                    delivery.payloads,
                    [delivery.key] * len(delivery.payloads),
                    delivery.base_offset,
                    is_wrapped=delivery.is_wrapped,
                    error=delivery.error,
                )
            )

    def flush(self, timeout_s: float | None) -> None:
        """Wait for all acknowledgements, however long the brokers may take."""
        for channel in self._channels.values():
            channel.drain()

    def barrier(self) -> Collection[str]:
        """Wait until all that was sent can be read; return the topics it went to."""
        self.flush(None)
        for channel in self._channels.values():
            channel.barrier()
        return {one.topic for channel in self._channels.values() for one in channel.ends}

    def retry_now(self) -> None:
        """Do nothing: whoever waits for a broker here is the caller."""

    def close(self, timeout_s: float | None) -> None:
        """Close all connections; deliveries that are not done stay undone."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()


def open_link(
    cluster: Cluster, connect: Connect, partition: TopicPartition, rules: SendRules
) -> Link:
    """Return a link to the broker that has a partition, and others of the same home."""
    return Link(
        lambda: cluster.leader(partition), connect, home=partition.home, rule=rules.reconnect
    )
