"""Windows in time for a consumer: the messages of each key, without Spark.

    from pylogctl import windows

    minutes = windows.tumbling(60, time=time_of, key=user_of, lateness=10)
    for message in group:
        for closed in minutes.add(message):
            print(closed.start, closed.key, len(closed.messages))

The rules are those of `pylogctl pipeline window`. Windows are aligned to 1970, UTC, and have their
start but not their end. The watermark is `lateness` behind the newest time that was added; a window
is given once the watermark has reached its end, and a message whose window was given is late. Spark
moves its watermark between batches, this module with each message: a message can be late here that
is not late there, never the reverse.

Open windows are in memory, with their messages: about what arrives in `lateness` and one window. A
program that ends loses them, and has to read their messages again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from broker.api.values import callable_of, number_of
from broker.errors import ArgumentError
from broker.protocol.codec import Message

KeyOf = Callable[[Message], Hashable]
TimeOf = Callable[[Message], datetime | None]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_US = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST_US = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_MAX_S = 1e10


def _no_key(_: Message) -> None:
    return None


def _timestamp_of(message: Message) -> datetime | None:
    return message.timestamp


class Window(NamedTuple):
    """A closed window of one key.

    `start` is in it, `end` is not. `messages` are as they were added; those of sessions that a
    later message joined follow one session after the other.
    """

    start: datetime
    end: datetime
    key: Hashable
    messages: list[Message]


@dataclass(eq=False, slots=True)
class _Open:
    """An open window, in microseconds since 1970."""

    start: int
    end: int
    key: Hashable
    group: Hashable  # of the windows that one message may join to one
    messages: list[Message] = field(default_factory=list)


class Windows:
    """Sorts messages into windows; made by `tumbling`, `sliding` and `sessions`, for one thread.

    Attributes:
        late_count: messages that are missing in a window, as it was given before.
        timeless_count: messages without a time, or with one at the end of the calendar, which are
            in no window.
    """

    def __init__(
        self, size_us: int, slide_us: int | None, lateness: float, key: KeyOf, time: TimeOf
    ) -> None:
        self._size_us = size_us
        self._slide_us = slide_us  # None: sessions
        self._lateness_us = _micros("lateness", lateness, 0)
        callable_of("key", key)
        callable_of("time", time)
        self._key_of, self._time_of = key, time
        self._watermark_us: float = -math.inf
        self._open: dict[Hashable, list[_Open]] = {}
        self._by_end: list[tuple[int, int, int, _Open]] = []  # a heap
        self._numbers = count()  # as windows cannot be compared
        self.late_count = 0
        self.timeless_count = 0

    @property
    def open_count(self) -> int:
        """Return how many windows are open."""
        return sum(map(len, self._open.values()))

    def add(self, message: Message) -> list[Window]:
        """Add a message to its windows, and return those that its time closes, by their end.

        Raises:
            TypeError: its time is no `datetime` with a zone.
        """
        time_us = self._micros_of(message)
        if time_us is None:
            self.timeless_count += 1
            return []
        key, is_late = self._key_of(message), False
        for start in self._starts(time_us):
            if start + self._size_us <= self._watermark_us:
                is_late = True
            else:
                self._window_at(start, key).messages.append(message)
        self.late_count += is_late
        self._watermark_us = max(self._watermark_us, time_us - self._lateness_us)
        return self._closed()

    def add_all(self, messages: Iterable[Message]) -> Iterator[Window]:
        """Add messages, such as a reader, and give each window as it closes, at the end all."""
        for message in messages:
            yield from self.add(message)
        yield from self.close()

    def close(self) -> list[Window]:
        """Close the windows that are open, and return them; what is added later is late."""
        self._watermark_us = math.inf
        return self._closed()

    def _micros_of(self, message: Message) -> int | None:
        time = self._time_of(message)
        if time is None:
            return None
        try:
            time_us = (time - _EPOCH) // _MICROSECOND
        except TypeError:
            raise TypeError(f"give the time as a datetime with a zone, not {time!r}") from None
        is_of_calendar = _FIRST_US + self._size_us <= time_us <= _LAST_US - self._size_us
        return time_us if is_of_calendar else None

    def _starts(self, time_us: int) -> Iterable[int]:
        """Return the starts of the windows that have a time, the newest first."""
        if self._slide_us is None:
            return (time_us,)
        return range(time_us - time_us % self._slide_us, time_us - self._size_us, -self._slide_us)

    def _window_at(self, start: int, key: Hashable) -> _Open:
        """Return the window of a key that has a start; sessions that it joins become one."""
        group = key if self._slide_us is None else (key, start)
        end = start + self._size_us
        windows = self._open.setdefault(group, [])
        touched = [one for one in windows if one.start <= end and start <= one.end]
        if not touched:
            window = _Open(start, end, key, group)
            windows.append(window)
            self._push(window)
            return window
        window = touched[0]
        for other in touched[1:]:
            window.messages += other.messages
            window.start, window.end = min(window.start, other.start), max(window.end, other.end)
            windows.remove(other)
        window.start, window.end = min(window.start, start), max(window.end, end)
        return window

    def _push(self, window: _Open) -> None:
        heappush(self._by_end, (window.end, window.start, next(self._numbers), window))

    def _closed(self) -> list[Window]:
        closed = []
        while self._by_end and self._by_end[0][0] <= self._watermark_us:
            end, start, _, window = heappop(self._by_end)
            windows = self._open.get(window.group, [])
            if window not in windows:
                continue  # it became part of another one
            if (window.end, window.start) != (end, start):  # it has grown
                self._push(window)
                continue
            windows.remove(window)
            if not windows:
                del self._open[window.group]
            since, until = (_EPOCH + one * _MICROSECOND for one in (start, end))
            closed.append(Window(since, until, window.key, window.messages))
        return closed


def tumbling(
    size: float, *, lateness: float = 0.0, key: KeyOf = _no_key, time: TimeOf = _timestamp_of
) -> Windows:
    """Return windows of one length, one after the other.

    Args:
        size: seconds, from 0.001 on.
        lateness: seconds that a message may be behind the newest one; partitions that are read one
            after another are so far apart.
        key: gives what has windows of its own; without it all messages share them.
        time: gives the time of a message, or None; by default `message.timestamp`, which format
            0.7 leaves None.

    Raises:
        ArgumentError: a number is out of range.
    """
    return sliding(size, size, lateness=lateness, key=key, time=time)


def sliding(
    size: float,
    slide: float,
    *,
    lateness: float = 0.0,
    key: KeyOf = _no_key,
    time: TimeOf = _timestamp_of,
) -> Windows:
    """Return windows of one length that overlap: a message is in each that has its time.

    The other arguments are as for `tumbling`.

    Args:
        size: seconds, from 0.001 on.
        slide: seconds between the starts of two windows, from 0.001 to `size`.
    """
    size_us, slide_us = _micros("size", size, 0.001), _micros("slide", slide, 0.001)
    if slide_us > size_us:
        raise ArgumentError(f"slide is at most the size, {size:g}, not {slide:g}")
    return Windows(size_us, slide_us, lateness, key, time)


def sessions(
    gap: float, *, lateness: float = 0.0, key: KeyOf = _no_key, time: TimeOf = _timestamp_of
) -> Windows:
    """Return windows that end where a key has had no message for some time.

    The other arguments are as for `tumbling`.

    Args:
        gap: seconds, from 0.001 on; the end of a session is its last time and this.
    """
    return Windows(_micros("gap", gap, 0.001), None, lateness, key, time)


def _micros(name: str, seconds: float, least: float) -> int:
    number_of(name, seconds, least)
    if seconds > _MAX_S:
        raise ArgumentError(f"{name} is at most {_MAX_S:g} seconds, not {seconds:g}")
    return round(seconds * 1_000_000)
