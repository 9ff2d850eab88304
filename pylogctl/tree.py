"""The command tree: lazy groups, help layout, and running a command line.

With `tree_view` and `parse_errors` the only modules that rely on how Typer works inside (its own
copy of Click is private and has changed between releases), so that an upgrade breaks them alone.
Knows no command by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from pylogctl.context import Streams
from pylogctl.errors import MissingCommandError, UsageError, did_you_mean
from pylogctl.options import ASKS_FOR_PROPERTIES, fill_optional, takes_value
from pylogctl.parse_errors import usage_error
from pylogctl.tree_view import HELP_FLAGS, PANELS, describe_command, facts_of

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"]}
_HELP_ALL = "--help-all"
_ALIASES = {"ls": "list", "desc": "describe", "rm": "delete"}


class Entry(NamedTuple):
    """A command of the root, known before its module is loaded."""

    module: str
    help: str


class Command(TyperCommand):
    """A command whose help groups the options by panel and shows examples."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words, some of whose options may have been given without their value."""
        if any(flag == "-X" and word in ASKS_FOR_PROPERTIES for flag, word in pairwise(args)):
            # The question stands in for the command, which then needs no topic or file.
            for param in self.params:
                param.required = False
        return super().parse_args(ctx, fill_optional(args, facts_of(self).optional))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options in the order of the panels."""
        node = describe_command(self, ctx, tuple(ctx.command_path.split()))
        rows: dict[str, list[tuple[str, str]]] = {}
        for argument in node.arguments:
            rows.setdefault("Arguments", []).append((argument.metavar, argument.help))
        for option in node.options:
            rows.setdefault(option.panel, []).append((option.synopsis, option.full_help))
        for panel in ("Arguments", *PANELS):
            if panel in rows:
                with formatter.section(panel):
                    formatter.write_dl(rows[panel])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        examples = facts_of(self).examples
        if examples:
            with formatter.section("Examples"):
                for line in examples:
                    formatter.write(f"  {line}\n")


class Group(TyperGroup):
    """A group that takes shared options before the command and passes them on to it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Split leading shared options from the command, and put them behind it."""
        own, moved, rest = split_leading(args)
        if _HELP_ALL in own:
            typer.echo("\n\n".join(self._help_of_all(ctx)))
            raise typer.Exit
        if own:
            return super().parse_args(ctx, own)
        rest = self.expand_alias(rest) if rest else self.command_of_options(moved)
        if not rest:
            raise MissingCommandError(ctx.command_path, ctx.get_help())
        return super().parse_args(ctx, [rest[0], *moved, *rest[1:]])

    def command_of_options(self, moved: list[str]) -> list[str]:
        """Return the words of the command that options alone stand for, if they do."""
        return []

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands and what may stand before them."""
        self.format_commands(ctx, formatter)
        rows = [("-h, --help", "Show this message and exit."), (_HELP_ALL, "Show all of it.")]
        with formatter.section("Options"):
            formatter.write_dl(rows)
        formatter.write_paragraph()
        formatter.write_text(
            "Options that several commands share may stand before or after the command."
        )

    def expand_alias(self, words: list[str]) -> list[str]:
        """Replace a hidden alias at the front of the words."""
        target = _ALIASES.get(words[0], "")
        if words[0] not in self.commands and target in self.commands:
            return [target, *words[1:]]
        return words

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, or say which one was probably meant."""
        command = self.get_command(ctx, args[0])
        if command is None:
            guess = did_you_mean(args[0], self.list_commands(ctx))
            raise UsageError(
                f"no command '{args[0]}'{guess}", hints=[f"try: {ctx.command_path} --help"]
            )
        return args[0], command, args[1:]

    def _help_of_all(self, ctx: Any) -> Iterator[str]:
        yield ctx.get_help()
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            child = typer.Context(command, info_name=name, parent=ctx)
            if isinstance(command, Group):
                yield from command._help_of_all(child)
            else:
                yield command.get_help(child)


class RootGroup(Group):
    """The root: imports a command's module when the command is named, not before."""

    entries: ClassVar[dict[str, Entry]] = {}
    hidden_entries: ClassVar[dict[str, Entry]] = {}
    shortcuts: ClassVar[dict[str, tuple[str, ...]]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands without loading any."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load the command's module and return the command, None if there is none."""
        entry = self.entries.get(cmd_name) or self.hidden_entries.get(cmd_name)
        if entry is None:
            return None
        command = typer.main.get_command(importlib.import_module(entry.module).app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands from the static help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])

    def command_of_options(self, moved: list[str]) -> list[str]:
        """Return the command for `--version` and `-X list` without any command."""
        if "--version" in moved:
            moved.remove("--version")
            return ["version"]
        return ["properties"] if "-X" in moved else []

    def expand_alias(self, words: list[str]) -> list[str]:
        """Replace a hidden alias of the root, which may stand for two words."""
        return [*self.shortcuts.get(words[0], words[:1]), *words[1:]]


def new_app(text: str = "") -> typer.Typer:
    """Return an empty Typer application with this program's settings.

    Args:
        text: help of a group; empty for an application with a single command.
    """
    return typer.Typer(
        cls=Group,
        help=text or None,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=CONTEXT_SETTINGS,
    )


def split_leading(args: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Split a group's arguments at the command's name.

    Args:
        args: words after the group's own name.

    Returns:
        Help flags that concern the group itself, shared options to pass on, and the words from
        the command's name on.

    Raises:
        UsageError: an option before the command is not a shared one.
    """
    valued = takes_value()
    own: list[str] = []
    moved: list[str] = []
    rest = list(args)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word in HELP_FLAGS or word == _HELP_ALL:
            own.append(word)
            continue
        moved.append(word)
        if _needs_next(word, valued) and rest:
            moved.append(rest.pop(0))
    return own, moved, rest


def _needs_next(word: str, valued: Mapping[str, bool]) -> bool:
    """Say whether an option's value is the next word; check that it is a shared option."""
    if word.startswith("--"):
        flag, equals, _ = word.partition("=")
        if flag not in valued:
            raise UsageError(f"no option '{flag}' before a command{did_you_mean(flag, valued)}")
        return valued[flag] and not equals
    for position, letter in enumerate(word[1:], start=1):
        flag = f"-{letter}"
        if flag not in valued:
            raise UsageError(f"no option '{flag}' before a command")
        if valued[flag]:
            return position == len(word) - 1
    return False


def run(root: TyperGroup, args: list[str], streams: Streams) -> int:
    """Parse a command line and run the command.

    Typer's own `main` is not used: it turns a broken pipe into exit status 1.

    Args:
        root: the root of the tree.
        args: words after the program's name.
        streams: where the command reads and writes.

    Returns:
        The exit status the command asked for, 0 if it just returned.

    Raises:
        CliError: the command line is not understood, or the command failed.
    """
    try:
        with root.make_context("pylogctl", args, obj=streams) as ctx:
            root.invoke(ctx)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except typer.TyperException as error:
        raise usage_error(error) from error
    return 0
