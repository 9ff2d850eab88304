from __future__ import annotations

import random
import socket
import threading
from typing import Any

import pytest

from broker.log.log import Log
from broker.log.segment import Appended
from broker.protocol.client_requests import (
    Acks,
    HelloRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetKind,
    OffsetQuery,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    StatusRequest,
)
from broker.protocol.requests import (
    EARLIEST_TIME,
    LATEST_TIME,
    BaseRequest,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    encode_request,
)
from broker.protocol.responses import (
    HELLO,
    LISTED_OFFSETS,
    decode_extension_response,
    decode_offsets_response,
    decode_publish_response,
    decode_read_response,
)
from broker.server.broker import Broker
from broker.server.network.response_queue import MAX_WAITING_READS
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import (
    Peer,
    extension_frame,
    partition,
    publish_request,
    read_request,
)
from tests.support.waiting import wait_until

ONE = encode([b"one message"])
BAD = ONE[:-1] + b"?"
NEVER_MS = 3_600_000


def size_of(broker: Broker, topic: str, index: int = 0) -> int:
    log = broker.status()["metrics"].get(f"logs.{topic}-{index}")
    return -1 if log is None else int(log["Size"])


def test_requests_when_thousands_come_in_one_write_then_answered_in_order(peer: Peer) -> None:
    peer.publish("events", ONE * 100)
    wanted = [n % 97 for n in range(20_000)]
    peer.send(*[FetchRequest("events", 0, offset, offset % 5 + 1) for offset in wanted])
    for offset in wanted:
        expected = (ONE * 100)[offset : offset + offset % 5 + 1]
        assert peer.receive_fetched() == (0, expected)


def mixed_requests(seed: int, count: int) -> tuple[bytes, list[object]]:
    """Return frames of all kinds, and the answer that each answered one must get.

    Their effect on the log is known: each set is appended once, and reads ask only for the set
    that is in the log, flushed, before the first of them.
    """
    kinds = random.Random(seed)
    frames: list[bytes] = []
    expected: list[object] = []
    for number in range(count):
        match kinds.randrange(9):
            case 0:
                frames.append(encode_request(ProduceRequest("events", 0, ONE)))
            case 1:
                produces = (ProduceRequest("events", 0, ONE), ProduceRequest("other", 0, ONE))
                frames.append(encode_request(MultiProduceRequest(produces)))
            case 2:
                frames.append(encode_request(FetchRequest("events", 0, 3, len(ONE) - 3)))
                expected.append(ONE[3:])
            case 3:
                frames.append(
                    encode_request(MultiFetchRequest((FetchRequest("events", 0, 0, len(ONE)),)))
                )
                expected.append(b"\0\0\0" + bytes((len(ONE) + 2,)) + b"\0\0" + ONE)
            case 4:
                frames.append(encode_request(OffsetsRequest("events", 0, EARLIEST_TIME, 1)))
                expected.append([0])
            case 5:
                frames.append(extension_frame(publish_request("events", ONE), number))
                expected.append(("published", number))
            case 6:
                frames.append(
                    extension_frame(read_request("events", 0, max_bytes=len(ONE)), number)
                )
                expected.append(("read", number))
            case 7:
                request = ListOffsetsRequest(
                    (OffsetQuery(partition("events"), OffsetKind.EARLIEST, 0),)
                )
                frames.append(extension_frame(request, number))
                expected.append(("list offsets", number))
            case _:
                frames.append(extension_frame(HelloRequest(), number))
                expected.append(("hello", number))
    return b"".join(frames), expected


def check_answer(answer: bytes, expected: object) -> None:
    if isinstance(expected, bytes):
        assert answer == b"\0\0" + expected
        return
    if isinstance(expected, list):
        assert decode_offsets_response(answer) == expected
        return
    assert isinstance(expected, tuple)
    kind, correlation_id = expected
    found_id, body = decode_extension_response(answer)
    assert found_id == correlation_id
    if kind == "published":
        assert decode_publish_response(body)[0].error == 0
    elif kind == "read":
        assert decode_read_response(body)[0].message_set == ONE
    elif kind == "list offsets":
        assert LISTED_OFFSETS.decode(body)[0].offset == 0
    else:
        assert HELLO.decode(body).broker_id == 0


def test_requests_when_of_all_kinds_in_one_write_then_answered_in_order(
    peer: Peer, running_broker: Broker
) -> None:
    peer.publish("events", ONE)
    frames, expected = mixed_requests(seed=1, count=5000)
    peer.send_bytes(frames)
    for one in expected:
        check_answer(peer.receive(), one)
    appended = sum(one == ("published", one[1]) for one in expected if isinstance(one, tuple))
    assert size_of(running_broker, "events") >= (1 + appended) * len(ONE)


def test_requests_when_they_come_byte_by_byte_then_answered_in_order(peer: Peer) -> None:
    peer.publish("events", ONE)
    frames, expected = mixed_requests(seed=2, count=60)
    for place in range(len(frames)):
        peer.send_bytes(frames[place : place + 1])
    for one in expected:
        check_answer(peer.receive(), one)


def test_requests_when_cut_at_random_places_then_answered_in_order(peer: Peer) -> None:
    peer.publish("events", ONE)
    frames, expected = mixed_requests(seed=3, count=2000)
    cuts = random.Random(4)
    place = 0
    while place < len(frames):
        size = cuts.choice((1, 7, 300, 5000))
        peer.send_bytes(frames[place : place + size])
        place += size
    for one in expected:
        check_answer(peer.receive(), one)


def test_produce_when_many_come_in_one_read_then_all_are_appended_in_order(
    peer: Peer, running_broker: Broker
) -> None:
    sets = [encode([b"%d" % n]) for n in range(10_000)]
    peer.send(*[ProduceRequest("events", 0, one) for one in sets])
    peer.flush("events")
    assert peer.fetch("events", 0, max_bytes=1 << 30) == (0, b"".join(sets))
    counters = running_broker.status()["metrics"]["BrokerTopicStat.events"]
    assert counters["MessagesIn"] == 10_000
    assert running_broker.status()["metrics"]["SocketServerStats"]["NumProduceRequests"] >= 10_000


def append_sizes(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Record topic-index and length of every append to come."""

    sizes: list[tuple[str, int]] = []
    append = Log.append

    def recording(self: Log, message_set: bytes, *args: Any, **options: Any) -> Appended:
        sizes.append((f"{self.partition.topic}-{self.partition.index}", len(message_set)))
        return append(self, message_set, *args, **options)

    monkeypatch.setattr(Log, "append", recording)
    return sizes


def test_produce_when_many_come_in_one_read_then_one_append_for_each_partition(
    start_broker: BrokerFactory, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = start_broker(num_partitions=2)
    peer = connect(broker)
    peer.produce("events", ONE, index=0)
    peer.produce("events", ONE, index=1)
    wait_until(lambda: size_of(broker, "events", 1) == len(ONE), "the topic")
    sizes = append_sizes(broker, monkeypatch)
    peer.send(*[ProduceRequest("events", n % 2, ONE) for n in range(100)])
    peer.status()
    assert sorted(sizes) == [("events-0", 50 * len(ONE)), ("events-1", 50 * len(ONE))]


@pytest.mark.parametrize("place", [0, 1, 50, 99])
def test_produce_when_one_among_many_is_bad_then_costs_itself_and_what_follows(
    place: int, running_broker: Broker, connect: PeerFactory
) -> None:
    witness = connect(running_broker)
    witness.publish("events", b"")
    sets = [encode([b"%d" % n]) for n in range(100)]
    peer = connect(running_broker)
    peer.send(
        *[ProduceRequest("events", 0, BAD if n == place else one) for n, one in enumerate(sets)]
    )
    assert peer.is_closed()
    witness.flush("events")
    assert witness.fetch("events", 0) == (0, b"".join(sets[:place]))


def test_produce_when_one_among_many_is_oversize_then_costs_itself_alone(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(max_message_bytes=100))
    sets = [encode([b"%d" % n]) for n in range(100)]
    large = encode([b"x" * 101])
    peer.send(
        *[ProduceRequest("events", 0, large if n == 50 else one) for n, one in enumerate(sets)]
    )
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, b"".join(sets[:50] + sets[51:]))


def test_produce_when_partitions_are_interleaved_then_each_keeps_its_order(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(num_partitions=3)
    peer = connect(broker)
    sets = [encode([b"%d" % n]) for n in range(3000)]
    peer.send(*[ProduceRequest("events", n % 3, one) for n, one in enumerate(sets)])
    peer.status()
    for index in range(3):
        expected = b"".join(sets[index::3])
        wait_until(
            lambda index=index, expected=expected: (  # type: ignore[misc]  # mypy: lambda default
                peer.fetch("events", 0, index=index) == (0, expected)
            ),
            "the flush",
        )


def test_produce_when_fetch_stands_between_then_fetch_sees_what_came_before(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker())
    requests: list[BaseRequest] = []
    for _ in range(100):
        requests += (ProduceRequest("events", 0, ONE), OffsetsRequest("events", 0, LATEST_TIME, 1))
    peer.send(*requests)
    ends = [decode_offsets_response(peer.receive())[0] for _ in range(100)]
    assert ends == sorted(ends)


def test_publish_when_many_are_in_flight_then_answered_in_order_by_few_flushes(
    peer: Peer, running_broker: Broker, held_flushes: threading.Event
) -> None:
    peer.make_topics(["events"])
    peer.send_bytes(
        b"".join(extension_frame(publish_request("events", ONE), n) for n in range(500))
    )
    wait_until(lambda: size_of(running_broker, "events") == 500 * len(ONE), "all appends")
    held_flushes.set()
    for number in range(500):
        (published,) = decode_publish_response(peer.receive_extension(number))
        assert (published.error, published.base_offset) == (0, number * len(ONE))
    assert running_broker.status()["metrics"]["LogFlushStats"]["NumFlushes"] <= 2


def test_response_when_an_earlier_one_is_delayed_then_waits_for_it(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(flush_interval_ms=NEVER_MS)
    peer, producer = connect(broker), connect(broker)
    producer.publish("events", ONE)
    peer.send_bytes(
        extension_frame(read_request("events", len(ONE), max_wait_ms=60_000), 7)
        + encode_request(FetchRequest("events", 0, 0, 1000))
        + extension_frame(HelloRequest(), 8)
    )
    assert not peer.has_answer(0.1)
    producer.publish("events", ONE)
    (part,) = decode_read_response(peer.receive_extension(7))
    assert part.message_set == ONE
    assert peer.receive_fetched() == (0, ONE)
    assert HELLO.decode(peer.receive_extension(8)).broker_id == 0


def test_publish_when_a_bad_request_follows_then_still_answered(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    peer.publish("events", b"")
    peer.send_bytes(
        extension_frame(publish_request("events", ONE), 7)
        + encode_request(ProduceRequest("events", 0, BAD))
    )
    (published,) = decode_publish_response(peer.receive_extension(7))
    assert published.error == 0
    assert peer.is_closed()


def test_fetch_when_garbage_follows_then_still_answered(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    peer.publish("events", ONE)
    peer.send_bytes(encode_request(FetchRequest("events", 0, 0, 1000)) + b"\xff" * 100)
    assert peer.receive_fetched() == (0, ONE)
    assert peer.is_closed()


def test_requests_when_client_closes_its_half_then_large_responses_still_come(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    large = encode([b"x" * 100_000]) * 80
    for _ in range(4):
        peer.publish("events", large)
    peer.send(*[FetchRequest("events", 0, 0, 1 << 30)] * 3)
    peer.socket.shutdown(1)
    for _ in range(3):
        assert len(peer.receive()) == 2 + 4 * len(large)
    assert peer.is_closed()


@pytest.mark.parametrize("read_count", [1, 10 * MAX_WAITING_READS])
def test_reads_when_client_closes_its_half_then_completed_at_once_with_what_there_is(
    read_count: int, running_broker: Broker, connect: PeerFactory
) -> None:
    """The last of many are still in the socket when the first wait."""
    peer = connect(running_broker)
    peer.publish("events", ONE)
    parked = read_request("events", len(ONE), max_wait_ms=600_000)
    peer.send_bytes(b"".join(extension_frame(parked, number) for number in range(read_count)))
    peer.socket.shutdown(socket.SHUT_WR)
    for number in range(read_count):
        (part,) = decode_read_response(peer.receive_extension(number))
        assert (part.error, part.message_set, part.high_watermark) == (0, b"", len(ONE))
    assert peer.is_closed()


def test_publish_when_partitions_and_errors_are_mixed_then_each_has_its_own_result(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(num_partitions=3))
    sets = (
        PartitionSet(partition("events", 0), ONE),
        PartitionSet(partition("events", 3), ONE),
        PartitionSet(partition("events", 1), BAD),
        PartitionSet(partition("a/b", 0), ONE),
        PartitionSet(partition("events", 2, home=9), ONE),
        PartitionSet(partition("events", 0), ONE),
    )
    results = decode_publish_response(peer.call(PublishRequest(Acks.COMMITTED, 10_000, sets)))
    assert [(one.error, one.base_offset) for one in results] == [
        (0, 0),
        (3, -1),
        (2, -1),
        (17, -1),
        (3, -1),
        (0, len(ONE)),
    ]


def test_status_when_asked_for_often_in_one_write_then_all_are_answered(
    peer: Peer,
) -> None:
    peer.publish("events", ONE)
    peer.send_bytes(b"".join(extension_frame(StatusRequest(), n) for n in range(1500)))
    for number in range(1500):  # more than calls may be nested
        peer.receive_extension(number)


def test_metadata_when_asked_for_in_a_pipeline_then_all_are_answered(peer: Peer) -> None:
    peer.publish("events", ONE)
    peer.send_bytes(b"".join(extension_frame(MetadataRequest(None), n) for n in range(1500)))
    for number in range(1500):
        peer.receive_extension(number)
