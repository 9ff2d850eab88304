"""The client's side of a connection as a state machine: bytes and frames in, requests out.

`client/connection.py` drives it with a blocking socket, `aio/sending.py` with an event loop.
"""

from __future__ import annotations

from typing import NamedTuple

from broker import errors
from broker.protocol import responses
from broker.protocol.client_requests import HelloRequest, PublishRequest
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import INT16, INT32, Buffer, Reader
from broker.protocol.requests import FetchRequest, RequestHeader, encode_request

MAX_RESPONSE_BYTES = 1 << 29
"""Less than any four printable characters read as a size, so that a banner is no frame."""
MAX_HELLO_BYTES = 1 << 16
"""More than any response to a hello; the first bytes of other servers read as a larger size."""


SILENCE_S = 1.0
"""After a hello: then the sending half is closed, so that servers of other protocols respond."""
LONG_SILENCE_S = 5.0
"""The same for the hello after that: a slow broker may have closed the connection for its end."""

_HELLOS = 2
# `ApiVersions`, version 0, with this correlation id and no client id
_MODERN_CORRELATION = b"0.10"
_MODERN_GREETING = b"\0\0\0\x0a\0\x12\0\0" + _MODERN_CORRELATION + b"\xff\xff"
_TLS_RECORDS = (0x1503, 0x1603)  # the first bytes of an alert, of a handshake
_NO_BROKER_HINT = (
    "is it a broker's port? one that speaks TLS wants --tls; a ZooKeeper's is given with -Z"
)


def encode_extension_parts(request: ExtensionRequest, header: RequestHeader) -> list[Buffer]:
    """Return the frame of an extension request in parts; message sets are not copied."""
    body: list[Buffer]
    body = request.encode_parts() if isinstance(request, PublishRequest) else [request.encode()]
    parts: list[Buffer] = [INT16.pack(request.TYPE), header.encode(), *body]
    return [INT32.pack(sum(map(len, parts))), *parts]


class Greeting(NamedTuple):
    """A frame to send before others: a hello, or a request of 0.7 or of later versions."""

    parts: list[Buffer]
    correlation_id: int | None  # of a hello

    @property
    def is_hello(self) -> bool:
        """Return whether it is a hello."""
        return self.correlation_id is not None


class ClientConnection:
    """What a client knows of a broker, and numbers its requests; `name` is for messages."""

    def __init__(self, address: responses.BrokerAddress, client_id: str) -> None:
        where = address.text
        self.name = where if address.id < 0 else f"broker {address.id} at {where}"
        self.client_id = client_id
        self.is_known = False  # a greeting was answered
        self.hello: responses.HelloResponse | None = None  # None from a broker of 0.7
        self._answers_07 = False  # which brokers of later versions do as well
        self._correlation_id = 0

    def greeting(self, lost_count: int) -> Greeting:
        """Return what to send before anything else, after so many hellos were lost.

        A 0.7 broker closes the connection on a request it does not know; the connection is then
        opened again, for the next greeting.
        """
        # A broker that shuts down closes the connection too, as does a proxy while its broker
        # starts. Mistaken for a 0.7 broker, it would get publishes without acknowledgement, by the
        # index alone: hence the second hello, and one more after the request of 0.7.
        if lost_count < _HELLOS or self._answers_07:
            correlation_id, parts = self.encode(HelloRequest())
            return Greeting(parts, correlation_id)
        if lost_count == _HELLOS:  # a 0.7 broker responds with an error
            return Greeting([encode_request(FetchRequest("hello", 0, 0, 0))], None)
        return Greeting([_MODERN_GREETING], None)

    def lost_greeting(self, lost_count: int, error: errors.BrokerUnreachableError) -> int:
        """Return the count of lost greetings after one more; raises the error after the last."""
        self.is_known = self._answers_07
        if lost_count > _HELLOS and not self.is_known:
            error.hints = (_NO_BROKER_HINT,)
            raise error
        return lost_count + 1

    def take_greeting(self, greeting: Greeting, frame: Buffer) -> None:
        """Take the response to a greeting; after a hello the broker is known.

        Errors are those of `open`.
        """
        if greeting.correlation_id is not None:
            body = self.open(frame, greeting.correlation_id)
            self.hello = responses.HELLO.decode(body)
            self.is_known = True
            return
        if bytes(frame[: len(_MODERN_CORRELATION)]) == _MODERN_CORRELATION:
            raise errors.ProtocolError(
                f"{self.name} is a broker of Kafka 0.10 or later, which lacks the requests of 0.7"
            )
        self._answers_07 = True

    def understands(self, kind: type[ExtensionRequest]) -> bool:
        """Return whether the broker, which is known, has a request in the version used here."""
        if self.hello is None or kind.TYPE not in self.hello.versions:
            return False
        least, greatest = self.hello.versions[kind.TYPE]
        return least <= kind.VERSION <= greatest

    def next_correlation_id(self) -> int:
        """Return the correlation id for the next extension request."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return self._correlation_id

    def encode(self, request: ExtensionRequest) -> tuple[int, list[Buffer]]:
        """Return the correlation id of a request, and its frame in parts."""
        correlation_id = self.next_correlation_id()
        header = RequestHeader(request.VERSION, correlation_id, self.client_id)
        return correlation_id, encode_extension_parts(request, header)

    def frame_bytes(self, head: Buffer, max_bytes: int = MAX_RESPONSE_BYTES) -> int:
        """Return the size of a frame from its size field; one larger than `max_bytes` is none."""
        size: int = INT32.unpack(head)[0]
        if size >> 16 in _TLS_RECORDS:  # hundreds of megabytes, if it were a size
            raise errors.TlsError(
                f"the port of {self.name} speaks TLS", hints=["give --tls (or ssl.*)"]
            )
        if not 2 <= size <= max_bytes:
            shown = repr(bytes(head))[2:-1]
            raise errors.ProtocolError(
                f"{self.name} answered but does not speak the log protocol (first bytes: '{shown}')"
            )
        return size

    def open(self, frame: Buffer, correlation_id: int) -> Reader:
        """Return the body of a response, which must have this correlation id.

        Raises:
            ServerError: the request was refused as a whole.
            BrokerStoppedError: the broker ended the connection instead of a response.
            ProtocolError: requests and responses are out of step.
        """
        found, body = self.decode(frame)
        responses.check_correlation_id(correlation_id, found)
        return body

    def decode(self, frame: Buffer) -> tuple[int, Reader]:
        """Return the correlation id and body of a response; errors are those of `open`."""
        try:
            return responses.decode_extension_response(frame)
        except errors.BrokerStoppedError as error:
            raise errors.BrokerStoppedError(f"{self.name} was stopped") from error

    def lost(self, error: OSError, when: str) -> errors.BrokerUnreachableError:
        """Return the error for a connection that ended at some time, `while` or `before` what."""
        return errors.BrokerUnreachableError(f"lost {self.name} {when}: {reason_of(error)}")

    def timed_out(self, after_s: float, when: str) -> errors.RequestTimeoutError:
        """Return the error for a broker that did nothing for so long."""
        return errors.RequestTimeoutError(f"{self.name} did nothing for {after_s:g}s {when}")


def reason_of(error: OSError) -> str:
    """Return why a connection was lost, or not made, in a few words."""
    if isinstance(error, TimeoutError):
        return "no answer"
    return (error.strerror or str(error)).lower()
