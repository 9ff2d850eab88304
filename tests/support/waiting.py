from __future__ import annotations

import time
from collections.abc import Callable

import pytest


def wait_until(condition: Callable[[], object], what: str, *, deadline_s: float = 120.0) -> None:
    """Wait for a condition that something else brings about, or fail saying what did not happen."""
    began_s = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - began_s
        if waited_s > deadline_s:
            pytest.fail(f"{what} did not happen within {deadline_s:g} s")
        time.sleep(min(0.01 + waited_s / 20, 0.1))  # looks cost time that what is waited for needs
