"""`pylogctl consume --group` as a process when something is wrong: says what, loses nothing."""

from __future__ import annotations

import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker import Broker
from broker.zk import paths
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from broker.zk.session import Session
from tests.integration.pylogctl.consume.test_consume import fill
from tests.support.command_line import Invoke, Result, Spawn
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

FIRST, SECOND = [b"a1", b"a2", b"a3"], [b"b1", b"b2"]
END, OTHER_END = 36, 24


@pytest.fixture
def broker(start_broker: Callable[..., Broker], zookeeper: str, session: Session) -> Broker:
    """A broker with two partitions of topic t, `FIRST` and `SECOND` in them."""
    started = start_broker(zookeeper=zookeeper, num_partitions=2)
    fill_both(started, session)
    return started


def fill_both(broker: Broker, session: Session) -> None:
    fill(broker, "t", FIRST)
    fill(broker, "t", SECOND, index=1)
    await_topic(session)


def await_topic(session: Session) -> None:
    """Wait until the registry knows the broker and its topic."""
    nodes = {paths.broker(0), paths.topic_broker("t", 0)}
    wait_until(lambda: session.get_many(nodes).keys() == nodes, "the registration")


@pytest.fixture
def group() -> str:
    return f"g{uuid.uuid4().hex[:8]}"


@pytest.fixture
def consume(broker: Broker, zookeeper: str, group: str, run_process: Invoke) -> Invoke:
    """Run `consume t --group` as a process, to its end."""

    def run(*args: str) -> Result:
        result: Result = run_process("consume", "t", "-g", group, "-Z", zookeeper, "-e", *args)
        return result

    return run


def store(session: Session, group: str, name: str, value: bytes) -> None:
    session.create(f"{paths.group(group)}/offsets/t/{name}", value)


def stored(session: Session, group: str) -> dict[str, bytes]:
    """The offsets a group has stored of topic t, by partition."""
    root = f"{paths.group(group)}/offsets/t"
    if session.exists(root) is None:
        return {}
    return {name: session.get(f"{root}/{name}")[0] for name in session.children(root)}


@pytest.mark.parametrize("value", [b"twelve", b"-7", b"5000", b"1" + b"0" * 20])
def test_consume_when_a_stored_offset_makes_no_sense_reads_all_again_and_says_so(
    consume: Invoke, session: Session, group: str, value: bytes
) -> None:
    store(session, group, "0-0", value)
    store(session, group, "0-1", b"12")

    result = consume()

    assert (result.status, sorted(result.stdout.split())) == (0, [*FIRST, b"b2"])
    assert "warning: " in result.stderr
    is_offset = value in {b"-7", b"5000"}
    assert f"t[0-0] is {'out of range' if is_offset else 'no number'}" in result.stderr
    assert "0 to 36 can be read; going on at the smallest, 0" in result.stderr
    assert stored(session, group) == {"0-0": b"36", "0-1": b"24"}


@pytest.mark.parametrize("value", [b"twelve", b"5000"])
def test_consume_when_a_stored_offset_makes_no_sense_and_is_not_to_be_moved_fails(
    consume: Invoke, session: Session, group: str, value: bytes
) -> None:
    store(session, group, "0-0", value)
    store(session, group, "0-1", b"12")

    result = consume("--strict-offset")

    assert result.status == 3
    assert "t[0-0] is " in result.stderr
    assert "0 to 36 can be read" in result.stderr
    assert f"pylogctl group reset {group} " in result.stderr
    assert set(result.stdout.split()) <= {b"b2"}
    other = b"24" if result.stdout else b"12"
    assert stored(session, group) == {"0-0": value, "0-1": other}


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (("-o", "5000", "--strict-offset"), 3, "5000 is after the last offset"),
        (("-o", "5"), 2, "5 is not a message boundary in t[0-"),
    ],
)
def test_consume_when_a_group_cannot_start_where_it_is_told_to_fails_and_moves_nothing(
    consume: Invoke, session: Session, group: str, options: tuple[str, ...], status: int, text: str
) -> None:
    store(session, group, "0-1", b"12")

    result = consume(*options)

    assert result.status == status
    assert text in result.stderr
    assert "Traceback" not in result.stderr
    assert set(result.stdout.split()) <= {b"b2"}
    assert stored(session, group) == {"0-1": b"24" if result.stdout else b"12"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("t", "-g", "a/b"), "invalid group name 'a/b': '/' is not allowed"),
        (("t", "-g", ""), "invalid group name '': it is empty"),
        (("-g", "g", "--include", "("), "--include: '(' is no regular expression"),
        (
            ("-g", "g", "--include", "a", "--exclude", "["),
            "--exclude: '[' is no regular expression",
        ),
    ],
)
def test_consume_when_a_name_or_pattern_is_illegal_says_so_before_it_connects(
    run_process: Invoke, arguments: tuple[str, ...], text: str
) -> None:
    result = run_process("consume", "-Z", "127.0.0.1:1", *arguments)

    assert result.status == 2
    assert text in result.stderr


def test_consume_when_another_process_has_the_consumer_id_fails_and_leaves_it_in_peace(
    consume: Invoke, spawn: Spawn, session: Session, zookeeper: str, group: str
) -> None:
    options = ("-X", "consumerid=me", "-o", "start")
    command = ("consume", "t", "-g", group, "-Z", zookeeper, *options, "-n", "6")
    with spawn(*command) as member:
        try:
            wait_until(lambda: len(owners(session, group)) == 2, "a member that owns all")

            result = consume(*options)

            assert (result.status, result.stdout) == (4, b"")
            assert f"consumer id '{group}_me' is already registered in group" in result.stderr
            assert "choose another consumerid" in result.stderr
            assert set(owners(session, group).values()) == {f"{group}_me-0".encode()}
        finally:
            member.send_signal(signal.SIGINT)
            output, _ = member.communicate(timeout=60)

    assert sorted(output.split()) == FIRST + SECOND
    assert stored(session, group) == {"0-0": b"36", "0-1": b"24"}


def owners(session: Session, group: str) -> dict[str, bytes]:
    root = paths.owners(group, "t")
    if session.exists(root) is None:
        return {}
    found = session.get_many(f"{root}/{name}" for name in session.children(root))
    return {path: value for path, (value, _) in found.items()}


class OwnZooKeeper:
    """A ZooKeeper that can go away, and come back with what it had."""

    def __init__(self, directory: Path, java: Java) -> None:
        self._directory = directory
        self._java = java
        self._port = port_of_its_own()
        self._start()
        self.connect = self._server.connect

    def _start(self) -> None:
        self._server = EmbeddedZooKeeper(
            self._directory, java=self._java, port=self._port, is_durable=False, tick_ms=500
        )
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def start_again(self) -> None:
        """Come back, and wait for the broker to register again."""
        self._start()
        with Session(self.connect) as session:
            await_topic(session)


@pytest.fixture
def own_zookeeper(java: Java, tmp_path: Path) -> Iterator[OwnZooKeeper]:
    server = OwnZooKeeper(tmp_path / "zookeeper", java)
    yield server
    server.stop()


@pytest.fixture
def own_broker(own_zookeeper: OwnZooKeeper, start_broker: Callable[..., Broker]) -> Broker:
    """A broker as in the other tests, in a ZooKeeper that can go away."""
    started = start_broker(
        zookeeper=own_zookeeper.connect, num_partitions=2, zk_session_timeout_ms=6000
    )
    with Session(own_zookeeper.connect) as session:
        fill_both(started, session)
    return started


def follow(server: OwnZooKeeper, group: str) -> tuple[str, ...]:
    """The command line of a member that reads all, and whose session is short."""
    return (
        *("consume", "t", "-g", group, "-Z", server.connect),
        *("-o", "start", "-X", "zk.sessiontimeout.ms=4000"),
        *("-X", "zk.connectiontimeout.ms=3000"),
    )


def lines_of(process: subprocess.Popen[bytes], count: int) -> list[bytes]:
    """Return the next lines a process writes."""
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(count)]


def await_settled(server: OwnZooKeeper, broker: Broker, group: str) -> None:
    """Wait until the broker is registered for good, and no dead member's session holds partitions.

    Nodes of the broker may be of a session that ends before the broker has come back to it.
    """
    wait_until(lambda: in_registry(broker), "the broker")
    with Session(server.connect) as session:
        wait_until(lambda: not members(session, group), "the end of a session")


def in_registry(broker: Broker) -> bool:
    """Tell whether a broker's session lives, and all that it registers is there."""
    session = broker.status()["session"]
    return bool(session["state"] == "connected" and session["is_registered"])


def test_consume_when_zookeeper_is_gone_at_its_end_says_what_is_not_committed_and_it_comes_again(
    own_broker: Broker, own_zookeeper: OwnZooKeeper, spawn: Spawn, run_process: Invoke, group: str
) -> None:
    command = follow(own_zookeeper, group)
    with spawn(*command, "-u", "-X", "autocommit.interval.ms=3600000") as member:
        first = lines_of(member, 5)
        own_zookeeper.stop()
        member.send_signal(signal.SIGINT)
        rest, errors = member.communicate(timeout=60)

    assert (member.returncode, sorted(first), rest) == (10, FIRST + SECOND, b"")
    told = errors.decode()
    assert "not committed, so that messages before it may come again" in told
    assert "t[0-0] at 36, t[0-1] at 24" in told

    own_zookeeper.start_again()
    await_settled(own_zookeeper, own_broker, group)
    again = run_process(*command, "-e")
    assert (again.status, sorted(again.stdout.split())) == (0, FIRST + SECOND)


def test_consume_when_zookeeper_goes_away_for_good_ends_if_it_was_to_end(
    own_broker: Broker, own_zookeeper: OwnZooKeeper, spawn: Spawn, run_process: Invoke, group: str
) -> None:
    slow = ("--exec", "sh -c 'cat; echo; sleep 3'")  # longer than ZooKeeper takes to go
    with spawn(*follow(own_zookeeper, group), *slow, "-e") as member:
        first = lines_of(member, 1)
        own_zookeeper.stop()
        rest, errors = member.communicate(timeout=90)

    assert member.returncode == 10
    assert "error: the registry is away" in errors.decode()
    assert "not committed, so that messages before it may come again" in errors.decode()

    own_zookeeper.start_again()
    await_settled(own_zookeeper, own_broker, group)
    again = run_process(*follow(own_zookeeper, group), "-e")
    assert again.status == 0
    assert set(first + rest.split() + again.stdout.split()) == {*FIRST, *SECOND}


def test_consume_when_zookeeper_goes_away_in_a_rebalance_then_both_members_go_on_without_loss(
    own_broker: Broker, own_zookeeper: OwnZooKeeper, spawn: Spawn, group: str
) -> None:
    command = (*follow(own_zookeeper, group), "-u", "-X", "autocommit.interval.ms=100")
    with Session(own_zookeeper.connect) as session, spawn(*command) as one:
        first = lines_of(one, 5)
        wait_until(lambda: set(stored(session, group).values()) == {b"36", b"24"}, "the commit")
        with spawn(*command) as two:
            try:
                wait_until(lambda: len(members(session, group)) == 2, "the second member")
                own_zookeeper.stop()  # while the first one gives a partition up
                own_zookeeper.start_again()
                wait_until(
                    lambda: len(set(owners(session, group).values())) == 2,
                    "an owner for each partition",
                )
                fill(own_broker, "t", [b"a4"])
                fill(own_broker, "t", [b"b3"], index=1)
                wait_until(
                    lambda: stored(session, group) == {"0-0": b"48", "0-1": b"36"},
                    "the commit of what came later",
                )
            finally:
                outputs = []
                for process in (one, two):
                    process.send_signal(signal.SIGINT)
                for process in (one, two):
                    outputs.append(process.communicate(timeout=60)[0])

    assert [one.returncode, two.returncode] == [130, 130]
    found = sorted(first + b"".join(outputs).split())
    assert found == [*FIRST, b"a4", *SECOND, b"b3"]


def members(session: Session, group: str) -> list[str]:
    return session.children(paths.consumer_ids(group))
