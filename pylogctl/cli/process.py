"""The process of a command that runs for long: signals that stop it, and its memory.

A short command is interrupted: `pylogctl.__main__` turns SIGINT and SIGTERM into exceptions. A
stream or a service asks a `StopRequest` between its steps, so that it completes the current one.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType

from pylogctl.cli.environment import ExitStatus
from pylogctl.cli.signals import installed

logger = logging.getLogger("broker.threads")  # the log of services has the library's records

_LONGEST_END_S = 120
"""After the failure of a thread: what waits for it in vain must not keep the process."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_KEPT_BYTES = 128 << 20
_BLOCK_BYTES = 64 << 20


class StopRequest:
    """Records the first signal that asks to stop; a second SIGINT ends the process at once.

    The failure of a thread asks as well.
    """

    def __init__(self) -> None:
        # not an event: a signal may come while the main thread has the lock of one
        self._woken: SimpleQueue[None] = SimpleQueue()
        self._signum = 0
        self.failure: BaseException | None = None  # of a thread

    @property
    def is_set(self) -> bool:
        """Whether a signal, or the failure of a thread, has asked to stop."""
        return self._signum != 0 or self.failure is not None

    @property
    def status(self) -> ExitStatus:
        """The exit status of a command that was interrupted; OK if it was not."""
        if not self._signum:
            return ExitStatus.OK
        return ExitStatus.SIGINT if self._signum == signal.SIGINT else ExitStatus.SIGTERM

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a signal or `wake`, at most `timeout_s`; return whether there was one."""
        try:
            self._woken.get(timeout=timeout_s)
        except Empty:
            return False
        self.wake()
        return True

    def wake(self) -> None:
        """Have `wait` return from now on; from any thread, or a handler of signals."""
        self._woken.put(None)

    def note(self, signum: int, frame: FrameType | None = None) -> None:
        """Record a signal; runs as its handler in the main thread."""
        if self._signum and signum == signal.SIGINT:
            os._exit(ExitStatus.SIGINT)
        self._signum = signum
        self.wake()

    def note_failure(self, ended: threading.ExceptHookArgs) -> None:
        """Record that an exception has ended a thread; runs as `threading.excepthook`."""
        name = "" if ended.thread is None else ended.thread.name
        failure = ended.exc_value or ended.exc_type()
        logger.critical("the process ends, as thread %s has failed", name, exc_info=failure)
        self.failure = self.failure or failure
        signal.alarm(_LONGEST_END_S)
        self.wake()


@contextmanager
def graceful_stop(request: StopRequest | None = None) -> Iterator[StopRequest]:
    """Record SIGINT, SIGTERM and SIGHUP instead of raising them, for the duration of a block.

    Enter it once there is something to complete: before, as while a broker is silent, a signal has
    to end the command at once. The exception that ended a thread meanwhile is raised at its end.
    """
    request = request or StopRequest()
    hook, threading.excepthook = threading.excepthook, request.note_failure
    try:
        with installed(dict.fromkeys(_SIGNALS, request.note)):
            yield request
    finally:
        threading.excepthook = hook
    if request.failure is not None:
        raise request.failure


def freeze_garbage() -> None:
    """Exclude all objects that exist now from later garbage collections."""
    # The objects of the start-up stay until the end; scanning them stops every thread for 10 ms.
    gc.collect()
    gc.freeze()


def leave_no_core_file() -> None:
    """Have this process and its children end without a core file, which would have their keys."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def keep_freed_memory() -> None:
    """Keep large blocks in the process when they are freed; does nothing without glibc."""
    # By default glibc returns blocks of a megabyte to the kernel (mallopt(3)). A consumer allocates
    # several for each response: the kernel would map, clear and unmap their pages a thousand times
    # a second, which costs as much as everything else.
    with suppress(AttributeError):  # other C libraries have no such setting
        set_option = ctypes.CDLL(None).mallopt
        set_option(_M_MMAP_THRESHOLD, _BLOCK_BYTES)
        set_option(_M_TRIM_THRESHOLD, _KEPT_BYTES)
