"""The identity of a connection, and the exchange that changes it.

    ==========  ==========================================  ==========
    state       event                                       next state
    ==========  ==========================================  ==========
    ANONYMOUS   step 0                                      CHALLENGED
    CHALLENGED  the next step                               CHALLENGED
    CHALLENGED  the last step, which proves an identity     KNOWN
    CHALLENGED  another request, or a step out of turn      FAILED
    KNOWN       step 0                                      CHALLENGED
    ==========  ==========================================  ==========

After FAILED the connection is closed.
"""

from __future__ import annotations

from enum import Enum, auto

from broker import errors
from broker.protocol.authentication import (
    MAX_DATA_BYTES,
    Authenticated,
    AuthenticateRequest,
)
from broker.security.mechanisms import Channel, ServerExchange, ServerMechanisms
from broker.security.principal import ANONYMOUS, Principal


class AuthState(Enum):
    """How far a connection's client has proved who it is."""

    ANONYMOUS = auto()
    CHALLENGED = auto()
    KNOWN = auto()
    FAILED = auto()


class Authentication:
    """Who the client of one connection is; knows no socket.

    `certified` is whom a verified certificate names; an exchange may prove another identity.
    """

    def __init__(
        self,
        mechanisms: ServerMechanisms,
        channel: Channel,
        certified: Principal | None = None,
    ) -> None:
        self._first = certified or ANONYMOUS
        self.identity: Principal = self._first
        self.state = AuthState.ANONYMOUS if certified is None else AuthState.KNOWN
        self._mechanisms = mechanisms
        self._channel = channel
        self._name = ""
        self._next_step = 0
        self._exchange: ServerExchange | None = None

    @property
    def mechanism(self) -> str:
        """Return what proved the identity, or was to prove it: a mechanism's name, or TLS."""
        return self._name or ("" if self._first == ANONYMOUS else "TLS")

    def take(self, request: AuthenticateRequest) -> Authenticated:
        """Take one step of an exchange, and return the answer.

        Raises:
            UnsupportedMechanismError: the listener does not offer the mechanism.
            AuthenticationStateError: the step is not the next one.
            AuthenticationFailedError: the client is not who it says it is.
        """
        try:
            return self._take(request)
        except errors.ServerError:
            self.fail()
            raise

    def fail(self) -> None:
        """Give up: the connection must be closed."""
        self.state, self.identity = AuthState.FAILED, ANONYMOUS
        self._exchange = None

    def _take(self, request: AuthenticateRequest) -> Authenticated:
        if request.step == 0:
            exchange = self._begin(request.mechanism)
        elif self._exchange is None or (request.mechanism, request.step) != (
            self._name,
            self._next_step,
        ):
            raise errors.AuthenticationStateError(f"step {request.step} is not the next one")
        else:
            exchange = self._exchange
        if len(request.data) > MAX_DATA_BYTES:
            raise errors.AuthenticationFailedError(
                f"a message of {len(request.data)} bytes is too long: {MAX_DATA_BYTES} are possible"
            )
        self._next_step += 1
        try:
            data = exchange.send(request.data)
        except StopIteration as end:
            proved = end.value
            if self.identity not in (self._first, proved.principal):
                raise errors.AuthenticationStateError(
                    f"this connection is {self.identity}'s already: open another one"
                ) from None
            self.identity, self.state = proved.principal, AuthState.KNOWN
            self._exchange = None
            return Authenticated(True, proved.lifetime_ms, str(proved.principal), proved.data)
        return Authenticated(False, 0, "", data)

    def _begin(self, mechanism: str) -> ServerExchange:
        make = self._mechanisms.get(mechanism)
        if make is None and not self._mechanisms:
            raise errors.SecurityDisabledError("this listener asks for no identity")
        if make is None:
            offered = ", ".join(self._mechanisms)
            raise errors.UnsupportedMechanismError(
                f"'{mechanism[:64]}' is not offered here; offered: {offered}"
            )
        self._exchange = exchange = make(self._channel)
        next(exchange)
        self._name, self._next_step, self.state = mechanism, 0, AuthState.CHALLENGED
        return exchange
