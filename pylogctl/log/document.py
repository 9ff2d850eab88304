"""The rows of `pylogctl log`, and the documents that show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from broker.log.offline.segments import base_offset_of
from broker.units import format_size
from pylogctl.cli.columns import (
    HIDDEN,
    UNKNOWN,
    Bytes,
    ColumnKind,
    Document,
    Fit,
    Flag,
    Integer,
    Number,
    Rank,
    Row,
    Seconds,
    Text,
    if_known,
)
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.render import render

if TYPE_CHECKING:
    from pathlib import Path

    from broker.log.offline.inspect import RecoveryPlan, SegmentStat
    from broker.log.offline.rewrite import LeftOut
    from broker.log.offline.verify import SegmentProblem, VerifySummary
SEGMENT_NAMES = "segments are called <offset>.pylog or <offset>.kafka, archived ones end in .gz"


class DumpRow(Row):
    """A message in a segment file."""

    file: Annotated[Text, "segment file", HIDDEN]
    pos: Annotated[Integer, "position in the file"]
    offset: Annotated[Integer, "offset in the log, by the file's name", HIDDEN]
    size: Annotated[Bytes, "bytes of payload"]
    magic: Annotated[Integer, "version of the message format", Rank(3)]
    codec: Annotated[Text, "compression of the entry", Fit.WHOLE, Rank(1)]
    crc: Annotated[Text, "CRC-32 of the payload", Fit.WHOLE, Rank(2)]
    valid: Annotated[Flag, "whether the entry is undamaged"]
    inner: Annotated[Integer, "index inside a compressed entry"]
    payload: Annotated[Text, "the payload as text"] = None
    payload_b64: Annotated[Text, "JSON: the payload if it is not UTF-8, in base64", HIDDEN] = None
    payload_hex: Annotated[Text, "JSON: the payload with --payload hex", HIDDEN] = None


class ProblemRow(Row):
    """A damaged place in a segment file."""

    file: Annotated[Text, "segment file"]
    pos: Annotated[Integer, "position of the damage"]
    kind: Annotated[
        Text, "crc, size, magic, codec, compressed, partial, gap, overlap or archive", Fit.STATE
    ]
    expected: Annotated[Text, "what should be there", Fit.WRAP, Rank(1)]
    found: Annotated[Text, "what is there", Fit.WRAP]
    bytes_after: Annotated[Bytes, "bytes from there to the end of the file", Rank(2)]
    skipped_bytes: Annotated[Bytes, "bytes up to the next valid entry", HIDDEN]


class CompareRow(Row):
    """The comparison of the copies of a log."""

    log: Annotated[Text, "the partition"]
    result: Annotated[
        Text, "same, differ, damaged, or none if no two copies have an offset in common", Fit.STATE
    ]
    start: Annotated[Integer, "first offset that two copies have", HIDDEN]
    end: Annotated[Integer, "end of what two copies have committed", HIDDEN]
    bytes: Annotated[Bytes, "bytes that were compared", Rank(2)]
    copies: Annotated[Sequence[str], "ids of the brokers, or paths", Fit.WRAP, Rank(1)]
    offset: Annotated[Integer, "of the first byte that differs"]
    groups: Annotated[Text, "copies that are equal there, and those that are not", Fit.WRAP]
    segments: Annotated[dict[str, str] | None, "files with that byte, by copy", Fit.WRAP, HIDDEN]


class MoveRow(Row):
    """A log that was moved to another directory."""

    topic: Annotated[Text, "topic"]
    partition: Annotated[Text, "partition, HOME-INDEX", Fit.WHOLE]
    broker: Annotated[Integer, "the broker that has the log"]
    directory: Annotated[Text, "its data directory now"]
    bytes: Annotated[Bytes, "what was copied"]
    seconds: Annotated[Seconds, "how long it took", Rank(2)]


class StatRow(Row):
    """Statistics of a segment file."""

    file: Annotated[Text, "segment file"]
    bytes: Annotated[Bytes, "size of the file, of an archive unpacked"]
    entries: Annotated[Integer, "outer entries", Rank(2)]
    messages: Annotated[Integer, "messages, unfolded"]
    min: Annotated[Bytes, "smallest payload", Rank(3)]
    avg: Annotated[float | None, ColumnKind.BYTES, "mean payload", Rank(3)]
    max: Annotated[Bytes, "largest payload", Rank(3)]
    codecs: Annotated[dict[str, int], "entries by codec", Fit.WRAP, Rank(1)]
    ratio: Annotated[Number, "bytes of payload for a compressed byte", Rank(2)]
    fault: Annotated[Text, "why the valid part ends", Fit.STATE]
    magics: Annotated[dict[int, int], "entries by version of the format", Fit.WRAP, HIDDEN]
    sizes: Annotated[
        dict[str, int], "messages by payload size, below each power of two", Fit.WRAP, HIDDEN
    ]
    payload_bytes: Annotated[Bytes, "bytes of all payloads", HIDDEN]
    valid_bytes: Annotated[Bytes, "size of the valid part", HIDDEN]


class RecoverRow(Row):
    """A segment file that is, or would be, cut."""

    file: Annotated[Text, "segment file"]
    bytes: Annotated[Bytes, "size of the file before", Rank(2)]
    cut_at: Annotated[Integer, "position to cut at"]
    cut_bytes: Annotated[Bytes, "bytes that are cut"]
    fault: Annotated[Text, "what is wrong there", Fit.STATE]
    messages_kept: Annotated[Integer, "valid entries before it", Rank(1)]
    later_segments: Annotated[
        list[str], "segments after the cut, to be moved away", Fit.WRAP, Rank(1)
    ]
    backup: Annotated[Text, "where the cut bytes went", Rank(2)]
    done: Annotated[Flag, "whether it was cut"]


class IndexRow(Row):
    """The place of an entry in a segment file."""

    file: Annotated[Text, "segment file", HIDDEN]
    pos: Annotated[Integer, "position in the file"]
    offset: Annotated[Integer, "offset in the log, by the file's name"]
    bytes: Annotated[Bytes, "size of the entry"]


class RepairRow(Row):
    """A damaged span of a segment file that a repaired copy leaves out."""

    file: Annotated[Text, "segment file", HIDDEN]
    pos: Annotated[Integer, "position of the damage"]
    kind: Annotated[Text, "crc, size, magic, codec, compressed, or partial", Fit.STATE]
    left_out_bytes: Annotated[Bytes, "bytes that the copy does not have"]


class SegmentRow(Row):
    """A segment file that was written."""

    file: Annotated[Text, "segment file"]
    start: Annotated[Integer, "its first offset"]
    end: Annotated[Integer, "the offset behind its last message"]


class ReplayRow(Row):
    """What was sent of a segment file."""

    file: Annotated[Text, "segment file"]
    target: Annotated[Text, "topic and partition written to"]
    start: Annotated[Integer, "offset in the file where the replay starts", Rank(2)]
    next_offset: Annotated[Integer, "offset in the file after what is confirmed"]
    messages: Annotated[Integer, "messages confirmed in the target"]
    bytes: Annotated[Bytes, "what they take in its log", Rank(1)]


DUMP = Document("log.dump/1", DumpRow, empty="no messages")
VERIFY = Document("log.verify/1", ProblemRow, empty="")
COMPARE = Document("log.compare/1", CompareRow, empty="nothing to compare")
MOVE = Document("log.move/1", MoveRow, empty="")
STAT = Document("log.stat/1", StatRow, empty="no files")
RECOVER = Document("log.recover/1", RecoverRow, empty="nothing to recover")
INDEX = Document("log.index/1", IndexRow, empty="no messages")
REPAIR = Document("log.repair/1", RepairRow, empty="nothing is damaged")
REPLAY = Document("log.replay/1", ReplayRow, empty="no files")
SEGMENTS = Document("log.segments/1", SegmentRow, empty="")


def _problem_row(one: SegmentProblem) -> ProblemRow:
    return ProblemRow(
        str(one.file),
        one.position,
        one.kind,
        one.expected,
        one.found,
        one.bytes_after,
        one.skipped_bytes,
    )


def _summary_line(summary: VerifySummary, elapsed_s: float) -> str:
    files, problems = len(summary.reports), len(summary.problems)
    messages, size = summary.message_count, summary.size_bytes
    return (
        f"{files} file{'' if files == 1 else 's'}, {format_size(size)}, "
        f"{messages:,} message{'' if messages == 1 else 's'}, "
        f"{problems} problem{'' if problems == 1 else 's'}, "
        f"{format_size(size / max(elapsed_s, 1e-9))}/s"
    )


def damaged_archive_row(path: Path) -> StatRow:
    """Return the row of an archive that cannot be unpacked."""
    numbers = dict.fromkeys(StatRow._fields, UNKNOWN)
    counts: dict[str, Any] = {"codecs": {}, "magics": {}, "sizes": {}}
    return StatRow(**{**numbers, **counts, "file": str(path), "fault": "archive"})


def stat_row(one: SegmentStat) -> StatRow:
    """Return the row of a file's statistics."""
    ratio, average = one.compression_ratio, one.average_payload_bytes
    return StatRow(
        file=str(one.path),
        bytes=one.size_bytes,
        entries=one.entry_count,
        messages=one.message_count,
        min=if_known(one.min_payload_bytes),
        avg=if_known(None if average is None else round(average, 1)),
        max=if_known(one.max_payload_bytes),
        codecs=dict(one.codec_counts),
        ratio=None if ratio is None else round(ratio, 3),
        fault=one.fault.name.lower() if one.fault else None,
        magics=dict(one.magic_counts),
        sizes={str(size): count for size, count in one.payload_size_counts.items()},
        payload_bytes=one.payload_bytes,
        valid_bytes=one.valid_bytes,
    )


def recover_row(plan: RecoveryPlan, *, done: bool) -> RecoverRow:
    """Return the row of a recovery, planned or done."""
    return RecoverRow(
        str(plan.path),
        plan.size_bytes,
        plan.valid_end,
        plan.cut_bytes,
        plan.fault.name.lower(),
        plan.entry_count,
        [path.name for path in plan.later_segments],
        None if plan.side_file is None else str(plan.side_file),
        done,
    )


def repair_row(one: LeftOut) -> RepairRow:
    """Return the row of a span that is left out."""
    problem = one.problem
    return RepairRow(str(problem.file), problem.position, problem.kind, one.end - problem.position)


def segment_row(path: Path) -> SegmentRow:
    """Return the row of a segment that was written."""
    start = base_offset_of(path) or 0
    return SegmentRow(str(path), start, start + path.stat().st_size)


def report_verification(env: Environment, summary: VerifySummary, elapsed_s: float) -> ExitStatus:
    """Write the problems and totals of a verification; return the exit status."""
    if not summary.reports and not summary.unreadable:
        raise CliError(ExitStatus.NOT_FOUND, "no segment files to verify", SEGMENT_NAMES)
    render(env, VERIFY, [_problem_row(one) for one in summary.problems])
    env.flush()
    for unreadable in summary.unreadable:
        env.error(f"'{unreadable.path}': {unreadable.reason.lower()}")
    if summary.reports:
        env.note(_summary_line(summary, elapsed_s))
    if summary.problems:
        return ExitStatus.CORRUPT
    if not summary.unreadable:
        return ExitStatus.OK
    if summary.reports:
        return ExitStatus.PARTIAL
    all_missing = all(unreadable.is_missing for unreadable in summary.unreadable)
    return ExitStatus.NOT_FOUND if all_missing else ExitStatus.FAILED
