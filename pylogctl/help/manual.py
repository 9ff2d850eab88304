"""Finds manual pages, and lays out as text the macros that `docs.docgen` writes.

It knows only the macros of our own pages; any other page needs groff.
"""

from __future__ import annotations

import re
import site
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from broker.errors import did_you_mean
from pylogctl.cli.environment import CliError, ExitStatus
from pylogctl.cli.help_page import TOPICS


def find_page(words: Sequence[str]) -> Path:
    """Return the page of a command such as `log verify`, of one of `TOPICS`, or of the program."""
    wanted = [word for word in words if word != "pylogctl"]
    name = TOPICS.get(wanted[0]) if len(wanted) == 1 else None
    name = name or "-".join(["pylogctl", *wanted[:1]]) + ".1"
    directories = list(_directories())
    for directory in directories:
        path = directory / f"man{name[-1]}" / name
        if path.exists():
            return _followed(path, directory)
    known = sorted({*TOPICS, *_commands(directories)})
    if not known:
        raise CliError(ExitStatus.CONFIG, "the manual pages are not installed")
    raise CliError(
        ExitStatus.NOT_FOUND,
        f"no manual page for '{' '.join(words)}'{did_you_mean(wanted[0], known)}",
        f"topics: {', '.join(TOPICS)}",
        "try: pylogctl --help",
    )


def _directories() -> Iterator[Path]:
    """Yield the directories of pages: the checkout, then those of installed packages."""
    checkout = Path(__file__).resolve().parents[2] / "man"
    if checkout.is_dir():
        yield checkout
    for prefix in (sys.prefix, site.getuserbase()):
        yield Path(prefix) / "share" / "man"


def _followed(path: Path, directory: Path) -> Path:
    """Return the page that an alias page names, or the page itself."""
    text = path.read_text(encoding="utf-8")
    return directory / text[4:].strip() if text.startswith(".so ") else path


def _commands(directories: Sequence[Path]) -> Iterator[str]:
    for directory in directories:
        for path in directory.glob("man1/pylogctl-*.1"):
            yield path.name.removeprefix("pylogctl-").removesuffix(".1")


_FONT = re.compile(r"\\f([BIR])")
_UNICODE = re.compile(r"\\\[u([0-9A-F]{4,6})\]")
_PLAIN = {r"\(aq": "'", r"\(ga": "`", r"\(ha": "^", r"\(ti": "~", r"\(dq": '"', r"\(bu": "*",
          r"\-": "-", r"\&": "", r"\e": "\\"}  # fmt: skip
_STYLES = {"B": "\x1b[1m", "I": "\x1b[4m", "R": "\x1b[0m"}
_STYLE_CODE = re.compile("\x1b\\[\\d+m")
_INDENT = 7


def render_page(source: str, *, width: int, styled: bool) -> str:
    """Return the troff source of one of our pages as text; `width` is in columns."""
    layout = _Layout(max(width, 40), styled=styled)
    for line in source.splitlines():
        layout.feed(line)
    layout.flush()
    return "\n".join(layout.out).strip("\n") + "\n"


class _Layout:
    """Lays out a page line by line: fills paragraphs, indents, keeps the lines of examples."""

    def __init__(self, width: int, *, styled: bool) -> None:
        self.out: list[str] = []
        self._width = width
        self._styled = styled
        self._words: list[str] = []
        self._indent = _INDENT
        self._hanging: str | None = None
        self._awaits_term = False
        self._keeps_lines = False
        self._is_after_heading = False

    def feed(self, line: str) -> None:
        macro, _, argument = line.partition(" ")
        if not line.startswith("."):
            self._text(line)
        elif macro in (".SH", ".SS"):
            self._heading(argument.strip('"'), is_section=macro == ".SH")
        elif macro in (".PP", ".TP", ".IP", ".sp"):
            self._paragraph(macro, argument)
        elif macro == ".br":
            self._break()
        elif macro in (".nf", ".fi"):
            self.flush()
            self._keeps_lines = macro == ".nf"
        elif macro == ".RS":
            self.flush()
            self._indent += int(argument)
        elif macro == ".RE":
            self.flush()
            self._indent = _INDENT

    def flush(self) -> None:
        if self._hanging is not None:
            self._write_hanging(self._hanging)
        elif self._words:
            self._fill(" ".join(self._words), self._indent)
        self._words = []
        self._hanging = None

    def _text(self, line: str) -> None:
        self._is_after_heading = False
        if self._keeps_lines:
            self.out.append(" " * self._indent + self._decode(line))
        elif self._awaits_term:
            self._hanging = line
            self._awaits_term = False
        else:
            self._words.append(line)

    def _break(self) -> None:
        """Begin a new line in the same paragraph."""
        self._fill(" ".join(self._words), self._indent)
        self._words = []

    def _heading(self, text: str, *, is_section: bool) -> None:
        self.flush()
        self._indent = _INDENT
        shown = self._decode(f"\\fB{text}\\fR")
        self.out += ["", shown if is_section else f"   {shown}"]
        self._is_after_heading = True

    def _paragraph(self, macro: str, argument: str) -> None:
        was_hanging = self._hanging is not None
        self.flush()
        if macro == ".sp":
            self._indent = _INDENT * 2 if was_hanging else self._indent
        elif self.out[-1:] != [""] and not self._is_after_heading:
            self.out.append("")
        self._is_after_heading = False
        if macro != ".sp" and self._indent == _INDENT * 2:
            self._indent = _INDENT
        if macro == ".TP":
            self._awaits_term = True
        elif macro == ".IP":
            self._hanging = argument.split(" ")[0]

    def _write_hanging(self, term: str) -> None:
        """Write a term and its text: beside each other for a bullet, else below each other."""
        text = " ".join(self._words)
        if term == r"\(bu":
            self.out.pop()
            self._fill(text, self._indent + 2, first=" " * self._indent + "* ")
            return
        self.out.append(" " * self._indent + self._decode(term))
        if text:
            self._fill(text, self._indent + _INDENT)

    def _fill(self, text: str, indent: int, *, first: str = "") -> None:
        margin = " " * indent
        line = first or margin
        is_empty = True
        for word in text.split(" "):
            shown = self._decode(word)
            if not is_empty and _visible_length(line) + 1 + _visible_length(shown) > self._width:
                self.out.append(line)
                line, is_empty = margin, True
            line += shown if is_empty else f" {shown}"
            is_empty = False
        self.out.append(line)

    def _style(self, match: re.Match[str]) -> str:
        return _STYLES[match[1]] if self._styled else ""

    def _decode(self, text: str) -> str:
        text = _UNICODE.sub(lambda m: chr(int(m[1], 16)), text)
        text = _FONT.sub(self._style, text)
        return re.sub(r"\\\(..|\\[-&e]", lambda m: _PLAIN.get(m[0], m[0]), text)


def _visible_length(text: str) -> int:
    return len(_STYLE_CODE.sub("", text))
