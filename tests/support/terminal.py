"""Records the first commands of the README on a terminal, as an SVG: `make terminal`.

`python -m tests.support.terminal FILE` runs the pylogctl on PATH, with a broker at port 9092.
"""

from __future__ import annotations

import re
import sys
import tempfile
from html import escape
from itertools import groupby
from pathlib import Path

import pexpect
import pyte
from pyte.screens import Char

from tests.support.command_line import REPOSITORY, process_environment

_WIDTH, _HEIGHT = 80, 40
_FIRST = "pylogctl broker start"
_PROMPT = "$ "
_CELL_WIDTH, _LINE_HEIGHT, _MARGIN = 8.4, 18, 14
_COLORS = {
    "default": "#d8dee9",
    "red": "#ff7b72",
    "green": "#7ee787",
    "brown": "#e3b341",  # what pyte calls yellow
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
}


def first_commands() -> list[str]:
    """Return the commands of the README's first block that runs a broker, without comments."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    block = text[text.index(f"    {_FIRST}") :].partition("\n\n")[0]
    return [re.sub(r"\s+#.*", "", line).strip() for line in block.splitlines()]


def record(commands: list[str]) -> list[list[Char]]:
    """Run commands in a shell on a terminal; return the lines that it shows."""
    screen = pyte.Screen(_WIDTH, _HEIGHT)
    stream = pyte.Stream(screen)
    with tempfile.TemporaryDirectory(prefix="demo-") as directory:
        shell = pexpect.spawn(
            "bash",
            ["--norc", "--noprofile"],
            cwd=directory,
            env=process_environment(
                Path(directory),
                {"TERM": "xterm", "PS1": _PROMPT, "PYLOGCTL_BROKER": "localhost:9092"},
            ),
            dimensions=(_HEIGHT, _WIDTH),
            encoding="utf-8",
            timeout=60,
        )
        for command in [*commands, "exit"]:
            shell.expect_exact(_PROMPT)
            stream.feed(shell.before + shell.after)
            shell.sendline(command)
        shell.close()
    lines = [[screen.buffer[y][x] for x in range(_WIDTH)] for y in range(screen.cursor.y)]
    return [line for line in lines if any(char.data.strip() for char in line)]


def as_svg(title: str, lines: list[list[Char]]) -> str:
    """Return lines of a terminal as a picture, in whatever font of fixed width there is."""
    width, height = _WIDTH * _CELL_WIDTH + 2 * _MARGIN, len(lines) * _LINE_HEIGHT + 2 * _MARGIN
    parts = []
    for row, line in enumerate(lines):
        column = 0
        y = _MARGIN + (row + 0.75) * _LINE_HEIGHT
        for (color, is_bold), run in groupby(line, key=lambda char: (char.fg, char.bold)):
            text = "".join(char.data for char in run)
            if text.strip():
                x, length = _MARGIN + column * _CELL_WIDTH, len(text.rstrip()) * _CELL_WIDTH
                parts.append(
                    f'<text x="{x:.1f}" y="{y:.1f}" textLength="{length:.1f}" '
                    f'fill="{_COLORS[color]}"'
                    f' font-weight="{700 if is_bold else 400}">'
                    f"{escape(text.rstrip())}</text>"
                )
            column += len(text)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" role="img" font-family="monospace" '
        f'font-size="14" xml:space="preserve">\n<title>{escape(title)}</title>\n'
        f'<rect width="100%" height="100%" rx="8" fill="#1c2128"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    shown = record(first_commands())
    Path(sys.argv[1]).write_text(as_svg("pylogctl on a terminal", shown), encoding="utf-8")
