"""A machine's clock that is set while brokers run, by a library that is loaded into them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef int (*clock_fn)(clockid_t, struct timespec *);

/* The file that JUMPING_CLOCK names has a process id, and how many seconds its clock is ahead. */
int clock_gettime(clockid_t clock, struct timespec *out) {
  static clock_fn real;
  static long ahead, looked = -1;
  if (!real) real = (clock_fn)dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, out);
  if (clock != CLOCK_REALTIME || result) return result;
  struct timespec now;
  real(CLOCK_MONOTONIC, &now);
  long tick = now.tv_sec * 20 + now.tv_nsec / 50000000;
  if (tick != looked) {
    looked = tick;
    long pid = 0, seconds = 0;
    const char *name = getenv("JUMPING_CLOCK");
    FILE *file = name ? fopen(name, "r") : NULL;
    if (file) {
      if (fscanf(file, "%ld %ld", &pid, &seconds) != 2) pid = 0;
      fclose(file);
    }
    ahead = pid == getpid() ? seconds : 0;
  }
  out->tv_sec += ahead;
  return 0;
}
"""


class JumpingClock:
    """Sets the clock of one broker at a time, of those that are started from now on.

    Args:
        directory: for the library and the file that says how far the clock is ahead.
        monkeypatch: sets the environment of the brokers.
    """

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler makes the library that sets the clock")
        source, library = directory / "jumping_clock.c", directory / "jumping_clock.so"
        source.write_text(_SOURCE)
        made = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
        subprocess.run(made, check=True)
        self._file = directory / "jumping_clock"
        monkeypatch.setenv("LD_PRELOAD", str(library))
        monkeypatch.setenv("JUMPING_CLOCK", str(self._file))

    def set(self, pid: int, ahead_s: int) -> None:
        """Set the clock of a process ahead, or behind; that of the one before is right again."""
        self._file.with_suffix(".new").write_text(f"{pid} {ahead_s}")
        self._file.with_suffix(".new").rename(self._file)
