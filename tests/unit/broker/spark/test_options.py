from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import spark
from broker.errors import ConfigError, InvalidTopicError
from broker.protocol.compression import Codec
from broker.protocol.responses import BrokerAddress
from broker.spark.options import (
    EARLIEST,
    LATEST,
    Crc,
    ReadOptions,
    Where,
    parse_read_options,
    parse_write_options,
)
from broker.topic import TopicPartition

BROKERS = {"brokers": "localhost:9092"}
TOPIC = {"subscribe": "web"}
P0 = TopicPartition("web", 0, 0)


def read(**options: str) -> ReadOptions:
    return parse_read_options({**BROKERS, **TOPIC, **options}, is_stream=False)


def stream(**options: str) -> ReadOptions:
    return parse_read_options({**BROKERS, **TOPIC, **options}, is_stream=True)


def test_defaults_when_nothing_is_said_then_are_those_of_the_kafka_source() -> None:
    assert (read().starting.default, read().ending.default) == (EARLIEST, LATEST)
    assert stream().starting.default == LATEST
    assert read().fail_on_data_loss
    assert read().crc is Crc.FAIL


@pytest.mark.parametrize("name", ["brokers", "BROKERS", "kafka.bootstrap.servers"])
def test_brokers_when_named_in_any_case_or_as_for_kafka_then_are_found(name: str) -> None:
    options = parse_read_options({name: "h:1,7:i:2", **TOPIC}, is_stream=False)

    assert options.where == Where(brokers=(BrokerAddress(-1, "h", 1), BrokerAddress(7, "i", 2)))


def test_where_when_a_registry_or_paths_then_is_that() -> None:
    zk = parse_read_options({"zk": "z:2181/c", **TOPIC}, is_stream=False)
    path = parse_read_options({"path": "/data"}, is_stream=False)
    paths = parse_read_options({"paths": '["/a", "/b"]'}, is_stream=False)

    assert zk.where == Where(zookeeper="z:2181/c")
    assert path.where == Where(paths=(Path("/data"),))
    assert paths.where == Where(paths=(Path("/a"), Path("/b")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (TOPIC, "none of them is set"),
        ({**BROKERS, **TOPIC, "zk": "z:1"}, "these are set: brokers, zk"),
        ({**BROKERS}, "exactly one of subscribe"),
        ({**BROKERS, **TOPIC, "assign": "{}"}, "these are set: subscribe, assign"),
        ({"brokers": "host:port", **TOPIC}, "no broker address"),
        ({"zk": " ", **TOPIC}, "zk is empty"),
        ({**BROKERS, "subscribe": " , "}, "names no topic"),
        ({**BROKERS, "subscribePattern": "("}, "no regular expression"),
        ({**BROKERS, **TOPIC, "crc": "maybe"}, "valid: fail, mark, skip, off"),
        ({**BROKERS, **TOPIC, "failOnDataLoss": "no"}, "valid: true, false"),
        ({**BROKERS, **TOPIC, "minPartitions": "0"}, "whole numbers from 1"),
        ({**BROKERS, **TOPIC, "fetchSize": "0"}, "valid: bytes"),
        ({**BROKERS, **TOPIC, "fetchSize": "4x"}, "valid: bytes"),
        ({**BROKERS, **TOPIC, "startingOffsets": "latest"}, "cannot be latest"),
        ({**BROKERS, **TOPIC, "startingOffsets": '{"web":{"0-0":-1}}'}, "cannot be latest"),
        ({**BROKERS, **TOPIC, "endingOffsets": "earliest"}, "cannot be earliest"),
        ({**BROKERS, **TOPIC, "startingTimestamp": "yesterday"}, "milliseconds, .. since 1970"),
        ({**BROKERS, **TOPIC, "maxBytesPerTrigger": "1m"}, "it is for streams"),
    ],
)
def test_batch_options_when_wrong_then_say_why(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_read_options(options, is_stream=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "/data"}, "streams read from brokers"),
        ({**BROKERS, **TOPIC, "endingOffsets": '{"web":{"0-0":7}}'}, "a stream has no end"),
        ({**BROKERS, **TOPIC, "endingTimestamp": "1795161605"}, "a stream has no end"),
    ],
)
def test_stream_options_when_for_batches_then_say_so(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_read_options(options, is_stream=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("subscrib", "did you mean subscribe?"),
        ("maxOffsetsPerTrigger", "use maxBytesPerTrigger"),
        ("pushFilters", "use assign, startingOffsets and endingOffsets"),
        ("x", "valid: brokers"),
    ],
)
def test_option_when_unknown_then_helps(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown option '{name.lower()}'.*{message}"):
        read(**{name: "1"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("includeHeaders", "false"),
        ("fetchOffset.numRetries", "5"),
        ("fetchOffset.retryIntervalMs", "100"),
        ("kafkaConsumer.pollTimeoutMs", "512"),
    ],
)
def test_option_when_of_kafka_and_without_effect_then_is_taken_with_a_warning(
    name: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert read(**{name: value}) == read()

    (record,) = caplog.records
    assert f"the option {name} has no effect: " in record.getMessage()


def test_headers_when_asked_for_then_are_refused() -> None:
    with pytest.raises(ConfigError, match="'includeheaders': messages have no headers"):
        read(includeHeaders="true")


def test_topic_when_it_cannot_be_then_is_refused() -> None:
    with pytest.raises(InvalidTopicError):
        parse_read_options({**BROKERS, "subscribe": "a/b"}, is_stream=False)


def test_bound_when_several_are_set_then_time_comes_before_times_and_offsets() -> None:
    times = '{"web":{"0-0":1795161605000}}'
    both = read(startingOffsetsByTimestamp=times, startingOffsets="earliest").starting
    all_three = read(startingTimestamp="1795161605", startingOffsetsByTimestamp=times).starting

    assert (both.is_time, both.value(P0)) == (True, 1795161605000)
    assert (all_three.is_time, all_three.value(P0)) == (True, 1795161605000)


def test_bound_when_times_are_in_other_units_then_are_as_of_the_single_one() -> None:
    for text in ("1795161605", "1795161605000", "1795161605000000"):
        by_partition = read(startingOffsetsByTimestamp=f'{{"web":{{"0-0":{text}}}}}').starting
        assert by_partition.value(P0) == read(startingTimestamp=text).starting.value(P0)
    assert read(startingTimestamp="0").starting.value(P0) == 0


def test_bound_when_a_partition_is_missing_then_names_it() -> None:
    bound = read(startingOffsets='{"web":{"0-0":5}}').starting

    with pytest.raises(ConfigError, match=r"startingOffsets has nothing for web\[0-1\]"):
        bound.value(TopicPartition("web", 0, 1))


@pytest.mark.parametrize(
    ("text", "size"),
    [("7", 7), ("64k", 65536), ("2M", 2 << 20), ("1 GiB", 1 << 30), ("3mb", 3 << 20)],
)
def test_size_when_it_has_a_unit_then_is_binary(text: str, size: int) -> None:
    assert read(fetchSize=text).fetch_bytes == size


def test_selection_when_by_pattern_then_takes_whole_names() -> None:
    selection = parse_read_options(
        {**BROKERS, "subscribePattern": "we."}, is_stream=False
    ).selection

    assert selection.has_topic("web")
    assert not selection.has_topic("webs")


def test_selection_when_assigned_then_takes_those_partitions_only() -> None:
    selection = parse_read_options(
        {**BROKERS, "assign": '{"web":["0-0"]}'}, is_stream=False
    ).selection

    assert selection.has_partition(P0)
    assert not selection.has_partition(TopicPartition("web", 0, 1))


def test_selection_when_nothing_is_assigned_then_is_empty() -> None:
    selection = parse_read_options({**BROKERS, "assign": "{}"}, is_stream=False).selection

    assert not selection.has_partition(P0)
    assert not selection.has_topic("web")


def test_write_options_when_set_then_are_parsed() -> None:
    options = parse_write_options({**BROKERS, "topic": "web", "compression": "GZIP"})

    assert (options.topic, options.codec) == ("web", Codec.GZIP)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "/data"}, "through brokers"),
        ({**BROKERS, "compression": "zip"}, "compression is 'zip'"),
        ({**BROKERS, "subscribe": "web"}, "unknown option 'subscribe'"),
    ],
)
def test_write_options_when_wrong_then_say_why(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_write_options(options)


OFFSETS = '{"web":{"0-0":1795161605000}}'


@pytest.mark.parametrize(
    "options",
    [
        {**BROKERS, **TOPIC},
        {"brokers": "h:1,7:i:2", "subscribePattern": "we."},
        {"zk": "z:2181/c", "assign": '{"web":["0-0"]}', "startingOffsets": OFFSETS},
        {"paths": '["/a", "/b"]', "endingTimestamp": "1795161605", "crc": "mark"},
        {**BROKERS, **TOPIC, "startingOffsetsByTimestamp": OFFSETS, "failOnDataLoss": "false"},
        {**BROKERS, **TOPIC, "minPartitions": "3", "maxBytesPerPartition": "1k", "fetchSize": "2k"},
        {**BROKERS, **TOPIC, "reportPath": "/r", "timeoutMs": "1500"},
    ],
)
def test_read_options_when_written_and_parsed_then_are_the_same(options: dict[str, str]) -> None:
    parsed = parse_read_options(options)

    assert parse_read_options(parsed.to_options()) == parsed


def test_stream_options_when_written_and_parsed_then_are_the_same() -> None:
    parsed = stream(maxBytesPerTrigger="1m", startingOffsets=OFFSETS)

    assert parse_read_options(parsed.to_options(), is_stream=True) == parsed


def test_write_options_when_written_and_parsed_then_are_the_same() -> None:
    options = {**BROKERS, "topic": "web", "compression": "gzip", "stagingPath": "/s"}
    parsed = parse_write_options(options)

    assert parse_write_options(parsed.to_options()) == parsed


def test_read_when_between_offsets_then_has_those_partitions_only() -> None:
    exact = read().between({P0: 5}, {P0: 9})

    assert exact.selection.partitions == frozenset({P0})
    assert (exact.starting.value(P0), exact.ending.value(P0)) == (5, 9)
    assert parse_read_options(exact.to_options()) == exact


@pytest.mark.parametrize("parse", [parse_read_options, parse_write_options])
def test_options_when_they_are_taken_then_are_documented(
    parse: Callable[[dict[str, str]], object],
) -> None:
    with pytest.raises(ConfigError) as raised:
        parse({"x": "1"})
    names = str(raised.value).partition("; valid: ")[2].split(", ")
    known = [name for name in names if name not in ("paths", "checkpointLocation", "queryName")]
    text = spark.__doc__ or ""

    missing = [name for name in known if not re.search(rf"\b{re.escape(name)}\b", text)]
    assert [name for name in missing if not name.startswith("ending")] == []
