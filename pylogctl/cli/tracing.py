"""Connections of commands: they announce a long wait, and log requests and responses.

A line for each with `-vv`, their bytes with `-vvv`. Imported with the first connection, as this
loads the client library.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any

from broker import deadlines
from broker.client.cluster import BRIEFLY_S
from broker.client.connection import Connection
from broker.errors import RequestTimeoutError
from broker.protocol.client_connection import MAX_RESPONSE_BYTES
from broker.protocol.primitives import Buffer
from broker.protocol.requests import RequestType
from broker.protocol.responses import BrokerAddress, HelloResponse
from pylogctl.cli.environment import TRACE_VERBOSITY, Environment
from pylogctl.cli.progress import Silence, announced_wait

_BYTES_LEVEL = 3
_SHOWN_BYTES = 1024
_ROW_BYTES = 16
_FRAME_START = struct.Struct(">ih")


class AnnouncedConnection(Connection):
    """A `Connection` with a note on standard error if the broker does not respond to the hello.

    Connections with the same `silence` wait for as long together, and then briefly.
    """

    def __init__(
        self, env: Environment, address: BrokerAddress, silence: Silence | None, **options: Any
    ) -> None:
        super().__init__(address, **options)
        self._env = env
        self._silence = silence
        self._has_waited = False

    def hello(self) -> HelloResponse | None:
        """Send a hello; announce the wait for the first response."""
        if self._has_waited:
            return super().hello()
        silence, started_s = self._silence, time.monotonic()
        limit_s = None if silence is None else max(silence.left_s, BRIEFLY_S)
        try:
            with announced_wait(self._env, self.name), deadlines.Limit(limit_s):
                found = super().hello()
        except RequestTimeoutError:
            if silence is not None:
                silence.note(time.monotonic() - started_s)
            raise
        self._has_waited = True
        return found


class TracedConnection(AnnouncedConnection):
    """A connection that logs its frames to the standard error of its environment."""

    def send(self, *parts: Buffer) -> None:
        """Send a frame, and log its type and size."""
        super().send(*parts)
        frame = b"".join(parts)
        self._log(f"-> {self.name}: {_request_name(frame)}, {len(frame)} bytes", frame)

    def receive(self, max_bytes: int = MAX_RESPONSE_BYTES) -> memoryview:
        """Return the next frame, and log its size."""
        frame = super().receive(max_bytes)
        self._log(f"<- {self.name}: response of {len(frame)} bytes", frame)
        return frame

    def _log(self, line: str, data: Buffer) -> None:
        self._env.trace(TRACE_VERBOSITY, line)
        if self._env.settings.verbosity >= _BYTES_LEVEL:
            for row in hex_rows(data):
                self._env.trace(_BYTES_LEVEL, row)


def _request_name(frame: Buffer) -> str:
    _, number = _FRAME_START.unpack_from(frame)
    try:
        return RequestType(number).name.lower().replace("_", " ")
    except ValueError:
        return f"request {number}"


def hex_rows(data: Buffer, limit: int = _SHOWN_BYTES) -> Iterator[str]:
    """Yield up to `limit` bytes as rows of offset, hex digits and text; a last row for the rest."""
    view = memoryview(data)
    for position in range(0, min(len(view), limit), _ROW_BYTES):
        row = bytes(view[position : min(position + _ROW_BYTES, limit)])
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"  {position:06x}  {row.hex(' '):<47}  {text}"
    if len(view) > limit:
        yield f"  and {len(view) - limit} more bytes"
