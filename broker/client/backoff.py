"""How long clients wait before they ask again: the one policy after failures that may pass."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

FIRST_S = 0.02
_MAX_DOUBLINGS = 4


def wait_s(failures: int, first_s: float = FIRST_S) -> float:
    """Return the wait after this many failures in a row, from 1 on: none after the first.

    It is at most `first_s` after the second, twice that after each further one, up to 16 times; and
    at random down to the half, as not all clients of a lost broker should ask at once.
    """
    if failures < 2:
        return 0.0
    return first_s * 2.0 ** min(failures - 2, _MAX_DOUBLINGS) * random.uniform(0.5, 1.0)


def waits_s() -> Iterator[float]:
    """Return the waits after the first failure, the second, and so on."""
    return map(wait_s, itertools.count(1))
