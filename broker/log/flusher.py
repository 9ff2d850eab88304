"""The flusher: flushes each log when it is due, on a few threads shared by all logs.

Owns the deadlines of all logs. Holds no lock during a flush: requests that arrive meanwhile are
covered by the next one (group commit). Also `PeriodicTask`, a thread that repeats a call.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition, Event, Thread
from typing import Protocol

from broker.clock import Clock
from broker.errors import StorageError
from broker.threads import LoopThread

logger = logging.getLogger(__name__)


class Flushable(Protocol):
    """The part of a log that the flusher uses."""

    def flush(self) -> None:
        """Make all earlier appends durable and visible."""


class Flusher:
    """Flushes each log when it is due, `thread_count` logs at a time at most."""

    def __init__(self, clock: Clock, *, thread_count: int = 4) -> None:
        self._clock = clock
        self._thread_count = thread_count
        self._threads: list[Thread] = []
        self._changed = Condition()
        self._due_s: dict[Flushable, float] = {}
        self._heap: list[tuple[float, int, Flushable]] = []
        self._order = itertools.count()
        self._flushing: set[Flushable] = set()
        self._wakes_s: list[float] = []  # when each waiting thread wakes by itself
        self._is_stopping = False

    def schedule(self, log: Flushable, due_s: float) -> None:
        """Schedule a flush at a time of the clock's `monotonic_s`, unless one is due earlier."""
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
            thread = LoopThread(self._run, name=f"flusher-{number}")
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Stop the threads after the flushes in progress, and join them."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def run_due(self) -> None:
        """Flush every log that is due now, on the calling thread."""
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
        except Exception:  # a bug in one log must not end the thread
            logger.exception("flushing %r failed", log)
        finally:
            with self._changed:
                self._flushing.discard(log)
                if (due_s := self._due_s.get(log)) is not None:
                    self._push(log, due_s)  # this thread takes it next

    def _take_due(self) -> Flushable | None:
        """Take a due log and mark it as being flushed; None if no log is due."""
        with self._changed:
            if self._next_due_s() > self._clock.monotonic_s():
                return None
            _, _, log = heapq.heappop(self._heap)
            del self._due_s[log]
            self._flushing.add(log)
            # this thread may be the one that would have woken for the next log
            if (next_due_s := self._next_due_s()) != math.inf:
                self._wake_by(next_due_s)
            return log

    def _next_due_s(self) -> float:
        """Return when the first log is due, dropping outdated entries; caller holds the lock."""
        while self._heap:
            due_s, _, log = self._heap[0]
            if self._due_s.get(log) == due_s and log not in self._flushing:
                return due_s
            heapq.heappop(self._heap)
        return math.inf

    def _wait(self) -> None:
        """Wait until a log is due or a schedule changes; caller holds the lock."""
        due_s = self._next_due_s()
        self._wakes_s.append(due_s)
        try:
            wait_s = None if due_s == math.inf else max(0.0, due_s - self._clock.monotonic_s())
            self._changed.wait(wait_s)
        finally:
            self._wakes_s.remove(due_s)

    def _wake_by(self, due_s: float) -> None:
        """Ensure that a thread is awake by a time; caller holds the lock.

        Waking a thread takes the interpreter's lock from working ones, so none is woken if one
        wakes in time by itself.
        """
        if not any(wake_s <= due_s for wake_s in self._wakes_s):
            self._changed.notify()

    def _push(self, log: Flushable, due_s: float) -> None:
        heapq.heappush(self._heap, (due_s, next(self._order), log))


@dataclass(eq=False)
class PeriodicTask:
    """A thread that repeats a call until stopped; exceptions of the call are logged.

    `delay_s` is asked for the seconds to the first call, unless these are given, and at the end of
    a call for those to the next one.
    """

    name: str
    work: Callable[[], object]
    delay_s: Callable[[], float]
    first_delay_s: float | None = None
    _changed: Event = field(default_factory=Event, init=False)  # it is stopped, or has other delays
    _is_stopping: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._thread = LoopThread(self._run, name=self.name)

    def start(self) -> None:
        """Start the thread, unless it was started before; called by one thread at a time."""
        if self._thread.ident is None:
            self._thread.start()

    def set_delay(self, delay_s: Callable[[], float]) -> None:
        """Change the delays; the next call comes that long after now."""
        self.delay_s = delay_s
        self._changed.set()

    def stop(self) -> None:
        """Stop after a call in progress, and join the thread."""
        self._is_stopping = True
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        delay_s = self.delay_s() if self.first_delay_s is None else self.first_delay_s
        while not self._is_stopping:
            if self._changed.wait(delay_s):
                self._changed.clear()
                delay_s = self.delay_s()
                continue
            try:
                self.work()
            except Exception:  # the next call may succeed
                logger.exception("%s failed", self._thread.name)
            delay_s = self.delay_s()
