"""An exchange between both halves of a mechanism, step by step, and what ends it."""

from __future__ import annotations

import pytest

from broker import errors
from broker.protocol.client_requests import AUTHENTICATED, AuthenticateRequest
from broker.protocol.primitives import Reader
from broker.protocol.requests import RequestType
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
from broker.server.requests.client import ConnectedClient
from tests.doubles import FakeClock

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
        ([(0, b"alice"), (0, b"alice")], errors.AuthenticationStateError),
    ],
    ids=["wrong", "step left out", "without step 0", "too long", "step 0 twice"],
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


def test_exchange_when_no_answer_comes_then_ends_after_ten_seconds_from_its_begin() -> None:
    clock = FakeClock()
    server = Authentication({Knock.name: serve_knock}, PLAIN, now_s=clock.monotonic_s)
    clock.advance(100)
    assert not server.reason_to_close()  # nobody asked it to prove anything
    server.take(AuthenticateRequest("KNOCK", 0, b"alice"))
    clock.advance(10)
    assert not server.reason_to_close()
    clock.advance(0.1)
    assert "no answer to a challenge in 10s" in server.reason_to_close()

    with pytest.raises(errors.AuthenticationStateError, match="no answer"):
        server.check(RequestType.AUTHENTICATE)
    with pytest.raises(errors.AuthenticationStateError):
        server.take(AuthenticateRequest("KNOCK", 1, b"\x08"))


def test_client_that_must_log_in_when_it_does_not_then_its_connection_ends() -> None:
    clock = FakeClock()
    client = ConnectedClient(
        "10.0.0.1",
        mechanisms={Knock.name: serve_knock},
        now_s=clock.monotonic_s,
        must_log_in=True,
    )
    clock.advance(10)
    assert not client.authentication.reason_to_close()
    clock.advance(0.1)
    assert "no login in 10s" in client.authentication.reason_to_close()


@pytest.mark.parametrize("must_log_in", [True, False])
def test_frame_when_large_and_a_challenge_is_open_then_is_not_received(must_log_in: bool) -> None:
    client = ConnectedClient(
        "10.0.0.1", mechanisms={Knock.name: serve_knock}, must_log_in=must_log_in
    )
    client.authentication.take(AuthenticateRequest("KNOCK", 0, b"alice"))
    with pytest.raises(errors.AuthenticationStateError, match="has not logged in"):
        client.check_start(memoryview(b""), (64 << 10) + 1)

    client.authentication.take(AuthenticateRequest("KNOCK", 1, b"\x08"))
    client.check_start(memoryview(b""), (64 << 10) + 1)
