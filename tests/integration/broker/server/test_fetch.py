from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from broker.protocol.codec import encode
from broker.protocol.primitives import INT16, INT32, INT64, encode_short_string
from broker.protocol.requests import (
    EARLIEST_TIME,
    LATEST_TIME,
    FetchRequest,
    MultiFetchRequest,
    OffsetsRequest,
    RequestType,
    encode_request,
)
from broker.protocol.responses import decode_multifetch_response
from broker.server.broker import Broker
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer
from tests.support.waiting import wait_until

ONE = encode([b"one message"])
TWO = encode([b"another message"])
TWELVE_BYTES = encode([b"ab"])
NEVER_MS = 3_600_000


@pytest.fixture
def filled(peer: Peer) -> Peer:
    """A connection to a broker with two messages in `events`."""
    peer.publish("events", ONE + TWO)
    return peer


@pytest.fixture
def twenty_entries(start_broker: BrokerFactory, connect: PeerFactory) -> Peer:
    """A connection to a broker with twenty 12-byte entries in segments 0, 108 and 216."""
    peer = connect(start_broker(segment_bytes=100))
    for _ in range(20):
        peer.publish("events", TWELVE_BYTES)
    return peer


def frame(request_type: int, body: bytes) -> bytes:
    return INT32.pack(2 + len(body)) + INT16.pack(request_type) + body


def test_fetch_when_from_start_then_all_up_to_max_size(filled: Peer) -> None:
    assert filled.fetch("events", 0) == (0, ONE + TWO)


def test_fetch_when_from_second_message_then_that_one(filled: Peer) -> None:
    assert filled.fetch("events", len(ONE)) == (0, TWO)


def test_fetch_when_inside_a_message_then_bytes_from_there(filled: Peer) -> None:
    assert filled.fetch("events", 7) == (0, (ONE + TWO)[7:])


def test_fetch_when_at_flushed_end_then_empty(filled: Peer) -> None:
    assert filled.fetch("events", len(ONE + TWO)) == (0, b"")


@pytest.mark.parametrize("offset", [len(ONE + TWO) + 1, -1, -(2**63), 2**63 - 1])
def test_fetch_when_offset_is_outside_then_error_1(offset: int, filled: Peer) -> None:
    assert filled.fetch("events", offset) == (1, b"")


@pytest.mark.parametrize("max_bytes", [1, 3, len(ONE) - 1, len(ONE), len(ONE) + 5])
def test_fetch_when_max_size_is_small_then_cut_to_it(max_bytes: int, filled: Peer) -> None:
    assert filled.fetch("events", 0, max_bytes=max_bytes) == (0, (ONE + TWO)[:max_bytes])


@pytest.mark.parametrize("max_bytes", [0, -1, -(2**31)])
def test_fetch_when_max_size_is_not_positive_then_empty(max_bytes: int, filled: Peer) -> None:
    assert filled.fetch("events", 0, max_bytes=max_bytes) == (0, b"")


def test_fetch_when_max_size_is_0_and_offset_outside_then_error_1(filled: Peer) -> None:
    assert filled.fetch("events", 10_000, max_bytes=0) == (1, b"")


@pytest.mark.parametrize("offset", [0, 5, -7, 2**62])
def test_fetch_when_topic_is_unknown_then_empty_and_not_created(
    offset: int, peer: Peer, running_broker: Broker
) -> None:
    assert peer.fetch("nothing", offset) == (0, b"")
    assert running_broker.status()["topics"] == 0


@pytest.mark.parametrize("topic", ["events", "nothing"])
@pytest.mark.parametrize("index", [-1, -2, 1, 2**31 - 1])
def test_fetch_when_partition_is_out_of_range_then_error_3(
    topic: str, index: int, filled: Peer
) -> None:
    assert filled.fetch(topic, 0, index=index) == (3, b"")


@pytest.mark.parametrize("topic", ["", "a/b", "..", "x" * 256])
def test_fetch_when_topic_is_illegal_then_error_unknown(topic: str, peer: Peer) -> None:
    assert peer.fetch(topic, 0) == (-1, b"")


def test_fetch_when_error_is_negative_then_two_bytes_ff(peer: Peer) -> None:
    peer.send(FetchRequest("", 0, 0, 100))
    assert peer.receive() == b"\xff\xff"


def test_fetch_when_topic_is_null_then_closes(peer: Peer) -> None:
    body = INT16.pack(-1) + INT32.pack(0) + INT64.pack(0) + INT32.pack(100)
    peer.send_bytes(frame(RequestType.FETCH, body))
    assert peer.is_closed()


@pytest.mark.parametrize("cut", [1, 4, 12, 20])
def test_fetch_when_body_is_too_short_then_closes(cut: int, peer: Peer) -> None:
    body = encode_request(FetchRequest("events", 0, 0, 100))[6:-cut]
    peer.send_bytes(frame(RequestType.FETCH, body))
    assert peer.is_closed()


def test_fetch_when_bytes_follow_the_request_then_ignored(filled: Peer) -> None:
    body = encode_request(FetchRequest("events", 0, 0, 100))[6:] + b"left over"
    filled.send_bytes(frame(RequestType.FETCH, body))
    assert filled.receive() == b"\0\0" + ONE + TWO


def test_fetch_when_offset_is_a_segment_boundary_then_next_segment(twenty_entries: Peer) -> None:
    assert twenty_entries.fetch("events", 108) == (0, TWELVE_BYTES * 9)


def test_fetch_when_segment_ends_then_does_not_cross_it(twenty_entries: Peer) -> None:
    assert twenty_entries.fetch("events", 96) == (0, TWELVE_BYTES)


def test_log_when_twenty_entries_then_segments_hold_9_9_and_2(
    twenty_entries: Peer, tmp_path: Path
) -> None:
    sizes = {one.name: one.stat().st_size for one in (tmp_path / "data" / "events_0").iterdir()}
    assert sizes == {f"{base:020d}.pylog": size for base, size in ((0, 108), (108, 108), (216, 24))}


def test_fetch_when_bytes_are_unflushed_then_invisible_and_out_of_range(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(flush_interval_ms=NEVER_MS)
    peer = connect(broker)
    peer.produce("events", ONE)
    assert peer.fetch("events", 0) == (0, b"")
    assert peer.fetch("events", 1) == (1, b"")
    assert peer.fetch("events", len(ONE)) == (1, b"")
    assert peer.offsets("events", LATEST_TIME) == [0]


def test_fetch_when_m_messages_are_written_then_visible(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(flush_interval_ms=NEVER_MS, flush_interval_messages=3))
    peer.produce("events", ONE)
    peer.produce("events", ONE)
    assert peer.fetch("events", 0) == (0, b"")
    peer.produce("events", ONE)
    wait_until(lambda: peer.fetch("events", 0) == (0, ONE * 3), "the flush after 3 messages")


def test_fetch_when_interval_has_passed_then_visible(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(flush_interval_ms=NEVER_MS, topic_flush_interval_ms={"events": 20}))
    peer.produce("others", ONE)
    peer.produce("events", ONE)
    wait_until(lambda: peer.fetch("events", 0) == (0, ONE), "the flush after 20 ms")
    assert peer.fetch("others", 0) == (0, b"")


def test_fetch_when_part_is_unflushed_then_only_flushed_part(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(flush_interval_ms=NEVER_MS))
    peer.publish("events", ONE)
    peer.produce("events", TWO)
    assert peer.fetch("events", 0) == (0, ONE)


def test_multifetch_when_errors_are_mixed_then_each_part_has_its_own(filled: Peer) -> None:
    assert filled.multifetch(
        FetchRequest("events", 0, 0, 1000),
        FetchRequest("events", 0, 10_000, 1000),
        FetchRequest("events", 7, 0, 1000),
        FetchRequest("a/b", 0, 0, 1000),
        FetchRequest("nothing", 0, 0, 1000),
        FetchRequest("events", 0, len(ONE), 1000),
        FetchRequest("events", 0, 0, 0),
        FetchRequest("events", 0, 0, 1000),
    ) == [
        (0, ONE + TWO),
        (1, b""),
        (3, b""),
        (-1, b""),
        (0, b""),
        (0, TWO),
        (0, b""),
        (0, ONE + TWO),
    ]


def test_multifetch_when_answered_then_size_counts_parts_with_headers(filled: Peer) -> None:
    filled.send(
        MultiFetchRequest((FetchRequest("events", 0, 0, 5), FetchRequest("events", 0, 9999, 5)))
    )
    answer = filled.receive()
    assert answer[:2] == b"\0\0"
    assert len(answer) == 2 + (6 + 5) + (6 + 0)


def test_multifetch_when_count_is_0_then_only_the_error_code(peer: Peer) -> None:
    assert peer.multifetch() == []


def test_multifetch_when_many_parts_then_all_come_in_order(filled: Peer) -> None:
    fetches = [FetchRequest("events", 0, n % 7, n % 11) for n in range(5000)]
    expected = [(0, (ONE + TWO)[n % 7 : n % 7 + n % 11]) for n in range(5000)]
    assert filled.multifetch(*fetches) == expected


@pytest.mark.parametrize("count", [-1, 1, 32767])
def test_multifetch_when_count_does_not_fit_then_closes(count: int, peer: Peer) -> None:
    peer.send_bytes(frame(RequestType.MULTIFETCH, INT16.pack(count)))
    assert peer.is_closed()


def make_sparse_log(data_dir: Path, size: int) -> None:
    """Leave a cleanly closed data directory whose only segment is a large hole."""
    directory = data_dir / "events_0"
    directory.mkdir(parents=True)
    with (directory / f"{0:020d}.pylog").open("wb") as file:
        os.ftruncate(file.fileno(), size)
    (data_dir / ".pylog_clean_shutdown").touch()


def answer_size(peer: Peer) -> int:
    head = peer.socket.recv(4)
    return int(INT32.unpack(head)[0])


def test_fetch_when_segment_exceeds_a_response_then_response_is_cut_to_what_fits(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> None:
    make_sparse_log(tmp_path / "data", 3 << 30)
    peer = connect(start_broker())
    peer.send(FetchRequest("events", 0, 0, 2**31 - 1))
    assert answer_size(peer) == 2**31 - 1


def test_multifetch_when_sum_exceeds_a_response_then_later_parts_are_cut(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> None:
    make_sparse_log(tmp_path / "data", 3 << 30)
    peer = connect(start_broker())
    peer.send(MultiFetchRequest((FetchRequest("events", 0, 0, 1 << 30),) * 3))
    assert answer_size(peer) == 2**31 - 1


def test_multifetch_when_response_is_large_then_sent_whole(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> None:
    make_sparse_log(tmp_path / "data", 32 << 20)
    peer = connect(start_broker())
    peer.send(MultiFetchRequest((FetchRequest("events", 0, 0, 16 << 20),) * 2))
    parts = decode_multifetch_response(peer.receive())
    assert [(code, len(data)) for code, data in parts] == [(0, 16 << 20)] * 2


def test_offsets_when_worked_example_then_as_in_0_7(twenty_entries: Peer) -> None:
    assert twenty_entries.offsets("events", LATEST_TIME, 10) == [240, 216, 108, 0]
    assert twenty_entries.offsets("events", EARLIEST_TIME, 10) == [0]


@pytest.mark.parametrize("max_offsets", [0, 1, 3])
def test_offsets_when_max_is_small_then_newest_so_many(
    max_offsets: int, twenty_entries: Peer
) -> None:
    expected = [240, 216, 108, 0][:max_offsets]
    assert twenty_entries.offsets("events", LATEST_TIME, max_offsets) == expected


def test_offsets_when_time_is_after_last_write_then_segment_starts_only(
    twenty_entries: Peer,
) -> None:
    asked_ms = time.time_ns() // 1_000_000
    wait_until(
        lambda: twenty_entries.offsets("events", asked_ms) == [216, 108, 0],
        "an answer later than the asked time",
    )


@pytest.mark.parametrize("time_ms", [-3, -(2**63), 0, 1])
def test_offsets_when_time_is_before_all_then_none(time_ms: int, twenty_entries: Peer) -> None:
    assert twenty_entries.offsets("events", time_ms) == []


def test_offsets_when_time_is_far_off_then_all(twenty_entries: Peer) -> None:
    assert twenty_entries.offsets("events", 2**63 - 1) == [240, 216, 108, 0]


@pytest.mark.parametrize("max_offsets", [0, 1, 10])
def test_offsets_when_there_is_no_log_then_0_for_both_ends(max_offsets: int, peer: Peer) -> None:
    assert peer.offsets("events", LATEST_TIME, max_offsets) == [0]
    assert peer.offsets("events", EARLIEST_TIME, max_offsets) == [0]
    assert peer.offsets("events", 2**62, max_offsets) == []


def test_offsets_when_there_is_no_log_then_none_is_created(
    peer: Peer, running_broker: Broker
) -> None:
    peer.offsets("events", LATEST_TIME)
    assert running_broker.status()["topics"] == 0


@pytest.mark.parametrize(
    ("topic", "index"), [("a/b", 0), ("", 0), ("events", 1), ("events", -1), ("nothing", 9)]
)
def test_offsets_when_partition_cannot_be_then_closes(topic: str, index: int, filled: Peer) -> None:
    filled.send(OffsetsRequest(topic, index, LATEST_TIME, 1))
    assert filled.is_closed()


def test_offsets_when_max_is_negative_then_closes(filled: Peer) -> None:
    filled.send(OffsetsRequest("events", 0, LATEST_TIME, -1))
    assert filled.is_closed()


def test_offsets_when_answered_then_error_0_and_count_first(filled: Peer) -> None:
    filled.send(OffsetsRequest("events", 0, LATEST_TIME, 1))
    assert filled.receive() == b"\0\0" + INT32.pack(1) + INT64.pack(len(ONE + TWO))


@pytest.mark.parametrize("request_type", [5, 63, -1, -32768])
def test_request_when_type_is_unknown_then_closes(request_type: int, peer: Peer) -> None:
    peer.send_bytes(frame(request_type, encode_short_string("events") + b"\0" * 16))
    assert peer.is_closed()
