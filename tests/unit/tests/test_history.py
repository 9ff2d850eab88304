"""The checker of histories finds each kind of broken promise, and nothing in a good history."""

from __future__ import annotations

import pytest

from tests.integration.replication.history import Outcome, Seen, Sent, violations


def sent(
    payload: str,
    offset: int,
    *,
    at_s: float,
    outcome: Outcome = Outcome.ACKNOWLEDGED,
    producer: str = "p",
) -> Sent:
    return Sent("0-0", payload, producer, at_s, at_s + 0.5, outcome, offset)


def seen(*payloads: str, reader: str = "r") -> list[Seen]:
    return [Seen("0-0", offset, one, reader) for offset, one in enumerate(payloads) if one]


GOOD = [sent("a", 0, at_s=0), sent("b", 1, at_s=1), sent("c", 2, at_s=2)]


def found(sends: list[Sent], reads: list[Seen], final: list[Seen], start: int = 0) -> set[str]:
    return {one[:2] for one in violations(sends, reads, final, log_starts={"0-0": start})}


def test_violations_when_all_is_kept_then_there_are_none() -> None:
    assert found(GOOD, seen("a", "b"), seen("a", "b", "c")) == set()


def test_violations_when_outcome_is_unknown_then_message_may_be_there_twice_or_not() -> None:
    unknown = sent("d", -1, at_s=3, outcome=Outcome.UNKNOWN)

    assert found([*GOOD, unknown], [], seen("a", "b", "c")) == set()
    assert found([*GOOD, unknown], [], seen("a", "b", "c", "d", "d")) == set()


def test_violations_when_retention_removed_messages_then_they_are_not_lost() -> None:
    assert found(GOOD, [], seen("", "b", "c"), start=1) == set()


@pytest.mark.parametrize(
    ("sends", "reads", "final", "invariant"),
    [
        (GOOD, [], seen("a", "b"), "I1"),
        (GOOD, seen("a", "x"), seen("a", "b", "c"), "I2"),
        (GOOD, [], seen("a", "b", "c", "x"), "I3"),
        (
            [*GOOD, sent("d", -1, at_s=3, outcome=Outcome.REFUSED)],
            [],
            seen("a", "b", "c", "d"),
            "I3",
        ),
        (GOOD, [], seen("a", "b", "c", "a"), "I4"),
        ([sent("a", 1, at_s=0), sent("b", 0, at_s=1)], [], seen("b", "a"), "I5"),
        (
            [sent("a", 1, at_s=0), sent("b", 0, at_s=1, producer="q")],
            [],
            seen("b", "a"),
            "I6",
        ),
        (GOOD, [*seen("a", "b"), *seen("a")], seen("a", "b", "c"), "I7"),
        (GOOD, seen("a", "", "c"), seen("a", "b", "c"), "I7"),
        (
            [*GOOD, sent("d", -1, at_s=3, outcome=Outcome.UNKNOWN)],
            seen("a", "b", "c", "d"),
            seen("a", "b", "c"),
            "I8",
        ),
    ],
)
def test_violations_when_a_promise_is_broken_then_its_invariant_is_named(
    sends: list[Sent], reads: list[Seen], final: list[Seen], invariant: str
) -> None:
    assert invariant in found(sends, reads, final)
