"""Compares the messages of a source and of its copy while both are being read.

Messages are identified by CRC and length. Only those read from one side and not yet from the other
are kept in memory.
"""

from __future__ import annotations

from broker.protocol.codec import Scan
from broker.protocol.message_set import iter_payload_crcs
from broker.protocol.primitives import Buffer

_MASK_64 = (1 << 64) - 1


class _Digest:
    """Number, size and checksum of messages, independent of their order."""

    __slots__ = ("checksum", "message_count", "payload_bytes")

    def __init__(self) -> None:
        self.message_count = 0
        self.payload_bytes = 0
        self.checksum = 0
        """The sum of the CRCs, in 64 bits."""

    def add(self, crc: int, size: int) -> None:
        """Count one message."""
        self.message_count += 1
        self.payload_bytes += size
        self.checksum = (self.checksum + crc) & _MASK_64


class Difference:
    """Compares the messages of a source and of its copy, as multisets."""

    def __init__(self) -> None:
        self.source = _Digest()
        self.target = _Digest()
        self._surplus_in_source: dict[tuple[int, int], int] = {}

    def add_source(self, message_set: Buffer, found: Scan) -> None:
        """Count messages of the source: the valid entries of a set by its `codec.scan`."""
        self._add(message_set, found, self.source, 1)

    def add_target(self, message_set: Buffer, found: Scan) -> None:
        """Count messages of the copy; see `add_source`."""
        self._add(message_set, found, self.target, -1)

    @property
    def missing_count(self) -> int:
        """Return the number of messages of the source that are missing in the copy."""
        return sum(count for count in self._surplus_in_source.values() if count > 0)

    @property
    def surplus_count(self) -> int:
        """Return the number of messages of the copy that are not in the source."""
        return -sum(count for count in self._surplus_in_source.values() if count < 0)

    def _add(self, message_set: Buffer, found: Scan, digest: _Digest, step: int) -> None:
        counts = self._surplus_in_source
        for key in iter_payload_crcs(memoryview(message_set)[: found.valid_bytes]):
            digest.add(*key)
            count = counts.get(key, 0) + step
            if count:
                counts[key] = count
            else:
                del counts[key]
