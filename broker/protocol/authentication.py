"""AUTHENTICATE: the request with which a client proves who it is (field table: REQUESTS.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from broker.protocol import layouts, requests
from broker.protocol.layouts import ControlRequest, Fields

MAX_DATA_BYTES = 4096
"""The longest message of a mechanism."""


class Authenticated(NamedTuple):
    """The broker's answer to one step; `principal` is empty before the last one."""

    is_done: bool
    lifetime_ms: int
    principal: str
    data: bytes


AUTHENTICATED = layouts.record(
    Authenticated,
    is_done=layouts.BOOL,
    lifetime_ms=layouts.INT64,
    principal=layouts.STRING,
    data=layouts.DATA,
)


@dataclass(frozen=True)
class AuthenticateRequest(ControlRequest):
    """Send the next message of a mechanism's exchange; step 0 opens one."""

    TYPE = requests.RequestType.AUTHENTICATE
    BODY = Fields(mechanism=layouts.STRING, step=layouts.INT8, data=layouts.DATA)
    RESPONSE = AUTHENTICATED

    mechanism: str
    step: int
    data: bytes
