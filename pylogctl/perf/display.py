"""What a measurement shows while it runs: one row for each interval, on standard error.

A terminal gets a table that is redrawn in place and taken away at the end, a pipe gets lines.
SIGUSR1 asks for a line at once.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pylogctl.cli.context import Environment
from pylogctl.cli.progress import wants_progress
from pylogctl.cli.units import format_count, format_duration
from pylogctl.perf.measure import MIB, Counted, Tally, latencies_ms

_SHOWN_ROWS = 10
_HEADINGS = ("TIME", "MESSAGES", "MSG/S", "MIB/S", "P50", "P99", "MAX")


class Interval(NamedTuple):
    """What was counted from one moment to another; `at_s` is the later one, since the start."""

    at_s: float
    seconds: float
    message_count: int
    payload_bytes: int
    latencies_ms: Mapping[str, float | None]

    @classmethod
    def of(cls, at_s: float, seconds: float, counted: Counted) -> Interval:
        """Return the interval in which so much was counted."""
        latencies = latencies_ms(counted.latencies)
        return cls(at_s, seconds, counted.message_count, counted.payload_bytes, latencies)

    @property
    def messages_per_s(self) -> float:
        """Return the rate in messages."""
        return self.message_count / self.seconds

    @property
    def mib_per_s(self) -> float:
        """Return the rate in payload."""
        return self.payload_bytes / MIB / self.seconds


class Intervals:
    """Cuts a measurement into intervals and shows each.

    Args:
        env: where they are shown.
        every_s: how long an interval is, above 0.
    """

    def __init__(self, env: Environment, every_s: float) -> None:
        self.done: list[Interval] = []
        """All intervals so far."""
        self._env = env
        self._every_s = every_s
        self._started_s: float | None = None
        self._last_s = 0.0
        self._before = Counted.of(())
        self._recent: deque[Interval] = deque(maxlen=_SHOWN_ROWS)
        self._is_live = wants_progress(env)
        self._is_silent = env.settings.progress == "never"
        self._live: Any = None
        self._line_now = False

    def tick(self, tallies: Sequence[Tally]) -> None:
        """Look at the counts; show a row when an interval is over."""
        now_s = self._env.clock.monotonic_s()
        if self._started_s is None:
            self._started_s = self._last_s = now_s
        is_due = now_s - self._last_s >= self._every_s
        if not (is_due or self._line_now):
            return
        counted = Counted.of(tallies)
        if self._line_now:
            self._line_now = False
            elapsed_s = max(now_s - self._started_s, 1e-9)
            self._env.report(_line(Interval.of(elapsed_s, elapsed_s, counted)))
        if is_due:
            seconds = now_s - self._last_s
            new = Interval.of(now_s - self._started_s, seconds, counted.since(self._before))
            self._last_s, self._before = now_s, counted
            self.done.append(new)
            self._show(new)

    def ask_for_line(self, *_: object) -> None:
        """Have the state written as a line with the next tick; runs as a signal handler."""
        self._line_now = True

    def close(self) -> None:
        """Take the table away."""
        if self._live is not None:
            self._live.stop()

    def _show(self, new: Interval) -> None:
        if self._is_live:
            self._recent.append(new)
            self._draw()
        elif not self._is_silent:
            self._env.note(_line(new))

    def _draw(self) -> None:
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            color = self._env.use_color(stderr=True)
            console = Console(
                file=self._env.streams.stderr, force_terminal=True, no_color=not color
            )
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(_table(self._recent), refresh=True)


def _cells(interval: Interval) -> list[str]:
    times = [interval.latencies_ms[name] for name in ("p50_ms", "p99_ms", "max_ms")]
    return [
        format_duration(interval.at_s),
        f"{interval.message_count}",
        format_count(interval.messages_per_s),
        f"{interval.mib_per_s:.1f}",
        *("-" if one is None else f"{one:.2f}ms" for one in times),
    ]


def _line(interval: Interval) -> str:
    at, messages, rate, mib, p50, p99, longest = _cells(interval)
    return (
        f"{at}: {messages} messages, {rate} msg/s, {mib} MiB/s, p50 {p50}, p99 {p99}, max {longest}"
    )


def _table(rows: Iterable[Interval]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*_cells(row))
    return table


@contextmanager
def intervals(env: Environment, every_s: float) -> Iterator[Intervals]:
    """Show the intervals of a block; see `Intervals`."""
    shown = Intervals(env, every_s)
    before = signal.signal(signal.SIGUSR1, shown.ask_for_line)
    try:
        yield shown
    finally:
        signal.signal(signal.SIGUSR1, before)
        shown.close()
