"""An exchange between both halves of a mechanism, step by step, and what ends it."""

from __future__ import annotations

import pytest

from broker import errors
from broker.protocol.authentication import AUTHENTICATED, AuthenticateRequest
from broker.protocol.primitives import Reader
from broker.security.mechanisms import (
    PLAIN,
    Channel,
    ClientExchange,
    Proved,
    ServerExchange,
    authenticate,
)
from broker.security.principal import ANONYMOUS, Principal
from broker.server.requests.authentication import Authentication

ALICE = Principal("User", "alice")


class Knock:
    """Two messages each way: a name, and a number plus one."""

    name = "KNOCK"

    def exchange(self, channel: Channel) -> ClientExchange:
        number = yield b"alice"
        yield bytes([number[0] + 1])


def serve_knock(channel: Channel) -> ServerExchange:
    name = yield b""
    answer = yield b"\x07"
    if answer != b"\x08":
        raise errors.AuthenticationFailedError("no")
    return Proved(Principal("User", name.decode()), b"welcome")


def served() -> Authentication:
    return Authentication({Knock.name: serve_knock}, PLAIN)


def test_exchange_when_both_halves_agree_then_gives_the_identity() -> None:
    server = served()
    client = authenticate(Knock(), PLAIN)
    request = next(client)
    with pytest.raises(StopIteration):
        while True:
            body = AUTHENTICATED.encode(server.take(request))
            request = client.send(Reader(body))

    assert server.identity == ALICE


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([(0, b"alice"), (1, b"\x09")], errors.AuthenticationFailedError),
        ([(0, b"alice"), (2, b"\x08")], errors.AuthenticationStateError),
        ([(1, b"\x08")], errors.AuthenticationStateError),
        ([(0, b"a" * 4097)], errors.AuthenticationFailedError),
    ],
    ids=["wrong", "step left out", "without step 0", "too long"],
)
def test_exchange_when_a_step_is_wrong_then_ends_without_an_identity(
    steps: list[tuple[int, bytes]], error: type[errors.ServerError]
) -> None:
    server = served()
    *before, (step, data) = steps
    for earlier in before:
        server.take(AuthenticateRequest("KNOCK", *earlier))

    with pytest.raises(error):
        server.take(AuthenticateRequest("KNOCK", step, data))
    assert server.identity == ANONYMOUS
    with pytest.raises(errors.AuthenticationStateError):
        server.take(AuthenticateRequest("KNOCK", 1, b"\x08"))


def test_exchange_when_the_mechanism_is_not_offered_then_names_those_that_are() -> None:
    with pytest.raises(errors.UnsupportedMechanismError, match="KNOCK"):
        served().take(AuthenticateRequest("knock", 0, b""))


def test_exchange_when_the_listener_offers_none_then_says_so() -> None:
    with pytest.raises(errors.SecurityDisabledError):
        Authentication({}, PLAIN).take(AuthenticateRequest("KNOCK", 0, b""))
