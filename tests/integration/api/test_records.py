"""Topics of format `kafka` in the Python API: what is stored of a message comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import pylogctl
from broker.errors import ArgumentError
from pylogctl.testing import Broker, ephemeral_cluster

SENT_AT = datetime(2026, 11, 20, 8, tzinfo=UTC)
HEADERS: list[tuple[str, str | bytes | None]] = [
    ("trace", "a1"),
    ("trace", b"\xff"),
    ("none", None),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"log.format": "kafka", "num.partitions": "2"}) as found:
        yield found


@pytest.fixture
def client(broker: Broker) -> Iterator[pylogctl.Client]:
    with broker.connect() as found:
        yield found


@pytest.fixture(scope="module")
def timed_topic(broker: Broker) -> str:
    """A topic with ten records, a second apart."""
    with broker.connect() as client:
        for one in range(10):
            client.send("timed", b"v", partition=0, timestamp=SENT_AT + timedelta(seconds=one))
    return "timed"


def test_send_when_it_has_key_headers_and_timestamp_then_they_come_back(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    receipt = client.send(
        pylog_topic, "paid", key="customer-7", headers=HEADERS, timestamp=SENT_AT, partition=1
    )
    assert (receipt.partition.name, receipt.offset, receipt.next_offset) == ("1", 0, 1)
    (found,) = client.read(pylog_topic, partition=1)
    assert (found.value, found.key, found.timestamp) == (b"paid", b"customer-7", SENT_AT)
    assert found.headers == (("trace", b"a1"), ("trace", b"\xff"), ("none", None))
    assert (found.offset, found.next_offset, found.inner, found.envelope) == (0, 1, 0, None)


def test_send_when_nothing_else_is_given_then_the_time_is_now_and_the_key_chooses(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    receipts = [client.send(pylog_topic, b"%d" % one, key="k") for one in range(3)]
    assert len({one.partition for one in receipts}) == 1
    assert [one.offset for one in receipts] == [0, 1, 2]
    found = list(client.read(pylog_topic))
    assert [(one.value, one.key, one.headers) for one in found] == [
        (b"%d" % one, b"k", ()) for one in range(3)
    ]
    assert all(
        one.timestamp is not None and before <= one.timestamp <= datetime.now(UTC) for one in found
    )


def test_send_when_there_is_no_value_then_it_is_not_the_same_as_an_empty_one(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    client.send(pylog_topic, None, key="k", partition=0)
    client.send(pylog_topic, b"", partition=0)
    found = list(client.read(pylog_topic))
    assert [one.value for one in found] == [b"", b""]
    assert [one.record.value for one in found if one.record is not None] == [None, b""]


def test_send_when_the_topic_is_of_format_07_then_what_it_cannot_store_is_refused(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    client.create_topic(pylog_topic, format="0.7")
    for value, options in [("x", {"headers": {}}), ("x", {"timestamp": 1}), (None, {})]:
        with pytest.raises(ArgumentError, match=f"'{pylog_topic}' is of format 0.7"):
            client.send(pylog_topic, value, **options)  # type: ignore[arg-type]  # as named
    client.send(pylog_topic, "x", key="k")
    (found,) = client.read(pylog_topic)
    assert (found.value, found.key, found.record) == (b"x", None, None)


@pytest.mark.parametrize(
    ("headers", "timestamp"),
    [({"a": 1}, None), ([("a", b"", b"")], None), ({b"a": b""}, None), (None, "now"), (None, True)],
)
def test_send_when_headers_or_timestamp_are_of_another_type_then_it_is_a_type_error(
    client: pylogctl.Client, pylog_topic: str, headers: object, timestamp: object
) -> None:
    with pytest.raises(TypeError):
        client.send(pylog_topic, "x", headers=headers, timestamp=timestamp)  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_producer_when_batches_are_compressed_then_offsets_count_their_records(
    client: pylogctl.Client, pylog_topic: str, codec: pylogctl.Codec
) -> None:
    with client.producer(linger=0.02, codec=codec) as producer:
        sent = [producer.send(pylog_topic, "x" * 100, partition=0) for _ in range(500)]
        sent.append(producer.send_many(pylog_topic, ["y"] * 10, key="k", partition=0))
    assert [one.result().offset for one in sent] == list(range(501))
    assert sent[-1].result().next_offset == 510
    found = list(client.read(pylog_topic))
    assert [one.offset for one in found] == list(range(510))
    assert {one.key for one in found[500:]} == {b"k"}


def test_producer_when_messages_together_are_above_the_limit_then_batches_are_below_it(
    pylog_topic: str,
) -> None:
    settings = {"log.format": "kafka", "max.message.size": "2000"}
    with Broker(settings) as broker, broker.connect() as client:
        with client.producer(linger=0.05) as producer:
            sent = [producer.send(pylog_topic, bytes(700)) for _ in range(20)]
            with pytest.raises(pylogctl.TooLarge):
                producer.send(pylog_topic, bytes(1990)).result()
        assert [one.result().offset for one in sent] == list(range(20))
        assert len(list(client.read(pylog_topic))) == 20


def test_send_when_a_record_is_above_every_limit_then_nothing_is_queued(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    with pytest.raises(pylogctl.TooLarge, match="with its key and headers"):
        client.send(pylog_topic, bytes(600_000), headers={"h": bytes(400_000)})


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        ("earliest", "end", range(10)),
        (4, 7, range(4, 7)),
        ("-3", "end", range(7, 10)),
        ("+8", "end", range(8, 10)),
        (SENT_AT + timedelta(seconds=5), "end", range(5, 10)),
        ("earliest", SENT_AT + timedelta(seconds=2.5), range(3)),
        (SENT_AT + timedelta(days=1), "end", ()),
        ("latest", "end", ()),
    ],
)
def test_read_when_a_place_is_given_then_records_count(
    client: pylogctl.Client, timed_topic: str, start: object, stop: object, expected: range
) -> None:
    found = client.read(timed_topic, partition=0, start=start, stop=stop)  # type: ignore[arg-type]
    assert [one.offset for one in found] == list(expected)


def test_read_when_an_offset_is_behind_the_log_then_it_is_out_of_range(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    client.send(pylog_topic, "x", partition=0)
    with pytest.raises(pylogctl.OffsetOutOfRange):
        client.read(pylog_topic, partition=0, start=2)


def test_reader_when_it_seeks_inside_a_batch_then_goes_on_there(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    with client.producer(linger=0.05) as producer:
        producer.send_many(pylog_topic, [b"%d" % one for one in range(100)], partition=0)
    with client.read(pylog_topic, partition=0) as reader:
        assert next(reader).offset == 0
        reader.seek(0, 42)
        assert [one.value for one in reader] == [b"%d" % one for one in range(42, 100)]


def test_read_when_there_is_a_filter_then_only_values_that_match(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    client.send_many(pylog_topic, ["red", "blue", "reddish"], partition=0)
    found = client.read(pylog_topic, filter="^red")
    assert [one.value for one in found] == [b"red", b"reddish"]


def test_batches_when_they_are_read_then_have_their_records_alone(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    with client.producer(linger=0.05) as producer:
        producer.send_many(pylog_topic, [b"%d" % one for one in range(100)], partition=0)
    batches = list(client.read_batches(pylog_topic, partition=0, start=10, stop=90))
    assert [one.value for batch in batches for one in batch.messages()] == [
        b"%d" % one for one in range(10, 90)
    ]
    assert (batches[0].start, batches[-1].end) == (10, 100)


def test_send_when_it_is_of_a_client_for_asyncio_then_the_same_comes_back(
    broker: Broker, pylog_topic: str
) -> None:
    async def run() -> None:
        async with await pylogctl.aconnect(broker.address) as client:
            receipt = await client.send(
                pylog_topic, "paid", key="k", headers=HEADERS, timestamp=SENT_AT, partition=0
            )
            assert receipt.offset == 0
            async with client.producer(codec="zstd", linger=0.02) as producer:
                sent = [
                    await producer.send(pylog_topic, b"%d" % one, key="k", partition=0)
                    for one in range(100)
                ]
            assert [(await one).offset for one in sent] == list(range(1, 101))
            found = [one async for one in client.read(pylog_topic, partition=0)]
            first = found[0]
            assert (first.key, first.timestamp) == (b"k", SENT_AT)
            assert first.headers == (("trace", b"a1"), ("trace", b"\xff"), ("none", None))
            assert [one.offset for one in found] == list(range(101))
            with pytest.raises(pylogctl.TooLarge):
                await client.send(pylog_topic, bytes(2_000_000), headers={})

    asyncio.run(run())


def test_send_when_a_broker_restarts_meanwhile_then_nothing_is_stored_twice() -> None:
    with Broker({"log.format": "kafka"}) as broker, broker.connect(timeout=60) as client:
        with client.producer() as producer:
            sent = []
            for one in range(300):
                sent.append(producer.send("orders", b"%d" % one))
                if one % 100 == 50:
                    broker.kill()
                    broker.restart()
        assert [one.result().offset for one in sent] == list(range(300))
        assert [int(one.value) for one in client.read("orders")] == list(range(300))


@pytest.mark.zookeeper
@pytest.mark.parametrize("commit", ["after", "before", "manual"])
def test_group_when_it_comes_back_then_goes_on_at_the_record_behind(commit: str) -> None:
    with ephemeral_cluster(1) as cluster, cluster.connect() as client:
        client.create_topic("orders", partitions=2, format="kafka")
        with client.producer(linger=0.02) as producer:
            for one in range(100):
                producer.send("orders", b"%d" % one, key=b"%d" % one, headers={"n": b"%d" % one})
        seen: list[int] = []
        for _ in range(2):
            with client.group(
                "readers",
                "orders",
                start="earliest",
                idle=30,
                commit=commit,  # type: ignore[arg-type]  # one of the words
            ) as group:
                for message in group:
                    assert message.key == message.value
                    assert message.headers == (("n", message.value),)
                    seen.append(int(message.value))
                    if len(seen) in (30, 100):
                        break
                if commit == "manual":
                    group.commit(message)
        # with the last one of the first member in hand, it was not handled
        assert sorted(set(seen)) == list(range(100)) if commit != "after" else len(set(seen)) >= 99


@pytest.mark.zookeeper
def test_group_run_when_messages_are_records_then_each_is_handled_with_its_key() -> None:
    with ephemeral_cluster(1) as cluster, cluster.connect() as client:
        client.create_topic("orders", partitions=3, format="kafka")
        for one in range(50):
            client.send("orders", b"%d" % one, key=b"%d" % one)
        found: list[pylogctl.Message] = []
        with client.group("readers", "orders", start="earliest", idle=2) as group:
            group.run(found.append, parallel=2)
        assert sorted(int(one.key or b"-1") for one in found) == list(range(50))


@pytest.mark.zookeeper
def test_producers_when_leaders_are_killed_then_each_message_is_stored_once_and_in_order() -> None:
    with ephemeral_cluster(3) as cluster, cluster.connect(timeout=90) as client:
        client.create_topic("orders", partitions=3, replicas=3, format="kafka")
        with client.producer(batch_bytes=2000) as producer:
            sent = []
            for one in range(3000):
                sent.append(producer.send("orders", b"%d" % one, key=b"%d" % (one % 30)))
                if one % 1000 == 500:
                    broker = cluster.broker(one // 1000)
                    broker.kill()
                    broker.restart()
        assert all(one.exception() is None for one in sent)
        by_key: dict[bytes | None, list[int]] = {}
        for message in client.read("orders"):
            by_key.setdefault(message.key, []).append(int(message.value))
        assert by_key == {b"%d" % key: list(range(key, 3000, 30)) for key in range(30)}
