"""Commands given several brokers with `--broker`, one of which is down."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from broker import Broker
from broker.client.connection import parse_broker_list
from broker.errors import RegistryUnreachableError, RequestTimeoutError
from broker.zk.session import Session
from pylogctl.cli import progress
from pylogctl.cli.connections import connector
from pylogctl.cli.environment import Environment, ExitStatus, SharedOptions, Streams
from tests.support.command_line import Invoke
from tests.support.ports import port_of_its_own


def at(*brokers: Broker) -> str:
    return ",".join(f"127.0.0.1:{broker.port}" for broker in brokers)


@pytest.fixture
def half_there(start_broker: Callable[..., Broker], invoke: Invoke, tmp_path: Path) -> str:
    """The addresses of two brokers with a message each, the second of which is down."""
    first, second = (
        start_broker(broker_id=number, data_dir=tmp_path / str(number)) for number in (1, 2)
    )
    addresses = at(first, second)
    invoke("produce", "t", "-b", addresses, "--partitioner", "round-robin", stdin=b"a\nb\n")
    second.stop()
    return addresses


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "list"),
        ("topic", "count", "t"),
        ("broker", "status"),
        ("broker", "list"),
        ("consume", "t", "--from-beginning", "-n", "1"),
        ("copy", "t", "t2"),
    ],
)
def test_command_when_a_broker_is_down_then_shows_what_there_is_and_ends_with_partial(
    half_there: str, invoke: Invoke, command: tuple[str, ...]
) -> None:
    result = invoke(*command, "-b", half_there)

    absent = half_there.rpartition(",")[2]
    assert result.status == ExitStatus.PARTIAL
    assert f"error: cannot reach {absent}: connection refused" in result.stderr
    assert "; going on without it\n" in result.stderr
    assert result.stdout or command[0] == "copy"


@pytest.mark.parametrize("command", [("produce", "t"), ("broker", "status", "1")])
def test_command_when_it_can_do_without_the_broker_then_only_warns(
    half_there: str, invoke: Invoke, command: tuple[str, ...]
) -> None:
    result = invoke(*command, "-b", half_there, stdin=b"c\n")

    assert result.status == ExitStatus.OK
    assert result.stderr.startswith("warning: cannot reach ")


@pytest.mark.parametrize(
    "command",
    [("topic", "delete", "t", "--data", "--yes", "--confirm", "t"), ("topic", "create", "u")],
)
def test_command_when_it_would_change_some_brokers_only_then_refuses(
    half_there: str, invoke: Invoke, command: tuple[str, ...]
) -> None:
    result = invoke(*command, "-b", half_there, *_partitions(command))

    assert result.status == ExitStatus.UNREACHABLE
    up, _, _ = half_there.partition(",")
    assert invoke("topic", "list", "-b", up, "--output", "name").text == "t\n"


def _partitions(command: tuple[str, ...]) -> tuple[str, ...]:
    return ("--partitions", "2") if command[1] == "create" else ()


@contextmanager
def server_that_sends(data: bytes | None) -> Iterator[str]:
    """The address of a server that sends bytes to each client and closes; None keeps silent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        clients = []

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                clients.append(client)
                if data is not None:
                    with suppress(OSError):  # the client may have hung up
                        client.sendall(data)
                        client.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(60)
        for client in clients:
            client.close()


@pytest.fixture
def unused() -> str:
    """An address at which nothing listens."""
    return f"127.0.0.1:{port_of_its_own()}"


@pytest.mark.parametrize(
    "command", [("topic", "list"), ("broker", "status"), ("consume", "t", "-e"), ("produce", "t")]
)
def test_command_when_every_broker_refuses_does_not_try_again(
    invoke: Invoke, unused: str, command: tuple[str, ...]
) -> None:
    result = invoke(*command, "-b", unused, stdin=b"a\n")
    assert result.status == ExitStatus.UNREACHABLE
    assert f"cannot reach {unused}: connection refused (1 attempt in " in result.stderr


@pytest.mark.parametrize("command", [("topic", "list"), ("zk", "ls"), ("consume", "t", "-e")])
def test_command_when_zookeeper_refuses_does_not_wait_for_it(
    invoke: Invoke, unused: str, command: tuple[str, ...]
) -> None:
    result = invoke(*command, "-Z", unused)
    assert result.status == ExitStatus.UNREACHABLE
    assert f"cannot reach ZooKeeper at {unused}: connection refused" in result.stderr


def test_session_when_told_to_wait_tries_a_server_that_refuses_until_the_time_is_up(
    unused: str,
) -> None:
    with pytest.raises(RegistryUnreachableError, match=r"within 0\.5s"):
        Session(unused).start(0.5)


def test_connection_for_requests_when_a_server_is_silent_says_so_and_waits_as_help_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "ANNOUNCE_WAIT_AFTER_S", 0.1)
    stderr = io.StringIO()
    with server_that_sends(None) as address:
        env = Environment(Streams(None, None, stderr), {})
        (broker,) = parse_broker_list(address)
        assert connector(env)(broker).timeout_s == 10.0
        limited = Environment(env.streams, {}, SharedOptions(timeout_s=2.5))
        with pytest.raises(RequestTimeoutError):
            connector(limited)(broker).hello()
    assert stderr.getvalue() == f"waiting for {address}\n"


def test_command_when_a_port_is_that_of_a_web_server_that_waits_for_a_line_shows_its_first_bytes(
    invoke: Invoke,
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            address = f"127.0.0.1:{server.server_port}"
            result = invoke("broker", "status", "-b", address)
        finally:
            server.shutdown()
    assert result.status == ExitStatus.REMOTE
    assert "does not speak the log protocol (first bytes: '<!DO')" in result.stderr


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH-"),
        (b"\x01\x03\x03\x00\x02\x02\x0a", r"\x01\x03\x03\x00"),
    ],
)
def test_command_when_a_port_is_no_broker_shows_its_first_bytes(
    invoke: Invoke, data: bytes, shown: str
) -> None:
    with server_that_sends(data) as address:
        result = invoke("broker", "status", "-b", address)
    assert result.status == ExitStatus.REMOTE
    assert f"does not speak the log protocol (first bytes: '{shown}')" in result.stderr
