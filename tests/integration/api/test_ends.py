"""What a lost broker raises, what use after `close` does, and `poll` between the two."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from types import SimpleNamespace

import pytest

import pylogctl
from broker.api.group import Commit
from pylogctl.testing import Broker
from tests.support.waiting import wait_until

_MANY = [str(number) for number in range(2_500)]


def test_calls_when_the_broker_is_lost_then_raise_that_and_closed_only_after_close() -> None:
    with Broker() as broker, pylogctl.connect(broker.address, timeout=1) as client:
        client.send("t", "x")
        producer, reader = client.producer(), client.read("t", stop=None)
        producer.send("t", "y").result()
        assert [next(reader).text(), next(reader).text()] == ["x", "y"]
        broker.kill()

        delivery = producer.send("t", "z")
        with pytest.raises(pylogctl.Unreachable):
            next(reader)
        with pytest.raises(pylogctl.Unreachable):  # again: it is not at its end
            next(reader)
        with pytest.raises(pylogctl.Unreachable):
            reader.seek(0, 0)
        with pytest.raises(pylogctl.Unreachable):
            reader.poll(0)
        with pytest.raises(pylogctl.DeliveryFailed):
            producer.close(0.1)
        with pytest.raises(pylogctl.Unreachable):
            delivery.result()

        reader.close()
        assert list(reader) == []
        with pytest.raises(pylogctl.Closed):
            reader.seek(0, 0)
        with pytest.raises(pylogctl.Closed):
            reader.poll(0)
        with pytest.raises(pylogctl.Closed):
            producer.send("t", "x")


def test_calls_in_a_loop_when_the_broker_is_lost_then_raise_that_and_closed_only_after_close() -> (
    None
):
    async def main(broker: Broker) -> None:
        async with pylogctl.aconnect(broker.address, timeout=1) as client:
            await client.send("t", "x")
            producer, reader = client.producer(), await client.read("t", stop=None)
            await (await producer.send("t", "y"))
            assert [(await anext(reader)).text(), (await anext(reader)).text()] == ["x", "y"]
            broker.kill()

            delivery = await producer.send("t", "z")
            for _ in range(2):
                with pytest.raises(pylogctl.Unreachable):
                    await anext(reader)
            with pytest.raises(pylogctl.Unreachable):
                await reader.seek(0, 0)
            with pytest.raises(pylogctl.Unreachable):
                await reader.poll(0)
            with pytest.raises(pylogctl.DeliveryFailed):
                await producer.close(0.1)
            with pytest.raises(pylogctl.Unreachable):
                await delivery

            await reader.close()
            assert [one async for one in reader] == []
            with pytest.raises(pylogctl.Closed):
                await reader.seek(0, 0)
            with pytest.raises(pylogctl.Closed):
                await reader.poll(0)
            with pytest.raises(pylogctl.Closed):
                await producer.send("t", "x")

    with Broker() as broker:
        asyncio.run(main(broker))


def test_poll_when_a_reader_follows_then_gives_what_comes_and_none_before(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send_many(pylog_topic, ["a", "b"], key="k")
    with pylog.read(pylog_topic, stop=None) as reader:
        first, second = reader.poll(60), reader.poll(60)
        assert first is not None and second is not None
        assert [first.text(), second.text()] == ["a", "b"]
        assert [reader.poll(0), reader.poll(0.01)] == [None, None]
        pylog.send(pylog_topic, "c")
        assert next(reader).text() == "c"  # the iteration goes on behind a poll
        pylog.send(pylog_topic, "d")
        third = reader.poll(60)
        assert third is not None and third.text() == "d"


def test_poll_when_a_reader_is_at_its_end_then_gives_none(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send(pylog_topic, "a")
    reader = pylog.read(pylog_topic)
    assert reader.poll(60) is not None
    assert [reader.poll(60), reader.poll(60)] == [None, None]
    with pytest.raises(ValueError, match="timeout is at least 0"):
        reader.poll(-1)


def test_poll_when_a_filter_takes_nothing_then_ends_in_time(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send_many(pylog_topic, ["a", "b"])
    with pylog.read(pylog_topic, stop=None, filter="z") as reader:
        assert reader.poll(0.05) is None
        pylog.send(pylog_topic, "z")
        found = reader.poll(60)
        assert found is not None and found.text() == "z"


def test_poll_when_another_thread_closes_the_reader_then_gives_none_or_closed(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send(pylog_topic, "a")
    reader = pylog.read(pylog_topic, stop=None, start="latest")
    found: list[object] = []
    polling = threading.Thread(target=lambda: found.append(reader.poll(600)))
    polling.start()
    reader.close()
    polling.join(60)
    assert found in ([None], [])  # `Closed`, where the poll began later


@pytest.mark.parametrize("commit", ["after", "before", "manual"])
def test_poll_when_a_group_has_no_message_then_gives_none_and_goes_on(
    pylog_group: pylogctl.Client, commit: Commit
) -> None:
    pylog_group.send_many("orders", ["a", "b"], key="k")
    with pylog_group.group("billing", "orders", start="earliest", commit=commit) as group:
        first, second = group.poll(60), group.poll(60)
        assert first is not None and second is not None
        assert [first.text(), second.text()] == ["a", "b"]
        assert [group.poll(0), group.poll(0.05)] == [None, None]
        if commit == "manual":
            group.commit()
        pylog_group.send("orders", "c")
        assert next(iter(group)).text() == "c"
        pylog_group.send("orders", "d")
        third = group.poll(60)
        assert third is not None and third.text() == "d"
        if commit == "manual":
            group.commit()
    with pytest.raises(pylogctl.Closed):
        group.poll(0)
    end = third.next_offset if commit != "after" else third.offset
    assert pylog_group.offsets_of("billing") == {third.partition: end}


def test_poll_in_a_loop_when_nothing_comes_then_gives_none_and_loses_no_message(
    pylog_group: pylogctl.Client,
) -> None:
    async def main(address: str) -> list[str]:
        async with pylogctl.aconnect(address) as client:
            texts: list[str] = []
            await client.send_many("orders", ["a", "b"], key="k")
            async with (
                client.read("orders", stop=None) as reader,
                client.group("billing", "orders", start="earliest") as group,
            ):
                for one in (reader, group):
                    while len(texts) % 3 < 2:
                        if (message := await one.poll(0.001)) is not None:
                            texts.append(message.text())
                    assert await one.poll(0) is None
                    texts.append("-")
                await client.send("orders", "c")
                for one in (reader, group):
                    found = await one.poll(60)
                    assert found is not None
                    texts.append(found.text())
            with pytest.raises(pylogctl.Closed):
                await group.poll(0)
            return texts

    pylog_group.create_topic("orders")
    address = pylog_group.brokers()[0].address
    assert address is not None
    assert asyncio.run(main(address)) == ["a", "b", "-", "a", "b", "-", "c", "c"]


def test_poll_when_a_loop_waits_for_nothing_then_gives_all_messages(
    pylog_group: pylogctl.Client,
) -> None:
    pylog_group.send_many("orders", _MANY, key="k")
    with (
        pylog_group.read("orders", stop=None) as reader,
        pylog_group.group("billing", "orders", start="earliest") as group,
    ):
        for one in (reader, group):
            texts: list[str] = []

            def take(one: pylogctl.Reader | pylogctl.Group = one, to: list[str] = texts) -> bool:
                while (message := one.poll(0)) is not None:
                    to.append(message.text())
                return len(to) >= len(_MANY)

            wait_until(take, "the last message")
            assert texts == _MANY


def test_poll_in_a_loop_when_it_waits_for_nothing_then_gives_all_messages(
    pylog_group: pylogctl.Client,
) -> None:
    async def main(address: str) -> list[list[str]]:
        given = []
        async with (
            pylogctl.aconnect(address) as client,
            client.read("orders", stop=None) as reader,
            client.group("billing", "orders", start="earliest") as group,
            asyncio.timeout(120),
        ):
            for one in (reader, group):
                texts: list[str] = []
                while len(texts) < len(_MANY):
                    if (message := await one.poll(0)) is not None:
                        texts.append(message.text())
                given.append(texts)
        return given

    pylog_group.send_many("orders", _MANY, key="k")
    address = pylog_group.brokers()[0].address
    assert address is not None
    assert asyncio.run(main(address)) == [_MANY, _MANY]


@pytest.mark.parametrize("commit", ["after", "before", "manual"])
def test_poll_when_a_group_has_no_message_then_its_iteration_goes_on(
    pylog_group: pylogctl.Client, commit: Commit
) -> None:
    pylog_group.send("orders", "a", key="k")
    with pylog_group.group("billing", "orders", start="earliest", commit=commit) as group:
        texts = []
        for message in group:
            texts.append(message.text())
            assert [group.poll(0), group.poll(0.05)] == [None, None]
            if len(texts) == 2:
                break
            pylog_group.send("orders", "b", key="k")
        assert group.poll(0) is None
        pylog_group.send("orders", "c", key="k")
        assert [*texts, next(group).text()] == ["a", "b", "c"]


def test_poll_when_a_reader_is_iterated_by_for_then_none_of_its_chunk_is_lost(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send(pylog_topic, "a")
    texts = []
    with pylog.read(pylog_topic, stop=None, limit=4) as reader:
        for message in reader:
            texts.append(message.text())
            if message.text() == "a":
                pylog.send_many(pylog_topic, ["b", "c", "d"])
                polled = reader.poll(60)
                assert polled is not None
                texts.append(polled.text())
    assert texts == ["a", "b", "c", "d"]


@pytest.mark.parametrize("is_polled", [True, False])
def test_idle_when_the_program_takes_longer_itself_then_does_not_end_a_reader(
    pylog: pylogctl.Client, pylog_topic: str, monkeypatch: pytest.MonkeyPatch, is_polled: bool
) -> None:
    pylog.send(pylog_topic, "a")
    with pylog.read(pylog_topic, stop=None, idle=60) as reader:
        assert next(reader).text() == "a"
        if is_polled:
            assert reader.poll(0) is None
        later = SimpleNamespace(monotonic=lambda: time.monotonic() + 600)
        monkeypatch.setattr("broker.api.reader.time", later)
        arriving = threading.Timer(0.7, pylog.send, (pylog_topic, "b"))
        arriving.start()  # most often after a broker's first response without a message
        found = reader.poll(60) if is_polled else next(reader)
        arriving.join()
        assert found is not None and found.text() == "b"


def test_poll_when_idle_is_shorter_then_gives_none_and_ends_a_reader_alone(
    pylog_group: pylogctl.Client,
) -> None:
    async def main(address: str) -> None:
        async with (
            pylogctl.aconnect(address) as client,
            client.read("refunds", stop=None, idle=0.1) as reader,
            client.group("billing", "refunds", start="earliest", idle=0.1) as group,
        ):
            assert [await reader.poll(600), await group.poll(600)] == [None, None]
            await client.send("refunds", "b")
            assert await reader.poll(600) is None
            while (found := await group.poll(600)) is None:
                pass
            assert found.text() == "b"

    for topic in ("orders", "refunds"):
        pylog_group.create_topic(topic)
    with (
        pylog_group.read("orders", stop=None, idle=0.1) as reader,
        pylog_group.group("billing", "orders", start="earliest", idle=0.1) as group,
    ):
        assert [reader.poll(600), group.poll(600)] == [None, None]
        pylog_group.send("orders", "a")
        assert reader.poll(600) is None
        while (found := group.poll(600)) is None:
            pass
        assert found.text() == "a"
    address = pylog_group.brokers()[0].address
    assert address is not None
    asyncio.run(main(address))


def test_poll_when_another_thread_iterates_then_is_refused_and_that_one_goes_on(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.create_topic(pylog_topic)
    found: list[str] = []
    with pylog.read(pylog_topic, stop=None) as reader:
        iterating = threading.Thread(target=lambda: found.append(next(reader).text()))
        iterating.start()
        wait_until(
            lambda: inspect.getgeneratorstate(reader._chunks) == inspect.GEN_RUNNING,
            "the wait for a message",
        )
        for _ in range(2):
            with pytest.raises(RuntimeError, match="another thread uses this reader"):
                reader.poll(0)
        pylog.send(pylog_topic, "a")
        iterating.join(60)
    assert found == ["a"]


@pytest.mark.parametrize("timeout", [1e10, float("inf")])
def test_poll_when_its_timeout_is_endless_then_waits_for_the_next_message(
    pylog_group: pylogctl.Client, timeout: float
) -> None:
    pylog_group.create_topic("orders")
    with (
        pylog_group.read("orders", stop=None) as reader,
        pylog_group.group("billing", "orders", start="earliest") as group,
    ):
        sending = threading.Timer(0.1, pylog_group.send, ("orders", "a"))
        sending.start()  # most often after the polls began
        found = [group.poll(timeout), reader.poll(timeout)]
        sending.join()
        assert [one and one.text() for one in found] == ["a", "a"]
