from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from broker.server.broker import Broker


class ListensElsewhere(socket.socket):
    """A listener on this machine that says it listens on another address."""

    address = ""

    def getsockname(self) -> tuple[str, int]:
        return self.address, super().getsockname()[1]


@pytest.mark.parametrize(
    ("address", "must_log_in", "warns"),
    [
        ("0.0.0.0", False, True),
        ("0.0.0.0", True, False),
        ("::", False, True),
        ("192.0.2.1", False, True),
        ("fe80::1%eth0", False, True),
        ("127.0.0.1", False, False),
        ("127.0.0.2", False, False),
        ("::1", False, False),
    ],
)
def test_start_when_other_machines_may_reach_the_port_then_warns(
    start_broker: Callable[..., Broker],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    address: str,
    must_log_in: bool,
    warns: bool,
) -> None:
    def listen(_host: str, _port: int, **_: object) -> socket.socket:
        listener = ListensElsewhere()
        listener.address = address
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        return listener

    monkeypatch.setattr("broker.server.network.socket_server.listen", listen)
    start_broker(requires_authentication=must_log_in)
    assert (f"listening on {address}:" in caplog.text) is warns
    assert ("without authentication" in caplog.text) is warns


def test_start_when_a_super_user_can_never_come_then_warns(
    start_broker: Callable[..., Broker], caplog: pytest.LogCaptureFixture
) -> None:
    start_broker(super_users="User:CN=ops")

    assert "super.users: no client can be User:CN=ops" in caplog.text
