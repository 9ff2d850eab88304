"""Generates man pages, completion scripts and JSON Schemas from command tree, `man/src` and rows.

`python -m docs.docgen` writes them, `--check` fails if the committed files are stale.
Options and one-line help come from the tree, prose and examples from the Markdown of `man/src`:
`## SECTION`, `### subsection`, paragraphs, fenced code, `- item` lists, terms with a `:   meaning`
line below, and `**bold**`, `*italic*`, `code`. The date is that of the release, so that the output
does not depend on the day.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from broker.config import BrokerConfig
from broker.topic_settings import TOPIC_SETTINGS
from docs import json_schemas as schemas
from pylogctl import __released__, __version__
from pylogctl.cli.app import Pylogctl, root
from pylogctl.cli.completion import FILE_NAMES, SCRIPTS
from pylogctl.cli.environment import ExitStatus
from pylogctl.cli.help_page import CommandNode, OptionNode, by_panel
from pylogctl.cli.options import SHARED_NAMES
from pylogctl.cli.tree import describe

_SCHEMAS = Path("pylogctl", "schemas")
_SPECIAL = {"\\": r"\e", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
_INLINE = re.compile(r"\*\*(.+?)\*\*|\*(.+?)\*|`(.+?)`")


def _escape_text(text: str) -> str:
    escaped = "".join(_SPECIAL.get(c) or (c if c.isascii() else f"\\[u{ord(c):04X}]") for c in text)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def escape_literal(text: str) -> str:
    """Return text to be typed literally: troff does not replace its hyphens and quotes."""
    return _escape_text(text).replace("-", r"\-").replace("'", r"\(aq")


def quote(text: str) -> str:
    """Return a macro argument with blanks in quotes."""
    return '"' + text.replace('"', r"\(dq") + '"'


def inline(text: str) -> str:
    """Return a paragraph with bold, italic and code as troff fonts."""
    parts = []
    position = 0
    for match in _INLINE.finditer(text):
        parts.append(_escape_text(text[position : match.start()]).removeprefix("\\&"))
        bold, italic, code = match.groups()
        if italic is not None:
            parts.append(f"\\fI{escape_literal(italic)}\\fR")
        else:
            parts.append(f"\\fB{escape_literal(bold or code)}\\fR")
        position = match.end()
    parts.append(_escape_text(text[position:]).removeprefix("\\&"))
    joined = "".join(parts)
    return f"\\&{joined}" if joined.startswith((".", "'")) else joined


def title(name: str, section: int, *, date: str, version: str) -> list[str]:
    """Return the title of a page."""
    words = f"{escape_literal(name.upper())} {section} {date}"
    return [f'.TH {words} "pylogctl {version}" "pylogctl manual"']


def definition(term: str, text: str) -> list[str]:
    """Return a list entry: an escaped term, and prose with empty lines between its paragraphs."""
    first, *more = text.split("\n\n") if text else [""]
    lines = [".TP", term, inline(" ".join(first.split()))]
    for paragraph in more:
        lines += [".sp", inline(" ".join(paragraph.split()))]
    return lines


def _example_block(lines: Iterable[str]) -> list[str]:
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
            out += _example_block(lines)
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


REPOSITORY = Path(__file__).resolve().parents[1]

_ALWAYS = (ExitStatus.OK, ExitStatus.USAGE)
_AT_ANY_TIME = (ExitStatus.BUG, ExitStatus.SIGINT, ExitStatus.SIGPIPE, ExitStatus.SIGTERM)
_VARIABLES = {
    "NO_COLOR": "If set and not empty: no colour.",
    "FORCE_COLOR": "If set: colour in pipes too. `NO_COLOR` and `--color` go first.",
    "COLUMNS": "Width of tables on a terminal.",
}
_SECTIONS_BEHIND = ("FILES", "NOTES", "SEE ALSO")


class _Generated(NamedTuple):
    """A file to be written, relative to the repository."""

    path: Path
    text: str


def generate(repository: Path = REPOSITORY) -> list[_Generated]:
    """Return every generated file; `man/src` of the repository has a fragment for each command."""
    tree = describe(root())
    source = repository / "man" / "src"
    files = [
        _Generated(Path("completions", FILE_NAMES[shell]), script)
        for shell, script in SCRIPTS.items()
    ]
    files.append(_page("pylogctl", 1, _root_page(tree, source)))
    for node in tree.children:
        name = "-".join(node.path)
        files.append(_page(name, 1, _command_page(node, source)))
    for alias, target in _alias_pages():
        files.append(_page(alias, 1, [f".so man1/{target}.1"]))
    for fragment in sorted(source.glob("*.[57].md")):
        name, _, section = fragment.name.removesuffix(".md").rpartition(".")
        files.append(_page(name, int(section), _topic_page(name, int(section), fragment)))
    return [*files, *_schema_files()]


def _schema_files() -> list[_Generated]:
    return [_Generated(_SCHEMAS / name, text) for name, text in schemas.files().items()]


def _page(name: str, section: int, lines: Iterable[str]) -> _Generated:
    return _Generated(Path("man", f"man{section}", f"{name}.{section}"), "\n".join(lines) + "\n")


def _alias_pages() -> Iterator[tuple[str, str]]:
    for alias, words in Pylogctl.shortcuts.items():
        yield f"pylogctl-{alias}", f"pylogctl-{words[0]}"


def _root_page(tree: CommandNode, source: Path) -> Iterator[str]:
    sections = _fragment(source / "pylogctl.1.md")
    yield from title("pylogctl", 1, date=__released__, version=__version__)
    yield from [".SH NAME", f"pylogctl \\- {_escape_text(_lower(tree.summary))}", ".SH SYNOPSIS"]
    yield r"\fBpylogctl\fR [\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGS\fR]..."
    yield from _sections(sections, ("DESCRIPTION", "EXAMPLES"))
    yield ".SH COMMANDS"
    for node in tree.children:
        yield from definition(f"\\fB{escape_literal('-'.join(node.path))}\\fR(1)", node.summary)
    yield from _aliases()
    yield from _option_sections("OPTIONS", [o for node in tree.children for o in _all_options(node)
                                            if o.name in SHARED_NAMES])  # fmt: skip
    yield from _exit_status(tuple(ExitStatus))
    yield from _environment([o for node in tree.children for o in _all_options(node)])
    yield from _sections(sections, _SECTIONS_BEHIND)


def _aliases() -> Iterator[str]:
    yield ".SS Aliases"
    for alias, words in Pylogctl.shortcuts.items():
        yield from definition(
            f"\\fBpylogctl {escape_literal(alias)}\\fR",
            f"The same as `pylogctl {' '.join(words)}`.",
        )
    yield from definition(r"\fBls\fR, \fBdesc\fR", "Inside groups: `list` and `describe`.")


def _command_page(node: CommandNode, source: Path) -> Iterator[str]:
    name = "-".join(node.path)
    sections = _fragment(source / f"{name}.1.md")
    leaves = list(_leaves(node))
    yield from title(name, 1, date=__released__, version=__version__)
    yield from [".SH NAME", f"{escape_literal(name)} \\- {_escape_text(_lower(node.summary))}"]
    yield ".SH SYNOPSIS"
    for number, leaf in enumerate(leaves):
        yield from [".br"] if number else []
        yield _synopsis(leaf)
    yield from _sections(sections, ("DESCRIPTION",))
    yield from _examples(sections, leaves)
    if node.children:
        yield from _commands(leaves)
    options = list(_all_options(node))
    yield from _option_sections(
        "COMMON OPTIONS" if node.children else "OPTIONS",
        [o for o in options if o.name in SHARED_NAMES or not node.children],
    )
    yield from _sections(sections, ("OFFSETS", "FORMAT"))
    codes = sorted({code for leaf in leaves for code in leaf.facts.exits})
    yield from _exit_status((*_ALWAYS, *codes, *_AT_ANY_TIME))
    yield from _environment(options)
    yield from _sections(sections, _SECTIONS_BEHIND)


def _synopsis(leaf: CommandNode) -> str:
    words = [f"\\fB{escape_literal(leaf.name)}\\fR", r"[\fIOPTIONS\fR]"]
    for argument in leaf.arguments:
        shown = f"\\fI{escape_literal(argument.metavar)}\\fR"
        words.append(argument.synopsis.replace(argument.metavar, shown))
    return " ".join(words)


def _examples(sections: dict[str, str], leaves: list[CommandNode]) -> Iterator[str]:
    """Yield the examples of the fragment; of several commands then those of the help it lacks."""
    text = sections.get("EXAMPLES", "")
    yield ".SH EXAMPLES"
    yield from from_markdown(text)
    lines = [line for leaf in leaves for line in leaf.facts.examples if line not in text]
    if lines and (len(leaves) > 1 or not text):
        yield from [".PP", ".RS 4", ".nf", *map(escape_literal, lines), ".fi", ".RE"]


def _commands(leaves: list[CommandNode]) -> Iterator[str]:
    yield ".SH COMMANDS"
    for leaf in leaves:
        yield f".SS {quote(escape_literal(' '.join(leaf.path[2:])))}"
        for number, paragraph in enumerate(leaf.help.split("\n\n")):
            yield from [".PP"] if number else []
            yield inline(" ".join(paragraph.split()))
        for argument in leaf.arguments:
            yield from definition(f"\\fI{escape_literal(argument.metavar)}\\fR", argument.help)
        for option in leaf.options:
            if option.name not in SHARED_NAMES:
                yield from _option(option)
        # The general ones apply to every command.
        common = [o for o in leaf.options if o.name in SHARED_NAMES and o.panel != "General"]
        shared = sorted({max(option.flags, key=len) for option in common})
        if shared:
            yield ".PP"
            yield inline(f"Common options: {', '.join(f'`{flag}`' for flag in shared)}.")


def _option_sections(heading: str, options: list[OptionNode]) -> Iterator[str]:
    """Yield options by panel, each name once."""
    yield f".SH {heading}"
    unique = {option.name: option for option in reversed(options)}
    for panel, members in by_panel(reversed(unique.values())).items():
        yield from [f".SS {panel}"] if panel != "Options" else []
        for option in members:
            yield from _option(option)


def _option(option: OptionNode) -> list[str]:
    flags = ", ".join(f"\\fB{escape_literal(flag)}\\fR" for flag in sorted(option.flags, key=len))
    value = f" \\fI{escape_literal(option.metavar)}\\fR" if option.metavar else ""
    variable = f" Environment: `{option.envvar}`." if option.envvar else ""
    return definition(flags + value, option.full_help + variable)


def _exit_status(codes: tuple[ExitStatus, ...]) -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code in sorted(set(codes)):
        yield from definition(f"\\fB{int(code)}\\fR", f"{code.meaning}.")


def _environment(options: list[OptionNode]) -> Iterator[str]:
    yield ".SH ENVIRONMENT"
    variables = {option.envvar: option for option in options if option.envvar}
    for variable, option in sorted(variables.items()):
        flag = max(option.flags, key=len)
        yield from definition(f"\\fB{variable}\\fR", f"The same as `{flag}`.")
    for variable, text in _VARIABLES.items():
        yield from definition(f"\\fB{variable}\\fR", text)


def _topic_page(name: str, section: int, fragment: Path) -> Iterator[str]:
    sections = _fragment(fragment)
    yield from title(name, section, date=__released__, version=__version__)
    yield ".SH NAME"
    yield f"{escape_literal(name)} \\- {inline(sections['NAME'])}"
    for heading, text in sections.items():
        if heading != "NAME":
            yield f".SH {quote(escape_literal(heading))}"
            yield from from_markdown(_filled(text))


def _filled(text: str) -> str:
    """Replace the marks of a fragment by lists that are generated from the code."""
    if "@EXIT-STATUS@" in text:
        rows = [f"`{int(code)}` *{code.name}*\n:   {code.meaning}" for code in ExitStatus]
        text = text.replace("@EXIT-STATUS@", "\n\n".join(rows))
    if "@BROKER-PROPERTIES@" in text:
        defaults = BrokerConfig()
        aliases = BrokerConfig.aliases().items()
        rows = []
        for prop in BrokerConfig.PROPERTIES:
            default = defaults.value_text(prop)
            if prop.field == "num_threads":  # depends on the machine
                default = "half the number of cores, at least 1"
            shown = f" Default: {default}." if default else ""
            others = [alias for alias, name in aliases if name == prop.name]
            shown += f" In Kafka 0.8: `{others[0]}`." if others else ""
            shown += " Changes while it runs." if prop.field in BrokerConfig.DYNAMIC else ""
            rows.append(f"`{prop.name}`\n:   {prop.doc}.{shown}")
        text = text.replace("@BROKER-PROPERTIES@", "\n\n".join(rows))
    if "@TOPIC-SETTINGS@" in text:
        rows = [
            f"`{one.property.name}`\n:   {one.property.doc}. Applied {one.applied}."
            for one in TOPIC_SETTINGS
        ]
        text = text.replace("@TOPIC-SETTINGS@", "\n\n".join(rows))
    return text


def _sections(sections: dict[str, str], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if name in sections:
            yield f".SH {name}"
            yield from from_markdown(sections[name])


def _fragment(path: Path) -> dict[str, str]:
    return parse_sections(path.read_text(encoding="utf-8"))


def _leaves(node: CommandNode) -> Iterator[CommandNode]:
    if not node.children:
        yield node
    for child in node.children:
        yield from _leaves(child)


def _all_options(node: CommandNode) -> Iterator[OptionNode]:
    for leaf in _leaves(node):
        yield from leaf.options


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def stale_files(repository: Path = REPOSITORY) -> list[Path]:
    """Return the generated files that are out of date, missing or superfluous."""
    files = generate(repository)
    wanted = {file.path for file in files}
    found = {path.relative_to(repository) for path in repository.glob("man/man?/*")}
    found |= {path.relative_to(repository) for path in repository.glob("completions/*")}
    found |= {path.relative_to(repository) for path in (repository / _SCHEMAS).glob("*.json")}
    changed = {
        file.path
        for file in files
        if not (repository / file.path).exists()
        or (repository / file.path).read_text(encoding="utf-8") != file.text
    }
    return sorted(changed | (found - wanted))


def main(args: list[str]) -> int:
    """Write the files, or check them with `--check`; return the exit status."""
    if args == ["--check"]:
        stale = stale_files()
        for path in stale:
            sys.stderr.write(f"stale: {path} (run python -m docs.docgen)\n")
        return 1 if stale else 0
    _write(generate())
    for leftover in stale_files():
        (REPOSITORY / leftover).unlink()
    return 0


def _write(files: Iterable[_Generated]) -> None:
    for file in files:
        path = REPOSITORY / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
