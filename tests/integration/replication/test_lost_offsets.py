"""Every kind of reader passes messages that a broker's disk has lost, and says so once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

import pylogctl
from broker.errors import DataLossError
from pylogctl.testing import Broker, Cluster, ephemeral_cluster
from tests.support.command_line import Invoke
from tests.support.spark_rows import plan, run, values
from tests.support.waiting import wait_until

SENT = [b"%03d" % number for number in range(200)]
PER_SEGMENT = 40
SIZE = 13
SETTINGS = {"log.file.size": str(PER_SEGMENT * SIZE - 1)}


def shorten(broker: Broker, number: int) -> int:
    """Kill a broker, take 7 bytes from a flushed segment of `events`, and start it again.

    Returns the number of the message that they are of.
    """
    broker.restart()  # which writes how much is flushed
    broker.kill()
    segment = sorted(broker.data_dir.rglob("events_0/*.pylog"))[number]
    os.truncate(segment, segment.stat().st_size - 7)
    broker.restart()
    return (int(segment.stem) + segment.stat().st_size) // SIZE


def write(client: pylogctl.Client) -> None:
    for value in SENT:
        client.send("events", value)


@pytest.fixture(params=[1, -1], ids=["in the middle", "at the end"])
def lost(request: pytest.FixtureRequest, broker: Broker) -> int:
    """The number of the message that the broker has lost; it has got another one since."""
    with broker.connect() as client:
        client.create_topic("events", partitions=1)
        write(client)
    number = shorten(broker, request.param)
    with broker.connect() as client:
        assert client.send("events", b"new").offset == len(SENT) * SIZE
    return number


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as started:
        yield started


@pytest.fixture
def left(lost: int) -> list[bytes]:
    return [*SENT[:lost], *SENT[lost + 1 :], b"new"]


def loss_of(number: int) -> str:
    return f"lost the messages from offset {number * SIZE} to {(number + 1) * SIZE}"


def test_read_when_messages_were_lost_then_the_others_come_and_it_is_said_once(
    broker: Broker, lost: int, left: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    with broker.connect() as client:
        assert [one.value for one in client.read("events")] == left
        assert caplog.text.count(loss_of(lost)) == 1
        assert client.count("events") == len(left)


def test_read_of_asyncio_when_messages_were_lost_then_the_others_come_and_it_is_said_once(
    broker: Broker, lost: int, left: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    async def read() -> list[bytes]:
        async with await pylogctl.aconnect(broker.address) as client:
            return [one.value async for one in client.read("events")]

    assert asyncio.run(read()) == left
    assert caplog.text.count(loss_of(lost)) == 1


@pytest.mark.parametrize("options", [(), ("--grep", "."), ("--grep", ".", "--grep-at", "broker")])
def test_consume_when_messages_were_lost_then_the_others_come_with_a_warning(
    broker: Broker, lost: int, left: list[bytes], invoke: Invoke, options: tuple[str, ...]
) -> None:
    result = invoke("consume", "events", "-o", "start", "-e", "-b", broker.address, *options)
    assert (result.status, result.stdout.splitlines()) == (0, left)
    assert result.stderr.count(loss_of(lost)) == 1


def test_offset_of_lost_messages_when_asked_for_then_the_next_message_comes(
    broker: Broker, lost: int, left: list[bytes], invoke: Invoke
) -> None:
    ask = ("consume", "events", "-e", "-n", "1", "-b", broker.address, "-o")
    start, end = lost * SIZE, (lost + 1) * SIZE
    assert invoke(*ask, f"{start}").stdout.splitlines() == [left[lost]]
    assert invoke(*ask, f"~{start + 1}").stdout.splitlines() == [left[lost]]
    assert f"nearest are {start} and {end}" in invoke(*ask, f"{start + 1}").stderr


def test_copy_when_messages_were_lost_then_the_others_are_copied(
    broker: Broker, left: list[bytes], invoke: Invoke
) -> None:
    assert invoke("copy", "events", "copied", "-b", broker.address).status == 0
    with broker.connect() as client:
        assert [one.value for one in client.read("copied")] == left


def test_start_when_messages_were_lost_before_then_nothing_more_is(
    broker: Broker, left: list[bytes]
) -> None:
    for _ in range(2):
        broker.kill()
        broker.restart()
        with broker.connect() as client:
            assert [one.value for one in client.read("events")] == left


def test_load_when_messages_were_lost_then_fails_unless_that_is_borne(
    broker: Broker, lost: int, left: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    options = {"brokers": broker.address, "subscribe": "events"}
    with pytest.raises(DataLossError, match="its broker has lost the messages from offset"):
        run(plan(options), options)
    borne = {**options, "failOnDataLoss": "false"}
    assert values(run(plan(borne), borne)) == left


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    settings = {**SETTINGS, "zk.sessiontimeout.ms": "2000"}
    with ephemeral_cluster(3, settings) as started:
        yield started


@pytest.mark.zookeeper
def test_group_when_messages_were_lost_then_the_others_come_also_after_replication(
    cluster: Cluster, invoke: Invoke
) -> None:
    with cluster.connect() as client:
        client.create_topic("events", partitions=1)
        write(client)
        (home,) = [one for one in cluster.brokers if any(one.data_dir.glob("events_0/*"))]
        lost = shorten(home, 1)
        left = [*SENT[:lost], *SENT[lost + 1 :], b"new"]
        client.send("events", b"new")
        got = []
        with client.group("g", ["events"], start="start") as group:
            for message in group:
                got.append(message.value)
                if message.value == b"new":
                    break
        assert got == left
        place = ("-b", cluster.address)
        altered = invoke("topic", "alter", "events", "--replication-factor", "3", "--yes", *place)
        assert altered.status == 0, altered.stderr
        await_equal(client, invoke, cluster)
        home.stop()
        assert [one.value for one in client.read("events")] == left


@pytest.mark.zookeeper
@pytest.mark.parametrize("number", [1, -1])
@pytest.mark.parametrize("place", [0, 1], ids=["leader", "follower"])
def test_replica_when_a_segment_was_shortened_then_it_is_copied_again_from_the_leader(
    cluster: Cluster, invoke: Invoke, number: int, place: int
) -> None:
    with cluster.connect() as client:
        client.create_topic("events", partitions=1, replicas=3)
        write(client)
        (partition,) = client.describe("events")
        shorten(cluster.broker(partition.replicas[place]), number)
        await_equal(client, invoke, cluster)
        assert [one.value for one in client.read("events")] == SENT


def await_equal(client: pylogctl.Client, invoke: Invoke, cluster: Cluster) -> None:
    """Wait until all replicas are in sync and equal; one that has restarted counts for a while."""

    def are_equal() -> bool:
        compared = invoke("log", "compare", "events", "-b", cluster.address)
        return compared.status == 0 and all(
            len(one.in_sync) == 3 for one in client.describe("events")
        )

    wait_until(are_equal, "all replicas in sync, and equal")
