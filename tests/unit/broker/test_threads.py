from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue

import pytest

from broker import threads
from broker.threads import LoopThread, start_once
from tests.support.waiting import wait_until


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException | None]]:
    """The exceptions that have ended threads."""
    found: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: found.append(args.exc_value))
    yield found


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the exceptions in the log, whatever its format: Spark gives handlers its own."""
    return [repr(one.exc_info[1]) for one in caplog.records if one.exc_info]


def test_loop_when_it_fails_then_is_logged_and_starts_again(
    ended: list[BaseException | None], caplog: pytest.LogCaptureFixture
) -> None:
    outcomes: SimpleQueue[Exception | None] = SimpleQueue()
    for one in (ValueError("first"), OSError("second"), None):
        outcomes.put(one)

    def loop() -> None:
        if (outcome := outcomes.get()) is not None:
            raise outcome

    thread = LoopThread(loop, name="worker-7")
    thread.start()
    thread.join()
    assert outcomes.empty() and ended == []
    assert caplog.text.count("thread worker-7 failed, and goes on") == 2
    assert logged(caplog) == ["ValueError('first')", "OSError('second')"]


def test_loop_when_it_fails_at_once_each_time_then_the_exception_ends_the_thread(
    ended: list[BaseException | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "MAX_FAILURES", 3)
    failure = ValueError("always")

    def loop() -> None:
        raise failure

    thread = LoopThread(loop, name="worker")
    thread.start()
    thread.join()
    assert ended == [failure]


def test_single_call_when_it_fails_then_is_logged(
    ended: list[BaseException | None], caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("once")

    thread = start_once(fail, name="helper")
    wait_until(lambda: not thread.is_alive(), "the end of the thread")
    assert "helper failed" in caplog.text and logged(caplog) == ["ValueError('once')"]
    assert ended == []
