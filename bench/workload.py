"""The messages of benchmarks: 200 bytes each, as payloads, lines of text, or a filled log."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from broker.client.connection import Connection
from broker.protocol import codec
from broker.protocol.client_requests import (
    ListOffsetsRequest,
    OffsetKind,
    OffsetQuery,
)
from broker.protocol.primitives import INT32, encode_short_string
from broker.protocol.requests import RequestType
from broker.protocol.responses import LISTED_OFFSETS
from broker.topic import TopicPartition

PAYLOAD_BYTES = 200
ENTRY_BYTES = PAYLOAD_BYTES + codec.ENTRY_OVERHEAD_BYTES
LINE_BYTES = PAYLOAD_BYTES + 1
GATHER_BYTES = 64 << 10
"""How much a pipelining client collects before it writes."""
_DISTINCT = 1000
_FLUSH_TIMEOUT_S = 60.0
_SIZE_AND_TYPE = struct.Struct(">ih")


def payloads() -> list[bytes]:
    """Return a thousand different printable payloads, the same in each run."""
    source = random.Random(7)
    return [source.randbytes(PAYLOAD_BYTES // 2).hex().encode() for _ in range(_DISTINCT)]


def write_lines(path: Path, total_bytes: int) -> int:
    """Write a file of lines whose contents are the payloads; return its size."""
    block = b"".join(payload + b"\n" for payload in payloads())
    count = max(1, total_bytes // len(block))
    with path.open("wb") as file:
        for _ in range(count):
            file.write(block)
    return count * len(block)


def produce_frames(partition: TopicPartition, message_count: int, batch: int) -> Iterator[bytes]:
    """Encode 0.7's produce requests, one for each batch, as a client does while it sends."""
    head = encode_short_string(partition.topic) + INT32.pack(partition.index)
    head_bytes = len(head) + 6  # request type and set size
    messages = payloads()
    batches = [messages[at : at + batch] for at in range(0, len(messages), batch)]
    encode, pack_front, pack = codec.encode, _SIZE_AND_TYPE.pack, INT32.pack
    for number in range(message_count // batch):
        message_set = encode(batches[number % len(batches)])
        size = len(message_set)
        front = pack_front(head_bytes + size, RequestType.PRODUCE)
        yield b"".join((front, head, pack(size), message_set))


def gather(frames: Iterator[bytes], at_least_bytes: int) -> Iterator[bytes]:
    """Join frames into writes of at least `size` bytes."""
    parts: list[bytes] = []
    size = 0
    for frame in frames:
        parts.append(frame)
        size += len(frame)
        if size >= at_least_bytes:
            yield b"".join(parts)
            parts.clear()
            size = 0
    yield b"".join(parts)


def offset_of(connection: Connection, partition: TopicPartition, kind: OffsetKind) -> int:
    """Return an offset of a partition, listed after all requests sent on this connection."""
    body = connection.call(ListOffsetsRequest((OffsetQuery(partition, kind, 0),)))
    (found,) = LISTED_OFFSETS.decode(body)
    return found.offset


def wait_until_visible(connection: Connection, partition: TopicPartition, end: int) -> None:
    """Wait until consumers can read to an offset."""
    give_up_s = time.monotonic() + _FLUSH_TIMEOUT_S
    while offset_of(connection, partition, OffsetKind.LATEST) < end:
        if time.monotonic() > give_up_s:
            raise TimeoutError(f"{partition} is not flushed to {end}")
        time.sleep(0.001)


def fill(connection: Connection, partition: TopicPartition, message_count: int) -> int:
    """Produce messages and wait until they can be read; return the log end offset."""
    for data in gather(produce_frames(partition, message_count, batch=50), GATHER_BYTES):
        connection.send(data)
    wait_until_visible(connection, partition, message_count * ENTRY_BYTES)
    return message_count * ENTRY_BYTES
