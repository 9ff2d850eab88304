"""The paths of a schema registry, as Confluent's client and its serializers use them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

import pylogctl
from broker import Broker
from broker.admin import users
from broker.properties import Secret
from broker.security.principal import Principal
from broker.security.rules import Operation, Resource, ResourceType, Rule, StoredRules
from broker.security.scram import make_credential
from broker.zk.session import Session
from broker.zk.settings import change_rules
from pylogctl import Client
from pylogctl.testing import memory_cluster
from pylogctl.web.security import TokenAuthentication
from tests.support.web_site import Served, served

RegistryOf = Callable[[Served], SchemaRegistryClient]
PASSWORD = "pencil"
TOKEN = "correct-horse-battery"
ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
NOTED = ORDER.replace("}]}", '},{"name":"note","type":"string","default":""}]}')
BROKEN = ORDER.replace("}]}", '},{"name":"price","type":"double"}]}')  # no default
CONTEXT = SerializationContext("orders", MessageField.VALUE)


@pytest.fixture
def client() -> Iterator[Client]:
    with memory_cluster() as cluster, cluster.connect() as found:
        yield found


@pytest.fixture
def site(client: Client) -> Iterator[Served]:
    with served(client, allow_changes=True, authenticate=TokenAuthentication(TOKEN)) as found:
        yield found


@pytest.fixture
def registry_of() -> Iterator[RegistryOf]:
    """Make clients of a registry, which end with the test."""
    with ExitStack() as closing:

        def make(site: Served) -> SchemaRegistryClient:
            user = f"orders:{TOKEN}"
            settings = {"url": site.url, "basic.auth.user.info": user, "max.retries": 0}
            found: SchemaRegistryClient = closing.enter_context(SchemaRegistryClient(settings))
            return found

        yield make


def call(site: Served, path: str, **headers: str) -> tuple[int, str, Any]:
    """Return status, content type and document of a response to a program."""
    request = urllib.request.Request(site.url + path, headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        return response.status, response.headers["Content-Type"], json.loads(response.read())


def failure_of(ask: Callable[[], object]) -> tuple[int, int]:
    with pytest.raises(SchemaRegistryError) as caught:
        ask()
    return caught.value.http_status_code, caught.value.error_code


def test_serializer_when_it_registers_and_writes_then_readers_read_values(
    client: Client, site: Served, registry_of: RegistryOf
) -> None:
    registry = registry_of(site)
    serialize = AvroSerializer(registry, ORDER)
    client.send("orders", serialize({"id": 7}, CONTEXT))
    evolved = AvroSerializer(registry, NOTED)
    client.send("orders", evolved({"id": 8, "note": "gift"}, CONTEXT))

    payloads = [message.value for message in client.read("orders")]
    deserialize = AvroDeserializer(registry_of(site))
    expected = [{"id": 7}, {"id": 8, "note": "gift"}]
    assert [deserialize(one, CONTEXT) for one in payloads] == expected
    decoder = client.decoder()
    assert [decoder.decode(one) for one in payloads] == expected
    latest = client.subject_schema("orders-value")
    resolved = client.decoder(latest)
    assert resolved.decode(payloads[0]) == {"id": 7, "note": ""}

    with client.schema_producer(latest) as producer:
        ours = producer.send("orders", {"id": 9, "note": "ours"}).result()
    (message,) = client.read("orders", start={ours.partition: ours.offset})
    assert deserialize(message.value, CONTEXT) == {"id": 9, "note": "ours"}


def test_registry_when_asked_by_its_client_then_responds_as_it_expects(
    site: Served, registry_of: RegistryOf
) -> None:
    registry = registry_of(site)
    order, noted, broken = (Schema(one, "AVRO") for one in (ORDER, NOTED, BROKEN))
    schema_id = registry.register_schema("a/b c", order)
    assert registry.register_schema("other", order) == schema_id
    registry.register_schema("a/b c", noted)

    assert registry.get_subjects() == ["a/b c", "other"]
    assert registry.get_versions("a/b c") == [1, 2]
    assert "Order" in str(registry.get_version("a/b c", 1).schema.schema_str)
    assert registry.get_latest_version("a/b c").version == 2
    assert registry.lookup_schema("a/b c", order).version == 1
    uses = registry.get_schema_versions(schema_id)
    assert {(one.subject, one.version) for one in uses} == {("a/b c", 1), ("other", 1)}
    assert registry.test_compatibility("a/b c", noted)
    assert not registry.test_compatibility("a/b c", broken)
    assert not registry.test_compatibility_all_versions("a/b c", broken)

    assert registry.get_compatibility() == "BACKWARD"
    registry.set_compatibility("other", "none")
    assert registry.get_compatibility("other") == "NONE"
    registry.register_schema("other", broken)
    registry.delete_config("other")
    assert registry.get_compatibility("other") == "BACKWARD"

    assert registry.delete_version("a/b c", 1) == 1
    assert registry.delete_subject("other") == [1, 2]
    assert registry.get_subjects() == ["a/b c"]
    assert "Order" in str(registry_of(site).get_schema(schema_id).schema_str)


def test_registry_when_it_refuses_then_errors_have_the_numbers_that_clients_know(
    site: Served, registry_of: RegistryOf
) -> None:
    registry = registry_of(site)
    registry.register_schema("s", Schema(ORDER, "AVRO"))
    refused: dict[Callable[[], object], tuple[int, int]] = {
        lambda: registry.get_versions("none"): (404, 40401),
        lambda: registry.get_version("none", 1): (404, 40401),
        lambda: registry.delete_subject("none"): (404, 40401),
        lambda: registry.get_version("s", 9): (404, 40402),
        lambda: registry.get_schema(99): (404, 40403),
        lambda: registry.lookup_schema("s", Schema(NOTED, "AVRO")): (404, 40403),
        lambda: registry.lookup_schema("none", Schema(NOTED, "AVRO")): (404, 40401),
        lambda: registry.register_schema("s", Schema("{", "AVRO")): (422, 42201),
        lambda: registry.register_schema("s", Schema(BROKEN, "AVRO")): (409, 409),
        lambda: registry.get_version("s", 0): (422, 42202),
        lambda: registry.set_compatibility("s", "best"): (422, 42203),
    }

    assert {ask: failure_of(ask) for ask in refused} == refused


def test_registry_when_read_only_or_without_a_token_then_nothing_is_registered(
    client: Client, registry_of: RegistryOf
) -> None:
    client.register_schema("orders-value", ORDER)
    with served(client, authenticate=TokenAuthentication(TOKEN)) as site:
        status, kind, document = call(site, "/subjects")
        assert (status, kind) == (401, "application/vnd.schemaregistry.v1+json")
        assert document["error_code"] == 401
        assert call(site, "/subjects", Authorization=f"Bearer {TOKEN}")[2] == ["orders-value"]

        registry = registry_of(site)
        order, noted = Schema(ORDER, "AVRO"), Schema(NOTED, "AVRO")
        assert registry.get_global_mode() == "READONLY"
        assert failure_of(lambda: registry.register_schema("orders-value", noted)) == (403, 403)
        assert failure_of(lambda: registry.delete_subject("orders-value")) == (403, 403)
        assert failure_of(lambda: registry.set_compatibility(level="NONE")) == (403, 403)
        assert registry.lookup_schema("orders-value", order).version == 1
        assert registry.test_compatibility("orders-value", noted)
        serialize = AvroSerializer(registry, ORDER, conf={"auto.register.schemas": False})
        assert AvroDeserializer(registry)(serialize({"id": 1}, CONTEXT), CONTEXT) == {"id": 1}
    assert client.schema_versions("orders-value") == [1]


@pytest.mark.zookeeper
def test_registry_when_the_user_of_the_server_may_not_then_it_is_refused(
    start_broker: Callable[..., Broker], zookeeper: str, session: Session, registry_of: RegistryOf
) -> None:
    for name in ("root", "alice"):
        users.set_credential(session, name, make_credential(Secret(PASSWORD), 4096))
    shown = Resource(ResourceType.SCHEMA, "shown")
    rules = [Rule(Principal("User", "alice"), Operation.DESCRIBE, shown)]
    change_rules(session, lambda _: StoredRules().adding(rules).encode())
    broker = start_broker(zookeeper=zookeeper, enforces_rules=True, super_users="User:root")
    address = f"127.0.0.1:{broker.port}"
    with pylogctl.connect(address, user="root", password=PASSWORD) as root:
        hidden_id = root.register_schema("hidden", NOTED).id
        root.register_schema("shown", ORDER)

    order, noted = Schema(ORDER, "AVRO"), Schema(NOTED, "AVRO")
    with (
        pylogctl.connect(address, user="alice", password=PASSWORD) as alice,
        served(alice, allow_changes=True) as site,
    ):
        registry = registry_of(site)
        assert registry.get_subjects() == ["shown"]
        assert registry.lookup_schema("shown", order).version == 1
        assert failure_of(lambda: registry.register_schema("shown", noted)) == (403, 403)
        assert failure_of(lambda: registry.get_versions("hidden")) == (403, 403)
        assert failure_of(lambda: registry.get_schema(hidden_id)) == (404, 40403)
