"""What a broker writes into its audit log: refusals and administration, and no data."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from broker.errors import AuthenticationError, ConfigError, ServerError
from broker.protocol.client_requests import (
    AUTHENTICATED,
    Acks,
    AuthenticateRequest,
    ClusterMetadataRequest,
    FilteredReadRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetKind,
    OffsetQuery,
    PartitionPosition,
    PartitionSet,
    PayloadFilter,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
    MoveLogRequest,
    ShutdownRequest,
)
from broker.protocol.replica_requests import ControlledShutdownRequest
from broker.security.principal import Principal
from broker.security.rules import CLUSTER, Operation, Rule, StoredRules
from broker.server.broker import Broker
from broker.zk.session import Session
from broker.zk.settings import change_rules
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import partition
from tests.support.logins import alice as alice

MESSAGE = encode([b"what nobody else should see"])
StartAudited = Callable[..., Broker]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def start_audited(start_broker: BrokerFactory, log: Path) -> StartAudited:
    return lambda **settings: start_broker(audit_log=log, **settings)


def events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="ascii").splitlines()]


def test_audit_when_rules_are_off_then_has_administration_and_no_data(
    start_audited: StartAudited, connect: PeerFactory, log: Path
) -> None:
    broker = start_audited()
    peer = connect(broker)
    peer.call(CreateTopicRequest("orders", 1))
    assert peer.publish("orders", MESSAGE).error == 0
    assert peer.fetch("orders", 0) == (0, MESSAGE)
    peer.status()
    peer.call(DeleteTopicRequest("orders"))
    port = peer.socket.getsockname()[1]
    broker.stop()
    created, deleted = events(log)
    assert created == deleted | {
        "time": created["time"],
        "request": "create_topic",
        "operation": "create",
    }
    del deleted["time"]
    assert deleted == {
        "broker": 0,
        "listener": "PLAIN",
        "address": "127.0.0.1",
        "port": port,
        "principal": "User:ANONYMOUS",
        "mechanism": "",
        "tls": False,
        "client_id": "test",
        "request": "delete_topic",
        "operation": "delete",
        "resource": "topic:orders",
        "decision": "allowed",
        "reason": "",
        "rule": "",
        "snapshot": -1,
        "topics": ["orders"],
        "topic_count": 1,
        "count": 1,
    }


def test_audit_when_rules_refuse_then_has_each_refusal_once_and_what_was_hidden(
    start_audited: StartAudited, connect: PeerFactory, log: Path, zookeeper: str
) -> None:
    broker = start_audited(zookeeper=zookeeper, enforces_rules=True)
    peer = connect(broker)
    broker.logs.creation.get_or_create("there", 0)
    for _ in range(3):
        assert peer.publish("secret\nplans", MESSAGE).error
        assert peer.publish("there", MESSAGE).error
    peer.fetch("orders", 0)
    for request in (DeleteTopicRequest("orders"), ShutdownRequest(force=True)):
        with pytest.raises(ServerError):
            peer.call(request)
    with pytest.raises(ServerError):
        peer.call(ControlledShutdownRequest(1, 1))
    broker.stop()
    found = [(one["operation"], one["resource"], one["count"]) for one in events(log)]
    assert ("write", "topic:secret\nplans", 1) in found
    assert ("write", "topic:secret\nplans", 2) in found
    assert ("write", "topic:there", 2) in found
    assert ("read", "topic:orders", 1) in found
    assert ("delete", "topic:orders", 1) in found
    assert ("alter", "cluster", 1) in found
    assert ("order", "cluster", 1) in found
    assert {one["decision"] for one in events(log)} == {"denied"}
    assert "nobody else" not in log.read_text()


def test_audit_when_a_request_names_very_many_topics_then_has_one_event_with_the_first(
    start_audited: StartAudited, connect: PeerFactory, log: Path, zookeeper: str
) -> None:
    broker = start_audited(zookeeper=zookeeper, enforces_rules=True)
    names = tuple(f"invented-{number}" for number in range(5000))
    peer = connect(broker)
    peer.call(ClusterMetadataRequest(names))
    peer.call(MetadataRequest(names))
    queries = [OffsetQuery(partition(one), OffsetKind.LATEST, 0) for one in names]
    peer.call(ListOffsetsRequest(tuple(queries)))
    positions = [PartitionPosition(partition(one), 0, 1) for one in names]
    peer.call(ReadRequest(100, 1, 1, tuple(positions)))
    peer.call(FilteredReadRequest(ReadRequest(100, 1, 1, tuple(positions)), PayloadFilter(b"x")))
    sets = [PartitionSet(partition(one), MESSAGE) for one in names]
    peer.send_extension(PublishRequest(Acks.WRITTEN, 1000, tuple(sets)))
    peer.receive_extension()
    broker.stop()
    found = events(log)
    assert [(one["request"], one["operation"]) for one in found] == [
        ("metadata", "describe"),
        ("list_offsets", "describe"),
        ("read", "read"),
        ("publish", "write"),
        ("metadata", "describe"),
        ("read", "read"),
    ]
    for one in found:
        assert (one["resource"], one["topic_count"]) == ("topic:invented-0", 5000)
        assert one["topics"] == list(names[:10])
        assert one["reason"] == f"User:ANONYMOUS may not {one['operation']} topic:invented-0"


def test_audit_when_all_topics_are_listed_then_has_none_of_the_hidden_ones(
    start_audited: StartAudited, connect: PeerFactory, log: Path, zookeeper: str
) -> None:
    broker = start_audited(zookeeper=zookeeper, enforces_rules=True)
    broker.logs.creation.get_or_create("hidden", 0)
    peer = connect(broker)
    for request in (MetadataRequest(None), ClusterMetadataRequest(None)):
        assert b"hidden" not in bytes(peer.call(request).rest)
    broker.stop()
    assert not events(log)


def test_audit_when_a_right_to_the_cluster_decides_then_has_that_and_the_topic(
    start_audited: StartAudited, connect: PeerFactory, log: Path, zookeeper: str
) -> None:
    anyone = Principal("User", "ANONYMOUS")
    rules = [Rule(anyone, one, CLUSTER) for one in (Operation.ALTER, Operation.CREATE)]
    with Session(zookeeper) as session:
        change_rules(session, lambda _: StoredRules().adding(rules).encode())
    broker = start_audited(zookeeper=zookeeper, enforces_rules=True)
    peer = connect(broker)
    peer.call(CreateTopicRequest("orders", 1))
    with pytest.raises(ServerError):
        peer.call(MoveLogRequest(partition("orders"), "/nowhere"))
    broker.stop()
    assert [(one["resource"], one["topics"], one["rule"]) for one in events(log)] == [
        ("cluster", ["orders"], "allow User:ANONYMOUS create cluster"),
        ("cluster", ["orders"], "allow User:ANONYMOUS alter cluster"),
    ]


def test_audit_when_a_client_does_not_prove_who_it_is_then_has_that(
    start_audited: StartAudited, connect: PeerFactory, log: Path
) -> None:
    broker = start_audited()
    with pytest.raises(AuthenticationError):
        connect(broker).call(AuthenticateRequest("SCRAM-SHA-256", 1, b"p=cHJvb2Y="))
    broker.stop()
    (event,) = events(log)
    assert (event["operation"], event["decision"]) == ("authenticate", "denied")
    assert event["reason"]
    assert "cHJvb2Y" not in log.read_text()


def test_audit_when_logins_fail_then_has_each_user_that_was_tried(
    start_audited: StartAudited, connect: PeerFactory, log: Path, alice: str
) -> None:
    broker = start_audited()
    for name in ("eve", "gr\u00f6\u00dfe", "x" * 300):
        peer = connect(broker)
        opening = f"n,,n={name},r=0123456789".encode()
        first = AUTHENTICATED.decode(peer.call(AuthenticateRequest("SCRAM-SHA-256", 0, opening)))
        nonce = first.data.decode().partition(",")[0]
        final = f"c=biws,{nonce},p={'A' * 43}=".encode()
        with pytest.raises(AuthenticationError):
            peer.call(AuthenticateRequest("SCRAM-SHA-256", 1, final))
    broker.stop()
    assert [one["resource"] for one in events(log)] == [
        "user:eve",
        "user:gr\u00f6\u00dfe",
        "user:" + "x" * 255,
    ]


def test_broker_when_it_cannot_write_the_audit_log_then_does_not_start(
    start_broker: BrokerFactory, log: Path
) -> None:
    log.mkdir()
    with pytest.raises(ConfigError, match=r"cannot open audit\.log"):
        start_broker(audit_log=log)


def test_audit_when_limits_or_the_request_refuse_a_creation_then_has_only_what_was_created(
    start_audited: StartAudited, connect: PeerFactory, log: Path
) -> None:
    broker = start_audited(max_partitions=2)
    peer = connect(broker)
    for count in (0x7FFF_FFFF, 1, 1, 2, -1):
        with suppress(ServerError):
            peer.call(CreateTopicRequest(f"topic-{count}", count))
    broker.stop()
    assert [one["resource"] for one in events(log)] == ["topic:topic-1"]
