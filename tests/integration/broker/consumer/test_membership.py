"""Registering a member of a group with a real ZooKeeper."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from broker.consumer.membership import Membership, Ownership, static_subscription
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session, SessionState
from tests.support.waiting import wait_until
from tests.support.zookeeper import expire_session

pytestmark = pytest.mark.zookeeper

EACH = static_subscription({"t": 1})


@pytest.mark.parametrize("is_created_first", [False, True])
def test_register_when_the_session_expires_meanwhile_then_node_is_of_the_next_one(
    zookeeper: str, session: Session, monkeypatch: pytest.MonkeyPatch, is_created_first: bool
) -> None:
    with Session(zookeeper) as own:
        create = own.create
        is_first = threading.Event()

        def create_as_session_expires(*node: Any, **how: Any) -> None:
            if not is_first.is_set():
                is_first.set()
                former = own.session_id
                if is_created_first:
                    create(*node, **how)
                expire_session(own)
                wait_until(
                    lambda: own.state is SessionState.CONNECTED and own.session_id != former,
                    "another session",
                )
            create(*node, **how)

        monkeypatch.setattr(own, "create", create_as_session_expires)
        member = Membership(own, "g", "g_me", EACH)

        member.register()

        assert member.session_id == own.session_id
        _, stat = session.get(paths.consumer("g", "g_me"))
        assert stat.ephemeral_owner == own.session_id


def test_claim_when_another_member_of_the_session_owns_a_partition_then_it_waits_for_the_release(
    session: Session,
) -> None:
    one, released = TopicPartition("t", 0, 0), threading.Event()
    owner, other = (Membership(session, "g", f"g_{name}", EACH) for name in ("owner", "other"))
    owner.register()
    other.register()
    held, wanted = (Ownership(member) for member in (owner, other))
    assert held.claim({one: "g_owner-0"}, on_release=released.set) == {one}

    assert wanted.claim({one: "g_other-0"}, on_release=released.set) == set()
    wanted.release([one])
    assert held.owned([one]) == {one}
    assert wanted.owned([one]) == set()
    assert not released.is_set()

    held.release([one])
    assert released.wait(10)
    assert wanted.claim({one: "g_other-0"}, on_release=released.set) == {one}
