"""One Spark session for all tests that ask for it, and logs to read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.errors import ConfigError
from broker.producer.producer import Producer
from broker.protocol.message_set import build_set
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.spark.runtime.requirements import MINIMUM_VERSION
from broker.spark.session import SessionSettings, open_session
from broker.topic import TopicPartition
from broker.zk.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).parents[2]
FEW_ROWS = {
    "spark.sql.shuffle.partitions": "2",
    # to compile a query takes longer than to interpret it for so few rows
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
SETTINGS = SessionSettings(
    master="local[2,4]",
    java_options="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    conf=FEW_ROWS,
)
SHORT_LIVED_JVM = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Environment of programs whose JVMs end before more of the compiler pays; Java notes it."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores that tries tasks four times."""
    try:
        find_java(minimum_version=MINIMUM_VERSION)
    except ConfigError as error:
        pytest.skip(str(error))
    settings = replace(SETTINGS, log_path=tmp_path_factory.mktemp("spark") / "spark.log")
    path = os.environ.get("PYTHONPATH")
    # workers import the library and the tests' own data sources
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(REPOSITORY), path)))
    with open_session(settings) as session:
        yield session
    if path is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = path


def publish(
    broker: Broker, topic: str, payloads: Sequence[bytes], index: int = 0, batch: int = 100
) -> None:
    """Have messages in one partition of a broker, readable."""
    partition = TopicPartition(topic, broker.config.broker_id, index)
    publish_to(broker.port, partition, payloads, batch)


def publish_to(
    port: int,
    partition: TopicPartition,
    payloads: Sequence[bytes],
    batch: int = 100,
    connect: Connect = Connection,
) -> None:
    """Have messages in a partition of the broker on a port, readable."""
    address = BrokerAddress(-1, "127.0.0.1", port)
    cluster = StaticCluster([address], connect)
    with Producer(cluster, connect) as producer:
        for at in range(0, len(payloads), batch):
            message_set = build_set(payloads[at : at + batch])
            producer.send_set(partition, message_set)
        producer.wait_until_readable()
    cluster.close()
