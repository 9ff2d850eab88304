"""The process that matches patterns: slow ones, and what becomes of a broker when it is killed."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from broker.errors import (
    NO_ERROR,
    PatternTooSlowError,
    RequestTimedOutError,
    UnknownServerError,
)
from broker.protocol.codec import encode
from broker.protocol.responses import FilteredPart, decode_filtered_read_response
from broker.server.broker import Broker
from broker.server.requests import fetch, pattern_filter
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.pattern_processes import is_busy, is_running, pattern_processes
from tests.integration.broker.server.peer import Peer, filtered_request
from tests.support.waiting import wait_until

SLOW = b"(a+)+$"
YES = encode([b"yes"])
EVIL = encode([b"a" * 60 + b"!"])


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill the process over a pattern sooner than a broker does otherwise."""
    monkeypatch.setattr(pattern_filter, "LIMIT_S", 0.3)


@pytest.fixture
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a search go on until the test ends it."""
    monkeypatch.setattr(pattern_filter, "LIMIT_S", 600.0)
    monkeypatch.setattr(pattern_filter, "_RESULT_TIMEOUT_S", 600.0)


_of_others: set[int] = set()  # those of brokers that other tests of this process share


@pytest.fixture(autouse=True)
def leave_out_those_of_others() -> None:
    _of_others.clear()
    _of_others.update(pattern_processes(os.getpid()))


def processes() -> list[int]:
    """The processes of the brokers of the test."""
    return [pid for pid in pattern_processes(os.getpid()) if pid not in _of_others]


def the_process() -> int:
    """The one process of the broker of the test."""
    (pid,) = processes()
    return pid


def receive(peer: Peer) -> FilteredPart:
    (part,) = decode_filtered_read_response(peer.receive_extension())
    return part


def test_process_when_nothing_is_filtered_then_is_not_started(peer: Peer) -> None:
    peer.publish("events", YES)
    peer.read("events", 0)
    assert processes() == []
    peer.read_filtered("events", 0, b"yes")
    assert len(processes()) == 1


def test_pattern_when_too_slow_then_error_says_so_and_others_are_served_meanwhile(
    running_broker: Broker, connect: PeerFactory, short_limit: None
) -> None:
    slow, other = connect(running_broker), connect(running_broker)
    other.publish("evil", EVIL)
    other.publish("events", YES)
    slow.send_extension(filtered_request("evil", 0, SLOW))
    assert other.fetch("events", 0) == (0, YES)
    part = receive(slow)
    assert part.error == PatternTooSlowError.code
    assert part.text.startswith("pattern '(a+)+$' is too slow: evil[0-0] from offset 0 on")
    assert (part.next_offset, part.high_watermark) == (0, len(EVIL))
    assert len(slow.read_filtered("events", 0, b"yes").runs) == 1


def test_pattern_when_too_slow_then_what_was_found_before_comes_with_the_error(
    peer: Peer, short_limit: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_filter, "_CHUNK_BYTES", len(YES))
    monkeypatch.setattr(pattern_filter, "_TURN_S", 60.0)  # the start of the process is part of it
    peer.publish("events", YES + EVIL)
    part = peer.read_filtered("events", 0, SLOW + b"|yes")
    assert [run.offset for run in part.runs] == [0]
    assert (part.error, part.next_offset) == (PatternTooSlowError.code, len(YES))


def test_process_when_killed_idle_then_the_next_read_starts_another(peer: Peer) -> None:
    peer.publish("events", YES)
    peer.read_filtered("events", 0, b"yes")
    first = the_process()
    os.kill(first, signal.SIGKILL)
    part = peer.read_filtered("events", 0, b"yes")
    assert (part.error, len(part.runs)) == (NO_ERROR, 1)
    assert the_process() != first


def test_process_when_killed_over_a_read_twice_then_the_reader_hears_of_it(
    running_broker: Broker, connect: PeerFactory, no_limit: None
) -> None:
    slow, other = connect(running_broker), connect(running_broker)
    other.publish("evil", EVIL)
    slow.send_extension(filtered_request("evil", 0, SLOW))
    killed: list[int] = []
    for _ in range(2):
        wait_until(lambda: any(is_busy(one) for one in processes()), "the search")
        killed.append(the_process())
        os.kill(killed[-1], signal.SIGKILL)
        wait_until(lambda: not is_running(killed[-1]), "its end")
    part = receive(slow)
    assert part.error == UnknownServerError.code
    assert part.text == (
        "the process that matches patterns ended with status -9 over evil[0-0] from offset 0 on"
    )
    assert len(other.read_filtered("evil", 0, b"!").runs) == 1


def test_process_when_it_does_nothing_then_is_replaced(peer: Peer, running_broker: Broker) -> None:
    peer.publish("events", YES)
    peer.read_filtered("events", 0, b"yes")
    child = running_broker._pattern_filter._child
    assert child is not None
    child._socket.settimeout(0.2)
    stopped = the_process()
    os.kill(stopped, signal.SIGSTOP)
    part = peer.read_filtered("events", 0, b"yes")
    assert part.error == RequestTimedOutError.code
    assert "events[0-0] from offset 0 on could not be filtered" in part.text
    assert len(peer.read_filtered("events", 0, b"yes").runs) == 1
    assert not is_running(stopped)


def test_process_when_it_cannot_be_started_then_the_reader_hears_of_it(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer.publish("events", YES)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    part = peer.read_filtered("events", 0, b"yes")
    assert part.error == UnknownServerError.code
    assert part.text == "cannot start the process that matches patterns: No such file or directory"
    monkeypatch.undo()
    assert len(peer.read_filtered("events", 0, b"yes").runs) == 1


def test_search_when_its_turn_does_not_come_in_time_then_the_reader_hears_of_it(
    running_broker: Broker,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
    no_limit: None,
) -> None:
    slow, late = connect(running_broker), connect(running_broker)
    slow.publish("evil", EVIL)
    slow.send_extension(filtered_request("evil", 0, SLOW))
    wait_until(lambda: any(is_busy(one) for one in processes()), "the search")
    monkeypatch.setattr(fetch, "SEARCH_DEADLINE_S", 0.05)
    late.send_extension(filtered_request("evil", 0, b"!"))
    with pytest.raises(RequestTimedOutError, match="were not enough for this search and those"):
        late.receive_extension()


def test_search_when_its_client_has_left_then_is_not_done(
    running_broker: Broker,
    connect: PeerFactory,
    caplog: pytest.LogCaptureFixture,
    no_limit: None,
) -> None:
    first, leaving, last = (connect(running_broker) for _ in range(3))
    first.publish("evil", EVIL)
    first.send_extension(filtered_request("evil", 0, SLOW))
    wait_until(lambda: any(is_busy(one) for one in processes()), "the search")
    leaving.send_extension(filtered_request("evil", 0, SLOW))
    leaving.close()
    wait_until(lambda: running_broker.status()["connections"] == 2, "the end of its connection")
    last.send_extension(filtered_request("evil", 0, b"!"))
    os.kill(the_process(), signal.SIGPROF)  # as the timer does
    assert receive(first).error == PatternTooSlowError.code
    assert len(receive(last).runs) == 1
    assert caplog.text.count("is too slow") == 1


def test_broker_when_stopped_during_a_search_then_ends_it(
    start_broker: BrokerFactory, connect: PeerFactory, no_limit: None
) -> None:
    broker = start_broker()
    peer = connect(broker)
    peer.publish("evil", EVIL)
    peer.send_extension(filtered_request("evil", 0, SLOW))
    wait_until(lambda: any(is_busy(one) for one in processes()), "the search")
    pid = the_process()
    broker.stop()
    assert not is_running(pid)
    assert peer.is_closed()
