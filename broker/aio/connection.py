"""A connection to one broker in an event loop: many requests in flight, responses in order.

A request that was written is never taken back: if its future is cancelled, its slot stays in the
table of pending requests, and its response is dropped. So a cancelled task leaves the connection
sound.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

from broker import errors
from broker.client.connection import DEFAULT_CONNECT_TIMEOUT_S, DEFAULT_TIMEOUT_S, Connection
from broker.protocol import responses
from broker.protocol.client_connection import (
    LONG_SILENCE_S,
    MAX_HELLO_BYTES,
    MAX_RESPONSE_BYTES,
    SILENCE_S,
    ClientConnection,
    Greeting,
    reason_of,
)
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import INT32, Buffer, Reader
from broker.protocol.responses import BrokerAddress
from broker.security.client_security import ClientSecurity
from broker.security.client_tls import channel_of, context_of, refused
from broker.security.mechanisms import PLAIN, ClientMechanism, authenticate

_BUFFER_BYTES = 64 << 10
_LEAST_ROOM_BYTES = 4 << 10
# a system call costs more than to copy so many
_JOINED_BYTES = 64 << 10
_CLOSE_S = 1.0  # for bytes that are still to be sent
_WITHOUT_ID = -1  # of a response that has no correlation id
_WAITING = "while waiting for a response"


@dataclass(eq=False, repr=False)
class AsyncConnection(asyncio.BufferedProtocol):
    """A connection to a broker, opened once; for the tasks of one loop.

    After it is lost every request fails with `BrokerUnreachableError`: make another one. If a
    response is due and no byte comes for `timeout_s`, or the broker does not read for so long, the
    connection is lost with `RequestTimeoutError`. If bytes are no response, it is lost with
    `ProtocolError`. `security` has TLS, and the user that logs in. `mechanism` proves who the
    client is, before anything else is sent.
    """

    address: BrokerAddress
    _: KW_ONLY
    timeout_s: float = DEFAULT_TIMEOUT_S
    connect_timeout_s: float = DEFAULT_CONNECT_TIMEOUT_S
    client_id: str = "pylogctl"
    security: ClientSecurity | None = None
    mechanism: ClientMechanism | None = None

    def __post_init__(self) -> None:
        self.on_lost: Callable[[errors.BrokerError], object] | None = None
        """Called once when an open connection is lost, after its requests have failed."""
        self.on_writable: Callable[[], object] | None = None
        """Called when the connection is writable again."""
        self._heard_s = 0.0  # when bytes came last, or the first pending request was sent
        self._files = (
            None if self.security is None or not self.security.has_tls else self.security.tls_files
        )
        self._protocol = ClientConnection(self.address, self.client_id)
        self.name = self._protocol.name
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._failure: errors.BrokerError | None = None  # why it was lost
        # of requests without a response: the correlation id, and what its response completes
        self._pending: deque[tuple[int, asyncio.Future[Any]]] = deque()
        self._max_bytes = MAX_RESPONSE_BYTES
        # received bytes are appended, never overwritten, as responses are views of them
        self._view = memoryview(bytearray(_BUFFER_BYTES))
        self._start = self._filled = 0  # of the bytes of the next frame
        self._unsent: list[Buffer] = []
        self._unsent_bytes = 0
        self._room_waiters: deque[asyncio.Future[None]] = deque()
        self._is_paused = False
        self._watch: asyncio.TimerHandle | None = None
        self._closing: asyncio.Transport | None = None
        self._ended: asyncio.Future[None] | None = None  # of the present transport

    @property
    def is_open(self) -> bool:
        """Return whether requests can be sent."""
        return self._transport is not None

    @property
    def hello(self) -> responses.HelloResponse | None:
        """Return the broker's response to a hello; None if it knows only 0.7's requests."""
        return self._protocol.hello

    async def open(self, limit_s: float | None = None) -> None:
        """Connect, and learn what the broker is; if that fails, nothing is left open.

        Raises:
            BrokerUnreachableError, RequestTimeoutError, ProtocolError: see the class.
        """
        try:
            async with asyncio.timeout(limit_s):
                await self._open()
        except TimeoutError as error:
            raise self._protocol.timed_out(limit_s or 0.0, "while connecting") from error

    async def _open(self) -> None:
        protocol, lost_count, silence_s = self._protocol, 0, SILENCE_S
        try:
            while not (self.is_open and protocol.is_known):
                if not self.is_open:
                    await self._connect()
                if protocol.is_known:
                    break
                greeting = protocol.greeting(lost_count)
                try:
                    frame = await self._exchange(greeting, silence_s)
                    if frame is None:
                        silence_s = LONG_SILENCE_S
                        await self._end()
                        continue
                    protocol.take_greeting(greeting, frame)
                except errors.TlsError:
                    raise
                except errors.BrokerUnreachableError as error:
                    if self._files is not None and not lost_count:
                        await self._in_thread(Connection.hello)  # an alert may have been lost
                    lost_count = protocol.lost_greeting(lost_count, error)
                    await self._end()  # the broker did it
        except BaseException:
            self._abort(self._error())
            raise
        self._max_bytes = MAX_RESPONSE_BYTES

    async def _connect(self) -> None:
        where = self.address.host, self.address.port
        secured: dict[str, Any] = {}
        if self._files is not None:
            secured = {
                "ssl": context_of(self._files).ssl,
                "ssl_shutdown_timeout": _CLOSE_S,
            }
        try:
            async with asyncio.timeout(self.connect_timeout_s):
                await self._loop.create_connection(lambda: self, *where, **secured)
        except OSError as error:  # `TimeoutError` is one
            if secured and isinstance(error, ssl.SSLError | ConnectionResetError):
                await self._in_thread(Connection.connect)
            raise errors.BrokerUnreachableError(
                f"cannot reach {self.name}: {reason_of(error)}"
            ) from error
        mechanism = self.mechanism
        if mechanism is None and self.security is not None:
            mechanism = self.security.mechanism
        if mechanism is not None:
            channel = PLAIN
            if self._files is not None and self._transport is not None:
                channel = channel_of(self._transport.get_extra_info("ssl_object"))
            exchange = authenticate(mechanism, channel)
            request = next(exchange)
            try:
                while True:
                    try:
                        body = await self.call(request)
                    except errors.ServerError as error:
                        request = exchange.throw(error)
                    else:
                        request = exchange.send(body)
            except StopIteration:
                pass
            except errors.ServerError as error:
                if self.security is None:
                    raise
                raise self.security.refused_login(self.name, error) from error

    async def _in_thread(self, what: Callable[[Connection], object]) -> None:
        """Fail again without asyncio, which loses the certificates of a failed handshake."""
        again = Connection(
            self.address, connect_timeout_s=self.connect_timeout_s, security=self.security
        )
        try:
            await self._loop.run_in_executor(None, what, again)
        finally:
            again.close()

    async def _exchange(self, greeting: Greeting, silence_s: float) -> memoryview | None:
        """Return the response; None if the broker ended the connection after a short silence."""
        self._max_bytes = MAX_HELLO_BYTES if greeting.is_hello else MAX_RESPONSE_BYTES
        response: asyncio.Future[memoryview] = self._expect(_WITHOUT_ID)
        self.send(*greeting.parts)
        limit_s = min(silence_s, self.timeout_s / 2)
        await asyncio.wait([response], timeout=limit_s if greeting.is_hello else None)
        if response.done():
            return response.result()
        transport = self._transport
        if transport is not None and transport.can_write_eof():  # not with TLS
            transport.write_eof()
        try:
            frame = await response
        except errors.BrokerUnreachableError as error:
            # any broker closes the connection then, so it need not be a 0.7 one
            if silence_s < LONG_SILENCE_S:
                return None
            raise self._protocol.timed_out(limit_s, _WAITING) from error
        await self._end()
        return frame

    async def _end(self) -> None:
        """End this connection, before another one or none is made."""
        self.close()
        await self.closed()

    def request(self, request: ExtensionRequest) -> asyncio.Future[Reader]:
        """Send a request; the future gets the body of its response.

        Cancelling the future drops the response. An error of the future is `ServerError` if the
        request was refused as a whole, else one of the class.
        """
        correlation_id, parts = self._protocol.encode(request)
        response = self._expect(correlation_id)
        self.send(*parts)
        return response

    async def call(self, request: ExtensionRequest) -> Reader:
        """Send a request, and return the body of its response; errors are those of `request`."""
        return await self.request(request)

    def expect_frame(self) -> asyncio.Future[memoryview]:
        """Return what gets the frame of the response to the request that `send` sends next."""
        return self._expect(_WITHOUT_ID)

    def _expect(self, correlation_id: int) -> asyncio.Future[Any]:
        if self._transport is None:
            raise self._error()
        self._watch_silence()
        response: asyncio.Future[Any] = self._loop.create_future()
        self._pending.append((correlation_id, response))
        return response

    def send(self, *parts: Buffer) -> None:
        """Send a frame, given in parts; small ones of one turn of the loop together."""
        if self._transport is None:
            raise self._error()
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.extend(parts)
        self._unsent_bytes += sum(map(len, parts))
        if self._unsent_bytes >= _JOINED_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._unsent:
            return  # Python 3.11 refuses even an empty write after the end of the sending half
        parts, self._unsent = self._unsent, []
        if self._unsent_bytes < _JOINED_BYTES:
            parts = [b"".join(parts)]
        self._unsent_bytes = 0
        if self._transport is not None:
            for one in parts:
                # not `writelines`: that of 3.13.0 never pauses, and writes an empty part for ever
                self._transport.write(one)

    @property
    def is_writable(self) -> bool:
        """Return whether little of what was sent is still buffered here; see `drained`."""
        return not self._is_paused

    async def drained(self) -> None:
        """Wait until the connection is writable; an error if it is lost."""
        while self._is_paused and self._transport is not None:
            waiter = self._loop.create_future()
            self._room_waiters.append(waiter)
            await waiter
        if self._transport is None:
            raise self._error()

    def close(self) -> None:
        """Close the connection once what is buffered is sent; pending requests fail now."""
        self._flush()
        transport, self._transport = self._transport, None
        if transport is not None:
            self._closing = transport
            transport.close()
            self._fail(self._error())

    async def closed(self) -> None:
        """Wait until the connection, which was closed, has ended; at most a second."""
        if self._ended is not None and self._closing is not None:
            _, late = await asyncio.wait([self._ended], timeout=_CLOSE_S)
            if late:
                self._closing.abort()

    # what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._transport = cast(asyncio.Transport, transport)
        self._ended = self._loop.create_future()
        self._failure, self._is_paused = None, False
        self._unsent, self._unsent_bytes = [], 0
        self._start = self._filled = 0
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # not asked of the socket: it has no peer any more, if that has reset it already
        if transport.get_extra_info("sockname") == transport.get_extra_info("peername"):
            # TCP can connect a free ephemeral port to itself
            self._lose(self._protocol.lost(ConnectionRefusedError("connection refused"), "at once"))

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes go."""
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes that came, and complete the requests whose responses are there."""
        view, start = self._view, self._start
        self._filled = end = self._filled + nbytes
        self._heard_s = self._loop.time()
        wanted_bytes = 0
        try:
            while end - start >= INT32.size:
                body = start + INT32.size
                size = self._protocol.frame_bytes(view[start:body], self._max_bytes)
                if body + size > end:
                    wanted_bytes = INT32.size + size
                    break
                start = body + size
                self._take(view[body:start])
        except (errors.ProtocolError, errors.BrokerStoppedError, errors.TlsError) as error:
            self._lose(error)
            return
        self._start = start
        if max(start + wanted_bytes, end + _LEAST_ROOM_BYTES) > len(view):
            rest = view[start:end]
            self._view = memoryview(bytearray(max(wanted_bytes, _BUFFER_BYTES)))
            self._view[: len(rest)] = rest
            self._start, self._filled = 0, len(rest)

    def _take(self, frame: memoryview) -> None:
        """Complete the oldest pending request."""
        if not self._pending:
            self._protocol.decode(frame)  # the last response of a broker that stops, if any
            raise errors.ProtocolError(f"{self.name} sent a response that no request is for")
        correlation_id, response = self._pending[0]
        found: Any = frame
        error: errors.BrokerError | None = None
        if correlation_id != _WITHOUT_ID:
            try:
                found = self._protocol.open(frame, correlation_id)
            except errors.ServerError as refused:
                error = refused
        self._pending.popleft()
        if response.done():  # cancelled
            return
        if error is None:
            response.set_result(found)
        else:
            response.set_exception(error)

    def pause_writing(self) -> None:
        """Make `drained` wait: the broker does not read what is sent."""
        self._is_paused = True
        self._watch_silence()

    def resume_writing(self) -> None:
        """Let those continue that wait in `drained`."""
        self._is_paused = False
        self._wake_writers()
        if self.on_writable is not None:
            self.on_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what is pending, unless the connection was closed here."""
        assert self._ended is not None
        self._ended.set_result(None)
        if exc is not None and self._transport is not None and self._files is None:
            self._take_rest(self._transport)
        if self._transport is not None:
            cause = exc if isinstance(exc, OSError) else None
            if isinstance(exc, ssl.SSLError) and self._files is not None:
                self._lose(refused(exc, self._files, self.name))
                return
            self._lose(
                self._protocol.lost(
                    cause or ConnectionResetError("it closed the connection"), _WAITING
                )
            )

    def _take_rest(self, transport: asyncio.Transport) -> None:
        """Read what came before a send failed: the last response of a broker that stops."""
        with suppress(OSError):
            descriptor = transport.get_extra_info("socket").fileno()
            while nbytes := os.readv(descriptor, [self.get_buffer(-1)]):
                self.buffer_updated(nbytes)

    def _watch_silence(self) -> None:
        """Lose the connection if a response, or room to send, does not come in time."""
        if not self._pending:
            self._heard_s = self._loop.time()
            if self._watch is None:
                self._watch = self._loop.call_later(self.timeout_s, self._check_silence)

    def _check_silence(self) -> None:
        self._watch = None
        if self._pending or self._is_paused:
            wait_s = self._heard_s + self.timeout_s - self._loop.time()
            if wait_s > 0:
                self._watch = self._loop.call_later(wait_s, self._check_silence)
            else:
                when = _WAITING if self._pending else "while sending"
                self._lose(self._protocol.timed_out(self.timeout_s, when))

    def _lose(self, error: errors.BrokerError) -> None:
        self._abort(error)
        if self.on_lost is not None:
            self.on_lost(error)

    def _abort(self, error: errors.BrokerError) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
            self._fail(error)

    def _fail(self, error: errors.BrokerError) -> None:
        self._failure = error
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        pending, self._pending = self._pending, deque()
        for _, response in pending:
            if not response.done():
                response.set_exception(self._error())
                response.exception()  # those who waited for it may have been cancelled
        self._wake_writers()

    def _wake_writers(self) -> None:
        while self._room_waiters:
            waiter = self._room_waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def _error(self) -> errors.BrokerError:
        """Return why requests fail, each time anew: an exception that is raised again grows."""
        failure = self._failure
        if failure is None:
            return errors.BrokerUnreachableError(f"the connection to {self.name} is closed")
        return type(failure)(str(failure), hints=failure.hints)
