"""Clients that log in, try to, or do something else, at a real broker: `docs/ways-in.md`."""

from __future__ import annotations

import base64
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import cast

import pytest

from broker import errors
from broker.client.connection import Connection
from broker.properties import Secret
from broker.protocol.client_requests import (
    AUTHENTICATED,
    Authenticated,
    AuthenticateRequest,
    HelloRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.primitives import Reader
from broker.protocol.replica_requests import PushStatesRequest
from broker.protocol.requests import RequestHeader
from broker.protocol.responses import BrokerAddress, encode_extension_response
from broker.security.cluster_keys import CLUSTER_PROOF
from broker.security.mechanisms import PLAIN, ClientExchange
from broker.security.quotas import Quotas
from broker.security.scram import ScramClient
from broker.security.users import SCRAM
from broker.server.broker import Broker
from broker.server.network import processor
from broker.server.requests import authentication, failure_delays
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, extension_frame, read_request
from tests.support.logins import PASSWORD
from tests.support.logins import alice as alice
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("alice")

MESSAGE = encode([b"message"])


def hello(peer: Peer) -> None:
    peer.send_extension(HelloRequest(), 7)
    peer.receive_extension(7)


def begin(peer: Peer, user: str = "alice") -> tuple[ClientExchange, bytes]:
    """Open an exchange; return it, and the answer that is to be sent into it."""
    exchange = ScramClient(user, Secret(PASSWORD)).exchange(PLAIN)
    answer = AUTHENTICATED.decode(peer.call(AuthenticateRequest(SCRAM, 0, next(exchange))))
    return exchange, answer.data


def log_in(peer: Peer, user: str = "alice", change: Callable[[str], str] = str) -> None:
    exchange, answer = begin(peer, user)
    final = change(exchange.send(answer).decode()).encode()
    with suppress(StopIteration):
        exchange.send(AUTHENTICATED.decode(peer.call(AuthenticateRequest(SCRAM, 1, final))).data)


def fail_to_log_in(peer: Peer) -> None:
    with pytest.raises(errors.AuthenticationFailedError, match="the user or the password is wrong"):
        log_in(peer, change=lambda final: final[:-8] + "AAAAAAA=")


def test_logins_when_an_address_has_failed_then_only_its_next_ones_wait(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FIRST_DELAY_S", "MAX_DELAY_S", "MAX_WAIT_S"):
        monkeypatch.setattr(failure_delays, name, 3600.0)
    waiting = running_broker.delays._due
    first, second, other = (
        connect(running_broker, address=f"127.0.0.{number}") for number in (2, 2, 3)
    )
    exchanges = [begin(one) for one in (first, second)]  # before any has failed
    final, right = (exchange.send(answer) for exchange, answer in exchanges)
    first.send_extension(AuthenticateRequest(SCRAM, 1, final[:-8] + b"AAAAAAA="))
    wait_until(lambda: len(waiting) == 1, "the answer of the failure to wait")
    second.send_extension(AuthenticateRequest(SCRAM, 1, right))
    wait_until(lambda: len(waiting) == 2, "the next login from there to wait")

    log_in(other)  # the owner, from elsewhere
    hello(connect(running_broker, address="127.0.0.2"))  # who does not log in waits for nothing
    assert not first.has_answer()
    assert not second.has_answer()
    running_broker.stop()
    assert first.is_closed() or first.has_answer()


def test_logins_when_very_many_connections_try_passwords_then_few_are_judged(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peers = [connect(running_broker, address="127.0.0.2") for _ in range(200)]
    exchanges = [begin(one) for one in peers]
    finals = [exchange.send(answer)[:-8] + b"AAAAAAA=" for exchange, answer in exchanges]
    for peer, final in zip(peers, finals, strict=True):
        peer.send_extension(AuthenticateRequest(SCRAM, 1, final))
    judged = 0
    for peer in peers:
        try:
            peer.receive_extension()
        except errors.AuthenticationFailedError:
            judged += 1
        except errors.AuthenticationStateError as error:
            assert "too many logins from this address have failed" in str(error)
        assert peer.is_closed()
    # a hundred have a turn in 10 s, and some more if they do not all come at once
    assert 1 <= judged <= 150
    log_in(connect(running_broker, address="127.0.0.3"))  # the owner, from elsewhere


def test_logins_when_one_password_was_mistyped_then_all_others_of_the_user_there_get_in(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MAX_DELAY_S", "MAX_WAIT_S"):
        monkeypatch.setattr(failure_delays, name, 1.0)
    fail_to_log_in(connect(running_broker))
    peers = [connect(running_broker) for _ in range(100)]  # ten of them have a turn in 1 s
    exchanges = [begin(one) for one in peers]
    for peer, (exchange, answer) in zip(peers, exchanges, strict=True):
        peer.send_extension(AuthenticateRequest(SCRAM, 1, exchange.send(answer)))
    for peer in peers:
        assert AUTHENTICATED.decode(peer.receive_extension()).is_done


@pytest.mark.parametrize(
    "name",
    ["alice", "al\u00adice", "\uff41lice", "=2C=3D"],
    ids=["same", "hyphen", "wide", "signs"],
)
def test_failures_when_a_user_is_written_otherwise_then_count_together(
    running_broker: Broker, connect: PeerFactory, name: str
) -> None:
    kept = "alice" if name != "=2C=3D" else ",="
    with suppress(errors.AuthenticationFailedError):
        connect(running_broker).call(AuthenticateRequest(SCRAM, 0, f"n,,n={name},r=abc".encode()))
        peer = connect(running_broker)
        peer.call(AuthenticateRequest(SCRAM, 0, f"n,,n={name},r=abc".encode()))
        peer.call(AuthenticateRequest(SCRAM, 1, b"c=biws,r=abc,p=AAAA"))
    assert ("127.0.0.1", kept) in running_broker.delays._failed


def test_proof_of_a_broker_when_it_fails_then_no_user_of_its_address_waits(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object, request: AuthenticateRequest) -> Authenticated:
        raise errors.AuthenticationFailedError(f"no proof by {request.mechanism}")

    monkeypatch.setattr(authentication.Authentication, "take", refuse)
    with pytest.raises(errors.AuthenticationFailedError):
        connect(running_broker).call(AuthenticateRequest(CLUSTER_PROOF, 1, b""))
    assert not running_broker.delays._failed
    with pytest.raises(errors.AuthenticationFailedError):
        connect(running_broker).call(AuthenticateRequest(SCRAM, 1, b""))
    assert running_broker.delays._failed


def test_logins_when_many_fail_then_each_connection_ends_and_the_broker_holds_none(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_delays, "FIRST_DELAY_S", 0.001)
    monkeypatch.setattr(failure_delays, "MAX_DELAY_S", 0.001)
    for _ in range(50):
        peer = connect(running_broker, address="127.0.0.2")
        fail_to_log_in(peer)
        assert peer.is_closed()
    wait_until(lambda: not running_broker.server.connections, "all being closed")


def test_logins_and_administration_when_one_is_held_up_then_the_other_goes_on(
    running_broker: Broker, connect: PeerFactory
) -> None:
    may_go_on = threading.Event()
    peer = connect(running_broker)
    try:
        for _ in range(2):
            running_broker.server.workers.submit(may_go_on.wait, 60)
        log_in(peer)
        may_go_on.set()
        may_go_on = threading.Event()
        for _ in range(2):
            running_broker.server.logins.submit(may_go_on.wait, 60)
        peer.call(CreateTopicRequest("orders", 1))
        assert "orders" in running_broker.logs.topics
    finally:
        may_go_on.set()


def first_changed(nonce: str) -> str:
    return ("B" if nonce[0] == "A" else "A") + nonce[1:]


@pytest.mark.parametrize(
    "change",
    [
        lambda final: final.replace("r=", "r=" + "x", 1),
        lambda final: ",".join(
            one[:66] if one.startswith("r=") else one for one in final.split(",")
        ),
        lambda final: ",".join(
            "r=" + first_changed(one[2:]) if one.startswith("r=") else one
            for one in final.split(",")
        ),
        lambda final: final.replace("c=biws", "c=eSws"),
        lambda final: final.replace("c=biws", "c=" + base64.b64encode(b"n,a=bob,").decode()),
        lambda final: final.replace(",p=", ",m=1,p="),
        lambda final: "m=1," + final,
        lambda final: final[: final.index(",p=")],
        lambda final: final + "\0",
        lambda final: "\udcff" * 10,
        lambda final: "",
    ],
    ids=[
        *("longer nonce", "server's nonce cut", "client's nonce changed", "y", "other name"),
        *("extension", "extension first", "no proof", "NUL", "no UTF-8", "nothing"),
    ],
)
def test_final_message_when_changed_then_the_login_fails_with_the_one_text(
    running_broker: Broker, connect: PeerFactory, change: Callable[[str], str]
) -> None:
    peer = connect(running_broker)
    exchange, answer = begin(peer)
    final = change(exchange.send(answer).decode()).encode(errors="surrogateescape")
    with pytest.raises(errors.AuthenticationFailedError) as failure:
        peer.call(AuthenticateRequest(SCRAM, 1, final))
    assert str(failure.value) == "the user or the password is wrong"
    assert peer.is_closed()


def test_requests_when_pipelined_around_a_login_then_only_those_behind_its_end_are_handled(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    exchange = ScramClient("alice", Secret(PASSWORD)).exchange(PLAIN)
    opening = extension_frame(AuthenticateRequest(SCRAM, 0, next(exchange)), 1)
    peer.send_bytes(extension_frame(HelloRequest(), 9) + opening)
    peer.receive_extension(9)
    answer = AUTHENTICATED.decode(peer.receive_extension(1)).data
    final = extension_frame(AuthenticateRequest(SCRAM, 1, exchange.send(answer)), 2)
    peer.send_bytes(final + extension_frame(CreateTopicRequest("orders", 1), 3))
    assert AUTHENTICATED.decode(peer.receive_extension(2)).principal == "User:alice"
    peer.receive_extension(3)

    peer = connect(running_broker)
    exchange, answer = begin(peer)
    wrong = extension_frame(AuthenticateRequest(SCRAM, 1, exchange.send(answer)[:-8] + b"AAAAAAA="))
    peer.send_bytes(wrong + extension_frame(CreateTopicRequest("behind", 1), 3))
    with pytest.raises(errors.AuthenticationFailedError):
        peer.receive_extension()
    assert peer.is_closed()

    peer = connect(running_broker)
    peer.send_bytes(opening + extension_frame(CreateTopicRequest("between", 1), 3))
    peer.receive_extension()
    with pytest.raises(errors.AuthenticationStateError, match="finish it first"):
        peer.receive_extension(3)
    assert peer.is_closed()
    assert set(running_broker.logs.topics.names()) == {"orders"}


def test_client_when_it_logs_in_as_another_user_then_its_waiting_read_ends_with_it(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    log_in(peer)
    peer.publish("orders", MESSAGE)
    peer.send_extension(read_request("orders", len(MESSAGE), max_wait_ms=60_000), 5)
    wait_until(lambda: len(list(running_broker.server.processors[0].purgatory.all())) == 1, "it")
    exchange = ScramClient("bob", Secret(PASSWORD)).exchange(PLAIN)
    peer.send_extension(AuthenticateRequest(SCRAM, 0, next(exchange)), 6)
    purgatory = running_broker.server.processors[0].purgatory
    connect(running_broker).publish("orders", MESSAGE)  # which answers the read
    peer.receive_extension(5)
    answer = AUTHENTICATED.decode(peer.receive_extension(6)).data
    with pytest.raises(errors.AuthenticationFailedError):
        peer.call(AuthenticateRequest(SCRAM, 1, exchange.send(answer)))
    assert peer.is_closed()
    assert not list(purgatory.all())


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\0\0\0\0\1", b"\0\0\0\0\0\1\0\2\xff\xff"])
def test_request_when_cut_and_a_login_is_required_then_ends_its_connection_only(
    start_broker: BrokerFactory, connect: PeerFactory, body: bytes
) -> None:
    broker = start_broker(requires_authentication=True)
    for request_type in (HelloRequest.TYPE, AuthenticateRequest.TYPE):
        frame = struct.pack(">h", request_type) + body
        peer = connect(broker)
        peer.send_bytes(struct.pack(">i", len(frame)) + frame)
        assert peer.is_closed()
    begin(connect(broker))


def test_challenge_when_nobody_answers_it_then_the_connection_ends(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "CHALLENGE_S", 0.1)
    monkeypatch.setattr(processor, "_SWEEP_INTERVAL_S", 0.05)
    running_broker.server.processors[0]._next_sweep_s = 0.0
    stranger = connect(running_broker)
    peers = [connect(running_broker) for _ in range(20)]
    for peer in peers:
        begin(peer)
    assert all(peer.is_closed() for peer in peers)
    hello(stranger)  # nobody has asked it for a proof


def test_user_when_it_has_all_connections_of_its_quota_then_no_more_until_one_ends(
    running_broker: Broker, connect: PeerFactory
) -> None:
    running_broker.server.network.quotas.set(Quotas(), {"alice": Quotas(connections=2)})
    peers = [connect(running_broker) for _ in range(3)]
    log_in(peers[0])
    log_in(peers[1])
    log_in(peers[1])  # again, on the same one
    with pytest.raises(errors.AuthenticationStateError, match="User:alice has 2 connections"):
        log_in(peers[2])
    assert peers[2].is_closed()
    for peer in (peers[0], connect(running_broker)):  # others are nobody yet
        hello(peer)
    peers[0].close()
    wait_until(lambda: can_log_in(running_broker), "room for another one")


def can_log_in(broker: Broker) -> bool:
    with Peer(broker.port) as peer:
        try:
            log_in(peer)
        except errors.AuthenticationStateError:
            return False
    return True


def test_order_of_95_mb_when_the_client_is_nobody_then_is_cut_off_at_its_start(
    running_broker: Broker, connect: PeerFactory
) -> None:
    size = 95 << 20
    start = struct.pack(">ihh", size, PushStatesRequest.TYPE, PushStatesRequest.VERSION)
    stranger, other = connect(running_broker), connect(running_broker)
    stranger.send_bytes(start)
    assert stranger.is_closed()
    stranger = connect(running_broker)
    with suppress(ConnectionError):
        stranger.send_bytes(start + bytes(4 << 20))  # all of it at once: no more is received
    assert stranger.is_closed()
    assert running_broker.server.network.queued_bytes.taken == 0
    hello(other)


@pytest.mark.parametrize("has_begun", [False, True], ids=["at first", "in an exchange"])
def test_frame_of_95_mb_when_a_login_is_required_then_is_cut_off_at_its_start(
    start_broker: BrokerFactory, connect: PeerFactory, has_begun: bool
) -> None:
    broker = start_broker(requires_authentication=True)
    peer = connect(broker)
    if has_begun:
        begin(peer)
    with suppress(ConnectionError):
        peer.send_bytes(struct.pack(">ih", 95 << 20, AuthenticateRequest.TYPE) + bytes(1 << 20))
    assert peer.is_closed()
    assert broker.server.network.queued_bytes.taken == 0


@pytest.fixture
def rogue() -> Iterator[socket.socket]:
    """Listen as a broker that is none."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.mark.parametrize(
    "answers",
    [
        ("r={nonce}x,s=QUFBQUFBQUFBQUFBQUFBQQ==,i=1",),
        ("r={nonce}x,s=QUFBQUFBQUFBQUFBQUFBQQ==,i=2147483647",),
        ("r=x,s=QUFBQUFBQUFBQUFBQUFBQQ==,i=4096",),
        ("e=unknown-user",),
        ("r={nonce}x,s=QUFBQUFBQUFBQUFBQUFBQQ==,i=4096", ""),
        ("r={nonce}x,s=QUFBQUFBQUFBQUFBQUFBQQ==,i=4096", "v=AAAA"),
    ],
    ids=["cheap", "dear", "other nonce", "error", "no proof", "wrong proof"],
)
def test_client_when_the_broker_does_not_prove_itself_then_sends_nothing_more(
    rogue: socket.socket, answers: tuple[str, ...]
) -> None:
    received: list[bytes] = []

    def serve() -> None:
        with rogue.accept()[0] as sock:
            sock.settimeout(60)
            for answer in (*answers, None):
                request = sock.recv(1 << 16)
                if not request:
                    return
                received.append(request)
                if answer is None:
                    return
                nonce = received[0].rpartition(b"r=")[2].decode()
                body = AUTHENTICATED.encode(
                    Authenticated(
                        answer is answers[-1] and len(answers) > 1,
                        0,
                        "User:alice",
                        answer.format(nonce=nonce).encode(),
                    )
                )
                reader = Reader(request)
                reader.int32()  # the size, and the type
                reader.int16()
                number = RequestHeader.decode(reader).correlation_id
                sock.sendall(encode_extension_response(number, body))

    thread = threading.Thread(target=serve)
    thread.start()
    address = BrokerAddress(0, *cast(tuple[str, int], rogue.getsockname()))
    connection = Connection(address, mechanism=ScramClient("alice", Secret(PASSWORD)))
    try:
        with pytest.raises(errors.AuthenticationFailedError, match="nothing else was sent"):
            connection.call(HelloRequest())
    finally:
        connection.close()
        thread.join()
    assert len(received) == len(answers)
    assert PASSWORD.encode() not in b"".join(received)
