"""Calls into the JVM that a signal interrupts, without a JVM."""

from __future__ import annotations

import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from broker.spark.runtime.interruption import finished, make_interruptible


def interrupt() -> None:
    """Send SIGINT to the main thread, which is who gets the signals of a process."""
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGINT)


class Gateway:
    """Has a client that blocks on the command `wait`; others it answers with the thread's name."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self._gateway_client: Any = SimpleNamespace(
            send_command=self._send, get_thread_connection=lambda: None
        )
        self.entered: list[str] = []
        make_interruptible(self, lambda: self.entered.append(threading.current_thread().name))

    def call(self, command: str) -> str:
        answer: str = self._gateway_client.send_command(command)
        return answer

    def _send(self, command: str) -> str:
        if command == "fail":
            raise ValueError(command)
        if command == "wait":
            interrupt()
            self.released.wait()
        return threading.current_thread().name


def test_calls_when_of_the_main_thread_then_share_one_beside_it() -> None:
    gateway = Gateway()

    first, second = gateway.call("one"), gateway.call("two")

    assert first == second != threading.main_thread().name


def test_calls_when_of_another_thread_then_stay_on_it() -> None:
    gateway = Gateway()
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(gateway.call("one")), name="other")
    thread.start()
    thread.join()

    assert found == ["other"]


def test_call_when_it_fails_then_raises_and_the_next_one_works() -> None:
    gateway = Gateway()

    with pytest.raises(ValueError, match="fail"):
        gateway.call("fail")

    assert gateway.call("one")


def test_call_when_interrupted_then_ends_at_once_and_the_next_one_does_not_wait_for_it() -> None:
    gateway = Gateway()
    try:
        with pytest.raises(KeyboardInterrupt):
            gateway.call("wait")
        assert gateway.call("one") == gateway.entered[-1]
        assert len(gateway.entered) == 2
    finally:
        gateway.released.set()


def test_work_when_interrupted_then_is_finished_and_undone() -> None:
    undone: list[str] = []

    def work() -> str:
        interrupt()
        return "made"

    with pytest.raises(KeyboardInterrupt):
        finished(work, undone.append)

    assert undone == ["made"]


def test_work_when_it_fails_then_there_is_nothing_to_undo() -> None:
    undone: list[None] = []

    def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        finished(work, undone.append)

    assert undone == []
