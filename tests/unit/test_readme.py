"""What the README and the documents say can be typed, and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.command_line import Invoke
from tests.support.command_line import clean_environment as clean_environment
from tests.support.command_line import invoke as invoke
from tests.support.documents import REPOSITORY, command_lines
from tests.support.terminal import first_commands

PAGES = sorted([REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md")])


@pytest.mark.parametrize("words", command_lines(PAGES), ids=" ".join)
def test_command_in_a_document_has_known_commands_and_options(
    invoke: Invoke, words: list[str]
) -> None:
    result = invoke(*words, "--help")
    assert (result.status, result.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_of_a_document_when_relative_then_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    paths = [page.parent / one for one in links if "://" not in one]
    assert [one for one in paths if not one.is_file()] == []


def test_recorded_terminal_when_compared_with_the_readme_then_shows_its_commands() -> None:
    picture = (REPOSITORY / "docs/terminal.svg").read_text(encoding="utf-8")
    shown = [one.text or "" for one in ElementTree.fromstring(picture).iter()]
    assert [f"$ {one}" for one in first_commands()] == [
        one for one in shown if one.startswith("$ ")
    ], "run make terminal"
    assert set(re.findall(r"https?://[^\"]*", picture)) == {"http://www.w3.org/2000/svg"}
