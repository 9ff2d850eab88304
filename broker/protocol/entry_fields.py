"""Fields of one entry of a message set, read with care, for the plain twin of the codec.

Each takes a view on the set and the position where the entry starts.
"""

from __future__ import annotations

import struct
from zlib import crc32

from broker.protocol.codec_types import LENGTH_BYTES, MAGIC0_HEADER_BYTES, Fault
from broker.protocol.compression import Codec, codec_of
from broker.protocol.primitives import INT32

_CRC = struct.Struct(">I")


def fault_of_header(view: memoryview, position: int) -> Fault:
    """Say what is wrong with length or magic byte; NONE for a whole entry."""
    rest = len(view) - position
    if rest < LENGTH_BYTES:
        return Fault.PARTIAL
    (length,) = INT32.unpack_from(view, position)
    if length < MAGIC0_HEADER_BYTES:
        return Fault.SIZE
    if rest > LENGTH_BYTES:
        magic = view[position + LENGTH_BYTES]
        if magic > 1:
            return Fault.MAGIC
        if length < MAGIC0_HEADER_BYTES + magic:
            return Fault.SIZE
    return Fault.PARTIAL if LENGTH_BYTES + length > rest else Fault.NONE


def fault_of_content(view: memoryview, position: int) -> Fault:
    """Say what is wrong inside an entry whose header is good; NONE for nothing."""
    if codec_at(view, position) is None:
        return Fault.CODEC
    matches = crc32(payload_at(view, position)) == crc_at(view, position)
    return Fault.NONE if matches else Fault.CRC


def fault_at(view: memoryview, position: int) -> Fault:
    """Say what is wrong with an entry; NONE for a good one."""
    return fault_of_header(view, position) or fault_of_content(view, position)


def end_at(view: memoryview, position: int) -> int:
    """Return where the entry ends."""
    return position + LENGTH_BYTES + int(INT32.unpack_from(view, position)[0])


def attributes_at(view: memoryview, position: int) -> int:
    """Return its attributes; magic 0 has none and is plain."""
    return view[position + LENGTH_BYTES + 1] if view[position + LENGTH_BYTES] else 0


def codec_at(view: memoryview, position: int) -> Codec | None:
    """Return the codec that its attributes name, None if there is no such codec."""
    return codec_of(attributes_at(view, position))


def crc_at(view: memoryview, position: int) -> int:
    """Return the CRC that is stored with it."""
    return int(_CRC.unpack_from(view, _payload_start(view, position) - _CRC.size)[0])


def payload_at(view: memoryview, position: int) -> memoryview:
    """Return its payload, a view too."""
    return view[_payload_start(view, position) : end_at(view, position)]


def _payload_start(view: memoryview, position: int) -> int:
    magic = view[position + LENGTH_BYTES]
    return position + LENGTH_BYTES + MAGIC0_HEADER_BYTES + magic
