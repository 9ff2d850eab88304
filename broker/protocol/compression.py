"""Compression codecs of wrapper messages, in 0.7's containers.

0.7 has the codec in the low two bits of a message's attributes: 0 none, 1 gzip, 2 snappy, 3
invalid. Our extension codecs set those bits to 3, so that a 0.7 client refuses a wrapper it cannot
open, and have their number in the bits above. gzip is in the standard library, all others are in
cramjam.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any

from broker.errors import InvalidMessageError
from broker.protocol.primitives import INT32, Buffer

# the most one wrapper may decompress to; 0.7 has no limit, but kilobytes can become gigabytes
MAX_DECOMPRESSED_BYTES = 64 << 20
_GZIP_CHUNK_BYTES = 4096
_SNAPPY_BLOCK_BYTES = 32768
_SNAPPY_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


class UnfoldsTooFarError(InvalidMessageError):
    """Compressed data decompresses to more bytes than allowed."""


class Codec(IntEnum):
    """A compression codec; its value goes into a message's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3 | 1 << 2
    ZSTD = 3 | 2 << 2


def codec_of(attributes: int) -> Codec | None:
    """Return the codec that a message's attributes name, None if there is no such codec."""
    # source: Kafka 0.7 `Message.compressionCodec`; the high bits mean nothing for codecs 0 to 2
    low = attributes & 3
    if low < 3:
        return Codec(low)
    return _EXTENSIONS.get(attributes & 15)


_EXTENSIONS = {int(Codec.LZ4): Codec.LZ4, int(Codec.ZSTD): Codec.ZSTD}


def compress(codec: Codec, data: Buffer) -> bytes:
    """Return `data` in the codec's container."""
    return _COMPRESS[codec](data)


def decompress(codec: Codec, data: Buffer, *, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """Return the content of a whole container; raise `InvalidMessageError` if it is damaged.

    Raises:
        UnfoldsTooFarError: it decompresses to more than `max_bytes`.
    """
    try:
        return _DECOMPRESS[codec](data, max_bytes)
    except (zlib.error, struct.error) as error:
        raise InvalidMessageError(f"broken {codec.name.lower()} data: {error}") from error


def _too_large(max_bytes: int) -> UnfoldsTooFarError:
    return UnfoldsTooFarError(f"compressed data unfolds to more than {max_bytes} bytes")


@contextlib.contextmanager
def _cramjam_errors(container: str) -> Iterator[None]:
    import cramjam

    try:
        yield
    except cramjam.DecompressionError as error:
        raise InvalidMessageError(f"broken {container} data: {error}") from error


def _gzip_compress(data: Buffer) -> bytes:
    import gzip

    return gzip.compress(data, 6, mtime=0)


def _gzip_decompress(data: Buffer, max_bytes: int) -> bytes:
    """Read one or more gzip members, as the JDK's stream does."""
    # zlib copies the input behind a member's end, so input is given in small parts: a container of
    # many tiny members would otherwise take quadratic time
    view = memoryview(data)
    parts: list[bytes] = []
    position = 0
    left_bytes = max_bytes
    while position < len(view) or not parts:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            chunk = view[position : position + _GZIP_CHUNK_BYTES]
            if not chunk:
                raise InvalidMessageError("broken gzip data: it is cut off")
            parts.append(member.decompress(chunk, left_bytes + 1))
            position += len(chunk) - len(member.unused_data)
            left_bytes -= len(parts[-1])
            if left_bytes < 0:
                raise _too_large(max_bytes)
    return b"".join(parts)


def _snappy_compress(data: Buffer) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    parts = [_SNAPPY_HEADER]
    for start in range(0, len(view), _SNAPPY_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(bytes(view[start : start + _SNAPPY_BLOCK_BYTES])))
        parts += (INT32.pack(len(block)), block)
    return b"".join(parts)


def _snappy_decompress(data: Buffer, max_bytes: int) -> bytes:
    """Read the stream container; without its header, one bare block, as 0.7's reader does."""
    view = memoryview(data)
    if len(view) < len(_SNAPPY_HEADER) or bytes(view[:8]) != _SNAPPY_HEADER[:8]:
        return _snappy_block(view, max_bytes)
    parts: list[bytes] = []
    position = len(_SNAPPY_HEADER)
    left_bytes = max_bytes
    while position < len(view):
        (size,) = INT32.unpack_from(view, position)
        position += 4
        if size < 0 or position + size > len(view):
            raise InvalidMessageError("broken snappy data: a block is cut off")
        parts.append(_snappy_block(view[position : position + size], left_bytes))
        left_bytes -= len(parts[-1])
        position += size
    return b"".join(parts)


def _snappy_block(block: memoryview, max_bytes: int) -> bytes:
    from cramjam import snappy

    raw = bytes(block)
    with _cramjam_errors("snappy"):
        if snappy.decompress_raw_len(raw) > max_bytes:
            raise _too_large(max_bytes)
        return bytes(snappy.decompress_raw(raw))


def _sized_compress(compressor: Callable[[bytes], Any], data: Buffer) -> bytes:
    """Return an int32 with the length of `data`, followed by its compressed frame."""
    return INT32.pack(len(data)) + bytes(compressor(bytes(data)))


def _sized_decompress(
    decompressor: Callable[[bytes, bytearray], int], data: Buffer, max_bytes: int
) -> bytes:
    (size,) = INT32.unpack_from(data)
    if not 0 <= size <= max_bytes:
        raise _too_large(max_bytes)
    unfolded = bytearray(size)
    with _cramjam_errors("lz4 or zstd"):
        unfolded_bytes = decompressor(bytes(data[INT32.size :]), unfolded)
    if unfolded_bytes != size:
        raise InvalidMessageError(f"compressed data does not unfold to the {size} bytes it claims")
    return bytes(unfolded)


def _cramjam() -> Any:
    import cramjam  # late: few programs compress

    return cramjam


_COMPRESS: dict[Codec, Callable[[Buffer], bytes]] = {
    Codec.NONE: bytes,
    Codec.GZIP: _gzip_compress,
    Codec.SNAPPY: _snappy_compress,
    Codec.LZ4: lambda data: _sized_compress(_cramjam().lz4.compress, data),
    Codec.ZSTD: lambda data: _sized_compress(_cramjam().zstd.compress, data),
}
_DECOMPRESS: dict[Codec, Callable[[Buffer, int], bytes]] = {
    Codec.GZIP: _gzip_decompress,
    Codec.SNAPPY: _snappy_decompress,
    Codec.LZ4: lambda data, most: _sized_decompress(_cramjam().lz4.decompress_into, data, most),
    Codec.ZSTD: lambda data, most: _sized_decompress(_cramjam().zstd.decompress_into, data, most),
}
