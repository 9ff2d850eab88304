"""A connection to one broker: sends requests and receives responses, with timeouts."""

from __future__ import annotations

import math
import select
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Self, TypeVar

from broker import deadlines, errors
from broker.client import backoff
from broker.protocol import client_connection, responses
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import INT32, Buffer, Reader
from broker.protocol.requests import READING_TYPES, BaseRequest, encode_request

if TYPE_CHECKING:
    import ssl

    from broker.security.client_security import ClientSecurity
    from broker.security.mechanisms import ClientMechanism


DEFAULT_TIMEOUT_S = 30.0
DEFAULT_CONNECT_TIMEOUT_S = 5.0
FIRST_RESPONSE_S = 10.0
"""How long a port may say nothing, whatever the timeouts: longer ones are for long responses."""
DEFAULT_PORT = 9092
# room for a hundred acknowledgements, which arrive together when many requests are in flight
_READ_AHEAD_BYTES = 8 << 10
_NOTHING = memoryview(b"")
# up to this size, copying the parts into one buffer is cheaper than a gathering `sendmsg`
_JOINED_BYTES = 32 << 10
# silence that is shorter says nothing of a broker, only that its caller had no time left
_TELLING_S = 0.1
_MAX_PARTS = 1000  # below the limit of `sendmsg` (IOV_MAX)
_T = TypeVar("_T")


@dataclass(eq=False, repr=False)
class Connection:
    """A connection to a broker, opened by the first request; for one thread at a time.

    Callers retry a publish and choose the broker themselves. `name` is the broker's id and address,
    for messages.

    Args:
        address: of the broker; the id is only shown in messages, -1 if unknown.
        timeout_s: for each send and receive; less near the end of a call (`broker.deadlines`).
        connect_timeout_s: for all connection attempts and the waits between them; the same.
        client_id: sent in the header of extension requests.
        send_bytes: SO_SNDBUF; 0 for the system's default.
        receive_bytes: SO_RCVBUF; 0 for the system's default.
        retries_refused: connect again, until the connect timeout, while connections are refused.
        security: TLS, and the user that logs in; None for a plain connection of nobody.
        mechanism: proves who the client is, on each connection before anything else is sent.

    Raises:
        BrokerUnreachableError: by any request: the connection cannot be opened, or is lost.
        TlsError: it cannot be secured.
        RequestTimeoutError: the broker did not read, or its response did not arrive, in time.
        ProtocolError: the bytes received are not the response; the connection is closed.
        AuthenticationError: the broker does not accept the client's proof, or gives none itself.
    """

    address: responses.BrokerAddress
    _: KW_ONLY
    timeout_s: float = DEFAULT_TIMEOUT_S
    connect_timeout_s: float = DEFAULT_CONNECT_TIMEOUT_S
    client_id: str = "pylogctl"
    send_bytes: int = 0
    receive_bytes: int = 0
    retries_refused: bool = True
    security: ClientSecurity | None = None
    mechanism: ClientMechanism | None = None

    def __post_init__(self) -> None:
        self._protocol = client_connection.ClientConnection(self.address, self.client_id)
        self.name: str = self._protocol.name
        self._prove_again_s = math.inf
        self._socket: socket.socket | None = None
        self._tls: ssl.SSLSocket | None = None  # the same, if it is one
        self._poll = select.poll()
        self._ahead = _NOTHING  # bytes received that `receive` has not returned yet

    @property
    def is_open(self) -> bool:
        """Return whether the connection is open."""
        return self._socket is not None

    def connect(self) -> None:
        """Connect unless the connection is open, with growing waits between attempts.

        Raises:
            BrokerUnreachableError: no attempt succeeded within the connect timeout.

        Source: Kafka 0.7 `SyncProducer.connect`.
        """
        if self._socket is None:
            self._ahead = _NOTHING
            self._socket = self._connect()
            self._poll = select.poll()
            self._poll.register(self._socket, select.POLLIN)
            mechanism = self.mechanism
            if mechanism is None and self.security is not None:
                mechanism = self.security.mechanism
            if mechanism is not None:
                with deadlines.Limit(min(self.timeout_s, FIRST_RESPONSE_S)):
                    self._authenticate(mechanism)

    def _authenticate(self, mechanism: ClientMechanism) -> None:
        from broker.security.mechanisms import PLAIN, authenticate  # late: few clients need it

        channel = PLAIN
        if self._tls is not None:
            from broker.security.client_tls import channel_of

            channel = channel_of(self._tls)
        self._prove_again_s = math.inf
        try:
            exchange = authenticate(mechanism, channel)
            request = next(exchange)
            while True:
                try:
                    body = self.call(request)
                except errors.ServerError as error:
                    request = exchange.throw(error)
                else:
                    request = exchange.send(body)
        except StopIteration as end:
            lifetime_ms: int = end.value
            if lifetime_ms:
                self._prove_again_s = time.monotonic() + lifetime_ms / 2000
        except errors.BrokerError as error:
            self.close()
            if self.mechanism is not None or not isinstance(error, errors.ServerError):
                raise
            assert self.security is not None  # it is a user's login
            raise self.security.refused_login(self.name, error) from error

    def _connect(self) -> socket.socket:
        if self.security is not None and self.security.has_tls:
            from broker.security.client_tls import context_of  # late: loads ssl

            context_of(self.security.tls_files)  # the files are looked at first
        started_s = time.monotonic()
        limit_s = deadlines.wait_s(self.connect_timeout_s)
        attempts = 0
        while True:
            elapsed_s = time.monotonic() - started_s
            try:
                attempts += 1
                return self._attempt_connect(max(0.001, limit_s - elapsed_s))
            except OSError as error:
                wait_s = backoff.wait_s(attempts)
                elapsed_s = time.monotonic() - started_s
                if isinstance(error, TimeoutError) and limit_s < min(
                    self.connect_timeout_s, _TELLING_S
                ):
                    raise deadlines.timed_out("the time limit of the call is over") from error
                if (
                    isinstance(error, socket.gaierror)
                    or (isinstance(error, ConnectionRefusedError) and not self.retries_refused)
                    or elapsed_s + wait_s > limit_s
                ):
                    raise errors.BrokerUnreachableError(
                        f"cannot reach {self.name}: {client_connection.reason_of(error)} "
                        f"({attempts} attempt{'s' * (attempts > 1)} in {elapsed_s:.1f}s)"
                    ) from error
            time.sleep(wait_s)

    def _attempt_connect(self, timeout_s: float) -> socket.socket:
        end_s = time.monotonic() + timeout_s
        sock = socket.create_connection((self.address.host, self.address.port), timeout_s)
        self._tls = None
        try:
            if sock.getsockname() == sock.getpeername():
                # TCP can connect a free ephemeral port to itself
                raise ConnectionRefusedError("connection refused")
            sock.settimeout(deadlines.wait_s(self.timeout_s))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.send_bytes:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_bytes)
            if self.receive_bytes:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_bytes)
            if self.security is not None and self.security.has_tls:
                from broker.security.client_tls import secured

                sock.settimeout(max(0.001, end_s - time.monotonic()))
                self._tls = secured(sock, self.security.tls_files, self.address, self.name)
                return self._tls
        except (OSError, errors.BrokerError):
            sock.close()
            raise
        return sock

    def _limit(self, sock: socket.socket) -> None:
        """Give the socket the timeout of the next send or receive."""
        timeout_s = deadlines.left_s(self.timeout_s)
        if timeout_s <= 0:
            raise TimeoutError
        if sock.gettimeout() != timeout_s:  # setting it costs a system call
            sock.settimeout(timeout_s)

    def await_end(self, timeout_s: float) -> None:
        """Wait until an open connection ends, on which no response is awaited; or for a time."""
        if self._socket is not None:
            self._poll.poll(1000 * timeout_s)

    def limited_to(self, timeout_s: float) -> Self:
        """Let responses, and the connecting, take this long at most; return the connection."""
        self.timeout_s = timeout_s
        self.connect_timeout_s = min(timeout_s, self.connect_timeout_s)
        return self

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        # in one step: another thread that uses the connection may open it again meanwhile
        sock, self._socket = self._socket, None
        if sock is not None:
            sock.close()
            self._tls = None
        self._ahead = _NOTHING

    def interrupt(self) -> None:
        """Make a send or receive that blocks in another thread fail at once."""
        sock = self._socket
        if sock is not None:
            with suppress(OSError):  # the other thread may have closed it meanwhile
                # not the method of a TLS socket: that takes the keys from the other thread
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def hello(self) -> responses.HelloResponse | None:
        """Return the broker's response to a hello, or None if it knows only 0.7's requests.

        The request is sent once for each `Connection` object. A 0.7 broker closes the connection
        on a request it does not know; the connection is then opened again.
        """
        if not self._protocol.is_known:
            self.connect()  # has a limit of its own, for brokers that are starting
            with deadlines.Limit(min(self.timeout_s, FIRST_RESPONSE_S)) as limit:
                self._greet(limit.started_s)
        return self._protocol.hello

    def _greet(self, started_s: float) -> None:
        protocol, lost_count, silence_s = self._protocol, 0, client_connection.SILENCE_S
        while not protocol.is_known:
            self.connect()
            greeting = protocol.greeting(lost_count)
            try:
                frame = self._exchange(greeting, silence_s, started_s)
                if frame is None:
                    silence_s = client_connection.LONG_SILENCE_S
                    continue
                protocol.take_greeting(greeting, frame)
            except errors.TlsError:
                self.close()
                raise
            except errors.BrokerUnreachableError as error:
                self.close()
                lost_count = protocol.lost_greeting(lost_count, error)
            except errors.ProtocolError:
                self.close()
                raise

    def understands(self, kind: type[ExtensionRequest]) -> bool:
        """Return whether the broker supports a request in the version used here; see `hello`."""
        return self.hello() is not None and self._protocol.understands(kind)

    def _exchange(
        self, greeting: client_connection.Greeting, silence_s: float, started_s: float
    ) -> Buffer | None:
        """Return the response; None if the broker ended the connection after a short silence."""
        self.send(*greeting.parts)
        if not greeting.is_hello:
            return self.receive()
        limit_s = min(silence_s, deadlines.wait_s(self.timeout_s) / 2)
        has_ended = self._end_if_silent(limit_s)
        try:
            frame = self.receive(client_connection.MAX_HELLO_BYTES)
        except errors.BrokerUnreachableError as error:
            if not has_ended:
                raise
            # any broker closes the connection then, so it need not be a 0.7 one
            if silence_s < client_connection.LONG_SILENCE_S:
                return None
            raise self._silent(started_s) from error
        except errors.RequestTimeoutError as error:
            raise self._silent(started_s) from error
        if has_ended:
            self.close()
        return frame

    def _silent(self, started_s: float) -> errors.RequestTimeoutError:
        return self._timed_out(time.monotonic() - started_s, "while waiting for a response")

    def _end_if_silent(self, silence_s: float) -> bool:
        """Close the sending half if no response comes; return whether it was closed."""
        # a server that waits for a line responds then; so does a broker, once it can
        sock = self._socket
        assert sock is not None
        if self._poll.poll(1000 * silence_s) or self._tls is not None:
            return False  # a server of TLS has responded already
        with suppress(OSError):  # lost meanwhile; the next receive fails
            sock.shutdown(socket.SHUT_WR)
        return True

    def repeat_if_lost(self, exchange: Callable[[], _T]) -> _T:
        """Run an exchange, and once more if an open connection turns out to be lost.

        Brokers close connections that were idle for long.

        Args:
            exchange: sends requests on this connection that may reach the broker twice.
        """
        was_open = self.is_open
        try:
            return exchange()
        except errors.BrokerUnreachableError:
            if not was_open:
                raise
        return exchange()

    def call(self, request: ExtensionRequest) -> Reader:
        """Send an extension request and return the body of its response.

        Raises:
            ServerError: the response carries an error code.
        """
        if self.mechanism is not None and time.monotonic() > self._prove_again_s and self.is_open:
            self._authenticate(self.mechanism)
        correlation_id = self.send_extension(request)
        return self.receive_extension(correlation_id)

    def send_extension(self, request: ExtensionRequest) -> int:
        """Send an extension request; return the correlation id of its response."""
        if request.TYPE not in READING_TYPES:
            deadlines.note_change()
        correlation_id, parts = self._protocol.encode(request)
        self.send(*parts)
        return correlation_id

    def next_correlation_id(self) -> int:
        """Return the correlation id for the next extension request."""
        return self._protocol.next_correlation_id()

    def receive_extension(self, correlation_id: int) -> Reader:
        """Return the body of the next response, which must have this correlation id."""
        return self.open_extension(self.receive(), correlation_id)

    def open_extension(self, frame: Buffer, correlation_id: int) -> Reader:
        """Return the body of a response, which must have this correlation id.

        Raises:
            ServerError: the request was refused as a whole.
            BrokerStoppedError: the broker ended the connection instead of a response.
            ProtocolError: it is the response to another request; the connection is closed.
        """
        try:
            return self._protocol.open(frame, correlation_id)
        except (errors.ProtocolError, errors.BrokerStoppedError, errors.AuthenticationError):
            self.close()
            raise

    def drop_response(self) -> None:
        """Drop a response of a broker that shuts down; an error once it closes the connection."""
        try:
            with suppress(errors.ServerError):
                self._protocol.decode(self.receive())
        except errors.BrokerStoppedError:
            self.close()
            raise

    def send_request(self, request: BaseRequest) -> None:
        """Send one of 0.7's requests."""
        self.send(encode_request(request))

    def ask(self, request: BaseRequest) -> memoryview:
        """Send one of 0.7's requests that have a response, and return the response."""
        self.send_request(request)
        return self.receive()

    def send(self, *parts: Buffer) -> None:
        """Send a frame, given in parts, connecting first if necessary.

        After `BrokerUnreachableError` it is unknown how much of the frame arrived; `receive` still
        returns the responses that had come before it.
        """
        self.connect()
        assert self._socket is not None
        try:
            self._limit(self._socket)
            _send_all(self._socket, parts)
        except OSError as error:
            rest, end = self._take_received(self._socket)
            lost = self._lost(end or error, "while sending")
            self.close()
            self._ahead = rest
            raise lost from error

    def _take_received(self, sock: socket.socket) -> tuple[memoryview, OSError | None]:
        """Return all bytes that have arrived and `receive` has not returned, without waiting.

        The second is what TLS says of the end of the connection, if anything.
        """
        parts: list[Buffer] = [self._ahead]
        end = None
        try:
            sock.setblocking(False)
            while part := sock.recv(_READ_AHEAD_BYTES):
                parts.append(part)
        except OSError as error:
            end = error if self._is_refusal(error) else None
        return memoryview(b"".join(parts)), end

    def _is_refusal(self, error: OSError) -> bool:
        """Return whether an error is TLS's own, and not that of a socket."""
        if self._tls is None:
            return False
        from ssl import SSLEOFError, SSLError, SSLWantReadError

        passing = SSLEOFError, SSLWantReadError
        return isinstance(error, SSLError) and not isinstance(error, passing)

    def fileno(self) -> int:
        """Return the descriptor of the connection, which must be open."""
        assert self._socket is not None
        return self._socket.fileno()

    def has_received(self, within_s: float = 0.0) -> bool:
        """Return whether bytes of a response, or the connection's end, come within `within_s`."""
        if self._ahead or (self._tls is not None and self._tls.pending()):
            return True
        return self._socket is not None and bool(self._poll.poll(1000 * within_s))

    def receive(self, max_bytes: int = client_connection.MAX_RESPONSE_BYTES) -> memoryview:
        """Return the next frame without its size field; one larger than `max_bytes` is no frame."""
        return self._receive_exactly(self.receive_size(max_bytes))

    def receive_size(self, max_bytes: int = client_connection.MAX_RESPONSE_BYTES) -> int:
        """Return the size of the next frame, which `receive_into` then reads."""
        head = self._receive_exactly(INT32.size)
        try:
            return self._protocol.frame_bytes(head, max_bytes)
        except (errors.ProtocolError, errors.TlsError):
            self.close()
            raise

    def receive_into(self, view: memoryview) -> None:
        """Fill a view with the next bytes of a frame."""
        filled = min(len(self._ahead), len(view))
        view[:filled] = self._ahead[:filled]
        self._ahead = self._ahead[filled:]
        self._fill(view, filled, len(view))

    def _receive_exactly(self, size: int) -> memoryview:
        filled = len(self._ahead)
        if filled < size:
            view = memoryview(bytearray(max(size, _READ_AHEAD_BYTES)))
            view[:filled] = self._ahead
            filled = self._fill(view, filled, size)
            self._ahead = view[:filled]
        found = self._ahead[:size]
        self._ahead = self._ahead[size:] if filled > size else _NOTHING
        return found

    def _fill(self, view: memoryview, filled: int, size: int) -> int:
        """Receive until a view has `size` bytes at least; return how many it has."""
        if filled >= size:
            return filled
        if self._socket is None:
            raise errors.BrokerUnreachableError(f"the connection to {self.name} is closed")
        has_deadline = deadlines.current() is not None
        try:
            self._limit(self._socket)
            while filled < size:
                received = self._socket.recv_into(view[filled:])
                if not received:
                    raise ConnectionResetError("it closed the connection")
                filled += received
                if has_deadline and filled < size:  # less is left of it after each part
                    self._limit(self._socket)
        except OSError as error:
            lost = self._lost(error, "while waiting for a response")
            self.close()
            raise lost from error
        return filled

    def _lost(
        self, error: OSError, when: str
    ) -> errors.BrokerUnreachableError | errors.RequestTimeoutError:
        if isinstance(error, TimeoutError):
            limit_s = None if self._socket is None else self._socket.gettimeout()
            return self._timed_out(limit_s or self.timeout_s, when)
        if self._is_refusal(error):
            from broker.security.client_tls import refused

            assert self.security is not None
            return refused(error, self.security.tls_files, self.name)
        return self._protocol.lost(error, when)

    def _timed_out(self, after_s: float, when: str) -> errors.RequestTimeoutError:
        error = self._protocol.timed_out(float(f"{after_s:.3g}"), when)
        error.outcome = deadlines.outcome()
        return error


def _send_all(sock: socket.socket, parts: Sequence[Buffer]) -> None:
    """Send the parts of a frame, large ones without a copy."""
    is_plain = type(sock) is socket.socket  # one of TLS has no `sendmsg`, and copies anyway
    if not is_plain or sum(map(len, parts)) <= _JOINED_BYTES or len(parts) > _MAX_PARTS:
        sock.sendall(parts[0] if len(parts) == 1 else b"".join(parts))
        return
    sent = sock.sendmsg(parts)
    for part in parts:
        if sent < len(part):
            sock.sendall(memoryview(part)[sent:])
        sent = max(0, sent - len(part))


def parse_broker_list(text: str) -> list[responses.BrokerAddress]:
    """Return the brokers of a static list: `HOST[:PORT]` or 0.7's `ID:HOST:PORT`, comma-separated.

    A broker without an id gets -1; `Connection.hello` returns its id.
    A malformed item is a `ProtocolError`.
    """
    return [_parse_broker(item.strip()) for item in text.split(",") if item.strip()]


def _parse_broker(item: str) -> responses.BrokerAddress:
    rest, colon, port = item.rpartition(":")
    if not colon or (item.startswith("[") and item.endswith("]")) or _is_ipv6(item):
        rest, port = item, str(DEFAULT_PORT)
    broker_id, colon, host = rest.partition(":")
    if not colon or not broker_id.isdecimal():
        broker_id, host = "-1", rest
    host = host.removeprefix("[").removesuffix("]")
    problem = ""
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        problem = "; valid: HOST[:PORT], ID:HOST:PORT"
    elif "/" in host:
        problem = ": give HOST:PORT, without a scheme"
    elif item.isdecimal():
        problem = f": give localhost:{host} for a port"
    if problem:
        raise errors.ProtocolError(f"'{item}' is no broker address{problem}")
    return responses.BrokerAddress(int(broker_id), host, int(port))


def _is_ipv6(text: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, text.partition("%")[0])
    except OSError:
        return False
    return True


def addresses_text(addresses: Sequence[responses.BrokerAddress], separator: str = ",") -> str:
    """Return broker addresses as text, for messages."""
    return separator.join(one.text for one in addresses)
