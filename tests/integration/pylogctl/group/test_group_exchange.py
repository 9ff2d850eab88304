"""`pylogctl group export` and `import` against a real broker, registry and members."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from broker.zk import paths
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.group.group_fixtures import (
    END,
    TOPIC,
    Join,
    await_owners,
    rows,
    store,
    stored,
)
from tests.integration.pylogctl.group.group_fixtures import broker as broker
from tests.integration.pylogctl.group.group_fixtures import command as command
from tests.integration.pylogctl.group.group_fixtures import join as join
from tests.support.command_line import Invoke

pytestmark = pytest.mark.zookeeper

# export


@pytest.mark.parametrize("form", ["jsonl", "csv", "zk07", "json"])
def test_export_can_be_imported_again(
    session: Session, command: Invoke, tmp_path: Path, form: str
) -> None:
    store(session, "g", {"0-0": 33, "0-1": 44})
    path = tmp_path / "offsets"
    path.write_bytes(command("export", "g", "--output", form).stdout)
    for name in ("0-0", "0-1"):
        session.set(f"{paths.offsets('g', TOPIC)}/{name}", b"0")
    result = command("import", "--file", str(path), "--execute", "--yes")
    assert result.status == ExitStatus.OK
    assert stored(session, "g") == {"0-0": "33", "0-1": "44"}


def test_export_has_the_form_of_kafka_07s_tool(session: Session, command: Invoke) -> None:
    store(session, "g", {"0-0": 33})
    text = command("export", "g", "--output", "zk07").text
    assert text == f"/consumers/g/offsets/{TOPIC}/0-0:33\n"


def test_export_without_a_name_has_all_groups(session: Session, command: Invoke) -> None:
    store(session, "a", {"0-0": 11})
    store(session, "b", {"0-1": 22})
    table = list(csv.DictReader(command("export", "--output", "csv").text.splitlines()))
    assert [(row["group"], row["partition"], row["offset"]) for row in table] == [
        ("a", "0-0", "11"),
        ("b", "0-1", "22"),
    ]


def test_export_of_an_unknown_group_is_not_found(command: Invoke) -> None:
    assert command("export", "nope").status == ExitStatus.NOT_FOUND


def test_export_leaves_out_offsets_that_are_no_numbers_unless_written_as_they_are(
    session: Session, command: Invoke
) -> None:
    store(session, "g", {"0-0": "abc", "0-1": 44})
    result = command("export", "g")
    assert result.status == ExitStatus.PARTIAL
    assert [json.loads(line)["partition"] for line in result.text.splitlines()] == ["0-1"]
    assert "--output zk07 writes them as they are" in result.stderr
    raw = command("export", "g", "--output", "zk07")
    assert (raw.status, raw.text.splitlines()[0]) == (
        0,
        f"/consumers/g/offsets/{TOPIC}/0-0:abc",
    )


# import


def write(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def test_import_shows_the_plan_and_changes_nothing(
    session: Session, command: Invoke, tmp_path: Path
) -> None:
    store(session, "g", {"0-0": 33})
    file = write(tmp_path / "f", f"{TOPIC} 0-0 44", f"{TOPIC} 0-1 12", f"{TOPIC} 0-0 4096")
    result = command("import", "g", "--file", file, "--output", "json")
    assert [(row["current"], row["new"], row["note"]) for row in rows(result)] == [
        (33, END, "4096 is after the last offset 110"),
        (None, 11, "12 is inside the message at 11"),
    ]
    assert "nothing changed; add --execute" in result.stderr
    assert stored(session, "g") == {"0-0": "33"}


def test_import_of_several_groups_when_planned_then_says_which_group_each_row_is_of(
    session: Session, command: Invoke, tmp_path: Path
) -> None:
    store(session, "a", {"0-0": 0})
    lines = [f"/consumers/{group}/offsets/{TOPIC}/0-0:{n}" for group, n in (("a", 11), ("b", 22))]

    result = command("import", "--file", write(tmp_path / "f", *lines))

    heading, *found = [line.split()[:5] for line in result.text.splitlines()]
    assert heading == ["GROUP", "TOPIC", "PARTITION", "CURRENT", "NEW"]
    assert sorted(found) == [["a", TOPIC, "0-0", "0", "11"], ["b", TOPIC, "0-0", "-", "22"]]


def test_import_when_executed_makes_groups_that_do_not_exist(
    session: Session, command: Invoke
) -> None:
    lines = f"/consumers/new/offsets/{TOPIC}/0-0:22\n/consumers/newer/offsets/{TOPIC}/0-1:33\n"
    result = command("import", "--file", "-", "--execute", "--yes", stdin=lines.encode())
    assert result.status == ExitStatus.OK
    assert (stored(session, "new"), stored(session, "newer")) == ({"0-0": "22"}, {"0-1": "33"})


@pytest.mark.parametrize("form", ["jsonl", "csv", "zk07", "json"])
def test_export_when_imported_into_another_group_gives_it_the_same_offsets(
    session: Session, command: Invoke, form: str
) -> None:
    store(session, "g", {"0-0": 33, "0-1": END})
    lines = command("export", "g", "--output", form).stdout
    result = command("import", "other", "--file", "-", "--execute", "--yes", stdin=lines)
    assert result.status == ExitStatus.OK
    assert stored(session, "other") == {"0-0": "33", "0-1": str(END)}


def test_import_without_an_answer_or_as_a_dry_run_changes_nothing(
    session: Session, command: Invoke, tmp_path: Path
) -> None:
    store(session, "g", {"0-0": 33})
    file = write(tmp_path / "f", f"{TOPIC} 0-0 44")
    words = ("import", "g", "--file", file, "--execute")
    assert command(*words).status == ExitStatus.DECLINED
    assert "this was a dry run" in command(*words, "--yes", "--dry-run").stderr
    assert stored(session, "g") == {"0-0": "33"}


def test_import_with_broken_lines_names_them_and_changes_nothing(
    session: Session, command: Invoke, tmp_path: Path
) -> None:
    store(session, "g", {"0-0": 33})
    file = write(
        tmp_path / "f",
        f"/consumers/g/offsets/{TOPIC}/0-0:44",
        f"/consumers/g/offsets/{TOPIC}/0-1:x",
        "",
        "# fine",
        "{",
    )
    result = command("import", "--file", file, "--execute", "--yes")
    assert (result.status, result.stdout) == (ExitStatus.USAGE, b"")
    assert f"line 2 of '{file}' is not an offset" in result.stderr
    assert "neither are these: 5" in result.stderr
    assert stored(session, "g") == {"0-0": "33"}


def test_import_into_a_live_group_is_refused_and_names_the_members(
    session: Session, join: Join, command: Invoke, tmp_path: Path
) -> None:
    join("g")
    await_owners(session, "g", 1)
    file = write(tmp_path / "f", f"{TOPIC} 0-0 44")
    result = command("import", "g", "--file", file, "--execute", "--yes")
    assert result.status == ExitStatus.CONFLICT
    assert "group 'g' has 1 active member" in result.stderr
    assert "members: g_" in result.stderr


def test_import_of_partitions_that_are_nowhere_does_the_rest(
    session: Session, command: Invoke, tmp_path: Path
) -> None:
    file = write(tmp_path / "f", f"{TOPIC} 0-0 44", "nope 0-0 0", f"{TOPIC} 9-0 0")
    result = command("import", "g", "--file", file, "--execute", "--yes")
    assert result.status == ExitStatus.PARTIAL
    assert "2 of 3 offsets cannot be changed" in result.stderr
    assert "nope[0-0]: the partition is on no live broker" in result.stderr
    assert stored(session, "g") == {"0-0": "44"}


def test_import_of_a_saved_plan_carries_it_out_as_long_as_nothing_has_changed(
    session: Session, command: Invoke, tmp_path: Path
) -> None:
    store(session, "g", {"0-0": 33, "0-1": "abc"})
    plan = command(
        "reset", "g", "--all-topics", "--to", "shift:-1", "--output", "json"
    )  # 0-1 cannot be shifted, so the plan leaves it alone
    path = tmp_path / "plan.json"
    path.write_bytes(plan.stdout)
    result = command("import", "--file", str(path), "--execute", "--yes")
    assert result.status == ExitStatus.OK
    assert stored(session, "g") == {"0-0": "22", "0-1": "abc"}
    again = command("import", "--file", str(path), "--execute", "--yes")
    assert again.status == ExitStatus.CONFLICT
    assert "is 22, but the plan was made when it was 33" in again.stderr
    assert "make the plan again" in again.stderr


def test_import_of_nothing_says_so(command: Invoke) -> None:
    result = command("import", "g", "--file", "-", stdin=b"")
    assert (result.status, result.stdout) == (0, b"")
    assert "'-' has no offsets; nothing to change" in result.stderr


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "missing --file"),
        (["--file", "/nope"], 3, "'/nope': no such file"),
        (["--file", "-"], 2, "line 1 names no group"),
        (["a/b", "--file", "-"], 2, "invalid group name 'a/b'"),
    ],
)
def test_import_when_something_is_wrong_says_what(
    command: Invoke, words: list[str], status: int, message: str
) -> None:
    result = command("import", *words, stdin=f"{TOPIC} 0-0 11\n".encode())
    assert (result.status, result.stdout) == (status, b"")
    assert message in result.stderr


def test_import_of_a_file_that_is_not_utf8_is_refused(command: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"\xff\xfe\x00")
    result = command("import", "g", "--file", str(path))
    assert result.status == ExitStatus.USAGE
    assert "is not UTF-8 text" in result.stderr
