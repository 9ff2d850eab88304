"""A login that every broker of this process offers, without users in ZooKeeper."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from broker.properties import Secret
from broker.security.scram import make_credential, serve_scram
from broker.security.users import SCRAM, Users
from broker.server.requests.authentication import Authentication

PASSWORD = "hunter2"


@pytest.fixture
def alice(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a user that logs in with `PASSWORD` at the brokers of this process."""
    users = Users()
    users.use({"alice": make_credential(Secret(PASSWORD), 4096)}, b"secret")
    original = Authentication.__init__

    def offering(self: Authentication, mechanisms: object, *args: Any, **named: Any) -> None:
        original(self, {SCRAM: partial(serve_scram, users)}, *args, **named)

    monkeypatch.setattr(Authentication, "__init__", offering)
    return "alice"
