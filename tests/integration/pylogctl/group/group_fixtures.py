"""A topic, groups in the registry, and members, for the tests of `pylogctl group`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from broker import Broker
from broker.errors import RegistryNodeNotFoundError
from broker.zk import paths
from broker.zk.session import Session
from tests.integration.cluster.group_harness import Member
from tests.integration.pylogctl.topic.test_topic import fill
from tests.support.command_line import Invoke, Result
from tests.support.waiting import wait_until

TOPIC = "orders"
END = 110
"""Each partition of the topic has ten messages of one byte, eleven bytes apart."""

Join = Callable[..., Member]


@pytest.fixture
def broker(start_broker: Callable[..., Broker], zookeeper: str, session: Session) -> Broker:
    """A broker in the registry, with the topic in two partitions."""
    started = start_broker(zookeeper=zookeeper, num_partitions=2)
    for index in range(2):
        fill(started, TOPIC, [b"%d" % number for number in range(10)], index=index)
    await_topic(session, TOPIC)
    return started


def await_topic(session: Session, topic: str) -> None:
    """Wait until the registry knows a topic on broker 0."""
    node = paths.topic_broker(topic, 0)
    wait_until(lambda: session.exists(node), f"the registration of {topic}")


@pytest.fixture
def command(broker: Broker, zookeeper: str, invoke: Invoke) -> Invoke:
    """Run `group COMMAND` with the registry."""

    def run(name: str, *args: str, **options: Any) -> Result:
        result: Result = invoke("group", name, "-Z", zookeeper, *args, **options)
        return result

    return run


@pytest.fixture
def join(broker: Broker, zookeeper: str, tmp_path: Path) -> Iterator[Join]:
    """Start members of groups, as processes that read the topic; killed at the end."""
    members: list[Member] = []

    def start(group: str, topics: str = f"{TOPIC}:1") -> Member:
        settings = {
            "zk.connect": zookeeper,
            "zk.sessiontimeout.ms": "10000",
            "groupid": group,
            "autocommit.interval.ms": "100",
            "autooffset.reset": "smallest",
            "rebalance.backoff.ms": "300",
        }
        member = Member(tmp_path / f"member-{len(members)}.txt", topics, settings)
        members.append(member)
        return member

    yield start
    for member in members:
        member.kill()


def await_owners(session: Session, group: str, member_count: int) -> None:
    """Wait until so many members share both partitions, or one of them as far as they go round."""

    def is_settled() -> bool:
        if len(children(session, paths.consumer_ids(group))) != member_count:
            return False
        root = paths.owners(group, TOPIC)
        found = session.get_many(f"{root}/{name}" for name in children(session, root))
        owners = {value for value, _ in found.values()}
        return len(found) == 2 and len(owners) == min(2, member_count)

    wait_until(is_settled, f"{member_count} members sharing {TOPIC}")


def children(session: Session, path: str) -> list[str]:
    try:
        return session.children(path)
    except RegistryNodeNotFoundError:
        return []


def store(session: Session, group: str, offsets: Mapping[str, int | str]) -> None:
    """Write offset nodes of the topic, by partition."""
    for name, value in offsets.items():
        session.create(f"{paths.offsets(group, TOPIC)}/{name}", str(value).encode())


def stored(session: Session, group: str) -> dict[str, str]:
    """The offset nodes of the topic, by partition, as they are."""
    root = paths.offsets(group, TOPIC)
    return {name: session.get(f"{root}/{name}")[0].decode() for name in children(session, root)}


def rows(result: Result) -> list[dict[str, Any]]:
    """The records of a result written with `--output json`."""
    data: list[dict[str, Any]] = json.loads(result.text)["data"]
    return data
