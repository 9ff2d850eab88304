"""`pylogctl group delete` and `rebalance` against a real broker, registry and members."""

from __future__ import annotations

import re
import shlex

import pytest

from broker import Broker
from broker.protocol.primitives import INT32
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from pylogctl.group import changes
from tests.integration.pylogctl.group.group_fixtures import (
    TOPIC,
    Join,
    await_owners,
    children,
    rows,
    store,
    stored,
)
from tests.integration.pylogctl.group.group_fixtures import broker as broker
from tests.integration.pylogctl.group.group_fixtures import command as command
from tests.integration.pylogctl.group.group_fixtures import join as join
from tests.integration.pylogctl.proxies import Proxy
from tests.support.command_line import Invoke, Result
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

DELETE = 2
"""The number of ZooKeeper's request that deletes a node."""
CONFIRMED = ("--yes", "--confirm", "g")


# delete


def test_delete_takes_all_nodes_away_and_its_undo_brings_the_offsets_back(
    session: Session, command: Invoke, invoke: Invoke
) -> None:
    store(session, "g", {"0-0": 33, "0-1": 44})
    session.create(paths.consumer_ids("g"))
    result = command("delete", "g", *CONFIRMED, "--output", "json")
    assert result.status == ExitStatus.OK
    assert {row["action"] for row in rows(result)} == {"deleted"}
    assert paths.group("g") in {row["path"] for row in rows(result)}
    assert not session.exists(paths.group("g"))
    undo = shlex.split(result.stderr.partition("undo: pylogctl ")[2].splitlines()[0])
    assert invoke(*undo, "--yes").status == ExitStatus.OK
    assert stored(session, "g") == {"0-0": "33", "0-1": "44"}


@pytest.mark.parametrize("options", [(), ("--yes",), ("--yes", "--confirm", "h")])
def test_delete_when_not_confirmed_by_name_changes_nothing(
    session: Session, command: Invoke, options: tuple[str, ...]
) -> None:
    store(session, "g", {"0-0": 33})
    assert command("delete", "g", *options).status == ExitStatus.DECLINED
    assert stored(session, "g") == {"0-0": "33"}


def test_delete_when_it_is_a_dry_run_asks_nothing_and_changes_nothing(
    session: Session, command: Invoke
) -> None:
    store(session, "g", {"0-0": 33})
    result = command("delete", "g", "--dry-run", "--output", "json")
    assert (result.status, {row["action"] for row in rows(result)}) == (0, {"delete"})
    assert stored(session, "g") == {"0-0": "33"}


@pytest.mark.parametrize("options", [CONFIRMED, ("--dry-run",)])
def test_delete_of_a_live_group_is_refused_and_names_the_members(
    session: Session, join: Join, command: Invoke, options: tuple[str, ...]
) -> None:
    join("g")
    await_owners(session, "g", 1)
    result = command("delete", "g", *options)
    assert result.status == ExitStatus.CONFLICT
    assert "group 'g' has 1 active member; stop them first" in result.stderr
    assert "members: g_" in result.stderr


def test_delete_of_an_unknown_group_is_not_found_unless_that_is_fine(command: Invoke) -> None:
    assert command("delete", "g", *CONFIRMED).status == ExitStatus.NOT_FOUND
    result = command("delete", "g", "--if-exists")
    assert (result.status, result.stderr) == (0, "there is no group 'g'\n")


def test_delete_when_the_zookeeper_goes_away_midway_is_finished_when_repeated(
    session: Session, zookeeper: str, broker: Broker, command: Invoke, invoke: Invoke
) -> None:
    store(session, "g", {"0-0": 33, "0-1": 44})
    deleted: list[bytes] = []

    def passes(frame: bytes) -> bool:
        if b"/consumers/g" in frame and INT32.unpack_from(frame, INT32.size)[0] == DELETE:
            deleted.append(frame)
        return len(deleted) < 2

    address, _, chroot = zookeeper.partition("/")
    proxy = Proxy(int(address.rpartition(":")[2]), passes, is_final=True)
    try:
        result: Result = invoke(
            "group", "delete", "g", *CONFIRMED,
            "-Z", f"{proxy.address}/{chroot}", "--timeout", "5s",
        )  # fmt: skip
    finally:
        proxy.stop()
    assert result.status == ExitStatus.UNREACHABLE
    assert "group 'g' is deleted in part" in result.stderr
    assert "repeat the command" in result.stderr
    assert len(stored(session, "g")) == 1
    assert command("delete", "g", *CONFIRMED).status == ExitStatus.OK
    assert not session.exists(paths.group("g"))


def test_delete_when_a_member_joins_while_it_asks_has_no_undo(
    session: Session, join: Join, command: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: object) -> None:
        join("g")
        await_owners(session, "g", 1)

    store(session, "g", {"0-0": 33})
    monkeypatch.setattr(changes, "confirm_name", answer)
    result = command("delete", "g")
    assert result.status == ExitStatus.CONFLICT
    assert "undo:" not in result.stderr


def test_reset_of_offsets_that_change_while_it_asks_has_an_undo_of_the_others(
    session: Session, command: Invoke, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: object) -> None:
        session.set(paths.offset("g", TopicPartition(TOPIC, 0, 1)), b"66")

    store(session, "g", {"0-0": 33, "0-1": 44})
    monkeypatch.setattr(changes, "confirm", answer)
    reset = ("reset", "g", "--all-topics", "--to", "start", "--execute")
    result = command(*reset)
    assert result.status == ExitStatus.CONFLICT
    assert stored(session, "g") == {"0-0": "0", "0-1": "66"}
    undo = shlex.split(result.stderr.partition("undo: pylogctl ")[2].splitlines()[0])
    assert invoke(*undo, "--yes").status == ExitStatus.OK
    assert stored(session, "g") == {"0-0": "33", "0-1": "66"}
    session.set(paths.offset("g", TopicPartition(TOPIC, 0, 0)), b"0")
    assert "undo:" not in command(*reset).stderr  # again nothing but the conflict


# rebalance


def test_rebalance_when_nothing_has_to_move_says_so_and_how_long_it_took(
    session: Session, join: Join, command: Invoke
) -> None:
    join("g")
    join("g")
    await_owners(session, "g", 2)
    result = command("rebalance", "g", "--yes", "--output", "json")
    assert result.status == ExitStatus.OK
    assert rows(result) == []
    assert re.search(r"^2 partitions, 0 moved, settled in [0-9.]+m?s$", result.stderr, re.MULTILINE)


def test_rebalance_mends_a_partition_whose_owner_is_dead(
    session: Session, join: Join, command: Invoke
) -> None:
    join("g")
    await_owners(session, "g", 1)
    node = f"{paths.owners('g', TOPIC)}/0-1"
    (owner,) = {row["owner"] for row in rows(command("describe", "g", "--output", "json"))}
    found: list[dict[str, object]] = []

    def is_mended() -> bool:
        session.delete(node)
        result = command("rebalance", "g", "--yes", "--output", "json")
        assert result.status == ExitStatus.OK
        found[:] = rows(result)
        return bool(found)  # else the member's own rebalance was faster

    wait_until(is_mended, "a rebalance by the command")
    assert found == [
        {
            "group": "g", "topic": TOPIC, "partition": "0-1",
            "old_owner": None, "new_owner": owner,
        }
    ]  # fmt: skip


def test_rebalance_when_it_is_a_dry_run_shows_what_the_members_would_agree_on(
    session: Session, join: Join, command: Invoke
) -> None:
    join("g")
    await_owners(session, "g", 1)
    before = children(session, paths.consumer_ids("g"))
    result = command("rebalance", "g", "--dry-run", "--output", "json")
    assert "nothing changed; this was a dry run" in result.stderr
    assert rows(result) == []
    assert "2 partitions, 0 moved\n" in result.stderr
    assert children(session, paths.consumer_ids("g")) == before


def test_rebalance_without_an_answer_declines(
    session: Session, join: Join, command: Invoke
) -> None:
    join("g")
    await_owners(session, "g", 1)
    assert command("rebalance", "g").status == ExitStatus.DECLINED


def test_rebalance_of_a_group_without_members_says_how_to_start_one(
    session: Session, command: Invoke
) -> None:
    store(session, "g", {"0-0": 33})
    result = command("rebalance", "g", "--yes")
    assert result.status == ExitStatus.NOT_FOUND
    assert "group 'g' has no members that could rebalance" in result.stderr
    assert "pylogctl consume --group g" in result.stderr


def test_rebalance_that_does_not_settle_gives_up_and_says_which_partition(
    session: Session, join: Join, command: Invoke
) -> None:
    join("g")
    await_owners(session, "g", 1)
    idle = paths.consumer("g", "g_zzz-never-claims")
    session.create(idle, f'{{ "{TOPIC}": 1 }}'.encode(), ephemeral=True)
    owners = paths.owners("g", TOPIC)
    wait_until(lambda: len(children(session, owners)) == 1, "the member giving up its half")
    result = command("rebalance", "g", "--yes", "--wait", "5s", "--output", "json")
    assert result.status == ExitStatus.TIMEOUT
    assert "group 'g' has not rebalanced within 5s: 1 problem" in result.stderr
    assert f"{TOPIC}[0-1]: it has no owner" in result.stderr
    assert rows(result) == []


def test_rebalance_when_the_zookeeper_goes_away_midway_is_unreachable(
    session: Session, zookeeper: str, join: Join, invoke: Invoke
) -> None:
    join("g")
    await_owners(session, "g", 1)
    looks: list[bytes] = []

    def passes(frame: bytes) -> bool:
        if b"/owners/orders/0-0" in frame:
            looks.append(frame)
        return len(looks) < 4

    address, _, chroot = zookeeper.partition("/")
    proxy = Proxy(int(address.rpartition(":")[2]), passes, is_final=True)
    try:
        result: Result = invoke(
            "group", "rebalance", "g", "--yes",
            "-Z", f"{proxy.address}/{chroot}", "--timeout", "5s",
        )  # fmt: skip
    finally:
        proxy.stop()
    assert result.status == ExitStatus.UNREACHABLE
    assert "ZooKeeper" in result.stderr


@pytest.mark.parametrize("wait", ["soon", "-1s"])
def test_rebalance_when_the_wait_makes_no_sense_is_a_usage_error(
    session: Session, command: Invoke, wait: str
) -> None:
    store(session, "g", {"0-0": 33})
    assert command("rebalance", "g", "--yes", "--wait", wait).status == ExitStatus.USAGE
