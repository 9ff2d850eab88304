"""Hooks of MkDocs: which files of the repository are pages, and manual pages as Markdown.

Files keep their paths below the repository, so that their links to one another work in the site as
they do in a clone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).resolve().parents[1]
_FILES = (
    *("*.md", "docs/**/*.md", "docs/**/*.svg", "docs/**/*.gif", "docs/**/*.png"),
    "broker/protocol/REQUESTS.md",
    *("broker/spark/__init__.py", "examples/**/*.py", "packaging/*"),
)
# What a browser loads by itself from another host.
_FOREIGN = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\W?(?:https?:)?//[^>]*>")
_REFERENCE = re.compile(r"(?:\*\*|`)(pylogctl[-\w]*)(?:\*\*|`)\(([157])\)")


def on_config(config: MkDocsConfig) -> None:
    """Put the manual pages behind the pages that mkdocs.yml names."""
    config.nav.append({"Manual pages": [_uri(page) for page in manual_pages()]})


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Replace the files of docs/ by those of the whole repository."""
    from mkdocs.structure.files import File

    for file in [one for one in files if one.src_dir == config.docs_dir]:
        files.remove(file)
    for path in sorted({path for pattern in _FILES for path in REPOSITORY.glob(pattern)}):
        if path.is_file():
            uri = path.relative_to(REPOSITORY).as_posix()
            files.append(File(uri, str(REPOSITORY), config.site_dir, config.use_directory_urls))
    for page in manual_pages():
        files.append(File.generated(config, _uri(page), content=to_markdown(page)))


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Make links of the names of manual pages."""
    root = "../" * page.file.src_uri.count("/")
    linked = re.sub(r"(man/man\d/[-\w]+\.\d)\)", r"\1.md)", markdown)
    return _REFERENCE.sub(rf"[\1(\2)]({root}man/man\2/\1.\2.md)", linked)


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Refuse a page that asks something of another host."""
    from mkdocs.exceptions import PluginError

    if found := _FOREIGN.search(output):
        raise PluginError(f"{page.file.src_uri} would load from another host: {found[0]}")
    return output


def manual_pages() -> list[Path]:
    """Return the pages of man/ but those that only name another one."""
    pages = sorted(REPOSITORY.glob("man/man?/*"))
    return [page for page in pages if not page.read_text(encoding="utf-8").startswith(".so")]


def _uri(page: Path) -> str:
    return f"{page.relative_to(REPOSITORY).as_posix()}.md"


def to_markdown(page: Path) -> str:
    """Return a manual page, which has the macros that `docs.docgen` writes."""
    name, _, section = page.name.rpartition(".")
    lines = iter(page.read_text(encoding="utf-8").splitlines()[1:])
    return "\n".join([f"# {name}({section})", *_blocks(lines)]) + "\n"


def _blocks(lines: Iterator[str]) -> Iterator[str]:
    indent = ""  # of the paragraphs of a definition
    for line in lines:
        macro, _, text = line.partition(" ")
        if macro in (".SH", ".SS"):
            indent = ""
            text = text.strip('"')
            yield f"\n## {text.capitalize()}\n" if macro == ".SH" else f"\n### {_inline(text)}\n"
        elif macro == ".TP":
            indent = "    "
            yield f"\n{_inline(next(lines))}\n:   {_inline(next(lines))}"
        elif macro == ".IP":
            yield f"\n- {_inline(next(lines))}"
        elif macro == ".nf":
            yield "\n```text"
            while (code := next(lines)) != ".fi":
                yield _literal(code)
            yield "```\n"
        elif macro in (".PP", ".sp"):
            indent = indent if macro == ".sp" else ""
            yield ""
        elif macro == ".br":
            yield ""
        elif macro not in (".RS", ".RE"):
            yield indent + _inline(line)


_CHARACTERS = {
    "-": "-",
    "&": "",
    "e": "\\",
    "(aq": "'",
    "(dq": '"',
    "(ga": "`",
    "(ha": "^",
    "(ti": "~",
}


def _literal(text: str) -> str:
    """Return text with the characters that troff's escapes stand for."""
    text = re.sub(r"\\\[u([0-9A-F]{4,6})\]", lambda found: chr(int(found[1], 16)), text)
    return re.sub(r"\\(\(..|.)", lambda found: _CHARACTERS[found[1]], text)


def _inline(text: str) -> str:
    parts = re.split(r"\\f([BI])(.*?)\\fR", text)
    out = [_escaped(parts[0])]
    for font, inner, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        quotes = "``" if "`" in _literal(inner) else "`"
        out.append(f"{quotes}{_literal(inner)}{quotes}" if font == "B" else f"*{_escaped(inner)}*")
        out.append(_escaped(after))
    return "".join(out)


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_<\[\]|])", r"\\\1", _literal(text))
