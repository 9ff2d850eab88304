"""The compiled engine reads nothing beyond a buffer: the page behind each one cannot be read.

A read too far ends the process, so these tests fail by taking pytest with them.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.codec import CrcCheck, RecordBatch
from tests.strategies import ANY_SETS, APPEND_FRAMES, PAYLOADS
from tests.support.codec_engines import Engine, load_engine
from tests.support.record_batches import FIELDS, RECORDS, batch_bytes, old_bytes, records_from

PAGES = 16
ROOM_BYTES = PAGES * mmap.PAGESIZE
NO_ACCESS = 0


class Fence:
    """Memory whose last page must not be touched."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, ROOM_BYTES + mmap.PAGESIZE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._protect(start + ROOM_BYTES, NO_ACCESS)

    def _protect(self, address: int, access: int) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        size = ctypes.c_size_t(mmap.PAGESIZE)
        if library.mprotect(ctypes.c_void_p(address), size, access):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def put(self, data: bytes) -> memoryview:
        """Return a copy that ends where the fence stands."""
        view = memoryview(self._memory)[ROOM_BYTES - len(data) : ROOM_BYTES]
        view[:] = data
        return view


@pytest.fixture(scope="module")
def fence() -> Fence:
    return Fence()


@pytest.fixture(scope="module")
def compiled() -> Engine:
    return load_engine("compiled")


@given(ANY_SETS, st.binary(max_size=3))
def test_set_when_at_the_end_of_memory_then_is_read_no_further(
    fence: Fence, compiled: Engine, data: bytes, delimiter: bytes
) -> None:
    buffer = fence.put(data)

    assert compiled.scan(buffer) == compiled.scan(data)
    assert compiled.boundaries(buffer) == compiled.boundaries(data)
    for rest in (len(data), len(data) + 500):
        found = compiled.find_entry(data, len(data), rest)
        assert compiled.find_entry(buffer, len(data), rest) == found
    assert compiled.decode(buffer, 0) == compiled.decode(data, 0)
    assert compiled.decode_delimited(buffer, delimiter) == compiled.decode_delimited(
        data, delimiter
    )
    assert compiled.count_delimiters(buffer, b"e") == compiled.count_delimiters(data, b"e")
    for check in CrcCheck:
        columns = compiled.decode_columns(data, 0, crc_check=check)
        assert compiled.decode_columns(buffer, 0, crc_check=check) == columns


@given(RECORDS, FIELDS, st.integers(0, 90))
def test_batches_when_at_the_end_of_memory_then_are_read_no_further(
    fence: Fence, compiled: Engine, found: list[Any], fields: RecordBatch, missing: int
) -> None:
    whole = compiled.encode_batch(records_from(fields.base_offset, found), fields)
    cut = whole[61 : len(whole) - missing]
    lies = fields._replace(record_count=len(found), last_offset_delta=4000)
    old = old_bytes(1, 0, cut)
    for data in (whole, batch_bytes(cut, lies), old, old[: len(old) - missing]):
        buffer = fence.put(data)

        assert compiled.scan_batches(buffer) == compiled.scan_batches(data)
        assert compiled.decode_records(buffer) == compiled.decode_records(data)
        columns = compiled.decode_record_columns(data)
        assert compiled.decode_record_columns(buffer) == columns
        if data is whole:
            assert compiled.stamp_batches(buffer, 0, 0) == compiled.stamp_batches(data, 0, 0)


@given(st.lists(APPEND_FRAMES, min_size=1, max_size=4).map(b"".join))
def test_requests_when_at_the_end_of_memory_then_are_read_no_further(
    fence: Fence, compiled: Engine, data: bytes
) -> None:
    buffer = fence.put(data)
    bounds = compiled.boundaries(buffer, 1)

    assert bounds == compiled.boundaries(data, 1)
    for first in range(len(bounds) - 1):
        found = compiled.single_appends(buffer, bounds, first)
        assert found == compiled.single_appends(data, bounds, first)
    with pytest.raises(ValueError, match="not those of frames"):
        compiled.single_appends(buffer, [len(buffer) - 4, len(buffer) + 1], 0)


@given(PAYLOADS, st.sampled_from((b"\n", b"aab")))
def test_text_when_at_the_end_of_memory_then_is_read_no_further(
    fence: Fence, compiled: Engine, payload: bytes, delimiter: bytes
) -> None:
    text = payload + delimiter + payload + delimiter[:-1]
    limits = {"max_payload_bytes": 1000, "batch_count": 10}

    found = compiled.encode_delimited(fence.put(text), delimiter, **limits)

    assert found == compiled.encode_delimited(text, delimiter, **limits)


@pytest.mark.parametrize("size", [*range(300), 4096, ROOM_BYTES])
def test_payload_when_at_the_end_of_memory_then_is_read_no_further(
    fence: Fence, compiled: Engine, size: int
) -> None:
    payload = os.urandom(size)

    assert compiled.encode([fence.put(payload)]) == compiled.encode([payload])
    assert compiled.crc32c(fence.put(payload)) == compiled.crc32c(payload)
