"""Keeping Python's look for cycles out of the way of those who wait for an answer."""

from __future__ import annotations

import gc


def settle_garbage() -> None:
    """Leave all that there is by now out of later looks; for a process that runs on from here.

    What the start has made stays: to look at all of it again stops every thread for 10 ms.
    """
    gc.collect()
    gc.freeze()
