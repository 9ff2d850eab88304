"""Keeping Python's look for cycles out of the way of those who wait for an answer.

How the C library deals with memory that is freed, where a command takes and frees much of it.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress


def settle_garbage() -> None:
    """Leave all that there is by now out of later looks; for a process that runs on from here.

    What the start has made stays: to look at all of it again stops every thread for 10 ms.
    """
    gc.collect()
    gc.freeze()


_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_KEPT_BYTES = 128 << 20
_BLOCK_BYTES = 64 << 20


def keep_freed_memory() -> None:
    """Have large blocks that are freed kept for the next ones; does nothing without glibc.

    By default glibc gives blocks of a megabyte back to the kernel. Who reads a topic takes several
    for each response: the kernel would map, clear and unmap their pages a thousand times a second,
    which costs as much as everything else.

    Source: mallopt(3).
    """
    with suppress(AttributeError):  # other C libraries have no such setting
        set_option = ctypes.CDLL(None).mallopt
        set_option(_M_MMAP_THRESHOLD, _BLOCK_BYTES)
        set_option(_M_TRIM_THRESHOLD, _KEPT_BYTES)
