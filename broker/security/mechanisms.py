"""Mechanisms of AUTHENTICATE: how a client proves who it is, and how a broker finds out.

Both halves of a mechanism are generators that know no socket: each message of the other side is
sent in, and the next own message comes out. An error that one raises ends the exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import NamedTuple, Protocol

from broker.errors import ProtocolError, ServerError
from broker.protocol.client_requests import AUTHENTICATED, AuthenticateRequest
from broker.protocol.primitives import Reader
from broker.security.principal import Principal


class Channel(NamedTuple):
    """The connection that an exchange runs on; the certificate is DER, empty without TLS."""

    server_certificate: bytes = b""


PLAIN = Channel()
ClientExchange = Generator[bytes, bytes, None]
"""Yields each message to the broker; ends when the last answer proves what it must."""


class ClientMechanism(Protocol):
    """How a client proves who it is; `name` is the mechanism's in the request."""

    @property
    def name(self) -> str:
        """Return the mechanism's name in the request."""

    def exchange(self, channel: Channel) -> ClientExchange:
        """Return the client's half of an exchange on a connection that was just made."""


class Proved(NamedTuple):
    """The end of an exchange at the broker: who the client is, and the last message to it."""

    principal: Principal
    data: bytes
    lifetime_ms: int = 0
    """Until it must be proved again on the same connection; 0 for no limit."""
    still_holds: Callable[[], bool] = lambda: True
    """Returns False once the proof counts no more: its key or its user is gone."""


ServerExchange = Generator[bytes, bytes, Proved]
"""Yields an empty message first, then the answer to each message; returns what was proved.

Raises `AuthenticationFailedError` for whatever does not prove it.
"""
ServerMechanisms = Mapping[str, Callable[[Channel], ServerExchange]]
"""The broker's half of each mechanism that a listener offers, by name."""


def authenticate(
    mechanism: ClientMechanism, channel: Channel
) -> Generator[AuthenticateRequest, Reader, int]:
    """Yield each request of an exchange; the body of its response is sent in, or an error thrown.

    Returns after how many milliseconds the client has to prove it again; 0 for never. The mechanism
    may take an error as the end, such as that of a broker that does not know AUTHENTICATE.
    """
    exchange = mechanism.exchange(channel)
    data = next(exchange)
    step = 0
    while True:
        try:
            body = yield AuthenticateRequest(mechanism.name, step, data)
        except ServerError as error:
            with suppress(StopIteration):
                exchange.throw(error)
            return 0
        answer = AUTHENTICATED.decode(body)
        try:
            data = exchange.send(answer.data)
        except StopIteration:
            if not answer.is_done:
                raise ProtocolError(
                    f"the broker goes on with {mechanism.name} after its end"
                ) from None
            return answer.lifetime_ms
        if answer.is_done:
            raise ProtocolError(f"the broker ended {mechanism.name} before its own proof")
        step += 1
