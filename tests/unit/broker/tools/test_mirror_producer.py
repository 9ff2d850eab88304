"""A mirror producer whose producer refuses a set: nothing behind it counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from broker.errors import BrokerError, InvalidMessageError
from broker.producer.producer import Delivery, Producer
from broker.protocol.primitives import Buffer
from broker.tools.mirror_producer import MirroredSet, MirrorProducer
from broker.topic import TopicPartition

SOURCE, TARGET = TopicPartition("a", 9, 0), TopicPartition("b", 0, 0)


class Refusing:
    """A producer that refuses some sets, and acknowledges all others."""

    def __init__(self, refused: set[bytes]) -> None:
        self._refused = refused
        self._deliveries: list[Delivery] = []
        self.sent: list[bytes] = []
        self.limit = 1

    def message_limit(self, partition: TopicPartition) -> int:
        return self.limit

    def send_set(
        self,
        partition: TopicPartition,
        message_set: Buffer,
        on_complete: Callable[[Delivery], None],
    ) -> None:
        self.sent.append(bytes(message_set))
        self._deliveries.append(Delivery(partition, message_set, None, on_complete))

    def flush(self) -> None:
        deliveries, self._deliveries = self._deliveries, []
        for offset, delivery in enumerate(deliveries):
            error: BrokerError | None = None
            if bytes(delivery.message_set) in self._refused:
                error = InvalidMessageError("bad")
            delivery.complete(offset, error)

    def wait_until_readable(self) -> None:
        return None

    def close(self) -> None:
        return None


def mirrored(number: int, acknowledged: Callable[[MirroredSet, int], None]) -> MirroredSet:
    return MirroredSet(SOURCE, TARGET, b"%d" % number, 1, 1, number, acknowledged)


def test_flush_when_a_set_is_refused_then_none_behind_it_is_acknowledged() -> None:
    producer = Refusing({b"1"})
    acknowledged: list[int] = []
    mirror_producer = MirrorProducer(cast(Producer, producer))
    for number in range(3):
        mirror_producer.send(
            mirrored(number, lambda one, base_offset: acknowledged.append(one.next_offset))
        )
    with pytest.raises(InvalidMessageError, match=r"not take messages of a\[9-0\] before 1: bad"):
        mirror_producer.flush()
    assert acknowledged == [0]
    assert len(mirror_producer.pending) == 2


def test_send_when_a_set_may_be_refused_then_waits_for_the_answer_and_sends_none_behind_it() -> (
    None
):
    producer = Refusing({b"1"})
    producer.limit = 0
    mirror_producer = MirrorProducer(cast(Producer, producer))
    mirror_producer.send(mirrored(0, lambda *_: None))
    with pytest.raises(InvalidMessageError):
        mirror_producer.send(mirrored(1, lambda *_: None))
    assert producer.sent == [b"0", b"1"]
