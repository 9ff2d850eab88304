"""The table of calls and commands in docs/python.md names all commands and all calls there are."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import pylogctl
from broker.protocol.requests import RequestType
from pylogctl.cli.app import root
from pylogctl.cli.help_page import CommandNode
from pylogctl.cli.tree import describe

PAGE = Path(__file__).parents[3] / "docs/python.md"


class Row(NamedTuple):
    """A row of the table: what its cells have in backquotes."""

    commands: list[str]
    calls: list[str]
    results: list[str]
    requests: list[str]


def section() -> str:
    text = PAGE.read_text(encoding="utf-8")
    return text.partition("## Calls and commands\n")[2].partition("\n## ")[0]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def table() -> list[Row]:
    lines = re.findall(r"^\| .*\|$", section(), flags=re.MULTILINE)[1:]  # without its head
    cells = [[quoted(cell) for cell in line[1:-1].split("|")] for line in lines]
    return [Row(full_names(one[0]), *one[1:]) for one in cells]


def full_names(names: list[str]) -> list[str]:
    """Return commands without their options; one word is in the group of the first."""
    bare = [name.partition(" -")[0] for name in names]
    return [
        name if name in COMMANDS or not number else f"{bare[0].partition(' ')[0]} {name}"
        for number, name in enumerate(bare)
    ]


def leaves(node: CommandNode) -> Iterator[str]:
    if not node.children:
        yield " ".join(node.path[1:])
    for child in node.children:
        yield from leaves(child)


COMMANDS = set(leaves(describe(root())))
METHODS = {name for name in dir(pylogctl.Client) if not name.startswith("_")}
ROWS = table()


def without_call() -> set[str]:
    """Return the names in the sentence about commands without a call: groups, for their rest."""
    (sentence,) = re.findall(r"^Only on the command line: (.*?)\n\n", section(), re.M | re.S)
    return {one for one in quoted(sentence) if not one.startswith("broker.")}


def test_commands_when_looked_up_then_are_in_the_table_or_said_to_have_no_call() -> None:
    listed = {name for row in ROWS for name in row.commands}
    said = without_call()
    rest = COMMANDS - listed

    assert listed - COMMANDS == set(), "no such commands"
    assert {one for one in rest if not {one, one.partition(" ")[0]} & said} == set(), "missing"
    assert {one for one in said if not any(f"{name} ".startswith(f"{one} ") for name in rest)} == (
        set()
    ), "in the table, or no command"


def test_table_when_compared_with_the_client_then_each_method_is_there() -> None:
    listed = {name for row in ROWS for call in row.calls for name in _methods(call)}

    assert listed == METHODS


def _methods(call: str) -> list[str]:
    return re.findall(r"\bclient\.(\w+)", call)


@pytest.mark.parametrize("call", sorted({call for row in ROWS for call in row.calls}))
def test_call_in_the_table_when_compared_with_its_signature_then_the_arguments_exist(
    call: str,
) -> None:
    found = re.match(r"(pylogctl|client)\.(\w+)(?:\(([^)]*)\))?", call)
    assert found, "a call starts with client. or pylogctl."
    owner, name, given = found.groups()
    target = getattr(pylogctl if owner == "pylogctl" else pylogctl.Client, name)
    if given is None:
        assert isinstance(target, property)
        return
    parameters = inspect.signature(target).parameters
    for argument in re.findall(r"\w+", given.replace(" or ", ",")):
        assert argument in parameters


@pytest.mark.parametrize(
    "result", sorted({one for row in ROWS for one in row.results if one[0].isupper()})
)
def test_result_in_the_table_when_it_has_fields_then_its_class_has_them(result: str) -> None:
    found = re.fullmatch(r"(\w+)(?:\(([^)]*)\))?", result)
    assert found
    name, fields = found.groups()
    kind = getattr(pylogctl, name)
    for field in re.findall(r"\w+", fields or ""):
        assert field in kind.__annotations__ or hasattr(kind, field)


def test_requests_in_the_table_when_looked_up_then_are_types_of_the_protocol() -> None:
    named = {name for row in ROWS for name in row.requests}

    assert named - set(RequestType.__members__) == set()
