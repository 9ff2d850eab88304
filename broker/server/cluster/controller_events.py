"""The queue of events of the controller's thread, and their ages."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable

from broker.clock import Clock


class ControllerEvents:
    """The events of the controller, with the times at which they came."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._arrivals: deque[float] = deque()  # of those that wait, and of those being handled
        self._taken_count = 0
        self._began_s = 0.0

    def put(self, event: Callable[[], None]) -> None:
        """Add an event; callable from any thread."""
        self._arrivals.append(self._clock.monotonic_s())
        self._queue.put(event)

    def get(self, timeout: float | None) -> Callable[[], None]:
        """Return the next event; `queue.Empty` after `timeout` seconds, None waits for ever."""
        try:
            event = self._queue.get(timeout=timeout)
            self._taken_count += 1
        finally:
            self._began_s = self._clock.monotonic_s()
        return event

    def note_done(self) -> None:
        """Note that the events taken since the last call are handled."""
        for _ in range(self._taken_count):
            self._arrivals.popleft()
        self._taken_count = 0

    @property
    def age_s(self) -> float:
        """Return the age of the event being handled, or of work that the thread itself began."""
        since_s = self._arrivals[0] if self._taken_count else self._began_s
        return self._clock.monotonic_s() - since_s

    def empty(self) -> bool:
        """Return whether no event waits."""
        return self._queue.empty()

    @property
    def waiting_count(self) -> int:
        """Return how many events wait; callable from any thread, as `oldest_s` is."""
        return self._queue.qsize()

    @property
    def oldest_s(self) -> float:
        """Return how long the oldest event has waited or been handled; 0 if there is none."""
        try:
            return max(0.0, self._clock.monotonic_s() - self._arrivals[0])
        except IndexError:
            return 0.0
