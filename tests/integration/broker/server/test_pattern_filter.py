"""Searches that take long: who else is served, and what becomes of them."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time

import pytest

import pylogctl
from broker.errors import (
    BrokerError,
    ConfigError,
    InvalidPatternError,
    RequestTimedOutError,
    ShuttingDownError,
)
from broker.patterns import PayloadTest
from broker.protocol.codec import encode
from broker.protocol.message_set import FilteredEntries, filter_entries
from broker.protocol.responses import FilteredPart, decode_filtered_read_response
from broker.server.broker import Broker
from broker.server.requests import filtered_read, pattern_filter
from broker.server.requests.pattern_filter import Turns
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, filtered_request
from tests.support.waiting import wait_until

DEADLINE_S = 60
SLOW = b"[ab]*a[ab]{900}c"
"""Takes some 10 us for each byte of EVIL, as its states do not fit into RE2's memory."""
EVIL = encode([bytes(random.Random(1).choices(b"ab", k=30_000))])
YES = encode([b"yes"])


def receive(peer: Peer) -> FilteredPart:
    (part,) = decode_filtered_read_response(peer.receive_extension())
    return part


def test_pattern_when_slow_then_others_are_served_meanwhile(
    running_broker: Broker, connect: PeerFactory
) -> None:
    slow, other = connect(running_broker), connect(running_broker)
    other.publish("evil", EVIL * 3)
    other.publish("events", YES)
    slow.send_extension(filtered_request("evil", 0, SLOW))

    assert other.fetch("events", 0) == (0, YES)

    part = receive(slow)
    assert (part.error, part.runs) == (0, ())
    assert part.next_offset in (len(EVIL), 2 * len(EVIL), 3 * len(EVIL))


def test_pattern_when_repetitions_are_nested_then_it_is_as_quick_as_others(peer: Peer) -> None:
    payload = b"a" * 100_000 + b"!"
    peer.publish("events", encode([payload, payload + b"a"]))

    part = peer.read_filtered("events", 0, b"(a+)+$")

    assert [run.offset for run in part.runs] == [len(encode([payload]))]


def test_pattern_when_it_is_none_then_refused_before_there_are_messages(peer: Peer) -> None:
    peer.publish("events", YES)
    for pattern, reason in ((b"(?=y)", "RE2 has no look-around"), (b"\xff", "is not UTF-8")):
        with pytest.raises(InvalidPatternError, match=reason):
            peer.read_filtered("events", len(YES), pattern, max_wait_ms=60_000)


def test_search_when_its_turn_does_not_come_in_time_then_the_reader_hears_of_it(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, late = connect(running_broker), connect(running_broker)
    slow.publish("events", YES)
    begun, gate = threading.Event(), threading.Event()

    def wait_and_filter(data: bytes, is_wanted: PayloadTest, room_bytes: int) -> FilteredEntries:
        begun.set()
        gate.wait(DEADLINE_S)
        return filter_entries(data, is_wanted, room_bytes)

    monkeypatch.setattr(pattern_filter, "filter_entries", wait_and_filter)
    slow.send_extension(filtered_request("events", 0, b"yes"))
    assert begun.wait(DEADLINE_S)
    monkeypatch.setattr(filtered_read, "SEARCH_DEADLINE_S", 0.05)

    late.send_extension(filtered_request("events", 0, b"yes"))

    with pytest.raises(RequestTimedOutError, match="were not enough for this search and those"):
        late.receive_extension()
    gate.set()
    assert len(receive(slow).runs) == 1


def test_broker_when_stopped_during_a_search_then_ends_it(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    threads = set(threading.enumerate())  # of brokers of other tests
    broker = start_broker()
    peer = connect(broker)
    peer.publish("evil", EVIL * 100)
    for _ in range(50):
        peer.send_extension(filtered_request("evil", 0, SLOW))

    broker.stop()

    left = set(threading.enumerate()) - threads
    assert not [one for one in left if one.name.startswith("pattern-filter")]


def test_turns_when_one_client_has_much_to_do_then_that_of_others_is_done_in_between() -> None:
    turns, gate, order = Turns(), threading.Event(), []
    third_is_done = threading.Event()
    blocked = [turns.submit("slow", gate.wait)]
    # all but the first wait for the third call of another client, which comes between them
    blocked += [turns.submit("slow", third_is_done.wait) for _ in range(99)]

    first = turns.submit("other", lambda: order.append("other"))
    first.result(DEADLINE_S)

    assert not any(one.done() for one in blocked)
    last_of_slow = turns.submit("slow", lambda: order.append("slow"))
    for who in ("one", "two"):
        turns.submit(who, gate.wait)
    third = turns.submit("three", lambda: order.append("three"))
    gate.set()
    third.result(DEADLINE_S)
    third_is_done.set()
    last_of_slow.result(DEADLINE_S)
    assert order == ["other", "three", "slow"]
    turns.stop()


def test_turns_when_a_client_leaves_then_what_it_waits_for_is_not_done() -> None:
    turns, gate, done = Turns(), threading.Event(), []
    running = turns.submit("client", gate.wait)
    left = turns.submit("client", lambda: done.append("left"))
    last = turns.submit("client", lambda: done.append("last"))
    wait_until(running.running, "the first call")

    left.cancel()
    gate.set()

    last.result(DEADLINE_S)
    assert done == ["last"]
    turns.stop()


def test_turns_when_a_call_fails_then_its_client_gets_the_error_and_goes_on() -> None:
    turns = Turns()

    def fail() -> None:
        raise InvalidPatternError("no pattern")

    with pytest.raises(InvalidPatternError, match="no pattern"):
        turns.submit("client", fail).result(DEADLINE_S)
    assert turns.submit("client", lambda: 1).result(DEADLINE_S) == 1
    turns.stop()


def test_turns_when_stopped_then_what_waits_is_cancelled_and_nothing_more_is_taken() -> None:
    turns, gate = Turns(), threading.Event()
    running = turns.submit("client", gate.wait)
    waiting = turns.submit("client", time.monotonic)
    wait_until(running.running, "the first call")
    stopping = threading.Thread(target=turns.stop)
    stopping.start()
    wait_until(waiting.cancelled, "its end")
    gate.set()
    stopping.join(DEADLINE_S)

    assert running.result(DEADLINE_S)
    with pytest.raises(ShuttingDownError):
        turns.submit("client", time.monotonic)


_WITHOUT_RE2 = """
import sys
sys.modules["re2"] = None  # as where it is not installed
from pylogctl.testing import Broker
with Broker() as broker:
    print(broker.address, flush=True)
    sys.stdin.read()
"""


def test_broker_when_re2_is_missing_then_serves_and_refuses_patterns() -> None:
    command = [sys.executable, "-c", _WITHOUT_RE2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with pylogctl.connect(process.stdout.readline().decode().strip(), timeout=60) as client:
            client.send("t", "ab")
            assert [one.text() for one in client.read("t")] == ["ab"]
            with pytest.raises(BrokerError, match="the package google-re2"):
                list(client.read("t", filter="a[b]"))
        process.stdin.close()
        assert process.wait(60) == 0


def test_pattern_when_re2_is_missing_then_tells_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)

    with pytest.raises(ConfigError, match="need the package google-re2") as raised:
        PayloadTest("a[b]")
    assert "pip install google-re2" in raised.value.hints[0]
