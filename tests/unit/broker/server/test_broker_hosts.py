"""The addresses of registered brokers; the look-ups of names are the test's."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from broker.server.network import broker_hosts
from broker.server.network.broker_hosts import BrokerHosts
from tests.support.waiting import wait_until

LookUp = Callable[[str], str]


@pytest.fixture
def hosts() -> Iterator[BrokerHosts]:
    made = BrokerHosts()
    yield made
    made.stop()
    made.join()


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[LookUp], None]:
    """Have names looked up by a function."""

    def use(look_up: LookUp) -> None:
        def getaddrinfo(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
            return [(0, 0, 0, "", (look_up(host), 0))]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    return use


def test_broker_hosts_when_others_are_in_its_network_then_only_its_address_counts(
    hosts: BrokerHosts,
) -> None:
    hosts.follow(["2001:db8::1", "::ffff:10.0.0.1"])
    wait_until(lambda: "2001:db8::1" in hosts, "its address being known")
    assert "2001:db8:0:0::1" in hosts
    assert "2001:db8::2" not in hosts
    assert "10.0.0.1" in hosts
    assert "::ffff:10.0.0.1" in hosts
    assert "unknown" not in hosts


def test_broker_hosts_when_a_name_fails_then_is_tried_again(
    hosts: BrokerHosts,
    answer: Callable[[LookUp], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(broker_hosts, "_FIRST_PAUSE_S", 0.01)
    failures = [socket.gaierror("try again")] * 3

    def look_up(host: str) -> str:
        if host == "late" and failures:
            raise failures.pop()
        return "10.0.0.1" if host == "late" else "10.0.0.2"

    answer(look_up)
    hosts.follow(["late", "good"])
    wait_until(lambda: "10.0.0.1" in hosts, "its address being known")
    assert "10.0.0.2" in hosts
    assert caplog.text.count("cannot look up the address of broker late") == 1


def test_broker_hosts_when_followed_during_a_slow_look_up_then_the_latest_count(
    hosts: BrokerHosts, answer: Callable[[LookUp], None]
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def look_up(host: str) -> str:
        if host == "old":
            begun.set()
            go_on.wait(60)
        return {"old": "10.0.0.1", "new": "10.0.0.2"}[host]

    answer(look_up)
    hosts.follow(["old"])
    assert begun.wait(60)
    hosts.follow(["new"])
    go_on.set()
    wait_until(lambda: "10.0.0.2" in hosts, "the latest being known")
    assert "10.0.0.1" not in hosts
