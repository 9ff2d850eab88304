"""Schemas through the Python API: registered, sent by, and decoded."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator

import pytest

import pylogctl
from broker.client.schemas import SchemaClient
from broker.schemas.values import RegisteredSchema
from pylogctl import Client
from pylogctl.testing import Cluster, memory_cluster

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
NOTED = ORDER.replace("}]}", '},{"name":"note","type":"string","default":""}]}')
BROKEN = ORDER.replace("}]}", '},{"name":"price","type":"double"}]}')  # no default


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with memory_cluster() as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with cluster.connect() as connected:
        yield connected


def test_schemas_when_registered_then_are_found_compared_and_deleted(client: Client) -> None:
    first = client.register_schema("made", ORDER)
    assert (first.subject, first.version, first.type) == ("made", 1, "AVRO")
    assert client.register_schema("made", ORDER) == first
    assert client.check_schema("made", NOTED) == []
    assert "price" in "".join(client.check_schema("made", BROKEN, version=1))
    with pytest.raises(pylogctl.IncompatibleSchema, match="price"):
        client.register_schema("made", BROKEN)
    with pytest.raises(pylogctl.InvalidSchema):
        client.register_schema("made", "{")
    second = client.register_schema("made", NOTED)

    assert client.subject_schema("made") == second
    assert client.find_schema("made", ORDER).version == 1
    assert [one.subject for one in client.schema_uses(first.id)] == ["made"]
    client.set_compatibility("made", "FULL")
    assert client.compatibility("made") is pylogctl.Compatibility.FULL
    client.set_compatibility("made", None)
    assert client.compatibility("made") is client.compatibility()
    assert client.delete_schema("made", 1) == [1]
    assert client.schema_versions("made") == [2]
    assert client.delete_schema("made") == [2]
    assert "made" not in client.subjects()
    assert json.loads(client.schema(first.id).text)["name"] == "Order"
    with pytest.raises(pylogctl.UnknownSchema):
        client.subject_schema("made")


def test_value_when_it_does_not_fit_then_the_error_names_the_field_and_nothing_is_sent(
    client: Client,
) -> None:
    schema = client.register_schema("strict", ORDER)
    with client.schema_producer(schema.id) as producer:
        producer.send_many("strict", [{"id": 1}, {"id": 2}]).result()
        with pytest.raises(pylogctl.SchemaMismatch, match="id"):
            producer.send_many("strict", [{"id": 3}, {"id": "four"}])
    decoder = client.decoder(schema.id)
    assert [decoder.decode(one.value) for one in client.read("strict")] == [{"id": 1}, {"id": 2}]
    with pytest.raises(pylogctl.SchemaMismatch):
        decoder.decode(b"garbage")


def test_producer_when_schemas_are_auto_then_the_topics_subject_decides(client: Client) -> None:
    with client.schema_producer() as producer:
        with pytest.raises(pylogctl.UnknownSchema, match="auto-value"):
            producer.send("auto", {"id": 1})
        schema = client.register_schema("auto-value", ORDER)
        producer.send("auto", {"id": 1})
    (message,) = client.read("auto")
    assert message.value == b"\x00" + schema.id.to_bytes(4, "big") + b"\x02"


def test_loop_when_a_schema_is_looked_up_then_it_does_not_wait(
    cluster: Cluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = client.register_schema("looped", ORDER)
    threads: set[int] = set()
    get = SchemaClient.get

    def noted(self: SchemaClient, id: int) -> RegisteredSchema:
        threads.add(threading.get_ident())
        return get(self, id)

    monkeypatch.setattr(SchemaClient, "get", noted)

    async def main() -> list[object]:
        async with pylogctl.aconnect(cluster.broker(0).address) as loop_client:
            assert (await loop_client.subject_schema("looped")).id == schema.id
            async with loop_client.schema_producer(schema.id) as producer:
                await producer.send_many("looped", [{"id": 1}, {"id": 2}])
                with pytest.raises(pylogctl.SchemaMismatch):
                    await producer.send("looped", {"id": "three"})
            decoder = await loop_client.decoder()
            async with loop_client.read("looped") as reader:
                return [await decoder.decode(one.value) async for one in reader]

    assert asyncio.run(main()) == [{"id": 1}, {"id": 2}]
    assert threads
    assert threading.get_ident() not in threads
