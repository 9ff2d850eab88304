"""A login that every broker of this process offers, without users in ZooKeeper."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from broker.security.scram import SCRAM, make_credential, mock_credential, serve_scram
from broker.server.requests.authentication import Authentication
from broker.values import Secret

PASSWORD = "hunter2"


@pytest.fixture
def alice(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a user that logs in with `PASSWORD` at the brokers of this process."""
    credential = make_credential(Secret(PASSWORD), 4096)
    original = Authentication.__init__

    def offering(self: Authentication, mechanisms: object, *args: Any, **named: Any) -> None:
        def look_up(user: str) -> Any:
            return credential if user == "alice" else mock_credential(b"", user)

        original(self, {SCRAM: partial(serve_scram, look_up)}, *args, **named)

    monkeypatch.setattr(Authentication, "__init__", offering)
    return "alice"
