"""Groups of the Python API, at brokers with a ZooKeeper."""

from __future__ import annotations

import asyncio
import itertools
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import pylogctl
from pylogctl.testing import Cluster, ephemeral_cluster
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(2) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[pylogctl.Client]:
    with cluster.connect() as connected:
        yield connected


@pytest.fixture
def topic(client: pylogctl.Client) -> str:
    """A topic with four messages, and one that marks the end."""
    name = f"orders-{next(_numbers)}"
    client.send_many(name, ["a", "b", "c", "d", "end"], key="k")
    return name


def read(client: pylogctl.Client, topic: str, limit: int = 99, **how: object) -> list[str]:
    """Return what the next member gets before the end, or so many messages."""
    got: list[str] = []
    with client.group("billing", topic, start="earliest", idle=60, **how) as group:  # type: ignore[arg-type]  # each is one of `group`'s
        for message in group:
            if message.text() == "end":
                break
            got.append(message.text())
            if len(got) == limit:
                break
    return got


def test_group_when_left_then_the_next_member_goes_on_behind_what_was_handled(
    client: pylogctl.Client, topic: str
) -> None:
    # a message in hand when the loop is left does not count
    assert read(client, topic, limit=2) == ["a", "b"]
    assert read(client, topic) == ["b", "c", "d"]
    assert read(client, topic) == []


def test_group_when_committed_before_then_none_comes_twice_and_what_was_not_given_comes(
    client: pylogctl.Client, topic: str
) -> None:
    assert read(client, topic, limit=2, commit="before") == ["a", "b"]
    assert read(client, topic, commit="before") == ["c", "d"]


MANY = [f"{number:05d}" for number in range(5000)]


def fill(client: pylogctl.Client, topic: str, partitions: int = 1, codec: str = "none") -> None:
    """Make a topic with `MANY` messages in a few chunks of each partition."""
    client.create_topic(topic, partitions=partitions)
    with client.producer(codec=codec) as producer:  # type: ignore[arg-type]  # a parameter of tests
        for one in client.describe(topic):
            producer.send_many(topic, MANY, partition=one.partition)


def take(client: pylogctl.Client, topic: str, count: int) -> None:
    with client.group("g", topic, start="earliest", commit="before", idle=60) as group:
        assert [next(group).text() for _ in range(count)] == MANY[:count]


def iterate_and_fail(client: pylogctl.Client, topic: str, count: int) -> None:
    with (
        pytest.raises(KeyError),
        client.group("g", topic, start="earliest", commit="before", idle=60) as group,
    ):
        for number, _ in enumerate(group, 1):
            if number == count:
                raise KeyError


def run_and_fail(client: pylogctl.Client, topic: str, count: int, parallel: int = 1) -> None:
    numbers = itertools.count(1)

    def handle(_: pylogctl.Message) -> None:
        if next(numbers) == count:
            raise KeyError

    with (
        client.group("g", topic, start="earliest", commit="before", idle=60) as group,
        pytest.raises(KeyError),
    ):
        group.run(handle, parallel=parallel)


def run_in_threads_and_fail(client: pylogctl.Client, topic: str, count: int) -> None:
    run_and_fail(client, topic, count, parallel=2)


def run_until_closed(client: pylogctl.Client, topic: str, count: int) -> None:
    numbers = itertools.count(1)
    group = client.group("g", topic, start="earliest", commit="before", idle=60)
    group.run(lambda _: group.close() if next(numbers) == count else None)


def take_in_loop(client: pylogctl.Client, topic: str, count: int) -> None:
    async def main() -> None:
        async with (
            pylogctl.aconnect(zookeeper=client.cluster_id) as connected,
            connected.group("g", topic, start="earliest", commit="before", idle=60) as group,
        ):
            assert [(await anext(group)).text() for _ in range(count)] == MANY[:count]

    asyncio.run(main())


@pytest.mark.parametrize(
    "end",
    [
        take,
        iterate_and_fail,
        run_and_fail,
        run_in_threads_and_fail,
        run_until_closed,
        take_in_loop,
    ],
)
def test_group_when_committed_before_and_left_then_the_next_goes_on_behind_what_was_given(
    client: pylogctl.Client, topic: str, end: Callable[[pylogctl.Client, str, int], None]
) -> None:
    fill(client, f"many-{topic}")
    end(client, f"many-{topic}", 1300)
    with client.group("g", f"many-{topic}", idle=60) as group:
        assert next(group).text() == MANY[1300]


_KILLED = """
import os, sys, time, pylogctl
group = pylogctl.connect(sys.argv[1]).group("g", sys.argv[2], start="earliest", commit="before")
for number, _ in zip(range(1, int(sys.argv[3]) + 1), group):
    time.sleep(float(sys.argv[4]))
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(("count", "handling_s", "lost"), [(700, 0, 701), (5, 0.05, 0)])
def test_group_when_committed_before_and_killed_then_at_most_the_batch_in_hand_is_lost(
    cluster: Cluster,
    client: pylogctl.Client,
    topic: str,
    count: int,
    handling_s: float,
    lost: int,
) -> None:
    fill(client, f"many-{topic}")
    arguments = [cluster.address, f"many-{topic}", str(count), str(handling_s)]
    ended = subprocess.run([sys.executable, "-c", _KILLED, *arguments], check=False)
    assert ended.returncode == -signal.SIGKILL
    with client.group("g", f"many-{topic}", idle=60) as group:
        assert MANY[count] <= next(group).text() <= MANY[count + lost]


def test_group_when_committed_before_and_partitions_go_to_another_member_then_each_comes_once(
    client: pylogctl.Client, topic: str
) -> None:
    fill(client, f"many-{topic}", partitions=2)
    with join_before(client, f"many-{topic}") as first:
        got = [next(first) for _ in range(700)]
        with join_before(client, f"many-{topic}") as second:
            wait_until(lambda: len(first.assigned) == len(second.assigned) == 1, "a split")
            got += [next(second) for _ in range(10)]
        got += list(first)
    assert sorted((one.partition, one.text()) for one in got) == sorted(
        (one.partition, text) for one in client.describe(f"many-{topic}") for text in MANY
    )


def join_before(client: pylogctl.Client, topic: str) -> pylogctl.Group:
    return client.group("g", topic, start="earliest", commit="before", idle=5)


def test_group_when_committed_before_and_left_in_a_compressed_set_then_none_of_it_comes_twice(
    client: pylogctl.Client, topic: str
) -> None:
    with client.producer(codec="gzip") as producer:
        producer.send_many(topic, ["p", "q", "r"], key="k")
    client.send_many(topic, ["s", "end"], key="k")
    with client.group("billing", topic, start="earliest", commit="before", idle=60) as group:
        assert [next(group).text() for _ in range(7)] == ["a", "b", "c", "d", "end", "p", "q"]
        group.pause()
        group.resume()
        assert next(group).text() == "r"
        group.seek(client.send(topic, "last", key="k").partition, 0)
        assert [next(group).text() for _ in range(6)] == ["a", "b", "c", "d", "end", "p"]
    # the offset that is stored can be in front of or behind a set, not inside
    assert read(client, topic, commit="before") == ["s"]


def test_group_when_committed_before_then_an_iteration_left_goes_on_where_it_was(
    client: pylogctl.Client, topic: str
) -> None:
    with client.group("billing", topic, start="earliest", idle=60, commit="before") as group:
        assert next(group).text() == "a"
        for message in group:
            assert message.text() == "b"
            break
        assert [next(group).text() for _ in range(3)] == ["c", "d", "end"]
    with client.group("again", topic, start="earliest", idle=60, commit="before") as group:
        first = next(group)
        group.seek(first.partition, "-1")  # what is in hand of the partition is not given any more
        assert next(group).text() == "end"


def test_group_when_it_reads_several_topics_then_a_partition_is_of_its_topic(
    client: pylogctl.Client, topic: str
) -> None:
    home = client.send(topic, "late", key="k").partition
    other = f"other-{topic}"
    for number in range(2):  # on each broker, so that partitions of both topics have its home
        client.send(other, "x", partition=f"{number}-0")
    with client.group("billing", [topic, other], start="earliest", idle=60) as group:
        wait_until(lambda: len(group.assigned) >= 3, "all partitions")
        group.seek(home, 0)
        assert next(group).topic in {topic, other}


def test_group_when_commits_are_manual_then_only_commit_moves_it(
    client: pylogctl.Client, topic: str
) -> None:
    assert read(client, topic, commit="manual") == ["a", "b", "c", "d"]
    with client.group("billing", topic, commit="manual", start="earliest") as group:
        first = next(group)
        assert (first.text(), first.partition in group.assigned) == ("a", True)
        group.commit()
        assert next(group).text() == "b"
    with pytest.raises(pylogctl.Closed):
        group.commit()
    with pytest.raises(pylogctl.Closed):
        group.seek(first.partition, 0)
    assert read(client, topic) == ["b", "c", "d"]


def test_group_when_sought_then_it_goes_on_there(client: pylogctl.Client, topic: str) -> None:
    got = []
    with client.group("billing", topic, start="earliest", idle=60) as group:
        for message in group:
            got.append(message.text())
            if got == ["a", "b"]:
                group.seek(message.partition, "-2")
            if message.text() == "end":
                break
    assert got == ["a", "b", "d", "end"]
    assert read(client, topic) == []


@pytest.mark.parametrize("start", ["latest", "-1"])
def test_group_when_retention_has_removed_its_offset_then_reads_all_that_is_left(
    cluster: Cluster, client: pylogctl.Client, start: str
) -> None:
    topic = f"kept-{next(_numbers)}"
    client.create_topic(
        topic, partitions=1, replicas=1, settings={"segment.bytes": 100, "retention.bytes": 250}
    )
    client.send(topic, "first" * 20, key="k")
    with client.group("billing", topic, start="earliest") as group:
        next(group)
    for number in range(10):
        client.send(topic, f"{number}" * 90, key="k")
    for broker in cluster.brokers:
        broker.apply_retention()
    left = [one.text() for one in client.read(topic)]
    assert 0 < len(left) < 10

    with client.group("billing", topic, start=start, idle=60) as group:
        assert [next(group).text() for _ in left] == left


def test_group_when_given_bad_input_then_says_what_is_wrong(
    client: pylogctl.Client, topic: str
) -> None:
    with pytest.raises(ValueError, match="commit is 'after', 'before' or 'manual'"):
        client.group("g", topic, commit="never")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not an offset: 'soon'"):
        client.group("g", topic, start="soon")
    with pytest.raises(ValueError, match="commit_every is at least 0"):
        client.group("g", topic, commit_every=-1)
    with pytest.raises(ValueError, match="idle is at least 0"):
        client.group("g", topic, idle=-1)
    with pytest.raises(TypeError, match="the group as str, not int"):
        client.group(5, topic)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the topic as str, not int"):
        client.group("g", [5])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="flags of a group's pattern must be in its text"):
        client.group("g", re.compile("ORDERS", re.IGNORECASE))
    with pytest.raises(pylogctl.Error, match="a/b"):
        client.group("a/b", topic)
    with client.group("g", topic) as group:
        with pytest.raises(ValueError, match="this group commits by itself"):
            group.commit()
        with pytest.raises(ValueError, match="is not one assigned partition"):
            group.seek("7-7", 0)
    assert list(group) == []


def test_connect_when_given_zookeeper_then_finds_the_same_cluster(
    cluster: Cluster, client: pylogctl.Client, topic: str
) -> None:
    with pylogctl.connect(zookeeper=cluster.zookeeper) as other:
        wait_until(lambda: topic in [one.name for one in other.topics()], "the topic in ZooKeeper")
        assert [one.text() for one in other.read(topic)] == ["a", "b", "c", "d", "end"]
        other.send("made-here", "x")
        assert [one.text() for one in other.read("made-here")] == ["x"]
        assert read(other, topic) == ["a", "b", "c", "d"]


def test_connect_when_zookeeper_has_no_such_chroot_then_says_so(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match=r"no node for '.*/absent'"):
        pylogctl.connect(zookeeper=f"{cluster.zookeeper}/absent")
