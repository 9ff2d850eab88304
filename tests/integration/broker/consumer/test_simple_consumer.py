from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.consumer import simple_consumer
from broker.consumer.simple_consumer import SimpleConsumer
from broker.errors import (
    BrokerUnreachableError,
    InvalidFetchSizeError,
    InvalidMessageError,
    OffsetOutOfRangeError,
    ProtocolError,
    UnknownServerError,
    WrongPartitionError,
)
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.framing import encode_frame
from broker.protocol.message_set import build_set
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME, FetchRequest
from broker.protocol.responses import encode_fetch_header
from broker.server.broker import Broker
from tests.integration.broker.factories import BrokerFactory, ServerFactory
from tests.integration.broker.peers import Server, say
from tests.integration.broker.server.peer import Peer

ONE = encode([b"one"])
TWO = encode([b"two"])


@pytest.fixture
def consumer(running_broker: Broker) -> Iterator[SimpleConsumer]:
    """A consumer of a broker with two messages in `events`."""
    with Peer(running_broker.port) as peer:
        peer.publish("events", ONE + TWO)
    with SimpleConsumer("127.0.0.1", running_broker.port, connect_timeout_s=2.0) as made:
        yield made


def test_fetch_when_messages_are_there_then_each_with_its_offsets(consumer: SimpleConsumer) -> None:
    fetched = consumer.fetch("events", 0, 0, 1000)
    assert list(fetched) == [(0, 13, b"one"), (13, 26, b"two")]
    assert (len(fetched), fetched.offset, fetched.next_offset) == (2, 0, 26)


def test_fetch_when_going_on_at_next_offset_then_reads_all_once(consumer: SimpleConsumer) -> None:
    payloads = []
    offset = 0
    while len(fetched := consumer.fetch("events", 0, offset, 20)):
        payloads += [payload for _, _, payload in fetched]
        offset = fetched.next_offset
    assert payloads == [b"one", b"two"]


def test_fetch_when_at_the_end_then_empty(consumer: SimpleConsumer) -> None:
    fetched = consumer.fetch("events", 0, 26, 1000)
    assert (list(fetched), fetched.next_offset) == ([], 26)


@pytest.mark.parametrize("max_bytes", [1, 3, 12])
def test_fetch_when_first_message_is_longer_then_doubles_until_it_fits(
    max_bytes: int, consumer: SimpleConsumer
) -> None:
    fetched = consumer.fetch("events", 0, 0, max_bytes)
    assert next(iter(fetched)) == (0, 13, b"one")
    assert len(fetched.data) in (16, 24)


def test_fetch_when_first_message_is_longer_than_the_maximum_then_raises_while_iterating(
    consumer: SimpleConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simple_consumer, "MAX_RESPONSE_BYTES", 12)
    fetched = consumer.fetch("events", 0, 0, 5)
    with pytest.raises(InvalidFetchSizeError, match="message at 0 is larger than the fetch"):
        list(fetched)
    assert len(fetched.data) == 5
    assert len(consumer.fetch("events", 0, 0, 13)) == 1


def test_fetch_when_offset_is_inside_a_message_then_raises_while_iterating(
    consumer: SimpleConsumer,
) -> None:
    fetched = consumer.fetch("events", 0, 3, 1000)
    with pytest.raises((InvalidMessageError, InvalidFetchSizeError)):
        list(fetched)


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "error"),
    [
        ("events", 0, 27, OffsetOutOfRangeError),
        ("events", 0, -1, OffsetOutOfRangeError),
        ("events", 1, 0, WrongPartitionError),
        ("a/b", 0, 0, UnknownServerError),
    ],
)
def test_fetch_when_refused_then_raises_what_the_code_says(
    topic: str, partition: int, offset: int, error: type[Exception], consumer: SimpleConsumer
) -> None:
    with pytest.raises(error, match=f"cannot fetch {topic} partition {partition} at offset"):
        consumer.fetch(topic, partition, offset, 1000)


def test_fetch_when_compressed_then_messages_inside_share_the_offset_of_the_set(
    consumer: SimpleConsumer, running_broker: Broker
) -> None:
    wrapper = build_set([b"a", b"b", b"c"], Codec.GZIP)
    with Peer(running_broker.port) as peer:
        peer.publish("packed", wrapper)
    end = len(wrapper)
    fetched = consumer.fetch("packed", 0, 0, 1000)
    assert list(fetched) == [(0, 0, b"a"), (0, 0, b"b"), (0, end, b"c")]


def test_multifetch_when_all_is_well_then_sets_in_order(consumer: SimpleConsumer) -> None:
    first, second, third = consumer.multifetch(
        [
            FetchRequest("events", 0, 13, 1000),
            FetchRequest("nothing", 0, 0, 1000),
            FetchRequest("events", 0, 0, 1000),
        ]
    )
    assert list(first) == [(13, 26, b"two")]
    assert list(second) == []
    assert len(third) == 2


def test_multifetch_when_one_fails_then_raises(consumer: SimpleConsumer) -> None:
    with pytest.raises(WrongPartitionError, match="cannot fetch events partition 4"):
        consumer.multifetch([FetchRequest("events", 0, 0, 9), FetchRequest("events", 4, 0, 9)])


def test_multifetch_when_answer_has_other_parts_than_asked_for_then_raises(
    start_server: ServerFactory,
) -> None:
    server = start_server(say(encode_frame(b"\0\0", encode_fetch_header(0, 0))))
    with SimpleConsumer("127.0.0.1", server.port) as consumer, pytest.raises(ProtocolError):
        consumer.multifetch([FetchRequest("events", 0, 0, 9)] * 2)


def test_get_offsets_before_when_asked_then_newest_first(
    start_broker: BrokerFactory,
) -> None:
    broker = start_broker(segment_bytes=5)
    with Peer(broker.port) as peer:
        for _ in range(3):
            peer.publish("events", ONE)
    with SimpleConsumer("127.0.0.1", broker.port) as consumer:
        assert consumer.get_offsets_before("events", 0, LATEST_TIME, 10) == [39, 26, 13, 0]
        assert consumer.get_offsets_before("events", 0, EARLIEST_TIME, 10) == [0]
        assert consumer.get_offsets_before("events", 0, LATEST_TIME, 1) == [39]


def test_get_offsets_before_when_partition_cannot_be_then_connection_is_lost(
    consumer: SimpleConsumer,
) -> None:
    with pytest.raises(BrokerUnreachableError):
        consumer.get_offsets_before("events", 7, LATEST_TIME, 1)
    assert consumer.get_offsets_before("events", 0, LATEST_TIME, 1) == [26]


def test_fetch_when_connection_went_dead_meanwhile_then_made_again_once(
    consumer: SimpleConsumer, running_broker: Broker, start_broker: BrokerFactory
) -> None:
    assert len(consumer.fetch("events", 0, 0, 1000)) == 2
    running_broker.stop()
    start_broker(port=running_broker.port)
    assert len(consumer.fetch("events", 0, 0, 1000)) == 2


def test_fetch_when_broker_stays_away_then_unreachable(
    consumer: SimpleConsumer, running_broker: Broker
) -> None:
    consumer.fetch("events", 0, 0, 1000)
    running_broker.stop()
    with pytest.raises(BrokerUnreachableError, match="connection refused"):
        consumer.fetch("events", 0, 0, 1000)


def test_fetch_when_broker_is_of_0_7_then_the_same(
    consumer: SimpleConsumer, old_broker: Server
) -> None:
    with SimpleConsumer("127.0.0.1", old_broker.port) as of_old:
        assert list(of_old.fetch("events", 0, 0, 1000)) == list(
            consumer.fetch("events", 0, 0, 1000)
        )
