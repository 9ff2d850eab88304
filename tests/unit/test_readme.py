"""What the README says can be typed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.command_line import Invoke
from tests.support.command_line import clean_environment as clean_environment
from tests.support.command_line import invoke as invoke

REPOSITORY = Path(__file__).parents[2]


def _commands() -> list[list[str]]:
    """The words behind `pylogctl` of every command line in the README."""
    found = []
    for line in (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("    ") or "pylogctl " not in line or "pip " in line:
            continue
        words: list[str] = []
        for word in [*shlex.split(line, comments=True), ";"]:
            if word in ("|", "&&", "<", ";"):
                if "pylogctl" in words:
                    found.append(words[words.index("pylogctl") + 1 :])
                words = []
            else:
                words.append(word)
    return found


@pytest.mark.parametrize("words", _commands(), ids=" ".join)
def test_command_in_the_readme_has_known_commands_and_options(
    invoke: Invoke, words: list[str]
) -> None:
    result = invoke(*words, "--help")
    assert (result.status, result.stderr) == (0, "")
