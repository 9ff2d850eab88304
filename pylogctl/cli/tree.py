"""The command tree: lazy groups, parse errors, and running a command line.

The only module that relies on internals of Typer, whose copy of Click is private and has changed
between releases. Its parameters become the plain values of `CommandNode`, from which help, man
pages, completions and tests are made; its parse errors, told apart by class name, become
`UsageError`. Knows no command by name.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo

from broker.errors import did_you_mean
from pylogctl.cli import environment, help_page
from pylogctl.cli.environment import ASKS_FOR_PROPERTIES, CliError, Streams, UsageError
from pylogctl.cli.foreign import hints_for_command, hints_for_option
from pylogctl.cli.help_page import HELP_ALL, HELP_FLAGS, ArgumentNode, CommandNode, OptionNode
from pylogctl.cli.options import AcceptingCommand, Facts, fill_optional, takes_value


def facts_of(command: Any) -> Facts:
    """Return what `App.command` recorded about a command."""
    function = inspect.unwrap(command.callback) if command.callback else None
    return function.facts if isinstance(function, AcceptingCommand) else Facts()


def describe(root: TyperGroup) -> CommandNode:
    """Return the whole tree as values, without hidden commands and options."""
    ctx = typer.Context(root, info_name="pylogctl", **CONTEXT_SETTINGS)
    return describe_command(root, ctx)


def describe_command(command: Any, ctx: Any) -> CommandNode:
    """Return a command of a context as values, with all commands below it."""
    children = []
    if isinstance(command, CommandGroup):
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            if child is not None and not child.hidden:
                child_ctx = typer.Context(child, info_name=name, parent=ctx)
                children.append(describe_command(child, child_ctx))
    facts = facts_of(command)
    params = [p for p in command.get_params(ctx) if not p.hidden]
    return CommandNode(
        tuple(ctx.command_path.split()),
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
    is_help = not HELP_FLAGS.isdisjoint(param.opts)  # whose flags Typer has in any order
    return OptionNode(
        "help" if is_help else param.name,
        tuple(sorted(HELP_FLAGS, key=len)) if is_help else (*param.opts, *param.secondary_opts),
        metavar if has_value else "",
        param.help or "",
        _panel_of(param),
        param.envvar or "",
        choices,
        has_value,
        bool(param.multiple or param.count),
        default,
        tuple(param.secondary_opts),
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


def _usage_error(error: typer.TyperException) -> CliError:
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "pylogctl"
    hints = [f"try: {path} --help"]
    kind = type(error).__name__
    option = str(getattr(error, "option_name", ""))
    param = getattr(error, "param", None)
    if kind == "NoSuchOption":
        names = [str(one.name) for one in ctx.command.params] if ctx else []
        foreign = hints_for_option(option, path, names)
        return UsageError(_no_option(option, ctx, path, guesses=not foreign), *foreign, *hints)
    if kind == "BadOptionUsage":
        return UsageError(f"option '{option}' {_value_problem(error.message)}", *hints)
    if kind == "MissingParameter" and param is not None:
        return UsageError(f"missing {_label(param)}", *hints)
    if param is not None:
        return UsageError(f"{_label(param)}: {_bad_value(error.message)}", *hints)
    extra = error.message.partition("extra argument(s) (")[2].rstrip(")")
    message = f"unexpected argument '{extra}'" if extra else error.message.rstrip(".")
    return UsageError(message, *hints)


def _no_option(option: str, ctx: Any, path: str, *, guesses: bool) -> str:
    if option in takes_value():
        return f"option '{option}' does not apply to '{path}'"
    known = [flag for param in ctx.command.params for flag in param.opts] if ctx else []
    return f"no option '{option}'{did_you_mean(option, known) if guesses else ''}"


def _bad_value(message: str) -> str:
    """Word what Typer says about a number without its notation."""
    message = message.rstrip(".").replace("valid int range", "valid int")
    message = message.replace("a valid int", "a whole number").replace("a valid float", "a number")
    value, _, limits = message.partition(" is not in the range ")
    least, _, most = limits.partition("<=x<=")
    if most:
        return f"{value} is not between {least} and {most}"
    return f"{value} is below {limits[3:]}" if limits.startswith("x>=") else message


def _value_problem(message: str) -> str:
    return "takes no value" if "not take" in message else "needs a value"


def _label(param: Any) -> str:
    if param.param_type_name == "argument":
        name = cast(str, param.human_readable_name).strip(".")
        return name.strip("[].") if name.startswith("[") else name  # not TOPIC[PARTITION]
    return cast(str, max(param.opts, key=len))


CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": sorted(HELP_FLAGS)}
_ALIASES = {"ls": "list", "desc": "describe", "rm": "delete"}


def _streams_of(ctx: Any) -> Streams:
    return ctx.obj if isinstance(ctx.obj, Streams) else Streams.of_process()


class Command(TyperCommand):
    """A command with our help, some options of which may be given without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words, after inserting the values of options given without one."""
        ctx.meta[HELP_ALL] = HELP_ALL in args
        asks = any(flag == "-X" and word in ASKS_FOR_PROPERTIES for flag, word in pairwise(args))
        if asks or "--help-fields" in args:
            # They replace the command, which then needs no topic or file.
            for param in self.params:
                param.required = False
        return super().parse_args(ctx, fill_optional(args, facts_of(self).optional))

    def get_help(self, ctx: Any) -> str:
        """Return the help, with all of the shared options if `--help-all` asked for it."""
        node = describe_command(self, ctx)
        style = help_page.HelpStyle.of(_streams_of(ctx))
        return help_page.command_help(node, style, everything=ctx.meta.get(HELP_ALL, False))


class CommandGroup(TyperGroup):
    """A group that accepts shared options before the command and passes them to it.

    Typer makes a command with all its parameters only when that is named or described.
    """

    declared: Mapping[str, AcceptingCommand] = MappingProxyType({})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move shared options before the command behind it."""
        own, moved, rest = split_leading(args)
        if HELP_ALL in own:
            typer.echo("\n\n".join(self._help_of_all(ctx)))
            raise typer.Exit
        if own:
            return super().parse_args(ctx, own)
        rest = self.expand_alias(rest) if rest else self.command_of_options(moved)
        if not rest:
            raise environment.MissingCommandError(ctx.command_path, self.get_help(ctx, stderr=True))
        return super().parse_args(ctx, [rest[0], *moved, *rest[1:]])

    def command_of_options(self, moved: list[str]) -> list[str]:
        """Return the command that options without a command stand for, if any."""
        return []

    def get_help(self, ctx: Any, *, stderr: bool = False) -> str:
        """Return the help for standard output, or for standard error."""
        style = help_page.HelpStyle.of(_streams_of(ctx), stderr=stderr)
        return help_page.group_help(self.described(ctx), style)

    def described(self, ctx: Any) -> CommandNode:
        """Return the group and its commands, as help needs them: without options."""
        path = tuple(ctx.command_path.split())
        children = tuple(
            CommandNode((*path, name), inspect.getdoc(one) or "", Facts(examples=one.examples))
            for name, one in self.declared.items()
        )
        return CommandNode(path, self.help or "", children=children)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands without making any."""
        return list(self.declared)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Make and return a command, None if it does not exist."""
        declared = self.declared.get(cmd_name)
        return None if declared is None else _made(cmd_name, declared)

    def expand_alias(self, words: list[str]) -> list[str]:
        """Replace a hidden alias at the front of the words."""
        target = _ALIASES.get(words[0], "")
        if words[0] not in self.declared and target in self.declared:
            return [target, *words[1:]]
        return words

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; the error for an unknown one suggests the most similar."""
        command = self.get_command(ctx, args[0])
        if command is None:
            hints = hints_for_command(ctx.command_path.split()[1:], args)
            guess = "" if hints else did_you_mean(args[0], self.list_commands(ctx))
            raise UsageError(
                f"no command '{args[0]}'{guess}", *hints, f"try: {ctx.command_path} --help"
            )
        return args[0], command, args[1:]

    def _help_of_all(self, ctx: Any) -> Iterator[str]:
        yield ctx.get_help()
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            child = typer.Context(command, info_name=name, parent=ctx)
            if isinstance(command, CommandGroup):
                yield from command._help_of_all(child)
            else:
                yield command.get_help(child)


class RootGroup(CommandGroup):
    """The root: imports the module of a command when the command is named.

    Attributes:
        entries: the help of each command by its name, so that help imports none.
        homes: the modules of commands that are not in a folder of their name; one that is in none
            of the entries is hidden.
    """

    entries: ClassVar[dict[str, str]] = {}
    homes: ClassVar[dict[str, str]] = {}
    examples: ClassVar[tuple[str, ...]] = ()
    shortcuts: ClassVar[dict[str, tuple[str, ...]]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands without loading any."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return a command, None if it does not exist."""
        if cmd_name not in self.entries and cmd_name not in self.homes:
            return None
        home = self.homes.get(cmd_name, f"pylogctl.{cmd_name}.command")
        commands = importlib.import_module(home).app.commands
        if cmd_name in commands:
            return _made(cmd_name, commands[cmd_name])
        group = CommandGroup(
            name=cmd_name,
            help=self.entries[cmd_name],
            context_settings=CONTEXT_SETTINGS,
            rich_markup_mode=None,
        )
        group.declared = commands
        return group

    def described(self, ctx: Any) -> CommandNode:
        """Return the commands with their static help, so that none is imported."""
        path = tuple(ctx.command_path.split())
        children = tuple(CommandNode((*path, *one[:1]), one[1]) for one in self.entries.items())
        facts = Facts(examples=self.examples)
        return CommandNode(path, self.help or "", facts, children=children)

    def command_of_options(self, moved: list[str]) -> list[str]:
        """Return the command for `--version` and `-X list` without a command."""
        if "--version" in moved:
            moved.remove("--version")
            return ["version"]
        return ["properties"] if "-X" in moved else []

    def expand_alias(self, words: list[str]) -> list[str]:
        """Replace a hidden alias of the root; `tail -n N` begins N messages before the end."""
        name, *rest = words
        expanded = [*self.shortcuts.get(name, (name,))]
        if expanded[-1:] == ["list"] and rest and not rest[0].startswith("-"):
            del expanded[-1]  # a command of the group, as in `topics list`
        if name == "tail" and "-n" in rest[:-1]:
            at = rest.index("-n")
            expanded[-1] = f"-{rest[at + 1]}"
            del rest[at : at + 2]
        return expanded + rest


def _made(name: str, command: AcceptingCommand) -> TyperCommand:
    info = CommandInfo(name, cls=Command, context_settings=CONTEXT_SETTINGS, callback=command)
    made = typer.main.get_command_from_info(
        info, pretty_exceptions_short=True, rich_markup_mode=None
    )
    return cast(TyperCommand, made)


def split_leading(args: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Split the words after a group's name: its help flags, shared options, the command's words."""
    valued = takes_value()
    own: list[str] = []
    moved: list[str] = []
    rest = list(args)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word in HELP_FLAGS:
            own.append(word)
            continue
        moved.append(word)
        if _needs_next(word, valued) and rest:
            moved.append(rest.pop(0))
    return own, moved, rest


def _needs_next(word: str, valued: Mapping[str, bool]) -> bool:
    """Whether an option's value is the next word; refuse options that are not shared."""
    if word.startswith("--"):
        flag, equals, _ = word.partition("=")
        if flag not in valued:
            raise _no_shared_option(flag, did_you_mean(flag, valued))
        return valued[flag] and not equals
    for position, letter in enumerate(word[1:], start=1):
        flag = f"-{letter}"
        if flag not in valued:
            raise _no_shared_option(flag, "")
        if valued[flag]:
            return position == len(word) - 1
    return False


def _no_shared_option(flag: str, guess: str) -> UsageError:
    from pylogctl.cli.foreign import hints_for_option

    hints = hints_for_option(flag)
    return UsageError(f"no option '{flag}' before a command{'' if hints else guess}", *hints)


def run(root: TyperGroup, args: list[str], streams: Streams) -> int:
    """Run the command line `args`, without the program's name; return the exit status."""
    # Typer's own `main` is not used: it turns a broken pipe into exit status 1.
    try:
        with root.make_context("pylogctl", args, obj=streams) as ctx:
            root.invoke(ctx)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except typer.TyperException as error:
        raise _usage_error(error) from error
    return 0
