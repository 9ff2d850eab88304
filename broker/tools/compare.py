"""What two sets of messages do not have in common, found while both are being read.

Messages are known by CRC and length. Those that one side has and the other not yet are remembered,
so memory goes with how far apart the sides are and not with how much is read.
"""

from __future__ import annotations

from broker.protocol.codec import Scan
from broker.protocol.message_set import iter_payload_crcs
from broker.protocol.primitives import Buffer

_MASK_64 = (1 << 64) - 1


class Digest:
    """Number, size and checksum of messages, whatever their order."""

    __slots__ = ("checksum", "message_count", "payload_bytes")

    def __init__(self) -> None:
        self.message_count = 0
        self.payload_bytes = 0
        self.checksum = 0
        """The sum of the CRCs, in 64 bits."""

    def add(self, crc: int, size: int) -> None:
        """Take one more message in."""
        self.message_count += 1
        self.payload_bytes += size
        self.checksum = (self.checksum + crc) & _MASK_64


class Difference:
    """Compares the messages of a source and of its copy, as multisets."""

    def __init__(self) -> None:
        self.source = Digest()
        self.target = Digest()
        self._surplus_in_source: dict[tuple[int, int], int] = {}

    def add_source(self, message_set: Buffer, found: Scan) -> None:
        """Take messages of the source in.

        Args:
            message_set: starts on an entry.
            found: what `codec.scan` says of it; only what is good counts.

        Raises:
            InvalidMessageError: the content of a compressed set cannot be read.
        """
        self._add(message_set, found, self.source, 1)

    def add_target(self, message_set: Buffer, found: Scan) -> None:
        """Take messages of the copy in; see `add_source`."""
        self._add(message_set, found, self.target, -1)

    @property
    def missing_count(self) -> int:
        """Return how many messages of the source the copy does not have."""
        return sum(count for count in self._surplus_in_source.values() if count > 0)

    @property
    def surplus_count(self) -> int:
        """Return how many messages the copy has that the source has not, or fewer times."""
        return -sum(count for count in self._surplus_in_source.values() if count < 0)

    def _add(self, message_set: Buffer, found: Scan, digest: Digest, step: int) -> None:
        counts = self._surplus_in_source
        for key in iter_payload_crcs(memoryview(message_set)[: found.valid_bytes]):
            digest.add(*key)
            count = counts.get(key, 0) + step
            if count:
                counts[key] = count
            else:
                del counts[key]
