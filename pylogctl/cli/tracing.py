"""Requests and answers told on standard error: `-vv` one line each, `-vvv` their bytes as well.

Only made when asked for, so that it costs nothing otherwise.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from broker.client.connection import Connection
from broker.protocol.primitives import Buffer
from broker.protocol.requests import RequestType
from broker.protocol.responses import BrokerAddress
from pylogctl.cli.context import TRACE_VERBOSITY, Environment

BYTES_LEVEL = 3
_SHOWN_BYTES = 1024
_ROW_BYTES = 16
_FRAME_START = struct.Struct(">ih")


class TracedConnection(Connection):
    """A connection that tells what goes over it.

    Args:
        env: where it is told, by its verbosity.
        address: as for `Connection`, like the rest.
        timeout_s: how long an answer is waited for.
        connect_timeout_s: how long connecting is tried.
        send_bytes: SO_SNDBUF; 0 leaves it to the system.
        receive_bytes: SO_RCVBUF; 0 leaves it to the system.
    """

    def __init__(
        self,
        env: Environment,
        address: BrokerAddress,
        *,
        timeout_s: float,
        connect_timeout_s: float,
        send_bytes: int,
        receive_bytes: int,
    ) -> None:
        super().__init__(
            address,
            timeout_s=timeout_s,
            connect_timeout_s=connect_timeout_s,
            send_bytes=send_bytes,
            receive_bytes=receive_bytes,
        )
        self._env = env

    def send_parts(self, parts: list[Buffer]) -> None:
        """Send a whole frame, telling its type and size."""
        super().send_parts(parts)
        frame = b"".join(parts)
        self._tell(f"-> {self.name}: {_request_name(frame)}, {len(frame)} bytes", frame)

    def receive(self) -> memoryview:
        """Return the next frame, telling its size."""
        frame = super().receive()
        self._tell(f"<- {self.name}: answer of {len(frame)} bytes", frame)
        return frame

    def _tell(self, line: str, data: Buffer) -> None:
        self._env.trace(TRACE_VERBOSITY, line)
        if self._env.settings.verbosity >= BYTES_LEVEL:
            for row in hex_rows(data):
                self._env.trace(BYTES_LEVEL, row)


def _request_name(frame: Buffer) -> str:
    _, number = _FRAME_START.unpack_from(frame)
    known = {int(kind): kind.name.lower().replace("_", " ") for kind in RequestType}
    return known.get(number, f"request {number}")


def hex_rows(data: Buffer, limit: int = _SHOWN_BYTES) -> Iterator[str]:
    """Yield bytes as rows of position, hexadecimal and text.

    Args:
        data: any bytes.
        limit: how many to show; a last row says how many more there are.
    """
    view = memoryview(data)
    for position in range(0, min(len(view), limit), _ROW_BYTES):
        row = bytes(view[position : min(position + _ROW_BYTES, limit)])
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"  {position:06x}  {row.hex(' '):<47}  {text}"
    if len(view) > limit:
        yield f"  and {len(view) - limit} bytes more"
