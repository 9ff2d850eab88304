"""CRC-32 (IEEE) by independent routines.

`crc32` is the compiled codec's where that is built, else zlib's. crcmod shares no code with either,
so `log verify --engine crcmod` can tell a damaged file from a broken checksum routine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from broker.protocol.codec import IS_COMPILED
from broker.protocol.primitives import Buffer

if IS_COMPILED:
    from broker.protocol._codec import crc32
else:
    from zlib import crc32

__all__ = ["crc32", "crc32_crcmod"]


def crc32_crcmod(data: Buffer) -> int:
    """Return the CRC-32 of `data` as crcmod computes it."""
    return _crcmod_engine()(bytes(data))


@functools.cache
def _crcmod_engine() -> Callable[[bytes], int]:
    from crcmod import predefined  # late: only verify asks for it

    engine: Callable[[bytes], int] = predefined.mkPredefinedCrcFun("crc-32")
    return engine
