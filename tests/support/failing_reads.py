"""Reads that fail as those of a broken disk do, by a library that is loaded into brokers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Whether a descriptor is of a segment below the directory that the file FAILING_READS names. */
static int fails(int fd) {
  char wanted[PATH_MAX], path[PATH_MAX], link[64];
  const char *file = getenv("FAILING_READS");
  int names = file ? open(file, O_RDONLY) : -1;
  if (names < 0) return 0;
  ssize_t n = read(names, wanted, sizeof wanted - 1);
  close(names);
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t m = readlink(link, path, sizeof path - 1);
  if (n <= 0 || m <= 0) return 0;
  wanted[n] = path[m] = 0;
  return strstr(path, wanted) && strstr(path, ".pylog");
}

#define PREAD(name) \
  ssize_t name(int fd, void *to, size_t size, off_t at) { \
    ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, #name); \
    if (fails(fd)) return errno = EIO, -1; \
    return real(fd, to, size, at); \
  }
#define PREADV(name) \
  ssize_t name(int fd, const struct iovec *to, int count, off_t at, int flags) { \
    ssize_t (*real)(int, const struct iovec *, int, off_t, int) = dlsym(RTLD_NEXT, #name); \
    if (fails(fd)) return errno = EIO, -1; \
    return real(fd, to, count, at, flags); \
  }
#define SENDFILE(name) \
  ssize_t name(int out, int fd, off_t *at, size_t size) { \
    ssize_t (*real)(int, int, off_t *, size_t) = dlsym(RTLD_NEXT, #name); \
    if (fails(fd)) return errno = EIO, -1; \
    return real(out, fd, at, size); \
  }
PREAD(pread)
PREAD(pread64)
PREADV(preadv2)
PREADV(preadv64v2)
SENDFILE(sendfile)
SENDFILE(sendfile64)
"""


class FailingReads:
    """Brokers started from now on cannot read segments below a directory while that is set.

    Args:
        directory: for the library and the file that names the directory.
        monkeypatch: sets the environment of the brokers.
    """

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler makes the library whose reads fail")
        source, library = directory / "failing_reads.c", directory / "failing_reads.so"
        source.write_text(_SOURCE)
        made = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
        subprocess.run(made, check=True)
        self._file = directory / "failing_reads"
        monkeypatch.setenv("LD_PRELOAD", str(library))
        monkeypatch.setenv("FAILING_READS", str(self._file))

    def begin(self, directory: Path) -> None:
        """Have reads of the segments below a directory fail."""
        self._file.with_suffix(".new").write_text(str(directory))
        self._file.with_suffix(".new").rename(self._file)

    def end(self) -> None:
        """Let all reads succeed."""
        self._file.unlink()
