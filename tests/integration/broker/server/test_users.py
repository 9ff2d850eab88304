"""Users who log in at a real broker by SCRAM-SHA-256, and those who try."""

from __future__ import annotations

import base64
import socket
import struct
from collections.abc import Callable
from contextlib import closing

import pytest

from broker import Broker, errors
from broker.admin import users
from broker.client.connection import Connection
from broker.properties import Secret
from broker.protocol.client_requests import (
    AUTHENTICATED,
    Acks,
    AuthenticateRequest,
    HelloRequest,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.requests import OffsetsRequest, encode_request
from broker.protocol.responses import BrokerAddress, decode_publish_response
from broker.security.scram import ScramClient, make_credential
from broker.security.users import SCRAM
from broker.topic import TopicPartition
from broker.zk.session import Session
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartBroker = Callable[..., Broker]
PENCIL = Secret("pencil")
ONE = encode([b"one"])
TOO_LONG = struct.pack(">ih", 65 << 10, 0) + bytes(100)  # the start of a frame


def connection_of(broker: Broker, user: str, password: Secret = PENCIL) -> Connection:
    address = BrokerAddress(0, "127.0.0.1", broker.port)
    return Connection(address, mechanism=ScramClient(user, password))


def can_log_in(broker: Broker, user: str) -> bool:
    connection = connection_of(broker, user)
    try:
        connection.connect()
    except errors.AuthenticationFailedError:
        return False
    finally:
        connection.close()
    return True


def identities(broker: Broker) -> set[str]:
    return {str(one.client.authentication.identity) for one in broker.server.connections}


@pytest.fixture
def alice(session: Session) -> str:
    """A user with the password `pencil`."""
    users.set_credential(session, "alice", make_credential(PENCIL, 4096))
    return "alice"


@pytest.fixture
def broker(start_broker: StartBroker, zookeeper: str, alice: str) -> Broker:
    return start_broker(zookeeper=zookeeper)


def test_user_when_logged_in_then_publishes_in_its_own_name(broker: Broker, alice: str) -> None:
    with closing(connection_of(broker, alice)) as connection:
        connection.call(CreateTopicRequest("t"))
        sets = (PartitionSet(TopicPartition("t", 0, 0), ONE),)
        request = PublishRequest(Acks.WRITTEN, 10_000, sets)
        (result,) = decode_publish_response(connection.call(request))

        assert result.error == 0
        assert "User:alice" in identities(broker)


def test_user_when_removed_then_cannot_log_in_and_its_connections_end(
    broker: Broker, session: Session, alice: str
) -> None:
    with closing(connection_of(broker, alice)) as connection:
        connection.connect()
        users.remove_user(session, alice)
        wait_until(lambda: not can_log_in(broker, alice), "the broker has removed alice")

        with pytest.raises(errors.AuthenticationStateError, match="User:alice holds no more"):
            connection.call(HelloRequest())

    users.set_credential(session, alice, make_credential(PENCIL, 4096))
    wait_until(lambda: can_log_in(broker, alice), "the broker knows alice again")


def test_broker_when_a_login_is_required_then_serves_nobody_else(
    start_broker: StartBroker, zookeeper: str, alice: str
) -> None:
    broker = start_broker(zookeeper=zookeeper, requires_authentication=True)
    address = BrokerAddress(0, "127.0.0.1", broker.port)

    with closing(connection_of(broker, alice)) as connection:
        assert connection.hello() is not None
    with closing(Connection(address)) as stranger:
        with pytest.raises(errors.AuthenticationStateError, match="have logged in"):
            stranger.call(HelloRequest())
        with pytest.raises(errors.BrokerUnreachableError):
            stranger.receive()
    for sent in (encode_request(OffsetsRequest("t", 0, -1, 1)), TOO_LONG):
        with socket.create_connection(("127.0.0.1", broker.port), 60) as of_07:
            of_07.sendall(sent)
            assert of_07.recv(1) == b""


@pytest.mark.parametrize("user", ["alice", "eve", "", "=2C", "\ufb01", "b" * 5000])
def test_log_in_when_user_or_password_is_wrong_then_the_answer_is_the_same(
    broker: Broker, alice: str, user: str
) -> None:
    name = user.replace("=", "=3D").replace(",", "=2C")
    with closing(Connection(BrokerAddress(0, "127.0.0.1", broker.port))) as connection:
        request = AuthenticateRequest(SCRAM, 0, f"n,,n={name},r=0123".encode())
        with pytest.raises(errors.AuthenticationFailedError) as failure:
            first = AUTHENTICATED.decode(connection.call(request)).data.decode()
            nonce = first.partition(",")[0]
            proof = base64.b64encode(bytes(32)).decode()
            connection.call(AuthenticateRequest(SCRAM, 1, f"c=biws,{nonce},p={proof}".encode()))

    assert failure.value.code == 58
    assert "the user or the password is wrong" in str(failure.value) or len(user) == 5000
