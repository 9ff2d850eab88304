"""Brokers that know 0.7's requests only: no look-up of boundaries, no acknowledgement."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxBytes

from broker.errors import ConfigError, DataLossError
from broker.protocol.message_set import build_set
from broker.server.broker import Broker
from broker.spark.options import parse_read_options, parse_write_options
from broker.spark.reading.stream_reader import StreamReader
from broker.spark.schema import full_schema
from broker.spark.writer import send_rows
from tests.integration.broker.conftest import start_server as start_server
from tests.integration.broker.factories import BrokerFactory, ServerFactory
from tests.integration.broker.peers import as_true_07_broker
from tests.support.spark_rows import plan, read, run, values
from tests.support.spark_session import publish

SIZE = len(build_set([b"0000"]))


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%04d" % number for number in range(first, last)]


@pytest.fixture
def broker(start_broker: BrokerFactory) -> Broker:
    """A broker with 300 messages in segments of 100, of which retention would keep 100."""
    broker = start_broker(segment_bytes=50 * SIZE, retention_bytes=100 * SIZE)
    for first in (0, 100, 200):
        publish(broker, "events", numbered(first, first + 100))
    return broker


@pytest.fixture
def old(broker: Broker, start_server: ServerFactory) -> dict[str, str]:
    """Options to read that broker as if it were one of 0.7."""
    server = start_server(as_true_07_broker(broker.port))
    return {"brokers": f"0:127.0.0.1:{server.port}", "subscribe": "events"}


@pytest.fixture
def stream(old: dict[str, str]) -> Iterator[StreamReader]:
    options = parse_read_options({**old, "startingOffsets": "earliest"}, is_stream=True)
    reader = StreamReader(options, full_schema(options.crc))
    yield reader
    reader.stop()


def test_topic_when_read_then_is_cut_at_segments_and_whole(old: dict[str, str]) -> None:
    options = old | {"maxBytesPerPartition": "1500", "fetchSize": "333"}

    made = plan(options)

    assert [task.range.start for task in made.tasks] == [0, 100 * SIZE, 200 * SIZE]
    assert values(run(made, options)) == numbered(0, 300)


def test_offset_when_inside_a_message_then_its_neighbours_are_named(old: dict[str, str]) -> None:
    offsets = f'{{"events":{{"0-0":{150 * SIZE + 1}}}}}'

    with pytest.raises(ConfigError, match=f"start at {150 * SIZE} and {151 * SIZE}"):
        read(**old, startingOffsets=offsets)


def test_task_when_retention_overtakes_it_then_fails_naming_the_log_start(
    old: dict[str, str], broker: Broker
) -> None:
    made = plan(old)
    broker.logs.retention.apply()

    with pytest.raises(DataLossError, match=f"the log starts at {200 * SIZE}"):
        run(made, old)


def test_stream_when_limited_then_batches_end_on_messages(stream: StreamReader) -> None:
    start = stream.initialOffset()
    ends = [start]
    while (end := stream.latestOffset(ends[-1], ReadMaxBytes(70 * SIZE + 3))) != ends[-1]:
        ends.append(end)

    assert [end["events"]["0-0"] // SIZE for end in ends] == [0, 70, 140, 210, 280, 300]
    batches = [
        batch
        for one, other in pairwise(ends)
        for partition in stream.partitions(one, other)
        for batch in stream.read(partition)
    ]
    assert pa.Table.from_batches(batches)["value"].to_pylist() == numbered(0, 300)


def test_rows_when_sent_then_can_be_read_when_the_task_is_done(
    old: dict[str, str], broker: Broker
) -> None:
    rows = pa.RecordBatch.from_pydict({"value": numbered(0, 100)})

    send_rows([rows], parse_write_options({"brokers": old["brokers"], "topic": "copies"}))

    found = read(brokers=f"127.0.0.1:{broker.port}", subscribe="copies")
    assert values(found) == numbered(0, 100)
