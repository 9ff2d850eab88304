"""`pylogctl group reset` against a real broker, registry and members."""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker, Codec
from broker.protocol.message_set import iter_entries
from broker.protocol.primitives import INT32
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.group.group_fixtures import (
    END,
    TOPIC,
    Join,
    await_owners,
    await_topic,
    rows,
    store,
    stored,
)
from tests.integration.pylogctl.group.group_fixtures import broker as broker
from tests.integration.pylogctl.group.group_fixtures import command as command
from tests.integration.pylogctl.group.group_fixtures import join as join
from tests.integration.pylogctl.proxies import Proxy
from tests.integration.pylogctl.topic.test_topic import fill
from tests.support.command_line import Invoke, Result

pytestmark = pytest.mark.zookeeper

SET_DATA = 5
"""The number of ZooKeeper's request that writes a node."""

Reset = Callable[..., Result]


@pytest.fixture
def reset(command: Invoke) -> Reset:
    """Reset group g in the topic, with a plan as JSON."""

    def run(to: str, *args: str) -> Result:
        return command("reset", "g", "--topic", TOPIC, "--to", to, "--output", "json", *args)

    return run


def test_reset_shows_the_plan_and_changes_nothing(
    session: Session, command: Invoke, tmp_path: Path
) -> None:
    store(session, "g", {"0-0": 33, "0-1": 0})
    result = command("reset", "g", "--topic", TOPIC, "--to", "start")
    assert result.status == ExitStatus.OK
    assert [line.split() for line in result.text.splitlines()] == [
        ["TOPIC", "PARTITION", "CURRENT", "NEW", "DELTA-BYTES", "DIRECTION", "NOTE"],
        [TOPIC, "0-0", "33", "0", "-33", "back", "-"],
    ]
    assert result.stderr == "unchanged, and left out: 1 offset\nnothing changed; add --execute\n"
    assert stored(session, "g") == {"0-0": "33", "0-1": "0"}
    assert not (tmp_path / "home").exists()


def test_reset_shows_the_plan_in_every_format(session: Session, command: Invoke) -> None:
    store(session, "g", {"0-0": 33})
    for form in ("table", "jsonl", "csv", "tsv", "plain", "markdown"):
        result = command("reset", "g", "--all-topics", "--to", "start", "--output", form)
        assert "back" in result.text


def test_reset_when_executed_writes_the_plan_and_its_undo_takes_it_back(
    session: Session, reset: Reset, invoke: Invoke
) -> None:
    store(session, "g", {"0-0": 33})
    result = reset("end", "--execute", "--yes")
    assert [(row["current"], row["new"], row["direction"]) for row in rows(result)] == [
        (33, END, "forward"),
        (None, END, "new"),
    ]
    assert "2 offsets changed" in result.stderr
    assert stored(session, "g") == {"0-0": str(END), "0-1": str(END)}
    undo = shlex.split(result.stderr.partition("undo: pylogctl ")[2].splitlines()[0])
    assert invoke(*undo, "--yes").status == ExitStatus.OK
    assert stored(session, "g") == {"0-0": "33"}


def test_reset_when_executed_without_an_answer_declines(session: Session, reset: Reset) -> None:
    store(session, "g", {"0-0": 33})
    result = reset("end", "--execute")
    assert result.status == ExitStatus.DECLINED
    assert "'group reset' needs confirmation; add --yes" in result.stderr
    assert stored(session, "g") == {"0-0": "33"}


def test_reset_when_it_is_a_dry_run_changes_nothing(session: Session, reset: Reset) -> None:
    store(session, "g", {"0-0": 33})
    result = reset("end", "--execute", "--yes", "--dry-run")
    assert "nothing changed; this was a dry run" in result.stderr
    assert stored(session, "g") == {"0-0": "33"}


def test_reset_when_the_group_is_there_already_changes_nothing(
    session: Session, reset: Reset
) -> None:
    store(session, "g", {"0-0": 0, "0-1": 0})
    for options in ([], ["--execute"]):
        result = reset("start", *options)
        assert (result.status, rows(result)) == (0, [])
        assert result.stderr == "unchanged, and left out: 2 offsets\nnothing to change\n"


@pytest.mark.parametrize(
    ("to", "first", "second", "note"),
    [
        ("start", 0, 0, None),
        ("end", END, END, None),
        ("44", 44, 44, None),
        ("45", 44, 44, "45 is inside the message at 44"),
        ("~45", 55, 55, None),
        ("4096", END, END, "4096 is after the last offset 110"),
        ("-3", 77, 77, None),
        ("+3", 33, 33, None),
        ("-12B", 99, 99, None),
        ("@-1h", 0, 0, None),
        ("0=11,1=22", 11, 22, None),
        ("shift:+1", 44, 66, None),
        ("shift:-1", 22, 44, None),
        ("shift:+12B", 55, 77, None),
        ("shift:+100", END, END, None),
        ("shift:-100", 0, 0, None),
        ("by:-1h", 0, 0, None),
        ("by:+1h", END, END, None),
        ("group:other", 22, 99, None),
    ],
)
def test_reset_moves_the_offset_to_the_target(
    session: Session, reset: Reset, to: str, first: int, second: int, note: str | None
) -> None:
    before = {"0-0": 33, "0-1": 55}
    store(session, "g", before)
    store(session, "other", {"0-0": 22, "0-1": 99})
    result = reset(to)
    assert result.status == ExitStatus.OK
    planned = {row["partition"]: row["new"] for row in rows(result)}
    assert before | planned == {"0-0": first, "0-1": second}
    assert rows(result)[0]["note"] == note


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_reset_never_leaves_an_offset_inside_a_message(
    session: Session, broker: Broker, command: Invoke, codec: Codec
) -> None:
    for size in (1, 0, 9):
        fill(broker, "t", [b"x" * size] * 2, codec=codec)
    await_topic(session, "t")
    store(session, "g", {"0-0": 0})
    (segment,) = broker.config.data_dir.glob("t_0/*.pylog")
    entries = iter_entries(segment.read_bytes(), 0)
    boundaries = [0, *(one.next_offset for one in entries)]
    for position in sorted({max(0, one + step) for one in boundaries for step in (-1, 0, 1, 7)}):
        plan = command(
            "reset", "g", "-t", "t", "-p", "0", "--to", f"{position}", "--output", "json"
        )
        assert rows(plan)[0]["new"] == max(one for one in boundaries if one <= position)


def test_reset_of_some_partitions_leaves_the_others(session: Session, reset: Reset) -> None:
    store(session, "g", {"0-0": 33, "0-1": 55})
    assert reset("start", "-p", "1", "--execute", "--yes").status == ExitStatus.OK
    assert stored(session, "g") == {"0-0": "33", "0-1": "0"}


def test_reset_to_a_file_takes_its_lines(session: Session, reset: Reset, tmp_path: Path) -> None:
    store(session, "g", {"0-0": 33, "0-1": 55})
    path = tmp_path / "offsets"
    path.write_text(f"# some\n{TOPIC} 0-1 12\nother 0-0 5\n")
    found = rows(reset(f"file:{path}"))
    assert [(row["new"], row["note"]) for row in found] == [
        (33, "not in the file"),
        (11, "12 is inside the message at 11"),
    ]


def test_reset_to_a_file_with_broken_lines_names_them_and_changes_nothing(
    session: Session, reset: Reset, tmp_path: Path
) -> None:
    store(session, "g", {"0-0": 33})
    path = tmp_path / "offsets"
    path.write_text(f"{TOPIC} 0-0 11\n{TOPIC} 0-0 eleven\n\nnonsense\n")
    result = reset(f"file:{path}", "--execute", "--yes")
    assert result.status == ExitStatus.USAGE
    assert f"line 2 of '{path}' is not an offset: '{TOPIC} 0-0 eleven'" in result.stderr
    assert "neither are these: 4" in result.stderr
    assert stored(session, "g") == {"0-0": "33"}


# a group that lives


def test_reset_of_a_live_group_is_refused_and_names_the_members(
    session: Session, join: Join, reset: Reset
) -> None:
    join("g")
    await_owners(session, "g", 1)
    for options in ([], ["--execute", "--yes"]):
        result = reset("start", *options)
        assert result.status == ExitStatus.CONFLICT
        assert "group 'g' has 1 active member; stop them or use --wait-inactive" in result.stderr
        assert re.search(r"members: g_\S+", result.stderr)


def test_reset_of_a_live_group_waits_until_the_members_have_left(
    session: Session, join: Join, reset: Reset
) -> None:
    member = join("g")
    await_owners(session, "g", 1)
    leaving = threading.Timer(0.3, member.leave)
    leaving.start()
    result = reset("33", "--execute", "--yes", "--wait-inactive", "60s")
    leaving.join()
    assert result.status == ExitStatus.OK
    assert stored(session, "g") == {"0-0": "33", "0-1": "33"}


def test_reset_of_a_group_that_stays_alive_gives_up_when_time_is_up(
    session: Session, join: Join, reset: Reset
) -> None:
    join("g")
    await_owners(session, "g", 1)
    result = reset("start", "--execute", "--yes", "--wait-inactive", "200ms")
    assert result.status == ExitStatus.TIMEOUT
    assert "group 'g' still has 1 active member after 0.2s" in result.stderr


def test_reset_of_a_live_group_by_force_warns_that_it_may_be_undone(
    session: Session, join: Join, reset: Reset
) -> None:
    store(session, "g", {"0-0": 11, "0-1": 11})
    session.create(paths.consumer("g", "g_other"), b'{ "unread": 1 }', ephemeral=True)
    result = reset("33", "--execute", "--yes", "--force")
    assert result.status == ExitStatus.OK
    assert "warning: members of the group may write over the new offsets" in result.stderr
    assert stored(session, "g") == {"0-0": "33", "0-1": "33"}


def test_reset_of_a_group_without_a_node_of_members_counts_it_as_inactive(
    session: Session, reset: Reset
) -> None:
    store(session, "g", {"0-0": 11})
    assert not session.exists(paths.consumer_ids("g"))
    assert reset("start", "--execute", "--yes").status == ExitStatus.OK


# bad input


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["g", "--to", "start"], 2, "either --topic or --all-topics must say what to reset"),
        (["g", "-t", TOPIC, "--all-topics", "--to", "start"], 2, "either --topic or --all-topics"),
        (["g", "--all-topics", "-p", "0", "--to", "start"], 2, "--partition needs --topic"),
        (["g", "--all-topics"], 2, "missing --to"),
        (["g", "--all-topics", "--to", "tomorow"], 2, "not an offset: 'tomorow'"),
        (["g", "--all-topics", "--to", "0:11"], 2, "has an end, but a group has only one"),
        (["g", "--all-topics", "--to", "shift:3"], 2, "not a shift: '3'"),
        (["g", "--all-topics", "--to", "by:1h"], 2, "not a time to shift by: '1h'"),
        (["g", "--all-topics", "--to", "group:nope"], 3, "group 'nope' not found"),
        (["g", "--all-topics", "--to", "file:/nope"], 3, "'/nope': no such file"),
        (["nope", "--all-topics", "--to", "start"], 3, "group 'nope' not found"),
        (["g", "-t", "nope", "--to", "start"], 3, "topic 'nope' not found"),
        (["g", "-t", TOPIC, "-p", "7", "--to", "start"], 3, "has no partition '7'"),
        (["g", "-t", TOPIC, "-p", "x", "--to", "start"], 2, "not a partition: 'x'"),
    ],
)
def test_reset_when_something_is_wrong_says_what_and_changes_nothing(
    session: Session, command: Invoke, words: list[str], status: int, message: str
) -> None:
    store(session, "g", {"0-0": 33})
    result = command("reset", *words, "--execute", "--yes")
    assert (result.status, result.stdout) == (status, b"")
    assert message in result.stderr
    assert stored(session, "g") == {"0-0": "33"}


def test_reset_when_the_offset_makes_no_sense_shows_the_valid_forms(
    session: Session, reset: Reset
) -> None:
    store(session, "g", {"0-0": 33})
    assert "shift:-100, by:-1h, group:OTHER, file:PATH" in reset("tomorow").stderr


def test_reset_of_an_offset_that_is_no_number_replaces_it_but_cannot_shift_it(
    session: Session, reset: Reset
) -> None:
    store(session, "g", {"0-0": "abc", "0-1": 33})
    result = reset("shift:-1", "--execute", "--yes")
    assert result.status == ExitStatus.PARTIAL
    assert f"{TOPIC}[0-0]: the current offset is no number: 'abc'" in result.stderr
    assert stored(session, "g") == {"0-0": "abc", "0-1": "22"}
    assert reset("44", "--execute", "--yes").status == ExitStatus.OK
    assert stored(session, "g") == {"0-0": "44", "0-1": "44"}


@pytest.mark.parametrize(("value", "new"), [(4096, 99), (-5, 0)])
def test_reset_of_an_offset_out_of_range_shifts_from_the_nearest_valid_one(
    session: Session, reset: Reset, value: int, new: int
) -> None:
    store(session, "g", {"0-0": value})
    row = rows(reset("shift:-1"))[0]
    assert row["new"] == new
    assert f"{value} is" in row["note"]


def test_reset_when_a_partition_is_on_no_live_broker_does_the_rest(
    session: Session, command: Invoke
) -> None:
    store(session, "g", {"0-0": 33, "7-0": 5})
    result = command("reset", "g", "--all-topics", "--to", "start", "--execute", "--yes")
    assert result.status == ExitStatus.PARTIAL
    assert f"{TOPIC}[7-0]: the partition is on no live broker" in result.stderr
    assert stored(session, "g") == {"0-0": "0", "0-1": "0", "7-0": "5"}


def test_reset_when_the_broker_is_down_changes_nothing(
    session: Session, broker: Broker, reset: Reset
) -> None:
    store(session, "g", {"0-0": 33})
    session.create(paths.broker(9), b"gone-1:127.0.0.1:1")
    session.create(paths.topic_broker(TOPIC, 9), b"1")
    result = reset("start", "--execute", "--yes")
    assert result.status == ExitStatus.UNREACHABLE
    assert "cannot reach broker 9" in result.stderr
    assert stored(session, "g") == {"0-0": "33"}


def test_reset_when_the_zookeeper_goes_away_midway_says_that_some_may_be_changed(
    session: Session, zookeeper: str, broker: Broker, invoke: Invoke
) -> None:
    store(session, "g", {"0-0": 33, "0-1": 33})
    address, _, chroot = zookeeper.partition("/")
    written: list[bytes] = []

    def passes(frame: bytes) -> bool:
        if b"/offsets/" in frame and INT32.unpack_from(frame, INT32.size)[0] == SET_DATA:
            written.append(frame)
        return len(written) < 2

    proxy = Proxy(int(address.rpartition(":")[2]), passes, is_final=True)
    try:
        result: Result = invoke(
            "group", "reset", "g", "--all-topics", "--to", "end", "--execute", "--yes",
            "-Z", f"{proxy.address}/{chroot}", "--timeout", "5s",
        )  # fmt: skip
    finally:
        proxy.stop()
    assert result.status == ExitStatus.UNREACHABLE
    assert "some of the 2 offsets may be changed, others not" in result.stderr
    assert "look again: pylogctl group describe g" in result.stderr
    assert set(stored(session, "g").values()) <= {"33", str(END)}
