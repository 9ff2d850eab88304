"""`pylogctl web` as it is started: where it may listen, tokens, what it needs."""

from __future__ import annotations

import http.client
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pylogctl.testing import Broker
from tests.support.command_line import Invoke, Spawn
from tests.support.web_site import web_process


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0"])
def test_web_when_it_would_listen_elsewhere_without_a_token_then_it_refuses(
    invoke: Invoke, listen: str
) -> None:
    result = invoke("web", "--listen", listen, "--no-token")
    assert result.status == 2
    assert "clients have to give a token" in result.stderr


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "0.0.0.0:0"])
def test_web_when_no_token_is_given_then_it_makes_one_and_prints_the_link_that_logs_in(
    spawn: Spawn, listen: str
) -> None:
    with Broker() as broker:
        process = spawn("web", "--listen", listen, "-b", broker.address)
        assert process.stdout is not None
        fields = dict(one.split("=", 1) for one in process.stdout.readline().decode().split()[1:])
        link = urlsplit(fields["url"])
        assert link.port is not None and len(link.query) > len("token=") + 40
        headers = {"Host": link.netloc}

        def ask(path: str) -> http.client.HTTPResponse:
            connection = http.client.HTTPConnection("127.0.0.1", link.port or 0, timeout=60)
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            response.read()
            connection.close()
            return response

        assert ask("/").status == ask("/api/v1/cluster").status == 401
        assert ask(f"/api/v1/cluster?{link.query}").status == 401
        opened = ask(f"/?{link.query}")
        assert (opened.status, opened.headers["Location"]) == (303, "/")
        cookies = opened.headers.get_all("Set-Cookie") or []
        headers["Cookie"] = "; ".join(one.partition(";")[0] for one in cookies)
        assert ask("/").status == ask("/api/v1/cluster").status == 200
        process.terminate()
        assert process.wait(60) == 0


def test_web_when_the_token_is_in_a_file_then_it_says_that_the_address_has_none(
    spawn: Spawn, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef")
    with Broker() as broker:
        where = ("--listen", "127.0.0.1:0", "-b", broker.address)
        process = spawn("web", *where, "--token-file", str(file))
        assert process.stdout is not None
        assert b"token" not in process.stdout.readline()
        process.terminate()
        _, stderr = process.communicate(timeout=60)
    assert "the address has no token: browsers ask for it as a password" in stderr.decode()


@pytest.mark.parametrize("listen", ["8080", ":8080", "localhost", "localhost:x", "localhost:65536"])
def test_web_when_listen_is_no_address_then_it_says_what_is(invoke: Invoke, listen: str) -> None:
    result = invoke("web", "--listen", listen)
    assert result.status == 2
    assert f"not an address: '{listen}'" in result.stderr


def test_web_when_its_token_is_short_or_not_there_then_it_refuses(
    invoke: Invoke, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    assert invoke("web", "--token-file", str(file)).status == 3
    file.write_text("short\n")
    result = invoke("web", "--token-file", str(file))
    assert (result.status, "less than 16 characters" in result.stderr) == (2, True)
    assert "short" not in result.stderr
    file.write_bytes(b"\xe4" * 20)
    result = invoke("web", "--token-file", str(file))
    assert (result.status, "characters that are not ASCII" in result.stderr) == (2, True)


def test_web_when_the_port_is_in_use_then_it_says_so(invoke: Invoke) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        result = invoke("web", "--listen", f"127.0.0.1:{other.getsockname()[1]}")
    assert result.status == 4
    assert "cannot listen on" in result.stderr


def test_web_when_no_broker_is_there_then_it_ends(invoke: Invoke) -> None:
    result = invoke("web", "--listen", "127.0.0.1:0", "--broker", "127.0.0.1:1")
    assert result.status == 10


def test_web_when_the_extra_is_missing_then_it_says_what_to_install(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = invoke("web")
    assert result.status == 9
    assert "pip install 'pylogctl[web]'" in result.stderr


def test_web_when_it_runs_behind_a_proxy_then_the_public_name_and_the_token_hold() -> None:
    token = "0123456789abcdef"
    options = ("--public-host", "Logs.example.com")
    with (
        Broker() as broker,
        web_process(
            "--broker", broker.address, *options, environ={"PYLOGCTL_WEB_TOKEN": token}
        ) as (address, port, _),
    ):

        def status(host: str, token: str) -> int:
            connection = http.client.HTTPConnection(address, port, timeout=60)
            headers = {"Host": host, "Authorization": f"Bearer {token}"}
            connection.request("GET", "/api/v1/cluster", headers=headers)
            found = connection.getresponse().status
            connection.close()
            return found

        assert status("logs.example.com", token) == 200
        assert status(f"localhost:{port}", token) == 200
        assert status("logs.example.com", "another") == 401
        assert status("logs.example.com:8080", token) == 421
