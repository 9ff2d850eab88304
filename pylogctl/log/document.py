"""The rows of `pylogctl log`, and the documents that show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from broker.log.offline.inspect import SegmentStat
from broker.log.offline.recover import RecoveryPlan
from broker.log.offline.rewrite import LeftOut
from broker.log.offline.segment_run import SegmentProblem
from broker.log.offline.segments import base_offset_of
from broker.log.offline.verify import VerifySummary
from broker.records import HIDDEN, Bytes, Fit, Flag, Integer, Millis, Rank, Seconds, Text
from broker.units import format_size
from pylogctl.cli.columns import UNKNOWN, Document, Row
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.render import render

SEGMENT_NAMES = "segments are called <offset>.pylog, .kafka or .log, archived ones end in .gz"


class DumpRow(Row):
    """A message in a segment file: one of 0.7, or a record of Kafka, which has more columns."""

    file: Annotated[Text, "segment file", HIDDEN]
    pos: Annotated[Integer, "position of the entry or batch in the file"]
    offset: Annotated[Integer, "offset in the log, of 0.7 by the file's name", HIDDEN]
    size: Annotated[Bytes, "bytes of payload, or of a batch shown whole"]
    magic: Annotated[Integer, "version of the message format", Rank(3)]
    codec: Annotated[Text, "compression of the entry or batch", Fit.WHOLE, Rank(1)]
    crc: Annotated[Text, "CRC-32 of the payload; CRC of Kafka's batch", Fit.WHOLE, Rank(2)]
    valid: Annotated[Flag, "whether the entry or batch is undamaged"]
    inner: Annotated[Integer, "index inside a compressed entry or a batch"]
    payload: Annotated[Text, "the payload as text"] = None
    payload_b64: Annotated[Text, "JSON: the payload if it is not UTF-8, in base64", HIDDEN] = None
    payload_hex: Annotated[Text, "JSON: the payload with --payload hex", HIDDEN] = None
    timestamp: Annotated[Millis, "time of the record, of a batch the latest", HIDDEN] = None
    key: Annotated[Text, "the key as text", HIDDEN] = None
    key_b64: Annotated[Text, "JSON: the key if it is not UTF-8, in base64", HIDDEN] = None
    key_hex: Annotated[Text, "JSON: the key with --payload hex", HIDDEN] = None
    headers: Annotated[
        Sequence[dict[str, str | None]] | None,
        "headers, name=value; JSON: key, and value, value_b64 or value_hex",
        HIDDEN,
        Rank(1),
    ] = None
    control: Annotated[
        Text, "what a mark of the broker means: commit, abort", Fit.WHOLE, HIDDEN
    ] = None
    transactional: Annotated[Flag, "whether it is part of a transaction", HIDDEN] = None
    producer_id: Annotated[Integer, "id of an idempotent producer", HIDDEN] = None
    producer_epoch: Annotated[Integer, "its epoch", HIDDEN] = None
    sequence: Annotated[Integer, "its number of the record, of a batch the first", HIDDEN] = None
    leader_epoch: Annotated[Integer, "epoch of the leader that appended it", HIDDEN] = None
    last_offset: Annotated[Integer, "last offset of a batch shown whole", HIDDEN] = None
    records: Annotated[Integer, "records in a batch shown whole", HIDDEN] = None


_OF_RECORDS = ("offset", "timestamp", "key", "payload", "headers", "control", "codec", "valid")
_OF_BATCHES = (
    "offset", "last_offset", "records", "timestamp", "size", "codec", "control", "valid", "pos",
)  # fmt: skip


def dump_of_records(*, shallow: bool = False) -> Document:
    """Return the document of a dump of Kafka's files, with the columns that those have first."""
    by_name = {one.name: one for one in DUMP.columns}
    names = _OF_BATCHES if shallow else _OF_RECORDS
    shown = [by_name.pop(name)._replace(shown=True) for name in names]
    return DUMP._replace(layout=(*shown, *(one._replace(shown=False) for one in by_name.values())))


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


class IndexRow(Row):
    """The place of an entry or batch in a segment file."""

    file: Annotated[Text, "segment file", HIDDEN]
    pos: Annotated[Integer, "position in the file"]
    offset: Annotated[Integer, "its first offset in the log, of 0.7 by the file's name"]
    bytes: Annotated[Bytes, "size of the entry or batch"]


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
VERIFY = Document("log.verify/1", SegmentProblem, empty="")
COMPARE = Document("log.compare/1", CompareRow, empty="nothing to compare")
MOVE = Document("log.move/1", MoveRow, empty="")
STAT = Document("log.stat/1", SegmentStat, empty="no files")
RECOVER = Document("log.recover/1", RecoveryPlan, empty="nothing to recover")
INDEX = Document("log.index/1", IndexRow, empty="no messages")
REPAIR = Document("log.repair/1", LeftOut, empty="nothing is damaged")
REPLAY = Document("log.replay/1", ReplayRow, empty="no files")
SEGMENTS = Document("log.segments/1", SegmentRow, empty="")


def _summary_line(summary: VerifySummary, elapsed_s: float) -> str:
    files, problems = len(summary.reports), len(summary.problems)
    messages, size = summary.message_count, summary.size_bytes
    return (
        f"{files} file{'' if files == 1 else 's'}, {format_size(size)}, "
        f"{messages:,} message{'' if messages == 1 else 's'}, "
        f"{problems} problem{'' if problems == 1 else 's'}, "
        f"{format_size(size / max(elapsed_s, 1e-9))}/s"
    )


def damaged_archive(path: Path) -> SegmentStat:
    """Return the figures of an archive that cannot be unpacked."""
    numbers = dict.fromkeys(SegmentStat._fields, UNKNOWN)
    counts: dict[str, Any] = {"codecs": {}, "magics": {}, "sizes": {}}
    return SegmentStat(**{**numbers, **counts, "file": str(path), "fault": "archive"})


def segment_row(path: Path) -> SegmentRow:
    """Return the row of a segment that was written."""
    start = base_offset_of(path) or 0
    return SegmentRow(str(path), start, start + path.stat().st_size)


def report_verification(env: Environment, summary: VerifySummary, elapsed_s: float) -> ExitStatus:
    """Write the problems and totals of a verification; return the exit status."""
    if not summary.reports and not summary.unreadable:
        raise CliError(ExitStatus.NOT_FOUND, "no segment files to verify", SEGMENT_NAMES)
    render(env, VERIFY, summary.problems)
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
