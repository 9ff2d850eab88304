"""The Python API at its edges: wrong arguments, ends in a hurry, forks, and calls in callbacks."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import pylogctl
from pylogctl.testing import Broker, ephemeral_cluster, memory_cluster
from tests.support.waiting import wait_until


def send_bytes(client: pylogctl.Client) -> None:
    with client.producer() as producer:
        producer.send_many("t", b"abc")  # type: ignore[arg-type]


BAD: list[tuple[Callable[[pylogctl.Client], object], type[Exception], str]] = [
    (lambda c: c.send_many("t", "abc"), TypeError, "several messages, such as a list, not str"),
    (send_bytes, TypeError, "not bytes"),
    (lambda c: c.send("t", "x", acks="most"), ValueError, "acks is 'all' or one of Acks.NONE"),  # type: ignore[arg-type]
    (lambda c: c.send("t", "x", timeout=-1), ValueError, "timeout is at least 0"),
    (lambda c: c.send("t", "x", timeout="1"), TypeError, "timeout as a number, not str"),  # type: ignore[arg-type]
    (lambda c: c.producer(codec=None), ValueError, "no codec 'None'"),  # type: ignore[arg-type]
    (lambda c: c.producer(linger=-1), ValueError, "linger is at least 0"),
    (lambda c: c.producer(batch_bytes=0), ValueError, "batch_bytes is at least 1"),
    (lambda c: c.producer(buffer_bytes="9"), TypeError, "buffer_bytes as a number"),  # type: ignore[arg-type]
    (lambda c: c.read("t", limit=-1), ValueError, "limit is at least 0"),
    (lambda c: c.read("t", idle=-1), ValueError, "idle is at least 0"),
    (
        lambda c: c.read("t", filter=3),  # type: ignore[arg-type]
        TypeError,
        "as str, bytes, by re2.compile or as a PayloadFilter, not int",
    ),
    (lambda c: c.read("t", partition=1.5), TypeError, "not float"),  # type: ignore[arg-type]
    (lambda c: c.read("t", partition=[0, 9]), ValueError, "has no partition 9"),
    (
        lambda c: c.read("t", partition=pylogctl.TopicPartition("u", 0, 0)),
        ValueError,
        "'t' has no partition u[0-0]; it has 0-0",
    ),
    (
        lambda c: c.send("t", "x", partition=pylogctl.TopicPartition("u", 0, 0)),
        ValueError,
        "is not one partition of topic 't'",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), BAD, ids=[text for _, _, text in BAD])
def test_client_when_given_bad_input_then_says_what_is_wrong(
    call: Callable[[pylogctl.Client], object],
    kind: type[Exception],
    text: str,
    pylog_broker: Broker,
) -> None:
    with pylog_broker.connect() as client:
        client.send("t", "x")
        with pytest.raises(kind, match=re.escape(text)):
            call(client)


def test_partition_when_given_as_it_is_printed_then_is_this_one(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.create_topic(pylog_topic, partitions=2)
    text = str(pylogctl.TopicPartition(pylog_topic, 0, 1))

    receipt = pylog.send(pylog_topic, "x", partition=text)
    pylog.send_many(pylog_topic, ["y"], partition=text)
    with pylog.producer() as producer:
        producer.send(pylog_topic, "z", partition=text)

    assert str(receipt.partition) == text
    assert [one.text() for one in pylog.read(pylog_topic, partition=text)] == ["x", "y", "z"]
    second = receipt.next_offset
    assert [one.text() for one in pylog.read(pylog_topic, start={text: second})] == ["y", "z"]
    with pylog.read(pylog_topic) as reader:
        reader.seek(text, second)
        assert [one.text() for one in reader] == ["y", "z"]
    assert pylog.count(pylog_topic, partition=text) == 3
    assert list(pylog.offsets(pylog_topic, "end", partition=text)) == [receipt.partition]
    assert {one.partition for one in pylog.sample(pylog_topic, 3, partition=text)} == {
        receipt.partition
    }
    with pytest.raises(ValueError, match=re.escape(f"has no partition '{text[:-2]}7]'")):
        pylog.read(pylog_topic, partition=f"{text[:-2]}7]")
    with pytest.raises(ValueError, match="has no partition 'other"):
        pylog.read(pylog_topic, partition="other[0-1]")


def test_partition_when_given_to_an_event_loop_as_it_is_printed_then_is_this_one(
    pylog_broker: Broker, pylog_topic: str
) -> None:
    async def main() -> list[str]:
        async with pylogctl.aconnect(pylog_broker.address) as client:
            await client.create_topic(pylog_topic, partitions=2)
            text = str(pylogctl.TopicPartition(pylog_topic, 0, 1))
            await client.send(pylog_topic, "x", partition=text)
            async with client.producer() as producer:
                await producer.send(pylog_topic, "y", partition=text)
            assert await client.count(pylog_topic, partition=text) == 2
            return [one.text() async for one in client.read(pylog_topic, partition=text)]

    assert asyncio.run(main()) == ["x", "y"]


def test_partition_when_given_to_a_group_as_it_is_printed_then_is_this_one(
    pylog_group: pylogctl.Client,
) -> None:
    receipt = pylog_group.send_many("orders", ["x", "y"], key="k")[0]
    text = str(receipt.partition)
    with pylog_group.group("billing", "orders", start={text: "earliest"}) as group:
        first = next(group)
        group.seek(text, receipt.offset)
        assert next(group) == first
        group.pause(text)
        group.resume(text)
    changes = pylog_group.reset("billing", "orders", to=receipt.next_offset, partition=text)
    assert [(str(one.partition), one.after) for one in changes] == [(text, receipt.next_offset)]


@pytest.mark.parametrize("timeout", [-1, "1", True])
def test_connect_when_the_timeout_is_none_then_says_so(
    timeout: float, pylog_broker: Broker
) -> None:
    with pytest.raises((TypeError, ValueError), match="timeout"):
        pylogctl.connect(pylog_broker.address, timeout=timeout)


def test_connect_when_zookeeper_is_no_text_then_says_so() -> None:
    with pytest.raises(TypeError, match="the address of ZooKeeper as str, not 4"):
        pylogctl.connect(zookeeper=4)  # type: ignore[arg-type]


def test_reader_when_closed_or_ended_then_seek_says_so(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send(pylog_topic, "x")
    closed, ended = pylog.read(pylog_topic), pylog.read(pylog_topic)
    closed.close()
    assert [one.text() for one in ended] == ["x"]
    for reader in (closed, ended):
        with pytest.raises(pylogctl.Closed):
            reader.seek(0, 0)


def test_batches_when_left_then_their_connection_is_closed(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send(pylog_topic, "x")
    open_files = Path("/proc/self/fd")
    before = len(list(open_files.iterdir()))
    for _ in range(5):
        for batch in pylog.read_batches(pylog_topic, stop=None):
            assert batch.values() == [b"x"]
            break
    wait_until(lambda: len(list(open_files.iterdir())) <= before, "closed connections")


def test_broker_when_its_settings_are_wrong_then_its_directory_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(pylogctl.Error, match="no property 'bogus'") as caught:
        Broker({"bogus": "x"})
    assert caught.traceback  # holds what the failed call had
    assert list(tmp_path.iterdir()) == []


def test_send_many_when_one_value_is_wrong_then_none_is_sent(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send(pylog_topic, "first")
    with pytest.raises(TypeError):
        pylog.send_many(pylog_topic, ["second", 3])  # type: ignore[list-item]
    pylog.send(pylog_topic, "third")
    assert [one.text() for one in pylog.read(pylog_topic)] == ["first", "third"]


def test_reader_of_several_topics_when_sought_or_resumed_then_a_partition_is_of_its_topic(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pattern = re.compile(f"{pylog_topic}-.")
    for name, size in (("a", 1), ("b", 20)):
        pylog.send_many(f"{pylog_topic}-{name}", [name * size, name])
    with pylog.read(pattern) as reader:
        got = [next(reader).text()]
        reader.seek(pylogctl.TopicPartition(f"{pylog_topic}-a", 0, 0), 0)
        got += [one.text() for one in reader]
    assert sorted(got) == sorted(["a", "a", "a", "b" * 20, "b"])
    assert list(pylog.read(pattern, start=reader.positions)) == []
    only = pylogctl.TopicPartition(f"{pylog_topic}-b", 0, 0)
    assert {one.topic for one in pylog.read(pattern, partition=only)} == {only.topic}


def test_reader_when_sought_into_a_compressed_set_then_goes_on_at_that_message(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    with pylog.producer(codec="gzip") as producer:
        producer.send_many(pylog_topic, ["a", "b", "c", "d"])
    with pylog.read(pylog_topic) as reader:
        assert next(reader).text() == "a"
        reader.seek(0, "-1")
        assert [one.text() for one in reader] == ["d"]


def test_send_when_a_partition_is_new_then_it_is_found() -> None:
    with Broker({"num.partitions": "3"}) as broker, broker.connect() as client:
        client.send("orders", "x")  # it knows partition 0 only, which makes the others
        assert client.send("orders", "y", partition=2).partition.index == 2


def test_client_when_left_by_an_exception_then_it_ends_soon_and_lets_it_pass(
    pylog_topic: str,
) -> None:
    broker = Broker()
    with pytest.raises(KeyError, match="of the program"), broker.connect(timeout=20) as client:
        producer = client.producer()
        producer.send(pylog_topic, "x").result()
        broker.close()
        producer.send(pylog_topic, "y")
        left_s = time.monotonic()
        raise KeyError("of the program")
    assert time.monotonic() - left_s < 10
    assert client.closed


def test_client_when_closed_with_a_timeout_then_its_producers_end_by_then() -> None:
    broker = Broker()
    client = broker.connect(timeout=20)
    producers = [client.producer() for _ in range(3)]
    for one in producers:
        one.send("t", "x").result()
    broker.close()
    deliveries = [one.send("t", "y") for one in producers]
    started_s = time.monotonic()
    with pytest.raises(pylogctl.DeliveryFailed):
        client.close(0.5)
    assert time.monotonic() - started_s < 10
    assert all(one.exception() is not None for one in deliveries)


def test_close_when_called_by_a_callback_then_it_is_refused_and_can_be_called_later(
    pylog_broker: Broker, pylog_topic: str
) -> None:
    client = pylog_broker.connect()
    found: list[Exception] = []

    def close_all(_delivery: pylogctl.Delivery) -> None:
        for close in (producer.close, client.close):
            try:
                close()
            except pylogctl.Error as error:
                found.append(error)

    producer = client.producer(on_delivery=close_all)
    producer.send(pylog_topic, "x").result()
    producer.flush()
    assert ["cannot be called in a report" in str(one) for one in found] == [True, True]
    assert client.send(pylog_topic, "y").offset > 0
    producer.close()
    client.close()
    with pytest.raises(pylogctl.Closed):
        producer.send(pylog_topic, "z")


def test_send_many_when_empty_then_its_callback_is_called(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    done: list[pylogctl.Delivery] = []
    with pylog.producer(on_delivery=done.append) as producer:
        delivery = producer.send_many(pylog_topic, [])
    assert (done, delivery.done()) == ([delivery], True)


def test_client_when_forked_then_it_is_closed_in_the_child_and_sound_in_the_parent(
    pylog: pylogctl.Client, pylog_topic: str, tmp_path: Path
) -> None:
    producer = pylog.producer(linger=60)
    producer.send(pylog_topic, "x")
    if not (child := os.fork()):
        try:
            for call in (pylog.topics, lambda: pylog.read("t"), lambda: producer.send("t", "x")):
                with pytest.raises(pylogctl.Closed):
                    call()
            producer.close()
            pylog.close()
            (tmp_path / "found").touch()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "found").exists()
    producer.close()
    assert [one.text() for one in pylog.read(pylog_topic)] == ["x"]


def open_sockets() -> int:
    """Return how many sockets this process has, the broker's included."""
    links = []
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself
            links.append(str(path.readlink()))
    return sum(one.startswith("socket:") for one in links)


def test_reader_when_dropped_half_way_then_its_connections_are_closed_at_once(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send_many(pylog_topic, ["a", "b", "c"], partition=0)
    before = open_sockets()
    for _ in range(5):
        next(pylog.read(pylog_topic))
        for _message in pylog.read(pylog_topic):
            break
        for _batch in pylog.read_batches(pylog_topic):
            break
        pylog.read(pylog_topic)
        pylog.read_batches(pylog_topic)
    wait_until(lambda: open_sockets() <= before, "the end of all connections")


def test_reader_when_a_loop_is_left_then_the_next_one_goes_on_behind(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send_many(pylog_topic, ["a", "b", "c"], partition=0)
    reader = pylog.read(pylog_topic)
    for message in reader:
        assert message.text() == "a"
        break
    assert next(reader).text() == "b"
    assert [one.text() for one in reader] == ["c"]
    assert list(reader) == []


@pytest.mark.zookeeper
def test_read_when_a_broker_of_the_topic_is_away_then_says_which() -> None:
    with ephemeral_cluster(2) as cluster, cluster.connect() as client:
        client.send("t", "here", partition="0-0")
        client.send("t", "there", partition="1-0")
        cluster.brokers[1].close()

        def refusal() -> str:
            try:
                client.read("t", timeout=0.5).close()
            except (pylogctl.Unreachable, pylogctl.TimedOut) as error:
                return str(error)
            return ""

        wait_until(
            lambda: "broker 1 is away: 1 of 2 partitions of topic 't' (1-0)" in refusal(),
            "the news",
        )
        assert [one.text() for one in client.read("t", partition="0-0")] == ["here"]


@pytest.mark.parametrize("broker_count", [1, 2])
def test_reader_when_sought_back_in_a_partition_that_is_read_then_reads_it_again(
    broker_count: int,
) -> None:
    with memory_cluster(broker_count) as cluster, cluster.connect() as client:
        client.create_topic("t", partitions=2)
        first, *_, last = client.describe("t")
        client.send_many("t", ["a", "b"], partition=first.partition)
        client.send_many("t", ["x" * 100_000] * 60, partition=last.partition)
        found = []
        with client.read("t") as reader:
            for message in reader:
                found.append(message.text()[:1])
                if found.count("x") == 55 and found.count("a") == 1:
                    reader.seek(first.partition, "start")
    assert (found.count("a"), found.count("b")) == (2, 2)
