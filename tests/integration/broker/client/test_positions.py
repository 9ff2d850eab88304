from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.consumer.boundaries import BoundaryFinder
from broker.errors import InvalidMessageError, OffsetOutOfRangeError
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.primitives import INT32
from broker.protocol.requests import ProduceRequest
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.topic import TopicPartition
from tests.integration.broker.factories import (
    BrokerFactory,
    ConnectionFactory,
    ServerFactory,
    address_of,
)
from tests.integration.broker.peers import as_true_07_broker
from tests.integration.broker.server.peer import Peer
from tests.integration.pylogctl.proxies import Proxy, is_of_07

EVENTS = TopicPartition("events", 0, 0)
SETS = [encode([b"x" * size]) for size in (10, 200, 0, 3000, 40, 5)]
STARTS = [sum(map(len, SETS[:n])) for n in range(len(SETS) + 1)]
END = STARTS[-1]


@pytest.fixture
def broker(start_broker: BrokerFactory) -> Broker:
    """A broker with six messages in three segments, and one more that is not flushed."""
    broker = start_broker(segment_bytes=220, flush_interval_ms=3_600_000)
    with Peer(broker.port) as peer:
        for one in SETS:
            peer.publish("events", one)
        peer.send(ProduceRequest("events", 0, SETS[0]))
        assert peer.status()["bytes"] == END + len(SETS[0])
    return broker


@pytest.fixture(params=["ours", "of 0.7"])
def positions(
    request: pytest.FixtureRequest,
    broker: Broker,
    start_server: ServerFactory,
    open_connection: ConnectionFactory,
) -> Iterator[BoundaryFinder]:
    """BoundaryFinder of a broker of ours, and of the same behind a true 0.7 one."""
    peer = broker if request.param == "ours" else start_server(as_true_07_broker(broker.port))
    cluster = StaticCluster([address_of(peer)], open_connection)
    with BoundaryFinder(cluster, open_connection) as made:
        yield made
    cluster.close()


def test_ends_when_asked_then_first_and_last_readable_offset(positions: BoundaryFinder) -> None:
    assert positions.earliest(EVENTS) == 0
    assert positions.latest(EVENTS) == END


def test_log_end_when_some_is_unflushed_then_behind_it_unless_broker_cannot_tell(
    positions: BoundaryFinder,
) -> None:
    assert positions.log_end(EVENTS) in (END, END + len(SETS[0]))


def test_watermarks_when_some_is_unflushed_then_the_log_ends_behind_what_can_be_read(
    positions: BoundaryFinder,
) -> None:
    found = positions.watermarks(EVENTS)
    assert found[:2] == (0, END)
    assert found.log_end in (None, END + len(SETS[0]))


@pytest.mark.parametrize("number", range(len(SETS)))
def test_entry_at_when_at_a_boundary_then_the_message_there(
    number: int, positions: BoundaryFinder
) -> None:
    entry = positions.entry_at(EVENTS, STARTS[number])
    assert (entry.offset, entry.next_offset) == (STARTS[number], STARTS[number + 1])
    assert SETS[number].endswith(bytes(entry.payload))


@pytest.mark.parametrize("passes", [lambda frame: True, is_of_07], ids=["ours", "of 0.7"])
def test_entry_at_when_the_broker_is_lost_during_the_read_then_it_is_read_again(
    passes: Callable[[bytes], bool], broker: Broker, open_connection: ConnectionFactory
) -> None:
    lost = iter([True])

    def hangs_up_at_first_read(frame: bytes) -> bool:
        is_read = frame.endswith(INT32.pack(1 << 16))  # as many bytes as `entry_at` requests
        return passes(frame) and not (is_read and next(lost, False))

    proxy = Proxy(broker.port, hangs_up_at_first_read)
    address = BrokerAddress(-1, "127.0.0.1", proxy.port)

    def connect(_: BrokerAddress) -> Connection:
        return open_connection(address)

    cluster = StaticCluster([address], connect)
    try:
        with BoundaryFinder(cluster, connect) as positions:
            assert positions.entry_at(EVENTS, STARTS[3]).next_offset == STARTS[4]
        assert not next(lost, False)
    finally:
        cluster.close()
        proxy.stop()


def test_entry_at_when_inside_a_message_then_invalid(positions: BoundaryFinder) -> None:
    with pytest.raises(InvalidMessageError, match=r"events\[0-0\]"):
        positions.entry_at(EVENTS, STARTS[3] + 1)


def test_entry_at_when_a_later_message_is_damaged_then_the_one_asked_for(
    broker: Broker, positions: BoundaryFinder
) -> None:
    segments = sorted(broker.config.data_dir.glob("events_0/*.pylog"))
    with segments[-1].open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)[0]
        file.seek(-1, 2)
        file.write(bytes([last ^ 1]))
    assert positions.entry_at(EVENTS, STARTS[-3]).next_offset == STARTS[-2]


def test_segment_starts_when_asked_then_oldest_first_and_the_end(positions: BoundaryFinder) -> None:
    starts = positions.segment_starts(EVENTS)
    assert starts == sorted(starts)
    assert (starts[0], starts[-1]) == (0, END)
    assert set(starts) <= set(STARTS)
    assert len(starts) > 2


@pytest.mark.parametrize("position", [0, 1, STARTS[1], STARTS[3] + 1, STARTS[4] - 1, END - 1, END])
def test_boundaries_when_inside_the_log_then_those_around(
    position: int, positions: BoundaryFinder
) -> None:
    before = max(start for start in STARTS if start <= position)
    after = min(start for start in STARTS if start >= position)
    assert positions.boundary_before(EVENTS, position) == before
    assert positions.boundary_after(EVENTS, position) == after


@pytest.mark.parametrize("position", [-1, END + 1, END + len(SETS[0])])
def test_boundaries_when_outside_then_out_of_range(
    position: int, positions: BoundaryFinder
) -> None:
    with pytest.raises(OffsetOutOfRangeError):
        positions.boundary_before(EVENTS, position)
    with pytest.raises(OffsetOutOfRangeError):
        positions.boundary_after(EVENTS, position)


def test_by_time_when_before_and_after_all_then_none_and_the_end(positions: BoundaryFinder) -> None:
    starts = positions.segment_starts(EVENTS)
    assert positions.by_time(EVENTS, 1, rounded_up=False) is None
    assert positions.by_time(EVENTS, 1, rounded_up=True) == 0
    assert positions.by_time(EVENTS, 2**62, rounded_up=False) == starts[-1]
    assert positions.by_time(EVENTS, 2**62, rounded_up=True) is None


def test_message_counts_when_asked_then_start_and_count_of_each_entry(
    positions: BoundaryFinder,
) -> None:
    assert positions.message_counts(EVENTS, 0, END) == [(start, 1) for start in STARTS[:-1]]
    assert positions.message_counts(EVENTS, STARTS[1], STARTS[3]) == [
        (STARTS[1], 1),
        (STARTS[2], 1),
    ]


def test_message_counts_when_compressed_then_those_inside(
    broker: Broker, positions: BoundaryFinder
) -> None:
    wrapper = build_set([b"a", b"b", b"c"], Codec.GZIP)
    with Peer(broker.port) as peer:
        peer.publish("packed", wrapper)
    packed = TopicPartition("packed", 0, 0)
    assert positions.message_counts(packed, 0, len(wrapper)) == [(0, 3)]


def test_message_counts_when_start_is_inside_a_message_then_invalid(
    positions: BoundaryFinder,
) -> None:
    with pytest.raises(InvalidMessageError):
        positions.message_counts(EVENTS, STARTS[3] + 1, END)


def test_positions_when_broker_closed_the_connection_as_idle_then_asked_again(
    start_broker: BrokerFactory,
    start_server: ServerFactory,
    open_connection: ConnectionFactory,
) -> None:
    broker = start_broker()
    with Peer(broker.port) as peer:
        peer.publish("events", SETS[0])
    server = start_server(as_true_07_broker(broker.port))
    cluster = StaticCluster([address_of(server)], open_connection)
    with BoundaryFinder(cluster, open_connection) as positions:
        assert positions.latest(EVENTS) == len(SETS[0])
        server.drop_connections()
        assert positions.latest(EVENTS) == len(SETS[0])
    cluster.close()
