"""`pylogctl retry` on a retry store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.tools.retry import RetryMessage, RetryStore, read_entries
from broker.topic import TopicPartition
from tests.support.command_line import Invoke

LATER_MS = 1 << 42


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A store with a message that is due, one that is not, and a dead one."""
    with RetryStore(tmp_path / "kept") as store:
        for number, due_ms in enumerate((0, LATER_MS, None)):
            message = RetryMessage(TopicPartition("t", 2, 1), number, 9, 0, b"m%d\0" % number)
            store.add(message, attempts=4, next_attempt_ms=due_ms, error="why")
    return tmp_path / "kept"


def left(directory: Path) -> list[bytes]:
    return [one.message.payload for one in read_entries(directory)]


def test_list_when_asked_shows_each_message(directory: Path, invoke: Invoke) -> None:
    result = invoke("retry", "list", str(directory), "--output", "jsonl")
    records = [json.loads(line) for line in result.text.splitlines()]
    assert [(one["offset"], one["state"]) for one in records] == [
        (0, "scheduled"),
        (1, "scheduled"),
        (2, "dead"),
    ]
    assert records[0]["payload"] == "m0\\0"
    assert records[0]["next_attempt"] == "1970-01-01T00:00:00.000Z"


def test_list_when_sorted_by_state_shows_dead_ones_first_even_if_in_use(
    directory: Path, invoke: Invoke
) -> None:
    with RetryStore(directory):
        result = invoke("retry", "list", str(directory), "--sort", "state", "--output", "plain")
    assert result.text.splitlines()[1].split()[:7] == ["t", "2-1", "2", "3", "4", "dead", "-"]


def test_drain_when_nothing_else_is_said_handles_those_that_are_due(
    directory: Path, invoke: Invoke, tmp_path: Path
) -> None:
    drained = tmp_path / "drained"
    result = invoke("retry", "drain", str(directory), "--exec", f"sh -c 'cat >>{drained}'")
    assert (result.status, drained.read_bytes()) == (6, b"m0\0")
    assert f"1 message drained, 2 left in {directory}: 1 to be retried, the first at 21" in (
        result.stderr
    )
    assert ", 1 dead\n" in result.stderr
    assert left(directory) == [b"m1\0", b"m2\0"]


def test_drain_when_all_are_wanted_handles_them(directory: Path, invoke: Invoke) -> None:
    result = invoke("retry", "drain", str(directory), "--all", "--exec", "true")
    assert (result.status, result.stderr) == (0, "3 messages drained\n")
    assert left(directory) == []


def test_drain_when_a_command_fails_keeps_the_message_and_ends_with_6(
    directory: Path, invoke: Invoke
) -> None:
    result = invoke("retry", "drain", str(directory), "--all", "--exec", "grep -q m1")
    assert result.status == 6
    assert "1 message drained, 2 failed, 2 left in" in result.stderr
    entries = list(read_entries(directory))
    assert [(one.message.offset, one.attempts) for one in entries] == [(0, 5), (2, 5)]
    assert entries[0].last_error == "'grep' ended with status 1"


def test_drain_when_another_process_has_the_store_is_a_conflict(
    directory: Path, invoke: Invoke
) -> None:
    with RetryStore(directory):
        result = invoke("retry", "drain", str(directory), "--exec", "true")
    assert result.status == 4
    assert len(left(directory)) == 3


@pytest.mark.parametrize("command", [("list",), ("drain", "--exec", "true")])
def test_retry_when_there_is_no_store_says_so_and_makes_none(
    tmp_path: Path, invoke: Invoke, command: tuple[str, ...]
) -> None:
    assert invoke("retry", *command, str(tmp_path / "typo")).status == 3
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("command", [("list",), ("drain", "--exec", "true")])
def test_retry_when_a_directory_has_no_store_then_names_the_file_that_is_missing(
    tmp_path: Path, invoke: Invoke, command: tuple[str, ...]
) -> None:
    result = invoke("retry", *command, str(tmp_path))
    assert result.status == 3
    assert f"'{tmp_path / 'retry.db'}': no retry store" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_drain_when_no_command_is_given_is_a_usage_error(directory: Path, invoke: Invoke) -> None:
    result = invoke("retry", "drain", str(directory))
    assert (result.status, len(left(directory))) == (2, 3)
    assert "missing --exec" in result.stderr
