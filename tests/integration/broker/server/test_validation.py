"""What exceeds the validation budget of a processor is offloaded, to the same effect."""

from __future__ import annotations

from broker.errors import InvalidMessageError
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set, wrap
from broker.protocol.requests import MultiProduceRequest, ProduceRequest, encode_request
from broker.protocol.responses import decode_publish_response
from broker.server.broker import Broker
from broker.server.requests.validation import (
    TURN_BYTES,
)
from tests.integration.broker.factories import PeerFactory
from tests.integration.broker.server.peer import Peer, partition
from tests.support.waiting import wait_until

SMALL = encode([b"hello"])
LARGE = build_set([b"x" * 1000] * (TURN_BYTES // 1000 + 1), Codec.GZIP)
"""A few kilobytes that unfold to more than the validation budget of a turn."""
LARGE_COUNT = TURN_BYTES // 1000 + 1
BOMB = wrap(bytes(65 << 20), Codec.ZSTD)


def messages_in(broker: Broker, topic: str) -> int:
    return int(broker.status()["metrics"][f"BrokerTopicStat.{topic}"]["MessagesIn"])


def test_publish_when_it_unfolds_to_much_then_is_appended_and_answered(
    running_broker: Broker, peer: Peer
) -> None:
    assert peer.publish("events", LARGE).error == 0
    assert peer.fetch("events", 0) == (0, LARGE)
    assert messages_in(running_broker, "events") == LARGE_COUNT


def test_publish_when_one_set_of_many_unfolds_to_much_then_each_is_appended_once(
    running_broker: Broker, peer: Peer
) -> None:
    sets = tuple(
        PartitionSet(partition(topic), one)
        for topic, one in (("a", SMALL), ("b", LARGE), ("c", SMALL), ("d", BOMB))
    )
    request = PublishRequest(Acks.COMMITTED, 10_000, sets)

    found = decode_publish_response(peer.call(request))

    assert [one.error for one in found] == [0, 0, 0, InvalidMessageError.code]
    assert [peer.fetch(topic, 0)[1] for topic in "abc"] == [SMALL, LARGE, SMALL]


def test_produce_when_some_unfold_to_much_then_all_are_appended_in_order(
    running_broker: Broker, peer: Peer
) -> None:
    sets = [SMALL, LARGE, SMALL, LARGE, LARGE, SMALL]
    peer.send(*[ProduceRequest("events", 0, one) for one in sets])
    peer.flush("events")

    assert peer.fetch("events", 0) == (0, b"".join(sets))
    assert messages_in(running_broker, "events") == 3 * (LARGE_COUNT + 1)


def test_multiproduce_when_a_later_set_unfolds_to_much_then_each_is_appended_once(
    running_broker: Broker, peer: Peer
) -> None:
    sets = [SMALL, LARGE, SMALL]
    peer.send(MultiProduceRequest(tuple(ProduceRequest("events", 0, one) for one in sets)))
    peer.flush("events")

    assert peer.fetch("events", 0) == (0, b"".join(sets))


def test_produce_when_it_unfolds_too_far_then_closed_with_all_before_it_appended(
    running_broker: Broker, connect: PeerFactory, peer: Peer
) -> None:
    sender = connect(running_broker)
    sender.send(*[ProduceRequest("events", 0, one) for one in (SMALL, LARGE, BOMB, SMALL)])

    assert sender.is_closed()
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, SMALL + LARGE)


def test_produce_when_many_unfold_to_much_together_then_others_are_served_in_between(
    running_broker: Broker, connect: PeerFactory, peer: Peer
) -> None:
    """Each alone is little enough for a processor; together they are a minute's work."""
    one = build_set([b""] * (TURN_BYTES // 20), Codec.ZSTD)
    frame = encode_request(ProduceRequest("events", 0, one))
    peer.publish("others", SMALL)
    connect(running_broker).send_bytes(frame * 1000)
    wait_until(lambda: running_broker.status()["partitions"] == 2, "the first of them")

    assert peer.fetch("others", 0) == (0, SMALL)
    assert messages_in(running_broker, "events") < 500 * (TURN_BYTES // 20)
