"""The command lines and calls that the README and the documents show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
_ALONE = ("acl", "mirror", "tail")  # commands that follow another one in its cell


def command_lines(pages: Iterable[Path]) -> list[list[str]]:
    """Return the words behind `pylogctl` of every command line in pages."""
    texts = [page.read_text(encoding="utf-8").replace("\\\n", " ") for page in pages]
    lines = [line for text in texts for line in text.splitlines()]
    found = []
    for line in dict.fromkeys(lines):
        if line.startswith("|"):
            found += [shlex.split(one) for one in re.findall(r"`pylogctl (\S[^`]*)`", line)]
        if not line.startswith("    ") or "pylogctl " not in line or "pip " in line:
            continue
        words: list[str] = []
        for word in [*shlex.split(line.replace(";", " ; "), comments=True), ";"]:
            if word in ("|", "||", "&", "&&", "<", ">", ";"):
                if "pylogctl" in words:
                    found.append(words[words.index("pylogctl") + 1 :])
                words = []
            else:
                words.append(word)
    return found


def client_calls(page: Path) -> set[str]:
    """Return the names of the calls of clients that a page shows."""
    return set(re.findall(r"\bclient\.(\w+)\(", page.read_text(encoding="utf-8")))


def table_commands(page: Path) -> set[str]:
    """Return the commands that the table of commands names; `...` stands for none."""
    text = page.read_text(encoding="utf-8").partition("## Commands")[2].partition("\n#")[0]
    found = set()
    for cell in re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE):
        group = ""
        for span in re.findall(r"`([^`]*)`", cell):
            words: list[str] = re.findall(
                r"(?<![-\w])[a-z][a-z0-9-]*(?![-\w])", span.partition(" --")[0]
            )
            if not words:
                continue
            if len(words) > 1:
                group = words[0]
            path = words if len(words) > 1 or not group or words[0] in _ALONE else [group, *words]
            found.add(" ".join(path))
    return found
