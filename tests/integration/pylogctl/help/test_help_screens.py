"""Help and errors on a real terminal; `screens/` has some pages at 80 columns.

`python -m tests.integration.pylogctl.help.test_help_screens` writes them anew: read the difference
before it is committed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pexpect
import pytest

from pylogctl.cli.help_page import MAX_WIDTH
from tests.integration.pylogctl.test_screens import on_terminal
from tests.support.command_line import REPOSITORY, Invoke, process_environment

SCREENS = Path(__file__).parent / "screens"
PAGES = ("--help", "topic --help", "topic list --help", "consume --help", "log repair --help-all")


def _file_of(page: str) -> Path:
    return SCREENS / (re.sub(r"[^a-z]+", "-", page).strip("-") + ".txt")


def _page(page: str, home: Path, width: int = 80) -> str:
    lines, status = on_terminal(home, width, "pylogctl", *page.split())
    assert status == 0
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("page", PAGES)
def test_help_looks_as_it_did(page: str, tmp_path: Path) -> None:
    assert _page(page, tmp_path) == _file_of(page).read_text()


def test_help_on_a_wide_terminal_has_lines_of_110_columns_at_most(tmp_path: Path) -> None:
    longest = max(map(len, _page("consume --help", tmp_path, 200).splitlines()))
    assert MAX_WIDTH - 10 < longest <= MAX_WIDTH


@pytest.mark.parametrize(("no_color", "is_bold"), [("", True), ("1", False)])
def test_headings_of_help_on_a_terminal_are_bold_unless_that_is_unwanted(
    no_color: str, is_bold: bool, tmp_path: Path
) -> None:
    written = pexpect.run(
        f"{sys.executable} -m pylogctl log verify --help",
        cwd=str(REPOSITORY),
        env=process_environment(tmp_path, {"TERM": "xterm", "NO_COLOR": no_color}),
    )
    assert (b"\x1b[1mOptions:\x1b[0m" in written) == is_bold


def test_help_in_a_pipe_has_no_bold_text_whatever_is_forced(run_process: Invoke) -> None:
    result = run_process("log", "verify", "--help", env={"FORCE_COLOR": "1"})
    assert "\nOptions:\n" in result.text


def test_error_on_a_terminal_when_long_is_folded_at_words(tmp_path: Path) -> None:
    words = ("consume", "t", "--offset", "yesterday-at-the-time-when-all-messages-were-there")
    lines, status = on_terminal(tmp_path, 60, "pylogctl", *words)
    assert status == 2
    assert lines[0] == "error: not an offset:"
    assert lines[1].startswith("  'yesterday-at-the-time-when-all-messages-were-there'")


if __name__ == "__main__":
    for path in SCREENS.iterdir():
        path.unlink()
    for one in PAGES:
        _file_of(one).write_text(_page(one, Path.home()))
