"""The HTTP server of the metrics, over real sockets."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from broker.errors import AddressInUseError
from broker.metrics_server import CONTENT_TYPE, served_metrics
from broker.units import ListenAddress

ANY_PORT = ListenAddress("127.0.0.1", 0)


class Answer(NamedTuple):
    status: int
    content_type: str | None
    body: bytes


def ask(address: str, path: str = "/metrics", method: str = "GET", **headers: str) -> Answer:
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)) as connection:
        connection.request(method, path, headers={"Accept-Encoding": "", **headers})
        response = connection.getresponse()
        return Answer(response.status, response.headers["Content-Type"], response.read())


@pytest.fixture
def address() -> Iterator[str]:
    with served_metrics(lambda: "up 1\n", ANY_PORT) as found:
        yield found
    with pytest.raises(ConnectionRefusedError):
        ask(found)


def test_metrics_when_asked_for_then_are_the_text(address: str) -> None:
    assert ask(address) == (200, CONTENT_TYPE, b"up 1\n")
    assert ask(address, "/-/healthy").body == b"ok\n"
    assert ask(address, method="HEAD").body == b""
    zipped = ask(address, **{"Accept-Encoding": "gzip"})
    assert gzip.decompress(zipped.body) == b"up 1\n"


@pytest.mark.parametrize(
    ("path", "method", "host", "status"),
    [
        ("/", "GET", None, 404),
        ("/metrics/more", "GET", None, 404),
        ("/metrics", "POST", None, 501),
        ("/metrics", "GET", "evil.test", 421),
        ("/metrics", "GET", "127.0.0.1.evil.test", 421),
        ("/metrics", "GET", "127.0.0.1", 421),
    ],
)
def test_metrics_when_the_request_is_wrong_then_refused(
    address: str, path: str, method: str, host: str | None, status: int
) -> None:
    headers = {} if host is None else {"Host": host}
    assert ask(address, path, method, **headers).status == status


@pytest.mark.parametrize(("host", "status"), [("0.0.0.0", 200), ("::1", 421)])
def test_metrics_when_other_machines_may_ask_then_any_name_will_do(host: str, status: int) -> None:
    with served_metrics(lambda: "up 1\n", ListenAddress(host, 0)) as address:
        assert ask(address).status == 200
        assert ask(address, Host="metrics.test").status == status


def test_metrics_when_slow_clients_hold_the_port_then_scrapes_are_served(address: str) -> None:
    where = urlsplit(address)
    slow = [socket.create_connection((where.hostname, where.port)) for _ in range(100)]
    try:
        for one in slow:
            with suppress(OSError):  # it may have lost its place
                one.sendall(b"GET /metrics HTTP/1.1\r\n")
        for _ in range(20):
            assert ask(address).body == b"up 1\n"
    finally:
        for one in slow:
            one.close()


def test_metrics_when_they_take_long_then_all_scrapers_get_the_same_text() -> None:
    entered, go_on = threading.Semaphore(0), threading.Event()

    def write() -> str:
        entered.release()
        go_on.wait(60)
        return "up 1\n"

    with served_metrics(write, ANY_PORT) as address:
        where = urlsplit(address)
        waiting = [socket.create_connection((where.hostname, where.port)) for _ in range(2)]
        try:
            for one in waiting:
                one.sendall(f"GET /metrics HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
            assert entered.acquire(timeout=60)
            go_on.set()
            for one in waiting:
                with one.makefile("rb") as answer:
                    assert answer.read().endswith(b"up 1\n")
        finally:
            go_on.set()
            for one in waiting:
                one.close()


def test_metrics_when_the_port_is_taken_then_the_error_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(AddressInUseError, match=f"metrics on 127.0.0.1:{port}: address already"),
            served_metrics(str, ListenAddress("127.0.0.1", port)),
        ):
            pass


def test_metrics_when_they_cannot_be_read_then_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> str:
        raise ValueError("no figures")

    with served_metrics(fail, ANY_PORT) as address:
        assert ask(address).status == 500
        assert ask(address, "/-/healthy").status == 200
    assert "no figures" in caplog.text
