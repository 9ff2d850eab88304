"""The documents of `pylogctl audit`: columns, and the records that fill them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from broker.tools.audit import AuditVerdict, Judgement, Tally
from pylogctl.cli.render import Column, ColumnKind, Document, Record

_WINDOW = (
    Column("topic", "topic that was counted"),
    Column("start", "start of the time window", ColumnKind.TIME),
    Column("end", "its end, exclusive", ColumnKind.TIME),
    Column("tier", "tier that counted"),
)
SHOW = Document(
    "audit.show/1",
    (
        *_WINDOW,
        Column("messages", "messages counted", ColumnKind.INTEGER),
        Column("bytes", "their payloads", ColumnKind.BYTES),
    ),
    empty="no counts",
)
CHECK = Document(
    "audit.check/1",
    (
        *_WINDOW,
        Column("expected", "messages at the reference tier", ColumnKind.INTEGER),
        Column("found", "messages at this tier", ColumnKind.INTEGER),
        Column("difference", "messages more than expected; negative for less", ColumnKind.INTEGER),
        Column("expected_bytes", "payloads at the reference tier", ColumnKind.BYTES, shown=False),
        Column("found_bytes", "payloads at this tier", ColumnKind.BYTES, shown=False),
        Column("status", "ok, missing, late, surplus or open"),
    ),
    empty="",
)


def show_records(tallied: Tally, tiers: Collection[str]) -> Iterator[Record]:
    """Yield a row of `SHOW` for each window and tier; of all tiers if `tiers` is empty."""
    for window in sorted(tallied):
        for tier, count in sorted(tallied[window].items()):
            if not tiers or tier in tiers:
                yield {
                    "topic": window.topic,
                    "start": window.start_ms,
                    "end": window.end_ms,
                    "tier": tier,
                    "messages": count.message_count,
                    "bytes": count.payload_bytes,
                }


def check_record(verdict: AuditVerdict) -> Record:
    """Return a row of `CHECK`."""
    return {
        "topic": verdict.window.topic,
        "start": verdict.window.start_ms,
        "end": verdict.window.end_ms,
        "tier": verdict.tier,
        "expected": verdict.expected.message_count,
        "found": verdict.found.message_count,
        "difference": verdict.difference,
        "expected_bytes": verdict.expected.payload_bytes,
        "found_bytes": verdict.found.payload_bytes,
        "status": verdict.judgement.value,
    }


def check_summary(verdicts: Sequence[AuditVerdict]) -> str:
    """Return the number of windows of each status as a sentence."""
    counts = Counter(one.judgement for one in verdicts)
    parts = [f"{counts[one]} {one.value}" for one in Judgement if counts[one]]
    plural = "" if len(verdicts) == 1 else "s"
    return f"{len(verdicts)} window{plural} compared: {', '.join(parts) or 'none'}"
