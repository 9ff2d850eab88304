"""Runs the application on uvicorn, with limits for clients that are slow."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from broker.threads import LoopThread
from pylogctl.web.security import HEADERS, MAX_HEAD_BYTES

HEAD_S = 10.0
BODY_S = 30.0
WRITE_S = 10.0
MAX_CONNECTIONS = 600
MAX_CONNECTIONS_OF_ADDRESS = 50
MAX_CONNECTIONS_OF_LOOPBACK = 300
"""Of an address of this machine, which can be a proxy's, with many clients behind it."""
_GRACE_S = 3


class _Protocol(H11Protocol):
    """Ends connections on which a head, a body or a write takes too long."""

    _reading: asyncio.TimerHandle | None = None
    _reads: Any = None
    _writing: asyncio.TimerHandle | None = None
    _made_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._made_s = self.loop.time()
        if (surplus := self._surplus()) is not None:
            surplus.transport.abort()
        if surplus is not self:
            self._watch_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_reading()
        self._end_soon_if_closing()

    def on_response_complete(self) -> None:
        self._reads = None  # what follows is another request
        super().on_response_complete()
        self._watch_reading()
        self._end_soon_if_closing()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._end_soon_if_closing()

    def shutdown(self) -> None:
        """End, at the end of the server; a response that has begun may be an endless stream."""
        super().shutdown()
        if getattr(self.cycle, "response_started", False):  # None before the first request
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, with the headers of all responses."""
        headers = {**HEADERS, "Content-Type": "text/plain; charset=utf-8", "Connection": "close"}
        response = h11.Response(
            status_code=400, headers=list(headers.items()), reason=b"Bad Request"
        )
        for event in (response, h11.Data(data=msg.encode("ascii")), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self.loop.call_later(WRITE_S, self.transport.abort)

    def resume_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        super().resume_writing()

    def _surplus(self) -> _Protocol | None:
        """Return the connection that is one too many; None if there is room for this new one.

        It is the oldest one without a request, so that slow clients keep nobody out.
        """
        rivals = [one for one in self.connections if isinstance(one, _Protocol)]
        if len(rivals) <= MAX_CONNECTIONS:
            address = self.client[0] if self.client else None
            rivals = [one for one in rivals if one.client and one.client[0] == address]
            is_loopback = address is not None and ip_address(address).is_loopback
            limit = MAX_CONNECTIONS_OF_LOOPBACK if is_loopback else MAX_CONNECTIONS_OF_ADDRESS
            if len(rivals) <= limit:
                return None
        idle = (one for one in rivals if one.cycle is None or one.cycle.response_complete)
        return min(idle, key=lambda one: one._made_s, default=self)

    def _watch_reading(self) -> None:
        """Limit the time of the head or body that is expected."""
        state = self.conn.their_state
        if state is self._reads:
            return
        self._reads = state
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        limit_s = {h11.IDLE: HEAD_S, h11.SEND_BODY: BODY_S}.get(state)
        if limit_s is not None:
            self._reading = self.loop.call_later(limit_s, self.transport.abort)

    def _end_soon_if_closing(self) -> None:
        """A client that does not take the rest of a response keeps no socket open."""
        if self.transport.is_closing() and self._writing is None:
            self._writing = self.loop.call_later(WRITE_S, self.transport.abort)


@contextmanager
def serving(app: ASGIApp, listener: socket.socket) -> Iterator[threading.Thread]:
    """Serve an application until the end of a block, by a thread, which is given."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = uvicorn.Server(config)
    thread = LoopThread(partial(server.run, [listener]), name="web")
    thread.start()
    try:
        yield thread
    finally:
        server.should_exit = True
        thread.join()
