"""Questions before something is changed; the default answer is always no."""

from __future__ import annotations

from pylogctl.cli.context import Environment, write_diagnostic
from pylogctl.cli.errors import CliError, ExitStatus


def confirm(env: Environment, command: str, question: str) -> None:
    """Ask a yes-or-no question; return only if the answer is yes.

    Args:
        env: whom to ask; `--yes` answers.
        command: such as `broker stop`, for the error.
        question: without the choices.

    Raises:
        CliError: the answer was no, or nobody can be asked.
    """
    if env.settings.assume_yes:
        return
    if not env.can_ask:
        raise CliError(ExitStatus.DECLINED, f"'{command}' needs confirmation; add --yes")
    if _answer(env, f"{question} [y/N] ").lower() not in ("y", "yes"):
        raise CliError(ExitStatus.DECLINED, "not confirmed; nothing changed")


def confirm_name(env: Environment, command: str, name: str, given: str | None) -> None:
    """Have a name typed before something that cannot be undone; return only if it is right.

    Args:
        env: whom to ask.
        command: such as `log recover`, for the error.
        name: what must be typed.
        given: what `--confirm` says; counts together with `--yes`.

    Raises:
        CliError: the name was not given right, or nobody can be asked.
    """
    if given is not None and given != name:
        raise CliError(ExitStatus.DECLINED, f"--confirm is '{given}', but must be '{name}'")
    if given == name and env.settings.assume_yes:
        return
    if not env.can_ask:
        raise CliError(
            ExitStatus.DECLINED,
            f"'{command}' needs confirmation; add --yes --confirm {name}",
        )
    if _answer(env, f"type '{name}' to confirm: ") != name:
        raise CliError(ExitStatus.DECLINED, "not confirmed; nothing changed")


def _answer(env: Environment, prompt: str) -> str:
    stderr, stdin = env.streams.stderr, env.streams.stdin
    if stderr is None or stdin is None:
        return ""
    stderr.write(prompt)
    stderr.flush()
    line = stdin.readline()
    if not line.endswith(b"\n"):
        write_diagnostic(stderr, "")
    return line.decode("utf-8", "replace").strip()
