"""Producers of the Python API: new partitions, full buffers, callbacks, and what failed."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
from typing import Any

import pytest

import pylogctl
from broker.api.values import acks_of
from broker.producer.config import ProducerConfig
from broker.producer.partitioner import round_robin_partitioner
from broker.producer.settings import acks_of as acks_of_setting
from pylogctl.testing import Broker, ephemeral_cluster
from tests.support.waiting import wait_until


@pytest.mark.zookeeper
def test_producer_when_partitions_are_added_then_it_uses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.api.producer.MAX_AGE_S", 0.2)
    with ephemeral_cluster(1) as cluster, cluster.connect() as client:
        client.create_topic("orders", partitions=1)
        with client.producer(partitioner=round_robin_partitioner()) as producer:
            assert {producer.send("orders", "x").result().partition.index for _ in range(3)} == {0}
            client.alter_topic("orders", partitions=3)

            def used() -> set[int]:
                return {producer.send("orders", "x").result().partition.index for _ in range(3)}

            wait_until(lambda: used() == {0, 1, 2}, "messages in the new partitions")


def test_producer_when_its_buffer_is_full_then_it_does_not_linger(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    with pylog.producer(linger=60, buffer_bytes=1000) as producer:
        started_s = time.monotonic()
        deliveries = [producer.send(pylog_topic, "x" * 300) for _ in range(10)]
        assert time.monotonic() - started_s < 20
        assert deliveries[0].done()


def test_send_when_there_is_no_room_in_time_then_the_buffer_is_full() -> None:
    broker = Broker()
    client = broker.connect(timeout=20)
    producer = client.producer(buffer_bytes=1000)
    producer.send("t", "x").result()
    broker.close()
    producer.send("t", "x" * 900)
    time.sleep(0.1)  # it is on its way
    producer.send("t", "x" * 900)
    started_s = time.monotonic()
    with pytest.raises(pylogctl.BufferFull) as caught:
        producer.send("t", "x" * 900, timeout=0.3)
    assert 0.2 < time.monotonic() - started_s < 10
    assert caught.value.is_retriable
    with pytest.raises(pylogctl.DeliveryFailed):
        client.close(0)


def test_result_when_called_in_a_callback_before_it_is_done_then_raises_at_once(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    found: list[object] = []

    def ask(delivery: pylogctl.Delivery) -> None:
        found.append(delivery.result().offset)  # of one that is done
        try:
            later = producer.send(pylog_topic, "y")
            found.append(later.result())
        except pylogctl.Error as error:
            found.append(str(error))

    with pylog.producer() as producer:
        producer.send(pylog_topic, "x").add_done_callback(ask)
        wait_until(lambda: len(found) == 2, "the callback")
        # another producer of the client can be waited for
        producer.send(pylog_topic, "z").add_done_callback(
            lambda _: found.append(pylog.send(pylog_topic, "from a callback").offset)
        )
        wait_until(lambda: len(found) == 3, "the send of a callback")
    assert found[0] == 0
    assert "in a callback of its producer" in str(found[1])
    assert isinstance(found[2], int)


def test_send_many_when_a_part_fails_then_says_what_was_sent(
    pylog: pylogctl.Client, pylog_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pylog.send(pylog_topic, "first")
    sender = pylog._sender(pylogctl.Acks.COMMITTED)
    send = sender.send

    def fail_at_b(topic: str, value: bytes, **how: object) -> pylogctl.Delivery:
        if value == b"b":
            raise pylogctl.BufferFull("no room")
        return send(topic, value, **how)  # type: ignore[arg-type]  # those of `send`

    monkeypatch.setattr(sender, "send", fail_at_b)
    with pytest.raises(pylogctl.Partial, match="1 of 3 messages were not acknowledged") as caught:
        pylog.send_many(pylog_topic, ["a", "b", "c"])
    assert len(caught.value.done) == 2
    assert isinstance(caught.value.failed["1"], pylogctl.BufferFull)
    with pytest.raises(pylogctl.BufferFull):
        pylog.send_many(pylog_topic, ["b"])


def test_send_many_when_one_is_too_large_then_none_is_sent(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send(pylog_topic, "first")
    with pytest.raises(pylogctl.TooLarge):
        pylog.send_many(pylog_topic, ["second", "x" * 1_000_001])
    assert [one.text() for one in pylog.read(pylog_topic)] == ["first"]


def test_send_many_when_the_brokers_refuse_one_then_that_one_fails_alone() -> None:
    values = [b"%d" % number for number in range(300)]
    values[10] = b"x" * 1001
    with Broker({"max.message.size": "1000"}) as broker, broker.connect() as client:
        with pytest.raises(pylogctl.Partial, match=r"^1 of 300 messages") as caught:
            client.send_many("t", values, key="k")
        assert list(caught.value.failed) == ["10"]
        assert [one.value for one in client.read("t")] == values[:10] + values[11:]


ADDRESSED: list[Any] = [
    ("orders", "one", "k"),
    ("a/b", "two"),
    ("payments", b"three"),
    ("orders", "x" * 1_000_001),
    ("orders", "four", "k"),
]


def check_addressed(error: pylogctl.Partial, client: pylogctl.Client) -> None:
    """Check that two of `ADDRESSED` failed, and that the others were sent in their order."""
    assert str(error).startswith("2 of 5 messages were not queued: message 1 to 'a/b': ")
    failed = {place: type(one) for place, one in error.failed.items()}
    assert failed == {"1": pylogctl.InvalidName, "3": pylogctl.TooLarge}
    assert [one.result().topic for one in error.done] == ["orders", "payments", "orders"]
    assert [one.text() for one in client.read("orders")] == ["one", "four"]
    assert [one.text() for one in client.read("payments")] == ["three"]


def test_send_all_when_messages_of_several_topics_fail_then_the_others_are_sent() -> None:
    with Broker({"num.partitions": "3"}) as broker, broker.connect() as client:
        with client.producer() as producer:
            with pytest.raises(pylogctl.Partial) as caught:
                producer.send_all(ADDRESSED)
            with pytest.raises(pylogctl.InvalidName):
                producer.send_all([("a/b", "two")])
            with pytest.raises(TypeError, match="message 1: give one message as bytes or str"):
                producer.send_all([("orders", "five"), ("orders", 6)])  # type: ignore[list-item]
            assert producer.send_all([]) == []
        check_addressed(caught.value, client)


def test_send_all_when_awaited_and_some_fail_then_the_others_are_sent() -> None:
    async def send(address: str | None) -> pylogctl.Partial:
        async with pylogctl.aconnect(address) as client, client.producer() as producer:
            with pytest.raises(pylogctl.Partial) as caught:
                await producer.send_all(ADDRESSED)
            await producer.flush()
            return caught.value

    with Broker({"num.partitions": "3"}) as broker, broker.connect() as client:
        check_addressed(asyncio.run(send(broker.address)), client)


def test_send_when_it_fails_then_its_error_is_raised_and_not_logged_as_well(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Broker()
    with caplog.at_level(logging.INFO), broker.connect(timeout=1) as client:
        client.send("t", "x")
        broker.close()
        caplog.clear()
        with pytest.raises(pylogctl.Error):
            client.send("t", "y")
    mine = [one for one in caplog.records if one.name.startswith(("broker.producer", "pylogctl"))]
    assert [one.getMessage() for one in mine if one.levelno > logging.INFO] == []


@pytest.mark.parametrize("value", [b"x", "x", bytearray(b"x"), memoryview(b"x")])
def test_send_when_value_and_key_are_text_or_buffers_then_sends_their_bytes(
    pylog: pylogctl.Client, pylog_topic: str, value: bytes | str | bytearray | memoryview
) -> None:
    async def send_from_a_loop() -> None:
        async with pylogctl.aconnect(pylog.brokers()[0].address) as client:
            await client.send(pylog_topic, value, key=value)
            await client.send_many(pylog_topic, [value], key=value)
            async with client.producer() as producer:
                await producer.send(pylog_topic, value, key=value)
                await producer.send_many(pylog_topic, [value], key=value)

    pylog.create_topic(pylog_topic, partitions=5)
    pylog.send(pylog_topic, value, key=value)
    pylog.send_many(pylog_topic, [value], key=value)
    with pylog.producer() as producer:
        producer.send(pylog_topic, value, key=value)
        producer.send_many(pylog_topic, [value], key=value)
    asyncio.run(send_from_a_loop())

    expected = pylog.send(pylog_topic, b"x", key=b"x").partition
    found = list(pylog.read(pylog_topic))
    assert [(one.value, one.partition) for one in found] == [(b"x", expected)] * 9


@pytest.mark.parametrize(
    "acks", ["all", -1, 1, pylogctl.Acks.WRITTEN, pylogctl.Acks.COMMITTED, pylogctl.Acks.AUTO]
)
def test_send_when_acks_are_named_as_in_kafka_then_is_acknowledged(
    pylog: pylogctl.Client, pylog_topic: str, acks: Any
) -> None:
    async def send_from_a_loop() -> list[int]:
        async with pylogctl.aconnect(pylog.brokers()[0].address) as client:
            receipt = await client.send(pylog_topic, "x", acks=acks)
            (other,) = await client.send_many(pylog_topic, ["x"], acks=acks)
            async with client.producer(acks=acks) as producer:
                delivery = await producer.send(pylog_topic, "x")
            return [receipt.offset, other.offset, (await delivery).offset]

    offsets = [pylog.send(pylog_topic, "x", acks=acks).offset]
    offsets += [one.offset for one in pylog.send_many(pylog_topic, ["x"], acks=acks)]
    with pylog.producer(acks=acks) as producer:
        offsets.append(producer.send(pylog_topic, "x").result().offset)
    offsets += asyncio.run(send_from_a_loop())
    offsets.append(pylog.send(pylog_topic, "last").offset)  # flushes those before, too

    assert offsets == [one.offset for one in pylog.read(pylog_topic)]


def test_acks_when_all_then_are_those_of_every_replica_in_sync() -> None:
    assert acks_of("all") is acks_of(-1) is pylogctl.Acks.COMMITTED
    config = ProducerConfig.from_properties({"request.required.acks": "all"})
    assert acks_of_setting(config) is pylogctl.Acks.COMMITTED


def test_values_when_pickled_then_come_back_by_their_public_names(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    receipt = pylog.send(pylog_topic, "x")
    found = pickle.loads(pickle.dumps(receipt))
    assert (found, type(found)) == (receipt, pylogctl.Receipt)
    error = pickle.loads(pickle.dumps(pylogctl.TimedOut("late", hints=["wait"])))
    assert (type(error), str(error)) == (pylogctl.TimedOut, "late")
    for kind in (
        pylogctl.Client,
        pylogctl.Reader,
        pylogctl.Producer,
        pylogctl.Receipt,
        type(error),
    ):
        assert kind.__module__ == "pylogctl"
    assert pylogctl.Group.__module__ == pylogctl.RetryPolicy.__module__ == "pylogctl"


def test_read_when_a_place_is_given_for_an_absent_partition_then_says_so(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send(pylog_topic, "x")
    with pytest.raises(ValueError, match="a place is given for partition 9"):
        pylog.read(pylog_topic, start={9: 3})
    with pytest.raises(ValueError, match="a place is given for partition '7-0'"):
        pylog.read(pylog_topic, stop={"7-0": 3})


def test_batches_when_closed_before_the_first_then_their_reader_is_closed(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send(pylog_topic, "x")
    batches = pylog.read_batches(pylog_topic)
    batches.close()
    assert list(batches) == []
    with pylog.read_batches(pylog_topic) as batches:
        assert next(batches).values() == [b"x"]
    assert list(batches) == []
