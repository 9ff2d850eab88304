"""How long clients wait between attempts."""

from __future__ import annotations

import pytest

from broker.client import backoff


@pytest.mark.parametrize(
    ("failures", "most_s"), [(1, 0), (2, 0.1), (3, 0.2), (6, 1.6), (7, 1.6), (10_000, 1.6)]
)
def test_wait_when_failures_add_up_then_grows_to_a_limit(failures: int, most_s: float) -> None:
    for _ in range(100):
        assert most_s / 2 <= backoff.wait_s(failures, 0.1) <= most_s


def test_waits_when_no_leader_is_known_then_are_many_in_the_first_second() -> None:
    waits_s = backoff.waits_s()
    assert next(waits_s) == 0
    assert sum(next(waits_s) for _ in range(7)) < 1.3
