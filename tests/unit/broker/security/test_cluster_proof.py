"""CLUSTER-SCRAM-SHA-256: both halves together, and what neither accepts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import errors
from broker.protocol.client_requests import AUTHENTICATED, AuthenticateRequest
from broker.protocol.primitives import Reader
from broker.security.cluster_keys import (
    CLUSTER_PROOF,
    BrokerIdentity,
    ClusterKey,
    ClusterKeys,
    new_key,
)
from broker.security.cluster_proof import CLAIM, BrokerProof, Claim, Door
from broker.security.mechanisms import PLAIN, Channel, Proved, ServerExchange, authenticate
from broker.security.principal import ANONYMOUS, broker_principal
from broker.server.requests.authentication import Authentication

KEY = ClusterKey(bytes(range(32)), 0)
OTHER_KEY = ClusterKey(bytes(range(32, 64)), 0)
TLS = Channel(b"server certificate")


def test_ids_of_keys_when_they_are_on_the_wire_then_are_these() -> None:
    assert KEY.id.hex() == "71502437f359b0da"
    assert OTHER_KEY.id.hex() == "0e9ee828882c93a0"


def test_claim_when_it_is_a_name_of_scram_then_has_these_bytes() -> None:
    claim = Claim(1, 21, "c-7f3a", 2, "INTERNAL", "b2.example:9094", b"", KEY.id)
    assert CLAIM.encode(claim).hex() == (
        "00000001" "0000000000000015" "0006632d37663361" "00000002" "0008494e5445524e414c"
        "000f62322e6578616d706c653a39303934" "00000000" "0000000871502437f359b0da"
    )  # fmt: skip
    assert CLAIM.decode(Reader(CLAIM.encode(claim))) == claim


class Brokers:
    """Broker 1 connects to broker 2; both know one key unless a test says otherwise."""

    def __init__(self) -> None:
        self.client = BrokerIdentity(1, 21, "c", [KEY])
        self.server = BrokerIdentity(2, 34, "c", [KEY])
        self.registered = {1: 21, 2: 34}
        self.server_id, self.listener, self.endpoint = 2, "PLAINTEXT", "b2:9092"
        self.door = Door(
            lambda: self.server,
            "PLAINTEXT",
            lambda: "b2:9092",
            lambda one, epoch: self.registered.get(one) == epoch,
        )

    def mechanism(self) -> BrokerProof:
        return BrokerProof(lambda: self.client, self.server_id, self.listener, self.endpoint)

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


def test_exchange_when_keys_are_replaced_then_uses_the_chosen_one_until_it_is_withdrawn() -> None:
    brokers = Brokers()
    brokers.server = brokers.server._replace(keys=[KEY, OTHER_KEY])
    assert brokers.connect().identity == broker_principal(1)
    brokers.client = brokers.client._replace(keys=[OTHER_KEY, KEY])
    served = brokers.connect()
    assert served.identity == broker_principal(1)
    brokers.server = brokers.server._replace(keys=[KEY])  # the one used was withdrawn
    with pytest.raises(errors.AuthenticationStateError, match="holds no more"):
        served.check(73)


def changed(name: str, value: object) -> Callable[[Brokers], None]:
    return lambda brokers: setattr(brokers, name, value)


@pytest.mark.parametrize(
    "change",
    [
        changed("client", BrokerIdentity(1, 21, "c", [OTHER_KEY])),
        changed("client", BrokerIdentity(1, 21, "c", [])),
        changed("client", BrokerIdentity(1, 21, "another cluster", [KEY])),
        changed("client", BrokerIdentity(1, 20, "c", [KEY])),
        changed("client", BrokerIdentity(1, 22, "c", [KEY])),
        changed("client", BrokerIdentity(1, 2**62, "c", [KEY])),
        changed("client", BrokerIdentity(3, 21, "c", [KEY])),
        changed("client", BrokerIdentity(-1, 21, "c", [KEY])),
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


def test_exchange_when_answers_of_two_connections_are_crossed_then_both_are_refused() -> None:
    brokers = Brokers()
    clients = [brokers.mechanism().exchange(PLAIN) for _ in range(2)]
    servers = [brokers.serve() for _ in range(2)]
    answers = [server.send(next(client)) for client, server in zip(clients, servers, strict=True)]
    for client, answer in zip(clients, reversed(answers), strict=True):
        with pytest.raises(errors.AuthenticationFailedError):
            client.send(answer)
    for server in servers:
        with pytest.raises(errors.AuthenticationFailedError):
            server.send(b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL,p=" + base64.b64encode(bytes(32)))


def test_exchange_when_messages_come_back_then_is_refused() -> None:
    brokers = Brokers()
    client, server = brokers.mechanism().exchange(PLAIN), brokers.serve()
    answer = server.send(next(client))
    with pytest.raises(errors.AuthenticationFailedError):
        brokers.serve().send(answer)
    own_proof = client.send(answer)
    with pytest.raises(errors.AuthenticationFailedError):
        client.send(own_proof)
    with pytest.raises(errors.AuthenticationFailedError):
        server.send(answer)


def test_client_when_the_server_knows_no_key_then_is_not_deceived() -> None:
    brokers = Brokers()
    client = brokers.mechanism().exchange(PLAIN)
    answer = brokers.serve().send(next(client))
    client.send(answer)
    with pytest.raises(errors.AuthenticationFailedError):
        client.send(b"v=" + base64.b64encode(bytes(32)))


def _edited(answer: bytes, iterations: int) -> bytes:
    return answer.replace(b"i=4096", b"i=%d" % iterations)


@pytest.mark.parametrize("iterations", [0, 1, 4095, 4097, 1_000_000, 10**9])
def test_client_when_the_server_asks_for_other_hashing_then_proves_nothing(iterations: int) -> None:
    brokers = Brokers()
    client = brokers.mechanism().exchange(PLAIN)
    answer = brokers.serve().send(next(client))
    with pytest.raises(errors.AuthenticationFailedError):
        client.send(_edited(answer, iterations))


def test_client_when_the_server_answers_with_another_nonce_then_proves_nothing() -> None:
    brokers = Brokers()
    client = brokers.mechanism().exchange(PLAIN)
    next(client)
    other = brokers.serve().send(next(brokers.mechanism().exchange(PLAIN)))
    with pytest.raises(errors.AuthenticationFailedError):
        client.send(other)


def test_server_when_the_claim_is_edited_on_the_way_then_refuses_the_proof() -> None:
    brokers = Brokers()
    brokers.registered[3] = 21
    client, server = brokers.mechanism().exchange(PLAIN), brokers.serve()
    opening = next(client)
    claim = CLAIM.encode(Claim(1, 21, "c", 2, "PLAINTEXT", "b2:9092", b"", KEY.id)).hex().encode()
    another = CLAIM.encode(Claim(3, 21, "c", 2, "PLAINTEXT", "b2:9092", b"", KEY.id)).hex().encode()
    assert claim in opening
    answer = server.send(opening.replace(claim, another))
    with pytest.raises(errors.AuthenticationFailedError):
        server.send(client.send(answer))


def test_server_when_strangers_try_then_hashes_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers()
    brokers.connect()
    calls: list[str] = []
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *_a, **_n: calls.append("hashed"))
    opening = next(brokers.mechanism().exchange(PLAIN))
    brokers.serve().send(opening)
    assert calls == []


@given(data=st.binary(max_size=300), cut=st.integers(0, 200), is_cut=st.booleans())
def test_server_when_any_bytes_come_then_refuses_them(data: bytes, cut: int, is_cut: bool) -> None:
    whole = next(Brokers().mechanism().exchange(PLAIN))
    with pytest.raises(errors.AuthenticationFailedError):
        Brokers().serve().send(whole[: min(cut, whole.index(b",r="))] + (b"" if is_cut else data))


@given(data=st.binary(max_size=200))
def test_server_when_the_name_is_no_claim_then_refuses_it(data: bytes) -> None:
    with pytest.raises(errors.AuthenticationFailedError):
        Brokers().serve().send(b"n,,n=" + data.hex().encode() + b",r=fyko+d2lbbFgONRv9qkxdawL")


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
