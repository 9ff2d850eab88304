"""The rows of `pylogctl audit`, and the documents that show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated

from broker.tools.audit import AuditVerdict, Judgement, Tally
from pylogctl.cli.columns import HIDDEN, Bytes, Document, Fit, Integer, Millis, Rank, Row


class Counted(Row):
    """A time window of a topic at a tier."""

    topic: Annotated[str, "topic that was counted"]
    start: Annotated[Millis, "start of the time window"]
    end: Annotated[Millis, "its end, exclusive", Rank(3)]
    tier: Annotated[str, "tier that counted", Fit.WHOLE]


class CountRow(Row):
    """What a tier counted in a window."""

    window: Counted
    messages: Annotated[Integer, "messages counted"]
    bytes: Annotated[Bytes, "their payloads"]


class VerdictRow(Row):
    """What a tier counted in a window, compared with the reference tier."""

    window: Counted
    expected: Annotated[Integer, "messages at the reference tier", Rank(2)]
    found: Annotated[Integer, "messages at this tier", Rank(1)]
    difference: Annotated[Integer, "messages more than expected; negative for less"]
    expected_bytes: Annotated[Bytes, "payloads at the reference tier", HIDDEN]
    found_bytes: Annotated[Bytes, "payloads at this tier", HIDDEN]
    status: Annotated[str, "ok, missing, late, surplus or open", Fit.STATE]


SHOW = Document("audit.show/1", CountRow, empty="no counts")
CHECK = Document("audit.check/1", VerdictRow, empty="")


def show_rows(tallied: Tally, tiers: Collection[str]) -> Iterator[CountRow]:
    """Yield a row of `SHOW` for each window and tier; of all tiers if `tiers` is empty."""
    for window in sorted(tallied):
        for tier, count in sorted(tallied[window].items()):
            if not tiers or tier in tiers:
                counted = Counted(window.topic, window.start_ms, window.end_ms, tier)
                yield CountRow(counted, count.message_count, count.payload_bytes)


def check_row(verdict: AuditVerdict) -> VerdictRow:
    """Return a row of `CHECK`."""
    window, expected, found = verdict.window, verdict.expected, verdict.found
    return VerdictRow(
        Counted(window.topic, window.start_ms, window.end_ms, verdict.tier),
        expected.message_count,
        found.message_count,
        verdict.difference,
        expected.payload_bytes,
        found.payload_bytes,
        verdict.judgement.value,
    )


def check_summary(verdicts: Sequence[AuditVerdict]) -> str:
    """Return the number of windows of each status as a sentence."""
    counts = Counter(one.judgement for one in verdicts)
    parts = [f"{counts[one]} {one.value}" for one in Judgement if counts[one]]
    plural = "" if len(verdicts) == 1 else "s"
    return f"{len(verdicts)} window{plural} compared: {', '.join(parts) or 'none'}"
