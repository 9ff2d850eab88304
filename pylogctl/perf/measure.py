"""What measurements of load have in common: limits, latencies, threads and the result.

Knows neither brokers nor commands. Counts are written by one thread each and read by others at any
time, so that counting takes no lock.
"""

from __future__ import annotations

import math
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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


class Latencies:
    """How often something took how long, within 1 %, in memory that does not grow."""

    __slots__ = ("_counts", "max_s")

    def __init__(self) -> None:
        self._counts = [0] * _BUCKET_COUNT
        self.max_s = 0.0
        """The longest, exactly."""

    def add(self, seconds: float) -> None:
        """Count one duration, taken as an hour at most and as a microsecond at least."""
        microseconds = min(max(seconds * 1e6, 1.0), _LONGEST_US)
        self._counts[int(math.log(microseconds) * _BUCKETS_PER_E)] += 1
        self.max_s = max(self.max_s, seconds)

    @property
    def count(self) -> int:
        """Return how many durations were counted."""
        return sum(self._counts)

    def percentile_s(self, percent: float) -> float | None:
        """Return a duration that so many percent do not exceed; None if there are none.

        Args:
            percent: above 0, at most 100.
        """
        wanted = math.ceil(self.count * percent / 100)
        seen = 0
        for bucket, count in enumerate(self._counts):
            seen += count
            if seen >= wanted > 0:
                return min(math.exp((bucket + 1) / _BUCKETS_PER_E) / 1e6, self.max_s)
        return None

    def plus(self, other: Latencies) -> Latencies:
        """Return all durations of both."""
        both = Latencies()
        both._counts = [a + b for a, b in zip(self._counts, other._counts, strict=True)]
        both.max_s = max(self.max_s, other.max_s)
        return both

    def since(self, earlier: Latencies) -> Latencies:
        """Return the durations counted since an earlier state; the longest is within 1 % then."""
        new = Latencies()
        new._counts = [a - b for a, b in zip(self._counts, earlier._counts, strict=True)]
        new.max_s = self.max_s
        new.max_s = new.percentile_s(100) or 0.0
        return new


def latencies_ms(latencies: Latencies) -> dict[str, float | None]:
    """Return what is told of latencies, in milliseconds; None where there are none."""
    found = {name: latencies.percentile_s(percent) for name, percent in _PERCENTILES}
    return {name: None if s is None else round(s * 1000, 3) for name, s in found.items()}


class Tally:
    """What one thread has counted so far; `last_s` is when, on the monotonic clock."""

    __slots__ = ("last_s", "latencies", "message_count", "payload_bytes")

    def __init__(self) -> None:
        self.message_count = 0
        self.payload_bytes = 0
        self.latencies = Latencies()
        self.last_s = 0.0

    def add(self, message_count: int, payload_bytes: int) -> None:
        """Count messages that are done."""
        self.message_count += message_count
        self.payload_bytes += payload_bytes
        self.last_s = time.monotonic()


class Counted(NamedTuple):
    """What some threads have counted together."""

    message_count: int
    payload_bytes: int
    latencies: Latencies

    @classmethod
    def of(cls, tallies: Iterable[Tally]) -> Counted:
        """Return the sum of what threads have counted so far."""
        total = cls(0, 0, Latencies())
        for one in tallies:
            total = cls(
                total.message_count + one.message_count,
                total.payload_bytes + one.payload_bytes,
                total.latencies.plus(one.latencies),
            )
        return total

    def since(self, earlier: Counted) -> Counted:
        """Return what was counted since an earlier state."""
        return Counted(
            self.message_count - earlier.message_count,
            self.payload_bytes - earlier.payload_bytes,
            self.latencies.since(earlier.latencies),
        )


class Budget:
    """How many messages are still to be handled, shared by threads.

    Args:
        message_count: None for no limit.
    """

    def __init__(self, message_count: int | None) -> None:
        self._left = message_count
        self._lock = threading.Lock()

    def take(self, wanted: int) -> int:
        """Return how many of the wanted messages may be handled."""
        if self._left is None:
            return wanted
        with self._lock:
            granted = min(wanted, self._left)
            self._left -= granted
        return granted

    @property
    def is_spent(self) -> bool:
        """Say whether no message is left to handle."""
        return self._left == 0


class Halt:
    """Whether to stop: a signal came, the time is up, or a thread failed.

    Args:
        is_interrupted: says whether a signal came.
    """

    def __init__(self, is_interrupted: Callable[[], bool]) -> None:
        self._is_interrupted = is_interrupted
        self._deadline_s = math.inf
        self._failed = threading.Event()

    def set_duration(self, seconds: float | None) -> None:
        """Have the time up in so many seconds from now, or never."""
        self._deadline_s = math.inf if seconds is None else time.monotonic() + seconds

    def fail(self) -> None:
        """Have all threads stop."""
        self._failed.set()

    def __call__(self) -> bool:
        """Say whether to stop."""
        return (
            self._failed.is_set() or self._is_interrupted() or time.monotonic() >= self._deadline_s
        )

    def wait(self, seconds: float) -> None:
        """Wait for so long, less if it is time to stop before."""
        give_up_s = time.monotonic() + seconds
        while not self() and (left_s := give_up_s - time.monotonic()) > 0:
            self._failed.wait(min(left_s, _TICK_S))


def run_threads(
    work: Sequence[Callable[[], None]], halt: Halt, on_tick: Callable[[], None]
) -> None:
    """Run functions on a thread each until all return.

    Args:
        work: each returns soon once `halt` says so.
        halt: is made to say so when one of them fails.
        on_tick: called in this thread at the start and about ten times a second.

    Raises:
        Exception: the first that one of them raised.
    """
    errors: list[Exception] = []

    def run(one: Callable[[], None]) -> None:
        try:
            one()
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            errors.append(error)
            halt.fail()

    threads = [
        threading.Thread(target=run, args=(one,), name=f"load-{number}", daemon=True)
        for number, one in enumerate(work)
    ]
    on_tick()
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_TICK_S)
            on_tick()
    if errors:
        raise errors[0]


@dataclass(frozen=True, slots=True)
class Result:
    """What a measurement gave.

    `seconds` are those of the clock on the wall, `cpu_s` of the processors, for this process;
    `peak_rss_bytes` is the most memory it ever had. `log_bytes` is what the messages take in logs,
    None where nobody looked.
    """

    counted: Counted
    started_ms: int
    seconds: float
    cpu_s: float
    peak_rss_bytes: int
    log_bytes: int | None = None

    @property
    def messages_per_s(self) -> float:
        """Return the rate in messages."""
        return self.counted.message_count / max(self.seconds, 1e-9)

    @property
    def mib_per_s(self) -> float:
        """Return the rate in payload."""
        return self.counted.payload_bytes / MIB / max(self.seconds, 1e-9)

    @property
    def overhead_bytes(self) -> float | None:
        """Return what a message takes in its log beyond its payload; below 0 if compressed."""
        if self.log_bytes is None or not self.counted.message_count:
            return None
        return (self.log_bytes - self.counted.payload_bytes) / self.counted.message_count


def cpu_s() -> float:
    """Return the processor time that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_rss_bytes() -> int:
    """Return the most memory that this process ever had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
