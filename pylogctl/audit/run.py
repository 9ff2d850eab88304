"""Runs `pylogctl audit`: reads counts from an audit topic, compares and renders them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Annotated

from broker.client.selection import Selected, find_partitions, partitions_of
from broker.client.side import Side
from broker.errors import InvalidMessageError
from broker.tools import audit
from broker.topic import ReadRange, TopicPartition
from broker.units import count_text
from pylogctl.audit.options import CountOptions, Judging
from pylogctl.cli.columns import HIDDEN, Bytes, Document, Fit, Integer, Millis, Rank, Row
from pylogctl.cli.connections import open_side
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.offsets import make_span, resolve_ranges, total_bytes
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.cli.selection import topic_filter
from pylogctl.comparison import read_chunks


class CountedWindow(Row):
    """A time window of a topic at a tier."""

    topic: Annotated[str, "topic that was counted"]
    start: Annotated[Millis, "start of the time window"]
    end: Annotated[Millis, "its end, exclusive", Rank(3)]
    tier: Annotated[str, "tier that counted", Fit.WHOLE]


class AuditCountRow(Row):
    """What a tier counted in a window."""

    window: CountedWindow
    messages: Annotated[Integer, "messages counted"]
    bytes: Annotated[Bytes, "their payloads"]


class VerdictRow(Row):
    """What a tier counted in a window, compared with the reference tier."""

    window: CountedWindow
    expected: Annotated[Integer, "messages at the reference tier", Rank(2)]
    found: Annotated[Integer, "messages at this tier", Rank(1)]
    difference: Annotated[Integer, "messages more than expected; negative for less"]
    expected_bytes: Annotated[Bytes, "payloads at the reference tier", HIDDEN]
    found_bytes: Annotated[Bytes, "payloads at this tier", HIDDEN]
    status: Annotated[str, "ok, missing, late, surplus or open", Fit.STATE]


SHOW = Document("audit.show/1", AuditCountRow, empty="no counts")
CHECK = Document("audit.check/1", VerdictRow, empty="")


def show_rows(tallied: audit.Tally, tiers: Collection[str]) -> Iterator[AuditCountRow]:
    """Yield a row of `SHOW` for each window and tier; of all tiers if `tiers` is empty."""
    for window in sorted(tallied):
        for tier, count in sorted(tallied[window].items()):
            if not tiers or tier in tiers:
                counted = CountedWindow(window.topic, window.start_ms, window.end_ms, tier)
                yield AuditCountRow(counted, count.message_count, count.payload_bytes)


def check_row(verdict: audit.AuditVerdict) -> VerdictRow:
    """Return a row of `CHECK`."""
    window, expected, found = verdict.window, verdict.expected, verdict.found
    return VerdictRow(
        CountedWindow(window.topic, window.start_ms, window.end_ms, verdict.tier),
        expected.message_count,
        found.message_count,
        verdict.difference,
        expected.payload_bytes,
        found.payload_bytes,
        verdict.judgement.value,
    )


def check_summary(verdicts: Sequence[audit.AuditVerdict]) -> str:
    """Return the number of windows of each status as a sentence."""
    counts = Counter(one.judgement for one in verdicts)
    parts = [f"{counts[one]} {one.value}" for one in audit.Judgement if counts[one]]
    plural = "" if len(verdicts) == 1 else "s"
    return f"{len(verdicts)} window{plural} compared: {', '.join(parts) or 'none'}"


_LOG_TIER = "log"

_Ranges = Mapping[TopicPartition, ReadRange]
_Advance = Callable[[int], None]


def show_counts(env: Environment, options: CountOptions) -> None:
    """Render the counts of the chosen topics and tiers."""
    with _open_counts(env, options) as (_, tallied):
        render(env, SHOW, show_rows(tallied, options.tiers or ()))


def check_counts(
    env: Environment,
    options: CountOptions,
    comparison: Judging,
    *,
    counts_log: bool,
    time_field: str | None,
) -> None:
    """Compare the counts of tiers with those that are expected, and render the verdicts."""
    reference, fail_above = comparison.reference, comparison.fail_above
    audit_topic = options.audit_topic
    with _open_counts(env, options) as (side, tallied):
        if not any(reference in counts for counts in tallied.values()):
            raise no_tier(audit_topic, reference, tallied)
        if counts_log:
            if time_field is None:
                tallied = audit.merged(tallied)
            _add_log(env, side, tallied, time_field)
        found = {name for counts in tallied.values() for name in counts} - {reference}
        compared = sorted(options.tiers or found)
        if not compared:
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"only tier '{reference}' has reported to '{audit_topic}'",
                "try: --count, which counts the messages on the brokers",
                code="TIER_NOT_FOUND",
            )
        verdicts = audit.compare(
            tallied,
            reference,
            compared,
            now_ms=env.clock.time_ms(),
            grace_ms=comparison.grace_ms,
            complete=[_LOG_TIER],
        )
        hidden = () if comparison.shows_all else (audit.Judgement.OK, audit.Judgement.OPEN)
        render(env, CHECK, [check_row(v) for v in verdicts if v.judgement not in hidden])
        env.note(check_summary(verdicts))
    total = audit.difference_count(verdicts)
    if fail_above is not None and total > fail_above:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"{count_text(total)} missing, late or surplus; the limit is {fail_above}",
            details={"difference": total, "limit": fail_above},
        )


@contextmanager
def _open_counts(
    env: Environment, options: CountOptions
) -> Iterator[tuple[Side, dict[audit.AuditWindow, dict[str, audit.Count]]]]:
    """Read the counts of an audit topic; the cluster stays open for the block.

    Messages that are not audit events are left out, and raise `CliError` after the block.
    """
    audit_topic, selects = options.audit_topic, topic_filter(options.patterns)
    span = make_span(env, options.offset or (), from_beginning=False, exit_at_end=True)
    events: list[audit.AuditEvent] = []
    problems: list[str] = []
    with open_side(env) as side:
        partitions = find_partitions(side.cluster, [audit_topic])
        ranges = resolve_ranges(env, side, partitions, span)
        with progress(env, "read counts", total_bytes(ranges)) as meter:
            for partition, offset_, payload in stored_messages(side, ranges, meter.advance):
                try:
                    events.append(audit.AuditEvent.decode(payload))
                except InvalidMessageError as error:
                    problems.append(f"{partition}: the message at {offset_} is left out: {error}")
        if problems and not events:
            raise CliError(
                ExitStatus.PARTIAL,
                f"'{audit_topic}' is no audit topic: none of {count_text(len(problems))} "
                "is an audit event",
                "name the topic of produce --audit, or of an Auditor",
                code="NO_AUDIT_TOPIC",
            )
        yield side, audit.tally(one for one in events if selects(one.topic))
    if problems:
        env.error(problems[0])
        raise CliError(
            ExitStatus.PARTIAL, f"no audit events in '{audit_topic}': {count_text(len(problems))}"
        )


def no_tier(audit_topic: str, reference: str, tallied: audit.Tally) -> CliError:
    """Return the error for a tier without counts, with the tiers that have some."""
    known = sorted({tier for counts in tallied.values() for tier in counts})
    return CliError(
        ExitStatus.NOT_FOUND,
        f"tier '{reference}' has not reported to '{audit_topic}'",
        *([f"tiers that have: {', '.join(known)}"] if known else []),
        code="TIER_NOT_FOUND",
    )


def _add_log(
    env: Environment,
    side: Side,
    tallied: dict[audit.AuditWindow, dict[str, audit.Count]],
    time_field: str | None,
) -> None:
    """Count the messages in the logs of all topics, and add the counts as a tier."""
    topics = sorted({window.topic for window in tallied})
    found = [partitions_of(side.cluster, topic) for topic in topics]
    partitions = Selected(*(list(chain.from_iterable(some)) for some in zip(*found, strict=True)))
    span = make_span(env, ["start:end"], from_beginning=False, exit_at_end=True)
    ranges = resolve_ranges(env, side, partitions, span)
    time_of = None if time_field is None else audit.json_time(time_field)
    with progress(env, "count", total_bytes(ranges)) as meter:
        counts, timeless_count = _count_log(side, ranges, tallied, time_of, meter.advance)
    for window, counted in counts.items():
        tallied.setdefault(window, {})[_LOG_TIER] = counted
    if timeless_count:
        env.warn(f"{timeless_count} messages have no time in {time_field}: not counted")


def _count_log(
    side: Side,
    ranges: _Ranges,
    windows: Collection[audit.AuditWindow],
    time_of: audit.TimeOf | None,
    advance: _Advance,
) -> tuple[dict[audit.AuditWindow, audit.Count], int]:
    """Return the messages in each window, and the number of messages without a time.

    `windows` of one topic have the same length; with `time_of` None each topic has one window.
    """
    first = {one.topic: one for one in sorted(windows, reverse=True)}
    counts: dict[audit.AuditWindow, audit.Count] = {}
    timeless_count = 0
    for partition, _, payload in stored_messages(side, ranges, advance):
        window = first[partition.topic]
        if time_of is not None:
            time_ms = time_of(payload)
            if time_ms is None:
                timeless_count += 1
                continue
            if time_ms < window.start_ms:
                continue  # older than the first audited window
            length_ms = window.end_ms - window.start_ms
            start_ms = time_ms - time_ms % length_ms
            window = audit.AuditWindow(partition.topic, start_ms, start_ms + length_ms)
        counts[window] = counts.get(window, audit.Count()).plus(1, len(payload))
    return counts, timeless_count


def stored_messages(
    side: Side, ranges: _Ranges, advance: _Advance
) -> Iterator[tuple[TopicPartition, int, bytes]]:
    """Yield partition, offset and stored bytes of every message in the ranges."""
    for reader in read_chunks(side, ranges, advance):
        for offset, _, payload in reader.take_messages():
            yield reader.partition, offset, payload
