"""CRC-32 (IEEE) by independent engines.

The hot path uses the compiled codec's engine where it is built, else zlib. crcmod shares no code
with either, so `log verify --engine crcmod` can tell a broken file from a broken checksum routine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from broker.protocol.codec_choice import IS_COMPILED
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
