"""Compression codecs of wrapper messages, in 0.7's containers, and of Kafka's record batches.

0.7 has the codec in the low two bits of a message's attributes: 0 none, 1 gzip, 2 snappy, 3
invalid. Our extension codecs set those bits to 3, so that a 0.7 client refuses a wrapper it cannot
open, and have their number in the bits above. gzip is in the standard library, all others are in
cramjam.

Record batches number the codecs from 0 to 4. Their gzip and snappy containers are 0.7's; lz4 and
zstd are plain frames there, without a size before them.
"""

from __future__ import annotations

import contextlib
import mmap
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
# Kafka's Java client reads no frames with blocks that depend on each other, as cramjam writes them
_LZ4_BLOCK_BYTES = 65536
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"  # independent blocks of 64 KiB, no checksums
_LZ4_IS_STORED = 1 << 31
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


BATCH_CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
"""The codecs of record batches, by their number there."""


def codec_of_batch(attributes: int) -> Codec | None:
    """Return the codec that the attributes of a record batch name, None if there is no such."""
    number = attributes & 7
    return BATCH_CODECS[number] if number < len(BATCH_CODECS) else None


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


def compress_batch(codec: Codec, data: Buffer) -> bytes:
    """Return `data` as record batches contain it with a codec."""
    if codec is Codec.LZ4:
        return _lz4_frame(bytes(data))
    return bytes(_cramjam().zstd.compress(data)) if codec is Codec.ZSTD else compress(codec, data)


def decompress_batch(
    codec: Codec, data: Buffer, *, magic: int = 2, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Return the content of a record batch, or of a wrapper of formats 0 and 1.

    Raises:
        InvalidMessageError: it is damaged.
        UnfoldsTooFarError: it decompresses to more than `max_bytes`.
    """
    if codec is Codec.ZSTD:
        return _frame_content("zstd", _cramjam().zstd.decompress_into, data, max_bytes)
    if codec is Codec.LZ4:
        frame = _with_header_checksum(bytes(data)) if magic == 0 else data
        return _frame_content("lz4", _cramjam().lz4.decompress_into, frame, max_bytes)
    return decompress(codec, data, max_bytes=max_bytes)


def _frame_content(
    name: str, decompressor: Callable[[bytes, mmap.mmap], int], data: Buffer, max_bytes: int
) -> bytes:
    """Return the content of frames, whose size nothing tells before."""
    # a mapping takes memory only where it is written to, however large it is
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, max_bytes or 1, flags=flags) as unfolded:
        try:
            with _cramjam_errors(name):
                size = decompressor(bytes(data), unfolded)
        except InvalidMessageError as error:
            if "whole buffer" in str(error):
                raise _too_large(max_bytes) from error
            raise
        return unfolded[:size]


def _lz4_frame(data: bytes) -> bytes:
    compress_block = _cramjam().lz4.compress_block
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        packed = bytes(compress_block(block, store_size=False))
        is_stored = len(packed) >= len(block)
        size = len(block) | _LZ4_IS_STORED if is_stored else len(packed)
        parts += (struct.pack("<I", size), block if is_stored else packed)
    return b"".join([*parts, bytes(4)])


def _with_header_checksum(frame: bytes) -> bytes:
    """Return an lz4 frame with the right header checksum: Kafka before 0.10 wrote a wrong one."""
    # source: KAFKA-3160; what the checksum covers are two bytes of flags and the content's size
    end = 6 + (8 if len(frame) > 4 and frame[4] & 8 else 0)
    return frame[:end] + bytes((_xxh32(frame[4:end]) >> 8 & 0xFF,)) + frame[end + 1 :]


def _xxh32(data: bytes) -> int:
    """Return the XXH32 of fewer than 16 bytes."""
    mask, primes = 2**32 - 1, (2654435761, 2246822519, 3266489917, 668265263, 374761393)
    value = primes[4] + len(data)
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        value = value + word * primes[2] & mask
        value = (value << 17 | value >> 15) * primes[3] & mask
    for byte in data[whole:]:
        value = value + byte * primes[4] & mask
        value = (value << 11 | value >> 21) * primes[0] & mask
    value = (value ^ value >> 15) * primes[1] & mask
    value = (value ^ value >> 13) * primes[2] & mask
    return value ^ value >> 16


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
        return _snappy_block(view, max_bytes, max_bytes)
    parts: list[bytes] = []
    position = len(_SNAPPY_HEADER)
    left_bytes = max_bytes
    while position < len(view):
        (size,) = INT32.unpack_from(view, position)
        position += 4
        if size < 0 or position + size > len(view):
            raise InvalidMessageError("broken snappy data: a block is cut off")
        parts.append(_snappy_block(view[position : position + size], left_bytes, max_bytes))
        left_bytes -= len(parts[-1])
        position += size
    return b"".join(parts)


def _snappy_block(block: memoryview, left_bytes: int, max_bytes: int) -> bytes:
    from cramjam import snappy

    raw = bytes(block)
    with _cramjam_errors("snappy"):
        if snappy.decompress_raw_len(raw) > left_bytes:
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
