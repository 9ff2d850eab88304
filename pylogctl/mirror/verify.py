"""`pylogctl mirror verify`: compares topics with their mirrors, and renders the differences."""

from __future__ import annotations

from collections.abc import Iterable

from broker.client.selection import causes_of_absence, partitions_of
from broker.client.side import Side
from broker.units import count_text
from pylogctl.cli.connections import open_side
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.offsets import Span, make_span, resolve_ranges, total_bytes
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.comparison import Ranges, compare_topics
from pylogctl.mirror.document import VERIFY, VerifyRow
from pylogctl.mirror.options import VerifyChoice
from pylogctl.mirror.plan import make_selection


def verify(
    env: Environment, choice: VerifyChoice, source_env: Environment, target_env: Environment
) -> None:
    """Compare the chosen topics; raise if messages are missing, with `--exact` if any surplus."""
    patterns = choice.patterns
    selection = make_selection(patterns.include, patterns.exclude, choice.topic_map or [])
    spans = [
        make_span(env, texts or [], from_beginning=False, exit_at_end=True)
        for texts in (choice.offset, choice.target_offset)
    ]
    with open_side(source_env) as source_side, open_side(target_env) as target_side:
        names = {topic: selection.rename(topic) for topic in selection.topics(source_side)}
        broken = _report_away(env, source_side, names)
        broken_copies = _report_away(env, target_side, names.values())
        rows = [
            _verify_topic(env, (topic, source_side, spans[0]), (renamed, target_side, spans[1]))
            for topic, renamed in names.items()
            if topic not in broken and renamed not in broken_copies
        ]
    render(env, VERIFY, rows)
    missing = sum(row.missing for row in rows)
    surplus = sum(row.surplus for row in rows)
    if missing or (choice.exact and surplus):
        raise CliError(
            ExitStatus.CORRUPT,
            f"the target lacks {count_text(missing)} and has {surplus} more than the source",
            code="VERIFY_MISMATCH",
            details={"missing": missing, "surplus": surplus},
        )


def _report_away(env: Environment, side: Side, topics: Iterable[str]) -> set[str]:
    """Report partitions that cannot be read, and return their topics, which are not compared."""
    away = [one for topic in topics for one in partitions_of(side.cluster, topic).away]
    for cause in causes_of_absence(side.cluster, away):
        env.leave_out(cause)
    return {one.topic for one in away}


def _ranges_of(env: Environment, topic: str, side: Side, span: Span) -> Ranges:
    ranges = resolve_ranges(env, side, partitions_of(side.cluster, topic), span)
    for one in ranges.values():
        if one.start.inner or (one.end is not None and one.end.inner):
            raise UsageError("an offset lies inside a compressed set; use ~N, a time or a size")
    return ranges


def _verify_topic(
    env: Environment, source: tuple[str, Side, Span], target: tuple[str, Side, Span]
) -> VerifyRow:
    ranges = [_ranges_of(env, *side) for side in (source, target)]
    with progress(env, f"verify {source[0]}", sum(map(total_bytes, ranges))) as meter:
        sides = (source[1], ranges[0]), (target[1], ranges[1])
        found = compare_topics(*sides, meter.advance)
    missing, surplus = found.missing_count, found.surplus_count
    counts = found.source.message_count, found.target.message_count, missing, surplus
    digests = f"{found.source.checksum:016x}", f"{found.target.checksum:016x}"
    status = "missing" if missing else "surplus" if surplus else "ok"
    return VerifyRow(source[0], target[0], *counts, *digests, status)
