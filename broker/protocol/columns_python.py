"""Message sets as columns for Arrow, in plain Python; a part of the codec's plain twin."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from zlib import crc32

from broker.protocol.codec_types import Columns, CrcCheck, Fault
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
    view = memoryview(buffer)
    rows = _Rows()
    position = 0
    fault = Fault.NONE
    while position < len(view):
        fault = fault_of_header(view, position)
        if fault:
            break
        fault, found = _content(view, position, crc_check, open_)
        is_good = not fault
        if fault and crc_check is CrcCheck.MARK:
            fault, found = Fault.NONE, [bytes(payload_at(view, position))]
        size = sum(map(len, found))
        if fault or (position and rows.value_bytes + size > max_value_bytes):
            break
        is_wrapper = is_good and codec_at(view, position)
        crcs = list(map(crc32, found)) if is_wrapper else [crc_at(view, position)]
        end = end_at(view, position)
        attributes = attributes_at(view, position)
        rows.add(base_offset + position, base_offset + end, attributes, found, crcs, is_good)
        position = end
        if rows.value_bytes > max_value_bytes:
            break
    return rows.columns(position, fault, has_marks=crc_check is CrcCheck.MARK)


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
    """Columns while they grow."""

    def __init__(self) -> None:
        self.value_bytes = 0
        self._offsets = array("q")
        self._next_offsets = array("q")
        self._inners = array("i")
        self._attributes = bytearray()
        self._crcs = array("I")
        self._value_offsets = array("i", [0])
        self._values: list[bytes] = []
        self._marks: list[bool] = []

    def add(
        self,
        offset: int,
        next_offset: int,
        attributes: int,
        payloads: Sequence[bytes],
        crcs: Sequence[int],
        is_good: bool,
    ) -> None:
        """Add the messages of one outer entry."""
        count = len(payloads)
        if not count:
            return
        self._offsets.extend([offset] * count)
        self._next_offsets.extend([offset] * (count - 1) + [next_offset])
        self._inners.extend(range(count))
        self._attributes += bytes((attributes,)) * count
        self._crcs.extend(crcs)
        for payload in payloads:
            self.value_bytes += len(payload)
            self._value_offsets.append(self.value_bytes)
        self._values += payloads
        self._marks += [is_good] * count

    def columns(self, valid_bytes: int, fault: Fault, *, has_marks: bool) -> Columns:
        """Return the columns as they are now."""
        return Columns(
            message_count=len(self._offsets),
            valid_bytes=valid_bytes,
            fault=fault,
            offsets=self._offsets.tobytes(),
            next_offsets=self._next_offsets.tobytes(),
            inners=self._inners.tobytes(),
            attributes=bytes(self._attributes),
            crcs=self._crcs.tobytes(),
            value_offsets=self._value_offsets.tobytes(),
            values=b"".join(self._values),
            crc_ok=_bitmap(self._marks) if has_marks else b"",
        )


def _bitmap(marks: Sequence[bool]) -> bytes:
    bits = bytearray((len(marks) + 7) // 8)
    for row, mark in enumerate(marks):
        bits[row // 8] |= mark << row % 8
    return bytes(bits)
