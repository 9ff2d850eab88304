"""The Python API at a real broker: send, read, producers, and what bad input is told."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

import pylogctl
from broker.errors import BrokerUnreachableError
from pylogctl.testing import Broker


def test_send_when_acknowledged_then_read_gives_it_with_its_offsets(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    first = pylog.send(pylog_topic, "hello")
    second = pylog.send(pylog_topic, b"\xff", key="k")

    messages = list(pylog.read(pylog_topic))

    assert [one.value for one in messages] == [b"hello", b"\xff"]
    assert messages[0].text() == "hello"
    assert [(one.offset, one.next_offset) for one in messages] == [
        (first.offset, first.next_offset),
        (second.offset, second.next_offset),
    ]
    assert (messages[0].topic, messages[0].partition) == (pylog_topic, first.partition)
    assert (messages[0].key, messages[0].timestamp, messages[0].headers) == (None, None, ())


def test_send_many_when_sent_then_gives_a_receipt_for_each(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    receipts = pylog.send_many(pylog_topic, ["a", "bb", "ccc"])

    assert [one.next_offset - one.offset for one in receipts] == [11, 12, 13]
    read = {one.offset: one.text() for one in pylog.read(pylog_topic)}
    assert [read[one.offset] for one in receipts] == ["a", "bb", "ccc"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy"])
def test_producer_when_closed_then_all_is_delivered_in_order(
    pylog: pylogctl.Client, pylog_topic: str, codec: str
) -> None:
    done: list[pylogctl.Delivery] = []
    with pylog.producer(codec=codec, linger=0.01, on_delivery=done.append) as producer:  # type: ignore[arg-type]  # one of the literals
        deliveries = [producer.send(pylog_topic, f"m{n}") for n in range(500)]
        producer.send_many(pylog_topic, ["x", "y"]).add_done_callback(done.append)

    assert len(done) == 502  # the one of `send_many` is there twice
    receipts = [one.result() for one in deliveries]
    assert receipts == sorted(receipts, key=lambda one: one.offset)
    messages = list(pylog.read(pylog_topic))
    assert [one.text() for one in messages] == [*(f"m{n}" for n in range(500)), "x", "y"]
    if codec != "none":
        inner = [one.inner for one in messages if one.offset == messages[0].offset]
        assert inner == list(range(len(inner)))
    # a place inside a wrapper is found, and starts there
    assert [one.text() for one in pylog.read(pylog_topic, start="-5")][:2] == ["m497", "m498"]
    assert [one.text() for one in pylog.read(pylog_topic, stop="+3")] == ["m0", "m1", "m2"]
    batches = list(pylog.read_batches(pylog_topic, start="-5"))
    assert batches[0].values()[0] == b"m497"
    assert batches[-1].end == messages[-1].next_offset


def test_read_when_told_where_then_starts_and_stops_there(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    receipts = pylog.send_many(pylog_topic, [str(n) for n in range(10)], partition=0)
    offsets = [one.offset for one in receipts]
    name = receipts[0].partition.name

    def read(**how: object) -> list[str]:
        return [one.text() for one in pylog.read(pylog_topic, **how)]  # type: ignore[arg-type]  # each is one of `read`'s

    assert read(start=offsets[8]) == ["8", "9"]
    assert read(start={name: offsets[8]}, stop={0: offsets[9]}) == ["8"]
    assert read(start="-1") == ["9"]
    assert read(limit=2) == ["0", "1"]
    assert read(start=datetime.now(UTC) - timedelta(hours=1), partition=name) == list("0123456789")
    assert read(partition=[0, receipts[0].partition], stop=0) == []
    assert read(start="end", stop=None, idle=0.05) == []
    pattern = re.compile(re.escape(pylog_topic))
    assert [one.text() for one in pylog.read(pattern, limit=1)] == ["0"]


def test_read_when_it_filters_then_only_messages_that_match_come() -> None:
    # a broker of its own: the process that filters lives as long as the broker
    with Broker() as broker, broker.connect() as client:
        client.send_many("t", [str(n) for n in range(10)], partition=0)
        assert [one.text() for one in client.read("t", filter="[37]")] == ["3", "7"]


def test_read_when_it_follows_then_close_from_another_thread_ends_it(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send(pylog_topic, "first")
    reader = pylog.read(pylog_topic, stop=None)
    got: list[str] = []
    thread = threading.Thread(target=lambda: got.extend(one.text() for one in reader))
    thread.start()
    pylog.send(pylog_topic, "second")
    deadline_s = time.monotonic() + 60
    while len(got) < 2 and time.monotonic() < deadline_s:
        time.sleep(0.01)
    reader.close()
    thread.join(60)

    assert not thread.is_alive()
    assert got == ["first", "second"]


def test_reader_when_sought_then_goes_on_there_without_what_was_in_hand(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    receipts = pylog.send_many(pylog_topic, [str(n) for n in range(6)], partition=0)

    got: list[str] = []
    with pylog.read(pylog_topic) as reader:
        for message in reader:
            got.append(message.text())
            if message.text() == "1" and len(got) < 4:
                reader.seek(0, receipts[4].offset if len(got) == 2 else "start")
        assert reader.positions == reader.ends

    assert got == ["0", "1", "4", "5"]
    with pytest.raises(pylogctl.NotABoundary), pylog.read(pylog_topic) as reader:
        reader.seek(0, 3)


def test_message_when_corrupt_then_those_before_it_come_and_an_error(pylog_topic: str) -> None:
    with Broker() as broker, broker.connect() as client:
        receipts = client.send_many(pylog_topic, ["good", "bad"])
        (segment,) = broker.data_dir.glob(f"{pylog_topic}_*/*.pylog")
        data = bytearray(segment.read_bytes())
        data[receipts[1].next_offset - 1] ^= 1
        segment.write_bytes(data)

        got: list[str] = []
        with pytest.raises(pylogctl.CorruptMessage, match=re.escape(str(receipts[1].offset))):
            got.extend(one.text() for one in client.read(pylog_topic))
        batches = client.read_batches(pylog_topic)
        assert next(batches).values() == [b"good"]
        with pytest.raises(pylogctl.CorruptMessage):
            next(batches)


BAD: list[tuple[Callable[[pylogctl.Client], object], type[Exception], str]] = [
    (lambda c: c.send("t", 5), TypeError, "one message as bytes or str, not int"),  # type: ignore[arg-type]
    (lambda c: c.send("t", ["a"]), TypeError, "for several messages: send_many"),  # type: ignore[arg-type]
    (lambda c: c.send(5, "a"), TypeError, "the topic as str, not int"),  # type: ignore[arg-type]
    (lambda c: c.send("t", "a", key=5), TypeError, "the key as bytes or str, not int"),  # type: ignore[arg-type]
    (lambda c: c.send("t", "a", partition=1.5), TypeError, "not float"),  # type: ignore[arg-type]
    (lambda c: c.send("a/b", "x"), pylogctl.InvalidName, "'/' is not allowed"),
    (lambda c: c.send("t", "x" * 1_000_001), pylogctl.TooLarge, "the limit is 1000000"),
    (lambda c: c.send("t", "x", partition=9), ValueError, "9 is not one partition of topic 't'"),
    (lambda c: c.read("absent"), pylogctl.UnknownTopic, "'absent' not found"),
    (lambda c: c.read(re.compile("no.*")), pylogctl.UnknownTopic, "no topic matches 'no.*'"),
    (lambda c: c.read("t", start="soon"), ValueError, "not an offset: 'soon'"),
    (lambda c: c.read("t", start="1:2"), ValueError, "not one place: '1:2'"),
    (lambda c: c.read("t", start=1.5), TypeError, "not float"),  # type: ignore[arg-type]
    (lambda c: c.read("t", start=3), pylogctl.NotABoundary, "nearest are 0 and 11"),
    (lambda c: c.read("t", start=1 << 40), pylogctl.OffsetOutOfRange, "after the last offset"),
    (lambda c: c.read("t", partition=7), ValueError, "has no partition 7; it has 0-0"),
    (lambda c: c.read("t", filter="("), pylogctl.Error, "no regular expression"),
    (lambda c: c.producer(codec="zip"), ValueError, "no codec 'zip'; valid: none, gzip"),  # type: ignore[arg-type]
    (lambda c: c.group("g", "t"), pylogctl.NoZooKeeper, "have no ZooKeeper"),
]


@pytest.mark.parametrize(("call", "kind", "text"), BAD, ids=[text for _, _, text in BAD])
def test_client_when_given_bad_input_then_says_what_is_wrong(
    call: Callable[[pylogctl.Client], object],
    kind: type[Exception],
    text: str,
    pylog_broker: Broker,
) -> None:
    with pylog_broker.connect() as client:
        if "t" not in [one.name for one in client.topics()]:
            client.send("t", "x")
        with pytest.raises(kind, match=re.escape(text)):
            call(client)


CALLS: list[Callable[[pylogctl.Client], object]] = [
    lambda c: c.send("t", "x"),
    lambda c: c.send_many("t", ["x"]),
    lambda c: c.producer(),
    lambda c: c.read("t"),
    lambda c: c.read_batches("t"),
    lambda c: c.group("g", "t"),
    lambda c: c.topics(),
]


@pytest.mark.parametrize("call", CALLS)
def test_client_when_closed_then_every_call_raises_closed(
    call: Callable[[pylogctl.Client], object], pylog_broker: Broker
) -> None:
    client = pylog_broker.connect()
    client.close()
    client.close()
    with pytest.raises(pylogctl.Closed):
        call(client)


def test_producer_when_its_client_is_closed_then_it_is_flushed_and_closed(
    pylog_broker: Broker, pylog_topic: str
) -> None:
    client = pylog_broker.connect()
    producer = client.producer(linger=60)
    delivery = producer.send(pylog_topic, "x")
    client.close()

    assert delivery.result().offset == 0
    with pytest.raises(pylogctl.Closed):
        producer.send(pylog_topic, "y")


def test_client_when_brokers_are_gone_then_calls_end_in_time_with_unreachable_or_timed_out(
    pylog_topic: str,
) -> None:
    broker = Broker()
    client = broker.connect(timeout=1.0)
    client.send(pylog_topic, "x")
    producer = client.producer()
    producer.send(pylog_topic, "x").result()
    broker.close()

    with pytest.raises((pylogctl.TimedOut, pylogctl.Unreachable)):
        client.send(pylog_topic, "y")
    with pytest.raises(ConnectionError) as caught:
        list(client.read(pylog_topic))
    assert isinstance(caught.value, BrokerUnreachableError)
    producer.send(pylog_topic, "z")
    with pytest.raises(pylogctl.DeliveryFailed):
        producer.close()
    client.close()


def test_connect_when_given_nothing_usable_then_says_so() -> None:
    with pytest.raises(pylogctl.Unreachable, match="connection refused"):
        pylogctl.connect("127.0.0.1:1")
    with pytest.raises(ValueError, match="of brokers or of ZooKeeper"):
        pylogctl.connect()
    with pytest.raises(ValueError, match="is no broker address"):
        pylogctl.connect("host:99999")
    with pytest.raises(TypeError, match="as str or a list of str"):
        pylogctl.connect(5)  # type: ignore[arg-type]


def test_client_when_not_closed_then_warns(pylog_broker: Broker) -> None:
    client = pylog_broker.connect()
    with pytest.warns(ResourceWarning, match="was not closed"):
        client.__del__()
    client.close()
