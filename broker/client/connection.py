"""A connection to one broker: frames out, frames in, with real timeouts.

Not safe for several threads at once. Knows requests, but nothing of topics that move, retries of
a publish, or the registry.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from broker.errors import (
    BrokerUnreachableError,
    ProtocolError,
    RequestTimeoutError,
)
from broker.protocol.extension_requests import (
    ExtensionRequest,
    HelloRequest,
    encode_extension_parts,
)
from broker.protocol.primitives import INT32, Buffer, Reader
from broker.protocol.requests import BaseRequest, FetchRequest, RequestHeader, encode_request
from broker.protocol.responses import (
    BrokerAddress,
    HelloResponse,
    check_correlation_id,
    decode_extension_response,
)

DEFAULT_TIMEOUT_S = 30.0
DEFAULT_CONNECT_TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 1 << 29
"""Below every size that four printable characters make: a banner is never taken for an answer."""
_AHEAD_BYTES = 8 << 10
"""A hundred acknowledgements: they come together when many sets are in flight."""
_NOTHING = memoryview(b"")
_JOINED_BYTES = 32 << 10
"""Up to here a copy costs less than a call for several pieces."""
_MAX_PARTS = 1000
"""Below what systems take in one call."""
_T = TypeVar("_T")
_CONNECT_WAITS_S = (0.001, 0.01, 0.1, 1.0)


class Connection:
    """A connection to a broker, made when it is first needed.

    Args:
        address: where the broker listens; its id is only for messages, -1 if unknown.
        timeout_s: how long an answer, or room to send, is waited for.
        connect_timeout_s: how long connecting is tried, attempts and waits together.
        client_id: what extension requests say they come from.
        send_bytes: SO_SNDBUF; 0 leaves it to the system.
        receive_bytes: SO_RCVBUF; 0 leaves it to the system.
    """

    def __init__(
        self,
        address: BrokerAddress,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        connect_timeout_s: float = DEFAULT_CONNECT_TIMEOUT_S,
        client_id: str = "pylogctl",
        send_bytes: int = 0,
        receive_bytes: int = 0,
    ) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self.client_id = client_id
        self._send_bytes = send_bytes
        self._receive_bytes = receive_bytes
        self._socket: socket.socket | None = None
        self._ahead = _NOTHING  # received and not asked for yet
        self._correlation_id = 0
        self._hello: HelloResponse | None = None
        self._is_asked = False

    @property
    def name(self) -> str:
        """Return who is at the other end, for messages."""
        where = f"{self.address.host}:{self.address.port}"
        return where if self.address.id < 0 else f"broker {self.address.id} at {where}"

    @property
    def is_open(self) -> bool:
        """Return whether there is a socket."""
        return self._socket is not None

    def connect(self) -> None:
        """Connect, if that is not done, trying again with growing waits.

        Raises:
            BrokerUnreachableError: nobody answered within the connect timeout.

        Source: Kafka 0.7 `SyncProducer.connect`.
        """
        if self._socket is None:
            self._socket = self._connect()

    def _connect(self) -> socket.socket:
        started_s = time.monotonic()
        attempts = 0
        while True:
            elapsed_s = time.monotonic() - started_s
            try:
                attempts += 1
                return self._attempt_connect(max(0.001, self._connect_timeout_s - elapsed_s))
            except OSError as error:
                wait_s = _CONNECT_WAITS_S[min(attempts, len(_CONNECT_WAITS_S)) - 1]
                elapsed_s = time.monotonic() - started_s
                is_hopeless = isinstance(error, socket.gaierror)
                if is_hopeless or elapsed_s + wait_s > self._connect_timeout_s:
                    raise BrokerUnreachableError(
                        f"cannot reach {self.name}: {_reason(error)} "
                        f"({attempts} attempt{'s' * (attempts > 1)} in {elapsed_s:.1f}s)"
                    ) from error
            time.sleep(wait_s)

    def _attempt_connect(self, timeout_s: float) -> socket.socket:
        sock = socket.create_connection((self.address.host, self.address.port), timeout_s)
        try:
            self._set_up(sock)
        except OSError:
            sock.close()
            raise
        return sock

    def _set_up(self, sock: socket.socket) -> None:
        if sock.getsockname() == sock.getpeername():
            # a free port in the range of outgoing ones can be connected to itself
            raise ConnectionRefusedError("connection refused")
        sock.settimeout(self.timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._send_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_bytes)
        if self._receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_bytes)

    def close(self) -> None:
        """Close the socket, if there is one; the next request connects again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._ahead = _NOTHING

    def interrupt(self) -> None:
        """Make a send or receive that waits in another thread fail at once."""
        sock = self._socket
        if sock is not None:
            with suppress(OSError):  # that thread may have closed it meanwhile
                sock.shutdown(socket.SHUT_RDWR)

    def hello(self) -> HelloResponse | None:
        """Return who the broker is, or None for a broker that knows only 0.7's requests.

        The broker is asked once; a true 0.7 broker closes the connection on a request it does not
        know, and is then connected to again.

        Raises:
            BrokerUnreachableError: it cannot be connected to, or closes every connection.
            ProtocolError: whatever listens there does not speak this protocol.
            RequestTimeoutError: it does not answer.
        """
        if not self._is_asked:
            self._hello = self._say_hello() or self._say_hello()
            if self._hello is None:
                self._ask_as_07()
            self._is_asked = True
        return self._hello

    def understands(self, kind: type[ExtensionRequest]) -> bool:
        """Return whether the broker knows a request, in its version.

        Raises:
            BrokerUnreachableError, ProtocolError, RequestTimeoutError: see `hello`.
        """
        hello = self.hello()
        if hello is None or kind.TYPE not in hello.versions:
            return False
        least, greatest = hello.versions[kind.TYPE]
        return least <= kind.VERSION <= greatest

    def _say_hello(self) -> HelloResponse | None:
        """Return the answer to a hello, None if the connection was closed over it.

        A broker that is just going down closes it as well: hence the second attempt, as nothing
        would be acknowledged by a broker that is mistaken for one of 0.7.
        """
        self.connect()
        try:
            return HelloResponse.decode(self.call(HelloRequest()))
        except BrokerUnreachableError:
            return None

    def _ask_as_07(self) -> None:
        """Check that a 0.7 request is answered, by a fetch that has no effect there."""
        self.ask(FetchRequest("hello", 0, 0, 0))

    def repeat_if_lost(self, exchange: Callable[[], _T]) -> _T:
        """Return what an exchange gives; run it again if the connection turns out dead.

        Brokers close connections that are idle for long. Once: a new connection is none of those.

        Args:
            exchange: requests on this connection that may reach the broker twice.

        Raises:
            BrokerUnreachableError: the connection was made anew, and is lost as well.
        """
        was_open = self.is_open
        try:
            return exchange()
        except BrokerUnreachableError:
            if not was_open:
                raise
        return exchange()

    def call(self, request: ExtensionRequest) -> Reader:
        """Send an extension request and return the body of its answer.

        Raises:
            ServerError: the broker refuses the request.
            BrokerUnreachableError, RequestTimeoutError, ProtocolError: see `receive`.
        """
        correlation_id = self.send_extension(request)
        return self.receive_extension(correlation_id)

    def send_extension(self, request: ExtensionRequest) -> int:
        """Send an extension request; return the correlation id that its answer will have."""
        correlation_id = self.next_correlation_id()
        header = RequestHeader(request.VERSION, correlation_id, self.client_id)
        self.send_parts(encode_extension_parts(request, header))
        return correlation_id

    def next_correlation_id(self) -> int:
        """Return what the next extension request has to carry."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return self._correlation_id

    def receive_extension(self, correlation_id: int) -> Reader:
        """Return the body of the next answer, which must have this correlation id."""
        return self.open_extension(self.receive(), correlation_id)

    def open_extension(self, frame: Buffer, correlation_id: int) -> Reader:
        """Return the body of an answer, which must have this correlation id."""
        try:
            found, body = decode_extension_response(frame)
            check_correlation_id(correlation_id, found)
        except ProtocolError:
            self.close()  # it is out of step: no later answer on it could be trusted
            raise
        return body

    def send_request(self, request: BaseRequest) -> None:
        """Send one of 0.7's requests."""
        self.send(encode_request(request))

    def ask(self, request: BaseRequest) -> memoryview:
        """Send one of 0.7's requests that are answered, and return the answer."""
        self.send_request(request)
        return self.receive()

    def send(self, frame: Buffer) -> None:
        """Send a whole frame, connecting first if need be.

        Raises:
            BrokerUnreachableError: no connection, or it broke; it is unknown then what arrived.
            RequestTimeoutError: the broker takes no bytes.
        """
        self.send_parts([frame])

    def send_parts(self, parts: list[Buffer]) -> None:
        """Send a whole frame that comes in pieces; see `send`."""
        self.connect()
        assert self._socket is not None
        try:
            _send_all(self._socket, parts)
        except OSError as error:
            raise self._lost(error, "while sending") from error

    def receive(self) -> memoryview:
        """Return the next frame without its size field.

        Raises:
            BrokerUnreachableError: the broker closed the connection, or it broke.
            RequestTimeoutError: nothing, or not all, came in time.
            ProtocolError: what came is no answer of a broker.
        """
        head = self._receive_exactly(INT32.size)
        (size,) = INT32.unpack(head)
        if not 2 <= size <= MAX_ANSWER_BYTES:
            self.close()
            shown = repr(bytes(head))[2:-1]
            raise ProtocolError(
                f"{self.name} answered but does not speak the log protocol (first bytes: '{shown}')"
            )
        return self._receive_exactly(size)

    def _receive_exactly(self, size: int) -> memoryview:
        if self._socket is None:
            raise BrokerUnreachableError(f"the connection to {self.name} is closed")
        if len(self._ahead) < size:
            try:
                self._receive_more(self._socket, size)
            except OSError as error:
                raise self._lost(error, "while waiting for an answer") from error
        found = self._ahead[:size]
        self._ahead = self._ahead[size:] if len(self._ahead) > size else _NOTHING
        return found

    def _receive_more(self, sock: socket.socket, size: int) -> None:
        """Receive until `size` bytes are ahead, and of small answers all that is there."""
        view = memoryview(bytearray(max(size, _AHEAD_BYTES)))
        filled = len(self._ahead)
        view[:filled] = self._ahead
        while filled < size:
            received = sock.recv_into(view[filled:])
            if not received:
                raise ConnectionResetError("it closed the connection")
            filled += received
        self._ahead = view[:filled]

    def _lost(self, error: OSError, when: str) -> BrokerUnreachableError | RequestTimeoutError:
        self.close()
        if isinstance(error, TimeoutError):
            return RequestTimeoutError(f"{self.name} did nothing for {self.timeout_s:g}s {when}")
        return BrokerUnreachableError(f"lost {self.name} {when}: {_reason(error)}")


def _send_all(sock: socket.socket, parts: list[Buffer]) -> None:
    """Send pieces one behind the other, large ones without a copy."""
    if sum(map(len, parts)) <= _JOINED_BYTES or len(parts) > _MAX_PARTS:
        sock.sendall(parts[0] if len(parts) == 1 else b"".join(parts))
        return
    sent = sock.sendmsg(parts)
    for part in parts:
        if sent < len(part):
            sock.sendall(memoryview(part)[sent:])
        sent = max(0, sent - len(part))


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    return (error.strerror or str(error)).lower()


def parse_broker_list(text: str) -> list[BrokerAddress]:
    """Return the brokers of a static list.

    Args:
        text: `HOST:PORT` or 0.7's `ID:HOST:PORT`, separated by commas. Brokers without an id get
            -1, and tell it themselves when they are asked.

    Raises:
        ProtocolError: an item is malformed.
    """
    return [_parse_broker(item.strip()) for item in text.split(",") if item.strip()]


def _parse_broker(item: str) -> BrokerAddress:
    rest, _, port = item.rpartition(":")
    broker_id, colon, host = rest.partition(":")
    if not colon or not broker_id.isdecimal():
        broker_id, host = "-1", rest
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ProtocolError(f"'{item}' is no broker address; valid: HOST:PORT, ID:HOST:PORT")
    return BrokerAddress(int(broker_id), host, int(port))


def addresses_text(addresses: Sequence[BrokerAddress], separator: str = ",") -> str:
    """Return broker addresses as a static list, for messages."""
    return separator.join(f"{a.host}:{a.port}" for a in addresses)
