"""The identity of a connection, and the exchange that changes it.

    ==========  ==========================================  ==========
    state       event                                       next state
    ==========  ==========================================  ==========
    ANONYMOUS   step 0                                      CHALLENGED
    UNPROVED    step 0                                      CHALLENGED
    UNPROVED    another request                             FAILED
    CHALLENGED  the next step                               CHALLENGED
    CHALLENGED  the last step, which proves an identity     KNOWN
    CHALLENGED  another request, or a step out of turn      FAILED
    KNOWN       step 0                                      CHALLENGED
    KNOWN       the proof holds no more                     FAILED
    ==========  ==========================================  ==========

The first state is UNPROVED where clients must log in. After FAILED the connection is closed; so is
one that is UNPROVED or CHALLENGED for `CHALLENGE_S`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from broker import errors
from broker.protocol.client_requests import MAX_DATA_BYTES, Authenticated, AuthenticateRequest
from broker.protocol.requests import RequestType
from broker.security.mechanisms import Channel, Proved, ServerExchange, ServerMechanisms
from broker.security.principal import ANONYMOUS, Principal

CHALLENGE_S = 10.0
MAX_UNPROVED_BYTES = 64 << 10
"""A longer frame is not received: an order of a client that is no broker, or anything before a
login that is required; its connection is closed."""


class AuthState(Enum):
    """How far a connection's client has proved who it is."""

    ANONYMOUS = auto()
    UNPROVED = auto()
    CHALLENGED = auto()
    KNOWN = auto()
    FAILED = auto()


@dataclass(eq=False)
class Authentication:
    """Who the client of one connection is; knows no socket.

    `certified` is whom a verified certificate names; an exchange may prove another identity.
    """

    mechanisms: ServerMechanisms
    channel: Channel
    certified: Principal | None = None
    now_s: Callable[[], float] = time.monotonic
    is_required: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self._first = self.identity = self.certified or ANONYMOUS
        unknown = AuthState.UNPROVED if self.is_required else AuthState.ANONYMOUS
        self.state = unknown if self.certified is None else AuthState.KNOWN
        self._name = ""
        self._next_step = 0
        self._exchange: ServerExchange | None = None
        self._since_s = self.now_s()  # of the state
        self._proved: Proved | None = None
        self._failure = ""

    @property
    def is_to_log_in(self) -> bool:
        """Return whether an exchange is under way, or must come first."""
        return self.state in (AuthState.UNPROVED, AuthState.CHALLENGED)

    def check(self, request_type: int) -> None:
        """Raise `AuthenticationStateError` if no request of this type may be handled now."""
        reason = self.reason_to_close()
        if request_type == RequestType.AUTHENTICATE:
            if self.state is AuthState.KNOWN:
                return  # it may prove itself again
        elif self.state is AuthState.UNPROVED:
            reason = "only clients that have logged in are served here (authentication.required)"
        elif self.state is AuthState.CHALLENGED:
            reason = "an AUTHENTICATE exchange is under way: finish it first"
        if reason:
            self.fail()
            raise errors.AuthenticationStateError(reason)

    def reason_to_close(self) -> str:
        """Return why the connection must end: a challenge without an answer, or an old proof."""
        if self.state is AuthState.ANONYMOUS:
            return ""
        age_s = self.now_s() - self._since_s
        if self.state is AuthState.FAILED:
            return self._failure
        if self.state is AuthState.UNPROVED and age_s > CHALLENGE_S:
            return f"no login in {CHALLENGE_S:g}s (authentication.required)"
        if self.state is AuthState.CHALLENGED and age_s > CHALLENGE_S:
            return f"no answer to a challenge in {CHALLENGE_S:g}s"
        if (proved := self._proved) is not None and self.state is AuthState.KNOWN:
            if proved.lifetime_ms and age_s > proved.lifetime_ms / 1000:
                return f"{self.identity} was to prove itself again"
            if not proved.still_holds():
                return f"the proof of {self.identity} holds no more"
        return ""

    @property
    def mechanism(self) -> str:
        """Return what proved the identity, or was to prove it: a mechanism's name, or TLS."""
        return self._name or ("" if self._first == ANONYMOUS else "TLS")

    def offers(self, mechanism: str) -> bool:
        """Return whether an exchange by a mechanism is possible here."""
        return mechanism in self.mechanisms

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

    def fail(self, reason: str = "the client did not prove who it is") -> None:
        """Give up: the connection must be closed."""
        self.state, self.identity = AuthState.FAILED, ANONYMOUS
        self._exchange = None
        self._failure = reason

    def _take(self, request: AuthenticateRequest) -> Authenticated:
        if request.step == 0 and self._exchange is None:
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
            proved: Proved = end.value
            if self.identity not in (self._first, proved.principal):
                raise errors.AuthenticationStateError(
                    f"this connection is {self.identity}'s already: open another one"
                ) from None
            self.identity, self.state = proved.principal, AuthState.KNOWN
            self._exchange, self._proved, self._since_s = None, proved, self.now_s()
            return Authenticated(True, proved.lifetime_ms, str(proved.principal), proved.data)
        return Authenticated(False, 0, "", data)

    def _begin(self, mechanism: str) -> ServerExchange:
        make = self.mechanisms.get(mechanism)
        if make is None and not self.mechanisms:
            raise errors.SecurityDisabledError("this listener asks for no identity")
        if make is None:
            offered = ", ".join(self.mechanisms)
            raise errors.UnsupportedMechanismError(
                f"'{mechanism[:64]}' is not offered here; offered: {offered}"
            )
        self._exchange = exchange = make(self.channel)
        next(exchange)
        self._name, self._next_step, self.state = mechanism, 0, AuthState.CHALLENGED
        self._since_s = self.now_s()
        return exchange
