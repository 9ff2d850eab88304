"""Reading on behind damage: where the next message starts, and what can be told of the bad one.

The rest of the range is kept in a temporary file meanwhile, as the search goes back and forth.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker.log.scan import find_entry, looks_like_entry, read_header
from broker.log.segment import SegmentFile
from broker.protocol.codec import Fault
from broker.spark.places import FilePlace, Place, SegmentPiece
from broker.spark.ranges import ByteRange
from broker.spark.sources import read_bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no valid message, from `start` up to the next one that may be.

    `payload` and `crc` are those of a message whose length can be believed, else None.
    """

    fault: Fault
    start: int
    end: int
    payload: bytes | None
    crc: int | None


@contextmanager
def spooled(rest: ByteRange, place: Place, fetch_bytes: int) -> Iterator[Spool]:
    """Keep the rest of a range in a temporary file for as long as the block lasts.

    Args:
        rest: what is left of the range; it starts at damage.
        place: where it is read from.
        fetch_bytes: how much to ask for at a time.
    """
    with tempfile.NamedTemporaryFile(prefix="pylog-damage-") as file:
        for data in read_bytes(place, rest, fetch_bytes):
            file.write(data.data)
        file.flush()
        yield Spool(rest, Path(file.name))


class Spool:
    """The rest of a range in a file.

    Args:
        rest: the range.
        path: the file.
    """

    def __init__(self, rest: ByteRange, path: Path) -> None:
        self._rest = rest
        self._path = path
        self._file = SegmentFile(path)

    @property
    def place(self) -> FilePlace:
        """Return where to read the rest of the range now."""
        return FilePlace((SegmentPiece(self._path, self._rest.start, self._rest.end),))

    def damage_at(self, offset: int, fault: Fault) -> Damage:
        """Return what is wrong at an offset, and where to go on.

        Args:
            offset: where the damage starts.
            fault: what the codec says of it.
        """
        fd = self._file.fd
        position, size = offset - self._rest.start, self._rest.size_bytes
        header = read_header(fd, position)
        is_chained = (
            header is not None
            and header.end <= size
            and (
                fault is Fault.COMPRESSED
                or (fault in (Fault.CRC, Fault.CODEC) and looks_like_entry(fd, header.end, size))
            )
        )
        if header is None or not is_chained:
            resumed = find_entry(fd, position + 1, size) or size
            return Damage(fault, offset, self._rest.start + resumed, None, None)
        payload = os.pread(fd, header.end - header.payload_position, header.payload_position)
        return Damage(fault, offset, self._rest.start + header.end, payload, header.crc)
