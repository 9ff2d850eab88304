"""The contract of a topic: messages that break it are refused, before anything is appended."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from broker.errors import SchemaMismatchError, SchemasUnavailableError
from broker.protocol.codec import NEW_BATCH, Record, encode, encode_batch
from broker.protocol.compression import Codec
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.message_set import build_set
from broker.schemas.payloads import Encoder
from broker.schemas.store import Document, FileHome, SchemaStore
from broker.schemas.values import RegisteredSchema, SchemaType
from broker.server.broker import Broker
from broker.server.requests import schema_guard
from tests.integration.broker.factories import PeerFactory
from tests.integration.broker.server.peer import Peer
from tests.support.batch_headers import with_header
from tests.support.waiting import wait_until

AVRO = '{"type": "record", "name": "Ev", "fields": [{"name": "n", "type": "int"}]}'
EV = RegisteredSchema(7, SchemaType.AVRO, AVRO, "ev-value", 1)
OTHER = RegisteredSchema(8, SchemaType.AVRO, '"int"', "other-value", 1)
GOOD = Encoder(EV).encode({"n": 1})
WRONG_BODY = GOOD + b"x"
ONE = encode([b"older"])
OF_OTHER = Encoder(OTHER).encode(5)

Contract = Callable[..., None]


class Registry(FileHome):
    """A registry in a file that can be away."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_away = False
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.threads: set[str] = set()

    def read(self, key: str) -> Document | None:
        self.threads.add(threading.current_thread().name)
        assert self.may_answer.wait(60)
        if self.is_away:
            raise SchemasUnavailableError("ZooKeeper cannot be reached")
        return super().read(key)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    home = Registry(tmp_path / "schemas.json")
    for one in (EV, OTHER):
        SchemaStore(home).register(one.subject, one.text, one.type, schema_id=one.id)
    home.threads.clear()
    return home


@pytest.fixture
def contract(running_broker: Broker, registry: Registry) -> Contract:
    """Give topic `ev` a contract on `running_broker`."""
    running_broker.schemas = SchemaStore(registry)

    def give(validation: str) -> None:
        settings = {"schema_subject": "ev-value", "schema_validation": validation}
        running_broker.guard.reconfigure(BrokerConfig(), {"ev": settings})

    return give


@pytest.mark.parametrize(
    ("validation", "payloads", "reason"),
    [
        ("id", [GOOD, b"garbage"], "message 2 of 2 for topic 'ev' .*: it has no schema"),
        ("id", [GOOD, GOOD, OF_OTHER], "message 3 of 3 .*: the subject has no schema 8"),
        ("id", [b"\0\0\0\0\x63"], "message 1 of 1 .*: the subject has no schema 99"),
        ("full", [GOOD, WRONG_BODY], "message 2 of 2 .*schema 7: 1 bytes follow the value"),
        ("full", [b""], "message 1 of 1 .*: it has no schema"),
    ],
)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_set_when_a_message_breaks_the_contract_then_is_refused_whole_and_its_number_told(
    peer: Peer,
    contract: Contract,
    validation: str,
    payloads: list[bytes],
    reason: str,
    codec: Codec,
) -> None:
    first = peer.publish("ev", ONE)  # what is there stays
    contract(validation)

    refused = peer.publish("ev", build_set(payloads, codec))

    assert refused.error == SchemaMismatchError.code
    assert re.search(reason, refused.text)
    taken = peer.publish("ev", build_set([GOOD, GOOD], codec))
    assert (taken.error, taken.base_offset) == (0, first.base_offset + len(ONE))


@pytest.mark.parametrize("attributes", [0, 4])
def test_batch_when_a_value_breaks_the_contract_then_is_refused_and_a_tombstone_is_taken(
    peer: Peer, contract: Contract, attributes: int
) -> None:
    def batch_of(*values: bytes | None) -> bytes:
        records = [Record(n, 0, b"key", value) for n, value in enumerate(values)]
        return encode_batch(records, NEW_BATCH._replace(attributes=attributes))

    peer.call(CreateTopicRequest("ev", format="kafka"))
    contract("full")

    refused = peer.publish("ev", batch_of(GOOD, None, WRONG_BODY))

    assert refused.error == SchemaMismatchError.code
    assert re.search("message 3 of 3 .*schema 7: 1 bytes follow the value", refused.text)
    taken = peer.publish("ev", batch_of(GOOD, None, GOOD))
    assert (taken.error, taken.base_offset) == (0, 0)
    broken = with_header(batch_of(GOOD), 43, "q", -1)[:61] + b"\x02\x00"
    text = peer.publish("ev", with_header(broken, 8, "i", len(broken) - 12)).text
    assert re.search("its (records do not fill it|compressed content)", text)


def test_set_when_its_topic_has_no_validation_then_is_taken(peer: Peer, contract: Contract) -> None:
    contract("none")
    assert peer.publish("ev", encode([b"garbage"])).error == 0
    contract("id")
    assert peer.publish("free", encode([b"garbage"])).error == 0


def test_produce_of_07_when_it_breaks_the_contract_then_the_connection_closes(
    running_broker: Broker, connect: PeerFactory, contract: Contract, peer: Peer
) -> None:
    start = peer.publish("ev", ONE).base_offset + len(ONE)
    contract("id")
    old = connect(running_broker)

    old.produce("ev", build_set([GOOD, b"garbage"], Codec.GZIP))

    wait_until(old.is_closed, "the connection to close")
    connect(running_broker).produce("ev", encode([GOOD]))
    wait_until(lambda: peer.fetch("ev", start) == (0, encode([GOOD])), "what fits to be there")
    metrics = running_broker.status()["metrics"]
    assert metrics["BrokerTopicStat.ev"]["FailedProduceRequest"] == 1


def test_registry_when_it_is_away_then_only_messages_of_known_schemas_are_taken(
    running_broker: Broker, connect: PeerFactory, contract: Contract, registry: Registry
) -> None:
    contract("id")
    registry.is_away = True
    first = connect(running_broker)

    refused = first.publish("ev", encode([GOOD]))

    assert refused.error == SchemasUnavailableError.code
    assert "ZooKeeper cannot be reached" in refused.text
    assert SchemasUnavailableError.is_retriable
    registry.is_away = False
    assert first.publish("ev", encode([GOOD])).error == SchemasUnavailableError.code  # in order
    assert connect(running_broker).publish("ev", encode([GOOD])).error == 0
    registry.is_away = True
    assert connect(running_broker).publish("ev", encode([GOOD])).error == 0
    assert all(name.startswith("schema-lookup") for name in registry.threads)


def test_registry_when_it_hangs_then_what_needs_it_is_refused_and_other_topics_go_on(
    running_broker: Broker,
    connect: PeerFactory,
    contract: Contract,
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schema_guard, "_WAIT_S", 0.1)
    contract("id")
    large = build_set([bytes(3 << 20)], Codec.GZIP)  # which a worker validates
    registry.may_answer.clear()
    try:
        for _ in range(3):
            refused = connect(running_broker).publish("ev", encode([GOOD]))
            assert refused.error == SchemasUnavailableError.code
            assert connect(running_broker).publish("free", large).error == 0
    finally:
        registry.may_answer.set()

    wait_until(
        lambda: connect(running_broker).publish("ev", encode([GOOD])).error == 0, "its answer"
    )


def test_registry_when_it_hangs_then_messages_of_known_schemas_are_taken(
    peer: Peer, contract: Contract, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_guard, "_WAIT_S", 0.1)
    monkeypatch.setattr(schema_guard, "_KNOWN_S", 0.0)
    contract("full")
    assert peer.publish("ev", encode([GOOD])).error == 0
    registry.may_answer.clear()
    try:
        assert [peer.publish("ev", encode([GOOD])).error for _ in range(3)] == [0, 0, 0]
    finally:
        registry.may_answer.set()


def test_version_when_deleted_and_long_unused_then_the_first_message_of_it_is_refused(
    running_broker: Broker,
    peer: Peer,
    contract: Contract,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schema_guard, "_KNOWN_S", 0.0)
    contract("full")
    assert peer.publish("ev", encode([GOOD])).error == 0

    running_broker.schemas.delete("ev-value")

    assert peer.publish("ev", encode([GOOD])).error == SchemaMismatchError.code
