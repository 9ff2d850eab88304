"""Connections that log requests and responses: a line each with `-vv`, their bytes with `-vvv`.

Imported only with `-vv`: defining a subclass of `Connection` loads the client library.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from broker.protocol.client_connection import MAX_RESPONSE_BYTES
from broker.protocol.primitives import Buffer
from broker.protocol.requests import RequestType
from pylogctl.cli.announcing import AnnouncedConnection
from pylogctl.cli.environment import TRACE_VERBOSITY

_BYTES_LEVEL = 3
_SHOWN_BYTES = 1024
_ROW_BYTES = 16
_FRAME_START = struct.Struct(">ih")


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
