from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.primitives import INT16, INT32
from broker.protocol.requests import (
    ANY_PARTITION,
    LATEST_TIME,
    MultiProduceRequest,
    ProduceRequest,
    RequestType,
    encode_request,
)
from broker.server.broker import Broker
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer
from tests.support.waiting import wait_until

GOOD = encode([b"a good message"])


def entry(payload: bytes, *, magic: int = 1, attributes: int = 0, crc_change: int = 0) -> bytes:
    """Return one entry with whatever header is asked for."""
    plain = encode([payload])
    crc = int.from_bytes(plain[6:10], "big") ^ crc_change
    return plain[:4] + bytes((magic, attributes)) + crc.to_bytes(4, "big") + payload


def topics_of(broker: Broker) -> list[str]:
    return sorted(
        name.partition(".")[2].rpartition("-")[0]
        for name in broker.status()["metrics"]
        if name.startswith("logs.")
    )


def produce_body(topic: bytes, index: int, size: int, message_set: bytes) -> bytes:
    """Return the body of a produce whose fields need not fit together."""
    return INT16.pack(len(topic)) + topic + INT32.pack(index) + INT32.pack(size) + message_set


def frame(request_type: int, body: bytes) -> bytes:
    return INT32.pack(2 + len(body)) + INT16.pack(request_type) + body


BAD_SETS = {
    "bad crc": entry(b"x", crc_change=1),
    "bad crc behind a good message": GOOD + entry(b"x", crc_change=1),
    "unknown magic": entry(b"x", magic=2),
    "unknown magic behind a good message": GOOD + entry(b"x", magic=2),
    "broken gzip": entry(b"no gzip at all", attributes=1),
    "cut gzip": entry(gzip.compress(GOOD)[:-9], attributes=1),
    "broken snappy": entry(b"no snappy at all", attributes=2),
    "garbage inside gzip": entry(gzip.compress(b"\xff" * 50), attributes=1),
    "bad crc inside gzip": entry(gzip.compress(entry(b"x", crc_change=1)), attributes=1),
    "first message incomplete": GOOD[:-1],
    "first header incomplete": GOOD[:7],
    "stray bytes only": b"\0\0\0",
    "negative length": INT32.pack(-1) + GOOD,
    "negative length behind a good message": GOOD + INT32.pack(-5) + GOOD,
    "length below a header": INT32.pack(5) + GOOD[4:],
    "length 0": INT32.pack(0) * 10,
}


def test_produce_when_taken_then_no_byte_comes_back(peer: Peer) -> None:
    peer.produce("events", GOOD)
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, GOOD)
    assert not peer.has_answer()


def test_produce_when_topic_is_new_then_creates_it(peer: Peer, running_broker: Broker) -> None:
    peer.produce("events", GOOD)
    peer.flush("events")
    assert topics_of(running_broker) == ["events"]


def test_produce_when_set_is_empty_then_creates_log_and_appends_nothing(
    peer: Peer, running_broker: Broker
) -> None:
    peer.produce("events", b"")
    wait_until(lambda: topics_of(running_broker), "the topic")
    assert peer.offsets("events", LATEST_TIME) == [0]


def test_produce_when_oversize_then_drops_set_and_keeps_connection(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(max_message_bytes=100))
    peer.produce("events", encode([b"a" * 100, b"b" * 101, b"c"]))
    peer.produce("events", GOOD)
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, GOOD)


def test_produce_when_largest_payload_allowed_then_taken(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(max_message_bytes=100))
    message_set = encode([b"a" * 100])
    peer.produce("events", message_set)
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, message_set)


def test_produce_when_wrapper_fits_but_its_messages_are_larger_then_taken(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(max_message_bytes=100))
    wrapper = build_set([b"a" * 500], Codec.GZIP)
    peer.produce("events", wrapper)
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, wrapper)


def test_produce_when_oversize_then_counted_as_failed(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(max_message_bytes=100))
    peer.publish("events", GOOD)
    peer.produce("events", encode([b"b" * 101]))
    counters = peer.status()["metrics"]["BrokerTopicStat.events"]
    assert counters["FailedProduceRequest"] == 1
    assert counters["MessagesIn"] == 1


@pytest.mark.parametrize("message_set", BAD_SETS.values(), ids=BAD_SETS.keys())
def test_produce_when_set_is_bad_then_closes_and_appends_nothing(
    message_set: bytes, running_broker: Broker, connect: PeerFactory
) -> None:
    witness = connect(running_broker)
    witness.publish("events", GOOD)
    peer = connect(running_broker)
    peer.produce("events", message_set)
    assert peer.is_closed()
    witness.flush("events")
    assert witness.fetch("events", 0) == (0, GOOD)


@pytest.mark.parametrize("message_set", BAD_SETS.values(), ids=BAD_SETS.keys())
def test_produce_when_set_is_bad_then_creates_no_topic(
    message_set: bytes, peer: Peer, running_broker: Broker
) -> None:
    peer.produce("events", message_set)
    assert peer.is_closed()
    assert topics_of(running_broker) == []


@pytest.mark.parametrize("topic", ["", ".", "..", "../x", "a/b", "nul\0", "x" * 256, "\ue000"])
def test_produce_when_topic_is_illegal_then_closes(
    topic: str, peer: Peer, running_broker: Broker
) -> None:
    peer.produce(topic, GOOD)
    assert peer.is_closed()
    assert topics_of(running_broker) == []


def test_produce_when_topic_is_illegal_then_writes_nothing_outside_data_directory(
    peer: Peer, tmp_path: Path
) -> None:
    peer.produce("../x", GOOD)
    assert peer.is_closed()
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("index", [-2, 3, 2**31 - 1, -(2**31)])
def test_produce_when_partition_is_out_of_range_then_closes(
    index: int, start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(num_partitions=3)
    peer = connect(broker)
    peer.produce("events", GOOD, index=index)
    assert peer.is_closed()
    assert topics_of(broker) == []


def test_produce_when_any_partition_then_spreads_over_those_configured(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(topic_partition_counts={"events": 3})
    peer = connect(broker)
    peer.send(*[ProduceRequest("events", ANY_PARTITION, GOOD)] * 200)
    peer.status()
    sizes = {n: a["Size"] for n, a in broker.status()["metrics"].items() if n.startswith("logs.")}
    assert sorted(sizes) == ["logs.events-0", "logs.events-1", "logs.events-2"]
    assert sum(sizes.values()) == 200 * len(GOOD)


@pytest.mark.parametrize("tail", [GOOD[:-1], GOOD[:9], GOOD[:5], GOOD[:3], GOOD[:1]])
def test_produce_when_tail_is_partial_then_appends_whole_messages(tail: bytes, peer: Peer) -> None:
    peer.produce("events", GOOD + GOOD + tail)
    peer.produce("events", GOOD)
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, GOOD * 3)


@pytest.mark.parametrize("tail_bytes", [1, 5, 10, len(GOOD) - 1])
def test_produce_when_next_request_completes_a_partial_tail_then_is_not_joined_to_it(
    tail_bytes: int, peer: Peer, running_broker: Broker, connect: PeerFactory
) -> None:
    peer.publish("events", b"")
    peer.send(
        ProduceRequest("events", 0, GOOD + GOOD[:tail_bytes]),
        ProduceRequest("events", 0, GOOD[tail_bytes:]),
    )
    assert peer.is_closed()
    witness = connect(running_broker)
    witness.flush("events")
    assert witness.fetch("events", 0) == (0, GOOD)


def test_produce_when_topic_is_unicode_then_counts_bytes(peer: Peer) -> None:
    peer.produce("Ereignisse-ü", GOOD)
    peer.flush("Ereignisse-ü")
    assert peer.fetch("Ereignisse-ü", 0) == (0, GOOD)


def test_produce_when_messages_have_magic_0_then_stored_unchanged(peer: Peer) -> None:
    payload = b"old"
    plain = encode([payload])
    old = INT32.pack(5 + len(payload)) + b"\0" + plain[6:10] + payload
    peer.produce("events", old + GOOD + old)
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, old + GOOD + old)


def test_produce_when_attributes_have_unused_bits_then_stored_unchanged(peer: Peer) -> None:
    odd = entry(b"x", attributes=0xF8)
    peer.produce("events", odd)
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, odd)


def test_produce_when_message_is_empty_then_taken(peer: Peer) -> None:
    peer.produce("events", encode([b"", b""]))
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, encode([b"", b""]))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_produce_when_compressed_then_stored_unchanged_and_counted_inside(
    codec: Codec, peer: Peer
) -> None:
    wrapper = build_set([b"one", b"two", b"three"], codec)
    peer.produce("events", wrapper)
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, wrapper)
    assert peer.status()["metrics"]["BrokerTopicStat.events"]["MessagesIn"] == 3


def test_produce_when_bytes_follow_the_set_then_ignored(peer: Peer) -> None:
    body = produce_body(b"events", 0, len(GOOD), GOOD) + b"left over"
    peer.send_bytes(frame(RequestType.PRODUCE, body))
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, GOOD)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        INT16.pack(-1) + INT32.pack(0) * 2,
        INT16.pack(6) + b"even",
        produce_body(b"events", 0, -1, GOOD),
        produce_body(b"events", 0, len(GOOD) + 1, GOOD),
        produce_body(b"events", 0, 2**31 - 1, GOOD),
        produce_body(b"events", 0, 0, b"")[:-1],
        produce_body(b"\xff\xfe", 0, len(GOOD), GOOD),
    ],
)
def test_produce_when_fields_do_not_fit_then_closes_and_counts_a_bad_frame(
    body: bytes, running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    peer.send_bytes(frame(RequestType.PRODUCE, body))
    assert peer.is_closed()
    assert running_broker.status()["metrics"]["SocketServerStats"]["BadFrames"] == 1
    assert topics_of(running_broker) == []


def test_multiproduce_when_good_then_appends_all_without_response(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(num_partitions=2))
    peer.send(
        MultiProduceRequest(
            (
                ProduceRequest("events", 0, GOOD),
                ProduceRequest("other", 1, GOOD),
                ProduceRequest("events", 0, GOOD),
            )
        )
    )
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, GOOD * 2)
    wait_until(lambda: peer.fetch("other", 0, index=1) == (0, GOOD), "the flush")
    assert not peer.has_answer()


def test_multiproduce_when_entry_is_oversize_then_skips_it_only(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(max_message_bytes=100))
    sets = (GOOD, encode([b"x" * 101]), GOOD)
    peer.send(MultiProduceRequest(tuple(ProduceRequest("events", 0, one) for one in sets)))
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, GOOD * 2)


def test_multiproduce_when_entry_is_bad_then_keeps_those_before_and_closes(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    sets = (GOOD, entry(b"x", crc_change=1), GOOD)
    peer.send(MultiProduceRequest(tuple(ProduceRequest("events", 0, one) for one in sets)))
    assert peer.is_closed()
    witness = connect(running_broker)
    witness.flush("events")
    assert witness.fetch("events", 0) == (0, GOOD)


def test_multiproduce_when_last_entry_does_not_parse_then_appends_none(
    peer: Peer, running_broker: Broker
) -> None:
    whole = encode_request(MultiProduceRequest((ProduceRequest("events", 0, GOOD),) * 2))
    body = whole[6:-1]
    peer.send_bytes(frame(RequestType.MULTIPRODUCE, body))
    assert peer.is_closed()
    assert topics_of(running_broker) == []


@pytest.mark.parametrize("count", [-1, -32768, 32767])
def test_multiproduce_when_count_is_impossible_then_closes(count: int, peer: Peer) -> None:
    peer.send_bytes(frame(RequestType.MULTIPRODUCE, INT16.pack(count)))
    assert peer.is_closed()


def test_multiproduce_when_count_is_0_then_nothing_happens(peer: Peer) -> None:
    peer.send(MultiProduceRequest(()))
    assert peer.offsets("events", LATEST_TIME) == [0]
