"""The process that matches patterns goes when its broker goes, however that ends."""

from __future__ import annotations

import os
import signal

import pytest

from broker.protocol.codec import encode
from tests.integration.broker.server.pattern_processes import is_busy, is_running, pattern_processes
from tests.integration.broker.server.peer import filtered_request
from tests.integration.process.conftest import ProcessFactory
from tests.support.waiting import wait_until

LINES = encode([b"a" * 60 + b"!"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_pattern_process_when_its_broker_ends_then_ends(
    number: signal.Signals, start_process: ProcessFactory
) -> None:
    broker = start_process()
    with broker.peer() as peer:
        peer.publish("t", LINES)
        assert len(peer.read_filtered("t", 0, b"!").runs) == 1
        (pid,) = pattern_processes(broker.pid)
        broker.signal(number)
        broker.wait()
    wait_until(lambda: not is_running(pid), "the end of the process")


def test_pattern_process_when_its_broker_is_killed_during_a_search_then_ends_in_seconds(
    start_process: ProcessFactory,
) -> None:
    broker = start_process()
    with broker.peer() as peer:
        peer.publish("t", LINES)
        peer.send_extension(filtered_request("t", 0, b"(a+)+$"))
        wait_until(lambda: any(map(is_busy, pattern_processes(broker.pid))), "the search")
        (pid,) = pattern_processes(broker.pid)
        broker.kill()
    wait_until(lambda: not is_running(pid), "the end of the process")


def test_pattern_process_when_running_then_ctrl_c_on_the_terminal_is_not_for_it(
    start_process: ProcessFactory,
) -> None:
    broker = start_process()
    with broker.peer() as peer:
        peer.publish("t", LINES)
        peer.read_filtered("t", 0, b"!")
    (pid,) = pattern_processes(broker.pid)
    assert os.getsid(pid) == pid


def test_filtered_read_when_the_broker_process_starts_again_then_goes_on(
    start_process: ProcessFactory,
) -> None:
    first = start_process()
    with first.peer() as peer:
        peer.publish("t", LINES)
        offset = peer.read_filtered("t", 0, b"nothing").next_offset
    first.kill()
    with start_process().peer() as peer:
        peer.publish("t", LINES)
        part = peer.read_filtered("t", offset, b"!")
    assert [run.offset for run in part.runs] == [len(LINES)]
