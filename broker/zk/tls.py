"""Connections to ZooKeeper over TLS, which kazoo would make without saying what is wrong with them.

Kazoo's own also trust all CAs of the system beside the one that is named.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from broker.endpoints import join_address
from broker.errors import BrokerError, BrokerUnreachableError, ConfigError
from broker.protocol.responses import BrokerAddress
from broker.security.client_security import TlsFiles
from broker.security.client_tls import refused, secured
from broker.zk.handshakes import KazooHandler

logger = logging.getLogger(__name__)

_POLL_S = 0.05


def secured_connection(files: TlsFiles, host: str, sock: socket.socket, port: int) -> ssl.SSLSocket:
    """Return the socket of a new connection after the handshake; it is closed after an error."""
    try:
        return secured(sock, files, BrokerAddress(0, host, port), server_name(host, port))
    except BaseException:
        sock.close()
        raise


def server_name(host: str, port: int) -> str:
    """Return what messages call a server."""
    return f"ZooKeeper at {join_address(host, port)}"


class TlsHandler(KazooHandler):
    """Makes the connections of one kazoo client, and keeps why servers have none."""

    def __init__(self, files: TlsFiles) -> None:
        super().__init__()
        self._files = files
        self._server = ("", 0)
        self._failures: dict[tuple[str, int], BrokerError] = {}  # of servers, since one has worked
        self._has_worked = False
        self._opening: socket.socket | None = None  # the connection whose handshake goes on

    @property
    def failure(self) -> BrokerError | None:
        """Why there is no connection, None if that is not for TLS."""
        return next(iter(self._failures.values()), None)

    def await_first(
        self, connected: threading.Event, timeout_s: float, *, servers: int, retries: bool
    ) -> None:
        """Wait for the first connection; not if all servers fail, with `retries` for good."""
        deadline_s = time.monotonic() + timeout_s
        while not connected.wait(_POLL_S) and time.monotonic() < deadline_s:
            failures = list(self._failures.values())
            if len(failures) >= servers and not (
                retries and any(one.is_retriable for one in failures)
            ):
                return

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_: object
    ) -> ssl.SSLSocket:
        """Connect, for kazoo, which takes an OSError for a reason to try again."""
        self._server = (hostname, address[1])
        sock = socket.create_connection(address, timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with sock.dup() as self._opening:  # TLS takes the descriptor of the other one
            try:
                return secured_connection(self._files, hostname, sock, address[1])
            except (BrokerUnreachableError, ConfigError) as error:
                self._note(error)
                raise OSError(str(error)) from error

    def note_dropped(self, cause: BaseException | None) -> None:
        """Keep why a server has ended a connection: with TLS 1.3 it judges after the handshake."""
        if isinstance(cause, ssl.SSLError):
            self._note(refused(cause, self._files, server_name(*self._server)))

    def note_connected(self) -> None:
        """Forget what was wrong before."""
        self._failures.clear()
        self._has_worked = True

    def _note(self, error: BrokerError) -> None:
        known = self._failures.get(self._server)
        self._failures[self._server] = error
        if self._has_worked and str(known) != str(error):
            logger.warning("%s", error)

    def select(
        self,
        readers: Sequence[Any],
        writers: Sequence[Any],
        errors: Sequence[Any],
        timeout: float | None = None,
    ) -> Any:
        """Select, where what TLS has decrypted already is ready: the system knows nothing of it."""
        held = [one for one in readers if isinstance(one, ssl.SSLSocket) and one.pending()]
        found = super().select(readers, writers, errors, 0 if held else timeout)
        return ([*found[0], *(one for one in held if one not in found[0])], *found[1:])

    def break_off(self) -> None:
        """End the handshake that goes on, if any."""
        if (sock := self._opening) is not None:
            with suppress(OSError):  # it is over
                sock.shutdown(socket.SHUT_RDWR)
