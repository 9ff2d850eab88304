from __future__ import annotations

import threading
from functools import partial

import pytest

from broker.clock import SystemClock
from broker.errors import StorageError
from broker.log.flusher import Flusher, PeriodicTask
from tests.doubles import FakeClock
from tests.support.waiting import wait_until

DEADLINE_S = 60


class CountingLog:
    def __init__(self) -> None:
        self.flush_count = 0

    def flush(self) -> None:
        self.flush_count += 1

    def has_been_flushed_since(self, flush_count: int) -> bool:
        return self.flush_count > flush_count


class BlockingLog:
    """Its flush waits until let go, so that requests can arrive meanwhile."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.let_go = threading.Semaphore(0)
        self.flush_count = 0

    def flush(self) -> None:
        self.flush_count += 1
        self.entered.release()
        assert self.let_go.acquire(timeout=DEADLINE_S)


class FailingLog:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def flush(self) -> None:
        raise self.error


def test_run_due_when_time_has_not_come_then_nothing(clock: FakeClock) -> None:
    flusher, log = Flusher(clock), CountingLog()
    flusher.schedule(log, clock.monotonic_s() + 1)
    flusher.run_due()
    assert log.flush_count == 0
    clock.advance(1)
    flusher.run_due()
    assert log.flush_count == 1


def test_schedule_when_earlier_than_known_then_earlier_counts_once(clock: FakeClock) -> None:
    flusher, log = Flusher(clock), CountingLog()
    flusher.schedule(log, clock.monotonic_s() + 5)
    flusher.schedule(log, clock.monotonic_s())
    flusher.run_due()
    clock.advance(10)
    flusher.run_due()
    assert log.flush_count == 1


def test_schedule_when_later_than_known_then_known_stays(clock: FakeClock) -> None:
    flusher, log = Flusher(clock), CountingLog()
    flusher.schedule(log, clock.monotonic_s() + 1)
    flusher.schedule(log, clock.monotonic_s() + 5)
    clock.advance(1)
    flusher.run_due()
    assert log.flush_count == 1


@pytest.mark.parametrize("error", [StorageError("disk"), RuntimeError("bug")])
def test_run_due_when_one_log_fails_then_others_are_flushed(
    clock: FakeClock, error: Exception
) -> None:
    flusher, log = Flusher(clock), CountingLog()
    flusher.schedule(FailingLog(error), clock.monotonic_s())
    flusher.schedule(log, clock.monotonic_s())
    flusher.run_due()
    assert log.flush_count == 1


def test_schedule_when_flush_is_running_then_one_more_covers_all_requests() -> None:
    clock = SystemClock()
    flusher, log = Flusher(clock, thread_count=3), BlockingLog()
    flusher.start()
    try:
        flusher.schedule(log, clock.monotonic_s())
        assert log.entered.acquire(timeout=DEADLINE_S)
        for _ in range(5):
            flusher.schedule(log, clock.monotonic_s())
        assert log.flush_count == 1  # never two flushes of one log at a time
        log.let_go.release()
        assert log.entered.acquire(timeout=DEADLINE_S)
        log.let_go.release()
    finally:
        flusher.stop()
    assert log.flush_count == 2


def test_thread_when_deadline_is_ahead_then_flushes_when_it_comes() -> None:
    clock = SystemClock()
    flusher, log = Flusher(clock, thread_count=1), BlockingLog()
    log.let_go.release()
    flusher.start()
    try:
        due_s = clock.monotonic_s() + 0.02
        flusher.schedule(log, due_s)
        assert log.entered.acquire(timeout=DEADLINE_S)
        assert clock.monotonic_s() >= due_s
    finally:
        flusher.stop()


def test_thread_when_another_is_busy_with_what_was_due_first_then_flushes_the_next_in_time() -> (
    None
):
    clock = SystemClock()
    flusher, slow, quick = Flusher(clock, thread_count=2), BlockingLog(), BlockingLog()
    quick.let_go.release()
    flusher.start()
    try:
        flusher.schedule(quick, clock.monotonic_s() + 0.05)
        flusher.schedule(slow, clock.monotonic_s())
        assert slow.entered.acquire(timeout=DEADLINE_S)
        assert quick.entered.acquire(timeout=DEADLINE_S)
    finally:
        slow.let_go.release()
        flusher.stop()


def test_threads_when_logs_are_due_over_and_over_then_none_is_forgotten() -> None:
    clock = SystemClock()
    flusher, logs = Flusher(clock, thread_count=4), [CountingLog() for _ in range(8)]
    flusher.start()
    try:
        for turn in range(300):
            log = logs[turn % len(logs)]
            before = log.flush_count
            flusher.schedule(log, clock.monotonic_s() + 0.1)
            flusher.schedule(log, clock.monotonic_s() + turn % 3 / 1000)
            if turn % 7 == 0:
                wait_until(partial(log.has_been_flushed_since, before), "a flush")
        wait_until(lambda: all(log.flush_count for log in logs), "all flushes")
    finally:
        flusher.stop()


def test_stop_when_idle_then_threads_are_gone() -> None:
    threads = set(threading.enumerate())
    flusher = Flusher(SystemClock(), thread_count=2)
    flusher.start()
    flusher.stop()
    assert set(threading.enumerate()) <= threads


def test_periodic_task_when_its_delays_become_shorter_then_need_not_wait_for_the_former() -> None:
    called = threading.Event()
    task = PeriodicTask("test", called.set, first_delay_s=3600, delay_s=lambda: 3600)
    task.start()
    try:
        task.set_delay(lambda: 0.01)
        assert called.wait(DEADLINE_S)
    finally:
        task.stop()
