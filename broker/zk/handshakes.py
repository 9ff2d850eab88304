"""Kazoo's threads, waits and attempts to connect: what it lacks, partly by its private parts.

No other module uses private parts of kazoo (`_connection` with its `_connect`, `_invoke` and
`_socket`); `pyproject.toml` bounds its versions to those that this was tested with.
"""

from __future__ import annotations

import logging
import math
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from kazoo.exceptions import SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionDropped

from broker.errors import BrokerError
from broker.threads import LoopThread, start_once

logger = logging.getLogger(__name__)

_BREAK_INTERVAL_S = 0.1
_FIRST_PATIENCE_S = 2.0


class KazooHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """The threads, waits and plain connections of one kazoo client."""

    @property
    def failure(self) -> BrokerError | None:
        """Why there is no connection, None if that is not for TLS."""
        return None

    def await_first(
        self, connected: threading.Event, timeout_s: float, *, servers: int, retries: bool
    ) -> None:
        """Wait for the first connection; not if all servers fail, with `retries` for good."""
        connected.wait(timeout_s)

    def note_dropped(self, cause: BaseException | None) -> None:
        """Keep why a server has ended a connection."""

    def note_connected(self) -> None:
        """Forget what was wrong before."""

    def break_off(self) -> None:
        """End the handshake that goes on, if any."""

    def spawn(self, func: Callable[..., object], *args: object, **kwargs: object) -> LoopThread:
        """Start a thread; kazoo's loop begins with a new connection if it is called again."""
        thread = LoopThread(partial(func, *args, **kwargs), name="zookeeper")
        thread.start()
        return thread

    def select(
        self,
        readers: Sequence[Any],
        writers: Sequence[Any],
        _errors: Sequence[Any],
        timeout: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Return who is ready, like `select.select`; descriptors can have any number."""
        poll = select.poll()
        for sockets, events in (writers, select.POLLOUT), (readers, select.POLLIN):
            for one in sockets:
                if one.fileno() < 0:
                    raise OSError("the connection to ZooKeeper is closed")
                poll.register(one, events)
        ready = {fd for fd, _ in poll.poll(None if timeout is None else math.ceil(timeout * 1000))}
        return (
            [one for one in readers if one.fileno() in ready],
            [one for one in writers if one.fileno() in ready],
            [],
        )


@dataclass(eq=False)
class KazooHandshakes:
    """Notes the timeout that a server grants, and ends silence, and refusals for lack of history.

    A server that starts can take a connection and never answer on it. Kazoo would wait for as long
    as the session lives.

    A server closes the connection of a client that has seen later changes than itself. After
    ZooKeeper was restored from a backup or has lost its data, kazoo would retry for ever.
    """

    client: Any  # of kazoo
    servers: str
    session_timeout_s: float  # the requested one until a server grants one
    handler: KazooHandler

    def __post_init__(self) -> None:
        self.granted: threading.Event = threading.Event()
        """Set when the first has ended: kazoo reports a connection before it proves itself."""
        self._refused_at_s: float | None = None  # since when servers refuse the session
        self._patience_s = _FIRST_PATIENCE_S  # doubled when it ends, as a server may be slow
        self._connect = self.client._connection._connect
        self.client._connection._connect = self._shake_hands
        self._ask = self.client._connection._invoke
        self.client._connection._invoke = self._ask_with_patience

    def _ask_with_patience(self, timeout_s: float, *request: Any, **named: Any) -> Any:
        try:
            return self._ask(min(timeout_s, self._patience_s), *request, **named)
        except KazooTimeoutError:
            self._patience_s *= 2
            raise

    def _shake_hands(self, *where: Any) -> tuple[float, float]:
        try:
            granted: tuple[float, float] = self._connect(*where)
        except ConnectionDropped as dropped:
            self.handler.note_dropped(dropped.__context__)
            if self.client._connection._socket is None or not self.client.last_zxid:
                raise  # history is not the reason: the client has seen none
            if not self._has_refused_for_long():
                raise
            granted = self._connect_without_history(*where)
        self._refused_at_s = None
        self._patience_s = _FIRST_PATIENCE_S
        self.handler.note_connected()
        read_timeout_ms, connect_timeout_ms = granted
        self.session_timeout_s = read_timeout_ms * 1.5 / 1000  # kazoo reads for two thirds of it
        self.granted.set()
        return read_timeout_ms, connect_timeout_ms

    def _has_refused_for_long(self) -> bool:
        """Return whether servers have refused the session for longer than one may lag behind."""
        now_s = time.monotonic()
        if self._refused_at_s is None:
            self._refused_at_s = now_s
        return now_s - self._refused_at_s >= self.session_timeout_s / 2

    def _connect_without_history(self, *where: Any) -> tuple[float, float]:
        """Connect as a client that has seen no changes; if that succeeds, history was the reason.

        The server then says whether it still knows the session.
        """
        seen, self.client.last_zxid = self.client.last_zxid, 0
        self.client._connection._socket.close()
        try:
            granted: tuple[float, float] = self._connect(*where)
        except SessionExpiredError:
            self._log_lost_history(seen)
            raise
        except BaseException:
            self.client.last_zxid = seen  # another reason, such as no quorum
            raise
        self._log_lost_history(seen)
        return granted

    def _log_lost_history(self, seen: int) -> None:
        self._refused_at_s = None
        logger.warning(
            "ZooKeeper at %s has come back with less history (change 0x%x, which this process has "
            "seen, is missing): it was restored from a backup, or has lost its data; this process "
            "registers again what it had there",
            *(self.servers, seen),
        )

    @contextmanager
    def broken_off(self) -> Iterator[None]:
        """Break off attempts to connect to a silent server: `KazooClient.stop` waits for them."""
        has_ended = threading.Event()
        breaker = start_once(partial(self._break_off, has_ended), name="handshake-breaker")
        try:
            yield
        finally:
            has_ended.set()
            breaker.join()

    def _break_off(self, has_ended: threading.Event) -> None:
        while not has_ended.wait(_BREAK_INTERVAL_S):
            self.handler.break_off()
            sock = self.client._connection._socket
            if sock is not None and not self.client.connected:
                with suppress(OSError):  # closed, or not connected yet
                    sock.shutdown(socket.SHUT_RDWR)
