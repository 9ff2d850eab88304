from __future__ import annotations

import time

import pytest

from broker.errors import (
    InvalidTopicError,
    OffsetOutOfRangeError,
    ResponseTooLargeError,
    StorageError,
    UnknownTopicError,
    WrongPartitionError,
)
from broker.log.log import Log
from broker.log.segment import FileSlice
from broker.protocol.client_requests import (
    FilteredReadRequest,
    PartitionPosition,
    PayloadFilter,
    ReadRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
)
from broker.protocol.responses import ReadPart, decode_read_response
from broker.server.broker import Broker
from broker.server.requests.fetch import FetchHandler, Found
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, partition, read_request
from tests.support.waiting import wait_until

ONE = encode([b"one message"])
LONG_MS = 60_000
NEVER_MS = 3_600_000


def position(topic: str, index: int, offset: int, max_bytes: int = 1000) -> PartitionPosition:
    return PartitionPosition(partition(topic, index), offset, max_bytes)


def read(peer: Peer, request: ReadRequest) -> list[ReadPart]:
    return decode_read_response(peer.call(request))


def has_waiting(broker: Broker) -> bool:
    return any(len(one.purgatory) for one in broker.server.processors)


def test_read_when_data_is_there_then_completed_at_once(peer: Peer) -> None:
    peer.publish("events", ONE * 2)
    part = peer.read("events", len(ONE), max_wait_ms=LONG_MS)
    assert (part.error, part.message_set) == (0, ONE)
    assert (part.high_watermark, part.log_start_offset) == (2 * len(ONE), 0)


def test_read_when_at_the_end_then_woken_by_a_flush(
    running_broker: Broker, connect: PeerFactory
) -> None:
    reader, writer = connect(running_broker), connect(running_broker)
    writer.publish("events", ONE)
    reader.send_extension(read_request("events", len(ONE), max_wait_ms=LONG_MS))
    assert not reader.has_answer(0.05)
    writer.produce("events", ONE)
    (part,) = decode_read_response(reader.receive_extension())
    assert part.message_set == ONE


def test_read_when_nothing_comes_then_completed_empty_at_the_deadline(peer: Peer) -> None:
    peer.publish("events", ONE)
    started_s = time.monotonic()
    part = peer.read("events", len(ONE), max_wait_ms=100)
    assert (part.error, part.message_set, part.high_watermark) == (0, b"", len(ONE))
    assert time.monotonic() - started_s >= 0.1


@pytest.mark.parametrize("max_wait_ms", [0, -1, -(2**31)])
def test_read_when_it_may_not_wait_then_completed_empty_at_once(
    max_wait_ms: int, peer: Peer
) -> None:
    peer.publish("events", ONE)
    assert peer.read("events", len(ONE), max_wait_ms=max_wait_ms).message_set == b""


def test_read_when_below_min_bytes_then_waits_for_them(
    running_broker: Broker, connect: PeerFactory
) -> None:
    reader, writer = connect(running_broker), connect(running_broker)
    writer.publish("events", ONE)
    reader.send_extension(read_request("events", 0, max_wait_ms=LONG_MS, min_bytes=3 * len(ONE)))
    writer.publish("events", ONE)
    assert not reader.has_answer(0.05)
    writer.publish("events", ONE)
    (part,) = decode_read_response(reader.receive_extension())
    assert part.message_set == ONE * 3


@pytest.mark.parametrize("pattern", [None, b"message"])
def test_read_when_appends_leave_it_below_min_bytes_then_not_attempted(
    pattern: bytes | None,
    running_broker: Broker,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands may wait for the same log, and an append is not to pay for them."""
    attempts: list[int] = []
    is_enough = FetchHandler.is_enough

    def counting(handler: FetchHandler, request: ReadRequest, found: list[Found]) -> bool:
        attempts.append(request.min_bytes)
        return is_enough(handler, request, found)

    monkeypatch.setattr(FetchHandler, "is_enough", counting)
    reader, writer = connect(running_broker), connect(running_broker)
    writer.publish("events", ONE)  # of ten
    read = read_request("events", 0, max_wait_ms=LONG_MS, min_bytes=10 * len(ONE))
    reader.send_extension(
        read if pattern is None else FilteredReadRequest(read, PayloadFilter(pattern))
    )
    wait_until(
        lambda: any(len(one.purgatory) for one in running_broker.server.processors), "the read"
    )
    at_first = len(attempts)
    for _ in range(8):
        writer.publish("events", ONE)
    assert len(attempts) == at_first
    writer.publish("events", ONE)
    reader.receive_extension()
    assert len(attempts) == at_first + 1


def test_read_when_min_bytes_spread_over_partitions_then_counted_together(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(num_partitions=2))
    for index in range(2):
        peer.produce("events", ONE, index=index)
        wait_until(
            lambda index=index: peer.fetch("events", 0, index=index)[1],  # type: ignore[misc]  # mypy: lambda default
            "the flush",
        )
    positions = (position("events", 0, 0), position("events", 1, 0))
    request = ReadRequest(LONG_MS, 2 * len(ONE), 1000, positions)
    assert [part.message_set for part in read(peer, request)] == [ONE, ONE]


def test_read_when_max_bytes_are_below_min_bytes_then_does_not_wait_for_more_than_fits(
    peer: Peer,
) -> None:
    peer.publish("events", ONE * 10)
    part = peer.read("events", 0, max_wait_ms=LONG_MS, min_bytes=1000, max_bytes=50)
    assert part.message_set == (ONE * 10)[:50]


def test_read_when_max_bytes_are_used_up_then_later_partitions_are_empty(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(num_partitions=3))
    for index in range(3):
        peer.produce("events", ONE, index=index)
        wait_until(
            lambda index=index: peer.fetch("events", 0, index=index)[1],  # type: ignore[misc]  # mypy: lambda default
            "the flush",
        )
    positions = tuple(position("events", index, 0) for index in range(3))
    parts = read(peer, ReadRequest(0, 1, len(ONE) + 4, positions))
    assert [part.message_set for part in parts] == [ONE, ONE[:4], b""]
    assert [part.error for part in parts] == [0, 0, 0]


def test_read_when_errors_are_mixed_then_completed_at_once_with_each(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(broker_id=3, num_partitions=2))
    peer.publish("events", ONE)
    positions = (
        position("events", 0, len(ONE)),
        position("events", 0, len(ONE) + 1),
        position("events", 0, -1),
        position("events", 2, 0),
        position("nothing", 0, 0),
        position("a/b", 0, 0),
        PartitionPosition(partition("events", 0, home=4), 0, 1000),
        position("events", 0, 0),
    )
    parts = read(peer, ReadRequest(LONG_MS, 1, 1 << 20, positions))
    assert [part.error for part in parts] == [
        0,
        OffsetOutOfRangeError.code,
        OffsetOutOfRangeError.code,
        WrongPartitionError.code,
        UnknownTopicError.code,
        InvalidTopicError.code,
        WrongPartitionError.code,
        0,
    ]
    assert [part.message_set for part in parts] == [b""] * 7 + [ONE]


def test_read_when_topic_is_unknown_then_error_and_not_created(
    peer: Peer, running_broker: Broker
) -> None:
    assert peer.read("nothing", 0, max_wait_ms=LONG_MS).error == UnknownTopicError.code
    assert running_broker.status()["topics"] == 0


def test_read_when_topic_is_created_but_empty_then_woken_by_the_first_message(
    running_broker: Broker, connect: PeerFactory
) -> None:
    reader, writer = connect(running_broker), connect(running_broker)
    writer.call(CreateTopicRequest("events", 2))
    reader.send_extension(read_request("events", 0, max_wait_ms=LONG_MS))
    assert not reader.has_answer(0.05)
    writer.produce("events", ONE, index=1)
    assert not reader.has_answer(0.05)
    writer.publish("events", ONE)
    (part,) = decode_read_response(reader.receive_extension())
    assert (part.error, part.message_set) == (0, ONE)


@pytest.mark.parametrize("pattern", [None, b"message"])
def test_read_when_a_partition_has_no_log_then_waits_and_creates_none(
    pattern: bytes | None, running_broker: Broker, connect: PeerFactory
) -> None:
    reader, writer = connect(running_broker), connect(running_broker)
    writer.call(CreateTopicRequest("events", 2))
    request = read_request("events", 0, max_wait_ms=LONG_MS)
    reader.send_extension(
        request if pattern is None else FilteredReadRequest(request, PayloadFilter(pattern))
    )
    wait_until(
        lambda: any(len(one.purgatory) for one in running_broker.server.processors), "the read"
    )
    (empty,) = read(writer, ReadRequest(0, 1, 1000, (position("events", 1, 0),)))
    assert (empty.error, empty.message_set) == (0, b"")
    assert running_broker.logs.table.all() == []
    writer.publish("events", ONE)
    reader.receive_extension()
    assert [one.partition.index for one in running_broker.logs.table.all()] == [0]


def test_read_when_a_partition_without_a_log_is_deleted_then_told_so(
    running_broker: Broker, connect: PeerFactory
) -> None:
    reader, writer = connect(running_broker), connect(running_broker)
    writer.call(CreateTopicRequest("events", 1))
    reader.send_extension(read_request("events", 0, max_wait_ms=LONG_MS))
    assert not reader.has_answer(0.05)
    writer.call(DeleteTopicRequest("events"))
    (part,) = decode_read_response(reader.receive_extension())
    assert part.error == UnknownTopicError.code


def test_read_when_a_partition_has_no_log_then_offset_zero_alone_is_in_range(peer: Peer) -> None:
    peer.call(CreateTopicRequest("events", 1))
    for offset in (-1, 1):
        part = peer.read("events", offset, max_wait_ms=LONG_MS)
        assert (part.error, part.high_watermark, part.log_start_offset) == (
            OffsetOutOfRangeError.code,
            0,
            0,
        )
    assert peer.read("events", 0).error == 0


def test_read_when_another_partition_of_the_topic_has_data_then_empty_one_is_no_error(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(num_partitions=2))
    peer.publish("events", ONE)
    (part,) = read(peer, ReadRequest(50, 1, 1000, (position("events", 1, 0),)))
    assert (part.error, part.message_set, part.high_watermark) == (0, b"", 0)


def test_read_when_a_log_takes_no_more_data_then_still_waits(
    peer: Peer, running_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader at the end of a failed log must not go round in circles."""
    peer.publish("events", ONE)
    (log,) = running_broker.logs.table.all()
    monkeypatch.setattr(log, "failure", StorageError("broken"))
    started_s = time.monotonic()
    assert peer.read("events", len(ONE), max_wait_ms=100).error == 0
    assert time.monotonic() - started_s >= 0.1


def test_read_when_part_is_unflushed_then_waits_for_the_flush(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(flush_interval_ms=NEVER_MS)
    reader, writer = connect(broker), connect(broker)
    writer.publish("events", ONE)
    writer.produce("events", ONE)
    writer.status()
    reader.send_extension(read_request("events", len(ONE), max_wait_ms=LONG_MS))
    assert not reader.has_answer(0.05)
    writer.flush("events")
    assert decode_read_response(reader.receive_extension())[0].message_set == ONE


def test_read_when_many_wait_then_all_are_woken(
    running_broker: Broker, connect: PeerFactory
) -> None:
    writer = connect(running_broker)
    writer.publish("events", ONE)
    readers = [connect(running_broker) for _ in range(30)]
    for reader in readers:
        reader.send_extension(read_request("events", len(ONE), max_wait_ms=LONG_MS))
        reader.send_extension(read_request("events", len(ONE), max_wait_ms=LONG_MS), 2)
    writer.publish("events", ONE)
    for reader in readers:
        assert decode_read_response(reader.receive_extension(1))[0].message_set == ONE
        assert decode_read_response(reader.receive_extension(2))[0].message_set == ONE


def test_read_when_it_has_many_partitions_then_all_are_answered(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(num_partitions=300))
    for index in range(300):
        peer.produce("events", encode([b"%d" % index]), index=index)
    positions = tuple(position("events", index, 0) for index in range(300))
    expected = [encode([b"%d" % index]) for index in range(300)]
    request = ReadRequest(LONG_MS, sum(map(len, expected)), 1 << 20, positions)
    assert [part.message_set for part in read(peer, request)] == expected


def test_read_when_its_wait_is_longer_than_allowed_then_completed_at_the_longest(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(max_fetch_wait_ms=50))
    peer.publish("events", ONE)
    assert peer.read("events", len(ONE), max_wait_ms=2**31 - 1).message_set == b""


def test_read_when_it_names_too_many_positions_then_refused_and_connection_goes_on(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(max_fetch_positions=2))
    peer.publish("events", ONE)
    start = position("events", 0, 0)
    for request in (
        ReadRequest(0, 1, 100, (start,) * 3),
        FilteredReadRequest(ReadRequest(0, 1, 100, (start,) * 3), PayloadFilter(b"")),
    ):
        with pytest.raises(ResponseTooLargeError, match=r"above max\.fetch\.positions=2"):
            peer.call(request)
    parts = decode_read_response(peer.call(ReadRequest(0, 1, 100, (start,) * 2)))
    assert [part.message_set for part in parts] == [ONE, ONE]


def test_read_when_it_names_a_partition_many_times_then_watches_its_log_once(
    running_broker: Broker, peer: Peer, connect: PeerFactory
) -> None:
    peer.publish("events", ONE)
    log = running_broker.logs.table.get("events", 0)
    assert log is not None
    end = position("events", 0, len(ONE))
    reader = connect(running_broker)
    reader.send_extension(ReadRequest(LONG_MS, 1, 100, (end,) * 1000))
    wait_until(lambda: len(log._listeners._counts), "the read")
    (counts,) = log._listeners._counts.values()
    assert list(counts.values()) == [1]
    peer.publish("events", ONE)
    assert len(decode_read_response(reader.receive_extension())) == 1000


def test_read_when_there_are_no_partitions_then_completed_at_the_deadline(peer: Peer) -> None:
    assert read(peer, ReadRequest(20, 1, 1000, ())) == []


@pytest.mark.parametrize("max_bytes", [0, -5])
def test_read_when_a_partition_may_send_nothing_then_does_not_spoil_the_others(
    max_bytes: int, peer: Peer
) -> None:
    peer.publish("events", ONE)
    positions = (position("events", 0, 0, max_bytes), position("events", 0, 0))
    parts = read(peer, ReadRequest(LONG_MS, len(ONE), 1000, positions))
    assert [part.message_set for part in parts] == [b"", ONE]


def test_read_when_a_flush_comes_in_between_then_high_watermark_covers_the_data(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer.publish("events", ONE)
    read_log = Log.read

    def read_after_a_flush(log: Log, offset: int, max_bytes: int) -> FileSlice | None:
        log.append(ONE, 1)
        log.flush()
        return read_log(log, offset, max_bytes)

    monkeypatch.setattr(Log, "read", read_after_a_flush)
    part = peer.read("events", 0)
    assert part.message_set == ONE * 2
    assert part.high_watermark == 2 * len(ONE)


def test_read_when_retention_removed_the_offset_then_error_and_the_new_start(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(segment_bytes=5, retention_bytes=2 * len(ONE))
    peer = connect(broker)
    for _ in range(5):
        peer.publish("events", ONE)
    broker.logs.retention.apply()
    start = peer.offsets("events", -2)[0]
    assert start > 0
    part = peer.read("events", 0, max_wait_ms=LONG_MS)
    assert (part.error, part.log_start_offset) == (OffsetOutOfRangeError.code, start)
    assert peer.fetch("events", 0) == (1, b"")
    assert peer.read("events", start).message_set == ONE
