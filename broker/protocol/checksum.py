"""CRC-32 (IEEE) by two independent engines.

zlib is the engine of the hot path: over the 200 bytes of a typical message it took 145 ns a call
where isal took 190 (CPython 3.11, one machine), and five gigabytes a second over large blocks is
no bottleneck. crcmod shares no code with it, so `log verify --engine crcmod` can tell a broken
file from a broken checksum routine.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable

from broker.protocol.primitives import Buffer

crc32: Callable[[Buffer], int] = zlib.crc32


def crc32_crcmod(data: Buffer) -> int:
    """Return the CRC-32 of `data` as crcmod computes it."""
    return _crcmod_engine()(bytes(data))


@functools.cache
def _crcmod_engine() -> Callable[[bytes], int]:
    from crcmod import predefined  # late: only verify asks for it

    engine: Callable[[bytes], int] = predefined.mkPredefinedCrcFun("crc-32")
    return engine
