"""The registry of schemas as clients meet it: through one broker, and through any of two."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from broker import errors
from broker.admin.registry_nodes import apply_changes, as_record, plan_import, read_tree
from broker.client.connection import Connection
from broker.client.schemas import SchemaClient
from broker.client.static_cluster import StaticCluster
from broker.protocol.client_requests import SchemaOperation, SchemasRequest
from broker.protocol.responses import BrokerAddress
from broker.schemas.values import TopicContract
from broker.server.broker import Broker
from broker.zk.session import Session
from tests.integration.broker.factories import BrokerFactory
from tests.integration.broker.peers import Server

ClientFactory = Callable[..., SchemaClient]


@pytest.fixture
def client_of() -> Iterator[ClientFactory]:
    """Make clients of brokers; closed at the end."""
    with ExitStack() as stack:

        def make(*brokers: Broker | Server) -> SchemaClient:
            addresses = [BrokerAddress(-1, "127.0.0.1", one.port) for one in brokers]
            return SchemaClient(
                stack.enter_context(closing(StaticCluster(addresses, Connection))), Connection
            )

        yield make


def record(name: str, *fields: str) -> str:
    made = [{"name": one, "type": "int", "default": 0} for one in fields]
    return json.dumps({"type": "record", "name": name, "fields": made})


@pytest.fixture
def two(start_broker: BrokerFactory, tmp_path: Path, zookeeper: str) -> Iterator[list[Broker]]:
    yield [
        start_broker(data_dir=tmp_path / str(one), broker_id=one, zookeeper=zookeeper)
        for one in (1, 2)
    ]


def test_broker_without_zookeeper_when_started_again_then_has_all_schemas(
    start_broker: BrokerFactory, client_of: ClientFactory
) -> None:
    broker = start_broker()
    client = client_of(broker)
    made = client.register("s", record("R", "a"))
    assert client.get(made.id) == made._replace(subject="", version=0)
    assert client.find("s", record("R", "a")) == made
    reasons = client.check("s", '{"type": "enum", "name": "E", "symbols": []}')
    assert len(reasons) == 1
    with pytest.raises(errors.IncompatibleSchemaError) as caught:
        client.register("s", '"int"')
    assert caught.value.reasons
    assert client.contract("t") == TopicContract()
    client.delete("s")
    broker.stop()

    client = client_of(start_broker())

    assert client.get(made.id).text == made.text
    assert client.subjects() == []
    again = client.register("s", record("Other", "a"))
    assert (again.id, again.version) == (2, 2)


def test_broker_without_a_registry_when_asked_then_the_error_says_so(
    old_broker: Server, client_of: ClientFactory
) -> None:
    with pytest.raises(errors.UnsupportedVersionError, match=r"no broker .* registry of schemas"):
        client_of(old_broker).subjects()


@pytest.mark.parametrize(
    "arguments", [b"", b"[]", b'{"id": "x"}', b'{"id": -1}', b'{"id": 1e99}', b"[" * 100_000]
)
def test_request_when_malformed_then_is_refused_and_the_connection_stays(
    running_broker: Broker, arguments: bytes
) -> None:
    connection = Connection(BrokerAddress(-1, "127.0.0.1", running_broker.port))
    for operation in (SchemaOperation.GET, SchemaOperation.REGISTER):
        with pytest.raises(errors.ServerError) as caught:
            connection.call(SchemasRequest(operation, "s", arguments))
        assert isinstance(caught.value, errors.InvalidRequestError)
    connection.close()


def test_brokers_when_one_registers_then_the_other_answers_also_alone(
    two: list[Broker], client_of: ClientFactory
) -> None:
    made = client_of(two[0]).register("s/value ü", record("R", "a"))

    other = client_of(two[1])
    assert other.get(made.id).text == made.text
    assert other.version("s/value ü") == made
    two[0].stop()

    both = client_of(*two)  # of whom one is dead
    assert both.get(made.id).text == made.text
    assert both.register("s/value ü", record("R", "a", "b")).version == 2


def test_brokers_when_both_register_at_once_then_each_schema_has_one_id(
    two: list[Broker], client_of: ClientFactory
) -> None:
    def register(n: int) -> list[tuple[int, int]]:
        client = client_of(two[n % 2])
        made = [client.register("same", '"int"'), client.register(f"s{n}", record(f"R{n}", "a"))]
        return [(one.id, one.version) for one in made]

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(register, range(8)))

    assert {same for same, _ in found} == {found[0][0]}
    own = [one for _, (one, _) in found]
    assert sorted([found[0][0][0], *own]) == list(range(1, 10))
    assert {version for _, (_, version) in found} == {1}
    assert client_of(two[0]).versions("same") == [1]


def test_import_when_brokers_run_then_they_answer_from_it(
    two: list[Broker], session: Session, client_of: ClientFactory
) -> None:
    client = client_of(two[0])
    client.register("s", record("R", "a"))
    exported = [as_record(one) for one in read_tree(session, "/schemas")]
    client.register("s", record("R", "a", "b"))
    client.register("later", '"int"')

    changes = list(plan_import(session, exported))
    assert changes
    apply_changes(session, changes, lambda _: None)

    for broker in two:
        assert client_of(broker).versions("s") == [1]
    # ids that were given after the export stay what they are
    new = client_of(two[1]).register("new", record("New", "x"))
    assert (new.id, new.version) == (4, 1)
    assert json.loads(client_of(two[0]).get(3).text) == "int"


def test_judgement_when_it_takes_long_then_a_broker_still_ends_at_once(
    start_broker: BrokerFactory, client_of: ClientFactory
) -> None:
    broker = start_broker()
    slow = [{"name": f"u{n}", "type": ["null", "int"]} for n in range(300)]
    text = json.dumps({"type": "record", "name": "R", "fields": slow})
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(client_of(broker).register, "s", text)
        began_s = time.monotonic()
        broker.stop()
        assert time.monotonic() - began_s < 60
        error = asked.exception()
    assert error is None or isinstance(error, errors.BrokerError)
