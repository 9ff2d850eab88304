"""A producer that costs next to nothing: publish requests made beforehand, answers only counted.

What is left is the broker's work, and the network's.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from itertools import cycle, islice

from broker.protocol import codec
from broker.protocol.framing import SIZE_BYTES
from broker.protocol.primitives import INT32
from broker.protocol.requests import (
    Acks,
    PartitionSet,
    PublishRequest,
    RequestHeader,
    encode_extension_parts,
)
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition

_HEADER = RequestHeader(PublishRequest.VERSION, 1, "bench")
_TIMEOUT_MS = 30_000
_RECEIVE_BYTES = 1 << 16


def publish_frames(
    partition: TopicPartition, payloads: Sequence[bytes], batch: int, acks: Acks = Acks.WRITTEN
) -> list[bytes]:
    """Return requests that publish all payloads once, all with one correlation id."""
    sets = [codec.encode(payloads[at : at + batch]) for at in range(0, len(payloads), batch)]
    return [
        b"".join(
            encode_extension_parts(
                PublishRequest(acks, _TIMEOUT_MS, (PartitionSet(partition, one),)), _HEADER
            )
        )
        for one in sets
    ]


def publish(address: BrokerAddress, frames: Sequence[bytes], count: int, window: int) -> None:
    """Send requests over and over, so many in all, and wait for all answers.

    That none was refused is for the caller to find out, by the end of the log.

    Args:
        address: of the broker.
        frames: requests; their answers must have one length.
        count: how many to send, at least 1.
        window: how many may be unanswered, at least 2.
    """
    requests = islice(cycle(frames), count)
    with socket.create_connection((address.host, address.port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(next(requests))
        answer_bytes = SIZE_BYTES + _answer_size(sock)
        unanswered_bytes = 0
        while burst := list(islice(requests, window // 2)):
            sock.sendall(b"".join(burst))
            unanswered_bytes += len(burst) * answer_bytes
            while unanswered_bytes > window // 2 * answer_bytes:
                unanswered_bytes -= _receive(sock)
        while unanswered_bytes:
            unanswered_bytes -= _receive(sock)


def _answer_size(sock: socket.socket) -> int:
    (size,) = INT32.unpack(sock.recv(SIZE_BYTES, socket.MSG_WAITALL))
    sock.recv(size, socket.MSG_WAITALL)
    return int(size)


def _receive(sock: socket.socket) -> int:
    received = len(sock.recv(_RECEIVE_BYTES))
    if not received:
        raise RuntimeError("the broker closed the connection")
    return received
