"""`pylogctl completion`: the completion script of a shell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.options import DRY_RUN, accepts
from pylogctl.cli.tree import Command, new_app

app = new_app()

Shell = Literal["bash", "zsh", "fish"]


@app.command("completion", cls=Command)
@accepts(
    *DRY_RUN,
    exits=(ExitStatus.FAILED,),
    examples=(
        "source <(pylogctl completion bash)",
        "pylogctl completion fish --install",
    ),
)
def completion(
    env: Environment,
    shell: Annotated[Shell, typer.Argument(help="Which shell.", show_default=False)],
    install: Annotated[
        bool, typer.Option("--install", help="Write it to where the shell looks for it.")
    ] = False,
) -> None:
    """Print a shell completion script."""
    from pylogctl.cli.app import root
    from pylogctl.cli.completion import SHELLS
    from pylogctl.cli.tree import describe

    script = SHELLS[shell](describe(root()))
    if not install:
        env.write(script.encode())
        return
    path = install_path(shell, env.environ)
    if env.settings.dry_run:
        env.note(f"would write {path}")
        return
    verb = "replaced" if path.exists() else "wrote"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    env.note(f"{verb} {path}")
    if shell == "zsh":
        env.note(f"its directory must be in fpath: fpath+=({path.parent}) before compinit")


def install_path(shell: Shell, environ: Mapping[str, str]) -> Path:
    """Return where a user's completion script for a shell belongs."""
    home = Path(environ.get("HOME") or "/")
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local/share")
    if shell == "bash":
        return data / "bash-completion" / "completions" / "pylogctl"
    if shell == "zsh":
        return data / "zsh" / "site-functions" / "_pylogctl"
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return config / "fish" / "completions" / "pylogctl.fish"
