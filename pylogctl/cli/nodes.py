"""The commands as values, from which help, man pages, completions and tests are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pylogctl.cli.options import Facts

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
    facts: Facts
    options: tuple[OptionNode, ...]
    arguments: tuple[ArgumentNode, ...]
    children: tuple[CommandNode, ...]

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
