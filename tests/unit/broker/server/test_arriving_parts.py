"""The response to a replica fetch in one buffer."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from broker.client.connection import Connection
from broker.errors import ProtocolError
from broker.protocol.codec import encode
from broker.protocol.primitives import INT32, Reader
from broker.protocol.replica_requests import (
    NOTHING_DIVERGES,
    ReplicaPart,
    encode_replica_part_header,
)
from broker.server.cluster.replica_fetcher import ArrivingParts
from broker.topic import TopicPartition

HEAD = ReplicaPart(TopicPartition("t", 0, 0), 0, 0, 0, NOTHING_DIVERGES, (), b"")


def receive(body: bytes) -> bytes:
    """The data of all pieces of a response."""
    position = 0

    def receive_into(view: memoryview) -> None:
        nonlocal position
        view[:] = body[position : position + len(view)]
        position += len(view)

    connection = Mock(spec=Connection)
    connection.receive_size.return_value = len(body)
    connection.receive_into.side_effect = receive_into
    connection.open_extension.side_effect = lambda start, _: Reader(start)
    arriving = ArrivingParts()
    found = b""
    for pieces in arriving.receive(connection, *arriving.open(connection, 1)):
        found += b"".join(one.part.data for one in pieces)
    assert position == len(body)
    return found


def test_receive_when_a_message_is_larger_than_the_buffer_then_the_buffer_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.server.cluster.replica_fetcher._PIECE_BYTES", 128)
    data = b"".join(encode([b"x" * size]) for size in (10, 1000, 10, 90, 90))
    body = 2 * (encode_replica_part_header(HEAD, len(data)) + data)

    assert receive(INT32.pack(2) + body) == 2 * data
    with pytest.raises(ProtocolError):
        receive(INT32.pack(3) + body)
