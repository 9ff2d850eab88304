"""`pylogctl help`: the manual page of a command or of a topic."""

from __future__ import annotations

from typing import Annotated

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.options import PAGER, accepts
from pylogctl.cli.tree import Command, new_app
from pylogctl.help.man import show_page

app = new_app()


@app.command("help", cls=Command)
@accepts(
    *PAGER,
    exits=(ExitStatus.NOT_FOUND, ExitStatus.CONFIG),
    examples=("pylogctl help log", "pylogctl help offsets"),
)
def help_(
    env: Environment,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND...|TOPIC]",
            help="A command, or one of offsets, formats, framing, exit-codes, environment, "
            "config, segment.",
        ),
    ] = None,
) -> None:
    """Explain a command or a topic."""
    if words:
        show_page(env, words)
        return
    from pylogctl.cli.app import root

    command = root()
    ctx = typer.Context(command, info_name="pylogctl")
    env.write_line(command.get_help(ctx))
