"""`pylogctl group list`, `describe`, `lag`, `members`, `verify` and `watch` against real groups."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker import Broker
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.group.group_fixtures import (
    END,
    TOPIC,
    Join,
    await_owners,
    await_topic,
    children,
    rows,
    store,
)
from tests.integration.pylogctl.group.group_fixtures import broker as broker
from tests.integration.pylogctl.group.group_fixtures import command as command
from tests.integration.pylogctl.group.group_fixtures import join as join
from tests.integration.pylogctl.proxies import Proxy
from tests.integration.pylogctl.topic.test_topic import fill
from tests.support.command_line import Invoke, Result, Spawn, without_waits
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

FORMATS = ("table", "json", "jsonl", "csv", "tsv", "plain", "markdown", "name")


# list


def test_list_when_there_are_no_groups_says_so_on_stderr_only(command: Invoke) -> None:
    result = command("list")
    assert (result.status, result.stdout, result.stderr) == (0, b"", "no groups\n")
    assert rows(command("list", "--output", "json")) == []


@pytest.fixture
def three_groups(session: Session, join: Join) -> None:
    """Group `alive` has a member, `empty` an offset, `dead` neither."""
    store(session, "empty", {"0-0": 11})
    session.create(paths.consumer_ids("dead"))
    join("alive")
    await_owners(session, "alive", 1)
    wait_until(
        lambda: session.exists(f"{paths.offsets('alive', TOPIC)}/0-1"), "the first commit of alive"
    )


def test_list_shows_state_members_and_lag_of_each_group(
    three_groups: None, command: Invoke
) -> None:
    found = {row["group"]: row for row in rows(command("list", "--output", "json"))}
    assert [(name, row["state"], row["members"]) for name, row in found.items()] == [
        ("alive", "active", 1),
        ("dead", "dead", 0),
        ("empty", "empty", 0),
    ]
    assert found["empty"]["lag_bytes"] == END - 11
    assert found["empty"]["topics"] == [TOPIC]
    assert found["dead"]["oldest_commit"] is None


@pytest.mark.parametrize(
    ("state", "name"), [("active", "alive"), ("empty", "empty"), ("dead", "dead")]
)
def test_list_of_a_state_has_the_groups_in_it(
    three_groups: None, command: Invoke, state: str, name: str
) -> None:
    assert command("list", "--state", state, "--output", "name").text.split() == [name]


def test_reads_render_in_every_format(session: Session, command: Invoke) -> None:
    store(session, "g", {"0-0": 11})
    for form in FORMATS:
        for name in ("describe", "lag"):
            assert TOPIC in command(name, "g", "--output", form).text
        assert "no-owner" in command("verify", "g", "--output", form).text
        assert "g" in command("list", "--output", form).text


def test_list_of_names_asks_no_broker(session: Session, broker: Broker, command: Invoke) -> None:
    store(session, "g", {"0-0": 11})
    broker.stop()
    result = command("list", "--output", "name")
    assert (result.status, result.text, result.stderr) == (0, "g\n", "")


def test_list_when_the_registry_does_not_answer_is_unreachable(invoke: Invoke) -> None:
    result = invoke("group", "list", "-Z", "127.0.0.1:1", "--timeout", "200ms")
    assert result.status == ExitStatus.UNREACHABLE
    assert "cannot reach ZooKeeper at 127.0.0.1:1: connection refused" in result.stderr


# describe


def test_describe_of_a_live_group_shows_owners_lag_and_the_total(
    session: Session, broker: Broker, join: Join, command: Invoke
) -> None:
    join("g")
    join("g")
    await_owners(session, "g", 2)

    def is_read() -> bool:
        stored = rows(command("describe", "g", "--output", "json"))
        return [row["offset"] for row in stored] == [END, END]

    wait_until(is_read, "the commit of everything")
    total = command("describe", "g").text.splitlines()[-1].split()
    assert (total[0], total[5]) == ("total", "0")
    found = rows(command("describe", "g", "--output", "json"))
    assert [(row["partition"], row["offset"], row["status"]) for row in found] == [
        ("0-0", END, "OK"),
        ("0-1", END, "OK"),
    ]
    assert len({row["owner"] for row in found}) == 2
    assert all(row["owner"].startswith("g_") for row in found)


def test_describe_shows_partitions_without_owner_and_members_without_partition(
    session: Session, join: Join, command: Invoke
) -> None:
    store(session, "nobody", {"0-0": 0})
    assert rows(command("describe", "nobody", "--output", "json"))[0]["owner"] is None
    for _ in range(3):
        join("crowd")
    await_owners(session, "crowd", 3)
    lines = [line.split() for line in command("describe", "crowd").text.splitlines()]
    idle = [line for line in lines if line[-1] == "IDLE"]
    assert len(idle) == 1
    assert idle[0][2].startswith("crowd_")


@pytest.mark.parametrize(
    ("by", "key", "names"),
    [
        ("topic", "topic", [TOPIC]),
        ("member", "member", [None]),
        ("group", "group", ["g"]),
        ("partition", "partition", ["0-0", "0-1"]),
    ],
)
def test_describe_by_something_has_a_row_for_each(
    session: Session, command: Invoke, by: str, key: str, names: list[str | None]
) -> None:
    store(session, "g", {"0-0": 11, "0-1": 22})
    found = rows(command("describe", "g", "--by", by, "--output", "json"))
    assert [row[key] for row in found] == names
    assert sum(row["lag_bytes"] for row in found) == 2 * END - 33


@pytest.mark.parametrize(
    ("value", "status", "warning"),
    [
        ("abc", "NOT-A-NUMBER", "warning: orders[0-0]: the stored offset is no number: 'abc'"),
        ("-1", "OUT-OF-RANGE", ""),
        ("4096", "OUT-OF-RANGE", ""),
        ("11", "LAG", ""),
        ("110", "OK", ""),
    ],
)
def test_describe_warns_of_a_stored_offset(
    session: Session, command: Invoke, value: str, status: str, warning: str
) -> None:
    store(session, "g", {"0-0": value})
    result = command("describe", "g", "--topic", TOPIC, "--output", "json")
    assert result.status == ExitStatus.OK
    row = rows(result)[0]
    assert (row["status"], row["stored"]) == (status, value)
    assert warning in result.stderr


def test_describe_when_the_topic_was_created_after_the_offset_shows_it_as_void(
    session: Session, command: Invoke
) -> None:
    store(session, "g", {"0-0": 11, "0-1": 22})
    session.delete(paths.creation_id(TOPIC, 0))
    session.create(paths.creation_id(TOPIC, 0), b"another")

    result = command("describe", "g", "--topic", TOPIC, "--output", "json")

    assert [row["status"] for row in rows(result)] == ["VOID", "VOID"]
    assert "orders[0-0]: the stored offset is void" in result.stderr


def test_describe_when_counting_shows_messages_and_offsets_inside_a_message(
    session: Session, command: Invoke
) -> None:
    store(session, "g", {"0-0": 88, "0-1": 5})
    found = rows(command("describe", "g", "--count", "--output", "json"))
    assert [(row["lag_messages"], row["status"]) for row in found] == [
        (2, "LAG"),
        (None, "MISALIGNED"),
    ]


def test_lag_without_options_has_messages_and_seconds_by_the_times_of_segments(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    tmp_path: Path,
    invoke: Invoke,
) -> None:
    start = partial(
        start_broker,
        zookeeper=zookeeper,
        num_partitions=1,
        segment_bytes=100,
        data_dir=tmp_path / "small",
    )
    broker = start()
    for _ in range(3):
        fill(broker, TOPIC, [b"x"] * 10)
    broker.stop()
    segments = sorted((tmp_path / "small").rglob("*.pylog"))
    now_s = time.time()
    for segment, age_s in zip(segments, (7200, 3600, 0), strict=True):
        os.utime(segment, (now_s - age_s, now_s - age_s))
    start()
    await_topic(session, TOPIC)
    store(session, "second", {"0-0": END + END // 2 // 11 * 11})
    store(session, "first", {"0-0": 11})

    def lag(group: str) -> dict[str, Any]:
        (row,) = rows(invoke("group", "lag", group, "-Z", zookeeper, "--output", "json"))
        return row

    second, first = lag("second"), lag("first")
    assert (second["lag_messages"], first["lag_messages"]) == (15, 29)
    assert 5300 < second["age_s"] < 5500, "halfway between the ends of two segments"
    assert first["age_s"] is None, "nothing tells when the first segment began"
    traced = invoke("group", "lag", "second", "-Z", zookeeper, "-vv").stderr
    assert 15 < traced.count("offsets") < 40, traced


def test_describe_with_a_window_shows_rate_and_eta(session: Session, command: Invoke) -> None:
    store(session, "g", {"0-0": 88})
    row = rows(command("describe", "g", "--window", "200ms", "--output", "json"))[0]
    assert (row["bytes_per_s"], row["eta_s"], row["status"]) == (0, None, "STOP")


def test_describe_when_a_broker_is_down_leaves_gaps_and_is_partial(
    session: Session, start_broker: Callable[..., Broker], command: Invoke
) -> None:
    store(session, "g", {"0-0": 11})
    session.create(paths.broker(9), b"gone-1:127.0.0.1:1")
    session.create(paths.topic_broker(TOPIC, 9), b"1")
    result = command("describe", "g", "--output", "json")
    assert result.status == ExitStatus.PARTIAL
    assert "cannot reach broker 9" in result.stderr
    assert [(row["partition"], row["end"]) for row in rows(result)] == [
        ("0-0", END),
        ("0-1", END),
        ("9-0", None),
    ]


@pytest.mark.parametrize("name", ["describe", "lag", "members", "verify", "watch", "rebalance"])
def test_reads_of_an_unknown_group_name_those_that_come_near(
    session: Session, command: Invoke, name: str
) -> None:
    store(session, "billing", {"0-0": 0})
    result = command(name, "biling")
    assert (result.status, result.stdout) == (ExitStatus.NOT_FOUND, b"")
    assert "error: group 'biling' not found" in result.stderr
    assert "known groups with a similar name: billing" in result.stderr
    assert "try: pylogctl group list" in result.stderr


@pytest.mark.parametrize("name", ["describe", "lag"])
def test_reads_of_an_unknown_topic_name_those_that_come_near(
    session: Session, command: Invoke, name: str
) -> None:
    store(session, "g", {"0-0": 0})
    result = command(name, "g", "--topic", "ordres")
    assert result.status == ExitStatus.NOT_FOUND
    assert "topic 'ordres' not found" in result.stderr
    assert "similar name: orders" in result.stderr


@pytest.mark.parametrize("group", ["", "a/b", ".."])
def test_reads_of_a_group_that_cannot_be_are_usage_errors(command: Invoke, group: str) -> None:
    result = command("describe", group)
    assert result.status == ExitStatus.USAGE
    assert f"invalid group name '{group}'" in result.stderr


# lag


@pytest.mark.parametrize(
    ("limit", "status"),
    [
        ("33B", ExitStatus.OK),
        ("32B", ExitStatus.THRESHOLD),
        ("1KiB", ExitStatus.OK),
        ("3", ExitStatus.OK),
        ("2", ExitStatus.THRESHOLD),
        ("10kg", ExitStatus.USAGE),
    ],
)
def test_lag_above_a_limit_of_bytes_or_messages_has_its_own_exit_status(
    session: Session, command: Invoke, limit: str, status: ExitStatus
) -> None:
    store(session, "g", {"0-0": END - 22, "0-1": END - 11})
    result = command("lag", "g", "--fail-above", limit)
    assert result.status == status
    if status is ExitStatus.THRESHOLD:
        assert "group 'g' is" in result.stderr
        assert result.text.splitlines()[-1].startswith("total")


@pytest.mark.parametrize("value", ["abc", "4096"])
def test_unknown_lag_is_above_every_limit(session: Session, command: Invoke, value: str) -> None:
    store(session, "g", {"0-0": value, "0-1": END})
    result = command("lag", "g", "--fail-above", "1GiB")
    assert result.status == ExitStatus.THRESHOLD
    assert f"the lag of {TOPIC}[0-0] is unknown" in result.stderr


def test_lag_of_a_group_without_offsets_is_unknown_and_above_every_limit(
    session: Session, command: Invoke
) -> None:
    session.create(paths.consumer("read", "read_1"), b'{ "orders": 1 }', ephemeral=True)
    for index in range(2):
        node = paths.owner("read", TopicPartition(TOPIC, 0, index))
        session.create(node, b"read_1-0", ephemeral=True)
    session.create(paths.consumer_ids("ended"))
    for group in ("read", "ended"):
        result = command("lag", group, "--fail-above", "1GiB")
        assert result.status == ExitStatus.THRESHOLD
        assert "is unknown" in result.stderr
        assert result.text.splitlines()[-1].endswith("UNKNOWN")


def test_list_asks_a_broker_once_for_the_ends_of_all_partitions(
    session: Session, command: Invoke
) -> None:
    store(session, "g", {"0-0": 0, "0-1": 11})
    result = command("list", "-vv", "--output", "csv")
    assert result.stderr.count(": list offsets, ") == 1


def test_lag_shows_age_rate_and_eta_with_a_window_only(session: Session, command: Invoke) -> None:
    store(session, "g", {"0-0": 11})
    pace = {"AGE", "RATE", "ETA"}
    for name, shown in (("lag", pace), ("describe", pace - {"AGE"})):
        assert not pace & set(command(name, "g").text.splitlines()[0].split())
        head = command(name, "g", "--window", "200ms").text.splitlines()[0]
        assert pace & set(head.split()) == shown


def test_lag_from_some_size_on_leaves_the_others_out(session: Session, command: Invoke) -> None:
    store(session, "g", {"0-0": END - 22, "0-1": END - 11})
    found = rows(command("lag", "g", "--min-lag", "20", "--output", "json"))
    assert [row["partition"] for row in found] == ["0-0"]


def test_lag_that_is_allowed_is_ok(session: Session, command: Invoke) -> None:
    store(session, "g", {"0-0": END - 22, "0-1": END - 11})
    found = rows(command("lag", "g", "--allowed-lag", "11B", "--output", "json"))
    assert [row["status"] for row in found] == ["LAG", "OK"]


# members


def test_members_shows_what_each_consumes_and_is_assigned(
    session: Session, join: Join, command: Invoke
) -> None:
    join("g", "*2*ord.*")
    owners = paths.owners("g", TOPIC)
    wait_until(lambda: len(children(session, owners)) == 2, "the claim of both partitions")
    (member,) = rows(command("members", "g", "--output", "json"))
    assert member["member"].startswith("g_")
    assert (member["topics"], member["streams"]) == ([TOPIC], 2)
    assert member["subscription"] == "*02*ord.*"


def test_members_of_a_group_without_any_says_so_on_stderr_only(
    session: Session, command: Invoke
) -> None:
    store(session, "g", {"0-0": 0})
    result = command("members", "g")
    assert (result.status, result.stdout, result.stderr) == (0, b"", "no members\n")


# verify


def test_verify_of_a_settled_group_is_sound(session: Session, join: Join, command: Invoke) -> None:
    join("g")
    join("g")
    await_owners(session, "g", 2)
    result = command("verify", "g")
    assert (result.status, result.stdout) == (0, b"")
    assert "group 'g' is sound: 2 members, 2 partitions" in result.stderr


def test_verify_when_an_owner_is_dead_says_so_and_how_to_mend_it(
    session: Session, join: Join, command: Invoke
) -> None:
    join("g")
    await_owners(session, "g", 1)
    node = f"{paths.owners('g', TOPIC)}/0-1"
    session.delete(node)
    session.create(node, b"g_ghost-0")
    result = command("verify", "g", "--output", "json")
    assert result.status == ExitStatus.CORRUPT
    assert [(row["kind"], row["partition"], row["owner"]) for row in rows(result)] == [
        ("dead-owner", "0-1", "g_ghost-0")
    ]
    assert "try: pylogctl group rebalance g" in result.stderr


def test_verify_without_members_says_how_to_start_one(session: Session, command: Invoke) -> None:
    store(session, "g", {"0-0": 0, "x": 0})
    result = command("verify", "g")
    assert result.status == ExitStatus.CORRUPT
    assert [line.split()[0] for line in result.text.splitlines()] == [
        "KIND", "no-owner", "no-owner", "stray-node",
    ]  # fmt: skip
    assert "it has no members; start one: pylogctl consume --group g" in result.stderr


# watch


def test_watch_in_a_pipe_writes_an_object_for_each_look(session: Session, command: Invoke) -> None:
    store(session, "g", {"0-0": 11})
    result = command("watch", "g", "--count", "3", "--interval", "10ms")
    looks = [json.loads(line) for line in result.text.splitlines()]
    assert [(one["state"], one["lag_bytes"]) for one in looks] == [("empty", END - 11)] * 3
    assert [row["partition"] for row in looks[0]["by_partition"]] == ["0-0", "0-1"]


def test_watch_on_a_terminal_gives_the_screen_back_with_the_last_look(
    session: Session, command: Invoke
) -> None:
    store(session, "g", {"0-0": 11})
    text = command("watch", "g", "--count", "1", tty=True).text
    screen, left = text.split("\x1b[?1049l")
    assert screen.startswith("\x1b[?1049h")
    assert "empty" in screen
    assert TOPIC in left


def test_watch_ends_with_status_0_when_interrupted(
    session: Session, zookeeper: str, broker: Broker, spawn: Spawn
) -> None:
    store(session, "g", {"0-0": 11})
    with spawn("group", "watch", "g", "-Z", zookeeper, "--interval", "50ms") as process:
        assert process.stdout is not None
        assert b'"lag_bytes"' in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, without_waits(stderr)) == (0, "")


@pytest.mark.parametrize("args", [("group", "watch", "g"), ("metrics", "serve", "--port", "0")])
def test_service_of_groups_when_interrupted_beside_a_silent_broker_then_ends_at_once(
    session: Session, zookeeper: str, spawn: Spawn, args: tuple[str, ...]
) -> None:
    store(session, "g", {"9-0": 11})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        session.create(paths.broker(9), f"silent:127.0.0.1:{listener.getsockname()[1]}".encode())
        session.create(paths.topic_broker(TOPIC, 9), b"1")
        with (
            spawn(*args, "-Z", zookeeper, "--timeout", "1h") as process,
            listener.accept()[0] as accepted,
        ):
            accepted.recv(1)  # it waits for the response to its hello
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    assert process.returncode == ExitStatus.SIGINT


def test_watch_when_the_zookeeper_goes_away_is_unreachable(
    session: Session, zookeeper: str, broker: Broker, invoke: Invoke
) -> None:
    store(session, "g", {"0-0": 11})
    address, _, chroot = zookeeper.partition("/")
    looks: list[bytes] = []

    def passes(frame: bytes) -> bool:
        if b"/offsets/orders/0-0" in frame:
            looks.append(frame)
        return len(looks) < 3

    proxy = Proxy(int(address.rpartition(":")[2]), passes, is_final=True)
    try:
        result: Result = invoke(
            "group", "watch", "g", "-Z", f"{proxy.address}/{chroot}",
            "--timeout", "5s", "--interval", "10ms",
        )  # fmt: skip
    finally:
        proxy.stop()
    assert result.status == ExitStatus.UNREACHABLE
    assert result.text.count("\n") == 2
    assert "ZooKeeper" in result.stderr


@pytest.mark.parametrize("interval", ["0", "-1s", "soon"])
def test_watch_when_the_interval_makes_no_sense_is_a_usage_error(
    session: Session, command: Invoke, interval: str
) -> None:
    store(session, "g", {"0-0": 11})
    assert command("watch", "g", "--interval", interval).status == ExitStatus.USAGE


def test_watch_sees_messages_that_come(session: Session, broker: Broker, command: Invoke) -> None:
    store(session, "g", {"0-0": END, "0-1": END})
    before = json.loads(command("watch", "g", "--count", "1").text)
    fill(broker, TOPIC, [b"one more"])
    after = json.loads(command("watch", "g", "--count", "1").text)
    assert (before["lag_bytes"], after["lag_bytes"]) == (0, 18)
