"""Topics on three brokers of which one is killed, and readers that follow them."""

from __future__ import annotations

import asyncio
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pylogctl
from pylogctl import Client
from pylogctl.testing import Cluster
from tests.support.command_line import Spawn
from tests.support.waiting import wait_until

DEAD = 2
FOLLOWERS = ("read", "pattern", "aconnect", "-b", "-Z")
_numbers = itertools.count()


def filled(client: Client, *, replicas: int | None, count: int = 6) -> str:
    """Return a new topic, whose partitions have a message each: their name."""
    topic = f"orders{next(_numbers)}"
    client.create_topic(topic, partitions=count, replicas=replicas)
    for one in client.describe(topic):
        client.send(topic, one.partition.name, partition=one.partition)
    return topic


@contextmanager
def one_dead(cluster: Cluster) -> Iterator[None]:
    """Kill broker `DEAD` until the end of the block."""
    others = [one for one in cluster.brokers if one is not cluster.broker(DEAD)]

    def are_known(count: int) -> bool:
        with ExitStack() as stack:
            clients = [stack.enter_context(one.connect()) for one in others]
            return all(sum(one.is_live for one in client.brokers()) == count for client in clients)

    cluster.broker(DEAD).kill()
    try:
        wait_until(lambda: are_known(2), "the end of its session")
        yield
    finally:
        cluster.broker(DEAD).restart()
        wait_until(lambda: are_known(3), "its registration")


def options_of(cluster: Cluster, flag: str) -> tuple[str, str]:
    """Return the options that lead to a cluster: by a broker (-b), or by its ZooKeeper (-Z)."""
    return flag, cluster.broker(0).address if flag == "-b" else cluster.zookeeper


@contextmanager
def following(kind: str, cluster: Cluster, topic: str, spawn: Spawn) -> Iterator[list[str]]:
    """Follow a topic from its start; give the list to which messages are added as they come."""
    got: list[str] = []
    with ExitStack() as stack:
        work: Callable[[], None]
        if kind in ("-b", "-Z"):
            # a lost leader is waited for so long before the partition is left until it is back
            limits = ("-X", "leader.wait.max.ms=500", "-u")
            where = options_of(cluster, kind)
            output = spawn("consume", topic, "-o", "start", *where, *limits).stdout
            assert output is not None

            def work() -> None:
                got.extend(line.decode().strip() for line in output)

        elif kind == "aconnect":
            is_over = threading.Event()

            async def read() -> None:
                async with pylogctl.aconnect(cluster.broker(0).address, timeout=5) as client:
                    reading = asyncio.create_task(read_all(client))
                    while not is_over.is_set() and not reading.done():
                        await asyncio.sleep(0.05)
                    reading.cancel()

            async def read_all(client: pylogctl.AsyncClient) -> None:
                async for one in client.read(topic, stop=None):
                    got.append(one.text())

            def work() -> None:
                asyncio.run(read())

            stack.callback(is_over.set)
        else:
            client = stack.enter_context(cluster.broker(0).connect(timeout=5))
            what = re.compile(rf"{topic}(-later)?") if kind == "pattern" else topic
            reader = client.read(what, stop=None)

            def work() -> None:
                got.extend(one.text() for one in reader)

        threading.Thread(target=work, daemon=True).start()
        yield got
