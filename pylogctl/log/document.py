"""Columns and records of `pylogctl log`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.render import Column, ColumnKind, Document, render
from pylogctl.cli.units import format_size

if TYPE_CHECKING:
    from broker.log.inspect import RecoveryPlan, SegmentStat
    from broker.log.verify import SegmentProblem, VerifySummary
SEGMENT_NAMES = "segments are called <offset>.pylog or <offset>.kafka, archived ones end in .gz"

DUMP = Document(
    "log.dump/1",
    (
        Column("file", "segment file", shown=False),
        Column("pos", "position in the file", ColumnKind.INTEGER),
        Column("offset", "offset in the log, by the file's name", ColumnKind.INTEGER, shown=False),
        Column("size", "bytes of payload", ColumnKind.INTEGER),
        Column("magic", "version of the message format", ColumnKind.INTEGER),
        Column("codec", "compression of the entry"),
        Column("crc", "CRC-32 of the payload"),
        Column("valid", "whether the entry is undamaged", ColumnKind.BOOLEAN),
        Column("inner", "index inside a compressed entry", ColumnKind.INTEGER),
        Column("payload", "the payload as text"),
        Column("payload_b64", "JSON: the payload if it is not UTF-8, in base64", shown=False),
        Column("payload_hex", "JSON: the payload with --payload hex", shown=False),
    ),
    empty="no messages",
)
VERIFY = Document(
    "log.verify/1",
    (
        Column("file", "segment file"),
        Column("pos", "position of the damage", ColumnKind.INTEGER),
        Column("kind", "crc, size, magic, codec, compressed, partial, gap, overlap or archive"),
        Column("expected", "what should be there"),
        Column("found", "what is there"),
        Column("bytes_after", "bytes from there to the end of the file", ColumnKind.BYTES),
        Column("skipped_bytes", "bytes up to the next valid entry", ColumnKind.BYTES, shown=False),
    ),
    empty="",
)
COMPARE = Document(
    "log.compare/1",
    (
        Column("log", "the partition"),
        Column(
            "result", "same, differ, damaged, or none if no two copies have an offset in common"
        ),
        Column("start", "first offset that two copies have", ColumnKind.INTEGER, shown=False),
        Column("end", "end of what two copies have committed", ColumnKind.INTEGER, shown=False),
        Column("bytes", "bytes that were compared", ColumnKind.BYTES),
        Column("copies", "ids of the brokers, or paths"),
        Column("offset", "of the first byte that differs", ColumnKind.INTEGER),
        Column("groups", "copies that are equal there, and those that are not"),
        Column("segments", "files with that byte, by copy", shown=False),
    ),
    empty="nothing to compare",
)
MOVE = Document(
    "log.move/1",
    (
        Column("topic", "topic"),
        Column("partition", "partition, HOME-INDEX"),
        Column("broker", "the broker that has the log", ColumnKind.INTEGER),
        Column("directory", "its data directory now"),
        Column("bytes", "what was copied", ColumnKind.BYTES),
        Column("seconds", "how long it took", ColumnKind.SECONDS),
    ),
    empty="",
)
STAT = Document(
    "log.stat/1",
    (
        Column("file", "segment file"),
        Column("bytes", "size of the file", ColumnKind.BYTES),
        Column("entries", "outer entries", ColumnKind.INTEGER),
        Column("messages", "messages, unfolded", ColumnKind.INTEGER),
        Column("min", "smallest payload", ColumnKind.BYTES),
        Column("avg", "mean payload", ColumnKind.BYTES),
        Column("max", "largest payload", ColumnKind.BYTES),
        Column("codecs", "entries by codec"),
        Column("ratio", "bytes of payload for a compressed byte", ColumnKind.NUMBER),
        Column("fault", "why the valid part ends"),
        Column("magics", "entries by version of the format", shown=False),
        Column("sizes", "messages by payload size, below each power of two", shown=False),
        Column("payload_bytes", "bytes of all payloads", ColumnKind.BYTES, shown=False),
        Column("valid_bytes", "size of the valid part", ColumnKind.BYTES, shown=False),
    ),
    empty="no files",
)
RECOVER = Document(
    "log.recover/1",
    (
        Column("file", "segment file"),
        Column("bytes", "size of the file before", ColumnKind.BYTES),
        Column("cut_at", "position to cut at", ColumnKind.INTEGER),
        Column("cut_bytes", "bytes that are cut", ColumnKind.BYTES),
        Column("fault", "what is wrong there"),
        Column("messages_kept", "valid entries before it", ColumnKind.INTEGER),
        Column("later_segments", "segments after the cut, to be moved away"),
        Column("backup", "where the cut bytes went"),
        Column("done", "whether it was cut", ColumnKind.BOOLEAN),
    ),
    empty="nothing to recover",
)


def with_file_column(document: Document) -> Document:
    """Return a document that shows the file of each record."""
    columns = tuple(c._replace(shown=c.shown or c.name == "file") for c in document.columns)
    return document._replace(columns=columns)


def _problem_record(problem: SegmentProblem) -> dict[str, Any]:
    return {
        "file": str(problem.file),
        "pos": problem.position,
        "kind": problem.kind,
        "expected": problem.expected,
        "found": problem.found,
        "bytes_after": problem.bytes_after,
        "skipped_bytes": problem.skipped_bytes,
    }


def _summary_line(summary: VerifySummary, elapsed_s: float) -> str:
    files, problems = len(summary.reports), len(summary.problems)
    messages, size = summary.message_count, summary.size_bytes
    return (
        f"{files} file{'' if files == 1 else 's'}, {format_size(size)}, "
        f"{messages:,} message{'' if messages == 1 else 's'}, "
        f"{problems} problem{'' if problems == 1 else 's'}, "
        f"{format_size(size / max(elapsed_s, 1e-9))}/s"
    )


def stat_record(one: SegmentStat) -> dict[str, Any]:
    """Return the record of a file's statistics."""
    ratio = one.compression_ratio
    return {
        "file": str(one.path),
        "bytes": one.size_bytes,
        "entries": one.entry_count,
        "messages": one.message_count,
        "min": one.min_payload_bytes,
        "avg": round(one.average_payload_bytes, 1),
        "max": one.max_payload_bytes,
        "codecs": dict(one.codec_counts),
        "ratio": None if ratio is None else round(ratio, 3),
        "fault": one.fault.name.lower() if one.fault else None,
        "magics": dict(one.magic_counts),
        "sizes": {str(size): count for size, count in one.payload_size_counts.items()},
        "payload_bytes": one.payload_bytes,
        "valid_bytes": one.valid_bytes,
    }


def plan_record(plan: RecoveryPlan, *, done: bool) -> dict[str, Any]:
    """Return the record of a recovery, planned or done."""
    return {
        "file": str(plan.path),
        "bytes": plan.size_bytes,
        "cut_at": plan.valid_end,
        "cut_bytes": plan.cut_bytes,
        "fault": plan.fault.name.lower(),
        "messages_kept": plan.entry_count,
        "later_segments": [path.name for path in plan.later_segments],
        "backup": None if plan.side_file is None else str(plan.side_file),
        "done": done,
    }


def report_verification(env: Environment, summary: VerifySummary, elapsed_s: float) -> ExitStatus:
    """Write the problems and totals of a verification; return the exit status."""
    if not summary.reports and not summary.unreadable:
        raise CliError(ExitStatus.NOT_FOUND, "no segment files to verify", hints=[SEGMENT_NAMES])
    render(env, VERIFY, [_problem_record(problem) for problem in summary.problems])
    env.flush()
    for unreadable in summary.unreadable:
        env.error(f"'{unreadable.path}': {unreadable.reason.lower()}")
    env.note(_summary_line(summary, elapsed_s))
    if summary.problems:
        return ExitStatus.CORRUPT
    if not summary.unreadable:
        return ExitStatus.OK
    if summary.reports:
        return ExitStatus.PARTIAL
    all_missing = all(unreadable.is_missing for unreadable in summary.unreadable)
    return ExitStatus.NOT_FOUND if all_missing else ExitStatus.FAILED
