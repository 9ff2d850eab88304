"""Reads of consumers in sessions: what is not named counts, and only news come."""

from __future__ import annotations

import math
from unittest.mock import patch

import pytest

from broker.errors import (
    OffsetOutOfRangeError,
    ResponseTooLargeError,
    UnknownFetchSessionError,
    UnknownTopicError,
)
from broker.protocol import fetch_sessions
from broker.protocol.client_requests import (
    Acks,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
    SessionReadRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest, DeleteTopicRequest
from broker.protocol.primitives import Reader
from broker.protocol.responses import decode_read_response
from broker.server.broker import Broker
from broker.server.requests.fetch import FetchHandler
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, partition

ONE = encode([b"one message"])
LONG_MS = 60_000
Found = dict[int, tuple[int, int, bytes]]
"""Error, high watermark and messages by the index of a partition."""


class SessionReader:
    """Reads partitions of the topic `wide` in a session, by their indexes."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.session, self.epoch = 0, 0

    def request(
        self, *forgotten: int, wait_ms: int = 0, max_bytes: int = 1 << 20, **ends: int
    ) -> SessionReadRequest:
        """Return the next read, which names positions as `p0=17`."""
        positions = tuple(
            PartitionPosition(partition("wide", int(name[1:])), end, 1 << 20)
            for name, end in ends.items()
        )
        read = ReadRequest(wait_ms, 1, max_bytes, positions)
        gone = tuple(partition("wide", one) for one in forgotten)
        return SessionReadRequest(read, self.session, self.epoch, False, gone)

    def take(self, body: Reader) -> Found:
        """Return what a response has."""
        self.session, self.epoch = body.int64(), self.epoch + 1
        return {
            one.index: (error, mark, bytes(found))
            for one, error, mark, _, found in decode_read_response(body)
        }

    def read(
        self, *forgotten: int, wait_ms: int = 0, max_bytes: int = 1 << 20, **ends: int
    ) -> Found:
        """Read once."""
        request = self.request(*forgotten, wait_ms=wait_ms, max_bytes=max_bytes, **ends)
        return self.take(self.peer.call(request))


@pytest.fixture
def writer(running_broker: Broker, connect: PeerFactory) -> Peer:
    peer = connect(running_broker)
    peer.call(CreateTopicRequest("wide", 4))
    return peer


@pytest.fixture
def reader(running_broker: Broker, connect: PeerFactory, writer: Peer) -> SessionReader:
    return SessionReader(connect(running_broker))


def test_read_when_in_a_session_then_what_is_not_named_counts_and_only_news_come(
    writer: Peer, reader: SessionReader
) -> None:
    assert reader.read(p0=0, p1=0, p2=0) == dict.fromkeys(range(3), (0, 0, b""))
    assert reader.read() == {}
    reader.peer.send_extension(reader.request(wait_ms=LONG_MS))
    assert not reader.peer.has_answer(0.05)
    writer.publish("wide", ONE)
    end = len(ONE)
    assert reader.take(reader.peer.receive_extension()) == {0: (0, end, ONE)}
    assert reader.read() == {0: (0, end, ONE)}  # the same position again
    assert reader.read(p0=end) == {0: (0, end, b"")}
    assert reader.read(0) == {}
    writer.publish("wide", ONE)
    assert reader.read() == {}
    assert reader.read(p0=end) == {0: (0, 2 * end, ONE)}


def test_read_when_a_response_has_no_room_then_the_others_come_first_in_the_next(
    writer: Peer, reader: SessionReader
) -> None:
    sets = tuple(PartitionSet(partition("wide", index), ONE) for index in range(3))
    writer.call(PublishRequest(Acks.COMMITTED, LONG_MS, sets))
    end = len(ONE)
    first = reader.read(p0=0, p1=0, p2=0, wait_ms=LONG_MS, max_bytes=end)
    second = reader.read(wait_ms=LONG_MS, max_bytes=end)
    third = reader.read(wait_ms=LONG_MS, max_bytes=end)
    assert [list(one.values()) for one in (first, second, third)] == [[(0, end, ONE)]] * 3
    assert {*first, *second, *third} == {0, 1, 2}


def test_read_when_a_position_is_wrong_or_the_topic_is_deleted_then_told_each_time(
    writer: Peer, reader: SessionReader
) -> None:
    beyond = (OffsetOutOfRangeError.code, 0, b"")
    assert reader.read(p0=7, p1=0)[0] == beyond
    assert reader.read(wait_ms=LONG_MS) == {0: beyond}
    assert reader.read(0) == {}
    writer.publish("wide", ONE)
    reader.read(p0=len(ONE))
    reader.peer.send_extension(reader.request(wait_ms=LONG_MS))
    writer.call(DeleteTopicRequest("wide"))
    found = reader.take(reader.peer.receive_extension())
    while 0 not in found:  # partitions are deleted one by one
        found |= reader.read(wait_ms=LONG_MS)
    assert {error for error, _, _ in found.values()} == {UnknownTopicError.code}


def test_read_when_it_is_not_the_next_of_its_session_then_refused_and_nothing_changes(
    running_broker: Broker, connect: PeerFactory, reader: SessionReader
) -> None:
    reader.read(p0=0)
    stranger = SessionReader(connect(running_broker))
    stranger.session, stranger.epoch = reader.session, reader.epoch
    with pytest.raises(UnknownFetchSessionError):
        stranger.read(p1=0)
    for epoch in (0, 2):
        request = SessionReadRequest(ReadRequest(0, 1, 9, ()), reader.session, epoch, False, ())
        with pytest.raises(UnknownFetchSessionError):
            reader.peer.call(request)
    assert reader.read() == {}


def test_read_when_there_are_too_many_positions_or_sessions_then_refused(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(max_fetch_positions=2)
    reader = SessionReader(connect(broker))
    reader.peer.call(CreateTopicRequest("wide", 4))
    reader.read(p0=0, p1=0)
    with pytest.raises(ResponseTooLargeError, match="a read of 3 positions"):
        reader.read(p2=0)
    reader.epoch += 1
    assert reader.read(p0=0, p1=0) == dict.fromkeys(range(2), (0, 0, b""))
    assert reader.read(0, p1=0, p2=0) == dict.fromkeys((1, 2), (0, 0, b""))
    with patch.object(fetch_sessions, "_MAX_SESSIONS", 0):
        evicted = SessionReader(connect(broker))
        evicted.read(p0=0)
        with pytest.raises(UnknownFetchSessionError):
            evicted.read()


def test_read_when_its_session_ends_or_changes_behind_it_then_waits_no_longer(
    running_broker: Broker, writer: Peer, reader: SessionReader
) -> None:
    end = len(ONE)
    writer.publish("wide", ONE)
    reader.read(p0=end, p1=0)
    reader.peer.send_extension(reader.request(wait_ms=LONG_MS))
    reader.epoch += 1
    reader.peer.send_extension(reader.request(p0=0))
    reader.epoch -= 1
    assert reader.take(reader.peer.receive_extension()) == {0: (0, end, ONE)}
    assert reader.take(reader.peer.receive_extension()) == {0: (0, end, ONE)}

    reader.read(p0=end)
    reader.peer.send_extension(reader.request(wait_ms=LONG_MS))
    assert not reader.peer.has_answer(0.05)
    with patch.object(fetch_sessions, "_MAX_SESSIONS", 0):
        running_broker.sessions.fit()
    assert reader.take(reader.peer.receive_extension()) == {}
    with pytest.raises(UnknownFetchSessionError):
        reader.read(p0=end)


def test_read_when_one_of_many_partitions_has_messages_then_the_others_are_not_looked_at(
    running_broker: Broker, connect: PeerFactory
) -> None:
    reader = SessionReader(connect(running_broker))
    reader.peer.call(CreateTopicRequest("wide", 500))
    reader.read(**{f"p{index}": 0 for index in range(500)})
    assert reader.read() == {}  # looks at each, after what it was told
    writer = connect(running_broker)
    for session in running_broker.sessions._by_id.values():
        session.scanned_s = math.inf  # a scan looks at all
    with patch.object(FetchHandler, "find", autospec=True, side_effect=FetchHandler.find) as find:
        for end in (0, len(ONE)):  # the first makes the log
            reader.peer.send_extension(reader.request(p0=end, wait_ms=LONG_MS))
            writer.publish("wide", ONE)
            assert reader.take(reader.peer.receive_extension())[0] == (0, end + len(ONE), ONE)
    assert find.call_count < 20
