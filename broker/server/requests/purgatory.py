"""Responses on their way to a client, and the purgatory of those that are delayed.

A connection's requests are answered in the order they came, so every response is queued when its
request is handled, also an incomplete one. A `DelayedResponse` is completed on the thread of its
processor, when a log's high watermark has advanced, when a worker has finished, or at its deadline.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Generic, Protocol, TypeVar

from broker.log.segment import FileSlice
from broker.protocol.primitives import Buffer
from broker.stats import Histogram

Part = Buffer | FileSlice
"""Part of a response: bytes, or a slice of a segment file that is sent from the page cache."""
Owner = TypeVar("Owner")


class Watched(Protocol):
    """A source of advances: a log, or the appends to one."""

    def add_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        """Call a function at each advance to an offset or beyond it, on any thread."""

    def remove_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        """Undo one `add_listener`."""


def join_bytes(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with adjacent bytes joined: each part costs a system call."""
    joined: list[Part] = []
    adjacent: list[Buffer] = []
    for part in parts:
        if isinstance(part, FileSlice):
            if adjacent:
                joined.append(b"".join(adjacent))
                adjacent = []
            joined.append(part)
        else:
            adjacent.append(part)
    if adjacent:
        joined.append(b"".join(adjacent))
    return joined


class DelayKind(IntEnum):
    """Kind of a delayed response; a number, as it is an index on a hot path."""

    PUBLISH = 0
    READ = 1
    FOLLOWER_READ = 2
    OTHER = 3  # such as the response to the operator who stops the broker


class RequestGroup(IntEnum):
    """Requests whose times and errors are counted together."""

    PRODUCE = 0
    FETCH = 1
    FOLLOWER_FETCH = 2
    METADATA = 3
    PUSH = 4
    OTHER = 5


_OTHER = RequestGroup.OTHER
_AT_A_TIME = 128
"""Thousands of reads may wait for the same: with all of them, a turn would be for little else."""


@dataclass(eq=False, slots=True)
class DelayCounts:
    """The completed delayed responses of one kind since the start."""

    waits: Histogram = field(default_factory=Histogram)
    expired: int = 0  # completed at the deadline only


class Response:
    """A response in a connection's queue.

    `parts` is None until it is complete. `bytes_in_memory` counts the parts that are no file
    slices; until they are known it is an estimate.
    """

    __slots__ = ("bytes_in_memory", "group", "parts")

    def __init__(self, *parts: Part, expected_bytes: int = 0) -> None:
        self.group = _OTHER
        self.bytes_in_memory = expected_bytes
        self.parts: list[Part] | None = None
        if parts:
            self.complete(list(parts))

    def complete(self, parts: list[Part]) -> None:
        """Set the parts."""
        size = 0
        for part in parts:
            if not isinstance(part, FileSlice):
                size += len(part)
        self.bytes_in_memory = size
        self.parts = parts

    def in_memory(self) -> bytes:
        """Return the parts of a complete response that are no file slices."""
        return b"".join(part for part in self.parts or () if not isinstance(part, FileSlice))


class DelayedResponse(Response):
    """A response that waits for logs to advance, or for a worker.

    Args:
        attempt: returns the parts, or None while they are not known. Its argument says whether the
            deadline has passed; it must then return parts, or move `deadline_s`.
        deadline_s: monotonic time.
        logs: whose advance of high watermark or flushed offset may complete it.
        from_offset: the offset that the logs must reach before it is attempted again.
        expected_bytes: an estimate of `bytes_in_memory`.
        lingers: the connection is kept until the broker is down, to send this at the end.
        awaits_flush: it waits for a flush that is under way, and for nothing else.
        work: of another thread for this response only, cancelled if the client leaves.
    """

    __slots__ = (
        "__weakref__",
        "_attempt",
        "_wakeup",
        "after_attempt",
        "arrived_s",
        "awaits_flush",
        "deadline_s",
        "from_offset",
        "is_woken",
        "kept_at_s",
        "kind",
        "lingers",
        "logs",
        "number",
        "work",
    )

    def __init__(
        self,
        attempt: Callable[[bool], list[Part] | None],
        deadline_s: float,
        logs: Sequence[Watched],
        *,
        from_offset: int = 0,
        expected_bytes: int = 0,
        lingers: bool = False,
        awaits_flush: bool = False,
        kind: DelayKind = DelayKind.OTHER,
        work: Future[Any] | None = None,
    ) -> None:
        super().__init__(expected_bytes=expected_bytes)
        self.kind = kind
        self.arrived_s = 0.0  # when its request had arrived, by `time.perf_counter`
        self.kept_at_s = 0.0  # when it came to the purgatory, by the same clock
        self.deadline_s = deadline_s
        self.logs = logs
        self.from_offset = from_offset
        self.lingers = lingers
        self.awaits_flush = awaits_flush
        self.work = work
        self.number = -1  # in the purgatory
        self.is_woken = False  # and not taken yet
        self._attempt = attempt
        self.after_attempt: Callable[[], object] | None = None
        self._wakeup: Callable[[], None] | None = None

    def watch(self, wake: Callable[[DelayedResponse], None]) -> None:
        """Call `wake` whenever one of the logs advances, from the thread that advances it."""
        self._wakeup = lambda: wake(self)
        self._add_listener()

    def watch_instead(self, logs: Sequence[Watched]) -> None:
        """Watch other logs from now on; an advance before that is not noticed."""
        self._remove_listener()
        self.logs = logs
        self._add_listener()

    def _add_listener(self) -> None:
        if self._wakeup is not None:
            for log in dict.fromkeys(self.logs):  # a request may name one many times
                log.add_listener(self._wakeup, self.from_offset)

    def _remove_listener(self) -> None:
        if self._wakeup is not None:
            for log in dict.fromkeys(self.logs):
                log.remove_listener(self._wakeup, self.from_offset)

    def attempt(self, *, is_last: bool) -> bool:
        """Try to complete the response; return whether it is complete.

        `is_last`: the deadline has passed, or the broker stops.
        """
        if self.parts is not None:
            return True
        parts = self._attempt(is_last)
        if self.after_attempt is not None:
            self.after_attempt()
        if parts is None:
            return False
        self.complete(parts)
        self.forget()
        return True

    def forget(self) -> None:
        """Stop watching: the response is complete, or its connection closed."""
        self._remove_listener()
        self._wakeup = None
        self._attempt = _attempt_nothing  # the former may refer to this, or to much else
        if self.work is not None:
            self.work.cancel()
            self.work = None  # a cycle of references would keep its outcome in memory


def _attempt_nothing(is_last: bool) -> list[Part] | None:
    """Stand in for the attempt of a response that is complete or dropped."""
    return None


class Purgatory(Generic[Owner]):
    """The delayed responses of one processor, with their deadlines and owners."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[DelayedResponse, Owner]] = {}  # by number
        self._deadlines: list[tuple[float, int]] = []
        """A heap; it has numbers, not responses, as most complete long before their deadline."""
        self._next_number = itertools.count()
        self.woken: deque[DelayedResponse] = deque()  # those that `take_woken` would return
        self.counts = [DelayCounts() for _ in DelayKind]  # by `DelayKind`

    def __len__(self) -> int:
        return len(self._kept)

    def add(
        self, delayed: DelayedResponse, owner: Owner, wake: Callable[[DelayedResponse], None]
    ) -> bool:
        """Keep a response until it is complete; return False if it is complete already."""
        delayed.watch(wake)
        try:
            if delayed.attempt(is_last=False):  # after that no advance of a log is missed
                return False
        except BaseException:
            delayed.forget()
            raise
        delayed.kept_at_s = time.perf_counter()
        delayed.number = next(self._next_number)
        self._kept[delayed.number] = delayed, owner
        self._watch_deadline(delayed)
        if len(self._deadlines) > 2 * len(self._kept) + 64:
            self._deadlines = [one for one in self._deadlines if one[1] in self._kept]
            heapq.heapify(self._deadlines)
        return True

    def remove(self, delayed: DelayedResponse) -> float:
        """Remove a response that is complete, or whose connection closed; return the time."""
        now_s = time.perf_counter()
        if self._kept.pop(delayed.number, None) is not None and delayed.parts is not None:
            self.counts[delayed.kind].waits.record(now_s - delayed.kept_at_s)
        return now_s

    def owner_of(self, delayed: DelayedResponse) -> Owner | None:
        """Return the connection of a response, None if it is not kept any more."""
        kept = self._kept.get(delayed.number)
        return None if kept is None else kept[1]

    def all(self) -> list[DelayedResponse]:
        """Return all that are kept; callable from any thread."""
        return [delayed for delayed, _ in list(self._kept.values())]

    def note_woken(self, delayed: DelayedResponse) -> None:
        """Have a response returned by `take_woken`; callable from any thread."""
        if delayed.is_woken:
            return
        delayed.is_woken = True
        if delayed.kind is DelayKind.READ:
            self.woken.append(delayed)
        else:
            self.woken.appendleft(delayed)

    def take_woken(self) -> list[DelayedResponse]:
        """Return those woken since the last call, of consumers' reads only some, and last."""
        taken: dict[DelayedResponse, None] = {}  # two threads may wake one at the same time
        while self.woken and (len(taken) < _AT_A_TIME or self.woken[0].kind is not DelayKind.READ):
            delayed = self.woken.popleft()
            delayed.is_woken = False  # before the attempt: what comes after this wakes it again
            taken[delayed] = None
        return list(taken)

    @property
    def deadline_count(self) -> int:
        """Return how many deadlines are kept, also those of complete responses."""
        return len(self._deadlines)

    @property
    def next_deadline_s(self) -> float | None:
        """Return the monotonic time of the next deadline; its response may be complete."""
        return self._deadlines[0][0] if self._deadlines else None

    def _watch_deadline(self, delayed: DelayedResponse) -> None:
        heapq.heappush(self._deadlines, (delayed.deadline_s, delayed.number))

    def take_due(self, now_s: float) -> list[DelayedResponse]:
        """Return some of those whose deadline has passed; `note_expired` must follow."""
        due: list[DelayedResponse] = []
        while len(due) < _AT_A_TIME and self._deadlines and self._deadlines[0][0] <= now_s:
            kept = self._kept.get(heapq.heappop(self._deadlines)[1])
            if kept is not None:
                due.append(kept[0])
        return due

    def note_expired(self, due: Sequence[DelayedResponse]) -> None:
        """Take note that those due were attempted for the last time; some may be put off."""
        for delayed in due:
            if delayed.number in self._kept:  # put off, or left to the next turn
                self._watch_deadline(delayed)
            elif delayed.parts is not None:
                self.counts[delayed.kind].expired += 1
