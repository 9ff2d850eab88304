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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from broker.errors import InvalidMessageError, LogCorruptError
from broker.log import scan
from broker.log.offline import segments
from broker.log.offline.batch_verify import BatchVerification, directory_problems
from broker.log.offline.segment_run import Engine, SegmentProblem, SegmentRun, VerifyReport
from broker.protocol import _codec_python, codec
from broker.protocol.checksum import crc32_crcmod
from broker.protocol.codec import Fault, Scan
from broker.protocol.compression import Codec
from broker.protocol.message import LENGTH_BYTES, MAGIC0_HEADER_BYTES, MIN_ENTRY_BYTES, EntryHeader
from broker.protocol.message_set import Entry, iter_entries
from broker.protocol.primitives import Buffer

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.sharedctypes import Synchronized
    from multiprocessing.synchronize import Event

_BLOCK_BYTES = 4 << 20


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


class Verification(SegmentRun[Scan]):
    """One run over a segment file of 0.7, or a range of it; for one call of a method."""

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

    def _blocks(self, position: int) -> Iterator[scan.ScannedBlock[Scan]]:
        return scan.scan_blocks(
            self._file.fd, position, self._end, block_bytes=_BLOCK_BYTES, scan=_SCANS[self.engine]
        )

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
        header = scan.read_header(self._file.fd, position)
        size = os.fstat(self._file.fd).st_size
        if header is None or not self._end < header.end <= size:
            return False
        self._end = header.end
        return True

    def _record(self, position: int, fault: Fault) -> int:
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
    """Results of all files; `joints` are gaps and overlaps between neighbouring segments.

    With them are the problems of Kafka's files that belong to a directory and no segment.
    """

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
    reports = {one.path: one for one in found if isinstance(one, VerifyReport)}
    unpacked = {path: one.size_bytes for path, one in reports.items() if segments.is_archive(path)}
    for directory in dict.fromkeys(path.parent for path in files):
        with suppress(OSError):  # it was removed meanwhile, as its reports say
            paths = segments.segments_of(directory, archives=True)
            if any(path in reports and reports[path].next_offset is not None for path in paths):
                yield from _problems_of_kafka(directory, [reports.get(path) for path in paths])
                continue
            for earlier, later in itertools.pairwise(paths):
                if earlier not in chosen or later not in chosen:
                    continue
                if not segments.is_archive(earlier):
                    yield from _joint_problem(earlier, earlier.stat().st_size, later)
                elif earlier in unpacked:
                    yield from _joint_problem(earlier, unpacked[earlier], later)


def _problems_of_kafka(
    directory: Path, reports: Sequence[VerifyReport | None]
) -> Iterator[SegmentProblem]:
    """Yield the problems of a partition's directory and between its segments, in their order."""
    # Compaction leaves gaps between segments, and mostly inside of one too. What it has left cannot
    # be told from a log that has lost whole batches.
    is_compacted = _is_cleaned(directory) or any(one and one.is_compacted for one in reports)
    for earlier, later in itertools.pairwise(reports):
        if earlier is None or later is None or earlier.next_offset is None:
            continue
        start, end = segments.archived_base_offset_of(later.path), earlier.next_offset
        has_gap = start is not None and end < start and not is_compacted and not earlier.problems
        if start is not None and (has_gap or end > start):
            kind, expected = "gap" if has_gap else "overlap", f"{later.path.name} to start at {end}"
            place = (str(earlier.path), earlier.size_bytes)
            yield SegmentProblem(*place, kind, expected, str(start), 0, 0, end)
    yield from directory_problems(directory)


def _is_cleaned(directory: Path) -> bool:
    """Return whether Kafka's cleaner, which compacts, has noted how far it is in a partition."""
    topic, _, index = directory.name.rpartition("-")
    with suppress(OSError):
        noted = (directory.resolve().parent / "cleaner-offset-checkpoint").read_bytes()
        return os.fsencode(f"\n{topic} {index} ") in noted
    return False


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
        yield SegmentProblem(str(earlier), size, kind, expected, str(following), 0, skipped, end)


def verify_file(task: FileTask, progress: Callable[[int], None]) -> Outcome:
    """Verify a file, or report that it cannot be read."""
    try:
        if not segments.has_batches(task.path):
            return Verification(*task, progress).run()
        return BatchVerification(*task, progress).run()
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
