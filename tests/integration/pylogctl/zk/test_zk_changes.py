"""The commands of `pylogctl zk` that change, export and compare nodes, on a real server."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from pylogctl.zk import command
from tests.support.command_line import Invoke

pytestmark = pytest.mark.zookeeper


def undo_of(stderr: str) -> list[str]:
    (line,) = [one for one in stderr.splitlines() if one.startswith("undo: pylogctl ")]
    return [*shlex.split(line.removeprefix("undo: pylogctl ")), "--yes"]


@pytest.fixture
def tree(session: Session) -> dict[str, bytes]:
    """Nodes with all kinds of values, one of them ephemeral."""
    nodes = {"/a": b"", "/a/bytes": b"\x00\xff\n", "/a/deep/text": "ü".encode(), "/b": b"other"}
    for path, value in nodes.items():
        session.create(path, value)
    session.create("/a/gone", b"soon", ephemeral=True)
    return {**nodes, "/a/deep": b""}


def values_of(session: Session, top: str) -> dict[str, bytes]:
    return {path: session.get(path)[0] for _, path in session.walk(top)}


def test_create_makes_missing_parents_and_its_undo_deletes_them(
    invoke: Invoke, zookeeper: str, session: Session
) -> None:
    session.create("/x")
    result = invoke("zk", "create", "/x/y/z", "-", "--yes", "-Z", zookeeper,
                    stdin=b"\x00\xff")  # fmt: skip
    assert (result.status, session.get("/x/y/z")[0]) == (0, b"\x00\xff")
    assert "2 nodes created" in result.stderr
    assert invoke(*undo_of(result.stderr)).status == 0
    assert session.children("/x") == []


def test_create_of_a_node_there_is_is_a_conflict(
    invoke: Invoke, zookeeper: str, session: Session
) -> None:
    session.create("/x", b"1")
    assert invoke("zk", "create", "/x", "2", "-Z", zookeeper).status == ExitStatus.CONFLICT
    assert session.get("/x")[0] == b"1"


def test_set_replaces_the_value_and_its_undo_restores_it(
    invoke: Invoke, zookeeper: str, session: Session
) -> None:
    session.create("/x", b"\xff1")
    result = invoke("zk", "set", "/x", "2", "--if-version", "0", "--yes", "-Z", zookeeper)
    assert session.get("/x")[0] == b"2"
    assert "1 node set" in result.stderr
    assert invoke(*undo_of(result.stderr)).status == 0
    assert session.get("/x")[0] == b"\xff1"


def test_set_of_another_version_is_a_conflict(
    invoke: Invoke, zookeeper: str, session: Session
) -> None:
    session.create("/x", b"1")
    result = invoke("zk", "set", "/x", "2", "--if-version", "7", "--yes", "-Z", zookeeper)
    assert result.status == ExitStatus.CONFLICT
    assert "node /x has version 0, not 7" in result.stderr
    assert session.get("/x")[0] == b"1"


def test_set_without_a_confirmation_shows_the_plan_and_changes_nothing(
    invoke: Invoke, zookeeper: str, session: Session
) -> None:
    session.create("/brokers/topics/t/0", b"2")
    for options, status in (("--dry-run", 0), ("--no-input", ExitStatus.DECLINED)):
        result = invoke("zk", "set", "/brokers/topics/t/0", "3", options, "-Z", zookeeper)
        assert result.status == status
        assert "2 partitions  3 partitions" in result.text
    assert session.get("/brokers/topics/t/0")[0] == b"2"


def test_set_without_a_value_is_a_usage_error(invoke: Invoke) -> None:
    assert "missing VALUE" in invoke("zk", "set", "/x").stderr


def test_rm_of_a_tree_asks_for_its_path_and_its_undo_restores_persistent_nodes(
    invoke: Invoke, zookeeper: str, session: Session, tree: dict[str, bytes]
) -> None:
    assert invoke("zk", "rm", "/a", "-Z", zookeeper).status == ExitStatus.CONFLICT
    remove = ("zk", "rm", "-R", "/a", "-Z", zookeeper)
    for options in ((), ("--yes",), ("--yes", "--confirm", "/b")):
        assert invoke(*remove, *options).status == ExitStatus.DECLINED
    result = invoke(*remove, "--yes", "--confirm", "/a")
    assert (result.status, session.exists("/a")) == (0, None)
    assert "5 nodes deleted" in result.stderr
    assert "no undo of 1 ephemeral node" in result.stderr
    undone = invoke(*undo_of(result.stderr))
    assert "skipped, as their sessions make them: 1 ephemeral node" in undone.stderr
    assert values_of(session, "/") == {"/": b"", **tree}


def test_rm_of_more_nodes_than_are_read_at_once_leaves_none(
    invoke: Invoke, zookeeper: str, session: Session
) -> None:
    names = [f"/many/{parent}/{child}" for parent in range(20) for child in range(20)]
    session.create_many(dict.fromkeys(names, b"1"), ephemeral=False)
    before = values_of(session, "/many")
    result = invoke("zk", "rm", "-R", "/many", "--yes", "--confirm", "/many", "-Z", zookeeper)
    assert session.children("/") == []
    assert "421 nodes deleted" in result.stderr
    invoke(*undo_of(result.stderr))
    assert values_of(session, "/many") == before


def test_rm_of_the_whole_tree_is_refused(invoke: Invoke, zookeeper: str, session: Session) -> None:
    session.create("/x")
    assert invoke("zk", "rm", "-R", "/", "--yes", "-Z", zookeeper).status == ExitStatus.USAGE


def test_export_has_exact_bytes_and_import_restores_them_elsewhere(
    invoke: Invoke, zookeeper: str, tree: dict[str, bytes], tmp_path: Path
) -> None:
    exported = invoke("zk", "export", "-Z", zookeeper)
    records = {one["path"]: one for one in map(json.loads, exported.text.splitlines())}
    assert records["/a/bytes"]["value_b64"] == "AP8K"
    assert (records["/a/gone"]["ephemeral"], records["/b"]["ephemeral"]) == (True, False)
    assert {"version", "czxid", "created_ms", "owner"} <= records["/b"].keys()
    file = tmp_path / "tree.jsonl"
    file.write_bytes(exported.stdout)

    other = f"{zookeeper}-other"
    arguments = ("zk", "import", "--file", str(file), "-Z", other)
    plan = invoke(*arguments)
    assert "nothing changed; add --execute" in plan.stderr
    assert invoke(*arguments, "--execute", "--yes").status == 0
    with Session(other) as copied:
        assert values_of(copied, "/") == {"/": b"", **tree}
        assert "nothing to change" in invoke(*arguments, "--execute").stderr
        found = invoke("zk", "diff", "/", zookeeper, "-Z", other, "--output", "jsonl")
        assert found.status == ExitStatus.CORRUPT
        (missing,) = map(json.loads, found.text.splitlines())
        assert (missing["path"], missing["difference"]) == ("/a/gone", "missing")


def test_import_from_standard_input_says_which_line_is_none(
    invoke: Invoke, zookeeper: str, session: Session
) -> None:
    session.create("/x")
    lines = b'{"path":"/x/y","value":"1"}\n{"path":"x","value":"1"}\n'
    result = invoke("zk", "import", "--file", "-", "-Z", zookeeper, stdin=lines)
    assert result.status == ExitStatus.USAGE
    assert "line 2: not a node of an export: invalid path 'x'" in result.stderr


def test_diff_with_an_export_tells_what_changed(
    invoke: Invoke, zookeeper: str, session: Session, tree: dict[str, bytes], tmp_path: Path
) -> None:
    file = tmp_path / "tree.jsonl"
    file.write_bytes(invoke("zk", "export", "-Z", zookeeper).stdout)
    arguments = ("zk", "diff", "/a", str(file), "-Z", zookeeper)
    same = invoke(*arguments)
    assert (same.status, same.stdout, same.stderr) == (0, b"", "no differences\n")
    session.set("/a/bytes", b"changed")
    session.create("/a/deep/new")
    session.delete("/a/deep/text")
    session.set("/b", b"not below /a")
    result = invoke(*arguments, "--columns", "path,difference", "--no-header")
    assert result.status == ExitStatus.CORRUPT
    assert [line.split() for line in result.text.splitlines()] == [
        ["/a/bytes", "value"],
        ["/a/deep/new", "new"],
        ["/a/deep/text", "missing"],
    ]
    assert "3 nodes at or below '/a' differ" in result.stderr


def test_diff_with_another_registry_tells_what_it_has_otherwise(
    invoke: Invoke, zookeeper: str, session: Session, tree: dict[str, bytes]
) -> None:
    session.create("/elsewhere/a/bytes", b"\x00\xff\n")
    session.create("/elsewhere/a/more")
    arguments = ("-Z", zookeeper, "--columns", "path,difference", "--no-header")
    result = invoke("zk", "diff", "/a", f"{zookeeper}/elsewhere", *arguments)
    assert invoke("context", "add", "elsewhere", "-Z", f"{zookeeper}/elsewhere").status == 0
    assert invoke("zk", "diff", "/a", "elsewhere", *arguments).text == result.text
    assert result.status == ExitStatus.CORRUPT
    differences = dict(line.split() for line in result.text.splitlines())
    assert differences.pop("/a/more") == "missing"
    assert set(differences.values()) == {"new"}
    away = invoke("zk", "diff", "/a", "127.0.0.1:1", "-Z", zookeeper, "--timeout", "1s")
    assert away.status == ExitStatus.UNREACHABLE


def test_rm_when_nodes_change_after_the_plan_was_shown_then_deletes_only_what_it_showed(
    invoke: Invoke,
    zookeeper: str,
    session: Session,
    tree: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(*_: object) -> None:
        session.create("/a/new", b"mine")
        session.set("/a/bytes", b"newer")

    monkeypatch.setattr(command, "confirm_name", answer)
    result = invoke("zk", "rm", "-R", "/a", "-Z", zookeeper)
    assert result.status == ExitStatus.PARTIAL
    assert values_of(session, "/a") == {"/a": b"", "/a/bytes": b"newer", "/a/new": b"mine"}
    assert "2 nodes stayed as found" in result.stderr
    assert invoke(*undo_of(result.stderr)).status == ExitStatus.OK
    assert session.get("/a/deep/text")[0] == tree["/a/deep/text"]
    assert session.get("/a/bytes")[0] == b"newer"


@pytest.mark.parametrize("verb", ["create", "set"])
def test_value_above_the_limit_of_zookeeper_is_told_with_both_sizes(
    invoke: Invoke, zookeeper: str, session: Session, verb: str
) -> None:
    session.create("/x", b"1")
    path = "/x" if verb == "set" else "/x/y"
    result = invoke("zk", verb, path, "-", "--yes", "-Z", zookeeper, stdin=b"x" * 2_000_000)
    assert result.status == ExitStatus.REMOTE
    assert f"at the value of node {path}, of 2000000 bytes, which is above" in result.stderr
    assert "jute.maxbuffer" in result.stderr
    assert "1048575 bytes if nothing else is set" in result.stderr
    assert values_of(session, "/x") == {"/x": b"1"}
    assert "undo:" not in result.stderr


def test_value_that_some_zookeepers_take_is_named_when_the_connection_is_lost(
    invoke: Invoke, zookeeper: str, session: Session
) -> None:
    session.create("/x", b"1")
    result = invoke("zk", "set", "/x", "-", "--yes", "-Z", zookeeper, stdin=b"x" * 300_000)
    assert result.status == ExitStatus.UNREACHABLE
    assert "if it happens again at node /x, of 300000 bytes" in result.stderr
    assert values_of(session, "/x") == {"/x": b"1"}


@pytest.mark.parametrize("options", [("--yes", "--dry-run"), ("--no-input",)])
def test_change_that_was_not_made_has_no_undo(
    invoke: Invoke, zookeeper: str, session: Session, options: tuple[str, ...]
) -> None:
    session.create("/x", b"1")
    assert "undo:" not in invoke("zk", "set", "/x", "2", *options, "-Z", zookeeper).stderr
    assert session.get("/x")[0] == b"1"


def test_import_that_fails_midway_has_an_undo_of_what_was_made(
    invoke: Invoke, zookeeper: str, session: Session
) -> None:
    session.create("/y", b"1")
    lines = json.dumps({"path": "/x", "value": "2"}) + "\n"
    lines += json.dumps({"path": "/y", "value": "y" * 2_000_000}) + "\n"
    arguments = ("zk", "import", "--file", "-", "--execute", "--yes", "-Z", zookeeper)
    result = invoke(*arguments, stdin=lines.encode())
    assert result.status == ExitStatus.REMOTE
    assert session.get("/x")[0] == b"2"
    assert "1 node deleted" in invoke(*undo_of(result.stderr)).stderr
    assert values_of(session, "/") == {"/": b"", "/y": b"1"}
