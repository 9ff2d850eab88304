"""Publish requests that are taken together have the effect they have one after the other."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.errors import RequestTimedOutError, StorageError
from broker.log.segment import Disk
from broker.protocol import append_request
from broker.protocol.client_connection import encode_extension_parts
from broker.protocol.client_requests import Acks, HelloRequest, PartitionSet, PublishRequest
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.requests import RequestHeader
from broker.protocol.responses import (
    HELLO,
    Published,
    decode_extension_response,
    decode_publish_response,
)
from broker.server.broker import Broker
from broker.topic import TopicPartition
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, extension_frame, partition, publish_request

MAX_MESSAGE_BYTES = 50
LAST_ID = 9_999
ONE = encode([b"one message"])
_numbers = itertools.count()

payloads = st.lists(st.binary(max_size=20), min_size=1, max_size=4)
sets = st.one_of(
    *[payloads.map(encode)] * 6,
    st.just(b""),
    payloads.map(lambda one: build_set(one, Codec.GZIP)),
    st.builds(lambda whole, cut: encode(whole)[: -min(cut, 9)], payloads, st.integers(1, 9)),
    payloads.map(lambda one: encode(one)[:-1] + b"\xff\xff"),
    st.just(encode([bytes(MAX_MESSAGE_BYTES + 1)])),
    st.binary(max_size=30),
)
publishes = st.builds(
    lambda acks, place, message_set: (acks, place, message_set),
    st.sampled_from([Acks.WRITTEN] * 4 + [Acks.COMMITTED, Acks.NONE]),
    st.sampled_from([(-1, 0)] * 5 + [(0, 0), (0, 1), (-1, 1), (-1, 7), (3, 0)]),
    sets,
)


def frames_of(topic: str, requests: list[tuple[Acks, tuple[int, int], bytes]]) -> list[bytes]:
    """Return the frames of publishes to one topic, with correlation ids from 0."""
    return [
        extension_frame(
            PublishRequest(acks, 10_000, (PartitionSet(TopicPartition(topic, *place), data),)),
            number,
        )
        for number, (acks, place, data) in enumerate(requests)
    ]


def answers_until_hello(peer: Peer) -> list[tuple[int, list[Published]]]:
    """Return correlation ids and results up to the answer of a hello that is sent now.

    Terms are without the creation of the topic, in which two topics differ.
    """
    peer.send_extension(HelloRequest(), LAST_ID)
    answers: list[tuple[int, list[Published]]] = []
    while True:
        number, body = decode_extension_response(peer.receive())
        if number == LAST_ID:
            HELLO.decode(body)
            return answers
        results = decode_publish_response(body)
        answers.append((number, [one._replace(term=one.term & 0xFFFFFFFF) for one in results]))


@pytest.fixture
def strict_broker(start_broker: BrokerFactory) -> Broker:
    return start_broker(max_message_bytes=MAX_MESSAGE_BYTES, num_partitions=2)


@pytest.fixture
def two_peers(strict_broker: Broker, connect: PeerFactory) -> Iterator[tuple[Peer, Peer]]:
    yield connect(strict_broker), connect(strict_broker)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(publishes, min_size=2, max_size=10), st.booleans())
def test_publish_run_when_sent_in_one_write_then_answered_and_stored_as_one_by_one(
    two_peers: tuple[Peer, Peer],
    requests: list[tuple[Acks, tuple[int, int], bytes]],
    exists: bool,
) -> None:
    together, singly = two_peers
    number = next(_numbers)
    topics = (f"a-{number}", f"b-{number}")
    together.make_topics(topics)
    if exists:  # its logs
        for topic in topics:
            for index in (0, 1):
                together.send_bytes(frames_of(topic, [(Acks.NONE, (-1, index), ONE)])[0])
        answers_until_hello(together)
    together.send_bytes(b"".join(frames_of(topics[0], requests)))
    of_run = answers_until_hello(together)
    of_each = []
    for frame in frames_of(topics[1], requests):
        singly.send_bytes(frame)
        of_each += answers_until_hello(singly)
    assert str(of_run).replace(topics[0], topics[1]) == str(of_each)
    for index in (0, 1):
        for topic in topics:  # what was written is flushed, and so visible, after this
            together.send_bytes(frames_of(topic, [(Acks.COMMITTED, (-1, index), b"")])[0])
    answers_until_hello(together)
    for index in (0, 1):
        ours, theirs = (together.fetch(topic, 0, index=index) for topic in topics)
        assert ours == theirs


def test_publish_run_when_all_go_to_one_log_then_one_write_takes_them(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer.publish("events", ONE)
    writes: list[int] = []
    write_all = Disk.write_all

    def count(disk: Disk, fd: int, data: bytes, position: int) -> None:
        writes.append(len(data))
        write_all(disk, fd, data, position)

    monkeypatch.setattr(Disk, "write_all", count)
    peer.send_bytes(
        b"".join(extension_frame(publish_request("events", ONE), n) for n in range(100))
    )
    answers = answers_until_hello(peer)
    assert [number for number, _ in answers] == list(range(100))
    assert [one.base_offset for _, (one,) in answers] == [len(ONE) * n for n in range(1, 101)]
    assert sum(writes) == 100 * len(ONE)
    assert len(writes) < 10  # one for each time the broker read from the socket


def test_publish_run_when_not_flushed_in_time_then_every_request_is_told(
    peer: Peer, held_flushes: threading.Event
) -> None:
    peer.publish("events", ONE, acks=Acks.WRITTEN)
    request = publish_request("events", ONE, timeout_ms=50)
    peer.send_bytes(b"".join(extension_frame(request, n) for n in range(3)))
    answers = answers_until_hello(peer)
    held_flushes.set()
    assert [one.error for _, (one,) in answers] == [RequestTimedOutError.code] * 3


def test_publish_run_when_the_disk_refuses_one_log_then_the_other_is_answered_well(
    start_broker: BrokerFactory, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = connect(start_broker())
    for topic in ("events", "audit"):
        peer.publish(topic, ONE)
    marked = encode([b"marked message"])
    write_all = Disk.write_all

    def refuse(disk: Disk, fd: int, data: bytes, position: int) -> None:
        if b"marked" in bytes(data):
            raise OSError(28, "No space left on device")
        write_all(disk, fd, data, position)

    monkeypatch.setattr(Disk, "write_all", refuse)
    frames = [
        extension_frame(publish_request("events", ONE), 0),
        extension_frame(publish_request("audit", marked), 1),
        extension_frame(publish_request("events", ONE), 2),
    ]
    peer.send_bytes(b"".join(frames))
    answers = answers_until_hello(peer)
    errors = {number: one.error for number, (one,) in answers}
    assert errors == {0: 0, 1: StorageError.code, 2: 0}


def test_publish_run_when_one_log_is_named_in_two_ways_then_order_is_kept(peer: Peer) -> None:
    peer.publish("events", ONE)
    homes = [-1, 0, -1, 0]
    frames = [
        extension_frame(
            PublishRequest(
                Acks.WRITTEN,
                10_000,
                (PartitionSet(partition("events", home=home), encode([b"%d" % number])),),
            ),
            number,
        )
        for number, home in enumerate(homes)
    ]
    peer.send_bytes(b"".join(frames))
    answers_until_hello(peer)
    peer.flush("events")
    assert peer.fetch("events", len(ONE))[1] == encode([b"0", b"1", b"2", b"3"])


def test_publish_run_when_clients_have_long_names_then_answered_and_none_is_remembered(
    peer: Peer,
) -> None:
    peer.publish("events", ONE)
    request = publish_request("events", ONE)
    remembered_count = append_request._decode_publish_head.cache_info().currsize
    for number in range(5):
        header = RequestHeader(request.VERSION, number, "x" * 20_000 + str(number))
        frame = b"".join(encode_extension_parts(request, header))
        peer.send_bytes(frame * 2)
        for _ in range(2):
            (published,) = decode_publish_response(peer.receive_extension(number))
            assert (published.error, published.base_offset % len(ONE)) == (0, 0)
    assert append_request._decode_publish_head.cache_info().currsize == remembered_count
