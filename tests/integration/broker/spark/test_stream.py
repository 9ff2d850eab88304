"""The stream's reader as Spark calls it, without Spark."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes

from broker.errors import (
    BrokerUnreachableError,
    ConfigError,
    DataLossError,
    OffsetNotAvailableError,
    TopicNotFoundError,
)
from broker.protocol.message_set import build_set
from broker.server.broker import Broker
from broker.spark.options import parse_read_options
from broker.spark.reading.stream_reader import Document, StreamReader
from broker.spark.schema import full_schema
from tests.support.recreation import await_creation, create_again
from tests.support.spark_session import publish
from tests.support.waiting import wait_until

SIZE = len(build_set([b"0000"]))
Open = Callable[..., StreamReader]


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%04d" % number for number in range(first, last)]


def at(messages: int) -> Document:
    return {"events": {"0-0": messages * SIZE}}


def bare(document: Document) -> Document:
    """The offsets of a document, without the creations of topics."""
    return {name: found for name, found in document.items() if name != "/creations"}


@pytest.fixture
def open_stream() -> Iterator[Open]:
    """Make stream readers; stopped at the end."""
    readers: list[StreamReader] = []

    def make(broker: Broker, **options: str) -> StreamReader:
        given = {"startingOffsets": "earliest", **options}
        if "zk" not in given:
            given["brokers"] = f"127.0.0.1:{broker.port}"
        if not {"assign", "subscribe", "subscribePattern"} & given.keys():
            given["subscribe"] = "events"
        parsed = parse_read_options(given, is_stream=True)
        reader = StreamReader(parsed, full_schema(parsed.crc))
        readers.append(reader)
        return reader

    yield make
    for reader in readers:
        reader.stop()


def payloads(reader: StreamReader, start: Document, end: Document) -> list[bytes]:
    """Read a batch the way executors do: with a copy of the reader."""
    copy: StreamReader = pickle.loads(pickle.dumps(reader))
    batches = [batch for one in reader.partitions(start, end) for batch in copy.read(one)]
    return [
        value
        for batch in batches
        for value in pa.table([batch.column("value")], ["v"])["v"].to_pylist()
    ]


def flat(batches: list[list[bytes]]) -> list[bytes]:
    return list(chain.from_iterable(batches))


def run_all(
    reader: StreamReader, start: Document, limit: ReadLimit
) -> tuple[list[list[bytes]], Document]:
    """Run batches until there is nothing new; returns their payloads and the end."""
    found = []
    while (end := reader.latestOffset(start, limit)) != start:
        found.append(payloads(reader, start, end))
        start = end
    return found, start


def test_stream_when_there_are_messages_then_batches_follow_each_other(
    running_broker: Broker, open_stream: Open
) -> None:
    publish(running_broker, "events", numbered(0, 100))
    reader = open_stream(running_broker)

    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadAllAvailable())
    publish(running_broker, "events", numbered(100, 150))
    second = reader.latestOffset(first, ReadAllAvailable())

    assert [bare(one) for one in (start, first, second)] == [at(0), at(100), at(150)]
    assert payloads(reader, start, first) == numbered(0, 100)
    assert payloads(reader, first, second) == numbered(100, 150)
    assert payloads(reader, start, first) == numbered(0, 100)
    assert reader.reportLatestOffset() == at(150)


def test_stream_when_not_told_where_to_start_then_starts_at_the_end(
    running_broker: Broker, open_stream: Open
) -> None:
    publish(running_broker, "events", numbered(0, 100))

    start = open_stream(running_broker, startingOffsets="latest").initialOffset()

    assert bare(start) == at(100)


def test_limit_when_set_then_batches_keep_to_it_and_end_on_messages(
    running_broker: Broker, open_stream: Open
) -> None:
    publish(running_broker, "events", numbered(0, 100))
    reader = open_stream(running_broker, maxBytesPerTrigger=str(30 * SIZE + 5))
    limit = reader.getDefaultReadLimit()

    batches, end = run_all(reader, reader.initialOffset(), limit)

    assert limit == ReadMaxBytes(30 * SIZE + 5)
    assert [len(batch) for batch in batches] == [30, 30, 30, 10]
    assert flat(batches) == numbered(0, 100)
    assert bare(end) == at(100)


def test_limit_when_smaller_than_a_message_then_that_message_comes(
    running_broker: Broker, open_stream: Open
) -> None:
    publish(running_broker, "events", numbered(0, 3))
    reader = open_stream(running_broker)

    batches, _ = run_all(reader, at(0), ReadMaxBytes(1))

    assert [len(batch) for batch in batches] == [1, 1, 1]


def test_limit_when_all_is_asked_for_then_does_not_hold(
    running_broker: Broker, open_stream: Open
) -> None:
    publish(running_broker, "events", numbered(0, 100))
    reader = open_stream(running_broker, maxBytesPerTrigger="100")

    assert bare(reader.latestOffset(at(0), ReadAllAvailable())) == at(100)


def test_available_now_when_more_is_written_then_ends_where_the_log_was(
    running_broker: Broker, open_stream: Open
) -> None:
    publish(running_broker, "events", numbered(0, 100))
    reader = open_stream(running_broker)
    reader.prepareForTriggerAvailableNow()
    publish(running_broker, "events", numbered(100, 200))

    batches, end = run_all(reader, reader.initialOffset(), ReadMaxBytes(70 * SIZE))

    assert flat(batches) == numbered(0, 100)
    assert bare(end) == at(100)


def test_available_now_when_the_checkpoint_is_further_then_stays_there(
    running_broker: Broker, open_stream: Open
) -> None:
    publish(running_broker, "events", numbered(0, 100))
    reader = open_stream(running_broker)
    reader.prepareForTriggerAvailableNow()
    publish(running_broker, "events", numbered(100, 200))

    assert bare(reader.latestOffset(at(150), ReadAllAvailable())) == at(150)


def test_available_now_when_a_broker_comes_back_meanwhile_then_its_offsets_are_kept(
    running_broker: Broker, open_stream: Open
) -> None:
    publish(running_broker, "events", numbered(0, 10))
    reader = open_stream(running_broker, subscribePattern="e.*")
    reader.prepareForTriggerAvailableNow()
    publish(running_broker, "errors", numbered(0, 7))
    start = {"errors": {"0-0": 5 * SIZE}, **at(0)}

    end = reader.latestOffset(start, ReadAllAvailable())

    assert bare(end) == {"errors": {"0-0": 5 * SIZE}, **at(10)}
    assert payloads(reader, start, end) == numbered(0, 10)


def test_topic_when_it_appears_later_then_is_read_from_its_start(
    start_broker: Callable[..., Broker], open_stream: Open
) -> None:
    broker = start_broker(num_partitions=2)
    publish(broker, "events", numbered(0, 10))
    reader = open_stream(broker, subscribePattern="e.*")
    start = {"events": {"0-0": 10 * SIZE, "0-1": 0}}
    publish(broker, "errors", numbered(0, 7), index=1)

    noted = reader.latestOffset(start, ReadAllAvailable())
    end = reader.latestOffset(noted, ReadAllAvailable())

    assert bare(noted) == {"errors": {"0-0": 0, "0-1": 0}, **start}
    assert payloads(reader, start, noted) == []
    assert payloads(reader, noted, end) == numbered(0, 7)


def test_topic_when_unknown_at_the_start_then_says_so(
    running_broker: Broker, open_stream: Open
) -> None:
    with pytest.raises(TopicNotFoundError, match="topic 'events' not found"):
        open_stream(running_broker).initialOffset()


@pytest.fixture
def short_log(start_broker: Callable[..., Broker]) -> Broker:
    """A broker with 300 messages in segments of 100, of which retention keeps the last 100."""
    broker = start_broker(segment_bytes=100 * SIZE, retention_bytes=100 * SIZE)
    for first in (0, 100, 200):  # one after the other: what comes at once is appended at once
        publish(broker, "events", numbered(first, first + 100))
    return broker


def test_retention_when_it_passed_the_checkpoint_then_the_batch_fails(
    short_log: Broker, open_stream: Open
) -> None:
    short_log.logs.retention.apply()
    reader = open_stream(short_log)
    end = reader.latestOffset(at(50), ReadAllAvailable())

    with pytest.raises(
        DataLossError,
        match=rf"events\[0-0\]: offset {50 * SIZE} was asked for, .* starts at {200 * SIZE}",
    ):
        reader.partitions(at(50), end)


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxBytes(30 * SIZE)])
def test_retention_when_it_passed_and_that_is_borne_then_the_rest_comes_and_it_is_told(
    short_log: Broker, open_stream: Open, tmp_path: Path, limit: ReadLimit
) -> None:
    short_log.logs.retention.apply()
    report = tmp_path / "report"
    reader = open_stream(short_log, failOnDataLoss="false", reportPath=str(report))

    batches, end = run_all(reader, at(50), limit)

    assert flat(batches) == numbered(200, 300)
    assert bare(end) == at(300)
    (event,) = [json.loads(file.read_text()) for file in report.glob("*.json")]
    assert (event["start"], event["end"]) == (50 * SIZE, 200 * SIZE)


def test_log_when_shorter_than_the_checkpoint_then_fails(
    running_broker: Broker, open_stream: Open
) -> None:
    publish(running_broker, "events", numbered(0, 10))

    with pytest.raises(DataLossError, match=rf"offset {50 * SIZE} was reached, and the log ends"):
        open_stream(running_broker).latestOffset(at(50), ReadAllAvailable())


def test_log_when_shorter_and_that_is_borne_then_is_read_from_its_start(
    running_broker: Broker, open_stream: Open
) -> None:
    publish(running_broker, "events", numbered(0, 10))
    reader = open_stream(running_broker, failOnDataLoss="false")

    batches, end = run_all(reader, at(50), ReadAllAvailable())

    assert (flat(batches), bare(end)) == (numbered(0, 10), at(10))


@pytest.mark.parametrize("where", [pytest.param("zk", marks=pytest.mark.zookeeper), "brokers"])
def test_topic_when_created_again_then_offsets_of_the_former_one_are_not_used(
    start_broker: Callable[..., Broker],
    request: pytest.FixtureRequest,
    where: str,
    open_stream: Open,
) -> None:
    zookeeper = request.getfixturevalue("zookeeper") if where == "zk" else ""
    session = request.getfixturevalue("session") if where == "zk" else None
    broker = start_broker(zookeeper=zookeeper)
    place = {"zk": zookeeper} if zookeeper else {}
    publish(broker, "events", numbered(0, 10))
    former = await_creation(session, "events")
    strict = open_stream(broker, **place)
    start = strict.initialOffset()
    reached = strict.latestOffset(start, ReadAllAvailable())
    assert payloads(strict, start, reached) == numbered(0, 10)

    create_again(broker, "events", numbered(100, 130))
    await_creation(session, "events", other_than=former)

    with pytest.raises(DataLossError, match=f"{10 * SIZE} was reached, and the topic was deleted"):
        strict.latestOffset(reached, ReadAllAvailable())
    with pytest.raises(DataLossError, match="are of a former topic"):
        strict.partitions(start, reached)
    bearing = open_stream(broker, failOnDataLoss="false", **place)
    batches, end = run_all(bearing, reached, ReadAllAvailable())
    assert flat(batches) == numbered(100, 130)
    assert bearing.latestOffset(end, ReadAllAvailable()) == end


@pytest.mark.parametrize("bears_loss", ["true", "false"])
def test_leader_when_behind_what_was_reached_then_the_stream_waits_and_nothing_comes_twice(
    running_broker: Broker, open_stream: Open, caplog: pytest.LogCaptureFixture, bears_loss: str
) -> None:
    """As a new leader that does not know yet what is committed."""
    publish(running_broker, "events", numbered(0, 10))
    reader = open_stream(running_broker, failOnDataLoss=bears_loss)
    start = {**reader.initialOffset(), **at(50)}

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(reader.latestOffset, start, ReadAllAvailable())
        wait_until(lambda: "asking again" in caplog.text, "the wait for the leader")
        publish(running_broker, "events", numbered(10, 60))
        end = asked.result()

    assert bare(end) == at(60)
    assert payloads(reader, start, end) == numbered(50, 60)
    assert caplog.text.count("asking again") == 1


@pytest.mark.parametrize("bears_loss", ["true", "false"])
def test_leader_when_it_stays_behind_then_the_stream_fails_by_name(
    running_broker: Broker, open_stream: Open, bears_loss: str
) -> None:
    publish(running_broker, "events", numbered(0, 10))
    reader = open_stream(running_broker, failOnDataLoss=bears_loss, timeoutMs="500")
    start = reader.initialOffset()
    behind = rf"events\[0-0\]: offset {50 * SIZE} was reached, .* high watermark of {10 * SIZE} "

    with pytest.raises(OffsetNotAvailableError, match=behind):
        reader.latestOffset({**start, **at(50)}, ReadAllAvailable())
    with pytest.raises(OffsetNotAvailableError, match=behind):  # planned, and not clipped
        reader.partitions(start, {**start, **at(50)})


def test_available_now_when_the_leader_falls_behind_then_all_that_was_there_comes(
    start_broker: Callable[..., Broker],
    open_stream: Open,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = start_broker()
    publish(first, "events", numbered(0, 10))
    first.stop()
    shutil.copytree(tmp_path / "data", tmp_path / "behind")
    ahead = start_broker(port=first.port)
    publish(ahead, "events", numbered(10, 50))
    reader = open_stream(ahead)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    ahead.stop()
    behind = start_broker(port=first.port, data_dir=tmp_path / "behind")

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_all, reader, start, ReadAllAvailable())
        wait_until(lambda: "has a high watermark of" in caplog.text, "the wait for the leader")
        publish(behind, "events", numbered(10, 50))
        batches, _ = running.result()

    assert flat(batches) == numbered(0, 50)


@pytest.mark.parametrize(
    ("selected", "named"),
    [
        ({"subscribe": "others"}, "subscribe=others"),
        ({"subscribePattern": "oth.*"}, "subscribePattern=oth.*"),
        ({"assign": '{"others": ["0-0"]}'}, 'assign={"others":["0-0"]}'),
    ],
)
@pytest.mark.parametrize("failing", ["true", "false"])
def test_checkpoint_when_of_another_topic_then_is_refused_by_name(
    running_broker: Broker,
    open_stream: Open,
    selected: dict[str, str],
    named: str,
    failing: str,
) -> None:
    for topic in ("events", "others"):
        publish(running_broker, topic, numbered(0, 5))
    former = open_stream(running_broker)
    begun = former.initialOffset()
    ended = former.latestOffset(begun, ReadAllAvailable())
    reader = open_stream(running_broker, failOnDataLoss=failing, **selected)

    for run in (
        lambda: reader.latestOffset(ended, ReadAllAvailable()),
        lambda: reader.partitions(begun, ended),
    ):
        with pytest.raises(ConfigError) as caught:
            run()
        assert "the checkpoint has offsets of topic 'events'" in str(caught.value)
        assert named in str(caught.value)
        assert "another checkpointLocation" in str(caught.value)


def test_partition_when_its_broker_no_longer_has_it_then_fails(
    running_broker: Broker, open_stream: Open
) -> None:
    publish(running_broker, "events", numbered(0, 10))
    start = {"events": {"0-0": 0}, "gone": {"0-0": 7}}

    with pytest.raises(DataLossError, match=r"gone\[0-0\]: offset 7 .* no longer has"):
        open_stream(running_broker, subscribePattern="events|gone").latestOffset(
            start, ReadAllAvailable()
        )


def test_partition_when_its_broker_is_away_then_waits(
    running_broker: Broker, open_stream: Open, caplog: pytest.LogCaptureFixture
) -> None:
    publish(running_broker, "events", numbered(0, 10))
    reader = open_stream(running_broker)
    start = {"events": {"0-0": 0, "9-0": 7}}

    end = reader.latestOffset(start, ReadAllAvailable())
    again = reader.latestOffset(end, ReadAllAvailable())

    assert end == again
    assert bare(end) == {"events": {"0-0": 10 * SIZE, "9-0": 7}}
    assert payloads(reader, start, end) == numbered(0, 10)
    assert caplog.text.count("events[9-0] waits for a broker that leads it") == 1


def test_broker_when_restarted_between_batches_then_the_stream_goes_on(
    start_broker: Callable[..., Broker], open_stream: Open
) -> None:
    broker = start_broker()
    publish(broker, "events", numbered(0, 10))
    reader = open_stream(broker)
    assert bare(reader.latestOffset(at(0), ReadAllAvailable())) == at(10)
    port = broker.port
    broker.stop()
    start_broker(port=port)

    assert bare(reader.latestOffset(at(0), ReadAllAvailable())) == at(10)
    assert payloads(reader, at(0), at(10)) == numbered(0, 10)


def test_broker_when_gone_then_the_stream_says_so(
    start_broker: Callable[..., Broker], open_stream: Open
) -> None:
    broker = start_broker()
    publish(broker, "events", numbered(0, 10))
    reader = open_stream(broker, connectTimeoutMs="100", timeoutMs="5000")
    broker.stop()

    with pytest.raises(BrokerUnreachableError, match="cannot reach"):
        reader.latestOffset(at(0), ReadAllAvailable())
