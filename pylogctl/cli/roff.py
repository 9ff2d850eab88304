r"""Writing man pages: text to `man(7)` macros, and a small Markdown to them.

Pure text. The Markdown is what `man/src` uses: `## SECTION`, `### subsection`, paragraphs, fenced
code, `- item` lists, terms with a `:   meaning` line below, and `**bold**`, `*italic*`, `code`
inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_SPECIAL = {"\\": r"\e", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
_INLINE = re.compile(r"\*\*(.+?)\*\*|\*(.+?)\*|`(.+?)`")


def escape_text(text: str) -> str:
    r"""Return prose with everything escaped that troff would take for its own."""
    escaped = "".join(_SPECIAL.get(c) or (c if c.isascii() else f"\\[u{ord(c):04X}]") for c in text)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def escape_literal(text: str) -> str:
    r"""Return text to be typed as it stands: hyphens and quotes are kept from becoming others."""
    return escape_text(text).replace("-", r"\-").replace("'", r"\(aq")


def quote(text: str) -> str:
    """Return a macro argument that may hold blanks."""
    return '"' + text.replace('"', r"\(dq") + '"'


def inline(text: str) -> str:
    """Return a paragraph's text with bold, italic and code as fonts."""
    parts = []
    position = 0
    for match in _INLINE.finditer(text):
        parts.append(escape_text(text[position : match.start()]).removeprefix("\\&"))
        bold, italic, code = match.groups()
        if italic is not None:
            parts.append(f"\\fI{escape_literal(italic)}\\fR")
        else:
            parts.append(f"\\fB{escape_literal(bold or code)}\\fR")
        position = match.end()
    parts.append(escape_text(text[position:]).removeprefix("\\&"))
    joined = "".join(parts)
    return f"\\&{joined}" if joined.startswith((".", "'")) else joined


def title(name: str, section: int, *, date: str, version: str) -> list[str]:
    """Return the opening of a page."""
    words = f"{escape_literal(name.upper())} {section} {date}"
    return [f'.TH {words} "pylogctl {version}" "pylogctl manual"']


def definition(term: str, text: str) -> list[str]:
    """Return one entry of a list of terms.

    Args:
        term: already escaped.
        text: plain prose; empty lines part its paragraphs.
    """
    first, *more = text.split("\n\n") if text else [""]
    lines = [".TP", term, inline(" ".join(first.split()))]
    for paragraph in more:
        lines += [".sp", inline(" ".join(paragraph.split()))]
    return lines


def example_block(lines: Iterable[str]) -> list[str]:
    """Return lines that keep their layout, indented."""
    return [".PP", ".RS 4", ".nf", *map(escape_literal, lines), ".fi", ".RE"]


def parse_sections(markdown: str) -> dict[str, str]:
    """Return the text of each `## SECTION` of a fragment."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in markdown.splitlines():
        if line.startswith("## "):
            current = sections.setdefault(line[3:].strip(), [])
        else:
            current.append(line)
    return {name: "\n".join(lines).strip("\n") for name, lines in sections.items()}


def from_markdown(markdown: str) -> list[str]:
    """Return the macros of a section's Markdown."""
    out: list[str] = []
    for kind, lines in _blocks(markdown.splitlines()):
        if kind == "code":
            out += example_block(lines)
        elif kind == "heading":
            out.append(f".SS {quote(escape_literal(lines[0]))}")
        elif kind == "item":
            out += [".IP \\(bu 2", inline(" ".join(lines))]
        elif kind == "term":
            out += [".TP", inline(lines[0]), inline(" ".join(lines[1:]))]
        else:
            out += [".PP", inline(" ".join(lines))]
    return out


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield kind and lines of each block."""
    position = 0
    while position < len(lines):
        line = lines[position]
        end = position + 1
        if line.startswith("```"):
            while not lines[end].startswith("```"):
                end += 1
            yield "code", lines[position + 1 : end]
            end += 1
        elif line.startswith("### "):
            yield "heading", [line[4:]]
        elif line.strip():
            while end < len(lines) and _continues(lines[end]):
                end += 1
            yield _classify(lines[position:end])
        position = end


def _continues(line: str) -> bool:
    return bool(line.strip()) and not line.startswith(("- ", "```", "#"))


def _classify(lines: list[str]) -> tuple[str, list[str]]:
    words = [line.strip() for line in lines]
    if lines[0].startswith("- "):
        return "item", [words[0][2:], *words[1:]]
    if len(lines) > 1 and lines[1].startswith(":   "):
        return "term", [words[0], words[1][1:].strip(), *words[2:]]
    return "paragraph", words
