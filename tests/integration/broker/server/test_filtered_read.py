from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from broker.errors import (
    InvalidPatternError,
    OffsetOutOfRangeError,
    StorageError,
    UnknownTopicError,
    WrongPartitionError,
)
from broker.log.segment import SegmentFile
from broker.protocol.client_requests import (
    MAX_PATTERN_BYTES,
    FilteredReadRequest,
    HelloRequest,
    PartitionPosition,
    PayloadFilter,
    ReadRequest,
)
from broker.protocol.codec import decode, encode
from broker.protocol.compression import Codec
from broker.protocol.extension_requests import (
    CreateTopicRequest,
)
from broker.protocol.message_set import build_set
from broker.protocol.requests import RequestType
from broker.protocol.responses import (
    HELLO,
    FilteredPart,
    decode_filtered_read_response,
)
from broker.server.broker import Broker
from broker.server.requests import pattern_filter
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, filtered_request, partition
from tests.support.waiting import wait_until

LONG_MS = 60_000
YES, NO = encode([b"yes"]), encode([b"no"])
EVERYTHING = PayloadFilter(b"")


def position(topic: str, index: int, offset: int, max_bytes: int = 1000) -> PartitionPosition:
    return PartitionPosition(partition(topic, index), offset, max_bytes)


def read(
    peer: Peer, *positions: PartitionPosition, max_bytes: int = 1 << 20, pattern: bytes = b"yes"
) -> list[FilteredPart]:
    request = FilteredReadRequest(ReadRequest(0, 1, max_bytes, positions), PayloadFilter(pattern))
    return decode_filtered_read_response(peer.call(request))


def messages_of(part: FilteredPart) -> list[tuple[int, int, bytes]]:
    """Offset, next offset and payload of all that came."""
    return [one for run in part.runs for one in decode(run.entries, run.offset).messages]


def read_through(
    peer: Peer, topic: str, pattern: bytes | PayloadFilter, *, max_bytes: int = 1 << 20
) -> list[tuple[int, int, bytes]]:
    """All messages that came from the start to the high watermark."""
    found: list[tuple[int, int, bytes]] = []
    offset = 0
    while True:
        part = peer.read_filtered(topic, offset, pattern, max_bytes=max_bytes)
        assert part.error == 0
        found += messages_of(part)
        if part.next_offset == part.high_watermark:
            return found
        assert part.next_offset > offset
        offset = part.next_offset


def test_read_when_filtered_then_only_what_matches_comes_with_its_offsets(peer: Peer) -> None:
    log = NO + YES + YES + NO + YES
    peer.publish("events", log)
    part = peer.read_filtered("events", 0, b"^y")
    every = [one for one in decode(log, 0).messages if one[2] == b"yes"]
    assert messages_of(part) == every
    assert [run.offset for run in part.runs] == [len(NO), 2 * len(NO) + 2 * len(YES)]
    assert (part.error, part.text) == (0, "")
    assert part.next_offset == part.high_watermark == len(log)


def test_read_when_nothing_matches_then_completed_with_progress(peer: Peer) -> None:
    peer.publish("events", NO * 50)
    part = peer.read_filtered("events", len(NO), b"yes", max_wait_ms=LONG_MS)
    assert (part.error, part.runs, part.next_offset) == (0, (), 50 * len(NO))


def test_read_when_nothing_matches_then_nothing_crosses_the_network(
    peer: Peer, running_broker: Broker
) -> None:
    def written() -> int:
        return int(running_broker.status()["metrics"]["SocketServerStats"]["TotalBytesWritten"])

    peer.publish("events", NO * 10_000 + YES)
    before = written()
    assert len(read_through(peer, "events", b"yes")) == 1
    # an answer is counted when it is sent, which is before we read it, or just after that
    wait_until(lambda: written() > before, "the count")
    assert written() - before < 1000


@pytest.mark.parametrize(
    ("payload_filter", "expected"),
    [
        (PayloadFilter(b"YES", ignore_case=True), [b"yes"]),
        (PayloadFilter(b"yes", invert=True), [b"no"]),
        (PayloadFilter(b"N", ignore_case=True, invert=True), [b"yes"]),
        (PayloadFilter(b"yes|no"), [b"no", b"yes"]),
        (EVERYTHING, [b"no", b"yes"]),
    ],
)
def test_read_when_the_filter_has_options_then_they_count(
    payload_filter: PayloadFilter, expected: list[bytes], peer: Peer
) -> None:
    peer.publish("events", NO + YES)
    part = peer.read_filtered("events", 0, payload_filter)
    assert [payload for _, _, payload in messages_of(part)] == expected


def test_read_when_at_the_end_then_woken_by_a_flush(
    running_broker: Broker, connect: PeerFactory
) -> None:
    reader, writer = connect(running_broker), connect(running_broker)
    writer.publish("events", YES)
    reader.send_extension(filtered_request("events", len(YES), b"y", max_wait_ms=LONG_MS))
    assert not reader.has_answer(0.05)
    writer.produce("events", YES)
    (part,) = decode_filtered_read_response(reader.receive_extension())
    assert [run.offset for run in part.runs] == [len(YES)]


def test_read_when_below_min_bytes_then_waits_for_them_wanted_or_not(
    running_broker: Broker, connect: PeerFactory
) -> None:
    reader, writer = connect(running_broker), connect(running_broker)
    writer.publish("events", NO)
    request = filtered_request("events", 0, b"y", max_wait_ms=LONG_MS, min_bytes=2 * len(NO))
    reader.send_extension(request)
    assert not reader.has_answer(0.05)
    writer.publish("events", NO)
    (part,) = decode_filtered_read_response(reader.receive_extension())
    assert (part.runs, part.next_offset) == ((), 2 * len(NO))


def test_read_when_nothing_comes_then_completed_at_the_deadline(peer: Peer) -> None:
    peer.publish("events", YES)
    started_s = time.monotonic()
    part = peer.read_filtered("events", len(YES), b"y", max_wait_ms=100)
    assert (part.error, part.runs, part.next_offset) == (0, (), len(YES))
    assert time.monotonic() - started_s >= 0.1


def test_read_when_deadline_comes_below_min_bytes_then_what_is_there_is_searched(
    peer: Peer,
) -> None:
    peer.publish("events", NO + YES)
    request = filtered_request("events", 0, b"y", max_wait_ms=50, min_bytes=1000)
    (part,) = decode_filtered_read_response(peer.call(request))
    assert [run.offset for run in part.runs] == [len(NO)]


@pytest.mark.parametrize("max_wait_ms", [0, -1, -(2**31)])
def test_read_when_it_may_not_wait_then_completed_empty_at_once(
    max_wait_ms: int, peer: Peer
) -> None:
    peer.publish("events", YES)
    part = peer.read_filtered("events", len(YES), b"y", max_wait_ms=max_wait_ms)
    assert (part.error, part.runs) == (0, ())


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (b"a(b", r"'a\(b' is no regular expression of RE2: missing \): a\(b"),
        (b"[z-a]", "invalid character class range: z-a"),
        (b"x" * (MAX_PATTERN_BYTES + 1), "the pattern has 1025 bytes; the limit is 1024"),
        (b"(" * 1000, "is no regular expression"),
        (b"a{1001}", "invalid repetition size"),
    ],
)
def test_read_when_pattern_is_none_then_refused_at_once_and_connection_goes_on(
    pattern: bytes, reason: str, peer: Peer
) -> None:
    peer.publish("events", YES)
    with pytest.raises(InvalidPatternError, match=reason):
        peer.read_filtered("events", len(YES), pattern, max_wait_ms=LONG_MS)
    assert peer.status()["broker"] == 0


def test_read_when_pattern_is_as_long_as_allowed_then_taken(peer: Peer) -> None:
    payload = b"x" * MAX_PATTERN_BYTES
    peer.publish("events", encode([payload]))
    assert len(messages_of(peer.read_filtered("events", 0, payload))) == 1


def test_read_when_errors_are_mixed_then_each_partition_has_its_own(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(broker_id=3))
    peer.publish("events", NO + YES)
    parts = read(
        peer,
        position("nothing", 0, 0),
        position("events", 1, 0),
        PartitionPosition(partition("events", 0, home=9), 0, 100),
        position("events", 0, 10_000),
        position("events", 0, 0),
    )
    assert [part.error for part in parts] == [
        UnknownTopicError.code,
        WrongPartitionError.code,
        WrongPartitionError.code,
        OffsetOutOfRangeError.code,
        0,
    ]
    assert (
        parts[3].text == f"offset 10000 of events[3-0] is out of range: 0 to {23 + 2} can be read"
    )
    assert [part.high_watermark for part in parts] == [0, 0, 0, 25, 25]
    assert [part.next_offset for part in parts] == [0, 0, 0, 10_000, 25]
    assert [run.offset for run in parts[4].runs] == [len(NO)]


@pytest.mark.parametrize("max_wait_ms", [0, LONG_MS])
def test_read_when_partition_has_an_error_then_does_not_wait(max_wait_ms: int, peer: Peer) -> None:
    part = peer.read_filtered("nothing", 0, b"y", max_wait_ms=max_wait_ms)
    assert part.error == UnknownTopicError.code


def test_read_when_partition_has_no_log_yet_then_waits_for_its_first_message(
    running_broker: Broker, connect: PeerFactory
) -> None:
    reader, writer = connect(running_broker), connect(running_broker)
    writer.call(CreateTopicRequest("events", 1))
    reader.send_extension(filtered_request("events", 0, b"y", max_wait_ms=LONG_MS))
    writer.publish("events", YES)
    (part,) = decode_filtered_read_response(reader.receive_extension())
    assert len(part.runs) == 1


def test_read_when_max_bytes_are_reached_then_ends_with_that_entry(peer: Peer) -> None:
    peer.publish("events", (NO + YES) * 5)
    part = peer.read_filtered("events", 0, b"yes", max_bytes=len(YES) + 1)
    assert len(messages_of(part)) == 2
    assert part.next_offset == 2 * len(NO + YES)


def test_read_when_max_bytes_are_used_up_then_later_partitions_stay_where_they_are(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(num_partitions=2))
    for index in range(2):
        peer.produce("events", YES, index=index)
        wait_until(
            lambda index=index: peer.fetch("events", 0, index=index)[1],  # type: ignore[misc]  # mypy: lambda default
            "the flush",
        )
    parts = read(peer, position("events", 0, 0), position("events", 1, 0), max_bytes=1)
    assert [(len(part.runs), part.next_offset) for part in parts] == [(1, len(YES)), (0, 0)]
    parts = read(peer, position("events", 0, 0, max_bytes=0), position("events", 1, 0))
    assert [(len(part.runs), part.next_offset) for part in parts] == [(0, 0), (1, len(YES))]


def test_read_when_log_is_longer_than_is_searched_at_once_then_progress_comes_in_steps(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_filter, "SCAN_BYTES", 100)
    peer.publish("events", NO * 100 + YES)
    part = peer.read_filtered("events", 0, b"yes")
    assert part.runs == ()
    assert 0 < part.next_offset < 100 + len(NO)
    assert [offset for offset, _, _ in read_through(peer, "events", b"yes")] == [100 * len(NO)]


def test_read_when_a_message_is_longer_than_a_piece_then_is_searched_to_its_end(
    peer: Peer,
) -> None:
    payload = b"-" * 700_000 + b"!"
    log = NO + encode([payload]) + NO
    peer.publish("events", log)
    assert read_through(peer, "events", b"!$", max_bytes=10) == [
        (len(NO), len(log) - len(NO), payload)
    ]
    assert read_through(peer, "events", b"nowhere") == []


def test_read_when_log_has_many_segments_then_goes_through_them_all(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(segment_bytes=30))
    for _ in range(10):
        peer.publish("events", NO + YES)
    found = read_through(peer, "events", b"yes")
    assert [offset for offset, _, _ in found] == [len(NO) + n * len(NO + YES) for n in range(10)]


@pytest.mark.parametrize("seed", range(5))
def test_read_when_of_random_messages_then_is_what_a_filter_here_would_give(
    seed: int, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = random.Random(seed)
    monkeypatch.setattr(pattern_filter, "SCAN_BYTES", numbers.choice((1, 500, 1 << 20)))
    log = b""
    for _ in range(60):
        payloads = [numbers.randbytes(numbers.randrange(200)) for _ in range(3)]
        log += build_set(payloads, numbers.choice((Codec.NONE, Codec.NONE, *Codec)))
    peer.publish("events", log)
    search = re.compile(b"[\x00-\x01]{1}[\x00-\x7f]").search
    wrappers = {offset for offset, end, _ in decode(log, 0).messages if end == offset}
    wanted = [one for one in decode(log, 0).messages if search(one[2])]
    max_bytes = numbers.choice((1, 300, 1 << 20))
    found = read_through(peer, "events", b"[\x00-\x01]{1}[\x00-\x7f]", max_bytes=max_bytes)
    assert [one for one in found if search(one[2])] == wanted
    assert all(search(payload) for offset, _, payload in found if offset not in wrappers)


def test_read_when_a_wrapper_holds_one_match_then_it_comes_whole(peer: Peer) -> None:
    unwanted = build_set([b"no", b"no"], Codec.GZIP)
    mixed = build_set([b"no", b"yes"], Codec.GZIP)
    peer.publish("events", unwanted + mixed)
    part = peer.read_filtered("events", 0, b"yes")
    assert [(run.offset, run.entries) for run in part.runs] == [(len(unwanted), mixed)]


def test_read_when_a_message_is_corrupt_then_it_comes_and_those_behind_it_are_filtered(
    peer: Peer, running_broker: Broker
) -> None:
    peer.publish("events", NO * 3 + YES)
    overwrite(running_broker, len(NO) + 10, b"??")
    part = peer.read_filtered("events", 0, b"yes")
    corrupt = NO[:10] + b"??"
    assert [(run.offset, run.entries) for run in part.runs] == [
        (len(NO), corrupt),
        (3 * len(NO), YES),
    ]


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x02", b"\x7f\xff\xff\xff"])
def test_read_when_a_length_is_corrupt_then_all_behind_it_comes_as_it_is(
    length: bytes, peer: Peer, running_broker: Broker
) -> None:
    peer.publish("events", NO * 4)
    overwrite(running_broker, len(NO), length)
    rest = length + (NO * 3)[4:]
    found = b""
    offset = 0
    while offset < 4 * len(NO):
        part = peer.read_filtered("events", offset, b"yes")
        assert part.error == 0
        for run in part.runs:
            assert run.offset == len(NO) + len(found)
            found += run.entries
        offset = part.next_offset
    assert found == rest


def overwrite(broker: Broker, position: int, data: bytes) -> None:
    """Damage the one segment of the topic `events` on disk."""
    (path,) = segments(broker)
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def segments(broker: Broker) -> list[Path]:
    return sorted((broker.config.data_dir / "events_0").glob("*.pylog"))


def test_read_when_the_file_cannot_be_read_then_error_names_the_partition_and_broker_goes_on(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(num_partitions=2)
    peer = connect(broker)
    peer.publish("events", NO * 3)
    peer.produce("events", YES, index=1)
    wait_until(lambda: peer.fetch("events", 0, index=1)[1], "the flush")
    (path,) = segments(broker)
    with path.open("r+b") as file:
        file.truncate(len(NO))
    broken, fine = read(peer, position("events", 0, 0), position("events", 1, 0))
    assert broken.error == StorageError.code
    assert broken.text == (
        f"cannot read events[0-0] from offset 0 on: the file ends {2 * len(NO)} bytes early"
    )
    assert (fine.error, len(fine.runs)) == (0, 1)
    assert broker.status()["metrics"]["BrokerTopicStat.events"]["FailedFetchRequest"] == 1


def test_read_when_the_descriptor_cannot_be_read_then_the_reason_is_told(
    peer: Peer, running_broker: Broker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    peer.publish("events", NO)
    (log,) = running_broker.logs.table.all()
    segment = log.segments.all[-1]
    directory = tmp_path / segment.path.name
    directory.mkdir()
    monkeypatch.setattr(segment, "file", SegmentFile(directory))
    part = peer.read_filtered("events", 0, b"yes")
    assert part.error == StorageError.code
    assert part.text == f"cannot read events[0-0] at offset 0: {directory}: Is a directory"
    assert peer.status()["broker"] == 0


def test_filtered_read_when_counted_then_as_a_fetch_with_what_was_left_out(
    peer: Peer, running_broker: Broker
) -> None:
    peer.publish("events", NO * 3 + YES + build_set([b"no"] * 5, Codec.GZIP))
    peer.read_filtered("events", 0, b"yes")
    metrics = running_broker.status()["metrics"]
    assert metrics["SocketServerStats"]["NumFetchRequests"] == 1
    assert metrics["BrokerTopicStat.events"]["BytesOut"] == len(YES)
    assert metrics["BrokerTopicStat.events"]["MessagesFilteredOut"] == 8


def test_hello_when_asked_then_tells_that_reads_can_be_filtered(peer: Peer) -> None:
    hello = HELLO.decode(peer.call(HelloRequest()))
    assert hello.versions[RequestType.READ][1] >= 1


def test_filtered_read_when_broker_starts_again_then_goes_on_where_it_was(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    first = start_broker()
    peer = connect(first)
    peer.publish("events", NO * 5)
    offset = peer.read_filtered("events", 0, b"yes").next_offset
    first.stop()
    peer = connect(start_broker())
    peer.publish("events", YES)
    part = peer.read_filtered("events", offset, b"yes")
    assert [run.offset for run in part.runs] == [5 * len(NO)]
