from __future__ import annotations

import time
from collections.abc import Callable

import pytest


def wait_until(condition: Callable[[], object], what: str, *, deadline_s: float = 120.0) -> None:
    """Wait for a condition that something else brings about, or fail saying what did not happen."""
    give_up_s = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > give_up_s:
            pytest.fail(f"{what} did not happen within {deadline_s:g} s")
        time.sleep(0.01)
