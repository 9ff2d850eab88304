"""`pylogctl help`, `man`, `completion`, `version`, and the hidden `properties`.

Each is an application of its own, as the root loads a command by module and attribute.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import typer

from broker.protocol import codec
from pylogctl import __version__
from pylogctl.cli.app import root
from pylogctl.cli.columns import Document, Row, Text
from pylogctl.cli.completion import SCRIPTS
from pylogctl.cli.declarations import argument, flag
from pylogctl.cli.environment import Environment, ExitStatus, UsageError, terminal_width
from pylogctl.cli.options import DRY_RUN, OUTPUT, PAGER, PROPERTIES, App
from pylogctl.cli.render import paged, render
from pylogctl.help.manual import find_page, render_page

app = App()

PIPE_WIDTH = 80
MAX_WIDTH = 100
LIBRARIES = ("typer", "rich", "tabulate", "kazoo", "crcmod", "cramjam", "scramp", "google-re2")
WIRE_FORMAT = "Kafka 0.7 (message magic 0 and 1) with extension requests"
Shell = Literal["bash", "zsh", "fish"]


class VersionRow(Row):
    """A part of the program."""

    component: Annotated[str, "part of the program"]
    version: Annotated[Text, "its version, missing if it is not installed"]


VERSIONS = Document("version/1", VersionRow, empty="no versions")


@app.command(PAGER, exits=(ExitStatus.NOT_FOUND, ExitStatus.CONFIG))
def help_(
    env: Environment,
    words: list[str] | None = argument(
        "[COMMAND...|TOPIC]",
        "A command, or one of offsets, formats, framing, patterns, exit-codes, environment, "
        "properties, segment.",
        default=None,
    ),
) -> None:
    """Explain a command or a topic.

    $ pylogctl help log
    $ pylogctl help offsets
    """
    if words:
        _show_page(env, words)
        return
    command = root()
    ctx = typer.Context(command, info_name="pylogctl", obj=env.streams)
    env.write_styled(command.get_help(ctx))


@app.command(PAGER, exits=(ExitStatus.NOT_FOUND, ExitStatus.CONFIG))
def man(
    env: Environment,
    command: list[str] | None = argument("[COMMAND...]", "Command to explain.", default=None),
) -> None:
    """Show a manual page.

    $ pylogctl man
    $ pylogctl man log verify
    """
    _show_page(env, command or [])


def _show_page(env: Environment, words: list[str]) -> None:
    """Write the manual page of a command or topic, through the pager on a terminal."""
    source = find_page(words).read_text(encoding="utf-8")
    is_tty = env.streams.stdout_is_tty
    width = min(terminal_width(env.environ), MAX_WIDTH) if is_tty else PIPE_WIDTH
    with paged(env) as out:
        out.write_styled(render_page(source, width=width, styled=env.use_color()).rstrip("\n"))
        out.flush()


@app.command(DRY_RUN, exits=(ExitStatus.FAILED,))
def completion(
    env: Environment,
    shell: Shell = argument(None, "Which shell."),
    install: bool = flag("--install", "Write it to where the shell looks for it."),
) -> None:
    """Print a shell completion script.

    $ source <(pylogctl completion bash)
    $ pylogctl completion fish --install
    """
    script = SCRIPTS[shell]
    if not install:
        env.write(script.encode())
        return
    path = _install_path(shell, env.environ)
    if env.settings.dry_run:
        env.note(f"would write {path}")
        return
    verb = "replaced" if path.exists() else "wrote"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    env.note(f"{verb} {path}")
    if shell == "zsh":
        env.note(f"its directory must be in fpath: fpath+=({path.parent}) before compinit")


def _install_path(shell: Shell, environ: Mapping[str, str]) -> Path:
    """Return the file from which a shell loads a user's completion script."""
    home = Path(environ.get("HOME") or "/")
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local/share")
    if shell == "bash":
        return data / "bash-completion" / "completions" / "pylogctl"
    if shell == "zsh":
        return data / "zsh" / "site-functions" / "_pylogctl"
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return config / "fish" / "completions" / "pylogctl.fish"


@app.command(OUTPUT)
def version(env: Environment) -> None:
    """Show versions of program and libraries.

    $ pylogctl version
    $ pylogctl --version --output json
    """
    rows = [
        VersionRow("pylogctl", __version__),
        VersionRow("python", platform.python_version()),
        VersionRow("wire-format", WIRE_FORMAT),
        VersionRow("codec", codec.describe()),
    ]
    for library in LIBRARIES:
        try:
            rows.append(VersionRow(library, metadata.version(library)))
        except metadata.PackageNotFoundError:
            rows.append(VersionRow(library, None))
    render(env, VERSIONS, rows)


@app.command(OUTPUT + PROPERTIES)
def properties(env: Environment) -> None:
    """Show the properties that -X takes; stands for `pylogctl -X list` and `-X dump`.

    $ pylogctl -X list
    """
    raise UsageError(
        "-X sets a property of a command, and no command was given", "try: pylogctl -X list"
    )
