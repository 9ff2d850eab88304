"""0.7's fetch and offsets requests on a plain socket, for a member with no line of ours.

Written from the protocol alone, so that a mistake of ours is not made twice.
"""

from __future__ import annotations

import socket
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LATEST = -1
EARLIEST = -2
OFFSET_OUT_OF_RANGE = 1
_MULTIFETCH = 2
_OFFSETS = 4
_GZIP = 1


class Fetch(NamedTuple):
    """One part of a multifetch."""

    topic: str
    partition: int
    offset: int
    max_bytes: int


class Broker:
    """A connection to a broker.

    Args:
        registration: the value of its node, `creator:host:port`, taken apart as 0.7 does.
    """

    def __init__(self, registration: bytes) -> None:
        _, host, port = registration.decode().split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)

    def close(self) -> None:
        self._socket.close()

    def multifetch(self, fetches: Sequence[Fetch]) -> list[tuple[int, bytes]]:
        """Return error code and message set of each part."""
        request = struct.pack(">hh", _MULTIFETCH, len(fetches))
        for one in fetches:
            request += _topic(one.topic) + struct.pack(
                ">iqi", one.partition, one.offset, one.max_bytes
            )
        answer = self._ask(request)
        found = []
        position = 0
        for _ in fetches:
            size, code = struct.unpack_from(">ih", answer, position)
            found.append((code, answer[position + 6 : position + 4 + size]))
            position += 4 + size
        assert position == len(answer), "bytes are left over after the last part"
        return found

    def offset_before(self, topic: str, index: int, time: int) -> int:
        """Return the first offset that the broker gives for a time."""
        request = struct.pack(">h", _OFFSETS) + _topic(topic) + struct.pack(">iqi", index, time, 1)
        answer = self._ask(request)
        count, offset = struct.unpack(">iq", answer)
        assert count == 1
        return int(offset)

    def _ask(self, request: bytes) -> bytes:
        """Send a request; return its answer, whose error code must be 0, from there on."""
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", self._receive(4))
        answer = self._receive(size)
        assert answer[:2] == b"\0\0", f"error code {answer[:2].hex()}"
        return answer[2:]

    def _receive(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._socket.recv(size)
            if not part:
                raise ConnectionResetError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _topic(name: str) -> bytes:
    encoded = name.encode()
    return struct.pack(">h", len(encoded)) + encoded


def iter_messages(message_set: bytes, base_offset: int) -> Iterator[tuple[int, int, bytes]]:
    """Give offset, next offset and payload of each message.

    All messages of a wrapper but the last have the wrapper's own start as their next offset.
    """
    for start, end, codec, payload in _iter_entries(message_set):
        offset, after = base_offset + start, base_offset + end
        if codec != _GZIP:
            yield offset, after, payload
            continue
        inner = [one for *_, one in _iter_entries(zlib.decompress(payload, 31))]
        for one in inner[:-1]:
            yield offset, offset, one
        yield offset, after, inner[-1]


def valid_bytes(message_set: bytes) -> int:
    """Return where the last whole entry ends."""
    return max((end for _, end, _, _ in _iter_entries(message_set)), default=0)


def _iter_entries(message_set: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Give start, end, codec and payload of each whole entry, its CRC checked."""
    start = 0
    while start + 4 <= len(message_set):
        (size,) = struct.unpack_from(">i", message_set, start)
        end = start + 4 + size
        if end > len(message_set):
            assert start, "the first message is larger than the fetch"
            return
        magic = message_set[start + 4]
        assert magic in (0, 1)
        codec = message_set[start + 5] & 3 if magic else 0
        (crc,) = struct.unpack_from(">I", message_set, start + 5 + magic)
        payload = message_set[start + 9 + magic : end]
        assert zlib.crc32(payload) == crc, f"CRC of the entry at {start}"
        yield start, end, codec, payload
        start = end
