"""Version 1 of PUBLISH: sets of idempotent producers of 0.7 topics."""

from __future__ import annotations

import pytest

from broker.protocol.client_requests import Acks, PartitionSet, StampedPublishRequest
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message import ProducerStamp
from broker.protocol.message_set import wrap
from broker.protocol.responses import Published, decode_publish_response
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, partition

SET = encode([b"one", b"two", b"three"])


@pytest.fixture
def peer(start_broker: BrokerFactory, connect: PeerFactory) -> Peer:
    return connect(start_broker())


def publish(
    peer: Peer, sequence: int, data: bytes = SET, *, index: int = 0, epoch: int = 0
) -> Published:
    stamp = ProducerStamp(7, epoch, sequence, 0)
    sets = (PartitionSet(partition("events", index), data, stamp),)
    (found,) = decode_publish_response(peer.call(StampedPublishRequest(Acks.COMMITTED, 5000, sets)))
    return found


def test_publish_when_a_set_is_sent_again_then_it_is_answered_as_the_first_time(peer: Peer) -> None:
    first, second = publish(peer, 0), publish(peer, 3)
    assert (first.error, second.error) == (0, 0)
    assert (publish(peer, 0).base_offset, publish(peer, 3).base_offset) == (0, len(SET))
    assert peer.read("events", 0).message_set == SET + SET


def test_publish_when_messages_are_in_a_wrapper_then_each_has_a_sequence(peer: Peer) -> None:
    wrapper = wrap(SET, Codec.GZIP)
    assert publish(peer, 0, wrapper).error == 0
    assert publish(peer, 3).base_offset == len(wrapper)


def test_publish_when_sequences_do_not_follow_then_the_set_is_refused_and_the_next_is_not(
    peer: Peer,
) -> None:
    assert publish(peer, 0, epoch=1).error == 0
    assert publish(peer, 6, epoch=1).error == 45
    assert publish(peer, 3, epoch=0).error == 47
    assert publish(peer, 3, epoch=1).error == 0


def test_publish_when_the_partition_is_left_to_the_broker_then_a_set_with_a_stamp_is_refused(
    peer: Peer,
) -> None:
    assert publish(peer, 0, index=-1).error == 42


def test_publish_when_a_set_has_no_stamp_then_it_is_appended_each_time(peer: Peer) -> None:
    sets = (PartitionSet(partition("events"), SET),)
    for _ in range(2):
        peer.call(StampedPublishRequest(Acks.COMMITTED, 5000, sets))
    assert peer.read("events", 0).message_set == SET + SET
