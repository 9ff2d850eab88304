"""Compares what the tiers of an audit have counted: pure functions over events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from broker.client.audit import AuditEvent


class Window(NamedTuple):
    """What is compared: a topic in a time window, in milliseconds since 1970, end exclusive."""

    topic: str
    start_ms: int
    end_ms: int


class Count(NamedTuple):
    """A number of messages and the bytes of their payloads."""

    message_count: int = 0
    payload_bytes: int = 0


Tally = Mapping[Window, Mapping[str, Count]]
"""What each tier has counted in each window."""


class Judgement(Enum):
    """What is to be said of a window at one tier."""

    OK = "ok"
    MISSING = "missing"
    """Fewer messages than at the reference, though later windows have been reported."""
    LATE = "late"
    """Fewer messages than at the reference, and nothing reported of any later window: they may
    still be on their way."""
    SURPLUS = "surplus"
    """More messages than at the reference: duplicates, or a producer that does not count."""
    OPEN = "open"
    """The window, or the time allowed after it, is not over."""


class Verdict(NamedTuple):
    """A window at one tier, compared with the reference tier.

    `difference` is what the tier has more than the reference, negative for less.
    """

    window: Window
    tier: str
    expected: Count
    found: Count
    judgement: Judgement

    @property
    def difference(self) -> int:
        """Return how many messages the tier has more than the reference."""
        return self.found.message_count - self.expected.message_count


def tally(events: Iterable[AuditEvent]) -> dict[Window, dict[str, Count]]:
    """Add up events by window and tier, each event once however often it comes.

    Args:
        events: in any order.
    """
    seen: set[tuple[str, int]] = set()
    sums: dict[Window, dict[str, Count]] = {}
    for event in events:
        key = (event.source_id, event.sequence)
        if key in seen:
            continue
        seen.add(key)
        tiers = sums.setdefault(Window(event.topic, event.start_ms, event.end_ms), {})
        before = tiers.get(event.tier, Count())
        tiers[event.tier] = Count(
            before.message_count + event.message_count, before.payload_bytes + event.payload_bytes
        )
    return sums


def compare(
    tallied: Tally,
    reference: str,
    tiers: Collection[str],
    *,
    now_ms: int,
    grace_ms: int,
    complete: Collection[str] = (),
) -> list[Verdict]:
    """Compare tiers with the reference tier, window by window.

    Args:
        tallied: what was counted.
        reference: the tier whose counts are expected everywhere.
        tiers: the others.
        now_ms: the present moment, in milliseconds since 1970.
        grace_ms: how long after its end a window may still be reported.
        complete: tiers that have counted all there is: they miss what others would be late with.

    Returns:
        A verdict for each window and tier, by topic, time and tier.
    """
    last_start = _last_start(tallied)
    verdicts = []
    for window in sorted(tallied):
        counts = tallied[window]
        expected = counts.get(reference, Count())
        for tier in sorted(set(tiers) - {reference}):
            found = counts.get(tier, Count())
            is_open = now_ms < window.end_ms + grace_ms
            is_last = last_start.get((window.topic, tier), -1) <= window.start_ms
            may_follow = is_last and tier not in complete
            judgement = _judge(expected, found, is_open=is_open, may_follow=may_follow)
            verdicts.append(Verdict(window, tier, expected, found, judgement))
    return verdicts


def _last_start(tallied: Tally) -> dict[tuple[str, str], int]:
    """Return the start of the last window that each tier reported of each topic."""
    last: dict[tuple[str, str], int] = {}
    for window, counts in tallied.items():
        for tier in counts:
            key = (window.topic, tier)
            last[key] = max(last.get(key, -1), window.start_ms)
    return last


def _judge(expected: Count, found: Count, *, is_open: bool, may_follow: bool) -> Judgement:
    if is_open:
        return Judgement.OPEN
    if found.message_count == expected.message_count:
        return Judgement.OK
    if found.message_count > expected.message_count:
        return Judgement.SURPLUS
    return Judgement.LATE if may_follow else Judgement.MISSING


def difference_count(verdicts: Sequence[Verdict]) -> int:
    """Return how many messages are missing, late or surplus in windows that are over."""
    return sum(abs(one.difference) for one in verdicts if one.judgement is not Judgement.OPEN)


def merged(tallied: Tally) -> dict[Window, dict[str, Count]]:
    """Return the counts with all windows of a topic made one, from the first to the last.

    For tiers that cannot tell in which window a message was counted elsewhere.
    """
    spans: dict[str, Window] = {}
    sums: dict[str, dict[str, Count]] = {}
    for window, counts in tallied.items():
        span = spans.get(window.topic, window)
        spans[window.topic] = Window(
            window.topic, min(span.start_ms, window.start_ms), max(span.end_ms, window.end_ms)
        )
        total = sums.setdefault(window.topic, {})
        for tier, count in counts.items():
            before = total.get(tier, Count())
            total[tier] = Count(
                before.message_count + count.message_count,
                before.payload_bytes + count.payload_bytes,
            )
    return {spans[topic]: counts for topic, counts in sums.items()}
