"""The double of ZooKeeper does what a real one does, as far as pylogctl can tell."""

from __future__ import annotations

import queue
import subprocess
import sys
from collections.abc import Iterator

import pytest

from broker import errors
from broker.zk.nodes import CheckNode, CreateNode, DeleteNode, SetNode
from broker.zk.session import Session
from pylogctl.testing import memory_cluster
from pylogctl.testing.zookeeper import MemoryZooKeeper
from tests.support.waiting import wait_until

DIES = """
import os, sys
from broker.zk.session import Session

session = Session(sys.argv[1], session_timeout_ms=1000)
session.start()
session.create("/mine", ephemeral=True)
os._exit(0)
"""


@pytest.fixture(params=["double", pytest.param("real", marks=pytest.mark.zookeeper)])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a double, then of a real ZooKeeper."""
    if request.param == "real":
        yield request.getfixturevalue("zookeeper")
    else:
        with MemoryZooKeeper() as double:
            yield f"{double.connect}/below"


@pytest.fixture
def session(address: str) -> Iterator[Session]:
    with Session(address) as started:
        yield started


def test_node_when_written_then_has_versions_and_children(session: Session) -> None:
    session.create("/a/b", b"one")
    session.set("/a/b", b"two", version=0)
    value, stat = session.get("/a/b")
    assert (value, stat.version, stat.data_length, stat.ephemeral_owner) == (b"two", 1, 3, 0)
    assert stat.mzxid > stat.czxid
    above = session.exists("/a")
    assert above is not None
    assert (above.children_count, above.cversion) == (1, 1)
    assert session.children("/a") == ["b"]
    session.delete("/a/b", version=1)
    assert session.exists("/a/b") is None


def test_request_when_it_does_not_fit_then_is_refused_as_by_a_real_one(session: Session) -> None:
    session.create("/a/b", b"one")
    with pytest.raises(errors.RegistryConflictError, match="exists already"):
        session.create("/a")
    with pytest.raises(errors.RegistryConflictError, match="changed by another"):
        session.set("/a/b", b"", version=7)
    with pytest.raises(errors.RegistryNodeNotFoundError):
        session.delete("/c")
    with pytest.raises(errors.CoordinationError, match="has children"):
        session.delete("/a")
    session.create("/mine", ephemeral=True)
    with pytest.raises(errors.CoordinationError, match="ephemeral"):
        session.create("/mine/below")


def test_transaction_when_one_change_does_not_fit_then_none_is_made(session: Session) -> None:
    session.create("/a", b"one")
    found = session.transact_many(
        [
            [CheckNode("/a", 0), CreateNode("/a/s-", b"", is_sequential=True)],
            [SetNode("/a", b"two", -1), DeleteNode("/none", -1), CreateNode("/b", b"")],
            [SetNode("/a", b"three", 0)],
        ]
    )
    assert [tuple(one) for one in found] == [(True, -1), (False, 1), (True, -1)]
    assert session.get("/a")[0] == b"three"
    assert session.get("/a")[1].version == 1
    assert session.children("/a") == ["s-0000000000"]
    assert session.exists("/b") is None


def test_watch_when_nodes_change_then_tells_once(session: Session) -> None:
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    session.create("/a", b"one")
    session.get("/a", watch=lambda: told.put("value"))
    session.children("/a", watch=lambda: told.put("children"))
    session.exists("/b", watch=lambda: told.put("creation"))
    session.set("/a", b"two")
    assert told.get(timeout=10) == "value"
    session.create("/a/c")
    assert told.get(timeout=10) == "children"
    session.create("/b")
    assert told.get(timeout=10) == "creation"
    session.set("/a", b"three")
    session.delete("/a/c")
    session.exists("/a")  # answered after what a watch would have told
    assert told.empty()


def test_session_when_it_ends_or_expires_then_its_nodes_go(address: str, session: Session) -> None:
    with Session(address) as other:
        other.create("/mine", ephemeral=True)
        assert session.exists("/mine") is not None
    assert session.exists("/mine") is None

    subprocess.run([sys.executable, "-c", DIES, address], check=True)
    assert session.exists("/mine") is not None
    wait_until(lambda: session.exists("/mine") is None, "the end of the session")


def test_cluster_in_memory_when_a_broker_is_killed_then_another_leads_its_partitions() -> None:
    settings = {"default.replication.factor": "3"}
    with memory_cluster(3, settings) as cluster, cluster.connect() as client:
        partition = client.send("orders", "one").partition
        cluster.broker(client._cluster.leader(partition).id).kill()
        client.send("orders", "two", partition=partition)
        assert [message.text() for message in client.read("orders")] == ["one", "two"]
