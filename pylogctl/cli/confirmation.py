"""Questions before a change, whose default answer is no, and files to undo it.

Without the confirmation, or without a terminal to ask at, CliError with DECLINED is raised. Its
message names `command`, such as `broker stop`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pylogctl.cli.environment import CliError, Environment, ExitStatus, write_diagnostic
from pylogctl.cli.escapes import printable


def confirm(env: Environment, command: str, question: str) -> None:
    """Ask a yes-or-no question (given without the choices), unless `--yes` answers it."""
    if env.settings.assume_yes:
        return
    if not env.can_ask:
        raise CliError(ExitStatus.DECLINED, f"'{command}' needs confirmation; add --yes")
    if _answer(env, f"{question} [y/N] ").lower() not in ("y", "yes"):
        raise CliError(ExitStatus.DECLINED, "not confirmed; nothing changed")


def confirm_name(env: Environment, command: str, name: str, given: str | None) -> None:
    """Require a name to be typed before a change that cannot be undone.

    `given` is the value of `--confirm`; it replaces the question if `--yes` is given too.
    """
    if given is not None and given != name:
        raise CliError(ExitStatus.DECLINED, f"--confirm is '{given}', but must be '{name}'")
    if given == name and env.settings.assume_yes:
        return
    if not env.can_ask:
        raise CliError(
            ExitStatus.DECLINED, f"'{command}' needs confirmation; add --yes --confirm {name}"
        )
    if _answer(env, f"type '{name}' to confirm: ") != name:
        raise CliError(ExitStatus.DECLINED, "not confirmed; nothing changed")


def confirm_context(env: Environment, command: str, *, can_say_yes: bool = True) -> None:
    """Before a change: refuse it in a read-only context, have the name of a protected one typed.

    In scripts `--context` types it, with `--yes` where the command has that.
    """
    context = env.context
    if context is None or env.settings.dry_run:
        return
    refuse_change(env, command)
    if not context.protected or (context.is_named and (env.settings.assume_yes or not can_say_yes)):
        return
    if not env.can_ask:
        words = f"--context {context.name}{' --yes' if can_say_yes else ''}"
        raise CliError(ExitStatus.DECLINED, f"context '{context.name}' is protected; add {words}")
    env.note(f"'{command}' changes the cluster of a protected context")
    if _answer(env, f"type '{context.name}' to go on: ") != context.name:
        raise CliError(ExitStatus.DECLINED, "not confirmed; nothing changed")


def refuse_change(env: Environment, command: str) -> None:
    """Raise CliError with CONFLICT in a read-only context."""
    context = env.context
    if context is not None and context.read_only:
        raise CliError(
            ExitStatus.CONFLICT,
            f"context '{context.name}' is read-only: '{command}' would change its cluster",
            f"it is in {context.file}",
            code="READ_ONLY",
        )


def _answer(env: Environment, prompt: str) -> str:
    stderr, stdin = env.streams.stderr, env.streams.stdin
    if stderr is None or stdin is None:
        return ""
    if env.context is not None:
        stderr.write(env.context.prompt(is_colored=env.use_color(stderr=True)))
    stderr.write(printable(prompt))
    stderr.flush()
    line = stdin.readline()
    if not line.endswith(b"\n"):
        write_diagnostic(stderr, "")
    return line.decode("utf-8", "replace").strip()


def new_undo_file(env: Environment, name: str) -> Path:
    """Return the path of a new undo file, whose directory exists; `name` says what is changed."""
    directory = env.state_dir / "undo"
    directory.mkdir(parents=True, exist_ok=True)
    time_ms = env.clock.time_ms()
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    time = f"{moment:%Y%m%dT%H%M%S}{time_ms % 1000:03d}"
    return directory / f"{name}-{time}-{os.getpid()}.jsonl"


def tell_undo(env: Environment, path: Path, command: Sequence[str]) -> None:
    """Print the command that restores what an undo file has."""
    words = ["pylogctl", *command, "--file", str(path), "--execute"]
    if env.settings.zookeeper:
        words += ["--zookeeper", env.settings.zookeeper]
    env.note(f"undo: {shlex.join(words)}")
