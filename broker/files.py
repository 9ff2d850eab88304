"""The files of a broker: opened without following links, replaced as a whole, made durable."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY_SUFFIX = ".tmp"  # of a file being written; a crash or a full disk can leave one behind


_AT_FDCWD = -100  # of the system call renameat2: paths start from the working directory
_EXCHANGE = 2
_FILE_MODE = 0o640
DIRECTORY_MODE = 0o750  # messages are for the broker's user and group


_CREDENTIALS = Path("/run/credentials")  # systemd makes a directory there for each service


def is_open_to_others(path: Path, found: os.stat_result) -> bool:
    """Return whether others than its owner may read or change a file with a secret."""
    others = stat.S_IMODE(found.st_mode) & 0o077
    if others != stat.S_IRGRP or found.st_uid != 0:
        return others != 0
    # systemd's LoadCredential= has the service's user in an ACL, whose mask is shown as the group's
    given = (os.environ.get("CREDENTIALS_DIRECTORY") or _CREDENTIALS, _CREDENTIALS)
    return not any(path.resolve().is_relative_to(Path(one).resolve()) for one in given)


FileStamp = tuple[int, int, int]
"""What changes with a file: its inode, the time of its last change, its size."""


def stamp_of(path: Path) -> FileStamp | None:
    """Return the stamp of a file, None if there is none that can be found."""
    with suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size
    return None


def open_file(path: Path, flags: int, mode: int = _FILE_MODE) -> int:
    """Open a file and return its descriptor; `OSError` for a symbolic link."""
    # the target of a link may be another's file
    try:
        return os.open(path, flags | os.O_NOFOLLOW, mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            validate_no_link(path)
        raise


@contextmanager
def opened(path: Path, flags: int, mode: int = _FILE_MODE) -> Iterator[int]:
    """Give the descriptor of a file, which is closed afterwards; errors name the file."""
    fd = open_file(path, flags, mode)
    try:
        yield fd
    except OSError as error:
        error.filename = error.filename or str(path)  # system calls on a descriptor know none
        raise
    finally:
        os.close(fd)


def validate_no_link(path: Path) -> None:
    """Raise an `OSError` if a path is a symbolic link."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link, and none is followed", str(path))


def is_out_of_descriptors(error: OSError) -> bool:
    """Return whether a file could not be opened because too many are open."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


def reason_of(error: OSError) -> str:
    """Return why a system call failed, and a remedy where one is known."""
    hint = "; raise the limit on open files (ulimit -n)" if is_out_of_descriptors(error) else ""
    return (error.strerror or str(error)) + hint


def sync_directory(directory: Path) -> None:
    """Make the creation, renaming and removal of entries in a directory durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomically(path: Path, content: bytes, mode: int = _FILE_MODE) -> None:
    """Replace a file so that a crash or power failure leaves either the old or the new content.

    After an `OSError` the old content, if any, is unchanged.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    temporary.unlink(missing_ok=True)
    with opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode) as fd:
        write_all(fd, content)
        os.fsync(fd)
    temporary.replace(path)
    sync_directory(path.parent)


class JsonLines:
    """Lines of JSON in a file; when it is full, `roll` returns where they go on.

    A write that fails leaves no part of its lines. Whoever uses it on several threads guards it.
    With a `mode` the files have that, whatever the umask.
    """

    def __init__(
        self, path: Path, max_bytes: int, roll: Callable[[], Path], mode: int | None = None
    ) -> None:
        self._max_bytes = max_bytes
        self._roll = roll
        self._mode = mode
        self._open(path)

    def _open(self, path: Path) -> None:
        fd = open_file(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            if self._mode is not None:
                os.fchmod(fd, self._mode)
            size = os.fstat(fd).st_size
        except OSError:
            os.close(fd)
            raise
        self._fd, self.size = fd, size

    @property
    def is_torn(self) -> bool:
        """Return whether a crash has left part of a line at the end."""
        return self.size > 0 and os.pread(self._fd, 1, self.size - 1) != b"\n"

    def write(self, lines: bytes) -> None:
        """Append whole lines."""
        if self.size + len(lines) > self._max_bytes:
            full_fd = self._fd
            self._open(self._roll())
            os.close(full_fd)
        try:
            write_all(self._fd, lines)
        except OSError:
            with suppress(OSError):
                self.truncate(self.size)
            raise
        self.size += len(lines)

    def truncate(self, size: int) -> None:
        """Keep the first bytes only."""
        os.ftruncate(self._fd, size)
        self.size = size

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def exchange(first: Path, second: Path) -> None:
    """Exchange two files or directories of one file system in one step.

    `OSError`, and no change, if the system or the file system (such as NFS) cannot do it.
    """
    import ctypes  # late: only moves of logs need it

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # not Linux
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(first)) from None
    here = ctypes.c_int(_AT_FDCWD)
    if rename(here, os.fsencode(first), here, os.fsencode(second), ctypes.c_uint(_EXCHANGE)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(first), None, str(second))


def write_all(fd: int, content: bytes | memoryview) -> None:
    """Write a whole buffer at the descriptor's position, continuing after short writes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]
