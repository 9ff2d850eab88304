"""The command tree as plain values: what help, man pages, completions and tests are made from.

Reads Typer's parameters, whose names have changed between releases, in this one place.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import typer
from typer.core import TyperGroup

from pylogctl.options import Facts

PANELS = ("Options", "Input", "Selection", "Limits", "Output", "Connection", "Safety", "General")
HELP_FLAGS = frozenset({"-h", "--help"})


class OptionNode(NamedTuple):
    """An option as generators see it."""

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

    @property
    def synopsis(self) -> str:
        """Return the option as help shows it, such as `-o, --offset SPEC`."""
        flags = ", ".join(sorted(self.flags, key=len))
        return f"{flags} {self.metavar}" if self.metavar else flags

    @property
    def full_help(self) -> str:
        """Return the help with choices and default, where the texts before do not show them."""
        text = self.help
        if self.choices and self.metavar != "|".join(self.choices):
            text += f" One of: {', '.join(self.choices)}."
        if self.takes_value and self.default not in (None, "", ()) and not self.repeatable:
            text += f" Default: {self.default}."
        return text


class ArgumentNode(NamedTuple):
    """A positional argument as generators see it."""

    name: str
    metavar: str
    help: str
    required: bool
    repeatable: bool
    choices: tuple[str, ...]


class CommandNode(NamedTuple):
    """A command or group with everything below it."""

    path: tuple[str, ...]
    help: str
    facts: Facts
    options: tuple[OptionNode, ...]
    arguments: tuple[ArgumentNode, ...]
    children: tuple[CommandNode, ...]

    @property
    def name(self) -> str:
        """Return the full command, such as `pylogctl log verify`."""
        return " ".join(self.path)

    @property
    def summary(self) -> str:
        """Return the first sentence of the help."""
        return self.help.partition("\n")[0].rstrip(".")


def facts_of(command: Any) -> Facts:
    """Return what `accepts` recorded about a command."""
    return cast(Facts, getattr(command.callback, "facts", Facts()))


def describe(root: TyperGroup) -> CommandNode:
    """Return the whole tree as plain values, hidden commands and options left out."""
    return describe_command(root, typer.Context(root, info_name="pylogctl"), ("pylogctl",))


def describe_command(command: Any, ctx: Any, path: tuple[str, ...]) -> CommandNode:
    """Return one command and everything below it.

    Args:
        command: a command or group of Typer's.
        ctx: its context.
        path: the words of its full name.
    """
    children = []
    if isinstance(command, TyperGroup):
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            if child is not None and not child.hidden:
                child_ctx = typer.Context(child, info_name=name, parent=ctx)
                children.append(describe_command(child, child_ctx, (*path, name)))
    facts = facts_of(command)
    params = [p for p in command.get_params(ctx) if not p.hidden]
    return CommandNode(
        path,
        command.help or "",
        facts,
        tuple(_option(p, facts) for p in params if p.param_type_name == "option"),
        tuple(_argument(p, facts) for p in params if p.param_type_name == "argument"),
        tuple(children),
    )


def _option(param: Any, facts: Facts) -> OptionNode:
    choices = facts.choices.get(param.name, ())
    has_value = not (param.is_flag or param.count)
    metavar = param.metavar or ("|".join(choices) if choices else param.name.upper())
    default = getattr(param.default, "value", param.default)
    return OptionNode(
        param.name,
        (*param.opts, *param.secondary_opts),
        metavar if has_value else "",
        param.help or "",
        _panel_of(param),
        param.envvar or "",
        choices,
        has_value,
        bool(param.multiple or param.count),
        default,
    )


def _argument(param: Any, facts: Facts) -> ArgumentNode:
    return ArgumentNode(
        param.name,
        param.metavar or param.name.upper(),
        param.help or "",
        bool(param.required),
        param.nargs == -1,
        facts.choices.get(param.name, ()),
    )


def _panel_of(param: Any) -> str:
    if param.param_type_name == "argument":
        return "Arguments"
    if set(param.opts) & HELP_FLAGS:
        return "General"
    return param.rich_help_panel or "Options"
