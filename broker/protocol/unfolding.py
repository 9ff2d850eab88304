"""Unfolding of compressed wrappers, for either twin of the codec.

Owns the bounds on how deep wrappers nest and on what they unfold to. The loops over what is inside
are the twin's own.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.errors import InvalidMessageError
from broker.protocol.codec_types import (
    LENGTH_BYTES,
    MAGIC1_HEADER_BYTES,
    MAX_NESTING,
    Fault,
    Scan,
)
from broker.protocol.compression import MAX_DECOMPRESSED_BYTES, Codec, codec_of, decompress
from broker.protocol.primitives import INT32, Buffer

Opener = Callable[[int, Buffer], list[bytes] | None]
"""Returns the payloads in a wrapper, given its codec and payload; None if it cannot be read."""

PayloadsOf = Callable[[Buffer, Opener], tuple[list[bytes], int, Fault]]
"""Returns the payloads of a message set, how far it is good, and why no further."""


def unfold_with(payloads_of: PayloadsOf, codec: int, payload: Buffer) -> list[bytes]:
    """Return the payloads inside a wrapper, whatever wrappers it holds in turn.

    Args:
        payloads_of: the twin's loop over a message set.
        codec: how the wrapper is compressed, not `NONE`.
        payload: the wrapper's payload.

    Raises:
        InvalidMessageError: it does not decompress, an inner message is invalid, the first inner
            message is incomplete, all of it unfolds to more than `MAX_DECOMPRESSED_BYTES`, or
            wrappers nest deeper than `MAX_NESTING`. A partial inner tail is ignored.

    Source: Kafka 0.7 `ByteBufferMessageSet.internalIterator`.
    """
    room = _Room(MAX_DECOMPRESSED_BYTES)

    def unfold(codec: int, payload: Buffer, depth: int) -> list[bytes]:
        data = room.open(codec, payload, depth)
        found, valid_bytes, fault = payloads_of(
            data, lambda inner_codec, inner: unfold(inner_codec, inner, depth + 1)
        )
        _check_inner(fault, valid_bytes, len(data))
        return found

    return unfold(codec, payload, 1)


def count_with(
    scan: Callable[[Buffer], Scan], codec: int, payload: Buffer, max_bytes: int
) -> tuple[int, int]:
    """Return how many messages `unfold_with` would give, and to how many bytes it unfolded them.

    Args:
        scan: the twin's scan.
        codec: how the wrapper is compressed, not `NONE`.
        payload: the wrapper's payload.
        max_bytes: the most to unfold.

    Raises:
        InvalidMessageError: as `unfold_with`.
        UnfoldsTooFarError: there is more than `max_bytes` in it.
    """
    room = _Room(max_bytes)

    def count(codec: int, payload: Buffer, depth: int) -> int:
        data = room.open(codec, payload, depth)
        found = scan(data)
        _check_inner(found.fault, found.valid_bytes, len(data))
        inner = (_wrapper_at(data, position) for position in found.wrappers)
        plain_count = found.entry_count - len(found.wrappers)
        return plain_count + sum(count(*wrapper, depth + 1) for wrapper in inner)

    message_count = count(codec, payload, 1)
    return message_count, max_bytes - room.left_bytes


class _Room:
    """What one outermost wrapper may still unfold to."""

    def __init__(self, max_bytes: int) -> None:
        self.left_bytes = max_bytes

    def open(self, codec: int, payload: Buffer, depth: int) -> bytes:
        if depth > MAX_NESTING:
            raise InvalidMessageError(f"compressed messages nest deeper than {MAX_NESTING}")
        data = decompress(Codec(codec), payload, max_bytes=self.left_bytes)
        self.left_bytes -= len(data)
        return data


def _check_inner(fault: Fault, position: int, size: int) -> None:
    """Raise for an inner set that ends badly; up to 3 bytes, or a partial tail, are no harm."""
    if fault and not (fault is Fault.PARTIAL and (position or size < LENGTH_BYTES)):
        raise InvalidMessageError(
            f"a compressed set has a bad message at byte {position}: {fault.name}"
        )


def _wrapper_at(data: bytes, position: int) -> tuple[int, memoryview]:
    """Return codec and payload of a wrapper; it is of magic 1, as magic 0 has no attributes."""
    start = position + LENGTH_BYTES
    end = start + INT32.unpack_from(data, position)[0]
    return codec_of(data[start + 1]) or Codec.NONE, memoryview(data)[
        start + MAGIC1_HEADER_BYTES : end
    ]
