"""The format of a log: names of segments, their bytes, and which position an offset has in them.

A log, its recovery and its retention know offsets, and not what an offset counts: every step from
an offset to a position, and back, is a call of a `LogFormat`. `ENTRIES` is the format of Kafka 0.7.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Protocol

from broker.protocol import codec
from broker.protocol.message import Scan
from broker.protocol.primitives import Buffer


class LogFormat(Protocol):
    """What differs between the logs of two formats."""

    def segment_name(self, base_offset: int) -> str:
        """Return the file name of the segment that starts at an offset."""

    def base_offset_of(self, name: str) -> int | None:
        """Return the base offset in the name of a segment's file, None for another name."""

    def files_of(self, segment: Path) -> tuple[Path, ...]:
        """Return all files of the segment whose messages are in a file, that one last."""

    def time_ms(self, status: os.stat_result) -> int:
        """Return when a segment was last appended to, milliseconds since 1970."""

    def scan(self, content: Buffer) -> Scan:
        """Validate what starts at a message, up to the first fault."""

    def place(self, message_set: Buffer, offset: int) -> tuple[Buffer, int]:
        """Return the bytes to write for a set appended at an offset, and the next offset."""

    def position(self, base_offset: int, offset: int) -> int:
        """Return the position of an offset in the segment that starts at `base_offset`."""

    def offset(self, base_offset: int, position: int) -> int:
        """Return the offset of a position; of a segment's size, the offset of the next segment."""


class EntryFormat:
    """Kafka 0.7: entries one after the other in one file, and offsets that count bytes."""

    _NAME = re.compile(r"([0-9]{20})\.pylog", re.ASCII)

    scan = staticmethod(codec.scan)

    def segment_name(self, base_offset: int) -> str:
        """Return 20 digits and `.pylog`."""
        return f"{base_offset:020d}.pylog"  # Kafka 0.7 `Log.nameFromOffset`

    def base_offset_of(self, name: str) -> int | None:
        """Return the base offset in the name of a segment of this broker."""
        found = self._NAME.fullmatch(name)
        return int(found[1]) if found else None

    def files_of(self, segment: Path) -> tuple[Path, ...]:
        """Return the file itself."""
        return (segment,)

    def time_ms(self, status: os.stat_result) -> int:
        """Return when the file was last written to."""
        return status.st_mtime_ns // 1_000_000

    def place(self, message_set: Buffer, offset: int) -> tuple[Buffer, int]:
        """Return the set as it is: entries do not hold their offsets."""
        return message_set, offset + len(message_set)

    def position(self, base_offset: int, offset: int) -> int:
        """Return the bytes between both."""
        return offset - base_offset

    def offset(self, base_offset: int, position: int) -> int:
        """Return the offset so many bytes behind the base."""
        return base_offset + position


ENTRIES = EntryFormat()
segment_name = ENTRIES.segment_name
