"""Memory that a reading command frees stays with the process."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_TAKE_AND_FREE = """
import resource
from pylogctl.cli.process import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def take_and_free(count):
    before = faults()
    for _ in range(count):
        block = b"x" * (4 << 20)
        del block
    return faults() - before

print(take_and_free(20))
keep_freed_memory()
take_and_free(1)
print(take_and_free(20))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_keep_freed_memory_when_blocks_come_and_go_then_their_pages_stay() -> None:
    output = subprocess.run(
        [sys.executable, "-c", _TAKE_AND_FREE], stdout=subprocess.PIPE, check=True, timeout=60
    ).stdout

    by_default, kept = map(int, output.split())
    assert by_default > 1000
    assert kept < 100
