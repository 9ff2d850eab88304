"""The lines of logs."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from broker.errors import StorageError
from broker.state_changes import ChangeKind, LoggedChange
from broker.topic import TopicPartition
from pylogctl.cli.logs import JsonFormatter, OncePerSecond, TextFormatter

PARTITION = TopicPartition("events", 2, 1)


def record(message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("broker.log", logging.WARNING, __file__, 1, message, arguments, None)


def as_json(one: logging.LogRecord, **fields: object) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(JsonFormatter(fields).format(one))
    return line


def test_json_line_when_a_partition_is_among_the_arguments_then_has_its_fields() -> None:
    line = as_json(record("%s: cut at %d", PARTITION, 40), broker=7)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "broker.log",
        "broker": 7,
        "topic": "events",
        "partition": "2-1",
        "message": "events[2-1]: cut at 40",
    }


def test_json_line_when_arguments_have_names_then_they_are_fields() -> None:
    values = {"partition": PARTITION, "offset": 40, "file": Path("/data/x")}
    line = as_json(record("%(partition)s: cut at %(offset)d of %(file)s", values))
    assert (line["topic"], line["partition"], line["offset"]) == ("events", "2-1", 40)
    assert line["file"] == "/data/x"
    assert line["message"] == "events[2-1]: cut at 40 of /data/x"


def test_json_line_when_a_state_has_changed_then_has_all_of_the_change() -> None:
    change = LoggedChange(
        ChangeKind.DECIDED, 5, 1, 3, PARTITION, leader_epoch=9, leader=2, isr=(2, 1)
    )
    line = as_json(record("%s", change))
    assert {
        "kind": "decided",
        "broker": 1,
        "controller_epoch": 3,
        "topic": "events",
        "partition": "2-1",
        "leader_epoch": 9,
        "leader": 2,
        "isr": [2, 1],
    }.items() <= line.items()


def test_json_line_when_an_error_is_logged_then_has_its_kind_and_details() -> None:
    error = StorageError("no room", details={"directory": "/data"})
    line = as_json(record("cannot flush %(topic)s: %(error)s", {"topic": "t", "error": error}))
    assert (line["error"], line["directory"], line["topic"]) == ("StorageError", "/data", "t")


def test_json_line_when_there_is_a_traceback_then_stays_one_line() -> None:
    one = record("failed")
    try:
        raise ValueError("a\nb")
    except ValueError:
        one.exc_info = sys.exc_info()
    text = JsonFormatter().format(one)
    assert "\n" not in text
    assert "ValueError" in json.loads(text)["traceback"]


def test_line_when_repeated_within_a_second_then_is_left_out_and_counted() -> None:
    now_s = 100.0
    once = OncePerSecond(lambda: now_s)

    def lines(message: str, count: int) -> list[str]:
        kept = [one for one in (record(message) for _ in range(count)) if once.filter(one)]
        return [TextFormatter().format(one).partition(": ")[2] for one in kept]

    assert lines("disk full", 3) == ["disk full"]
    assert lines("another", 1) == ["another"]
    now_s = 101.0
    assert lines("disk full", 2) == ["disk full (left out before: 2)"]
    now_s = 102.5
    assert lines("disk full", 1) == ["disk full (left out before: 1)"]
    now_s = 200.0
    assert lines("disk full", 1) == ["disk full"]


def test_lines_when_there_are_very_many_then_few_are_remembered() -> None:
    once = OncePerSecond(lambda: 100.0)
    for number in range(3 * once.MAX_LINES):
        assert once.filter(record("line %d", number))
    assert not once.filter(record("line %d", 3 * once.MAX_LINES - 1))
    assert once.filter(record("line %d", 0))


def test_text_line_when_a_name_has_control_characters_then_they_are_escaped() -> None:
    assert "\x1b" not in TextFormatter().format(record("client %s", "\x1b[31m"))
