"""JSON Schemas of documents, and what `--help-fields` shows of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from docs import json_schemas as schemas
from pylogctl.cli.app import root
from pylogctl.cli.fields import _OTHERS, schemas_of
from pylogctl.cli.help_page import CommandNode
from pylogctl.cli.tree import describe
from tests.support.command_line import Invoke
from tests.support.command_line import invoke as invoke
from tests.support.json_schemas import SCHEMAS, check, check_output
from tests.support.listings import LISTINGS, as_json

_OF_QUERIES = {"pipeline sql", "pipeline window", "pipeline join", "pipeline verify"}


def _leaves(node: CommandNode) -> Iterator[CommandNode]:
    if not node.children:
        yield node
    for child in node.children:
        yield from _leaves(child)


COMMANDS = [
    node
    for node in _leaves(describe(root()))
    if any(option.name == "output" for option in node.options)
]


def test_schemas_are_those_of_the_rows() -> None:
    assert {path.name: path.read_text() for path in SCHEMAS.iterdir()} == schemas.files()


@pytest.mark.parametrize("node", COMMANDS, ids=lambda node: node.name)
def test_every_command_with_documents_tells_their_fields(node: CommandNode) -> None:
    found = schemas_of(node.name)
    assert bool(found) == (" ".join(node.path[1:]) not in _OF_QUERIES)
    assert any(option.name == "help_fields" for option in node.options)


def test_documents_of_other_names_are_those_that_there_are() -> None:
    names = {path.name.rpartition("-")[0] for path in SCHEMAS.iterdir()}
    assert {name for many in _OTHERS.values() for name in many} <= names
    assert set(_OTHERS) <= {".".join(node.path[1:]) for node in COMMANDS}


@pytest.mark.parametrize("name", LISTINGS)
def test_listing_in_json_is_what_its_schema_says(name: str) -> None:
    check_output((), as_json(name).encode())


def test_fields_are_shown_without_a_cluster_or_an_argument(invoke: Invoke) -> None:
    result = invoke("topic", "offsets", "--help-fields", "--no-header")
    assert result.status == 0
    assert result.text.splitlines()[2].split() == [
        *("topic.offsets/2", "start", "integer,", "or", "null", "offset", "that", "START", "means")
    ]


def test_fields_in_json_have_types(invoke: Invoke) -> None:
    result = invoke("group", "list", "--help-fields", "--output", "json")
    types = {row["field"]: row["type"] for row in json.loads(result.stdout)["data"]}
    assert types["topics"] == "array of string, or null"
    assert types["oldest_commit"] == "time, or null"


def test_fields_of_a_query_are_not_known_before_it_runs(invoke: Invoke) -> None:
    result = invoke("pipeline", "sql", "--help-fields")
    assert result.status == 2
    assert "--columns help" in result.stderr


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, True),
        ({"type": ["integer", "null"]}, "1"),
        ({"type": "string", "format": "date-time"}, "2026-11-26"),
        ({"type": "array", "items": {"type": "string"}}, ["a", 1]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": None}),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, {}),
        ({"type": "object", "properties": {"a": {}}}, {"b": 1}),
    ],
)
def test_check_refuses_what_a_schema_does_not_say(schema: dict[str, Any], value: Any) -> None:
    with pytest.raises(AssertionError):
        check(value, schema, "here")
