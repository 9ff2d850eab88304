"""AUTHENTICATE: the request with which a client proves who it is (field table: REQUESTS.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from broker.protocol import layouts, requests
from broker.protocol.layouts import ControlRequest

MAX_DATA_BYTES = 4096
"""The longest message of a mechanism."""


class Authenticated(NamedTuple):
    """The broker's answer to one step; `principal` is empty before the last one."""

    is_done: bool
    lifetime_ms: layouts.Int64
    principal: str
    data: bytes


AUTHENTICATED = layouts.record(Authenticated)


@dataclass(frozen=True)
class AuthenticateRequest(ControlRequest):
    """Send the next message of a mechanism's exchange; step 0 opens one."""

    TYPE = requests.RequestType.AUTHENTICATE
    RESPONSE = AUTHENTICATED

    mechanism: str
    step: layouts.Int8
    data: bytes
