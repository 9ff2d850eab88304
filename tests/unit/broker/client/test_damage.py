"""When a message that came damaged is read again."""

from __future__ import annotations

import pytest

from broker.client.damage import DamagedReads
from broker.protocol.responses import DamageState
from broker.topic import TopicPartition

PARTITION = TopicPartition("t", 0, 0)
NONE, MENDABLE, LASTING = DamageState


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which moves on with sleeps."""
    now_s = [0.0]

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("time.sleep", sleep)
    return now_s


def test_read_again_when_the_broker_mends_it_then_until_the_limit(now_s: list[float]) -> None:
    reads = DamagedReads(limit_s=1.0)
    answers = [reads.is_read_again(PARTITION, 7, MENDABLE) for _ in range(10)]
    assert answers == sorted(answers, reverse=True)
    assert 1 < answers.count(True) < len(answers)
    assert reads.is_read_again(PARTITION, 8, MENDABLE)


@pytest.mark.parametrize(
    ("states", "answers"),
    [
        ([NONE, NONE], [True, False]),  # it was mended, or is damaged for another reason
        ([MENDABLE, NONE, NONE], [True, True, False]),
        ([LASTING], [False]),
        ([MENDABLE, LASTING], [True, False]),
    ],
)
def test_read_again_when_the_broker_has_answered_then(
    states: list[DamageState], answers: list[bool], now_s: list[float]
) -> None:
    reads = DamagedReads(limit_s=15.0)
    assert [reads.is_read_again(PARTITION, 7, one) for one in states] == answers
