"""Simulated time: what happens next, and processes that die, stop and go on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Action = Callable[..., None]


class Scheduler:
    """The queue of all that is going to happen, in order of its time.

    Args:
        seed: of all random choices of the run.
    """

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.random = random.Random(seed)
        self.step_count = 0
        self.trace: list[str] | None = None
        self.counts: Counter[str] = Counter()
        """How often each situation has come up."""
        self._queue: list[tuple[float, int, Action, tuple[Any, ...]]] = []
        self._count = 0

    def after(self, delay_s: float, action: Action, *arguments: object) -> None:
        """Have something done at a time from now."""
        self._count += 1
        heappush(self._queue, (self.now + delay_s, self._count, action, arguments))

    def run_until(self, end_s: float) -> None:
        """Do everything that is due before a time."""
        queue = self._queue
        while queue and queue[0][0] <= end_s:
            self.now, _, action, arguments = heappop(queue)
            self.step_count += 1
            action(*arguments)
        self.now = end_s

    def note(self, text: str, *values: object) -> None:
        """Write a line of the trace, if there is one."""
        if self.trace is not None:
            self.trace.append(f"{self.now:8.3f} {text.format(*values)}")


class Process:
    """A broker or a client: what it is to do is dropped when it dies, and waits while stopped.

    Attributes:
        run: counts its starts.
    """

    def __init__(self, id: int, scheduler: Scheduler) -> None:
        self.id = id
        self.scheduler = scheduler
        self.is_alive = False
        self.is_paused = False
        self.is_off = False
        """Whether its machine is, too: nothing answers in its place."""
        self.is_refusing = False
        """Whether its port refuses new connections although it lives."""
        self.run = 0
        self._waiting: list[tuple[int, Action, tuple[Any, ...]]] = []

    def later(self, delay_s: float, action: Action, *arguments: object) -> None:
        """Do something after a time, in this run of the process."""
        self.scheduler.after(delay_s, self.deliver, self.run, action, *arguments)

    def deliver(self, run: int, action: Action, *arguments: object) -> None:
        """Do something in that run of the process; if it is stopped, once it goes on."""
        if not self.is_alive or run != self.run:
            return
        if self.is_paused:
            self._waiting.append((run, action, arguments))
        else:
            action(*arguments)

    def pause(self) -> None:
        """Stop the process (SIGSTOP)."""
        self.is_paused = True

    def resume(self) -> None:
        """Let it go on; what it missed comes at once, in order."""
        self.is_paused = False
        waiting, self._waiting = self._waiting, []
        for run, action, arguments in waiting:
            self.scheduler.after(0.0, self.deliver, run, action, *arguments)


Done = Callable[[Any], None]


class Network:
    """Requests and responses between processes: delayed, lost, cut off, delivered twice.

    A request goes to one run of its target, as a connection does. It can arrive long after its
    sender has given it up.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.cuts: set[tuple[int, int]] = set()
        self.loss = 0.0
        self.duplication = 0.0
        self.late = 0.0

    def call(
        self,
        source: Process,
        target: Process,
        handler: Callable[[Done], None],
        done: Done,
        timeout_s: float,
        *,
        may_repeat: bool = True,
    ) -> None:
        """Have a target handle a request.

        Args:
            handler: run by the target, with a function that takes the response.
            done: run by the source, once: with the response, or None if none came in time.
            may_repeat: whether the request may be delivered twice, as senders send it again.
        """
        is_open = True
        run = source.run

        def finish(response: object) -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                done(response)

        def respond(response: object) -> None:
            if self._arrives(target.id, source.id):
                self.scheduler.after(self._delay(), source.deliver, run, finish, response)

        random = self.scheduler.random.random
        if target.is_alive and self._arrives(source.id, target.id):
            self.scheduler.after(self._delay(), target.deliver, target.run, handler, respond)
            if may_repeat and self.duplication and random() < self.duplication:
                later = random() * 5
                self.scheduler.counts["requests repeated late"] += 1
                self.scheduler.after(later, target.deliver, target.run, handler, _ignore)
        self.scheduler.after(timeout_s, source.deliver, run, finish, None)

    def refuses(self, source: Process, target: Process) -> bool:
        """Return whether a new connection is refused at once, by the kernel of the target."""
        is_closed = target.is_refusing or not target.is_alive
        return is_closed and not target.is_off and not self.is_cut(source.id, target.id)

    def is_cut(self, one: int, other: int) -> bool:
        """Return whether two processes cannot talk to each other."""
        return (one, other) in self.cuts or (other, one) in self.cuts

    def _arrives(self, source: int, target: int) -> bool:
        if source == target:
            return True
        if (source, target) in self.cuts:
            return False
        return not self.loss or self.scheduler.random.random() >= self.loss

    def _delay(self) -> float:
        random = self.scheduler.random.random
        if self.late and random() < self.late:
            return random() * 4
        return 0.001 + random() * 0.02


def _ignore(response: object) -> None:
    pass
