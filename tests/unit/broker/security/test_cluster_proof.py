"""CLUSTER-HMAC-SHA-256: its test vectors, both halves together, and what neither accepts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from hmac import compare_digest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import errors
from broker.protocol.authentication import AUTHENTICATED, AuthenticateRequest
from broker.protocol.primitives import Reader
from broker.security.cluster_keys import ClusterKey, ClusterKeys, new_key
from broker.security.cluster_proof import (
    CLIENT_OPEN,
    CLUSTER_PROOF,
    SERVER_OPEN,
    BrokerProof,
    ClientOpen,
    Door,
    OwnBroker,
    ServerOpen,
    auth_key,
    proof,
)
from broker.security.mechanisms import PLAIN, Channel, Proved, ServerExchange, authenticate
from broker.security.principal import ANONYMOUS, broker_principal
from broker.server.requests.authentication import Authentication
from tests.support.work import calls_of

KEY = ClusterKey(bytes(range(32)), 0)
OTHER_KEY = ClusterKey(bytes(range(32, 64)), 0)
OPENED = ClientOpen(
    *(1, 1, 1, 21, "c-7f3a", 2, "INTERNAL", "b2.example:9094"),
    *(bytes(range(0x20, 0x40)), (KEY.id,)),
)
ANSWERED = ServerOpen(1, 2, 34, bytes(range(0x40, 0x60)), KEY.id)
TLS = Channel(b"server certificate")


def test_vectors_of_keys_and_messages() -> None:
    assert KEY.id.hex() == "71502437f359b0da"
    assert OTHER_KEY.id.hex() == "0e9ee828882c93a0"
    assert auth_key(KEY).hex() == (
        "9595288ec28e79ffb7d49155221ccc32e916c67d8117ba730f90adca18b4f9b4"
    )
    client, server = CLIENT_OPEN.encode(OPENED), SERVER_OPEN.encode(ANSWERED)
    assert (len(client), len(server)) == (107, 62)
    assert sha256(client).hexdigest() == (
        "1958b7b7bb6b103e95df7bc6f57a121320cf82031583ea65e0d8b216e2aca744"
    )
    assert sha256(server).hexdigest() == (
        "6d67ed87f41c31d867c7231d429914048e5812c9bc96e850b9c7c7174c365c9b"
    )


@pytest.mark.parametrize(
    ("channel", "role", "expected"),
    [
        (PLAIN, 1, "37bde883283fdb0f84e9eac75bb9de60999aa66cd67d05b0c72eb73697b2a6e3"),
        (PLAIN, 2, "fb0524ab6c8bbd2b4a4e97794ff3ce9cabda2a5eb2b49230377dbcc566111eae"),
        (TLS, 1, "1ce5dbd26353d0b6e0e5e111872ac13d928739090b9e1da7d42713a7684c072e"),
        (TLS, 2, "8494da788a12310780f7461e190a3875df1b8bc4119d839790f361d5c192fc2c"),
    ],
)
def test_vectors_of_proofs(channel: Channel, role: int, expected: str) -> None:
    messages = CLIENT_OPEN.encode(OPENED), SERVER_OPEN.encode(ANSWERED)
    assert proof(KEY, role, *messages, channel).hex() == expected


class Brokers:
    """Broker 1 connects to broker 2; both know one key unless a test says otherwise."""

    def __init__(self) -> None:
        self.client = OwnBroker(1, 21, "c", [KEY])
        self.server = OwnBroker(2, 34, "c", [KEY])
        self.registered = {1: 21, 2: 34}
        self.server_id, self.listener, self.endpoint = 2, "PLAINTEXT", "b2:9092"
        self.is_required = True
        self.door = Door(
            lambda: self.server,
            "PLAINTEXT",
            lambda: "b2:9092",
            lambda one, epoch: self.registered.get(one) == epoch,
        )

    def mechanism(self) -> BrokerProof:
        return BrokerProof(
            lambda: self.client,
            *(self.server_id, self.listener, self.endpoint),
            lambda: self.is_required,
        )

    def serve(self, channel: Channel = PLAIN) -> ServerExchange:
        exchange = self.door.serve(channel)
        next(exchange)
        return exchange

    def connect(self, client: Channel = PLAIN, server: Channel = PLAIN) -> Authentication:
        """Return the server's view after the whole exchange."""
        served = Authentication({CLUSTER_PROOF: self.door.serve}, server)
        exchange = authenticate(self.mechanism(), client)
        request = next(exchange)
        with suppress(StopIteration):
            while True:
                body = AUTHENTICATED.encode(served.take(request))
                request = exchange.send(Reader(body))
        return served


def test_exchange_when_both_know_a_key_then_the_server_knows_which_broker_it_is() -> None:
    brokers = Brokers()
    assert brokers.connect().identity == broker_principal(1)
    assert brokers.connect(TLS, TLS).identity == broker_principal(1)


def test_exchange_when_keys_are_replaced_then_uses_the_first_that_the_server_has() -> None:
    brokers = Brokers()
    brokers.client = brokers.client._replace(keys=[OTHER_KEY, KEY])
    assert brokers.connect().identity == broker_principal(1)
    brokers.server = brokers.server._replace(keys=[KEY, OTHER_KEY])
    served = brokers.connect()
    assert served.identity == broker_principal(1)
    brokers.server = brokers.server._replace(keys=[OTHER_KEY])  # the one used was withdrawn
    with pytest.raises(errors.AuthenticationStateError, match="holds no more"):
        served.check(73)


def changed(name: str, value: object) -> Callable[[Brokers], None]:
    return lambda brokers: setattr(brokers, name, value)


@pytest.mark.parametrize(
    "change",
    [
        changed("client", OwnBroker(1, 21, "c", [OTHER_KEY])),
        changed("client", OwnBroker(1, 21, "c", [])),
        changed("client", OwnBroker(1, 21, "another cluster", [KEY])),
        changed("client", OwnBroker(1, 20, "c", [KEY])),
        changed("client", OwnBroker(1, 22, "c", [KEY])),
        changed("client", OwnBroker(1, 2**62, "c", [KEY])),
        changed("client", OwnBroker(3, 21, "c", [KEY])),
        changed("client", OwnBroker(-1, 21, "c", [KEY])),
        changed("server_id", 3),
        changed("listener", "OTHER"),
        changed("endpoint", "b2:9093"),
    ],
    ids=[
        *("other key", "no keys", "other cluster", "old epoch", "later epoch", "far epoch"),
        *("another's id", "nobody's id", "relayed to another broker", "to another listener"),
        "to another port",
    ],
)
def test_exchange_when_a_field_is_not_right_then_is_refused_with_one_text(
    change: Callable[[Brokers], None],
) -> None:
    brokers = Brokers()
    change(brokers)
    with pytest.raises(errors.AuthenticationFailedError) as refused:
        brokers.connect()
    assert str(refused.value) == ("the other side did not prove to be a broker of this cluster")


@pytest.mark.parametrize(
    ("client", "server"),
    [(TLS, PLAIN), (PLAIN, TLS), (TLS, Channel(b"another of the same CA"))],
    ids=["TLS ended in between", "TLS added in between", "other certificate"],
)
def test_exchange_when_tls_ends_at_a_proxy_then_is_refused(
    client: Channel, server: Channel
) -> None:
    with pytest.raises(errors.AuthenticationFailedError):
        Brokers().connect(client, server)


def test_exchange_when_recorded_and_replayed_then_is_refused() -> None:
    brokers = Brokers()
    client, server = brokers.mechanism().exchange(PLAIN), brokers.serve()
    opening = next(client)
    client_proof = client.send(server.send(opening))
    with pytest.raises(StopIteration):
        server.send(client_proof)

    again = brokers.serve()
    again.send(opening)
    with pytest.raises(errors.AuthenticationFailedError):
        again.send(client_proof)


def test_exchange_when_messages_of_two_connections_are_crossed_then_both_are_refused() -> None:
    brokers = Brokers()
    clients = [brokers.mechanism().exchange(PLAIN) for _ in range(2)]
    servers = [brokers.serve() for _ in range(2)]
    answers = [server.send(next(client)) for client, server in zip(clients, servers, strict=True)]
    for client, server, answer in zip(clients, servers, reversed(answers), strict=True):
        crossed = client.send(answer)
        with pytest.raises(errors.AuthenticationFailedError):
            server.send(crossed)


def test_exchange_when_the_servers_messages_come_back_then_is_refused() -> None:
    brokers = Brokers()
    server = brokers.serve()
    answer = server.send(next(brokers.mechanism().exchange(PLAIN)))
    with pytest.raises(errors.AuthenticationFailedError):
        brokers.serve().send(answer)
    with pytest.raises(errors.AuthenticationFailedError):
        server.send(answer)

    client = brokers.mechanism().exchange(PLAIN)
    opening = next(client)
    own_nonce = CLIENT_OPEN.decode(Reader(opening)).nonce
    with pytest.raises(errors.AuthenticationFailedError):
        client.send(SERVER_OPEN.encode(ServerOpen(1, 2, 34, own_nonce, KEY.id)))
    client = brokers.mechanism().exchange(PLAIN)
    next(client)
    own_proof = client.send(SERVER_OPEN.encode(ANSWERED))
    with pytest.raises(errors.AuthenticationFailedError):
        client.send(own_proof)


@pytest.mark.parametrize(
    "answer",
    [
        ANSWERED._replace(version=2),
        ANSWERED._replace(broker_id=3),
        ANSWERED._replace(key_id=OTHER_KEY.id),
        ANSWERED._replace(nonce=b""),
    ],
)
def test_client_when_the_server_chooses_what_was_not_offered_then_proves_nothing(
    answer: ServerOpen,
) -> None:
    client = Brokers().mechanism().exchange(PLAIN)
    next(client)
    with pytest.raises(errors.AuthenticationFailedError):
        client.send(SERVER_OPEN.encode(answer))


@pytest.mark.parametrize(
    "fields",
    [
        *({"greatest_version": one, "least_version": one} for one in (0, -1, 2, 32767)),
        {"key_ids": ()},
        {"key_ids": (OTHER_KEY.id,)},
        {"key_ids": (KEY.id,) * 5},
        *({"nonce": bytes(size)} for size in (0, 31, 33, 4000)),
    ],
    ids=str,
)
def test_server_when_offers_or_nonces_are_not_right_then_answers_nothing(
    fields: dict[str, Any],
) -> None:
    brokers = Brokers()
    opened = CLIENT_OPEN.decode(Reader(next(brokers.mechanism().exchange(PLAIN))))
    with pytest.raises(errors.AuthenticationFailedError):
        brokers.serve().send(CLIENT_OPEN.encode(opened._replace(**fields)))


def test_server_when_offers_are_edited_on_the_way_then_refuses_the_proof() -> None:
    brokers = Brokers()
    client, server = brokers.mechanism().exchange(PLAIN), brokers.serve()
    opened = CLIENT_OPEN.decode(Reader(next(client)))
    answer = server.send(CLIENT_OPEN.encode(opened._replace(greatest_version=2)))
    with pytest.raises(errors.AuthenticationFailedError):
        server.send(client.send(answer))


@pytest.mark.parametrize("size", [0, 1, 31, 33])
def test_server_when_a_proof_is_too_short_or_too_long_then_refuses_it(size: int) -> None:
    brokers = Brokers()
    client, server = brokers.mechanism().exchange(PLAIN), brokers.serve()
    right = client.send(server.send(next(client)))
    with pytest.raises(errors.AuthenticationFailedError):
        server.send((right + b"\0")[:size])


def test_server_when_the_begin_of_a_proof_is_right_then_does_the_same_work_to_refuse_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brokers = Brokers()
    compared: list[tuple[int, int]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return compare_digest(one, other)

    monkeypatch.setattr("broker.security.cluster_proof.hmac.compare_digest", compare)

    def try_with(right_bytes: int) -> int:
        client, server = brokers.mechanism().exchange(PLAIN), brokers.serve()
        right = client.send(server.send(next(client)))
        wrong = right[:right_bytes] + bytes(one ^ 1 for one in right[right_bytes:])

        def send() -> None:
            with suppress(errors.AuthenticationFailedError):
                server.send(wrong)
                pytest.fail("it was taken")

        return calls_of(send)

    assert len({try_with(right_bytes) for right_bytes in range(32)}) == 1
    assert compared == [(32, 32)] * 32  # whole, by a function whose time tells nothing


@given(data=st.binary(max_size=300), cut=st.integers(0, 106), is_cut=st.booleans())
def test_server_when_any_bytes_come_then_refuses_them(data: bytes, cut: int, is_cut: bool) -> None:
    whole = CLIENT_OPEN.encode(OPENED)
    with pytest.raises(errors.AuthenticationFailedError):
        Brokers().serve().send(whole[:cut] + (b"" if is_cut else data))


def test_client_when_the_broker_is_of_an_earlier_release_then_goes_on_only_if_it_may() -> None:
    brokers = Brokers()
    for is_required in (False, True):
        brokers.is_required = is_required
        exchange = authenticate(brokers.mechanism(), PLAIN)
        next(exchange)
        expected = errors.UnsupportedVersionError if is_required else StopIteration
        with pytest.raises(expected):
            exchange.throw(errors.UnsupportedVersionError("request 86"))


def test_identity_when_the_lifetime_is_over_then_ends_unless_it_is_proved_again() -> None:
    now_s = 0.0

    def serve(_: Channel) -> ServerExchange:
        yield b""
        return Proved(broker_principal(1), b"", 1000)

    served = Authentication({"X": serve}, PLAIN, now_s=lambda: now_s)

    def prove() -> None:

        served.take(AuthenticateRequest("X", 0, b""))

    prove()
    now_s = 0.9
    prove()
    now_s = 1.8
    served.check(66)
    now_s = 2.0
    with pytest.raises(errors.AuthenticationStateError):
        served.check(66)
    assert served.identity == ANONYMOUS


def test_keys_when_replaced_step_by_step_then_both_are_accepted_until_the_old_one_ends() -> None:
    keys = ClusterKeys((new_key(0),))
    (old,) = keys.keys
    keys = keys.with_next(10)
    new = keys.keys[1]
    assert [one.id for one in keys.accepted(11)] == [old.id, new.id]
    keys = keys.with_next_first(20, 100)
    assert [one.id for one in keys.accepted(119)] == [new.id, old.id]
    assert [one.id for one in keys.accepted(120)] == [new.id]
    later = keys.with_next(200).with_next_first(200, 0)
    assert len(later.keys) == 1
    assert later.replaces(ClusterKeys((old,)))  # that of a broker which was away for all of it
    assert not later.replaces(ClusterKeys((new_key(0),)))
    assert ClusterKeys.decode(later.encode(), "the node") == later


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"version": 1, "keys": []}', b"\xff", bytes(range(99))]
)
def test_keys_when_malformed_then_the_error_says_where_and_shows_nothing(content: bytes) -> None:
    with pytest.raises(errors.ConfigError, match="the file has no keys of a cluster"):
        ClusterKeys.decode(content, "the file")
    assert KEY.secret.hex() not in repr(KEY)
