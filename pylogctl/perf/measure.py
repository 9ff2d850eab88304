"""Measurements of load: limits, latencies, threads, results, and the intervals shown meanwhile.

Each thread writes counts of its own, which other threads read at any time: counting takes no lock.

Intervals are shown on standard error: on a terminal as a table that is redrawn in place and
removed at the end, in a pipe as lines. SIGUSR1 prints a line at once.
"""

from __future__ import annotations

import math
import resource
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from broker.clock import Clock
from broker.threads import start_once
from broker.units import format_count, format_duration
from pylogctl.cli.environment import Environment
from pylogctl.cli.process import StopRequest, graceful_stop
from pylogctl.cli.progress import wants_progress
from pylogctl.cli.signals import installed

_BUCKETS_PER_E = 1 / math.log(1.01)
_LONGEST_US = 3.6e9
_BUCKET_COUNT = int(math.log(_LONGEST_US) * _BUCKETS_PER_E) + 2
_TICK_S = 0.1
_PERCENTILES = (
    ("p50_ms", 50),
    ("p90_ms", 90),
    ("p95_ms", 95),
    ("p99_ms", 99),
    ("p99_9_ms", 99.9),
    ("max_ms", 100),
)
MIB = 1 << 20
_SHOWN_ROWS = 10
_HEADINGS = ("TIME", "MESSAGES", "MSG/S", "MIB/S", "P50", "P99", "MAX")


class Latencies:
    """A histogram of durations, precise to 1 %, of constant size; `max_s` is exact."""

    __slots__ = ("_counts", "max_s")

    def __init__(self) -> None:
        self._counts = [0] * _BUCKET_COUNT
        self.max_s = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration, limited to between a microsecond and an hour."""
        microseconds = min(max(seconds * 1e6, 1.0), _LONGEST_US)
        self._counts[int(math.log(microseconds) * _BUCKETS_PER_E)] += 1
        self.max_s = max(self.max_s, seconds)

    @property
    def count(self) -> int:
        """Return the number of durations."""
        return sum(self._counts)

    def percentile_s(self, percent: float) -> float | None:
        """Return the duration that `percent` (above 0, at most 100) do not exceed, or None."""
        wanted = math.ceil(self.count * percent / 100)
        seen = 0
        for bucket, count in enumerate(self._counts):
            seen += count
            if seen >= wanted > 0:
                return min(math.exp((bucket + 1) / _BUCKETS_PER_E) / 1e6, self.max_s)
        return None

    def plus(self, other: Latencies) -> Latencies:
        """Return the durations of both histograms."""
        both = Latencies()
        both._counts = [a + b for a, b in zip(self._counts, other._counts, strict=True)]
        both.max_s = max(self.max_s, other.max_s)
        return both

    def since(self, earlier: Latencies) -> Latencies:
        """Return the durations counted since an earlier state; the longest is precise to 1 %."""
        new = Latencies()
        new._counts = [a - b for a, b in zip(self._counts, earlier._counts, strict=True)]
        new.max_s = self.max_s
        new.max_s = new.percentile_s(100) or 0.0
        return new


def latencies_ms(latencies: Latencies) -> dict[str, float | None]:
    """Return the percentiles that are reported, in milliseconds; None if there are none."""
    found = {name: latencies.percentile_s(percent) for name, percent in _PERCENTILES}
    return {name: None if s is None else round(s * 1000, 3) for name, s in found.items()}


@dataclass(slots=True)
class Tally:
    """The counts of one thread, or of some; `last_s` is the monotonic time of the last one."""

    last_s: float = 0.0
    message_count: int = 0
    payload_bytes: int = 0
    latencies: Latencies = field(default_factory=Latencies)

    @classmethod
    def total(cls, tallies: Iterable[Tally]) -> Tally:
        """Return the sum of the counts of threads."""
        total = cls()
        for one in tallies:
            total.message_count += one.message_count
            total.payload_bytes += one.payload_bytes
            total.latencies = total.latencies.plus(one.latencies)
        return total

    def since(self, earlier: Tally) -> Tally:
        """Return the counts since an earlier state."""
        return Tally(
            self.last_s,
            self.message_count - earlier.message_count,
            self.payload_bytes - earlier.payload_bytes,
            self.latencies.since(earlier.latencies),
        )

    def add(self, message_count: int, payload_bytes: int) -> None:
        """Count messages."""
        self.message_count += message_count
        self.payload_bytes += payload_bytes
        self.last_s = time.monotonic()


class Budget:
    """The number of messages that threads may still send or read; None for no limit."""

    def __init__(self, message_count: int | None) -> None:
        self._left = message_count
        self._lock = threading.Lock()

    def take(self, wanted: int) -> int:
        """Take up to `wanted` messages from the budget; return how many were granted."""
        if self._left is None:
            return wanted
        with self._lock:
            granted = min(wanted, self._left)
            self._left -= granted
        return granted

    @property
    def is_spent(self) -> bool:
        """Return whether no message is left."""
        return self._left == 0


class Halt:
    """Whether threads must stop: after a signal, the duration, or the failure of a thread.

    The result of a measurement that ends early covers the messages sent or read until then.
    """

    def __init__(self, is_interrupted: Callable[[], bool]) -> None:
        self._is_interrupted = is_interrupted
        self._deadline_s = math.inf
        self._failed = threading.Event()

    def set_duration(self, seconds: float | None) -> None:
        """Limit the duration to `seconds` from now; None for no limit."""
        self._deadline_s = math.inf if seconds is None else time.monotonic() + seconds

    def fail(self) -> None:
        """Make all threads stop."""
        self._failed.set()

    def __call__(self) -> bool:
        """Return whether to stop."""
        return (
            self._failed.is_set() or self._is_interrupted() or time.monotonic() >= self._deadline_s
        )

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`, or until threads must stop."""
        give_up_s = time.monotonic() + seconds
        while not self() and (left_s := give_up_s - time.monotonic()) > 0:
            self._failed.wait(min(left_s, _TICK_S))


def run_threads(
    work: Sequence[Callable[[], None]], halt: Halt, on_tick: Callable[[], None]
) -> None:
    """Run each function in a thread until all return; raise the first exception of one.

    Args:
        work: each must return soon after `halt` returns True.
        halt: made to return True when a function fails.
        on_tick: called in this thread at the start and about ten times a second.
    """
    errors: list[Exception] = []

    def run(one: Callable[[], None]) -> None:
        try:
            one()
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(error)
            halt.fail()

    on_tick()
    threads = [
        start_once(partial(run, one), name=f"load-{number}") for number, one in enumerate(work)
    ]
    for thread in threads:
        while thread.is_alive():
            thread.join(_TICK_S)
            on_tick()
    if errors:
        raise errors[0]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a measurement."""

    counted: Tally
    started_ms: int
    seconds: float  # elapsed
    cpu_s: float  # processor time of this process
    peak_rss_bytes: int
    log_bytes: int | None = None  # growth of the logs, None if not measured

    @property
    def messages_per_s(self) -> float:
        """Return the messages per second."""
        return self.counted.message_count / max(self.seconds, 1e-9)

    @property
    def mib_per_s(self) -> float:
        """Return the MiB of payload per second."""
        return self.counted.payload_bytes / MIB / max(self.seconds, 1e-9)

    @property
    def overhead_bytes(self) -> float | None:
        """Return the bytes of log per message beyond its payload; below 0 if compressed."""
        if self.log_bytes is None or not self.counted.message_count:
            return None
        beyond_bytes = self.log_bytes - self.counted.payload_bytes
        return round(beyond_bytes / self.counted.message_count, 2)


def cpu_s() -> float:
    """Return the processor time used by this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_rss_bytes() -> int:
    """Return the peak memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@dataclass(slots=True)
class Measurement:
    """What ends the threads that are measured, and shows their counts meanwhile."""

    clock: Clock
    stop: StopRequest
    halt: Halt
    shown: Intervals

    def run(
        self,
        work: Sequence[Callable[[], None]],
        tallies: Sequence[Tally],
        duration_s: float | None = None,
    ) -> Result:
        """Measure functions until all return; `duration_s` is None for no limit.

        See `run_threads`. `tallies` has what they count.
        """
        started_ms, started_s, started_cpu_s = self.clock.time_ms(), time.monotonic(), cpu_s()
        self.halt.set_duration(duration_s)
        run_threads(work, self.halt, partial(self.shown.tick, tallies))
        seconds, used_cpu_s = time.monotonic() - started_s, cpu_s() - started_cpu_s
        return Result(Tally.total(tallies), started_ms, seconds, used_cpu_s, peak_rss_bytes())


class Intervals:
    """Divides a measurement into intervals of `every_s` seconds and shows each; see the module."""

    def __init__(self, env: Environment, every_s: float) -> None:
        self._env = env
        self._every_s = every_s
        self._started_s: float | None = None
        self._last_s = 0.0
        self._before = Tally.total(())
        self._recent: deque[list[str]] = deque(maxlen=_SHOWN_ROWS)
        self._is_live = wants_progress(env)
        self._live: Any = None
        self._line_now = False

    def tick(self, tallies: Sequence[Tally]) -> None:
        """Show a row if an interval has ended."""
        now_s = self._env.clock.monotonic_s()
        if self._started_s is None:
            self._started_s = self._last_s = now_s
        is_due = now_s - self._last_s >= self._every_s
        if not (is_due or self._line_now):
            return
        counted = Tally.total(tallies)
        if self._line_now:
            self._line_now = False
            elapsed_s = max(now_s - self._started_s, 1e-9)
            self._env.report(_line(_cells(elapsed_s, elapsed_s, counted)))
        if is_due:
            new = counted.since(self._before)
            cells = _cells(now_s - self._started_s, now_s - self._last_s, new)
            self._last_s, self._before = now_s, counted
            if self._is_live:
                self._recent.append(cells)
                self._draw()
            elif self._env.settings.progress != "never":
                self._env.note(_line(cells))

    def ask_for_line(self, *_: object) -> None:
        """Print a line with the next tick (signal handler)."""
        self._line_now = True

    def close(self) -> None:
        """Remove the table."""
        if self._live is not None:
            self._live.stop()

    def _draw(self) -> None:
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            stderr, no_color = self._env.streams.stderr, not self._env.use_color(stderr=True)
            console = Console(file=stderr, force_terminal=True, no_color=no_color)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(_table(self._recent), refresh=True)


def _cells(at_s: float, seconds: float, counted: Tally) -> list[str]:
    """Return the cells of an interval of some seconds that ended `at_s` after the start."""
    found = latencies_ms(counted.latencies)
    times = [found[name] for name in ("p50_ms", "p99_ms", "max_ms")]
    return [
        format_duration(at_s),
        f"{counted.message_count}",
        format_count(counted.message_count / seconds),
        f"{counted.payload_bytes / MIB / seconds:.1f}",
        *("-" if one is None else f"{one:.2f}ms" for one in times),
    ]


def _line(cells: Sequence[str]) -> str:
    at, messages, rate, mib, p50, p99, longest = cells
    return (
        f"{at}: {messages} messages, {rate} msg/s, {mib} MiB/s, p50 {p50}, p99 {p99}, max {longest}"
    )


def _table(rows: Iterable[Sequence[str]]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


@contextmanager
def show_intervals(env: Environment, every_s: float) -> Iterator[Intervals]:
    """Show the intervals of a measurement in the block."""
    shown = Intervals(env, every_s)
    with closing(shown), installed({signal.SIGUSR1: shown.ask_for_line}):
        yield shown


@contextmanager
def measured(env: Environment, every_s: float) -> Iterator[Measurement]:
    """Give a measurement that a signal ends, and show its intervals in the block."""
    with graceful_stop() as stop, show_intervals(env, every_s) as shown:
        yield Measurement(env.clock, stop, Halt(lambda: stop.is_set), shown)
