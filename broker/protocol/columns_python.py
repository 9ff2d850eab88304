"""Message sets as columns for Arrow, in plain Python; a part of the codec's plain twin."""

from __future__ import annotations

import struct
from array import array
from itertools import accumulate
from zlib import crc32

from broker.protocol.codec_types import ENTRY_OVERHEAD_BYTES, Columns, CrcCheck, Fault
from broker.protocol.entry_fields import (
    attributes_at,
    codec_at,
    crc_at,
    end_at,
    fault_of_content,
    fault_of_header,
    payload_at,
)
from broker.protocol.primitives import Buffer
from broker.protocol.unfolding import Opener

_KIND = struct.Struct(">iHI")
_PLAIN = 0x0100
_MAX_OFFSET = 2**63 - 1


def check_offsets(base_offset: int, size: int) -> None:
    """Raise for offsets that no int64 holds.

    Raises:
        OverflowError: the offset after a buffer of this size exceeds 64 bits.
    """
    if base_offset > _MAX_OFFSET - size:
        raise OverflowError("the offset after the last message exceeds 64 bits")


def columns_with(
    open_: Opener,
    buffer: Buffer,
    base_offset: int,
    crc_check: CrcCheck,
    max_value_bytes: int,
) -> Columns:
    """Do what `codec_python.decode_columns` says.

    Args:
        open_: gives what is in a wrapper.
        buffer: starts on an entry.
        base_offset: the log offset of its first byte.
        crc_check: what to do about bad entries.
        max_value_bytes: how many bytes of payload to take at most, at least 0.
    """
    check_offsets(base_offset, len(buffer))
    rows = _Rows(base_offset, crc_check, max_value_bytes)
    data = bytes(buffer)
    view = memoryview(data)
    fault = Fault.NONE
    position = rows.add_plain(data, 0)
    while position < len(data) and rows.value_bytes <= max_value_bytes:
        fault = fault_of_header(view, position)
        if fault:
            break
        fault, payloads = _content(view, position, crc_check, open_)
        is_good = not fault
        if fault and crc_check is CrcCheck.MARK:
            fault, payloads = Fault.NONE, [bytes(payload_at(view, position))]
        value_bytes = rows.value_bytes + sum(map(len, payloads))
        if fault or (position and value_bytes > max_value_bytes):
            break
        rows.add(view, position, payloads, is_good=is_good)
        position = rows.add_plain(data, end_at(view, position))
    return rows.columns(position, fault)


def _content(
    view: memoryview, position: int, crc_check: CrcCheck, open_: Opener
) -> tuple[Fault, list[bytes]]:
    """Return the payloads of an entry whose header is good, or what is wrong inside."""
    fault = fault_of_content(view, position)
    if fault and not (fault is Fault.CRC and crc_check is CrcCheck.OFF):
        return fault, []
    codec = codec_at(view, position)
    payload = payload_at(view, position)
    if not codec:
        return Fault.NONE, [bytes(payload)]
    inner = open_(codec, payload)
    return (Fault.COMPRESSED, []) if inner is None else (Fault.NONE, inner)


class _Rows:
    """Columns while they grow.

    Args:
        base_offset: the log offset of position 0.
        crc_check: whether CRCs are computed, and whether rows are marked.
        max_value_bytes: at most so many bytes of payload.
    """

    def __init__(self, base_offset: int, crc_check: CrcCheck, max_value_bytes: int) -> None:
        self.value_bytes = 0
        self._base_offset = base_offset
        self._crc_check = crc_check
        self._max_value_bytes = max_value_bytes
        self._starts: list[int] = []
        self._nexts: list[int] = []
        self._crcs: list[int] = []
        self._values: list[bytes] = []
        self._others: list[tuple[int, int, int, bool]] = []
        """Row, place in the wrapper, attributes, and whether it is good, of all not plain."""

    def add_plain(self, data: bytes, position: int) -> int:
        """Add good entries without attributes as long as they come; return the first other."""
        unpack, checksum = _KIND.unpack_from, crc32
        is_checked = self._crc_check is not CrcCheck.OFF
        value_bytes, most = self.value_bytes, self._max_value_bytes
        add_start, add_next = self._starts.append, self._nexts.append
        add_crc, add_value = self._crcs.append, self._values.append
        last_start = len(data) - ENTRY_OVERHEAD_BYTES
        while position <= last_start:
            length, kind, crc = unpack(data, position)
            end = position + 4 + length
            value_bytes += length - 6
            if kind != _PLAIN or length < 6 or end > len(data) or value_bytes > most:
                break
            value = data[position + 10 : end]
            if is_checked and checksum(value) != crc:
                break
            add_start(position)
            add_next(end)
            add_crc(crc)
            add_value(value)
            self.value_bytes = value_bytes
            position = end
        return position

    def add(self, view: memoryview, position: int, payloads: list[bytes], *, is_good: bool) -> None:
        """Add what an entry of any kind stands for."""
        if not payloads:
            return
        row, count = len(self._starts), len(payloads)
        attributes = attributes_at(view, position)
        is_wrapper = is_good and codec_at(view, position)
        self._starts += [position] * count
        self._nexts += [position] * (count - 1) + [end_at(view, position)]
        self._crcs += map(crc32, payloads) if is_wrapper else [crc_at(view, position)]
        self._values += payloads
        self._others += [(row + inner, inner, attributes, is_good) for inner in range(count)]
        self.value_bytes += sum(map(len, payloads))

    def columns(self, valid_bytes: int, fault: Fault) -> Columns:
        """Return the columns as they are now."""
        count = len(self._starts)
        inners = array("i", [0]) * count
        attributes = bytearray(count)
        for row, inner, attribute, _ in self._others:
            inners[row] = inner
            attributes[row] = attribute
        base_offset = self._base_offset
        return Columns(
            message_count=count,
            valid_bytes=valid_bytes,
            fault=fault,
            offsets=array("q", [base_offset + start for start in self._starts]).tobytes(),
            next_offsets=array("q", [base_offset + end for end in self._nexts]).tobytes(),
            inners=inners.tobytes(),
            attributes=bytes(attributes),
            crcs=array("I", self._crcs).tobytes(),
            value_offsets=array("i", accumulate(map(len, self._values), initial=0)).tobytes(),
            values=b"".join(self._values),
            crc_ok=self._marks() if self._crc_check is CrcCheck.MARK else b"",
        )

    def _marks(self) -> bytes:
        """Return the bitmap of the rows that are good."""
        count = len(self._starts)
        bits = (1 << count) - 1
        for row, _, _, is_good in self._others:
            if not is_good:
                bits &= ~(1 << row)
        return bits.to_bytes((count + 7) // 8, "little")
