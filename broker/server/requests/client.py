"""Who sends requests on one connection."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from broker import errors
from broker.endpoints import PLAIN_LISTENER
from broker.protocol.client_requests import AuthenticateRequest
from broker.protocol.primitives import INT16, INT32
from broker.protocol.requests import FIRST_EXTENSION_TYPE, RequestType
from broker.protocol.responses import encode_last_response
from broker.security.mechanisms import PLAIN, Channel, ServerMechanisms
from broker.security.principal import ANONYMOUS, Principal
from broker.security.rules import host_of
from broker.server.requests.authentication import MAX_UNPROVED_BYTES, Authentication
from broker.topic import TopicPartition

_OUR_TYPES = {INT16.pack(one) for one in RequestType if one >= FIRST_EXTENSION_TYPE}
_TLS_ALERT = b"\x15\x03\x03\0\2\2\x46"
_USER = re.compile(rb"[^,]*,[^,]*,n=([^,]{1,255})")


class Refusal(NamedTuple):
    """Why a set was refused; an error would keep the frames alive in which it was raised."""

    code: int
    text: str
    detail: int  # see `errors.detail_of`

    def again(self) -> errors.ServerError:
        """Return the error for a later set."""
        text = f"an earlier set of this connection was refused: {self.text}"
        return errors.error_for_code(self.code, text, self.detail)


RefusedPartitions = dict[TopicPartition, Refusal]
"""The partitions for which one connection's set was refused, though a later one may be accepted.

Later sets of that connection may have been sent before their client knew: were they stored, they
would be in the log without those before them. A client that knows connects again.
"""


@dataclass(eq=False)
class ConnectedClient:
    """A client as the handlers see it: where it came in, who it is, and what was refused to it."""

    address: str
    listener: str = PLAIN_LISTENER  # its name
    channel: Channel = PLAIN
    mechanisms: ServerMechanisms = field(default_factory=dict)
    certified: Principal | None = None
    port: int = 0  # of the client
    now_s: Callable[[], float] = time.monotonic
    may_start: Callable[[ConnectedClient, memoryview, int], None] = lambda _client, _start, _size: (
        None
    )
    """Raises if a large frame that begins so may not be received."""
    must_log_in: bool = False

    def __post_init__(self) -> None:
        self.id = ""  # what it calls itself
        self.named_user = ""  # whom it logs in as, or tries to
        self.is_tls = bool(self.channel.server_certificate)
        self.host = _host_of(self.address)
        self.has_published = False
        """Whether a message set came in a publish request, which can be acknowledged."""
        self.authentication = Authentication(
            self.mechanisms, self.channel, self.certified, self.now_s, is_required=self.must_log_in
        )
        self.refused: RefusedPartitions = {}
        self.worked_s = 0.0  # by a worker, for the request that it handled last
        self.on_close: Callable[[], object] = lambda: None

    def name_user(self, opening: AuthenticateRequest) -> None:
        """Note which user the first message of a login names (`n,,n=USER,r=NONCE`), as it is kept.

        Names that no user can have are one: the empty one.
        """
        self.named_user = ""
        found = _USER.match(opening.data)
        if found and self.authentication.offers(opening.mechanism):
            from broker.security.scram import normalize_user  # where it is offered it is loaded

            name = found[1].replace(b"=2C", b",").replace(b"=3D", b"=")
            with suppress(UnicodeDecodeError, errors.ArgumentError):
                self.named_user = normalize_user(name.decode())

    @property
    def turn_of(self) -> str:
        """Return whose turn long work for the client is: its user's, or else its host's."""
        who = self.authentication.identity
        return self.host if who == ANONYMOUS else str(who)

    def last_response(self, text: str) -> bytes | None:
        """Return what the client gets last of a broker that stops, if all its requests got answers.

        None for a client that knows no such response.
        """
        return encode_last_response(text) if self.has_published else None

    def check_start(self, start: memoryview, size: int) -> None:
        """Raise unless a large frame that begins so may be received as a whole."""
        if self.authentication.is_to_log_in and size > MAX_UNPROVED_BYTES:
            raise errors.AuthenticationStateError(
                f"a frame of {size} bytes of a client that has not logged in"
            )
        self.may_start(self, start, size)


def tls_refusal(start: bytes) -> bytes:
    """Return by what a client that speaks no TLS knows TLS, from the first bytes that it sends.

    It is an alert: a protocol version that is not supported. Clients of 0.7 get none, as it would
    be the size of a response to them, of 352 MB.
    """
    return _TLS_ALERT if start[INT32.size :][: INT16.size] in _OUR_TYPES else b""


def _host_of(address: str) -> str:
    """Return the address as rules name it; one that is no IP address, as of a test, stays."""
    try:
        return host_of(address)
    except errors.ConfigError:
        return address
