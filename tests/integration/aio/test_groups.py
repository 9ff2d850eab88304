"""Groups in an event loop, at brokers with a ZooKeeper."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections.abc import Iterator

import pytest

import pylogctl
from pylogctl.testing import Cluster, ephemeral_cluster

pytestmark = pytest.mark.zookeeper

_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(2) as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """A topic with four messages, and one that marks the end."""
    name = f"orders-{next(_numbers)}"
    with cluster.connect() as client:
        client.send_many(name, ["a", "b", "c", "d", "end"], key="k")
    return name


async def read(
    client: pylogctl.AsyncClient, topic: str, limit: int = 99, **how: object
) -> list[str]:
    """Return what the next member gets before the end, or so many messages."""
    got: list[str] = []
    async with client.group("billing", topic, start="earliest", idle=60, **how) as group:  # type: ignore[arg-type]  # each is one of `group`'s
        async for message in group:
            if message.text() == "end":
                break
            got.append(message.text())
            if len(got) == limit:
                break
    return got


def test_group_when_left_then_the_next_member_goes_on_behind_what_was_handled(
    cluster: Cluster, topic: str
) -> None:
    async def main() -> None:
        async with pylogctl.aconnect(cluster.address) as client:
            # a message in hand when the loop is left does not count
            assert await read(client, topic, limit=2) == ["a", "b"]
            assert await read(client, topic) == ["b", "c", "d"]
            assert await read(client, topic) == []

    asyncio.run(main())


def test_group_when_positions_are_committed_before_then_no_message_comes_twice(
    cluster: Cluster, topic: str
) -> None:
    async def main() -> None:
        async with pylogctl.aconnect(cluster.address) as client:
            assert await read(client, topic, limit=2, commit="before") == ["a", "b"]
            assert await read(client, topic, commit="before") == ["c", "d"]

    asyncio.run(main())


def test_group_when_commits_are_manual_then_only_what_was_committed_counts(
    cluster: Cluster, topic: str
) -> None:
    async def main() -> None:
        async with pylogctl.aconnect(cluster.address) as client:
            async with client.group(
                "billing", topic, start="earliest", commit="manual", idle=60
            ) as group:
                assert (await anext(group)).text() == "a"
                assert (await anext(group)).text() == "b"
                await group.commit()  # with the message in hand
                assert (await anext(group)).text() == "c"
            assert await read(client, topic) == ["c", "d"]
            with pytest.raises(pylogctl.Closed):
                await group.commit()

    asyncio.run(main())


def test_group_when_cancelled_at_random_moments_then_every_message_comes_once(
    cluster: Cluster,
) -> None:
    draw = random.Random(22)
    topic = f"many-{next(_numbers)}"
    values = [f"m{n}" for n in range(3000)]
    with cluster.connect() as sender, sender.producer(codec="gzip", linger=0.01) as producer:
        for start in range(0, 3000, 100):
            producer.send_many(topic, values[start : start + 100], key="k")

    async def main() -> None:
        async with pylogctl.aconnect(cluster.address) as client:
            group = client.group("billing", topic, start="earliest", filter=".", idle=3)
            found: list[str] = []

            async def handle() -> None:
                async for message in group:
                    found.append(message.text())

            cancelled = 0
            while True:
                handling = asyncio.create_task(handle())
                await asyncio.sleep(draw.random() * 0.05)
                if len(found) < 3000:
                    cancelled += handling.cancel()
                await asyncio.wait([handling])
                if not handling.cancelled():
                    handling.result()
                    break
            assert found == values
            assert cancelled
            assert group.member_id.startswith("billing")
            assert {one.topic for one in group.assigned} == {topic}
            await group.close()

    asyncio.run(main())


def test_group_when_closed_by_another_task_then_its_iteration_ends(
    cluster: Cluster, topic: str
) -> None:
    async def main() -> None:
        async with pylogctl.aconnect(cluster.address) as client:
            group = await client.group("billing", re.compile(re.escape(topic)), start="earliest")
            got: list[str] = []

            async def handle() -> None:
                async for message in group:
                    got.append(message.text())

            handling = asyncio.create_task(handle())
            while len(got) < 5:
                await asyncio.sleep(0.01)
            with pytest.raises(RuntimeError, match="another task uses this group"):
                await anext(group)
            await group.close()
            await handling
            assert got == ["a", "b", "c", "d", "end"]

    asyncio.run(main())


def test_group_when_sought_then_continues_there(cluster: Cluster, topic: str) -> None:
    async def main() -> None:
        async with (
            pylogctl.aconnect(cluster.address) as client,
            client.group("billing", topic, start="earliest") as group,
        ):
            first = await anext(group)
            await anext(group)
            await group.seek(first.partition, first.offset)
            assert [(await anext(group)).text() for _ in range(2)] == ["a", "b"]
            with pytest.raises(pylogctl.Error, match="is not one assigned partition"):
                await group.seek(77, "end")

    asyncio.run(main())


def test_groups_when_two_members_share_a_topic_then_each_message_comes_to_one(
    cluster: Cluster,
) -> None:
    topic = f"shared-{next(_numbers)}"
    with cluster.connect() as client:
        for index in range(2):  # one partition on each broker
            client.send(topic, f"warm {index}")

    async def main() -> None:
        async with pylogctl.aconnect(cluster.address) as client:
            got: list[str] = []

            async def member() -> None:
                async with client.group("billing", topic, start="earliest", idle=4) as group:
                    async for message in group:
                        got.append(message.text())

            async with asyncio.TaskGroup() as members:
                for _ in range(2):
                    members.create_task(member())
                await asyncio.sleep(1)
                with cluster.connect() as sender:
                    values = [f"v{n}" for n in range(100)]
                    await asyncio.to_thread(sender.send_many, topic, values)
            assert sorted(one for one in got if one[0] == "v") == sorted(values)

    asyncio.run(main())


def test_group_when_a_partition_is_paused_then_its_messages_come_once_it_is_resumed(
    cluster: Cluster, topic: str
) -> None:
    async def main() -> None:
        async with (
            pylogctl.aconnect(cluster.address) as client,
            client.group("billing", topic, start="earliest", idle=3) as group,
        ):
            assert (await anext(group)).text() == "a"
            await group.pause()
            assert [one.text() async for one in group] == []
            await group.resume()
            assert [(await anext(group)).text() for _ in range(4)] == ["b", "c", "d", "end"]

    asyncio.run(main())


def test_group_when_it_commits_in_on_revoked_then_the_next_owner_goes_on_behind(
    cluster: Cluster,
) -> None:
    topic = f"shared-{next(_numbers)}"
    with cluster.connect() as client:
        client.create_topic(topic, partitions=2)
        for one in client.describe(topic):
            client.send_many(topic, ["a", "b", "c"], partition=one.partition)

    async def main() -> None:
        told: list[tuple[str, frozenset[pylogctl.TopicPartition]]] = []

        async def revoke(
            group: pylogctl.AsyncGroup, some: frozenset[pylogctl.TopicPartition]
        ) -> None:
            await group.commit()
            told.append(("revoked", some))

        async with (
            pylogctl.aconnect(cluster.address) as client,
            client.group(
                "billing",
                topic,
                start="earliest",
                commit="manual",
                idle=1,
                on_assigned=lambda _, some: told.append(("assigned", some)),
                on_revoked=revoke,
            ) as group,
        ):
            count = 0
            async with asyncio.timeout(60):  # one idle time can be over before a message comes
                while count < 6:
                    count += len([one async for one in group])
            assert count == 6
            told.clear()
            async with client.group("billing", topic, commit="manual", idle=5) as second:
                while not second.assigned:
                    assert [one async for one in group] == []
                assert told == [("revoked", second.assigned)]
                assert [one async for one in second] == []
            with pytest.raises(TypeError, match="give on_revoked as a function, not int"):
                await client.group("billing", topic, on_revoked=5)  # type: ignore[arg-type]

    asyncio.run(main())


def test_group_when_it_cannot_join_then_raises_what_the_other_client_raises(
    cluster: Cluster, pylog_address: str, topic: str
) -> None:
    async def main() -> None:
        async with pylogctl.aconnect(cluster.address) as client:
            with pytest.raises(TypeError, match="give the group as str"):
                await client.group(5, topic)  # type: ignore[arg-type]  # that is the test
            with pytest.raises(pylogctl.Error, match="not an offset: 'soon'"):
                async for _ in client.group("billing", topic, start="soon"):
                    pass
        async with pylogctl.aconnect(pylog_address) as client:
            with pytest.raises(pylogctl.NoZooKeeper):
                await client.group("billing", topic)

    asyncio.run(main())


def test_client_when_closed_with_a_group_open_then_the_group_leaves(
    cluster: Cluster, topic: str
) -> None:
    async def main() -> None:
        async with pylogctl.aconnect(cluster.address) as client:
            group = await client.group("billing", topic, start="earliest")
            await anext(group)
        assert [one async for one in group] == []

    asyncio.run(main())


def test_calls_when_made_in_a_loop_then_give_what_the_other_client_gives(
    cluster: Cluster, topic: str
) -> None:
    async def main() -> None:
        async with (
            pylogctl.aconnect(cluster.address) as client,
            pylogctl.aconnect(cluster.address) as other,
        ):
            assert await read(client, topic) == ["a", "b", "c", "d"]
            assert [one.id for one in await client.brokers()] == [0, 1]
            assert (await client.broker(1)).id == 1
            assert (await client.health()).ok
            assert await client.cluster_id() == cluster.zookeeper
            assert "billing" in [one.name for one in await client.groups()]
            assert topic in {one.topic for one in await client.offsets_of("billing")}
            assert (await client.copy(topic, f"{topic}-copy", to=other)).message_count == 5
            assert await client.reassignments() == []
            with pytest.raises(pylogctl.UnknownGroup):
                await client.describe_group("no such group")
            changes = [one async for one in client.changes()]
            assert changes
            async with client.changes(follow=True) as followed:
                first = await anext(followed)
                assert first == changes[0]
                assert followed.missing == {}

    asyncio.run(main())
