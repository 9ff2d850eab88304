"""Man pages and completions: complete, valid and as committed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from docs import docgen
from pylogctl.cli.app import root
from pylogctl.cli.environment import ExitStatus
from pylogctl.cli.help_page import CommandNode
from pylogctl.cli.tree import describe
from pylogctl.help.manual import render_page
from tests.support.command_line import REPOSITORY

FILES = {file.path: file.text for file in docgen.generate()}
PAGES = {path: text for path, text in FILES.items() if path.parts[0] == "man"}
COMMANDS = describe(root()).children


def _page_of(node: CommandNode) -> str:
    return PAGES[Path("man/man1", f"{'-'.join(node.path)}.1")]


def _plain(page: str) -> str:
    return render_page(page, width=1000, styled=False)


def test_committed_files_are_those_that_would_be_generated() -> None:
    assert docgen.stale_files() == [], "run python -m docs.docgen"


@pytest.mark.parametrize("node", COMMANDS, ids=lambda node: node.path[1])
def test_page_of_a_command_has_the_sections_in_order(node: CommandNode) -> None:
    headings = re.findall(r"^\.SH (.+)$", _page_of(node), re.MULTILINE)
    expected = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT"]
    assert [heading for heading in headings if heading in expected] == expected
    assert headings[-1] == "SEE ALSO"


@pytest.mark.parametrize("page", [one for one in PAGES if one.parts[0] == "man"], ids=str)
def test_page_has_each_section_once(page: Path) -> None:
    headings = re.findall(r"^\.SH (.+)$", PAGES[page], re.MULTILINE)
    assert len(set(headings)) == len(headings)


def test_page_of_one_command_has_its_examples_in_one_list() -> None:
    examples = _plain(_page_of(next(one for one in COMMANDS if one.path[1] == "consume")))
    examples = examples.partition("EXAMPLES")[2].partition("OPTIONS")[0]
    commands = [line.strip() for line in examples.splitlines() if " pylogctl consume " in line]
    assert commands
    assert all(line.startswith("$ ") for line in commands)


@pytest.mark.parametrize("node", COMMANDS, ids=lambda node: node.path[1])
def test_page_of_a_command_has_every_visible_option(node: CommandNode) -> None:
    page = _plain(_page_of(node))
    for leaf in [node, *node.children]:
        for option in leaf.options:
            if option.panel != "General":
                assert all(flag in page for flag in option.flags), option.flags


@pytest.mark.parametrize("node", COMMANDS, ids=lambda node: node.path[1])
def test_page_of_a_command_has_only_its_exit_statuses(node: CommandNode) -> None:
    page = _page_of(node).partition(".SH EXIT STATUS")[2].partition(".SH")[0]
    codes = {int(code) for code in re.findall(r"^\\fB(\d+)\\fR$", page, re.MULTILINE)}
    declared = {code for leaf in (node, *node.children) for code in leaf.facts.exits}
    always = {0, 2, 70, 130, 141, 143}
    assert codes == declared | always
    assert ExitStatus.OK in codes


def test_pages_say_the_date_of_the_release_only() -> None:
    dates = {text.split("\n")[0].split(" ")[3] for text in PAGES.values() if text[:3] == ".TH"}
    assert len(dates) == 1


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page_is_accepted_by_groff_without_a_warning(path: Path) -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", str(REPOSITORY / path)],
        cwd=REPOSITORY / "man",
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == b""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page_shown_without_groff_has_no_troff_left(path: Path) -> None:
    assert not re.search(r"\\f[BIR]|\\\(..|\\\[|\\&", _plain(PAGES[path]))


def test_check_option_fails_when_a_file_is_stale(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "man", tmp_path / "man")
    shutil.copytree(REPOSITORY / "completions", tmp_path / "completions")
    shutil.copytree(REPOSITORY / "pylogctl/schemas", tmp_path / "pylogctl/schemas")
    assert docgen.stale_files(tmp_path) == []
    page = tmp_path / "man/man1/pylogctl.1"
    page.write_text(page.read_text() + "\n")
    (tmp_path / "man/man1/old.1").write_text("")
    assert docgen.stale_files(tmp_path) == [Path("man/man1/old.1"), Path("man/man1/pylogctl.1")]
