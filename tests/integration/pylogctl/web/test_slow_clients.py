"""Clients that are slow, or many: they end, and do no harm to others."""

from __future__ import annotations

import http.client
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from pylogctl.testing import Broker
from pylogctl.web import server
from pylogctl.web.security import HEADERS
from tests.support.waiting import wait_until
from tests.support.web_site import web_process

_CHUNK = b"x" * 65536
_CHUNKS = 1000


async def large(scope: Any, receive: Any, send: Any) -> None:
    """Respond to GET with more than sockets hold, to POST once the body is there."""
    while scope["method"] == "POST" and (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(_CHUNKS if scope["path"] == "/large" else 1):
        await send({"type": "http.response.body", "body": _CHUNK, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], socket.socket]]:
    """Connect to a server with short limits."""
    monkeypatch.setattr(server, "HEAD_S", 0.3)
    monkeypatch.setattr(server, "BODY_S", 0.3)
    monkeypatch.setattr(server, "WRITE_S", 0.3)
    with (
        ExitStack() as opened,
        socket.create_server(("127.0.0.1", 0)) as listener,
        server.serving(large, listener),
    ):

        def connect() -> socket.socket:
            return opened.enter_context(socket.create_connection(listener.getsockname(), 60))

        yield connect


def send_slowly(client: socket.socket, byte: bytes) -> None:
    """Send a byte after the other until the server ends the connection."""
    client.settimeout(0.02)
    give_up_s = time.monotonic() + 60
    while time.monotonic() < give_up_s:
        try:
            client.send(byte)
            if not client.recv(1):
                return
        except TimeoutError:
            continue
        except ConnectionError:
            return
    pytest.fail("the server goes on reading")


def test_head_when_it_comes_byte_by_byte_then_the_connection_ends(
    connect: Callable[[], socket.socket],
) -> None:
    client = connect()
    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
    send_slowly(client, b"y")


def test_next_head_when_it_comes_byte_by_byte_then_the_connection_ends(
    connect: Callable[[], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEAD_S", 3.0)  # the first head must be in time
    monkeypatch.setattr(server, "WRITE_S", 60.0)
    client = connect()
    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    received = b""
    while not received.endswith(b"0\r\n\r\n"):
        received += client.recv(65536)
    send_slowly(client, b"G")


def test_body_when_it_comes_byte_by_byte_then_the_connection_ends(
    connect: Callable[[], socket.socket],
) -> None:
    client = connect()
    client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
    send_slowly(client, b"z")


def test_response_when_nobody_takes_it_then_the_connection_ends(
    connect: Callable[[], socket.socket],
) -> None:
    client = connect()
    client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")

    def has_ended() -> bool:
        try:
            client.send(b"\r\n")
        except ConnectionError:
            return True
        return False

    wait_until(has_ended, "the server ends the connection")


def test_request_when_it_is_none_then_it_is_refused_with_the_headers_of_all_responses(
    connect: Callable[[], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("HEAD_S", "WRITE_S"):
        monkeypatch.setattr(server, limit, 60.0)
    for head in (b"\x16\x03\x01 TLS\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"y" * 9000):
        client = connect()
        client.sendall(head)
        received = b""
        while part := client.recv(65536):
            received += part
        assert received.startswith(b"HTTP/1.1 400"), head[:20]
        assert all(value.encode() in received for value in HEADERS.values())


@pytest.mark.parametrize("limit", ["MAX_CONNECTIONS", "MAX_CONNECTIONS_OF_LOOPBACK"])
def test_connection_when_there_are_too_many_then_the_oldest_without_a_request_ends(
    connect: Callable[[], socket.socket], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(server, "HEAD_S", 60.0)
    monkeypatch.setattr(server, limit, 2)
    oldest, second, newest = connect(), connect(), connect()
    with suppress(ConnectionError):
        assert oldest.recv(1) == b""
    for client in (second, newest):
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"


def test_server_when_500_clients_are_slow_then_others_get_their_responses() -> None:
    with (
        Broker() as broker,
        web_process("--broker", broker.address) as (host, port, pid),
        ExitStack() as opened,
    ):

        def response_s() -> float:
            started_s = time.monotonic()
            connection = http.client.HTTPConnection(host, port, timeout=60)
            connection.request("GET", "/api/v1/health/live")
            assert connection.getresponse().status == 200
            connection.close()
            return time.monotonic() - started_s

        response_s()
        before = _resident_bytes(pid)
        clients = [
            opened.enter_context(socket.create_connection((host, port), 60)) for _ in range(500)
        ]
        for number, client in enumerate(clients):
            client.sendall(b"GET /api" if number % 2 else b"G")
        wait_until(lambda: response_s() < 0.1, "a response in 100 ms beside 500 slow clients")
        for client in clients:
            with suppress(ConnectionError):  # it had to make room
                client.send(b"E")
        wait_until(lambda: response_s() < 0.1, "a response in 100 ms beside 500 slow clients")
        assert _resident_bytes(pid) - before < 64 << 20


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")
