"""Readers in an event loop while leaders of partitions move and die."""

from __future__ import annotations

import asyncio

import pytest

import pylogctl
from broker.client.controller_client import ask_controller
from broker.protocol.cluster_requests import CreateReplicatedTopicRequest
from broker.protocol.replica_requests import PARTITIONS
from pylogctl.testing import Cluster, ephemeral_cluster
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


def leader_of(client: pylogctl.Client, topic: str) -> int | None:
    """Return the broker that leads the one partition of a topic, None between two."""
    found = client._cluster.find_leaders([topic])
    return next(iter(found.values()), None)


def create(client: pylogctl.Client, topic: str) -> None:
    """Create a topic of one partition with two replicas."""
    request = CreateReplicatedTopicRequest(topic, 1, 2, ())
    made = PARTITIONS.decode(
        ask_controller(client._cluster.brokers(), client._connect, request, timeout_s=60)
    )
    wait_until(lambda: leader_of(client, topic) is not None, "a leader")
    assert len(made) == 1


@pytest.mark.parametrize("read_from", ["leader", "any"])
def test_reader_when_the_leader_moves_and_then_dies_then_reads_all_in_order(
    read_from: str,
) -> None:
    topic = f"events-{read_from}"

    async def main(cluster: Cluster, sender: pylogctl.Client) -> None:
        async with (
            pylogctl.aconnect(cluster.address) as client,
            client.read(topic, stop=None, read_from=read_from) as reader,
        ):
            found: list[str] = []

            async def follow() -> None:
                async for message in reader:
                    found.append(message.text())

            following = asyncio.create_task(follow())

            async def send(*texts: str) -> None:
                await asyncio.to_thread(sender.send_many, topic, texts)
                give_up_s = asyncio.get_running_loop().time() + 60
                while found[-len(texts) :] != list(texts):
                    assert not following.done()
                    assert asyncio.get_running_loop().time() < give_up_s, found
                    await asyncio.sleep(0.01)

            await send("a", "b")
            before = await asyncio.to_thread(leader_of, sender, topic)
            assert before is not None
            others = [one for one in range(3) if one != before]
            moving = await client.reassign(topic, others)
            assert isinstance(moving, pylogctl.AsyncReassignment)
            await moving.wait(60)
            assert await moving.progress() == []
            await send("c", "d")
            # a broker that has not got the news yet names the former leader
            await asyncio.to_thread(
                wait_until, lambda: leader_of(sender, topic) in others, "the next leader"
            )
            after = await asyncio.to_thread(leader_of, sender, topic)
            assert after is not None
            await asyncio.to_thread(cluster.broker(after).kill)
            await send("e", "f")
            assert found == ["a", "b", "c", "d", "e", "f"]
            following.cancel()

    with ephemeral_cluster(3) as cluster, cluster.connect() as sender:
        create(sender, topic)
        asyncio.run(main(cluster, sender))
