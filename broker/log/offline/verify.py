"""Verifying segment files entry by entry, without a broker: damage inside them and between them.

Owns the definition of damage and how to resume behind it, the worker processes that verify many
files at once, and the comparison of neighbouring segments. Changes nothing. Memory is bounded by a
block, or by an entry if that is larger.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from broker.errors import InvalidMessageError, LogCorruptError
from broker.log import scan
from broker.log.offline import segments
from broker.protocol import _codec_python, codec
from broker.protocol.checksum import crc32_crcmod

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.sharedctypes import Synchronized
    from multiprocessing.synchronize import Event
from broker.protocol.codec import Fault, Scan
from broker.protocol.compression import Codec
from broker.protocol.message import LENGTH_BYTES, MAGIC0_HEADER_BYTES, MIN_ENTRY_BYTES, EntryHeader
from broker.protocol.message_set import Entry, iter_entries
from broker.protocol.primitives import Buffer
from broker.records import HIDDEN, Count, Fit, Rank, Size

Engine = Literal["codec", "zlib", "crcmod"]
"""The CRC routine: the codec's, zlib's with the codec in Python, or crcmod's, independent of both
and much slower."""

_BLOCK_BYTES = 4 << 20


class SegmentProblem(NamedTuple):
    """A damaged place in a segment file, or between two."""

    file: Annotated[str, "segment file"]
    pos: Annotated[Count, "position of the damage"]
    kind: Annotated[
        str, "crc, size, magic, codec, compressed, partial, gap, overlap or archive", Fit.STATE
    ]
    expected: Annotated[str, "what should be there", Fit.WRAP, Rank(1)]
    found: Annotated[str, "what is there", Fit.WRAP]
    bytes_after: Annotated[Size, "bytes from there to the end of the file", Rank(2)]
    skipped_bytes: Annotated[Size, "bytes up to the next valid entry", HIDDEN]


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Result of verifying one file.

    Attributes:
        size_bytes: bytes verified.
        entry_count: good outer entries.
        message_count: good messages; those inside wrappers count singly if they were unfolded.
        problems: in the order of their positions.
        is_complete: False if verification ended early because there were too many problems.
    """

    path: Path
    size_bytes: int
    entry_count: int
    message_count: int
    problems: tuple[SegmentProblem, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class RangeReport:
    """Result of verifying a range of a file.

    Attributes:
        start: of the first entry found in the range; the end of the range if there is none.
        end: of the last entry that starts in the range; may lie in the next one.
        entry_count: good outer entries.
        message_count: good messages.
        is_good: whether there was no problem; if there was, the figures mean nothing.
    """

    start: int
    end: int
    entry_count: int
    message_count: int
    is_good: bool


@dataclass(eq=False)
class Verification:
    """One run over a segment file, or a range of it; for one call of a method.

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
        """Verify every entry of the file."""
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

    def run_range(self, start: int, stop: int) -> RangeReport:
        """Verify the entries that start in a range of the file; its bounds are any positions.

        It ends at the first problem. Unless the range starts at 0, the start of its first entry is
        a guess, as a payload can look like messages. The guess is right if the range before ends
        there.
        """
        size = self._end
        found = scan.find_entry(self._file.fd, start, size, search_end=stop) if start else 0
        start = position = stop if found is None or found > stop else found
        # `_has_grown` then takes an entry that ends behind the range as one still being written.
        self._end = stop
        is_good = True
        while is_good and position < self._end:
            position, fault = self._scan_to_fault(position)
            is_whole = not fault or (fault is Fault.PARTIAL and self._has_grown(position))
            is_good = is_whole and not self._problems
        return RangeReport(start, position, self._entry_count, self._message_count, is_good)

    def _scan_to_fault(self, position: int) -> tuple[int, Fault]:
        """Verify up to the first fault or the end; return its position."""
        fault = Fault.NONE
        fd = self._file.fd
        blocks = scan.scan_blocks(
            fd, position, self._end, block_bytes=_BLOCK_BYTES, scan=_SCANS[self.engine]
        )
        for block in blocks:
            self._count(block)
            position, fault = block.end, block.scan.fault
            self.progress(block.scan.valid_bytes)
            if len(self._problems) >= self.max_problems:
                break
        return position, fault

    def _count(self, block: scan.ScannedBlock[Scan]) -> None:
        self._entry_count += block.scan.entry_count
        self._message_count += block.scan.entry_count
        if not self.deep:
            return
        for position in block.scan.wrappers:
            entry = next(iter_entries(block.data[position:], block.position + position))
            try:
                count, _ = codec.count_unfolded(entry.codec or Codec.NONE, entry.payload)
            except InvalidMessageError as error:
                self._message_count -= 1
                self._add(entry.offset, "compressed", f"{_codec_name(entry)} data", str(error), 0)
            else:
                self._message_count += count - 1

    def _has_grown(self, position: int) -> bool:
        """Return whether the entry cut off by the end has been completed meanwhile."""
        header = scan.read_header(self._file.fd, position)
        size = os.fstat(self._file.fd).st_size
        if header is None or not self._end < header.end <= size:
            return False
        self._end = header.end
        return True

    def _record(self, position: int, fault: Fault) -> int:
        """Record a problem; return where to resume."""
        fd, end = self._file.fd, self._end
        header = scan.read_header(fd, position)
        is_chained = fault in (Fault.CRC, Fault.CODEC, Fault.MAGIC)
        if header and is_chained and scan.looks_like_entry(fd, header.end, end):
            resumed = header.end
        else:
            resumed = scan.find_entry(fd, position + 1, end) or end
        kind, expected, found = self._describe(fault, header, position, is_tail=resumed == end)
        self._add(position, kind, expected, found, resumed - position)
        return resumed

    def _describe(
        self, fault: Fault, header: EntryHeader | None, position: int, *, is_tail: bool
    ) -> tuple[str, str, str]:
        rest = self._end - position
        if header is None:
            return "partial", f"at least {MIN_ENTRY_BYTES} bytes", f"{rest} bytes"
        if fault is Fault.CRC:
            crc = scan.crc_of_range(self._file.fd, header.payload_position, header.end)
            return "crc", f"{header.crc:08x}", f"{crc:08x}"
        if fault is Fault.CODEC:
            return "codec", "a known codec", f"attributes {header.attributes:#04x}"
        if fault is Fault.MAGIC:
            return "magic", "0 or 1", str(header.magic)
        if fault is Fault.PARTIAL and is_tail:
            return "partial", f"{LENGTH_BYTES + header.length} bytes", f"{rest} bytes"
        low = MAGIC0_HEADER_BYTES + header.magic
        return "size", f"{low} to {rest - LENGTH_BYTES}", str(header.length)

    def _add(self, position: int, kind: str, expected: str, found: str, skipped: int) -> None:
        rest = self._end - position
        problem = SegmentProblem(str(self.path), position, kind, expected, found, rest, skipped)
        self._problems.append(problem)


def _codec_name(entry: Entry) -> str:
    return entry.codec.name.lower() if entry.codec is not None else "unknown"


def _scan_with_crcmod(buffer: Buffer) -> Scan:
    """Scan as `codec.scan`, with crcmod."""
    position = count = largest = 0
    wrappers: list[int] = []
    for entry in iter_entries(buffer, 0):
        if entry.codec is None:
            return Scan(position, count, Fault.CODEC, wrappers, largest)
        if crc32_crcmod(entry.payload) != entry.crc:
            return Scan(position, count, Fault.CRC, wrappers, largest)
        if entry.codec:
            wrappers.append(position)
        position = entry.next_offset
        count += 1
        largest = max(largest, len(entry.payload))
    fault = codec.scan(memoryview(buffer)[position:]).fault
    return Scan(position, count, fault, wrappers, largest)


_SCANS: dict[Engine, Callable[[Buffer], Scan]] = {
    "codec": codec.scan,
    "zlib": _codec_python.scan,
    "crcmod": _scan_with_crcmod,
}


_POLL_S = 0.1


class UnreadableFile(NamedTuple):
    """A file that could not be read."""

    path: Path
    reason: str
    is_missing: bool


@dataclass(frozen=True, slots=True)
class VerifySummary:
    """Results of all files; `joints` are gaps and overlaps between neighbouring segments."""

    reports: tuple[VerifyReport, ...]
    joints: tuple[SegmentProblem, ...]
    unreadable: tuple[UnreadableFile, ...]

    @property
    def problems(self) -> list[SegmentProblem]:
        """Return all damage, inside files first."""
        inside = [problem for report in self.reports for problem in report.problems]
        return [*inside, *self.joints]

    @property
    def size_bytes(self) -> int:
        """Return the bytes verified."""
        return sum(report.size_bytes for report in self.reports)

    @property
    def message_count(self) -> int:
        """Return the number of good messages."""
        return sum(report.message_count for report in self.reports)


class FileTask(NamedTuple):
    """The arguments of `Verification` for one file, for a worker process."""

    path: Path
    deep: bool
    max_problems: int
    engine: Engine


Outcome = VerifyReport | UnreadableFile
"""Result for one file."""


def verify_paths(
    paths: Iterable[Path],
    *,
    jobs: int = 1,
    deep: bool = True,
    max_problems: int = 100,
    engine: Engine = "codec",
    progress: Callable[[int], None] = lambda _bytes: None,
) -> VerifySummary:
    """Verify segment files, and that neighbours in a directory neither overlap nor leave gaps.

    Paths as for `expand_paths`, the other arguments as for `Verification`. Uses `jobs` processes,
    1 being this one. `progress` is called on this thread.
    """
    files = segments.expand_paths(paths, archives=True)
    tasks = [FileTask(path, deep, max_problems, engine) for path in files]
    job_count = min(jobs, len(files))
    if job_count > 1:
        outcomes = _verify_parallel(tasks, job_count, progress)
    else:
        outcomes = [verify_file(task, progress) for task in tasks]
    return summary_of(files, outcomes)


def summary_of(files: Sequence[Path], outcomes: Iterable[Outcome]) -> VerifySummary:
    """Summarize the outcomes of files, in the same order, and compare neighbouring segments."""
    found = list(outcomes)
    return VerifySummary(
        reports=tuple(one for one in found if isinstance(one, VerifyReport)),
        joints=tuple(_find_joint_problems(files, found)),
        unreadable=tuple(one for one in found if isinstance(one, UnreadableFile)),
    )


def _find_joint_problems(
    files: Sequence[Path], found: Sequence[Outcome]
) -> Iterator[SegmentProblem]:
    """Yield the gaps and overlaps between segments that are neighbours in a directory."""
    chosen = set(files)
    unpacked = {
        one.path: one.size_bytes
        for one in found
        if isinstance(one, VerifyReport) and segments.is_archive(one.path)
    }
    for directory in dict.fromkeys(path.parent for path in files):
        with suppress(OSError):  # it was removed meanwhile, as its reports say
            for earlier, later in itertools.pairwise(
                segments.segments_of(directory, archives=True)
            ):
                if earlier not in chosen or later not in chosen:
                    continue
                if not segments.is_archive(earlier):
                    yield from _joint_problem(earlier, earlier.stat().st_size, later)
                elif earlier in unpacked:
                    yield from _joint_problem(earlier, unpacked[earlier], later)


def _joint_problem(earlier: Path, size: int, later: Path) -> Iterator[SegmentProblem]:
    start, following = (
        segments.archived_base_offset_of(earlier),
        segments.archived_base_offset_of(later),
    )
    if start is None or following is None:
        return
    end = start + size
    if end != following:
        kind = "gap" if end < following else "overlap"
        expected = f"{later.name} to start at {end}"
        skipped = max(0, following - end)
        yield SegmentProblem(str(earlier), size, kind, expected, str(following), 0, skipped)


def verify_file(task: FileTask, progress: Callable[[int], None]) -> Outcome:
    """Verify a file, or report that it cannot be read."""
    try:
        return Verification(*task, progress).run()
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        return UnreadableFile(task.path, error.strerror or str(error), is_missing)
    except LogCorruptError as error:  # an archive that cannot be unpacked
        size = task.path.stat().st_size
        found = str(error.__cause__).lower()
        problem = SegmentProblem(str(task.path), 0, "archive", "a gzip file", found, size, size)
        return VerifyReport(task.path, 0, 0, 0, (problem,), is_complete=False)


def _verify_parallel(
    tasks: Sequence[FileTask], job_count: int, progress: Callable[[int], None]
) -> list[Outcome]:
    import multiprocessing  # late: it costs the start of every command on logs
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

    # Not fork: the caller may have threads, whose locks a child would inherit in their state.
    context = multiprocessing.get_context("spawn")
    done_bytes: Synchronized[int] = context.Value("Q", 0)
    stopping = context.Event()
    pool = ProcessPoolExecutor(
        job_count, context, initializer=_start_worker, initargs=(done_bytes, stopping)
    )
    reported_bytes = 0
    try:
        futures = [pool.submit(_work, task) for task in tasks]
        waiting: set[Future[Outcome]] = set(futures)
        while waiting:
            _, waiting = wait(waiting, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            now_bytes = done_bytes.value
            progress(now_bytes - reported_bytes)
            reported_bytes = now_bytes
        return [future.result() for future in futures]
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)


class _Stopped(Exception):  # noqa: N818 - ends a worker's task, is not an error
    """The caller wants no more results."""


def _start_worker(done_bytes: Synchronized[int], stopping: Event) -> None:
    """Store the shared state in the worker process."""
    global _shared  # the only way for an executor's initializer to pass state to tasks
    _shared = (done_bytes, stopping)
    # Ctrl-C is handled by the parent, which sets the event.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


_shared: tuple[Synchronized[int], Event] | None = None


def _work(task: FileTask) -> Outcome:
    return verify_file(task, _report_progress)


def _report_progress(size: int) -> None:
    if _shared is None:
        return
    done_bytes, stopping = _shared
    if stopping.is_set():
        raise _Stopped
    with done_bytes.get_lock():
        done_bytes.value += size
