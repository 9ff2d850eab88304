"""Inputs of the fuzzer: message sets and texts, built valid and then damaged.

Everything is derived from the `Random` argument, so that a seed reproduces a failure.
"""

from __future__ import annotations

import struct
from array import array
from random import Random

from broker.protocol.client_requests import AuthenticateRequest
from broker.protocol.compression import BATCH_CODECS, Codec, compress_batch
from broker.protocol.primitives import Buffer
from broker.protocol.record_batch import Record, RecordBatch
from tests.strategies import (
    WRAPPER_CODECS,
    append_frame,
    magic0_bytes,
    magic1_bytes,
    wrapper_bytes,
)
from tests.support.record_batches import batch_bytes, old_bytes, varint, wrapper

_SIZES = (0, 1, 3, 7, 8, 15, 16, 17, 31, 47, 63, 64, 65, 79, 80, 127, 128, 200, 1000)
_LENGTHS = (-(2**31), -1, 0, 4, 5, 6, 7, 200, 2**16, 2**31 - 5, 2**31 - 4, 2**31 - 1)
_UNLOCKED_BYTES = 70_000
"""Enough for the compiled engine to release the interpreter's lock."""

DELIMITERS = (b"\n", b"\r\n", b"aa", b"aab", b"\x00", b"")


def exact(data: bytes) -> memoryview:
    """Return a copy in memory that ends where the data ends.

    `bytes` and `bytearray` have one byte more, which would hide a read too far from the sanitizer.
    """
    return memoryview(array("B", list(data)))


def message_set(random: Random, depth: int = 0) -> bytes:
    """Return a set of a few entries, or of very many, mostly damaged somewhere."""
    data = b"".join(_entry(random, depth) for _ in range(random.randrange(6)))
    if data and not depth and not random.randrange(20):
        data *= _UNLOCKED_BYTES // len(data) + 1
    for _ in range(random.choice((0, 0, 1, 1, 2, 5))):
        data = _damaged(random, data)
    if not depth and not random.randrange(20):
        data = random.choice((bytes(300), b"\0\0\0\1" * 3000, b"\0\0\2\0\0" * 200)) + data
    return data


def _entry(random: Random, depth: int) -> bytes:
    payload = random.randbytes(random.choice(_SIZES))
    kind = random.randrange(12)
    if kind < 6:
        return magic1_bytes(payload)
    if kind < 8:
        return magic0_bytes(payload)
    if kind < 10 or depth > 2:
        return magic1_bytes(payload, random.randrange(256))
    return wrapper_bytes(random.choice(WRAPPER_CODECS), message_set(random, depth + 1))


def _damaged(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    match random.randrange(6):
        case 0 if at < len(data):
            return data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]
        case 1:
            return data[:at] + struct.pack(">i", random.choice(_LENGTHS)) + data[at + 4 :]
        case 2:
            return data[:at] + data[at + random.randrange(16) :]
        case 3:
            return data[:at] + random.randbytes(random.randrange(16)) + data[at:]
        case 4:
            return data[:at]
        case _:
            return data[at:] + data[:at]


def text(random: Random, delimiter: bytes) -> bytes:
    """Return text with whole delimiters and parts of them in it."""
    parts = []
    for _ in range(random.randrange(30)):
        parts.append(random.randbytes(random.choice(_SIZES)))
        parts.append(random.choice((delimiter, delimiter, delimiter, delimiter[:-1], b"a")))
    data = b"".join(parts)
    if data and not random.randrange(20):
        data *= _UNLOCKED_BYTES // len(data) + 1
    return data


def payloads(random: Random) -> list[Buffer]:
    """Return payloads of every kind of buffer."""
    found = [random.randbytes(random.choice(_SIZES)) for _ in range(random.randrange(40))]
    if not random.randrange(20):
        found *= 100
    return [random.choice((bytes, bytearray, exact))(payload) for payload in found]


def container(random: Random) -> tuple[Codec, bytes]:
    """Return a codec and the payload of a wrapper, possibly damaged."""
    codec = random.choice(WRAPPER_CODECS)
    wrapper = wrapper_bytes(codec, message_set(random, 1))
    return codec, wrapper[10:] if random.randrange(4) else _damaged(random, wrapper[10:])


def records(random: Random) -> list[Record]:
    """Return records, most of which fit into a batch."""
    found, offset = [], random.choice((0, 0, 0, -1, 5))
    for _ in range(random.choice((0, 1, 2, 5, 30))):
        headers = tuple(
            (random.choice(("", "a", "\u20ac")), _field(random))
            for _ in range(random.choice((0, 0, 3)))
        )
        timestamp = random.choice((0, 1_700_000_000_000, -1, 2**62, -(2**62)))
        found.append(Record(offset, timestamp, _field(random), _field(random), headers))
        offset += random.choice((1, 1, 1, 1, 1, 1, 1, 300, 2**31, 0))
    return found


def _field(random: Random) -> bytes | None:
    return random.randbytes(random.choice(_SIZES)) if random.randrange(4) else None


def batch_fields(random: Random) -> RecordBatch:
    """Return the fields of a batch, most of which can be encoded."""
    return RecordBatch(
        base_offset=random.choice((0, 0, 0, 2**62)),
        attributes=random.choice((0, 0, 1, 2, 3, 4, 5, 8, 0x30, 0x43)),
        last_offset_delta=random.choice((-1, 0, 5, 2**31 - 1)),
        base_timestamp=random.choice((-1, 0, 2**62)),
        producer_id=random.choice((-1, 2**63 - 1)),
    )


def batches(random: Random) -> bytes:
    """Return batches and messages of old formats, mostly damaged somewhere."""
    data = b"".join(_batch(random) for _ in range(random.randrange(5)))
    if data and not random.randrange(20):
        data *= _UNLOCKED_BYTES // len(data) + 1
    return data if random.randrange(3) else _damaged(random, data)


def _batch(random: Random) -> bytes:
    kind = random.randrange(8)
    if kind < 2:
        return old_bytes(
            kind, random.randrange(9), _field(random), _field(random), random.choice((0, 8))
        )
    if kind < 4:
        magic = kind - 2
        inner = [
            old_bytes(magic, random.randrange(n, n + 2), _field(random))
            for n in range(random.randrange(4))
        ]
        data = b"".join(inner)
        data = data if random.randrange(2) else _damaged(random, data)
        return wrapper(magic, random.randrange(20), random.choice((1, 2, 3, 9)), data)
    found = [one._replace(offset=n) for n, one in enumerate(records(random))]
    content = b"".join(_record(random, one) for one in found)
    if random.randrange(2):
        content = _damaged(random, content)
    number = random.randrange(6)
    packed = compress_batch(BATCH_CODECS[number], content) if number < 5 else content
    packed = packed if random.randrange(4) else _damaged(random, packed)
    fields = batch_fields(random)._replace(
        attributes=number | random.choice((0, 0, 8, 0x20, 0x40)),
        record_count=len(found) + random.choice((0, 0, 0, 0, 1, -1, 2**31 - 40)),
        last_offset_delta=random.choice((30, 30, 30, 5, 2**31 - 1)),
    )
    return batch_bytes(packed, fields)


def _record(random: Random, one: Record) -> bytes:
    """Return a record, with a number that is not as short as it could be now and then."""
    body = b"\0" + varint(one.timestamp % 2**40) + varint(one.offset)
    for field in (one.key, one.value):
        body += varint(-1) if field is None else varint(len(field)) + field
    body += varint(len(one.headers))
    for name, content in one.headers:
        body += varint(len(name.encode())) + name.encode()
        body += varint(-1) if content is None else varint(len(content)) + content
    size = varint(len(body))
    if not random.randrange(9):
        size = size[:-1] + bytes((size[-1] | 0x80, 0))
    return size + body


def appends(random: Random) -> bytes:
    """Return frames of requests that append a set each, some of them damaged."""
    data = b"".join(_appends_alike(random) for _ in range(random.randrange(6)))
    for _ in range(random.choice((0, 0, 1, 1, 2, 5))):
        data = _damaged(random, data)
    return data


def _appends_alike(random: Random) -> bytes:
    kind, topic, index = random.randrange(3), random.choice(("a", "b", "")), random.randrange(2)
    return b"".join(
        append_frame(kind, topic, index, message_set(random, 1), number, 8)
        for number in range(random.randrange(6))
    )


def authentication(random: Random) -> bytes:
    """Return the body of a step of a login, possibly damaged."""
    mechanism = random.choice(("PLAIN", "SCRAM-SHA-256", "\u00e4\u20ac", ""))
    step, data = random.randrange(-128, 128), random.randbytes(random.choice(_SIZES))
    body = AuthenticateRequest(mechanism, step, data).encode()
    return _damaged(random, body) if random.randrange(3) else body
