"""The HTTP server that Prometheus scrapes."""

from __future__ import annotations

import gzip
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from broker.endpoints import join_address
from broker.errors import AddressInUseError
from broker.threads import LoopThread
from broker.units import ListenAddress

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

logger = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TIMEOUT_S = 10.0
_AT_A_TIME = 16
"""Connections; one more ends the oldest of the address that has most of them."""
_SHARED_S = 1.0
"""Scrapes within this time of one another get the same text."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class _Shared:
    """The last text, which scrapers that come together share."""

    def __init__(self, write: Callable[[], str]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._body = b""
        self._zipped: bytes | None = None
        self._written_s = float("-inf")

    def body(self, *, is_zipped: bool) -> bytes:
        with self._lock:
            if time.monotonic() - self._written_s > _SHARED_S:
                self._body = self._write().encode()
                self._zipped = None
                self._written_s = time.monotonic()
            if not is_zipped:
                return self._body
            if self._zipped is None:
                self._zipped = gzip.compress(self._body, compresslevel=1)
            return self._zipped


@contextmanager
def served_metrics(write: Callable[[], str], where: ListenAddress) -> Iterator[str]:
    """Serve metrics until the end of a block, and give their address.

    At `/metrics` is the text, at `/-/healthy` a word. On a loopback address requests with the name
    of another host are refused: a page of a foreign site may send them from a browser here.

    Args:
        write: returns the text; called by threads of the server, one at a time.
        where: to listen.

    Raises:
        AddressInUseError: the address cannot be listened on.
    """
    try:
        server = _make_server(_Shared(write), where)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AddressInUseError(
            f"cannot serve metrics on {_text(where)}: {reason.lower()}; port 0 is any free one"
        ) from error
    thread = LoopThread(server.serve_forever, name="metrics")
    thread.start()
    try:
        yield f"http://{_text(where._replace(port=server.server_port))}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _text(where: ListenAddress) -> str:
    return join_address(where.host, where.port)


def _make_server(shared: _Shared, where: ListenAddress) -> ThreadingHTTPServer:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # late: seldom asked for

    import prometheus_client  # noqa: F401  # else the first request loads it

    class Handler(BaseHTTPRequestHandler):
        timeout = _TIMEOUT_S
        server_version = sys_version = ""

        def do_GET(self) -> None:
            if is_local and self.headers.get("Host", "") not in allowed:
                self.send_error(421, "this name is not of this server")
            elif self.path == "/metrics":
                self._respond_metrics()
            elif self.path == "/-/healthy":
                self._respond(b"ok\n")
            else:
                self.send_error(404, "only /metrics and /-/healthy are here")

        def do_HEAD(self) -> None:
            self.do_GET()

        def _respond_metrics(self) -> None:
            is_zipped = "gzip" in self.headers.get("Accept-Encoding", "")
            try:
                body = shared.body(is_zipped=is_zipped)
            except Exception:  # a bug costs one scrape
                logger.exception("the metrics cannot be read")
                self.send_error(500, "the metrics cannot be read; the log says why")
            else:
                self._respond(body, is_zipped=is_zipped)

        def _respond(self, body: bytes, *, is_zipped: bool = False) -> None:
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            if is_zipped:
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log no requests."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
        block_on_close = False  # a scraper that stops reading must not hold up the end

        def process_request(self, request: Any, client_address: Any) -> None:
            with lock:
                if len(served) >= _AT_A_TIME:
                    counts = Counter(served.values())
                    oldest = max(served, key=lambda one: counts[served[one]])
                    del served[oldest]
                    with suppress(OSError):  # it may have ended
                        oldest.shutdown(socket.SHUT_RDWR)  # which its thread notices
                served[request] = client_address[0]
            super().process_request(request, client_address)

        def process_request_thread(self, request: Any, client_address: Any) -> None:
            try:
                super().process_request_thread(request, client_address)
            finally:
                with lock:
                    served.pop(request, None)

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Leave a client alone that has gone."""

    lock = threading.Lock()
    served: dict[socket.socket, str] = {}  # the addresses of clients; oldest first
    is_local = where.host in _LOOPBACK
    server = Server(where, Handler)
    allowed = {_text(ListenAddress(name, server.server_port)) for name in _LOOPBACK}
    return server
