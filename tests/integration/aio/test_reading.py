"""Reading in an event loop: the same messages as by threads, whatever is cancelled or lost."""

from __future__ import annotations

import asyncio
import gc
import random
import re
import threading
import tracemalloc
from collections.abc import Callable, Coroutine

import pytest

import pylogctl
from broker.api.client import Client
from pylogctl.pytest_plugin import MakeBroker
from pylogctl.testing import Faults

Main = Callable[[], Coroutine[object, object, None]]


def run(main: Main, *, within_s: float = 60.0) -> None:
    """Run a test's coroutine; what the loop has to complain about is an error."""

    async def checked() -> None:
        complaints: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
        async with asyncio.timeout(within_s):
            await main()
        gc.collect()
        await asyncio.sleep(0)
        assert complaints == []

    asyncio.run(checked(), debug=True)


def filled(client: Client, topic: str, count: int, *, codec: str = "none") -> list[bytes]:
    values = [f"message {n}".encode() for n in range(count)]
    with client.producer(codec=codec, linger=0.01) as producer:  # type: ignore[arg-type]  # a literal
        for start in range(0, count, 100):
            producer.send_many(topic, values[start : start + 100])
    return values


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_read_when_asked_as_the_client_for_threads_then_gives_the_same(
    pylog: Client, pylog_address: str, pylog_topic: str, codec: str
) -> None:
    filled(pylog, pylog_topic, 3000, codec=codec)
    asked: list[dict[str, object]] = [
        {},
        {"start": "-5"},
        {"start": "-150", "stop": "-20"},
        {"stop": "+3"},
        {"limit": 7},
        {"limit": 0},
        {"filter": "7$"},
        {"filter": re.compile(b"nothing").pattern},
        {"start": "latest"},
        {"partition": 0, "start": {0: "-5"}},
        {"stop": None, "idle": 0.1, "start": "-5"},
    ]

    async def main() -> None:
        async with pylogctl.aconnect(pylog_address) as client:
            for how in asked:
                with pylog.read(pylog_topic, **how) as expected:  # type: ignore[arg-type]  # each is one of `read`'s
                    reader = client.read(pylog_topic, **how)  # type: ignore[arg-type]  # the same
                    found = [(one.offset, one.inner, one.value) async for one in reader]
                    assert found == [(one.offset, one.inner, one.value) for one in expected]
                    assert reader.positions == expected.positions
                    assert reader.ends == expected.ends
            batches = client.read_batches(pylog_topic, start="-150")
            values = [value async for batch in batches for value in batch.values()]
            assert values == [one.value for one in pylog.read(pylog_topic, start="-150")]

    run(main)


def test_read_when_it_follows_then_gives_what_is_sent_later_and_close_ends_it(
    pylog: Client, pylog_address: str, pylog_topic: str
) -> None:
    filled(pylog, pylog_topic, 10)

    async def main() -> None:
        async with (
            pylogctl.aconnect(pylog_address) as client,
            client.read(pylog_topic, start="latest", stop=None) as reader,
        ):
            found: list[str] = []

            async def follow() -> None:
                async for message in reader:
                    found.append(message.text())

            following = asyncio.create_task(follow())
            for n in range(3):
                await asyncio.to_thread(pylog.send, pylog_topic, f"late {n}")
                while len(found) <= n:
                    await asyncio.sleep(0.01)
            with pytest.raises(RuntimeError, match="another task uses this reader"):
                await anext(reader)
            await reader.close()
            await following
            assert found == ["late 0", "late 1", "late 2"]
            assert [one async for one in reader] == []
            with pytest.raises(pylogctl.Closed):
                await reader.seek(0, "earliest")

    run(main)


def test_read_when_cancelled_at_random_moments_then_loses_and_repeats_nothing(
    pylog: Client, pylog_topic: str
) -> None:
    draw = random.Random(22)
    values = filled(pylog, pylog_topic, 5000)

    async def main() -> None:
        with Faults() as faults:
            with faults.connect() as sender:
                filled(sender, pylog_topic, 5000)
            faults.delay(0.002)
            async with pylogctl.aconnect(faults.address) as client:
                reader = client.read(pylog_topic, start="earliest", stop="end")
                found: list[bytes] = []

                async def read() -> None:
                    async for message in reader:
                        found.append(message.value)
                        if not len(found) % 97:
                            await asyncio.sleep(0)

                cancelled = 0
                while True:
                    reading = asyncio.create_task(read())
                    await asyncio.sleep(draw.random() * 0.004)
                    cancelled += reading.cancel()
                    await asyncio.wait([reading])
                    if not reading.cancelled():
                        reading.result()
                        break
                assert found == values
                assert cancelled >= 3

    run(main)


def test_seek_when_in_the_middle_then_continues_there(
    pylog: Client, pylog_address: str, pylog_topic: str
) -> None:
    values = filled(pylog, pylog_topic, 2500)

    async def main() -> None:
        async with pylogctl.aconnect(pylog_address) as client:
            reader = await client.read(pylog_topic)
            found = [await anext(reader) for _ in range(1200)]
            await reader.seek(0, found[10].offset)
            assert (await anext(reader)).value == values[10]
            await reader.seek(0, "-3")
            assert [one.value async for one in reader] == values[-3:]
            with pytest.raises(pylogctl.Closed):
                await reader.seek(0, 0)
            other = await client.read(pylog_topic, start="end", stop=None)
            with pytest.raises(pylogctl.NotABoundary):
                await other.seek(0, found[10].offset + 1)
            with pytest.raises(pylogctl.Error, match="is not one partition of this reader"):
                await other.seek(7, 0)
            await other.seek(0, "-1")
            assert (await anext(other)).value == values[-1]

    run(main)


def test_read_when_the_consumer_is_slow_then_memory_is_bounded(
    pylog_own_broker: MakeBroker,
) -> None:
    broker = pylog_own_broker()
    with broker.connect() as client, client.producer() as producer:
        for _ in range(48):
            producer.send_many("large", [bytes(1 << 16)] * 16)

    async def main() -> None:
        async with (
            pylogctl.aconnect(broker.address) as client,
            client.read_batches("large") as batches,
        ):
            tracemalloc.start()
            try:
                read_bytes = 0
                async for batch in batches:
                    read_bytes += len(batch.data)
                    await asyncio.sleep(0.02)
                peak_bytes = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert read_bytes > 48 << 20
            assert peak_bytes < 10 << 20

    run(main)


def test_read_when_the_broker_is_killed_and_comes_back_then_continues(
    pylog_own_broker: MakeBroker,
) -> None:
    broker = pylog_own_broker({"log.flush.interval": "1"})
    with broker.connect() as client:
        values = filled(client, "t", 2000)

    async def main() -> None:
        async with pylogctl.aconnect(broker.address) as client:
            reader = client.read("t", stop=None, idle=20)
            found = [(await anext(reader)).value for _ in range(2000)]
            await asyncio.to_thread(broker.kill)
            waiting = asyncio.create_task(anext(reader))
            await asyncio.sleep(0.5)
            await asyncio.to_thread(broker.restart)
            with broker.connect() as sender:
                await asyncio.to_thread(sender.send, "t", "after")
            found.append((await waiting).value)
            assert found == [*values, b"after"]

    run(main)


def test_read_when_the_broker_is_gone_then_says_so_in_time(pylog_own_broker: MakeBroker) -> None:
    broker = pylog_own_broker()
    with broker.connect() as client:
        client.send("t", "x")

    async def main() -> None:
        async with pylogctl.aconnect(broker.address, timeout=1) as client:
            reader = client.read("t", stop=None)
            await anext(reader)
            await asyncio.to_thread(broker.kill)
            for _ in range(2):  # the second time, too: it is not at its end
                with pytest.raises(pylogctl.Unreachable):
                    await anext(reader)

    run(main)


def test_reader_when_closed_while_it_looks_for_a_leader_then_ends_normally() -> None:
    async def read_all(reader: pylogctl.AsyncReader) -> int:
        return len([one async for one in reader])

    with Faults() as faults:
        with faults.connect() as client:
            client.send("t", "x")

        async def main() -> None:
            async with pylogctl.aconnect(faults.address) as client:
                for wait_s in (0.1, 4.5):  # while it asks the broker; while it asks for another one
                    reader = await client.read("t", stop=None, timeout=8)
                    await anext(reader)
                    faults.delay(8)
                    following = asyncio.create_task(read_all(reader))
                    await asyncio.sleep(wait_s)
                    await reader.close()
                    assert await following == 0
                    faults.delay(0)

        run(main)


def test_read_when_the_broker_hangs_then_times_out_in_time() -> None:
    with Faults() as faults:
        with faults.connect() as client:
            client.send("t", "x")

        async def main() -> None:
            async with pylogctl.aconnect(faults.address) as client:
                reader = client.read("t", stop=None, timeout=1)
                await anext(reader)
                faults.delay(6)
                started_s = asyncio.get_running_loop().time()
                with pytest.raises(pylogctl.TimedOut):
                    await anext(reader)
                assert asyncio.get_running_loop().time() - started_s < 5
                faults.delay(0)

        run(main)


def test_read_when_it_cannot_begin_then_raises_what_the_other_client_raises(
    pylog: Client, pylog_address: str, pylog_topic: str
) -> None:
    filled(pylog, pylog_topic, 3)

    async def main() -> None:
        async with pylogctl.aconnect(pylog_address) as client:
            with pytest.raises(TypeError, match="give the topic as str"):
                client.read(5)  # type: ignore[arg-type]  # that is the test
            with pytest.raises(pylogctl.Error, match="limit is at least 0"):
                client.read(pylog_topic, limit=-1)
            with pytest.raises(pylogctl.UnknownTopic):
                await client.read("no-such-topic")
            with pytest.raises(pylogctl.UnknownTopic):
                async for _ in client.read("no-such-topic"):
                    pass
            with pytest.raises(pylogctl.NotABoundary):
                async with client.read(pylog_topic, start=1):
                    pass
            with pytest.raises(pylogctl.NotABoundary):
                async for _ in client.read_batches(pylog_topic, start=1):
                    pass
        with pytest.raises(pylogctl.Closed):
            client.read(pylog_topic)
        with pytest.raises(pylogctl.Closed):
            await client.topics()

    run(main)


def test_read_when_a_message_is_corrupt_then_gives_those_before_it_and_says_where(
    pylog_own_broker: MakeBroker,
) -> None:
    broker = pylog_own_broker()
    with broker.connect() as client:
        receipts = client.send_many("t", ["one", "two", "three"])
    broker.stop()
    (log,) = broker.data_dir.glob("t_0/*.pylog")
    data = bytearray(log.read_bytes())
    data[receipts[2].offset - 1] ^= 1
    log.write_bytes(data)
    broker.restart()

    async def main() -> None:
        async with pylogctl.aconnect(broker.address) as client:
            reader = client.read("t", start=0, stop=receipts[2].next_offset)
            assert (await anext(reader)).text() == "one"
            with pytest.raises(pylogctl.CorruptMessage, match=f"at {receipts[1].offset}"):
                await anext(reader)

    run(main)


def test_reader_when_dropped_or_left_then_its_connection_ends(
    pylog: Client, pylog_address: str, pylog_topic: str
) -> None:
    filled(pylog, pylog_topic, 3)

    async def main() -> None:
        async with pylogctl.aconnect(pylog_address) as client:
            async for _ in client.read(pylog_topic, stop=None):
                break
            async for _ in client.read_batches(pylog_topic, stop=None):
                break
            gc.collect()
            names: set[str] = set()
            for _ in range(3000):
                names = {one.name for one in threading.enumerate()}
                if not any("aio-reader" in one for one in names):
                    return
                await asyncio.sleep(0.01)
            pytest.fail(f"threads are left: {names}")

    run(main)


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_reader_when_closed_while_it_opens_then_ends_and_leaves_nothing(
    pylog: Client, pylog_address: str, pylog_topic: str, turns: int
) -> None:
    filled(pylog, pylog_topic, 3)

    async def main() -> None:
        async with pylogctl.aconnect(pylog_address) as client:
            reader = client.read(pylog_topic, stop=None)
            reading = asyncio.create_task(anext(reader, None))
            for _ in range(turns):
                await asyncio.sleep(0)
            await reader.close()
            assert await reading is None
            for _ in range(3000):
                if not any("aio-reader" in one.name for one in threading.enumerate()):
                    return
                await asyncio.sleep(0.01)
            pytest.fail("its thread is left")

    run(main)


def test_tasks_when_a_reader_has_much_in_hand_then_get_their_turn(
    pylog: Client, pylog_address: str, pylog_topic: str
) -> None:
    filled(pylog, pylog_topic, 20_000)

    async def main() -> None:
        async with pylogctl.aconnect(pylog_address) as client:
            reader = client.read(pylog_topic)
            await anext(reader)
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            counting = asyncio.create_task(count())
            read = [one async for one in reader]
            counting.cancel()
            assert len(read) == 19_999
            assert turns >= 15

    run(main)
