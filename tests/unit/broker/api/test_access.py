"""Calls of the API that are repeated until their deadline."""

from __future__ import annotations

import pytest

from broker import deadlines
from broker.api import access
from broker.errors import BrokerUnreachableError


def test_repeated_call_when_its_time_is_over_then_raises_what_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Late:
        """Sleeps longer than it was asked to, as a busy machine does."""

        now_s = 0.0

        def sleep(self, seconds: float) -> None:
            self.now_s += seconds + 0.05

        def monotonic(self) -> float:
            return self.now_s

    late = Late()
    monkeypatch.setattr(access, "time", late)
    monkeypatch.setattr(deadlines, "time", late)

    def fail() -> None:
        deadlines.wait_s()
        raise BrokerUnreachableError("no broker is there")

    for seconds in range(1, 40):
        with pytest.raises(BrokerUnreachableError), deadlines.Limit(seconds / 7):
            access.repeated(fail, None)
