from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import pytest

from broker.consumer.chunk import Chunk
from broker.consumer.fetcher import Fetcher
from broker.consumer.partition_reader import PartitionReader
from broker.errors import (
    BrokerUnreachableError,
    OffsetOutOfRangeError,
    ProtocolError,
    ServerError,
    UnknownFetchSessionError,
    UnknownTopicError,
    UnsupportedVersionError,
    WrongPartitionError,
)
from broker.protocol import fetch_sessions
from broker.protocol.client_connection import ClientConnection
from broker.protocol.client_requests import ReadRequest, SessionReadRequest
from broker.protocol.codec import Fault, decode, encode
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import INT32
from broker.protocol.responses import (
    ReadPart,
    encode_extension_error,
    encode_extension_response,
    encode_read_part_header,
)
from broker.server.broker import Broker
from broker.server.requests.fetch import FetchHandler
from broker.topic import MessagePosition, TopicPartition
from tests.integration.broker.factories import (
    BrokerFactory,
    ConnectionFactory,
    ServerFactory,
    address_of,
)
from tests.integration.broker.peers import Server, answer_each
from tests.integration.broker.server.peer import Peer
from tests.support.waiting import wait_until

EVENTS = TopicPartition("events", 0, 0)
ONE = encode([b"one"])

FetcherFactory = Callable[..., Fetcher]


@pytest.fixture
def open_fetcher(open_connection: ConnectionFactory) -> Iterator[FetcherFactory]:
    """Make fetchers of a broker or stand-in; closed at the end."""
    fetchers: list[Fetcher] = []

    def make(
        peer: Broker | Server,
        positions: Mapping[TopicPartition, int] | None = None,
        *,
        fetch_bytes: int = 1 << 20,
        max_response_bytes: int = 1 << 20,
        max_wait_ms: int = 50,
    ) -> Fetcher:
        fetcher = Fetcher(
            {EVENTS: 0} if positions is None else positions,
            open_connection(address_of(peer)),
            fetch_bytes=fetch_bytes,
            max_response_bytes=max_response_bytes,
            max_wait_ms=max_wait_ms,
        )
        fetchers.append(fetcher)
        return fetcher

    yield make
    for fetcher in fetchers:
        fetcher.close()


@pytest.fixture
def peer(running_broker: Broker) -> Iterator[Peer]:
    with Peer(running_broker.port) as made:
        yield made


def poll_for(fetcher: Fetcher, size: int, partition: TopicPartition = EVENTS) -> bytes:
    """Poll until so many bytes of a partition have come, and check that they are without gaps."""
    received = bytearray()
    start: int | None = None
    give_up_s = time.monotonic() + 60
    while len(received) < size and time.monotonic() < give_up_s:
        for chunk in fetcher.poll():
            assert chunk.error == 0
            if chunk.partition == partition and len(chunk.data):
                start = chunk.offset if start is None else start
                assert chunk.offset == start + len(received)
                received += chunk.data
    return bytes(received)


def random_set(seed: int, count: int = 500, max_bytes: int = 300) -> bytes:
    numbers = random.Random(seed)
    return encode([numbers.randbytes(numbers.randrange(max_bytes)) for _ in range(count)])


@pytest.mark.parametrize("fetch_bytes", [7, 1000, 1 << 20])
def test_poll_when_log_has_many_segments_then_chunks_are_without_gaps(
    fetch_bytes: int, start_broker: BrokerFactory, open_fetcher: FetcherFactory
) -> None:
    broker = start_broker(segment_bytes=500)
    sets = [random_set(n, count=3) for n in range(20)]
    with Peer(broker.port) as peer:
        for one in sets:
            peer.publish("events", one)
    whole = b"".join(sets)
    assert poll_for(open_fetcher(broker, fetch_bytes=fetch_bytes), len(whole)) == whole


def test_poll_when_it_returns_then_the_next_request_is_under_way(
    peer: Peer, running_broker: Broker, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", ONE * 2)
    fetcher = open_fetcher(running_broker, fetch_bytes=len(ONE))
    fetcher.poll()
    wait_until(
        lambda: running_broker.status()["metrics"]["SocketServerStats"]["NumFetchRequests"] == 2,
        "the second request",
    )


def test_poll_when_nothing_came_then_the_next_request_names_what_has_changed_since(
    peer: Peer, running_broker: Broker, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", ONE)
    peer.publish("others", ONE)
    fetcher = open_fetcher(running_broker, {EVENTS: len(ONE)})
    fetcher.poll()
    others = TopicPartition("others", 0, 0)
    fetcher.seek(others, 0)
    assert [one.partition for one in fetcher.poll() if len(one.data)] == [others]


def test_poll_when_at_the_end_then_woken_by_a_new_message(
    peer: Peer, running_broker: Broker, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", ONE)
    fetcher = open_fetcher(running_broker, max_wait_ms=8000)
    assert poll_for(fetcher, len(ONE)) == ONE
    chunks: list[Chunk] = []
    polling = threading.Thread(target=lambda: chunks.extend(fetcher.poll()))
    polling.start()
    peer.publish("events", ONE)
    polling.join()
    assert [(one.offset, one.data) for one in chunks] == [(len(ONE), ONE)]


def test_poll_when_nothing_comes_then_tells_the_high_watermark(
    peer: Peer, running_broker: Broker, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", ONE)
    (chunk,) = open_fetcher(running_broker, {EVENTS: len(ONE)}).poll()
    assert (chunk.offset, len(chunk.data), chunk.error) == (len(ONE), 0, 0)
    assert (chunk.high_watermark, chunk.log_start_offset) == (len(ONE), 0)


def test_poll_when_no_partition_is_read_then_nothing_at_once(
    running_broker: Broker, open_fetcher: FetcherFactory
) -> None:
    assert open_fetcher(running_broker, {}).poll() == []


def test_poll_when_there_are_several_partitions_then_each_is_without_gaps(
    start_broker: BrokerFactory, open_fetcher: FetcherFactory
) -> None:
    broker = start_broker(num_partitions=3)
    partitions = [TopicPartition("events", 0, index) for index in range(3)]
    sets = [random_set(n, count=30) for n in range(3)]
    with Peer(broker.port) as peer:
        for index, one in enumerate(sets):
            peer.produce("events", one, index=index)
        peer.status()
    fetcher = open_fetcher(broker, dict.fromkeys(partitions, 0), fetch_bytes=100)
    found = {one: bytearray() for one in partitions}

    def is_all_there() -> bool:
        for chunk in fetcher.poll():
            assert chunk.offset == len(found[chunk.partition])
            found[chunk.partition] += chunk.data
        return all(found[one] == sets[one.index] for one in partitions)

    wait_until(is_all_there, "all bytes")


def test_poll_when_responses_are_full_before_the_last_partition_then_it_gets_its_turn(
    start_broker: BrokerFactory, open_fetcher: FetcherFactory
) -> None:
    """Partitions with a lot to read must not keep one behind them from being read at all."""
    broker = start_broker(num_partitions=4)
    partitions = [TopicPartition("events", 0, index) for index in range(4)]
    with Peer(broker.port) as peer:
        for index in range(4):
            peer.produce("events", ONE * 1000, index=index)
        wait_until(
            lambda: all(peer.fetch("events", 0, index=index)[1] for index in range(4)), "the flush"
        )
    fetcher = open_fetcher(
        broker, dict.fromkeys(partitions, 0), fetch_bytes=100, max_response_bytes=200
    )
    seen = {chunk.partition for _ in range(8) for chunk in fetcher.poll() if len(chunk.data)}
    assert seen == set(partitions)


def test_seek_when_a_request_is_under_way_then_its_answer_is_left_out(
    peer: Peer, running_broker: Broker, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", ONE * 5)
    fetcher = open_fetcher(running_broker, fetch_bytes=len(ONE))
    assert poll_for(fetcher, len(ONE)) == ONE
    fetcher.seek(EVENTS, 4 * len(ONE))
    offsets = [chunk.offset for _ in range(3) for chunk in fetcher.poll() if len(chunk.data)]
    assert offsets == [4 * len(ONE)]


def test_forget_when_a_request_is_under_way_then_no_further_chunk(
    peer: Peer, running_broker: Broker, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", ONE * 5)
    fetcher = open_fetcher(running_broker, fetch_bytes=len(ONE))
    fetcher.poll()
    fetcher.forget(EVENTS)
    fetcher.forget(EVENTS)
    assert fetcher.partitions == []
    assert fetcher.poll() == []
    fetcher.seek(EVENTS, 0)
    assert poll_for(fetcher, 5 * len(ONE)) == ONE * 5


@pytest.mark.parametrize(
    ("partition", "offset", "error"),
    [
        (EVENTS, 1000, OffsetOutOfRangeError),
        (EVENTS, -1, OffsetOutOfRangeError),
        (TopicPartition("events", 0, 5), 0, WrongPartitionError),
        (TopicPartition("nothing", 0, 0), 0, UnknownTopicError),
    ],
)
def test_poll_when_a_partition_has_an_error_then_told_once_and_others_go_on(
    partition: TopicPartition,
    offset: int,
    error: type[OffsetOutOfRangeError],
    start_broker: BrokerFactory,
    open_fetcher: FetcherFactory,
) -> None:
    broker = start_broker(topic_partition_counts={"audit": 1})
    audit = TopicPartition("audit", 0, 0)
    with Peer(broker.port) as peer:
        peer.publish("events", ONE)
        peer.publish("audit", ONE)
        fetcher = open_fetcher(broker, {partition: offset, audit: 0})
        chunks = {chunk.partition: chunk for chunk in fetcher.poll()}
        assert chunks[partition].error == error.code
        assert chunks[audit].data == ONE
        assert fetcher.partitions == [audit]
        peer.publish("audit", ONE)
        assert poll_for(fetcher, len(ONE), audit) == ONE


def test_poll_when_offset_is_out_of_range_then_tells_where_the_log_starts(
    peer: Peer, running_broker: Broker, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", ONE)
    fetcher = open_fetcher(running_broker, {EVENTS: 99})
    (chunk,) = fetcher.poll()
    assert (chunk.log_start_offset, chunk.high_watermark) == (0, len(ONE))
    fetcher.seek(EVENTS, chunk.log_start_offset)
    assert poll_for(fetcher, len(ONE)) == ONE


def test_poll_when_broker_restarts_then_goes_on_without_gaps(
    start_broker: BrokerFactory, open_fetcher: FetcherFactory
) -> None:
    first = start_broker()
    with Peer(first.port) as peer:
        peer.publish("events", ONE * 2)
    fetcher = open_fetcher(first, max_wait_ms=8000)
    assert poll_for(fetcher, 2 * len(ONE)) == ONE * 2
    first.stop()
    second = start_broker(port=first.port)
    with Peer(second.port) as peer:
        peer.publish("events", encode([b"new"]))
    received = b""
    while not received:
        with suppress(BrokerUnreachableError):  # the next poll connects again
            received = poll_for(fetcher, 1)
    assert received == encode([b"new"])


def test_poll_when_broker_stays_away_then_raises(
    running_broker: Broker, open_connection: ConnectionFactory, peer: Peer
) -> None:
    peer.publish("events", ONE)
    connection = open_connection(address_of(running_broker), connect_timeout_s=0.1)
    fetcher = Fetcher({EVENTS: 0}, connection, max_wait_ms=50)
    assert poll_for(fetcher, len(ONE)) == ONE
    running_broker.stop()

    def poll_until_it_raises() -> None:
        while True:
            fetcher.poll()

    with pytest.raises(BrokerUnreachableError, match="lost "):
        poll_until_it_raises()


def read_answer(correlation_id: int, partition: TopicPartition) -> bytes:
    part = encode_read_part_header(ReadPart(partition, 0, 0, 0, b""), 0)
    return encode_extension_response(correlation_id, INT32.pack(1) + part)


def test_poll_when_another_partition_is_answered_than_asked_for_then_protocol_error(
    start_server: ServerFactory, open_fetcher: FetcherFactory
) -> None:
    other = TopicPartition("other", 0, 0)
    server = start_server(answer_each(read_answer(2, other)))
    with pytest.raises(ProtocolError, match=r"other\[0-0\], which was not requested"):
        open_fetcher(server).poll()


def test_poll_when_request_is_refused_as_a_whole_then_raises_and_asks_anew(
    start_server: ServerFactory, open_fetcher: FetcherFactory
) -> None:
    refusal = encode_extension_error(2, UnsupportedVersionError.code, "no")
    fetcher = open_fetcher(start_server(answer_each(refusal, read_answer(3, EVENTS))))
    with pytest.raises(UnsupportedVersionError):
        fetcher.poll()
    assert [chunk.error for chunk in fetcher.poll()] == [0]


def test_poll_when_broker_is_of_0_7_then_chunks_are_without_gaps(
    peer: Peer, old_broker: Server, open_fetcher: FetcherFactory
) -> None:
    whole = random_set(5, count=50)
    peer.publish("events", whole)
    fetcher = open_fetcher(old_broker, fetch_bytes=333)
    assert poll_for(fetcher, len(whole)) == whole
    assert fetcher.poll() == []
    peer.publish("events", ONE)
    assert poll_for(fetcher, len(ONE)) == ONE


def test_poll_when_broker_of_0_7_reports_an_error_then_a_chunk_with_it(
    peer: Peer, old_broker: Server, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", ONE)
    (chunk,) = open_fetcher(old_broker, {EVENTS: 99}).poll()
    assert (chunk.error, chunk.high_watermark) == (OffsetOutOfRangeError.code, -1)


@pytest.mark.parametrize("fetch_bytes", [64, 1000])
def test_partition_reader_when_messages_are_larger_than_a_chunk_then_joined(
    fetch_bytes: int, peer: Peer, running_broker: Broker, open_fetcher: FetcherFactory
) -> None:
    payloads = [bytes([n]) * size for n, size in enumerate([10, 5000, 0, 20_000, 1, 999, 3000])]
    whole = encode(payloads)
    peer.publish("events", whole)
    fetcher = open_fetcher(running_broker, fetch_bytes=fetch_bytes)
    reader = PartitionReader(EVENTS, MessagePosition(0))
    found: list[bytes] = []

    give_up_s = time.monotonic() + 60
    while reader.offset < len(whole) and time.monotonic() < give_up_s:
        for chunk in fetcher.poll():
            reader.add(chunk)
            decoded = decode(reader.data, reader.offset)
            assert decoded.fault in (Fault.NONE, Fault.PARTIAL)
            found += [payload for _, _, payload in decoded.messages]
            reader.take(decoded.valid_bytes)
    assert found == payloads


def test_poll_when_broker_of_0_7_answers_with_less_than_asked_then_it_ends_on_a_boundary(
    peer: Peer, old_broker: Server, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", ONE * 3)
    fetcher = open_fetcher(old_broker, fetch_bytes=30)

    assert [chunk.high_watermark for _ in range(2) for chunk in fetcher.poll()] == [-1, 39]


MANY = [TopicPartition("wide", 0, index) for index in range(40)]


@pytest.mark.parametrize(
    ("case", "read_count", "uses_sessions", "named_later"),
    [
        ("as it is", 40, True, 2),
        ("a broker of an earlier version", 40, False, 40),
        ("a broker without room for sessions", 40, True, 40),
        ("few partitions", 15, False, 15),
    ],
)
def test_poll_when_partitions_are_many_then_requests_name_what_has_moved(
    case: str,
    read_count: int,
    uses_sessions: bool,
    named_later: int,
    running_broker: Broker,
    peer: Peer,
    open_fetcher: FetcherFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests: list[ReadRequest | SessionReadRequest] = []
    encode_one, understands = ClientConnection.encode, ClientConnection.understands

    def note(connection: ClientConnection, request: ExtensionRequest) -> Any:
        if isinstance(request, ReadRequest | SessionReadRequest):
            requests.append(request)
        return encode_one(connection, request)

    def understands_old(connection: ClientConnection, kind: type[ExtensionRequest]) -> bool:
        return kind is not SessionReadRequest and understands(connection, kind)

    monkeypatch.setattr(ClientConnection, "encode", note)
    if "earlier version" in case:
        monkeypatch.setattr(ClientConnection, "understands", understands_old)
    if "without room" in case:
        monkeypatch.setattr(fetch_sessions, "_MAX_SESSIONS", 0)
    peer.call(CreateTopicRequest("wide", len(MANY)))
    fetcher = open_fetcher(running_broker, dict.fromkeys(MANY[:read_count], 0))
    fetcher.pause(MANY[2])
    for partition in (MANY[3], MANY[10]):
        peer.produce(partition.topic, ONE, partition.index)
        assert poll_for(fetcher, len(ONE), partition) == ONE
    assert any(isinstance(one, SessionReadRequest) for one in requests) is uses_sessions
    reads = [one.read if isinstance(one, SessionReadRequest) else one for one in requests]
    counts = [len(one.positions) for one in reads]
    assert counts[0] == read_count - 1
    assert max(counts[-2:]) in (named_later, named_later - 1, 0)

    fetcher.resume(MANY[2])
    fetcher.forget(MANY[3])
    fetcher.seek(MANY[10], 0)
    for index in (2, 3):
        peer.produce("wide", ONE, index)
    found: list[tuple[TopicPartition, bytes]] = []
    while len(found) < 2:
        found += [(one.partition, bytes(one.data)) for one in fetcher.poll() if len(one.data)]
    assert sorted(found) == [(MANY[2], ONE), (MANY[10], ONE)]


@pytest.mark.parametrize("refusal", [UnknownFetchSessionError, UnsupportedVersionError])
def test_poll_when_a_session_is_refused_then_goes_on_without_on_the_same_connection(
    refusal: type[ServerError],
    running_broker: Broker,
    peer: Peer,
    open_fetcher: FetcherFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peer.call(CreateTopicRequest("wide", len(MANY)))
    fetcher = open_fetcher(running_broker, dict.fromkeys(MANY, 0))
    assert {one.partition for one in fetcher.poll()} == set(MANY)
    sock = fetcher.connection._socket
    monkeypatch.setattr(FetchHandler, "read_in_session", Mock(side_effect=refusal("not here")))
    peer.produce("wide", ONE, 7)
    assert poll_for(fetcher, len(ONE), MANY[7]) == ONE
    assert fetcher.connection._socket is sock


def test_poll_when_sought_where_it_is_then_the_high_watermark_comes_again(
    running_broker: Broker, peer: Peer, open_fetcher: FetcherFactory
) -> None:
    peer.call(CreateTopicRequest("wide", len(MANY)))
    fetcher = open_fetcher(running_broker, dict.fromkeys(MANY, 0))
    fetcher.poll()
    assert fetcher.poll() == []
    fetcher.seek(MANY[3], 0)
    found = [chunk for _ in range(2) for chunk in fetcher.poll()]  # one was requested before
    assert [(one.partition, one.high_watermark) for one in found] == [(MANY[3], 0)]


def test_poll_when_a_session_is_lost_with_its_connection_then_the_next_names_all(
    running_broker: Broker, peer: Peer, open_fetcher: FetcherFactory
) -> None:
    peer.call(CreateTopicRequest("wide", len(MANY)))
    fetcher = open_fetcher(running_broker, dict.fromkeys(MANY, 0))
    assert {one.partition for one in fetcher.poll()} == set(MANY)
    fetcher.connection.close()
    peer.produce("wide", ONE, 7)
    assert poll_for(fetcher, len(ONE), MANY[7]) == ONE
