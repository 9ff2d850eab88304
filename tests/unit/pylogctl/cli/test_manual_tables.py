"""The tables in the examples of manual pages have the columns that their commands write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.json_schemas import documents
from pylogctl.cli.fields import schemas_of
from tests.support.command_line import REPOSITORY

_HEADINGS = re.compile(r" *[A-Z][A-Z-]*(?: +[A-Z][A-Z-]*)+ *")


class Example(NamedTuple):
    """A command of a page, and the headings of what it writes."""

    page: str
    command: str
    headings: tuple[str, ...]


def examples() -> list[Example]:
    found = []
    for page in sorted((REPOSITORY / "man/src").glob("*.md")):
        command = ""
        for line in _lines(page):
            if "pylogctl " in line and line.startswith("$ "):
                command = line.rpartition("pylogctl ")[2]
            elif _HEADINGS.fullmatch(line) and command:
                found.append(Example(page.name, command, tuple(line.split())))
    return found


def _lines(page: Path) -> list[str]:
    return page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()


def headings_of(command: str) -> list[list[str]]:
    """Return the headings of each document that a command line can write."""
    words = command.split()
    names = {
        one["title"].removeprefix("pylogctl.")
        for count in (1, 2, 3)
        for one in schemas_of(" ".join(["pylogctl", *words[:count]]))
    }
    return [[c.heading for c in one.columns] for name, one in documents().items() if name in names]


@pytest.mark.parametrize("example", examples(), ids=lambda one: f"{one.page} {one.command}")
def test_table_in_a_manual_page_has_columns_of_its_command_in_their_order(
    example: Example,
) -> None:
    def fits(columns: list[str]) -> bool:
        rest = iter(columns)
        return all(one in rest for one in example.headings)

    found = headings_of(example.command)
    assert found
    assert any(map(fits, found)), found
