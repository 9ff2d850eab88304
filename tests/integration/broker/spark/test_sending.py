from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from broker.errors import BrokerUnreachableError, ConfigError, MessageSizeTooLargeError
from broker.server.broker import Broker
from broker.spark.options import parse_write_options
from broker.spark.writer import SentMessages, check_columns, send_rows
from tests.support.spark_rows import Row, read, values


def send(broker: Broker, *batches: dict[str, list[object]], **options: str) -> SentMessages:
    where = {"brokers": f"127.0.0.1:{broker.port}", **options}
    tables = [pa.RecordBatch.from_pydict(batch) for batch in batches]
    return send_rows(tables, parse_write_options(where))


def rows_in(broker: Broker, topic: str) -> list[Row]:
    return read(brokers=f"127.0.0.1:{broker.port}", subscribe=topic)


def numbered(first: int, last: int) -> list[object]:
    return [b"%04d" % number for number in range(first, last)]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_rows_when_sent_then_are_in_the_topic_in_order(
    running_broker: Broker, compression: str
) -> None:
    batches = [{"value": numbered(0, 500)}, {"value": numbered(500, 600)}]

    sent = send(running_broker, *batches, topic="events", compression=compression, batchSize="1000")

    assert values(rows_in(running_broker, "events")) == numbered(0, 600)
    assert sent == SentMessages(600, 2400)


def test_rows_when_they_are_text_then_are_sent_as_utf8(running_broker: Broker) -> None:
    send(running_broker, {"value": ["grün", ""]}, topic="events")

    assert values(rows_in(running_broker, "events")) == ["grün".encode(), b""]


def test_rows_when_each_names_a_topic_then_go_there(running_broker: Broker) -> None:
    send(running_broker, {"topic": ["a", "b", "a"], "value": ["1", "2", "3"]})

    assert values(rows_in(running_broker, "a")) == [b"1", b"3"]
    assert values(rows_in(running_broker, "b")) == [b"2"]


def test_rows_when_there_is_an_option_too_then_it_wins(running_broker: Broker) -> None:
    send(running_broker, {"topic": ["a", "b"], "value": ["1", "2"]}, topic="c")

    assert values(rows_in(running_broker, "c")) == [b"1", b"2"]


def test_rows_when_they_have_keys_then_one_key_stays_together_and_in_order(
    start_broker: Callable[..., Broker],
) -> None:
    broker = start_broker(num_partitions=4)
    send(broker, {"value": ["created"]}, topic="events")
    keys = [f"k{number % 10}" for number in range(200)]
    values_sent: list[object] = [f"{key}:{place}" for place, key in enumerate(keys)]

    send(broker, {"key": list[object](keys), "value": values_sent}, topic="events")

    by_key: dict[bytes, list[Row]] = {}
    for row in rows_in(broker, "events"):
        by_key.setdefault(row["value"].partition(b":")[0], []).append(row)
    assert all(len({row["partition"] for row in rows}) == 1 for rows in by_key.values())
    for rows in by_key.values():
        places = [int(row["value"].partition(b":")[2] or 0) for row in rows]
        assert places == sorted(places)
    assert len({row["partition"] for rows in by_key.values() for row in rows}) > 1


def test_rows_when_they_name_a_partition_then_go_there(start_broker: Callable[..., Broker]) -> None:
    broker = start_broker(num_partitions=2)
    send(broker, {"value": ["created"]}, topic="t0")

    send(broker, {"partition": ["0-1", "0-0"], "value": ["1", "0"]}, topic="t0")

    assert {(row["value"], row["partition"]) for row in rows_in(broker, "t0")} >= {
        (b"1", "0-1"),
        (b"0", "0-0"),
    }


@pytest.mark.parametrize("name", ["0-7", "seven"])
def test_rows_when_they_name_a_partition_that_is_not_there_then_fail(
    running_broker: Broker, name: str
) -> None:
    with pytest.raises(ConfigError, match=r"does not exist|is no partition"):
        send(running_broker, {"partition": [name], "value": ["1"]}, topic="events")


@pytest.mark.parametrize(
    ("batch", "missing"),
    [({"value": [None, "x"]}, "value"), ({"topic": ["a", None], "value": ["1", "2"]}, "topic")],
)
def test_rows_when_something_is_null_then_fail(
    running_broker: Broker, batch: dict[str, list[object]], missing: str
) -> None:
    with pytest.raises(ConfigError, match=f"1 rows have no {missing}"):
        send(running_broker, batch, **({"topic": "events"} if missing == "value" else {}))


def test_row_when_too_large_then_fails(running_broker: Broker) -> None:
    with pytest.raises(MessageSizeTooLargeError, match="a message has 2000000 bytes"):
        send(running_broker, {"value": [bytes(2_000_000)]}, topic="events")


def test_rows_when_one_is_above_the_brokers_limit_then_none_behind_it_is_sent(
    start_broker: Callable[..., Broker],
) -> None:
    broker = start_broker(max_message_bytes=100)
    rows = [*numbered(0, 100), bytes(101), *numbered(100, 5000)]
    with pytest.raises(MessageSizeTooLargeError, match="a message of 101 bytes"):
        send(broker, {"value": rows}, topic="events", batchSize="400")

    assert values(rows_in(broker, "events")) == numbered(0, 100)


def test_rows_when_the_broker_is_gone_then_fail(start_broker: Callable[..., Broker]) -> None:
    broker = start_broker()
    broker.stop()

    with pytest.raises(BrokerUnreachableError, match="cannot reach"):
        send(broker, {"value": ["1"]}, topic="events", connectTimeoutMs="100", retries="0")


def test_rows_when_there_are_none_then_nothing_is_sent(running_broker: Broker) -> None:
    assert send(running_broker, {"value": []}, topic="events") == SentMessages(0, 0)


@pytest.mark.parametrize(
    ("columns", "topic", "message"),
    [
        ({"key": StringType()}, "t", "rows to send have a column 'value'"),
        ({"value": IntegerType()}, "t", "column 'value' is int; cast it to string or binary"),
        ({"value": StringType(), "when": StringType()}, "t", "column 'when' cannot be sent"),
        ({"value": StringType()}, None, "no topic: set the option topic"),
    ],
)
def test_columns_when_they_cannot_be_sent_then_are_refused(
    columns: dict[str, StringType | IntegerType], topic: str | None, message: str
) -> None:
    options = parse_write_options({"brokers": "h:1"} | ({"topic": topic} if topic else {}))
    schema = StructType([StructField(name, kind) for name, kind in columns.items()])

    with pytest.raises(ConfigError, match=message):
        check_columns(options, schema)
