"""The Spark data source with brokers that a real ZooKeeper knows, without Spark's JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from bench.broker_process import BrokerProcess
from broker.errors import RegistryUnreachableError, TopicNotFoundError
from broker.protocol.message_set import build_set
from broker.server.broker import Broker
from broker.spark.options import parse_read_options, parse_write_options
from broker.spark.reading.stream_reader import Document, StreamReader
from broker.spark.schema import full_schema
from broker.spark.writer import send_rows
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from tests.support.spark_rows import read, values
from tests.support.spark_session import publish, publish_to
from tests.support.waiting import wait_until
from tests.support.zookeeper import await_registered

pytestmark = pytest.mark.zookeeper

BrokerFactory = Callable[..., Broker]


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%04d" % number for number in range(first, last)]


def send(zookeeper: str, topic: str, payloads: list[bytes]) -> None:
    rows = pa.RecordBatch.from_pydict({"value": payloads})
    send_rows([rows], parse_write_options({"zk": zookeeper, "topic": topic}))


def test_topics_when_on_several_brokers_then_all_are_read(
    start_broker: BrokerFactory, zookeeper: str, session: Session, tmp_path: Path
) -> None:
    brokers = [
        start_broker(broker_id=id, zookeeper=zookeeper, data_dir=tmp_path / str(id))
        for id in (1, 2)
    ]
    for broker_id, broker in enumerate(brokers, 1):
        publish(broker, "mail", numbered(broker_id * 100, broker_id * 100 + 50))
        await_registered(session, "mail", broker_id)
    send(zookeeper, "web", numbered(500, 999))
    send(zookeeper, "mail", numbered(300, 350))
    wait_until(lambda: session.children(paths.topic("web")), "the registration of web")

    rows = read(zk=zookeeper, subscribePattern="web|mail")

    wanted = [*numbered(100, 150), *numbered(200, 250), *numbered(300, 350), *numbered(500, 999)]
    assert sorted(values(rows)) == wanted
    assert {row["partition"] for row in rows if row["topic"] == "mail"} == {"1-0", "2-0"}


def test_topic_when_the_registry_does_not_know_it_then_says_so(
    start_broker: BrokerFactory, zookeeper: str
) -> None:
    start_broker(zookeeper=zookeeper)

    with pytest.raises(TopicNotFoundError, match="topic 'nowhere' not found"):
        read(zk=zookeeper, subscribe="nowhere")


def test_registry_when_nobody_is_there_then_says_so() -> None:
    with pytest.raises(RegistryUnreachableError):
        read(zk="127.0.0.1:1", subscribe="web", connectTimeoutMs="200")


def test_stream_when_its_broker_moves_then_goes_on(
    start_broker: BrokerFactory, zookeeper: str, session: Session
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    send(zookeeper, "web", numbered(0, 100))
    await_registered(session, "web")
    options = parse_read_options(
        {"zk": zookeeper, "subscribe": "web", "startingOffsets": "earliest"}, is_stream=True
    )
    reader = StreamReader(options, full_schema(options.crc))
    start = reader.initialOffset()
    middle = reader.latestOffset(start, ReadAllAvailable())
    broker.stop()

    waiting = reader.latestOffset(middle, ReadAllAvailable())
    start_broker(zookeeper=zookeeper)
    send(zookeeper, "web", numbered(100, 200))
    end = reader.latestOffset(waiting, ReadAllAvailable())
    found = [
        value
        for bounds in ((start, middle), (waiting, end))
        for partition in reader.partitions(*bounds)
        for batch in reader.read(partition)
        for value in pa.Table.from_batches([batch])["value"].to_pylist()
    ]
    reader.stop()

    assert waiting == middle
    assert found == numbered(0, 200)


def test_stream_when_a_broker_is_killed_then_goes_on_with_the_others(
    start_broker: BrokerFactory, zookeeper: str, tmp_path: Path
) -> None:
    (tmp_path / "killed").mkdir()
    other = start_broker(broker_id=1, zookeeper=zookeeper, data_dir=tmp_path / "other")
    killed = BrokerProcess(
        tmp_path / "killed",
        **{
            "brokerid": "2",
            "enable.zookeeper": "true",
            "zk.connect": zookeeper,
            "zk.sessiontimeout.ms": "3000",
        },
    )
    try:
        publish_to(killed.port, TopicPartition("web", 2, 0), numbered(0, 100))
        publish(other, "web", numbered(100, 150))
        options = parse_read_options(
            {
                "zk": zookeeper,
                "subscribe": "web",
                "startingOffsets": "earliest",
                "connectTimeoutMs": "200",
            },
            is_stream=True,
        )
        reader = StreamReader(options, full_schema(options.crc))

        def offsets() -> Document:
            return reader.latestOffset(reader.initialOffset(), ReadAllAvailable())

        def are_both_registered() -> bool:
            try:
                return set(offsets()["web"]) == {"1-0", "2-0"}
            except TopicNotFoundError:
                return False

        wait_until(are_both_registered, "the registration of both partitions")
        start = offsets()
        killed.kill()
        publish(other, "web", numbered(150, 200))

        end = reader.latestOffset(start, ReadAllAvailable())

        assert end["web"]["2-0"] == start["web"]["2-0"]
        assert end["web"]["1-0"] == start["web"]["1-0"] + 50 * len(build_set([b"0000"]))
        reader.stop()
    finally:
        killed.kill()
