from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.tools.audit import (
    AuditCounter,
    AuditEvent,
    Auditor,
    AuditVerdict,
    AuditWindow,
    Count,
    Judgement,
    compare,
    difference_count,
    merged,
    tally,
)

LONG_AGO = 10**9

events = st.lists(
    st.builds(
        lambda who, tier, topic, window, count: AuditEvent(
            who, 0, "h", tier, topic, window * 10, window * 10 + 10, count, 2 * count
        ),
        st.sampled_from(["p", "q"]),
        st.sampled_from(["producer", "mirror", "consumer"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 3),
        st.integers(0, 5),
    ),
    max_size=20,
).map(lambda found: [replace(event, sequence=n) for n, event in enumerate(found)])


def event(
    tier: str, start_ms: int, count: int, *, topic: str = "t", sequence: int = 0
) -> AuditEvent:
    return AuditEvent(
        f"{tier}{start_ms}", sequence, "h", tier, topic, start_ms, start_ms + 10, count, count
    )


def check(*found: AuditEvent, now_ms: int = LONG_AGO) -> list[AuditVerdict]:
    tallied = tally(found)
    tiers = {tier for counts in tallied.values() for tier in counts}
    return compare(tallied, "producer", tiers, now_ms=now_ms, grace_ms=5)


@given(events, st.randoms(use_true_random=False))
def test_tally_when_events_come_twice_and_in_any_order_then_is_the_same(
    found: list[AuditEvent], chance: object
) -> None:
    again = [*found, *found]
    chance.shuffle(again)  # type: ignore[attr-defined]  # hypothesis gives a random.Random

    assert tally(again) == tally(found)


@given(events)
def test_tally_when_added_up_then_has_every_message(found: list[AuditEvent]) -> None:
    counts = [count for tiers in tally(found).values() for count in tiers.values()]

    assert sum(one.message_count for one in counts) == sum(e.message_count for e in found)
    assert sum(one.payload_bytes for one in counts) == sum(e.payload_bytes for e in found)


@given(events)
def test_compare_when_a_tier_counts_as_the_reference_then_all_is_ok(
    found: list[AuditEvent],
) -> None:
    produced = [replace(one, tier="producer") for one in found]
    consumed = [replace(one, tier="consumer", source_id=f"c{one.source_id}") for one in found]

    verdicts = check(*produced, *consumed)

    assert {one.judgement for one in verdicts} <= {Judgement.OK}
    assert difference_count(verdicts) == 0


@given(events)
def test_compare_when_anything_was_counted_then_judgements_agree_with_the_numbers(
    found: list[AuditEvent],
) -> None:
    tallied = tally(found)
    verdicts = compare(tallied, "producer", ["mirror"], now_ms=LONG_AGO, grace_ms=0)

    assert [one.window for one in verdicts] == sorted(tallied)
    for one in verdicts:
        assert (one.judgement is Judgement.OK) == (one.difference == 0)
        assert (one.judgement is Judgement.SURPLUS) == (one.difference > 0)
        assert (one.judgement in (Judgement.MISSING, Judgement.LATE)) == (one.difference < 0)
    assert difference_count(verdicts) == sum(abs(one.difference) for one in verdicts)


@given(events)
def test_merged_when_compared_then_has_the_totals_of_each_topic(found: list[AuditEvent]) -> None:
    totals = merged(tally(found))

    assert len(totals) == len({one.topic for one in found})
    for window, tiers in totals.items():
        for tier, count in tiers.items():
            mine = [e for e in found if (e.topic, e.tier) == (window.topic, tier)]
            assert count.message_count == sum(e.message_count for e in mine)
            assert all(window.start_ms <= e.start_ms < e.end_ms <= window.end_ms for e in mine)


@pytest.mark.parametrize(
    ("found", "judgements"),
    [
        ([event("producer", 0, 5), event("c", 0, 5)], ["ok"]),
        ([event("producer", 0, 5), event("c", 0, 6)], ["surplus"]),
        ([event("c", 0, 6), event("producer", 10, 1), event("c", 10, 1)], ["surplus", "ok"]),
        ([event("producer", 0, 5), event("c", 0, 4)], ["late"]),
        ([event("producer", 0, 5), event("c", 10, 0)], ["missing", "ok"]),
        ([event("producer", 0, 5), event("producer", 10, 5), event("c", 0, 5)], ["ok", "late"]),
    ],
)
def test_compare_when_counts_differ_then_says_how(
    found: list[AuditEvent], judgements: list[str]
) -> None:
    assert [one.judgement.value for one in check(*found)] == judgements


def test_compare_when_the_grace_time_is_not_over_then_does_not_judge() -> None:
    found = [event("producer", 0, 5), event("c", 0, 1)]

    assert [one.judgement for one in check(*found, now_ms=14)] == [Judgement.OPEN]
    assert difference_count(check(*found, now_ms=14)) == 0
    assert [one.judgement for one in check(*found, now_ms=15)] == [Judgement.LATE]


def test_compare_when_another_topic_goes_on_then_a_topic_is_late_not_missing() -> None:
    found = [event("producer", 0, 5), event("c", 0, 4), event("c", 90, 1, topic="u")]

    verdict = next(one for one in check(*found) if one.window == AuditWindow("t", 0, 10))

    assert verdict.judgement is Judgement.LATE
    assert verdict.expected == Count(5, 5)


def test_compare_when_a_tier_is_complete_then_nothing_of_it_is_late() -> None:
    tallied = tally([event("producer", 0, 5), event("log", 0, 4)])

    (verdict,) = compare(
        tallied, "producer", ["log"], now_ms=LONG_AGO, grace_ms=0, complete=["log"]
    )

    assert verdict.judgement is Judgement.MISSING


def test_publish_when_more_messages_had_no_time_then_logs_how_many_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counter = AuditCounter("web")
    auditor = Auditor(counter, cast(Any, None), "audit")
    for _ in range(2):
        counter.note_one("t", 1, None, is_timed=True)
    auditor.publish()
    auditor.publish()

    assert caplog.messages == ["2 messages have no time of their own: not in web"]
