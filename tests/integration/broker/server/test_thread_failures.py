"""An exception in the loop of any thread of a broker is logged, and the broker serves on."""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import pytest

import pylogctl
from broker.config import BrokerConfig
from broker.server.broker import Broker
from broker.threads import LoopThread
from broker.zk.embedded import EmbeddedZooKeeper
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

LOOPS = (
    "acceptor",
    "audit-log",
    "cluster-view",
    "controller",
    "controller-to-#",
    "replica-fetcher-#-#",
    "flusher-#",
    "processor-#",
    "registry",
    "replica-ticker",
    "settings",
    "watch-of-#",
    "zookeeper",
)
"""The loops of a broker by the names of their threads, without numbers."""
SELDOM = {
    "checkpoint",
    "disk-space",
    "high-watermarks",
    "log-cleaner",
    "retention",
    "cluster-keys",
    "broker-hosts",
    "clocks",
    "producer-sender-#",
}
"""Those of `PeriodicTask`, which wait for long; one like `settings`, two that wait for
other brokers or for a minute, and the client's."""


class InjectedError(Exception):
    """A bug."""


class Cluster:
    """Two brokers in this process, and a client with a replicated topic."""

    def __init__(
        self, brokers: list[Broker], client: pylogctl.Client, others: set[threading.Thread]
    ) -> None:
        self.client = client
        self._numbers = count()
        self._brokers = brokers
        self._others = others  # threads from before: of brokers that have nothing to do

    def work(self) -> None:
        """Have every loop do something: a topic with replicas, a message, and its end."""
        number = next(self._numbers)
        topic = f"made-{number}"
        self.client.set_settings({"log.retention.bytes": (1 << 30) + number}, topic="kept")
        self.client.create_topic(topic, partitions=2, replicas=2)
        receipt = self.client.send(topic, b"x")
        (message,) = self.client.read(topic, partition=receipt.partition)
        assert message.value == b"x"
        self.client.delete_topic(topic)

    def loops(self) -> dict[str, list[LoopThread]]:
        """Return the loops of these brokers by their names without numbers."""
        found: dict[str, list[LoopThread]] = {}
        for thread in threading.enumerate():
            if isinstance(thread, LoopThread) and thread not in self._others:
                found.setdefault(re.sub(r"\d+", "#", thread.name), []).append(thread)
        return found


@pytest.fixture(scope="module")
def cluster(
    zookeeper_server: EmbeddedZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("brokers")
    others = set(threading.enumerate())

    def make(broker_id: int) -> Broker:
        return Broker(
            BrokerConfig(
                broker_id=broker_id,
                data_dirs=(directory / str(broker_id),),
                port=0,
                hostname="127.0.0.1",
                zookeeper=f"{zookeeper_server.connect}/thread-failures",
                audit_log=directory / f"audit-{broker_id}",
                cleanup_interval_ms=50,
            )
        )

    with make(0) as first, make(1) as second:
        where = ",".join(f"127.0.0.1:{one.port}" for one in (first, second))
        with pylogctl.connect(where, timeout=10) as client:
            wait_until(lambda: len(client.brokers()) == 2, "both brokers")
            client.create_topic("kept", partitions=2, replicas=2, timeout=60)
            yield Cluster([first, second], client, others)


def inject(thread: LoopThread) -> None:
    """Have an exception raised wherever a thread is, once it runs again."""
    raised = ctypes.py_object(InjectedError)
    assert thread.ident is not None
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), raised) == 1


def is_in_loop(thread: LoopThread) -> bool:
    """Whether a thread is in its loop, not behind it: what is raised there would end it."""
    lines, first = inspect.getsourcelines(LoopThread.run)
    calls = {first + at for at, line in enumerate(lines) if "_guarded_loop()" in line}
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code is not LoopThread.run.__code__:
        frame = frame.f_back
    return frame is not None and frame.f_lineno in calls


def test_loops_when_brokers_work_then_all_are_known_here(cluster: Cluster) -> None:
    cluster.work()
    assert set(cluster.loops()) - SELDOM == set(LOOPS)


@pytest.mark.usefixtures("expects_bugs")
@pytest.mark.parametrize("name", LOOPS)
def test_loop_when_an_exception_is_raised_in_it_then_is_logged_and_the_loop_goes_on(
    cluster: Cluster, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    def works() -> bool:
        with suppress(pylogctl.Error):  # a request that met an exception, this one's or the last's
            cluster.work()
            return True
        return False

    wait_until(works, "brokers that work")
    threads = cluster.loops()[name]

    def is_logged() -> bool:
        if is_in_loop(threads[0]):
            inject(threads[0])  # again, if code that expects all exceptions has met the first
        works()
        failures = [one.exc_info[1] for one in caplog.records if one.exc_info]
        return any(isinstance(one, InjectedError) for one in failures)

    wait_until(is_logged, "the exception in the log")
    assert threads[0].is_alive()
    wait_until(works, "brokers that work")
