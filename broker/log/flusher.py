"""When logs are flushed, and the few threads that do it.

Owns the deadlines of all logs. Knows a log only as something to flush, and holds no lock while
it does so: requests that arrive during a flush are covered by the next one (group commit).
"""

from __future__ import annotations

import heapq
import itertools
import logging
from threading import Condition, Thread
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
                self._changed.notify()

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
                    self._changed.wait(self._seconds_to_next())
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
            now_s = self._clock.monotonic_s()
            while self._heap and self._heap[0][0] <= now_s:
                due_s, _, log = heapq.heappop(self._heap)
                if self._due_s.get(log) == due_s and log not in self._flushing:
                    del self._due_s[log]
                    self._flushing.add(log)
                    if self._heap:  # this thread was the one that would have come for the next
                        self._changed.notify()
                    return log
            return None

    def _seconds_to_next(self) -> float | None:
        if not self._heap:
            return None
        return max(0.0, self._heap[0][0] - self._clock.monotonic_s())

    def _push(self, log: Flushable, due_s: float) -> None:
        heapq.heappush(self._heap, (due_s, next(self._order), log))
