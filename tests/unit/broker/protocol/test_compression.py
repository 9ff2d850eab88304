from __future__ import annotations

import gzip
import struct
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.errors import InvalidMessageError
from broker.protocol.compression import Codec, codec_of, compress, decompress
from tests.strategies import PAYLOADS, WRAPPER_CODECS
from tests.unit.broker.protocol.golden import VECTORS

CODECS = st.sampled_from(WRAPPER_CODECS)
SNAPPY_HEADER = VECTORS["snappy-stream-header"].data
SNAPPY_BLOCK_BYTES = 32768
MEBIBYTE = 1 << 20


def snappy_block_sizes(container: bytes) -> list[int]:
    """The uncompressed length of each block, from the varint it starts with."""
    sizes = []
    position = len(SNAPPY_HEADER)
    while position < len(container):
        (length,) = struct.unpack_from(">i", container, position)
        position += 4
        size = shift = 0
        for byte in container[position : position + 5]:
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        sizes.append(size)
        position += length
    return sizes


@given(CODECS, PAYLOADS)
def test_data_when_compressed_and_decompressed_then_is_the_same(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", WRAPPER_CODECS)
@pytest.mark.parametrize("size", [32767, 32768, 32769, 100_000])
def test_data_when_longer_than_a_snappy_block_then_comes_back_whole(
    codec: Codec, size: int
) -> None:
    data = bytes(n * n % 251 for n in range(size))

    assert decompress(codec, memoryview(compress(codec, memoryview(data)))) == data


def test_none_when_compressed_then_is_the_data_itself() -> None:
    assert compress(Codec.NONE, memoryview(b"abc")) == b"abc"


def test_snappy_when_data_is_long_then_is_cut_into_blocks_of_32_kib() -> None:
    container = compress(Codec.SNAPPY, bytes(2 * SNAPPY_BLOCK_BYTES + 1))

    assert container.startswith(SNAPPY_HEADER)
    assert snappy_block_sizes(container) == [SNAPPY_BLOCK_BYTES, SNAPPY_BLOCK_BYTES, 1]


def test_snappy_when_header_is_missing_then_payload_is_one_bare_block() -> None:
    assert decompress(Codec.SNAPPY, b"\x05\x10hello") == b"hello"


def test_snappy_when_versions_differ_then_are_not_looked_at() -> None:
    container = SNAPPY_HEADER[:8] + struct.pack(">ii", 7, 7) + struct.pack(">i", 7)

    assert decompress(Codec.SNAPPY, container + b"\x05\x10hello") == b"hello"


def test_gzip_when_several_members_follow_then_all_are_read() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one") + gzip.compress(b"two")) == b"onetwo"


@pytest.mark.timeout(40)  # under a second, unless it grows with the square of the length
def test_gzip_when_members_are_tiny_and_many_then_is_read_in_time() -> None:
    members = gzip.compress(b"x") * 500_000

    assert decompress(Codec.GZIP, members) == b"x" * 500_000


@pytest.mark.parametrize("size", [4000, 4095, 4096, 4097, 20_000])
def test_gzip_when_members_end_anywhere_in_a_piece_then_all_are_read(size: int) -> None:
    stored = gzip.compress(bytes(range(256)) * (size // 256) + b"x" * (size % 256 + 1), 0)

    assert decompress(Codec.GZIP, stored + stored + gzip.compress(b"end"))[-4:] == b"xend"


def test_gzip_when_compressed_then_time_is_left_out() -> None:
    assert compress(Codec.GZIP, b"abc")[4:8] == bytes(4)


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (Codec.GZIP, b""),
        (Codec.GZIP, b"\x1f\x8b"),
        (Codec.GZIP, gzip.compress(b"abc", mtime=0)[:-1]),
        (Codec.GZIP, gzip.compress(b"abc", mtime=0)[:-8] + bytes(8)),
        (Codec.GZIP, b"plain text"),
        (Codec.SNAPPY, b""),
        (Codec.SNAPPY, b"\x05"),
        (Codec.SNAPPY, SNAPPY_HEADER + b"\x00"),
        (Codec.SNAPPY, SNAPPY_HEADER + struct.pack(">i", -1)),
        (Codec.SNAPPY, SNAPPY_HEADER + struct.pack(">i", 8) + b"\x05\x10hello"),
        (Codec.SNAPPY, SNAPPY_HEADER + struct.pack(">i", 6) + b"\x05\x10hell"),
        (Codec.LZ4, b""),
        (Codec.LZ4, bytes(4)),
        (Codec.LZ4, struct.pack(">i", -1) + compress(Codec.LZ4, b"abc")[4:]),
        (Codec.ZSTD, b"\x00"),
        (Codec.ZSTD, bytes(4)),
        (Codec.ZSTD, struct.pack(">i", 3) + b"abc"),
    ],
)
def test_container_when_broken_then_raises_invalid_message(codec: Codec, data: bytes) -> None:
    with pytest.raises(InvalidMessageError):
        decompress(codec, data)


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("claim", [0, 99, 101])
def test_sized_container_when_size_is_not_what_it_claims_then_raises_invalid_message(
    codec: Codec, claim: int
) -> None:
    container = struct.pack(">i", claim) + compress(codec, bytes(100))[4:]

    with pytest.raises(InvalidMessageError):
        decompress(codec, container)


@given(CODECS, st.binary(max_size=60))
@example(Codec.SNAPPY, SNAPPY_HEADER + bytes(4))
def test_container_when_bytes_are_random_then_only_invalid_message_is_raised(
    codec: Codec, data: bytes
) -> None:
    try:
        decompress(codec, data, max_bytes=1000)
    except InvalidMessageError:
        return


@given(CODECS, PAYLOADS, st.data())
def test_container_when_a_byte_is_changed_then_only_invalid_message_is_raised(
    codec: Codec, payload: bytes, data: st.DataObject
) -> None:
    container = bytearray(compress(codec, payload))
    container[data.draw(st.integers(0, len(container) - 1))] = data.draw(st.integers(0, 255))
    try:
        unfolded = decompress(codec, container, max_bytes=10_000)
    except InvalidMessageError:
        return
    assert len(unfolded) <= 10_000


@pytest.mark.parametrize("codec", WRAPPER_CODECS)
def test_container_when_it_unfolds_to_just_the_limit_then_is_read(codec: Codec) -> None:
    data = bytes(40_000)

    assert decompress(codec, compress(codec, data), max_bytes=40_000) == data


@pytest.mark.parametrize("codec", WRAPPER_CODECS)
def test_container_when_it_unfolds_to_one_byte_more_then_raises_invalid_message(
    codec: Codec,
) -> None:
    with pytest.raises(InvalidMessageError, match="unfolds to more than"):
        decompress(codec, compress(codec, bytes(40_000)), max_bytes=39_999)


@pytest.mark.parametrize("codec", WRAPPER_CODECS)
def test_bomb_when_refused_then_little_memory_was_taken(codec: Codec) -> None:
    bomb = compress(codec, bytes(50 * MEBIBYTE))
    tracemalloc.start()
    try:
        with pytest.raises(InvalidMessageError):
            decompress(codec, bomb, max_bytes=MEBIBYTE)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 8 * MEBIBYTE


@pytest.mark.parametrize(
    ("attributes", "codec"),
    [(0, Codec.NONE), (1, Codec.GZIP), (2, Codec.SNAPPY), (7, Codec.LZ4), (11, Codec.ZSTD)],
)
@pytest.mark.parametrize("high_bits", [0, 16, 128, 240])
def test_codec_when_the_high_bits_are_set_then_is_the_same(
    attributes: int, codec: Codec, high_bits: int
) -> None:
    assert codec_of(attributes | high_bits) is codec


@pytest.mark.parametrize("low", [0, 1, 2])
@pytest.mark.parametrize("extension_bits", [0, 4, 8, 12])
def test_codec_when_it_is_one_of_07s_then_the_extension_bits_mean_nothing(
    low: int, extension_bits: int
) -> None:
    assert codec_of(low | extension_bits) is Codec(low)


@pytest.mark.parametrize("attributes", [3, 15, 3 | 16, 15 | 240])
def test_codec_when_attributes_name_none_then_is_none(attributes: int) -> None:
    assert codec_of(attributes) is None


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
def test_extension_codec_when_read_by_the_rules_of_07_then_is_the_invalid_codec(
    codec: Codec,
) -> None:
    assert codec & 3 == 3
