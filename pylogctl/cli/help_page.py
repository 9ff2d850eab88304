"""The commands as values, and their help: examples first, then the options that matter most.

Man pages, completions and tests are made from the values, too.

`--help-all` explains the shared options too, which `--help` only names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pylogctl.cli.environment import Environment, Streams, folded, terminal_width
from pylogctl.cli.options import SHARED_NAMES, Facts

MAX_WIDTH = 110
"""Columns of a line of text; longer ones are hard to read."""
FIRST_COUNT = 10
"""How many options help shows before those under headings."""
TOPICS = {
    "offsets": "pylogctl-offsets.7",
    "formats": "pylogctl-formats.7",
    "framing": "pylogctl-framing.7",
    "patterns": "pylogctl-patterns.7",
    "exit-codes": "pylogctl-exit-codes.7",
    "environment": "pylogctl-environment.7",
    "properties": "pylogctl-config.5",
    "segment": "pylogctl-segment.5",
}
"""The manual pages beside those of commands, by the words of `pylogctl help`."""
_PIPE_WIDTH = 80
_MAX_TERM = 28  # a longer term has a line of its own
_EXAMPLES_OF_GROUP = 4
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_SHARED_ANYWHERE = "Options that several commands share may stand before or after the command."


_FIRST_PANELS = ("Options", "Input", "Selection")
_LAST_PANELS = ("Limits", "Output", "Connection", "Security", "Safety", "General")
HELP_ALL = "--help-all"
HELP_FLAGS = frozenset({"-h", "--help", HELP_ALL})


class OptionNode(NamedTuple):
    """An option, for help, man pages and completions."""

    name: str
    flags: tuple[str, ...]
    metavar: str
    help: str
    panel: str
    envvar: str
    choices: tuple[str, ...]
    takes_value: bool
    repeatable: bool
    default: object
    opposites: tuple[str, ...] = ()  # flags for the contrary; `flags` has them too

    @property
    def synopsis(self) -> str:
        """The option as help shows it, such as `-o, --offset SPEC`, `--deep | --shallow`."""
        flags = ", ".join(sorted((f for f in self.flags if f not in self.opposites), key=len))
        if self.opposites:
            return f"{flags} | {', '.join(sorted(self.opposites, key=len))}"
        return f"{flags} {self.metavar}" if self.metavar else flags

    @property
    def full_help(self) -> str:
        """The help with choices and default, unless help or metavar already show them."""
        text = self.help
        if self.choices and self.metavar != "|".join(self.choices):
            text += f" One of: {', '.join(self.choices)}."
        if self.takes_value and self.default not in (None, "", ()) and not self.repeatable:
            text += f" Default: {self.default}."
        return text


class ArgumentNode(NamedTuple):
    """A positional argument, for help, man pages and completions."""

    name: str
    metavar: str
    help: str
    required: bool
    repeatable: bool
    choices: tuple[str, ...]

    @property
    def synopsis(self) -> str:
        """The argument as usage shows it, such as `[FILE]...`."""
        is_plain = self.required or self.metavar.startswith("[")
        return self.metavar if is_plain else f"[{self.metavar}]"


class CommandNode(NamedTuple):
    """A command or group with all commands below it."""

    path: tuple[str, ...]
    help: str
    facts: Facts = Facts()
    options: tuple[OptionNode, ...] = ()
    arguments: tuple[ArgumentNode, ...] = ()
    children: tuple[CommandNode, ...] = ()

    @property
    def name(self) -> str:
        """The full command, such as `pylogctl log verify`."""
        return " ".join(self.path)

    @property
    def summary(self) -> str:
        """The first sentence of the help."""
        return self.help.partition("\n")[0].rstrip(".")

    def walk(self) -> Iterator[CommandNode]:
        """Yield the command and all commands below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def by_panel(options: Iterable[OptionNode]) -> dict[str, list[OptionNode]]:
    """Return options by their panel, in the order of help: a command's own panels in the middle."""
    rows: dict[str, list[OptionNode]] = {panel: [] for panel in _FIRST_PANELS}
    last: dict[str, list[OptionNode]] = {panel: [] for panel in _LAST_PANELS}
    for option in options:
        panels = last if option.panel in last else rows
        panels.setdefault(option.panel, []).append(option)
    return {panel: members for panel, members in (rows | last).items() if members}


class HelpStyle(NamedTuple):
    """The columns of a line, and whether headings are bold."""

    width: int
    is_bold: bool

    @classmethod
    def of(cls, streams: Streams, *, stderr: bool = False) -> HelpStyle:
        """Return the style of standard output, or of standard error."""
        env = Environment(streams, os.environ)
        is_tty = streams.stderr_is_tty if stderr else streams.stdout_is_tty
        width = min(terminal_width(os.environ), MAX_WIDTH) if is_tty else _PIPE_WIDTH
        return cls(width, is_tty and env.use_color(stderr=stderr))


def command_help(node: CommandNode, style: HelpStyle, *, everything: bool = False) -> str:
    """Return the help of a command; with `everything` the shared options are explained too."""
    sections = [("Arguments", [(one.metavar, one.help) for one in node.arguments])]
    own = [one for one in node.options if one.name not in SHARED_NAMES]
    first = first_options(node)
    sections.append(("Options", [_row(one) for one in first]))
    shown = node.options if everything else own
    rest = by_panel(one for one in shown if one not in first)
    rest["More options"] = rest.pop("Options", [])
    sections += [(panel, [_row(one) for one in members]) for panel, members in rest.items()]
    if not everything:
        shared = by_panel(one for one in node.options if one.name in SHARED_NAMES)
        common = [(panel, ", ".join(map(_flags, members))) for panel, members in shared.items()]
        sections.append((f"Common options, explained by {node.name} --help-all", common))
    usage = ["[OPTIONS]", *(one.synopsis for one in node.arguments)]
    lines = [*_head(node, usage, node.facts.examples, style), *_sections(sections, style)]
    for paragraph in node.help.split("\n\n")[1:]:
        lines += ["", *folded(" ".join(paragraph.split()), style.width)]
    return "\n".join(lines)


def first_options(node: CommandNode) -> list[OptionNode]:
    """Return the options that help shows first: all of its own, if there are few, else the chosen.

    `App.command` has them as `first`.
    """
    own = [one for one in node.options if one.name not in SHARED_NAMES]
    if len(own) <= FIRST_COUNT:
        return [one for members in by_panel(own).values() for one in members]
    by_flag = {flag: one for one in node.options for flag in one.flags}
    return [by_flag[flag] for flag in node.facts.first]


def group_help(node: CommandNode, style: HelpStyle) -> str:
    """Return the help of a group; its examples are the first of its first commands."""
    children = [child.facts.examples[0] for child in node.children if child.facts.examples]
    examples = node.facts.examples or children[:_EXAMPLES_OF_GROUP]
    commands = [(child.path[-1], f"{child.summary}.") for child in node.children]
    lines = [
        *_head(node, ["[OPTIONS]", "COMMAND", "[ARGS]..."], examples, style),
        *_sections([("Commands", commands)], style),
        "",
        *folded(f"{node.name} COMMAND --help explains a command. {_SHARED_ANYWHERE}", style.width),
    ]
    return "\n".join(lines)


def _head(
    node: CommandNode, usage: Iterable[str], examples: Iterable[str], style: HelpStyle
) -> Iterator[str]:
    yield from folded(" ".join(["Usage:", node.name, *usage]), style.width, indent=" " * 7)
    yield from ("", *folded(f"{node.summary}.", style.width))
    yield from ("", _heading("Examples", style))
    for example in examples:
        # Folded, an example can still be pasted: the shell joins the lines.
        whole = _QUOTED.sub(lambda quoted: quoted[0].replace(" ", "\0"), example)
        *lines, last = folded(whole, style.width - 2, first="  ", indent="      ")
        yield from (line.replace("\0", " ") for line in (*(f"{one} \\" for one in lines), last))


def _sections(
    sections: Iterable[tuple[str, list[tuple[str, str]]]], style: HelpStyle
) -> Iterator[str]:
    filled = [(heading, rows) for heading, rows in sections if rows]
    terms = [len(term) for _, rows in filled for term, _ in rows]
    column = 2 + max([one for one in terms if one <= _MAX_TERM], default=_MAX_TERM) + 2
    for heading, rows in filled:
        yield from ("", _heading(heading, style))
        for term, text in rows:
            first = f"  {term}".ljust(column)
            if len(term) > column - 4:
                yield from folded(term, style.width, first="  ", indent=" " * 6)
                first = " " * column
            yield from folded(text, style.width, first=first, indent=" " * column)


def _row(option: OptionNode) -> tuple[str, str]:
    return option.synopsis, option.full_help


def _flags(option: OptionNode) -> str:
    return "/".join(sorted(option.flags, key=len))


def _heading(text: str, style: HelpStyle) -> str:
    return f"\x1b[1m{text}:\x1b[0m" if style.is_bold else f"{text}:"
