"""`pylogctl man`: a manual page, without installation."""

from __future__ import annotations

from typing import Annotated

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.options import PAGER, accepts
from pylogctl.cli.tree import Command, new_app

app = new_app()

PIPE_WIDTH = 80
MAX_WIDTH = 100


@app.command("man", cls=Command)
@accepts(
    *PAGER,
    exits=(ExitStatus.NOT_FOUND, ExitStatus.CONFIG),
    examples=("pylogctl man", "pylogctl man log verify"),
)
def man(
    env: Environment,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND...]", help="Command to explain.")
    ] = None,
) -> None:
    """Show a manual page."""
    show_page(env, command or [])


def show_page(env: Environment, words: list[str]) -> None:
    """Write the manual page of a command or topic, through the pager on a terminal.

    Raises:
        CliError: there is no such page.
    """
    from pylogctl.cli.pager import paged
    from pylogctl.cli.render import terminal_width
    from pylogctl.help.manual import find_page, render_page

    source = find_page(words).read_text(encoding="utf-8")
    is_tty = env.streams.stdout_is_tty
    width = min(terminal_width(env), MAX_WIDTH) if is_tty else PIPE_WIDTH
    with paged(env) as out:
        out.write_line(render_page(source, width=width, styled=env.use_color()).rstrip("\n"))
        out.flush()
