"""Sending in an event loop: order, lost brokers, cancelled tasks, full buffers, and the end."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

import pylogctl
from pylogctl.pytest_plugin import MakeBroker
from pylogctl.testing import Broker, Faults
from tests.integration.broker.peers import Server, as_true_07_broker
from tests.integration.process.conftest import ProcessFactory
from tests.integration.process.conftest import start_process as start_process
from tests.integration.replication.conftest import StartCluster
from tests.integration.replication.conftest import start_cluster as start_cluster
from tests.support.ports import port_of_its_own

_T = TypeVar("_T")
_SOON_S = 20
"""A machine that pauses is quicker, and the time limit of a client longer."""


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """Run a test in a loop of its own; nothing may be left in it."""

    async def whole() -> _T:
        found = await main
        async with asyncio.timeout(30):  # what was cancelled ends
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0.01)
        return found

    return asyncio.run(whole())


def logs_of(address: str, topic: str) -> dict[pylogctl.TopicPartition, dict[int, str]]:
    """Return offset and text of all messages, by partition."""
    found: dict[pylogctl.TopicPartition, dict[int, str]] = {}
    with pylogctl.connect(address) as client:
        for one in client.read(topic):
            found.setdefault(one.partition, {})[one.offset] = one.text()
    return found


def check(
    logs: dict[pylogctl.TopicPartition, dict[int, str]],
    acknowledged: dict[str, pylogctl.Receipt],
    sent: list[str],
) -> int:
    """Check that nothing acknowledged is missing, nothing invented, and first copies in order.

    Returns:
        How many copies there are of messages that are there before.
    """
    for text, receipt in acknowledged.items():
        assert logs[receipt.partition][receipt.offset] == text
    order = {text: number for number, text in enumerate(sent)}
    copies = 0
    for log in logs.values():
        first_times = list(dict.fromkeys(log.values()))
        numbers = [order[text] for text in first_times]  # a KeyError: it was never sent
        assert numbers == sorted(numbers)
        copies += len(log) - len(first_times)
    return copies


class Load:
    """A task that sends numbered messages through a producer until it is told to end."""

    def __init__(self, producer: pylogctl.AsyncProducer, topic: str, keys: int = 5) -> None:
        self.sent: list[str] = []
        self.deliveries: list[pylogctl.AsyncDelivery] = []
        self._producer = producer
        self._topic = topic
        self._keys = keys
        self._is_over = False
        self._task = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while not self._is_over:
            text = f"m{len(self.sent)}"
            key = f"k{len(self.sent) % self._keys}"
            self.sent.append(text)
            self.deliveries.append(await self._producer.send(self._topic, text, key=key))
            if not len(self.sent) % 10:
                await asyncio.sleep(0.001)

    async def progress(self, count: int = 200) -> None:
        """Wait until so many more messages are acknowledged."""
        goal = len(self.deliveries) + count
        async with asyncio.timeout(60):
            while len(self.deliveries) < goal:
                await asyncio.sleep(0.01)
            await self.deliveries[goal - 1]

    async def end(self) -> dict[str, pylogctl.Receipt]:
        """Return the receipts of all messages."""
        self._is_over = True
        await self._task
        receipts = [await one for one in self.deliveries]
        return dict(zip(self.sent, receipts, strict=True))


@pytest.fixture
def small(pylog_own_broker: MakeBroker) -> Broker:
    """A broker with three partitions for a topic, and messages of at most 1000 bytes."""
    return pylog_own_broker({"num.partitions": "3", "max.message.size": "1000"})


def test_send_when_acknowledged_then_gives_where_it_is(small: Broker) -> None:
    async def main() -> tuple[list[pylogctl.Receipt], pylogctl.Receipt]:
        async with pylogctl.aconnect(small.address) as client:
            many = await client.send_many("t", ["a", "b", "c"], key="k")
            return many, await client.send("t", b"\xff", partition="0-2", timeout=5)

    many, one = run(main())

    logs = logs_of_bytes(small.address)
    assert [logs[each.partition][each.offset] for each in many] == [b"a", b"b", b"c"]
    assert [each.next_offset for each in many[:2]] == [each.offset for each in many[1:]]
    assert one.partition.name == "0-2"
    assert logs[one.partition][one.offset] == b"\xff"


def logs_of_bytes(address: str) -> dict[pylogctl.TopicPartition, dict[int, bytes]]:
    found: dict[pylogctl.TopicPartition, dict[int, bytes]] = {}
    with pylogctl.connect(address) as client:
        for one in client.read("t"):
            found.setdefault(one.partition, {})[one.offset] = one.value
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy"])
def test_producer_when_closed_then_all_is_there_in_the_order_of_each_key(
    pylog_own_broker: MakeBroker, codec: Any
) -> None:
    broker = pylog_own_broker({"num.partitions": "3"})
    sent = [f"m{number}" for number in range(2000)]

    async def main() -> list[pylogctl.Receipt]:
        done: list[pylogctl.AsyncDelivery] = []
        async with (
            pylogctl.aconnect(broker.address) as client,
            client.producer(codec=codec, linger=0.002, on_delivery=done.append) as producer,
        ):
            await client.send("t", "makes the topic")
            deliveries = [
                await producer.send("t", text, key=f"k{number % 7}")
                for number, text in enumerate(sent)
            ]
            await producer.flush()
            assert all(one.done() for one in deliveries)
            pair = await producer.send_many("t", ["x", "y"], partition=0)
        assert len(done) == 2001
        assert (await pair).partition.index == 0
        return [one.result() for one in deliveries]

    receipts = run(main())

    with pylogctl.connect(broker.address) as client:
        texts = [one.text() for one in client.read("t") if one.text() != "makes the topic"]
        counts = Counter(one.partition for one in client.read("t"))
    assert Counter(texts) == Counter([*sent, "x", "y"])
    assert len(counts) == 3
    for key in range(7):
        mine = [text for text in texts if text[0] == "m" and int(text[1:]) % 7 == key]
        assert mine == sent[key::7]
        offsets = [one.offset for one in receipts[key::7]]
        assert offsets == sorted(offsets)
        assert len({one.partition for one in receipts[key::7]}) == 1


@pytest.mark.parametrize("is_orderly", [True, False])
def test_producer_when_its_broker_goes_and_comes_back_then_nothing_is_missing_or_invented(
    start_process: ProcessFactory, tmp_path: Path, is_orderly: bool
) -> None:
    port = str(port_of_its_own())
    brokers = [start_process("--port", port)]

    def end() -> None:
        if is_orderly:
            brokers[-1].signal(signal.SIGTERM)
            brokers[-1].wait()
        else:
            brokers[-1].kill()

    async def main() -> tuple[list[str], dict[str, pylogctl.Receipt]]:
        async with (
            pylogctl.aconnect(f"127.0.0.1:{port}", timeout=60) as client,
            client.producer() as producer,
        ):
            load = Load(producer, "t")
            for _ in range(3):
                await load.progress()
                await asyncio.to_thread(end)
                await asyncio.sleep(0.3)
                brokers.append(await asyncio.to_thread(start_process, "--port", port))
                await load.progress()
            return load.sent, await load.end()

    sent, acknowledged = run(main())

    assert len(acknowledged) == len(sent)
    copies = check(logs_of(f"127.0.0.1:{port}", "t"), acknowledged, sent)
    assert copies == 0 or not is_orderly


@pytest.mark.zookeeper
@pytest.mark.slow
def test_producer_when_leaders_change_then_nothing_is_missing_or_invented(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster()
    partitions = cluster.create_topic("t", 3, 3, min_insync_replicas="2")
    cluster.await_full_isr(partitions)

    def disturb(number: int) -> None:
        leader = cluster.await_leader(partitions[number])
        if number == 1:
            cluster.stop(leader)
        else:
            cluster.kill_replaceable(leader, partitions, session_lives_on=bool(number))
        cluster.await_leader(partitions[number], other_than=leader)
        cluster.start(leader)

    async def main() -> tuple[list[str], dict[str, pylogctl.Receipt]]:
        async with (
            pylogctl.aconnect(cluster.listed(), timeout=60) as client,
            client.producer() as producer,
        ):
            load = Load(producer, "t")
            for number in range(3):
                await load.progress()
                await asyncio.to_thread(disturb, number)
                await load.progress()
            return load.sent, await load.end()

    sent, acknowledged = run(main())

    assert len(acknowledged) == len(sent)
    check(logs_of(cluster.listed(), "t"), acknowledged, sent)


def test_tasks_when_cancelled_at_any_moment_then_others_get_the_right_receipts(
    pylog_own_broker: MakeBroker,
) -> None:
    broker = pylog_own_broker()
    chance = random.Random(22)
    acknowledged: dict[str, pylogctl.Receipt] = {}

    async def main() -> int:
        async with pylogctl.aconnect(broker.address) as client:
            await client.send("t", "first")

            async def work(name: int) -> None:
                for number in range(50):
                    text = f"{name}-{number}"
                    acknowledged[text] = await client.send("t", text)

            tasks = [asyncio.create_task(work(name)) for name in range(40)]
            victims = tasks[::2]
            for victim in victims:
                await asyncio.sleep(chance.random() * 0.005)
                victim.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(end is None for end in ends[1::2])
            return sum(isinstance(end, asyncio.CancelledError) for end in ends[::2])

    cancelled_count = run(main())

    assert cancelled_count > 5
    (log,) = logs_of(broker.address, "t").values()
    texts = list(log.values())
    assert len(texts) == len(set(texts))
    assert all(log[receipt.offset] == text for text, receipt in acknowledged.items())
    assert len(acknowledged) >= 20 * 50
    # of each cancelled task at most the message it waited for is there besides
    assert len(texts) - len(acknowledged) - 1 <= cancelled_count


def frozen(start_process: ProcessFactory) -> tuple[Any, str]:
    """Start a broker to be paused."""
    process = start_process()
    return process, f"127.0.0.1:{process.port}"


def test_send_when_cancelled_while_it_waits_for_room_then_nothing_is_queued(
    start_process: ProcessFactory,
) -> None:
    process, address = frozen(start_process)

    async def main() -> None:
        async with (
            pylogctl.aconnect(address) as client,
            client.producer(buffer_bytes=1000) as producer,
        ):
            await producer.send("t", "first")
            await producer.flush()
            process.signal(signal.SIGSTOP)
            await producer.send("t", "in flight")
            await asyncio.sleep(0.05)
            await producer.send("t", "x" * 1000)
            waiting = [asyncio.create_task(producer.send("t", text)) for text in ("a", "b", "c")]
            await asyncio.sleep(0.05)
            assert not any(one.done() for one in waiting)
            waiting[0].cancel()
            waiting[1].cancel()
            await asyncio.sleep(0.05)
            assert not waiting[2].done()
            process.signal(signal.SIGCONT)
            await (await waiting[2])

    run(main())

    (log,) = logs_of(address, "t").values()
    assert list(log.values()) == ["first", "in flight", "x" * 1000, "c"]


def test_send_when_the_buffer_stays_full_then_raises_at_its_deadline(
    start_process: ProcessFactory,
) -> None:
    process, address = frozen(start_process)

    async def main() -> None:
        async with pylogctl.aconnect(address) as client:
            producer = client.producer(buffer_bytes=1000)
            await client.send("t", "first")
            await producer.send("t", "second")
            await producer.flush()
            process.signal(signal.SIGSTOP)
            in_flight = await producer.send("t", "in flight")
            await asyncio.sleep(0.05)
            queued = await producer.send_many("t", ["x" * 500] * 2)
            started_s = time.monotonic()
            with pytest.raises(pylogctl.BufferFull, match="2 messages wait for broker 0"):
                await producer.send("t", "no room", timeout=0.5)
            assert 0.4 < time.monotonic() - started_s < _SOON_S
            with pytest.raises(pylogctl.TimedOut, match="not delivered after"):
                await producer.flush(timeout=0.1)
            with pytest.raises(pylogctl.TimedOut, match="is not acknowledged after"):
                await client.send("t", "late", timeout=0.2)
            started_s = time.monotonic()
            with pytest.raises(pylogctl.DeliveryFailed, match="messages of 2 sends were not"):
                await producer.close(timeout=0.2)
            assert time.monotonic() - started_s < _SOON_S
            assert isinstance(in_flight.exception(), pylogctl.Closed)
            with pytest.raises(pylogctl.Closed, match="was closed before this was delivered"):
                await queued
            with pytest.raises(pylogctl.Closed):
                await producer.send("t", "x")
            process.signal(signal.SIGCONT)

    run(main())


def test_failures_when_nobody_reads_them_then_are_raised_once_by_flush_or_close(
    small: Broker,
) -> None:
    async def main() -> None:
        async with pylogctl.aconnect(small.address) as client:
            producer = client.producer()
            large = await producer.send("t", "x" * 1001)
            await producer.send("t", "y" * 1001)
            with pytest.raises(pylogctl.DeliveryFailed, match="messages of 2 sends"):
                await producer.flush()
            with pytest.raises(pylogctl.TooLarge):
                large.result()
            await producer.flush()
            read = await producer.send("t", "z" * 1001)
            await producer.send("t", "z" * 1001)
            with pytest.raises(pylogctl.TooLarge):
                await read
            with pytest.raises(pylogctl.DeliveryFailed, match="messages of 1 send "):
                await producer.close()
            with pytest.raises(pylogctl.TooLarge):
                await client.send("t", "x" * 1001)
            with pytest.raises(pylogctl.TooLarge, match="the limit is"):
                await client.send("t", "x" * 1_000_001)

    run(main())


def test_send_many_when_the_brokers_refuse_one_then_that_one_fails_alone(small: Broker) -> None:
    values = [b"%d" % number for number in range(300)]
    values[10] = b"x" * 1001

    async def main() -> tuple[pylogctl.Partial, list[bool]]:
        async with pylogctl.aconnect(small.address) as client:
            with pytest.raises(pylogctl.Partial, match=r"^1 of 300 messages") as caught:
                await client.send_many("t", values, key="k")
            async with client.producer() as producer:
                sent = [await producer.send("u", one, key="k") for one in values]
                with pytest.raises(pylogctl.DeliveryFailed, match="messages of 1 send "):
                    await producer.flush()
            return caught.value, [one.exception() is not None for one in sent]

    error, has_failed = run(main())
    assert list(error.failed) == ["10"]
    assert isinstance(error.failed["10"], pylogctl.TooLarge)
    assert [place for place, one in enumerate(has_failed) if one] == [10]
    with pylogctl.connect(small.address) as client:
        for topic in ("t", "u"):
            assert [one.value for one in client.read(topic)] == values[:10] + values[11:]


def test_with_when_left_by_an_error_then_ends_soon_and_the_error_passes(
    start_process: ProcessFactory, caplog: pytest.LogCaptureFixture
) -> None:
    process, address = frozen(start_process)

    async def main() -> None:
        async with pylogctl.aconnect(address) as client:
            with pytest.raises(ZeroDivisionError):
                async with client.producer() as producer:
                    await (await producer.send("t", "first"))
                    process.signal(signal.SIGSTOP)
                    started_s = time.monotonic()
                    await producer.send("t", "x")
                    raise ZeroDivisionError
            assert time.monotonic() - started_s < _SOON_S
            process.signal(signal.SIGCONT)

    run(main())

    assert "messages of 1 send were not delivered" in caplog.text


def test_connection_when_it_breaks_again_and_again_then_nothing_is_missing_or_invented(
    pylog_faults: Faults,
) -> None:
    async def main() -> tuple[list[str], dict[str, pylogctl.Receipt]]:
        async with (
            pylogctl.aconnect(pylog_faults.address) as client,
            client.producer() as producer,
        ):
            load = Load(producer, "t")
            for number in range(6):
                await load.progress(50)
                if number % 2:
                    pylog_faults.cut_after(number)
                else:
                    pylog_faults.drop()
            await load.progress(50)
            return load.sent, await load.end()

    sent, acknowledged = run(main())

    assert len(acknowledged) == len(sent)
    check(logs_of(pylog_faults.broker.address, "t"), acknowledged, sent)


def test_loop_when_it_is_held_up_then_messages_arrive_once(small: Broker) -> None:
    async def main() -> tuple[list[str], dict[str, pylogctl.Receipt]]:
        async with pylogctl.aconnect(small.address) as client, client.producer() as producer:
            load = Load(producer, "t")
            for _ in range(4):
                await load.progress(100)
                time.sleep(0.4)  # as a handler that computes
            return load.sent, await load.end()

    sent, acknowledged = run(main())

    assert check(logs_of(small.address, "t"), acknowledged, sent) == 0


def test_sends_when_one_task_never_waits_then_others_have_their_turns(small: Broker) -> None:
    async def main() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with pylogctl.aconnect(small.address) as client, client.producer() as producer:
            await producer.send("t", "first")
            other = asyncio.create_task(count())
            for number in range(64 * 50):
                await producer.send("t", str(number))
            other.cancel()
            return turns

    assert run(main()) >= 49


@pytest.mark.parametrize("acks", [pylogctl.Acks.NONE, pylogctl.Acks.WRITTEN, pylogctl.Acks.AUTO])
def test_acks_when_others_than_committed_then_all_is_there_in_order(
    small: Broker, acks: pylogctl.Acks
) -> None:
    async def main() -> list[pylogctl.Receipt]:
        async with pylogctl.aconnect(small.address) as client:
            await client.send("t", "first", partition=0)
            async with client.producer(acks=acks) as producer:
                deliveries = [
                    await producer.send("t", str(number), partition=0) for number in range(1000)
                ]
            return [await one for one in deliveries]

    receipts = run(main())

    with pylogctl.connect(small.address) as client:
        client.send("t", "last", partition=0)  # commits what is before it
    log = next(iter(logs_of(small.address, "t").values()))
    assert list(log.values()) == ["first", *map(str, range(1000)), "last"]
    if acks is pylogctl.Acks.NONE:
        assert {(one.offset, one.next_offset) for one in receipts} == {(-1, -1)}
    else:
        assert [one.offset for one in receipts] == list(log)[1:-1]


def test_producer_when_the_broker_is_of_07_then_messages_are_handed_over_in_order(
    small: Broker,
) -> None:
    old = Server(as_true_07_broker(small.port))

    async def main() -> list[pylogctl.Receipt]:
        async with pylogctl.aconnect(f"127.0.0.1:{old.port}") as client:
            async with client.producer() as producer:
                deliveries = [
                    await producer.send("t", str(number), partition=0) for number in range(500)
                ]
            return [await one for one in deliveries]

    try:
        receipts = run(main())
    finally:
        old.stop()

    assert {one.offset for one in receipts} == {-1}
    with pylogctl.connect(small.address) as client:
        client.send("t", "last", partition=0)
    assert list(logs_of(small.address, "t").popitem()[1].values()) == [
        *map(str, range(500)),
        "last",
    ]


def test_producer_when_used_by_another_loop_then_names_both(small: Broker) -> None:
    loop = asyncio.new_event_loop()
    client = loop.run_until_complete(connected(small.address))
    producer = client.producer
    made = loop.run_until_complete(called(producer))

    with pytest.raises(RuntimeError, match=r"belongs to <.*, and is used in <"):
        asyncio.run(made.send("t", "x"))

    loop.run_until_complete(client.close())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


async def connected(address: str) -> pylogctl.AsyncClient:
    return await pylogctl.aconnect(address)


async def called(make: Callable[[], _T]) -> _T:
    return make()


@pytest.mark.parametrize(
    ("arguments", "named", "error", "text"),
    [
        (("t", 1), {}, TypeError, "give one message as bytes or str, not int"),
        (("t", ["a"]), {}, TypeError, "for several messages: send_many"),
        ((1, "x"), {}, TypeError, "give the topic as str"),
        (("a/b", "x"), {}, pylogctl.InvalidName, "a/b"),
        (("t", "x"), {"key": 1}, TypeError, "give the key"),
        (("t", "x"), {"partition": 1.5}, TypeError, "give the partition"),
        (("t", "x"), {"timeout": "1"}, TypeError, "give timeout as a number"),
        (("t", "x"), {"partition": 7}, ValueError, "7 is not one partition of topic 't'"),
    ],
)
def test_send_when_an_argument_is_wrong_then_says_what_to_pass(
    small: Broker, arguments: Any, named: Any, error: type[Exception], text: str
) -> None:
    async def main() -> None:
        async with pylogctl.aconnect(small.address) as client:
            async with client.producer() as producer:
                for send in (client.send, producer.send):
                    with pytest.raises(error, match=text):
                        await send(*arguments, **named)
            with pytest.raises(TypeError, match="for one: send"):
                await client.send_many("t", "text")
            with pytest.raises(pylogctl.Closed):
                await producer.send("t", "x")
        with pytest.raises(pylogctl.Closed):
            await client.send("t", "x")

    run(main())


def test_delivery_when_awaited_by_several_tasks_then_a_cancelled_one_takes_nothing(
    small: Broker,
) -> None:
    async def main() -> None:
        called: list[str] = []
        async with pylogctl.aconnect(small.address) as client, client.producer() as producer:
            delivery = await producer.send("t", "x")
            with pytest.raises(asyncio.InvalidStateError):
                delivery.result()
            delivery.add_done_callback(lambda one: called.append(repr(one)))
            delivery.add_done_callback(lambda one: 1 // 0)

            async def get() -> pylogctl.Receipt:
                return await delivery

            tasks = [asyncio.create_task(get()) for _ in range(3)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            receipts = await asyncio.gather(*tasks[1:])
            assert receipts == [await delivery] * 2
            assert delivery.exception() is None
            empty = await producer.send_many("t", [])
            assert (await empty).offset == -1
        assert called == ["AsyncDelivery(t, done)"]

    run(main())


def test_topic_when_new_then_a_reader_finds_it_after_the_first_send(small: Broker) -> None:
    async def main() -> list[list[str]]:
        async with pylogctl.aconnect(small.address) as client:

            async def one(number: int) -> list[str]:
                await client.send(f"new{number % 3}", "x")
                return [each.text() async for each in client.read(f"new{number % 3}")][:1]

            return await asyncio.gather(*(one(number) for number in range(30)))

    assert run(main()) == [["x"]] * 30


def test_written_when_the_broker_has_lost_it_then_flush_says_so(
    start_process: ProcessFactory, tmp_path: Path
) -> None:
    port = str(port_of_its_own())
    never_flushed = ("-X", "log.default.flush.interval.ms=3600000", "--port", port)
    brokers = [start_process(*never_flushed)]

    def crash() -> None:
        brokers[-1].kill()
        (segment,) = (tmp_path / "data" / "t_0").glob("*.pylog")
        segment.write_bytes(segment.read_bytes()[:-3])  # as after a power failure
        brokers.append(start_process(*never_flushed))

    async def main() -> None:
        async with (
            pylogctl.aconnect(f"127.0.0.1:{port}") as client,
            client.producer(acks=pylogctl.Acks.WRITTEN) as producer,
        ):
            await (await producer.send("t", "kept"))
            await (await producer.send("t", "lost"))
            await producer.flush()
            await asyncio.to_thread(crash)
            await (await producer.send("t", "later"))
            with pytest.raises(pylogctl.Error, match="were acknowledged as written"):
                await producer.flush()
            await producer.flush()

    run(main())


def test_send_when_the_broker_reads_nothing_and_acknowledges_nothing_then_fails_in_time(
    start_process: ProcessFactory,
) -> None:
    process, address = frozen(start_process)

    async def main() -> None:
        async with pylogctl.aconnect(address, timeout=5) as client:
            producer = client.producer(acks=pylogctl.Acks.NONE)
            await (await producer.send("t", "first"))
            process.signal(signal.SIGSTOP)
            deliveries = [await producer.send("t", "x" * 900_000) for _ in range(25)]
            async with asyncio.timeout(60):
                with pytest.raises((pylogctl.TimedOut, pylogctl.Unreachable)):
                    for one in deliveries:
                        await one
            with pytest.raises(pylogctl.DeliveryFailed):
                await producer.close(timeout=0)
            process.signal(signal.SIGCONT)

    run(main())


def test_close_when_its_task_is_cancelled_then_the_rest_fails_at_once(
    start_process: ProcessFactory,
) -> None:
    process, address = frozen(start_process)

    async def main() -> None:
        async with pylogctl.aconnect(address) as client:
            producer = client.producer()
            await (await producer.send("t", "first"))
            process.signal(signal.SIGSTOP)
            late = await producer.send("t", "late")
            closing = asyncio.create_task(producer.close())
            await asyncio.sleep(0.1)
            assert not late.done()
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            with pytest.raises(pylogctl.Closed):
                late.result()
            process.signal(signal.SIGCONT)

    run(main())


def test_client_when_closed_then_its_producers_flush_in_the_time_of_the_call(
    start_process: ProcessFactory,
) -> None:
    process, address = frozen(start_process)

    async def main() -> None:
        client = await pylogctl.aconnect(address)
        good = client.producer(linger=60)
        delivery = await good.send("t", "first")
        await good.close()
        assert delivery.result().offset == 0
        producers = [client.producer(linger=60) for _ in range(3)]
        for producer in producers:
            await (await producer.send_many("t", []))
            await producer.send("t", "late")
        process.signal(signal.SIGSTOP)
        started_s = time.monotonic()
        with pytest.raises(pylogctl.DeliveryFailed):
            await client.close(timeout=0.5)
        assert time.monotonic() - started_s < _SOON_S
        process.signal(signal.SIGCONT)

    run(main())


def test_send_when_another_broker_is_frozen_then_neither_it_nor_the_loop_waits(
    start_process: ProcessFactory, tmp_path: Path
) -> None:
    brokers = [
        start_process(
            *("-X", f"brokerid={number}", "-X", "num.partitions=2"), data=tmp_path / f"data{number}"
        )
        for number in range(2)
    ]
    address = ",".join(f"127.0.0.1:{one.port}" for one in brokers)
    lags: list[float] = []

    async def tick() -> None:
        while True:
            started_s = time.monotonic()
            await asyncio.sleep(0.01)
            lags.append(time.monotonic() - started_s)

    async def main() -> float:
        async with pylogctl.aconnect(address) as client, client.producer() as producer:
            for name in ("0-0", "1-0"):
                await (await producer.send("t", "first", partition=name))
            await asyncio.sleep(1.1)  # the partitions of a new topic are read again
            await (await producer.send("t", "third", partition="0-1"))
            brokers[0].signal(signal.SIGSTOP)
            looking = asyncio.create_task(client.topics())
            await asyncio.sleep(0.1)
            stuck = await producer.send("t", "stuck", partition="0-0")
            ticking = asyncio.create_task(tick())
            started_s = time.monotonic()
            for number in range(200):
                await (await producer.send("t", str(number), partition=f"1-{number % 2}"))
            elapsed_s = time.monotonic() - started_s
            assert not stuck.done()
            brokers[0].signal(signal.SIGCONT)
            await asyncio.gather(stuck, looking)
            ticking.cancel()
            return elapsed_s

    # a look at the frozen broker takes 30 seconds
    assert run(main()) < _SOON_S
    assert max(lags) < _SOON_S
