"""A broker without sockets: what it does with each publish is told beforehand."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from types import SimpleNamespace
from typing import Any

from broker.client.cluster import Cluster, Connect
from broker.errors import (
    NO_ERROR,
    BrokerError,
    BrokerUnreachableError,
    InvalidMessageError,
    RequestTimeoutError,
    ShuttingDownError,
)
from broker.producer.delivery import Report
from broker.producer.parts import Parts
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings
from broker.protocol.client_requests import (
    Acks,
    PublishRequest,
)
from broker.protocol.codec import decode
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import INT32, Buffer, Reader
from broker.protocol.requests import RequestHeader
from broker.protocol.responses import (
    BrokerAddress,
    HelloResponse,
    Published,
    encode_publish_response,
)
from broker.topic import TopicPartition

_PARTS = ("partitioner", "encoder", "on_delivery", "callbacks")


def producer_with(cluster: Cluster, connect: Connect, named: Mapping[str, Any]) -> Producer:
    """Return a producer with settings, and parts, by their names."""
    parts = {name: named[name] for name in _PARTS if name in named}
    settings = {name: value for name, value in named.items() if name not in _PARTS}
    return Producer(cluster, connect, ProducerSettings(**settings), **parts)


def parts_with(
    cluster: Cluster, connect: Connect, settings: ProducerSettings, partitions: object = None
) -> Parts:
    """Return the parts of a producer whose partitions note nothing."""
    parts = Parts(cluster=cluster, connect=connect, settings=settings)
    parts.partitions = partitions or SimpleNamespace(  # type: ignore[assignment]  # as used
        replacement=lambda topic, broker_id: None, note_presence=lambda broker_id, is_there: None
    )
    return parts


class Act(Enum):
    """What becomes of a publish."""

    TAKE = auto()
    LOSE = auto()  # the connection breaks before anything is written
    LOSE_ANSWER = auto()  # the connection breaks after it is written
    SHUT_DOWN = auto()
    REFUSE = auto()
    BURST = auto()  # something nobody thought of


class FakeBroker(Cluster):
    """Broker 0, with `partition_count` partitions of every topic; it is also the cluster.

    Args:
        acts: one for each publish; it takes all after that.
        partition_count: how many.
    """

    def __init__(self, acts: Iterable[Act] = (), *, partition_count: int = 1) -> None:
        self.acts = list(acts)
        self.partition_count = partition_count
        self.sets: dict[TopicPartition, list[bytes]] = defaultdict(list)
        self.publish_count = 0
        self.is_away = False
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.is_asked = threading.Event()
        self.is_interrupted = False

    def brokers(self) -> list[BrokerAddress]:
        return [BrokerAddress(0, "fake", 1)]

    def topics(self) -> list[str]:
        return sorted({one.topic for one in self.sets})

    def partitions(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, 0, index) for index in range(self.partition_count)]

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        if self.is_away:
            raise BrokerUnreachableError("it is away")
        return BrokerAddress(0, "fake", 1)

    def address(self, broker_id: int) -> BrokerAddress:
        return self.leader(TopicPartition("any", broker_id, 0))

    def log(self, partition: TopicPartition) -> list[tuple[int, bytes]]:
        """Return offset and payload of all that was written to a partition."""
        decoded = decode(b"".join(self.sets[partition]), 0)
        return [(offset, payload) for offset, _, payload in decoded.messages]

    def publish(self, request: PublishRequest) -> bytes:
        """Return the body of the response."""
        self.is_asked.set()
        assert self.may_answer.wait(60)
        if self.is_interrupted:
            raise BrokerUnreachableError("interrupted")
        act = self.acts[self.publish_count] if self.publish_count < len(self.acts) else Act.TAKE
        self.publish_count += 1
        if act is Act.LOSE:
            raise BrokerUnreachableError("lost")
        if act is Act.BURST:
            raise RuntimeError("nobody thought of this")
        results = [self._publish_one(act, *one[:2]) for one in request.sets]
        if act is Act.LOSE_ANSWER:
            raise RequestTimeoutError("no answer")
        return encode_publish_response(results)

    def _publish_one(self, act: Act, partition: TopicPartition, message_set: Buffer) -> Published:
        if act is Act.SHUT_DOWN:
            return Published(partition, ShuttingDownError.code, -1, "going down")
        if act is Act.REFUSE:
            return Published(partition, InvalidMessageError.code, -1, "refused")
        message_set = bytes(message_set)
        base_offset = sum(map(len, self.sets[partition]))
        self.sets[partition].append(message_set)
        return Published(partition, NO_ERROR, base_offset, "")


class FakeConnection:
    """A connection to a `FakeBroker`."""

    def __init__(self, broker: FakeBroker, address: BrokerAddress) -> None:
        self.address = address
        self.name = "broker 0"
        self.is_open = True
        self.client_id = "fake"
        self.retries_refused = False
        self._broker = broker
        self._request: PublishRequest | None = None

    def hello(self) -> HelloResponse:
        return HelloResponse(0, "", "", 1, 1, {})

    def next_correlation_id(self) -> int:
        return 1

    def send(self, *parts: Buffer) -> None:
        """Take the frame of a publish."""
        reader = Reader(b"".join(parts)[INT32.size :])
        reader.int16()
        RequestHeader.decode(reader)
        self._take(PublishRequest.decode(reader))

    def send_extension(self, request: ExtensionRequest) -> int:
        assert isinstance(request, PublishRequest)
        self._take(request)
        return 1

    def _take(self, request: PublishRequest) -> None:
        if request.acks is Acks.NONE:
            self._broker.publish(request)
        else:
            self._request = request

    def has_received(self, within_s: float = 0.0) -> bool:
        return within_s > 0  # then `receive` waits

    def receive(self) -> bytes:
        request, self._request = self._request, None
        assert request is not None
        return self._broker.publish(request)

    def open_extension(self, frame: bytes, correlation_id: int) -> Reader:
        return Reader(frame)

    def drop_response(self) -> None:
        raise BrokerUnreachableError("gone down")

    def interrupt(self) -> None:
        self._broker.is_interrupted = True
        self._broker.may_answer.set()

    def close(self) -> None:
        self.is_open = False


class Reports:
    """Takes reports, and counts them by message."""

    def __init__(self) -> None:
        self.all: list[Report] = []

    def __call__(self, reports: Sequence[Report]) -> None:
        self.all += reports

    @property
    def errors(self) -> dict[bytes, BrokerError | None]:
        return {bytes(one.message): one.error for one in self.all}

    @property
    def offsets(self) -> list[int]:
        return [one.offset for one in self.all]
