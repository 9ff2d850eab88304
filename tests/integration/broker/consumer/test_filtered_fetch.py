"""Fetching with a filter gives the same from every broker, whoever does the filtering."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import pytest

from broker.consumer.chunk import Chunk
from broker.consumer.fetcher import Fetcher
from broker.consumer.simple_consumer import SimpleConsumer
from broker.errors import (
    BrokerUnreachableError,
    InvalidMessageError,
    InvalidPatternError,
    OffsetOutOfRangeError,
    ProtocolError,
)
from broker.protocol.client_requests import PayloadFilter
from broker.protocol.codec import Fault, decode, encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.primitives import INT32
from broker.protocol.requests import RequestType
from broker.protocol.responses import (
    FilteredPart,
    Run,
    encode_extension_error,
    encode_extension_response,
    encode_filtered_part_header,
    encode_run,
)
from broker.server.broker import Broker
from broker.server.requests import admin
from broker.topic import TopicPartition
from tests.integration.broker.factories import (
    BrokerFactory,
    ConnectionFactory,
    ServerFactory,
    address_of,
)
from tests.integration.broker.peers import Server, answer_each, as_true_07_broker
from tests.integration.broker.server.peer import Peer

EVENTS = TopicPartition("events", 0, 0)
OTHER = TopicPartition("events", 0, 1)
YES, NO = encode([b"yes"]), encode([b"no"])
WANTED = PayloadFilter(b"yes")
FILTERING = {int(RequestType.READ): (0, 1)}

FetcherFactory = Callable[..., Fetcher]
KINDS = ("filters", "does not filter", "0.7")


@pytest.fixture(params=KINDS)
def broker(
    request: pytest.FixtureRequest, start_broker: BrokerFactory, monkeypatch: pytest.MonkeyPatch
) -> Broker:
    """A broker behind `place`."""
    if request.param == "does not filter":
        versions = admin.supported_versions() | {int(RequestType.READ): (0, 0)}
        monkeypatch.setattr(admin, "supported_versions", lambda: versions)
    return start_broker(num_partitions=2)


@pytest.fixture
def place(
    request: pytest.FixtureRequest, broker: Broker, start_server: ServerFactory
) -> Broker | Server:
    """`broker` as clients see it: of each kind, one after another."""
    kind = request.node.callspec.params["broker"]
    return start_server(as_true_07_broker(broker.port)) if kind == "0.7" else broker


@pytest.fixture
def peer(broker: Broker) -> Iterator[Peer]:
    with Peer(broker.port) as made:
        yield made


@pytest.fixture
def open_fetcher(open_connection: ConnectionFactory) -> Iterator[FetcherFactory]:
    """Make fetchers with a filter; closed at the end."""
    fetchers: list[Fetcher] = []

    def make(
        place: Broker | Server,
        positions: Mapping[TopicPartition, int] | None = None,
        *,
        payload_filter: PayloadFilter = WANTED,
        fetch_bytes: int = 1 << 20,
    ) -> Fetcher:
        fetcher = Fetcher(
            {EVENTS: 0} if positions is None else positions,
            open_connection(address_of(place)),
            fetch_bytes=fetch_bytes,
            max_wait_ms=50,
            payload_filter=payload_filter,
        )
        fetchers.append(fetcher)
        return fetcher

    yield make
    for fetcher in fetchers:
        fetcher.close()


def poll_to(fetcher: Fetcher, end: int, partition: TopicPartition = EVENTS) -> list[Chunk]:
    """Poll until a partition is read up to an offset, and check that nothing is left out."""
    found: list[Chunk] = []
    offset: int | None = None
    give_up_s = time.monotonic() + 60
    while offset != end and time.monotonic() < give_up_s:
        for piece in fetcher.poll():
            if piece.partition == partition and piece.next_offset > piece.offset:
                assert piece.error == 0
                assert piece.offset == (piece.offset if offset is None else offset)
                assert len(piece.data) in (0, piece.next_offset - piece.offset)
                offset = piece.next_offset
                found.append(piece)
    assert offset == end
    return found


def contents(pieces: list[Chunk]) -> bytes:
    return b"".join(piece.data for piece in pieces)


def messages_of(pieces: list[Chunk]) -> list[tuple[int, int, bytes]]:
    """All messages with their offsets; pieces hold whole entries."""
    found: list[tuple[int, int, bytes]] = []
    for piece in pieces:
        messages, _, fault = decode(piece.data, piece.offset)
        assert fault is Fault.NONE
        found += messages
    return found


def test_poll_when_filtered_then_unwanted_messages_are_skipped(
    peer: Peer, place: Broker | Server, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", NO + YES * 2 + NO)
    pieces = poll_to(open_fetcher(place), 2 * len(NO + YES))
    assert [(one.offset, one.next_offset, one.skip_to is not None) for one in pieces] == [
        (0, 12, True),
        (12, 38, False),
        (38, 50, True),
    ]
    assert contents(pieces) == YES * 2


def test_poll_when_nothing_is_wanted_then_gets_on_all_the_same(
    peer: Peer, place: Broker | Server, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", NO * 1000)
    pieces = poll_to(open_fetcher(place, fetch_bytes=777), 1000 * len(NO))
    assert contents(pieces) == b""


@pytest.mark.parametrize("fetch_bytes", [7, 1000, 1 << 20])
def test_poll_when_of_random_messages_then_gives_what_is_wanted_and_whole_sets(
    fetch_bytes: int, peer: Peer, place: Broker | Server, open_fetcher: FetcherFactory
) -> None:
    numbers = random.Random(fetch_bytes)
    log = b""
    for _ in range(60):
        payloads = [numbers.randbytes(numbers.randrange(200)) for _ in range(3)]
        log += build_set(payloads, numbers.choice((Codec.NONE, *Codec)))
    peer.publish("events", log)
    payload_filter = PayloadFilter(b"[\x00-\x01].[\x00-\x7f]")
    is_wanted = payload_filter.compile()
    every = decode(log, 0).messages
    kept_sets = {offset for offset, _, payload in every if is_wanted(payload)}
    fetcher = open_fetcher(place, fetch_bytes=fetch_bytes, payload_filter=payload_filter)
    found = messages_of(poll_to(fetcher, len(log)))
    assert found == [message for message in every if message[0] in kept_sets]


def test_poll_when_messages_come_later_then_goes_on_behind_those_left_out(
    peer: Peer, place: Broker | Server, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", NO * 3)
    fetcher = open_fetcher(place)
    poll_to(fetcher, 3 * len(NO))
    peer.publish("events", YES)
    pieces = poll_to(fetcher, 3 * len(NO) + len(YES))
    assert [(one.offset, one.data) for one in pieces] == [(3 * len(NO), YES)]


def test_poll_when_of_two_partitions_then_each_gets_on(
    peer: Peer, place: Broker | Server, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", NO + YES)
    peer.produce("events", (NO + YES) * 2, index=1)
    fetcher = open_fetcher(place, {EVENTS: 0, OTHER: 0})
    ends = {EVENTS: 0, OTHER: 0}
    found = {EVENTS: b"", OTHER: b""}
    give_up_s = time.monotonic() + 60
    while ends != {EVENTS: 25, OTHER: 50} and time.monotonic() < give_up_s:
        for piece in fetcher.poll():
            ends[piece.partition] = piece.next_offset
            found[piece.partition] += piece.data
    assert found == {EVENTS: YES, OTHER: YES * 2}


def test_poll_when_sent_elsewhere_in_the_middle_of_a_message_then_starts_there(
    peer: Peer, place: Broker | Server, open_fetcher: FetcherFactory
) -> None:
    log = NO + encode([b"-" * 500]) + YES
    peer.publish("events", log)
    fetcher = open_fetcher(place, fetch_bytes=100)
    fetcher.poll()
    fetcher.seek(EVENTS, len(log) - len(YES))
    assert contents(poll_to(fetcher, len(log))) == YES


def test_poll_when_a_message_is_corrupt_then_it_comes(
    peer: Peer, place: Broker | Server, broker: Broker, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", NO * 3 + YES)
    overwrite(broker, len(NO) + 10, b"??")
    pieces = poll_to(open_fetcher(place), 3 * len(NO) + len(YES))
    assert [(one.offset, one.data) for one in pieces if one.skip_to is None] == [
        (len(NO), NO[:10] + b"??"),
        (3 * len(NO), YES),
    ]


@pytest.mark.parametrize("length", [-1, 3])
def test_poll_when_a_length_is_impossible_then_all_behind_it_comes(
    length: int, peer: Peer, place: Broker | Server, broker: Broker, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", NO * 4)
    overwrite(broker, len(NO), INT32.pack(length))
    pieces = poll_to(open_fetcher(place, fetch_bytes=30), 4 * len(NO))
    assert pieces[0].skip_to is not None
    assert contents(pieces[1:]) == INT32.pack(length) + (NO * 3)[4:]


@pytest.mark.parametrize("broker", KINDS[:2], indirect=True)
def test_poll_when_a_length_goes_past_all_there_is_then_what_is_there_comes(
    peer: Peer, place: Broker | Server, broker: Broker, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", NO * 4)
    overwrite(broker, len(NO), INT32.pack(1 << 20))
    pieces = poll_to(open_fetcher(place), 4 * len(NO))
    assert contents(pieces) == INT32.pack(1 << 20) + (NO * 3)[4:]


def overwrite(broker: Broker, position: int, data: bytes) -> None:
    """Damage the one segment of partition 0 on disk."""
    (path,) = (broker.config.data_dir / "events_0").glob("*.pylog")
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def test_poll_when_offset_is_out_of_range_then_a_piece_says_so(
    peer: Peer, place: Broker | Server, open_fetcher: FetcherFactory
) -> None:
    peer.publish("events", NO)
    fetcher = open_fetcher(place, {EVENTS: 99})
    (piece,) = fetcher.poll()
    assert (piece.offset, piece.error) == (99, OffsetOutOfRangeError.code)
    assert fetcher.partitions == []


def test_poll_when_the_broker_starts_again_then_goes_on(
    start_broker: BrokerFactory, open_fetcher: FetcherFactory
) -> None:
    first = start_broker()
    with Peer(first.port) as peer:
        peer.publish("events", NO * 2)
    fetcher = open_fetcher(first)
    poll_to(fetcher, 2 * len(NO))
    first.stop()
    second = start_broker(port=first.port)
    with Peer(second.port) as peer:
        peer.publish("events", YES)
    found: list[Chunk] = []
    while not found:
        with suppress(BrokerUnreachableError):  # the next poll connects again
            found = poll_to(fetcher, 2 * len(NO) + len(YES))
    assert contents(found) == YES


def test_fetcher_when_the_pattern_is_none_then_cannot_be_made(
    running_broker: Broker, open_fetcher: FetcherFactory
) -> None:
    with pytest.raises(InvalidPatternError):
        open_fetcher(running_broker, payload_filter=PayloadFilter(b"("))


def filtered_answer(next_offset: int, *runs: Run, partition: TopicPartition = EVENTS) -> bytes:
    part = FilteredPart(partition, 0, 1000, 0, next_offset, "", runs)
    body = encode_filtered_part_header(part, len(runs)) + b"".join(map(encode_run, runs))
    return encode_extension_response(2, INT32.pack(1) + body)


@pytest.mark.parametrize(
    "answer",
    [
        filtered_answer(50),
        filtered_answer(200, Run(90, YES)),
        filtered_answer(200, Run(150, YES), Run(155, YES)),
        filtered_answer(120, Run(110, YES)),
        filtered_answer(200, Run(110, b"")),
        filtered_answer(200, partition=OTHER),
    ],
)
def test_poll_when_an_answer_goes_backwards_then_protocol_error(
    answer: bytes, start_server: ServerFactory, open_fetcher: FetcherFactory
) -> None:
    fetcher = open_fetcher(start_server(answer_each(answer, versions=FILTERING)), {EVENTS: 100})
    with pytest.raises(ProtocolError):
        fetcher.poll()


def test_poll_when_the_broker_does_not_take_the_pattern_then_raises(
    start_server: ServerFactory, open_fetcher: FetcherFactory
) -> None:
    refusal = encode_extension_error(2, InvalidPatternError.code, "not with us")
    fetcher = open_fetcher(start_server(answer_each(refusal, versions=FILTERING)))
    with pytest.raises(InvalidPatternError, match="not with us"):
        fetcher.poll()


def test_fetch_filtered_when_wanted_messages_are_there_then_gives_them_with_offsets(
    peer: Peer, place: Broker | Server
) -> None:
    wrapper = build_set([b"no", b"yes", b"no"], Codec.GZIP)
    peer.publish("events", NO + YES + wrapper + NO)
    end = 2 * len(NO) + len(YES) + len(wrapper)
    with SimpleConsumer("127.0.0.1", place.port) as consumer:
        found = consumer.fetch_filtered("events", 0, 0, 1 << 20, WANTED)
        assert list(found) == [(12, 25, b"yes"), (25, 25, b"yes")]
        assert (len(found), found.offset, found.next_offset) == (2, 0, end)
        rest = consumer.fetch_filtered("events", 0, found.next_offset, 1 << 20, WANTED)
        assert (list(rest), rest.next_offset) == ([], end)


def test_fetch_filtered_when_read_through_then_nothing_wanted_is_missing(
    peer: Peer, place: Broker | Server
) -> None:
    log = (NO * 7 + YES) * 40
    peer.publish("events", log)
    found: list[tuple[int, int, bytes]] = []
    offset = 0
    with SimpleConsumer("127.0.0.1", place.port) as consumer:
        while offset < len(log):
            fetched = consumer.fetch_filtered("events", 0, offset, 100, WANTED)
            assert fetched.next_offset > offset
            found += fetched
            offset = fetched.next_offset
    assert found == [one for one in decode(log, 0).messages if one[2] == b"yes"]


def test_fetch_filtered_when_a_message_is_corrupt_then_raises_after_those_before_it(
    peer: Peer, place: Broker | Server, broker: Broker
) -> None:
    peer.publish("events", YES + NO)
    overwrite(broker, len(YES) + 10, b"??")
    with SimpleConsumer("127.0.0.1", place.port) as consumer:
        found = iter(consumer.fetch_filtered("events", 0, 0, 1 << 20, WANTED))
        assert next(found) == (0, len(YES), b"yes")
        with pytest.raises(InvalidMessageError, match="the message at 13"):
            next(found)


def test_fetch_filtered_when_offset_is_out_of_range_then_raises(
    peer: Peer, place: Broker | Server
) -> None:
    peer.publish("events", NO)
    with (
        SimpleConsumer("127.0.0.1", place.port) as consumer,
        pytest.raises(OffsetOutOfRangeError),
    ):
        consumer.fetch_filtered("events", 0, 99, 1 << 20, WANTED)


@pytest.mark.parametrize("broker", KINDS[2:], indirect=True)
def test_fetch_filtered_when_done_here_and_too_small_for_a_message_then_grows(
    peer: Peer, place: Broker | Server
) -> None:
    peer.publish("events", NO)
    with SimpleConsumer("127.0.0.1", place.port) as consumer:
        found = consumer.fetch_filtered("events", 0, 0, 5, WANTED)
        assert (list(found), found.next_offset) == ([], len(NO))


def test_fetch_filtered_when_the_pattern_is_none_then_raises(running_broker: Broker) -> None:
    with (
        SimpleConsumer("127.0.0.1", running_broker.port) as consumer,
        pytest.raises(InvalidPatternError, match=r"missing \): \("),
    ):
        consumer.fetch_filtered("events", 0, 0, 1 << 20, PayloadFilter(b"("))
