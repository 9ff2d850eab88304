"""Readers without an end: partitions that are added, and brokers that are lost and come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest

import pylogctl
from pylogctl import Client
from pylogctl.testing import Cluster, ephemeral_cluster
from tests.integration.cluster.away import DEAD, FOLLOWERS, filled, following, one_dead, options_of
from tests.support.command_line import Spawn
from tests.support.command_line import clean_environment as clean_environment
from tests.support.command_line import spawn as spawn
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(3) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with cluster.broker(0).connect() as connected:
        yield connected


def names_of(client: Client, topic: str) -> set[str]:
    return {one.partition.name for one in client.describe(topic)}


def await_all(tails: dict[str, list[str]], has_come: Callable[[list[str]], bool]) -> None:
    for kind, got in tails.items():
        wait_until(partial(has_come, got), f"what {kind} is to read")


@pytest.mark.parametrize("replicas", [1, None])
def test_followers_when_partitions_are_added_then_all_read_them_from_their_beginning(
    cluster: Cluster, client: Client, spawn: Spawn, replicas: int | None
) -> None:
    topic = filled(client, replicas=replicas, count=3)
    with ExitStack() as stack:
        tails = {
            kind: stack.enter_context(following(kind, cluster, topic, spawn)) for kind in FOLLOWERS
        }
        await_all(tails, lambda got: len(got) == 3)
        before = names_of(client, topic)

        client.alter_topic(topic, partitions=6)
        added = names_of(client, topic) - before
        for name in added:
            client.send(topic, name, partition=name)

        assert len(added) == 3
        await_all(tails, lambda got: len(got) >= 6)
        for got in tails.values():
            assert sorted(got) == sorted(before | added)


def test_read_when_a_topic_of_its_pattern_is_made_later_then_reads_it_from_its_beginning(
    cluster: Cluster, client: Client, spawn: Spawn
) -> None:
    topic = filled(client, replicas=1, count=3)
    with following("pattern", cluster, topic, spawn) as got:
        client.send(f"{topic}-later", "new")

        wait_until(lambda: "new" in got, "its message")


def test_followers_when_a_broker_is_lost_then_others_are_read_and_it_is_read_again_once_back(
    cluster: Cluster, client: Client, spawn: Spawn, caplog: pytest.LogCaptureFixture
) -> None:
    topic = filled(client, replicas=1, count=3)
    everything = ["0-0", "1-0", "2-0"]
    with ExitStack() as stack:
        tails = {
            kind: stack.enter_context(following(kind, cluster, topic, spawn)) for kind in FOLLOWERS
        }
        await_all(tails, lambda got: len(got) == 3)
        with one_dead(cluster):
            tails |= {
                f"late {kind}": stack.enter_context(following(kind, cluster, topic, spawn))
                for kind in FOLLOWERS
            }
            # so long that readers wait for the broker, and not for a new leader any more
            wait_until(
                lambda: caplog.text.count("; waiting for it") == 6, "the news", deadline_s=60
            )
            client.send(topic, "meanwhile", partition="0-0")
            await_all(tails, lambda got: "meanwhile" in got)
        client.send(topic, "back", partition="2-0")

        await_all(tails, lambda got: "back" in got)
        wait_until(lambda: caplog.text.count("can be read again") >= 6, "the word of each reader")
        for got in tails.values():
            assert sorted(got) == sorted([*everything, "meanwhile", "back"])
    assert caplog.text.count("; waiting for it") == 6  # once for each reader in this process
    assert caplog.text.count("can be read again") == 6


@pytest.mark.parametrize("flag", ["-b", "-Z"])
def test_consume_when_a_broker_is_dead_then_says_once_that_it_waits_and_once_that_it_is_back(
    cluster: Cluster, client: Client, spawn: Spawn, flag: str
) -> None:
    topic = filled(client, replicas=1)
    with one_dead(cluster):
        process = spawn("consume", topic, "-o", "start", "-u", *options_of(cluster, flag))
        assert process.stdout is not None
        got = {process.stdout.readline().strip() for _ in range(4)}
    got |= {process.stdout.readline().strip() for _ in range(2)}
    process.terminate()
    _, errors = process.communicate(timeout=60)

    assert got == {b"0-0", b"0-1", b"1-0", b"1-1", b"2-0", b"2-1"}
    away = f"broker {DEAD} is away: 2 of 6 partitions of topic '{topic}' (2-0 .. 2-1)"
    assert errors.decode().splitlines()[:-1] == [
        f"warning: {away} cannot be read; waiting for it",
        f"warning: 2 partitions of topic '{topic}' (2-0 .. 2-1) can be read again",
    ]


def test_read_when_all_brokers_of_its_partitions_are_lost_then_raises(
    cluster: Cluster, client: Client
) -> None:
    topic = filled(client, replicas=1)
    with cluster.broker(0).connect(timeout=1) as other:
        reader = other.read(topic, partition=["2-0", "2-1"], stop=None)
        assert {next(reader).text(), next(reader).text()} == {"2-0", "2-1"}
        with one_dead(cluster), pytest.raises((pylogctl.Unreachable, pylogctl.TimedOut)):
            next(reader)
