"""What verifying a segment file reports, and the run over it that both formats have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Generic, Literal, NamedTuple

from broker.log import scan
from broker.log.offline import segments
from broker.log.scan import S
from broker.protocol.codec import Fault
from broker.records import HIDDEN, RARE, Count, Fit, Integer, Rank, Size

Engine = Literal["codec", "zlib", "crcmod"]
"""The CRC routine: the codec's, zlib's with the codec in Python, or crcmod's, independent of both
and much slower."""


class SegmentProblem(NamedTuple):
    """A damaged place in a segment file, or between two."""

    file: Annotated[str, "segment file, or one beside it"]
    pos: Annotated[Count, "position of the damage"]
    kind: Annotated[
        str,
        "crc, size, magic, codec, compressed, partial, gap, overlap, archive; of Kafka also offset,"
        " records, time, epoch, attributes, or the kind of a file beside the segment",
        Fit.STATE,
    ]
    expected: Annotated[str, "what should be there", Fit.WRAP, Rank(1)]
    found: Annotated[str, "what is there", Fit.WRAP]
    bytes_after: Annotated[Size, "bytes from there to the end of the file", Rank(2)]
    skipped_bytes: Annotated[Size, "bytes up to the next valid entry", HIDDEN]
    offset: Annotated[Integer, "first offset that is missing or damaged", RARE] = None


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Result of verifying one file.

    Attributes:
        size_bytes: bytes verified.
        entry_count: good outer entries.
        message_count: good messages; those inside wrappers count singly if they were unfolded.
        problems: in the order of their positions.
        is_complete: False if verification ended early because there were too many problems.
        next_offset: of Kafka's segments, the offset behind the last good batch.
        is_compacted: whether a segment of Kafka lacks offsets, as compaction leaves it.
    """

    path: Path
    size_bytes: int
    entry_count: int
    message_count: int
    problems: tuple[SegmentProblem, ...]
    is_complete: bool
    next_offset: int | None = None
    is_compacted: bool = False


@dataclass(eq=False)
class SegmentRun(Generic[S]):
    """One run over a segment file of either format; for one call of a method.

    Args:
        path: the file, which may be growing.
        deep: unfold wrappers and verify their content, too.
        max_problems: after which it ends, at least 1.
        progress: called repeatedly with the bytes verified since the last call.
    """

    path: Path
    deep: bool = True
    max_problems: int = 100
    engine: Engine = "codec"
    progress: Callable[[int], None] = lambda _bytes: None
    _entry_count: int = field(default=0, init=False)
    _message_count: int = field(default=0, init=False)
    _problems: list[SegmentProblem] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._file = segments.open_segment(self.path)
        self._end = os.fstat(self._file.fd).st_size

    def run(self) -> VerifyReport:
        """Verify every entry or batch of the file."""
        position = 0
        while position < self._end and len(self._problems) < self.max_problems:
            bad_position, fault = self._scan_to_fault(position)
            if not fault or (fault is Fault.PARTIAL and self._has_grown(bad_position)):
                position = bad_position
            else:
                position = self._record(bad_position, fault)
                self.progress(position - bad_position)
        return VerifyReport(
            path=self.path,
            size_bytes=self._end,
            entry_count=self._entry_count,
            message_count=self._message_count,
            problems=tuple(self._problems),
            is_complete=position >= self._end,
        )

    def _scan_to_fault(self, position: int) -> tuple[int, Fault]:
        """Verify up to the first fault or the end; return its position."""
        start, fault = position, Fault.NONE
        for block in self._blocks(start):
            self._count(block)
            position, fault = block.end, block.scan.fault
            self.progress(block.scan.valid_bytes)
            if len(self._problems) >= self.max_problems:
                break
        if position == start and not fault:  # the file has become shorter
            self._end = position
        return position, fault

    def _blocks(self, position: int) -> Iterator[scan.ScannedBlock[S]]:
        """Scan the file from a position on."""
        raise NotImplementedError

    def _count(self, block: scan.ScannedBlock[S]) -> None:
        """Count what a block has, and validate what its scan did not."""
        raise NotImplementedError

    def _has_grown(self, position: int) -> bool:
        """Return whether the entry cut off by the end has been completed meanwhile."""
        raise NotImplementedError

    def _record(self, position: int, fault: Fault) -> int:
        """Record a problem; return where to resume."""
        raise NotImplementedError

    def _add(self, position: int, kind: str, expected: str, found: str, skipped: int) -> None:
        rest = self._end - position
        offset = self._offset_at(position)
        problem = SegmentProblem(
            str(self.path), position, kind, expected, found, rest, skipped, offset
        )
        self._problems.append(problem)

    def _offset_at(self, position: int) -> int | None:
        """Return the offset of what is damaged at a position, if the file's name tells."""
        base = segments.archived_base_offset_of(self.path)
        return None if base is None else base + position
