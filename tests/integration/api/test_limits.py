"""Odd limits, callbacks and threads: what must not hang, leak, or be swallowed."""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import pylogctl
from broker.errors import RequestTimeoutError
from broker.zk.session import Session
from pylogctl.testing import Broker, memory_cluster
from pylogctl.testing.brokers import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with memory_cluster() as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Iterator[pylogctl.Client]:
    with cluster.connect() as client:
        client.send("t", "first")
        yield client


def await_true(condition: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < give_up_s
        time.sleep(0.02)


def test_group_when_it_could_not_leave_in_time_then_the_next_member_gets_its_partitions(
    client: pylogctl.Client,
) -> None:
    group = client.group("left", "t", start="earliest")
    assert next(group).text() == "first"
    with pytest.raises(pylogctl.Error, match=r"in time|time limit"):
        group.close(0)
    await_true(lambda: not client.describe_group("left").members)
    with client.group("left", "t", start="earliest", idle=20) as other:
        assert next(other).text() == "first"


def test_group_when_the_response_to_joining_is_lost_then_no_member_is_left(
    client: pylogctl.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Session.create

    def lose_response(session: Session, path: str, *args: bytes, ephemeral: bool = False) -> None:
        create(session, path, *args, ephemeral=ephemeral)
        assert client.describe_group("joined").members
        raise RequestTimeoutError("lost")

    monkeypatch.setattr(Session, "create", lose_response)
    with pytest.raises(pylogctl.TimedOut):
        client.group("joined", "t")
    await_true(lambda: not client.describe_group("joined").members)


def test_calls_when_they_wait_on_purpose_then_that_is_besides_their_time_limit(
    cluster: Cluster, client: pylogctl.Client
) -> None:
    with client.group("waits", "t", start="earliest", idle=20) as group:
        next(group)
        group.close()
    # what is asked for takes less than the limit also on a machine that pauses for a moment
    with pylogctl.connect(cluster.address, timeout=2) as hasty:
        assert hasty.lag("waits", window=3).total_bytes is not None
        member = client.group("waits", "t")
        leaving = threading.Timer(3, member.close)
        leaving.start()
        (change,) = hasty.reset("waits", "t", to="earliest", wait_inactive=30)
        assert change.after == 0
        leaving.join()
        with client.group("waits", "t"):
            assert hasty.rebalance("waits", wait=30)


@pytest.mark.parametrize("timeout", [math.inf, 1e10, 1e300])
def test_timeout_when_it_has_no_end_then_it_is_none(timeout: float, cluster: Cluster) -> None:
    with pylogctl.connect(cluster.address, timeout=timeout) as client:
        client.send("endless", "x", timeout=timeout)
        assert [one.text() for one in client.read("endless", timeout=timeout, limit=1)] == ["x"]
        assert client.describe("endless", timeout=timeout)
        with client.producer() as producer:
            producer.send("endless", "y", timeout=timeout).result(timeout)
            producer.flush(timeout)
            producer.close(timeout)
        client.close(timeout)


def test_producer_when_a_callback_exits_then_later_messages_are_sent(
    client: pylogctl.Client,
) -> None:
    with client.producer(on_delivery=lambda _: sys.exit(1)) as producer:
        producer.send("t", "x").result(20)
        producer.send("t", "y").result(20)


def test_send_when_the_broker_is_away_for_a_moment_then_the_first_message_waits_for_it() -> None:
    with Broker() as broker, broker.connect(timeout=20) as client:
        with back_after_a_moment(broker):
            assert client.send("first", "x").offset == 0
        with back_after_a_moment(broker), client.producer() as producer:
            assert producer.send("second", "x").result().offset == 0
        with pylogctl.connect(broker.address, timeout=20, retries=0) as once:
            broker.kill()
            with pytest.raises(pylogctl.Unreachable):
                once.send("third", "x")


def test_async_send_when_the_broker_is_away_for_a_moment_then_the_first_message_waits_for_it() -> (
    None
):
    async def main(broker: Broker) -> None:
        async with pylogctl.aconnect(broker.address, timeout=20) as client:
            with back_after_a_moment(broker):
                assert (await client.send("first", "x")).offset == 0

    with Broker() as broker:
        asyncio.run(main(broker))


@contextmanager
def back_after_a_moment(broker: Broker) -> Iterator[None]:
    broker.kill()
    back = threading.Timer(0.5, broker.restart)
    back.start()
    yield
    back.join()


BAD: list[tuple[Callable[[pylogctl.Client], object], str]] = [
    (lambda c: c.producer(on_delivery=5), "give on_delivery as a function, not int"),  # type: ignore[arg-type]
    (lambda c: c.producer(partitioner="x"), "give partitioner as a function, not str"),  # type: ignore[arg-type]
    (lambda c: c.producer(batch_bytes=1.5), "give batch_bytes as an int, not float"),  # type: ignore[arg-type]
    (lambda c: c.read("t", limit=1.5), "give limit as an int, not float"),  # type: ignore[arg-type]
    (lambda c: c.read("t", read_from=5), "give read_from as str, not int"),  # type: ignore[arg-type]
    (lambda c: c.send_many("t", 5), "give several messages, such as a list, not int"),  # type: ignore[arg-type]
    (lambda c: c.group("g", 5), "give the topics as str, a pattern or several str, not int"),  # type: ignore[arg-type]
    (lambda c: c.group("g", "t", on_assigned=5), "give on_assigned as a function, not int"),  # type: ignore[arg-type]
    (lambda c: c.group("g", "t", on_revoked=5), "give on_revoked as a function, not int"),  # type: ignore[arg-type]
    (
        lambda c: c.group("g", "t").run(print, retry=5),  # type: ignore[arg-type]
        "give retry as a RetryPolicy, not int",
    ),
    (lambda c: c.group("g", "t", offsets=5), "give offsets as an OffsetStore, not int"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "text"), BAD, ids=[text for _, text in BAD])
def test_call_when_an_argument_is_of_another_type_then_says_what_to_pass(
    call: Callable[[pylogctl.Client], object], text: str, client: pylogctl.Client
) -> None:
    with pytest.raises(TypeError, match=text):
        call(client)


def test_group_when_a_second_thread_enters_then_it_is_told(client: pylogctl.Client) -> None:
    with client.group("threads", "t") as group:
        first = threading.Thread(target=lambda: next(group, None))
        first.start()
        await_true(lambda: group._is_inside)
        with pytest.raises(RuntimeError, match="being iterated"):
            next(group)
    first.join(20)
    assert not first.is_alive()
