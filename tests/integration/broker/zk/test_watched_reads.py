from __future__ import annotations

import queue

import pytest

from broker.zk.session import Session
from broker.zk.watched_reads import WatchedReads

pytestmark = pytest.mark.zookeeper

DEADLINE_S = 60


def test_values_when_read_often_then_a_change_is_reported_once(session: Session) -> None:
    session.create("/a", b"one")
    changes: queue.SimpleQueue[str] = queue.SimpleQueue()
    watched = WatchedReads(session, changes.put)

    for _ in range(3):
        assert watched.values(["/a", "/gone"])["/a"][0] == b"one"
    session.set("/a", b"two")
    assert changes.get(timeout=DEADLINE_S) == "/a"
    assert watched.values(["/a"])["/a"][0] == b"two"
    session.set("/a", b"three")

    assert changes.get(timeout=DEADLINE_S) == "/a"
    assert changes.empty()


def test_children_when_a_node_is_missing_then_it_has_none_and_its_creation_is_reported(
    session: Session,
) -> None:
    session.create("/a/1")
    changes: queue.SimpleQueue[str] = queue.SimpleQueue()
    watched = WatchedReads(session, changes.put)

    assert watched.children(["/a", "/b"]) == {"/a": ["1"], "/b": []}
    session.create("/b")
    assert changes.get(timeout=DEADLINE_S) == "/b"
    assert watched.children(["/b"]) == {"/b": []}
    session.create("/b/2")

    assert changes.get(timeout=DEADLINE_S) == "/b"
