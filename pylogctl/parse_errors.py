"""Parse errors of Typer in the words of this program.

Typer keeps the classes of its errors private, so they are told apart by name, in this one place.
"""

from __future__ import annotations

from typing import Any, cast

import typer

from pylogctl.errors import CliError, UsageError, did_you_mean
from pylogctl.options import takes_value


def usage_error(error: typer.TyperException) -> CliError:
    """Return a parse error of Typer in the words of this program."""
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "pylogctl"
    hints = [f"try: {path} --help"]
    kind = type(error).__name__
    option = str(getattr(error, "option_name", ""))
    param = getattr(error, "param", None)
    if kind == "NoSuchOption":
        return UsageError(_no_option(option, ctx, path), hints=hints)
    if kind == "BadOptionUsage":
        return UsageError(f"option '{option}' {_value_problem(error.message)}", hints=hints)
    if kind == "MissingParameter" and param is not None:
        return UsageError(f"missing {_label(param)}", hints=hints)
    if param is not None:
        message = error.message.rstrip(".").replace("valid int range", "valid int")
        return UsageError(f"{_label(param)}: {message}", hints=hints)
    extra = error.message.partition("extra argument(s) (")[2].rstrip(")")
    message = f"unexpected argument '{extra}'" if extra else error.message.rstrip(".")
    return UsageError(message, hints=hints)


def _no_option(option: str, ctx: Any, path: str) -> str:
    if option in takes_value():
        return f"option '{option}' does not apply to '{path}'"
    known = [flag for param in ctx.command.params for flag in param.opts] if ctx else []
    return f"no option '{option}'{did_you_mean(option, known)}"


def _value_problem(message: str) -> str:
    return "takes no value" if "not take" in message else "needs a value"


def _label(param: Any) -> str:
    if param.param_type_name == "argument":
        return cast(str, param.human_readable_name).strip("[].")
    return cast(str, max(param.opts, key=len))
