"""When logs are flushed, and the few threads that do it.

Owns the deadlines of all logs. Knows a log only as something to flush, and holds no lock while
it does so: requests that arrive during a flush are covered by the next one (group commit).

Work that is done again and again on a thread of its own.

Owns the thread and its end; knows nothing of the work.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
from collections.abc import Callable
from threading import Condition, Event, Thread
from typing import Protocol

from broker.clock import Clock
from broker.errors import StorageError

logger = logging.getLogger(__name__)


class Flushable(Protocol):
    """What the flusher flushes: a log."""

    def flush(self) -> None:
        """Make everything appended so far durable and visible."""


class Flusher:
    """Flushes each log when it is due, on threads shared by all logs.

    Args:
        clock: for the deadlines.
        thread_count: how many logs can be flushed at the same time, at least 1.
    """

    def __init__(self, clock: Clock, *, thread_count: int = 4) -> None:
        self._clock = clock
        self._thread_count = thread_count
        self._threads: list[Thread] = []
        self._changed = Condition()
        self._due_s: dict[Flushable, float] = {}
        self._heap: list[tuple[float, int, Flushable]] = []
        self._order = itertools.count()
        self._flushing: set[Flushable] = set()
        self._wakes_s: list[float] = []  # when each thread that waits wakes by itself
        self._is_stopping = False

    def schedule(self, log: Flushable, due_s: float) -> None:
        """Have a log flushed at a time, or earlier if it is due earlier already.

        Args:
            log: what to flush.
            due_s: a time of the clock's `monotonic_s`.
        """
        with self._changed:
            known = self._due_s.get(log)
            if known is not None and known <= due_s:
                return
            self._due_s[log] = due_s
            if log not in self._flushing:
                self._push(log, due_s)
                self._wake_by(due_s)

    def start(self) -> None:
        """Start the threads."""
        self._is_stopping = False
        for number in range(self._thread_count):
            thread = Thread(target=self._run, name=f"flusher-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Stop the threads once they are done with what they are flushing, and join them."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def run_due(self) -> None:
        """Flush, on the calling thread, every log that is due now."""
        while (log := self._take_due()) is not None:
            self._flush(log)

    def _run(self) -> None:
        while True:
            with self._changed:
                while (log := self._take_due()) is None and not self._is_stopping:
                    self._wait()
                if log is None or self._is_stopping:
                    return
            self._flush(log)

    def _flush(self, log: Flushable) -> None:
        try:
            log.flush()
        except StorageError as error:
            logger.error("%s", error)
        except Exception:  # one log's bug must not end the flushing of all others
            logger.exception("flushing %r failed", log)
        finally:
            with self._changed:
                self._flushing.discard(log)
                if (due_s := self._due_s.get(log)) is not None:
                    self._push(log, due_s)  # this thread looks next: no other need be woken

    def _take_due(self) -> Flushable | None:
        """Take a log that is due, marking it as being flushed."""
        with self._changed:
            if self._next_due_s() > self._clock.monotonic_s():
                return None
            _, _, log = heapq.heappop(self._heap)
            del self._due_s[log]
            self._flushing.add(log)
            # this thread may be the one that would have come for the next
            if (next_due_s := self._next_due_s()) != math.inf:
                self._wake_by(next_due_s)
            return log

    def _next_due_s(self) -> float:
        """Return when the first log is due, dropping what is outdated; caller holds the lock."""
        while self._heap:
            due_s, _, log = self._heap[0]
            if self._due_s.get(log) == due_s and log not in self._flushing:
                return due_s
            heapq.heappop(self._heap)
        return math.inf

    def _wait(self) -> None:
        """Wait until a log is due or somebody says otherwise; caller holds the lock."""
        due_s = self._next_due_s()
        self._wakes_s.append(due_s)
        try:
            wait_s = None if due_s == math.inf else max(0.0, due_s - self._clock.monotonic_s())
            self._changed.wait(wait_s)
        finally:
            self._wakes_s.remove(due_s)

    def _wake_by(self, due_s: float) -> None:
        """Have a thread awake by a time; caller holds the lock.

        A thread that wakes takes the interpreter's lock from those who have work to do: none is
        woken if one comes in time by itself.
        """
        if not any(wake_s <= due_s for wake_s in self._wakes_s):
            self._changed.notify()

    def _push(self, log: Flushable, due_s: float) -> None:
        heapq.heappush(self._heap, (due_s, next(self._order), log))


class PeriodicTask:
    """Calls something at intervals until stopped.

    Args:
        name: the thread's name.
        work: what to call; its exceptions are logged, and the next call comes all the same.
        first_delay_s: seconds before the first call.
        interval_s: seconds between the end of a call and the next one.
    """

    def __init__(
        self, name: str, work: Callable[[], None], *, first_delay_s: float, interval_s: float
    ) -> None:
        self._work = work
        self._first_delay_s = first_delay_s
        self._interval_s = interval_s
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; once only."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the call that may be running, and join the thread."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        delay_s = self._first_delay_s
        while not self._stopping.wait(delay_s):
            try:
                self._work()
            except Exception:  # the next round may well succeed
                logger.exception("%s failed", self._thread.name)
            delay_s = self._interval_s
