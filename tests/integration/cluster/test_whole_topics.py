"""Topics without replicas while one of their brokers is dead: readers know all partitions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest

import pylogctl
from pylogctl.cli.environment import ExitStatus
from pylogctl.testing import Cluster, ephemeral_cluster
from tests.integration.cluster.away import DEAD, FOLLOWERS, filled, following, one_dead, options_of
from tests.support.command_line import Invoke, Spawn
from tests.support.command_line import clean_environment as clean_environment
from tests.support.command_line import invoke as invoke
from tests.support.command_line import spawn as spawn
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

LED = {"0-0", "0-1", "1-0", "1-1"}
AWAY = f"broker {DEAD} is away: 2 of 6 partitions of topic '{{}}' (2-0 .. 2-1) cannot be read"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(3) as running:
        yield running


@pytest.mark.parametrize("flag", ["-b", "-Z"])
def test_reads_when_a_broker_of_a_topic_without_replicas_is_dead_then_say_so_with_status_6(
    cluster: Cluster, invoke: Invoke, flag: str
) -> None:
    with cluster.broker(0).connect() as client:
        topic = filled(client, replicas=None)
    where = options_of(cluster, flag)
    with one_dead(cluster):
        read = invoke("consume", topic, "-o", "start", "-e", *where)
        allowed = invoke("consume", topic, "-o", "start", "-e", "--allow-missing", *where)
        others = [
            invoke("topic", "count", topic, *where),
            invoke("topic", "offsets", topic, *where),
            invoke("copy", topic, "copied", *where),
            invoke("mirror", "verify", "--include", topic, "--from", cluster.zookeeper, "--to",
                   cluster.zookeeper),
        ]  # fmt: skip
        listed = invoke("topic", "list", "--include", topic, *where)

    assert (read.status, set(read.text.split())) == (ExitStatus.PARTIAL, LED)
    assert f"error: {AWAY.format(topic)}" in read.stderr
    assert (allowed.status, set(allowed.text.split())) == (ExitStatus.OK, LED)
    for one in others:
        assert (one.status, AWAY.format(topic) in one.stderr) == (ExitStatus.PARTIAL, True)
    assert listed.status == ExitStatus.PARTIAL


def test_client_when_a_broker_of_a_topic_without_replicas_is_dead_then_gives_no_part_for_the_whole(
    cluster: Cluster,
) -> None:
    with pylogctl.connect(cluster.broker(0).address, retries=0) as client:
        topic = filled(client, replicas=None)
        with one_dead(cluster):
            for call in (client.read, client.count):
                with pytest.raises(pylogctl.Unreachable, match="2 of 6 partitions"):
                    call(topic)
            assert client.count(topic, allow_missing=True) == 4


def test_followers_when_a_broker_of_a_topic_without_replicas_is_dead_then_wait_for_it(
    cluster: Cluster, spawn: Spawn
) -> None:
    with cluster.broker(0).connect() as client:
        topic = filled(client, replicas=None)
    with ExitStack() as stack:
        with one_dead(cluster):
            tails = {
                kind: stack.enter_context(following(kind, cluster, topic, spawn))
                for kind in FOLLOWERS
            }
            for kind, got in tails.items():
                wait_until(partial(lambda got: set(got) == LED, got), f"what {kind} is to read")
        for kind, got in tails.items():
            wait_until(partial(lambda got: len(got) == 6, got), f"the rest for {kind}")
            assert set(got) == {*LED, "2-0", "2-1"}
