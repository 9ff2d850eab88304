"""`pylogctl zk shell`: the commands of `pylogctl zk` from a prompt or from standard input."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import typer

from pylogctl.cli import tree
from pylogctl.cli.app import root
from pylogctl.cli.confirmation import confirm_context
from pylogctl.cli.connections import zookeeper_session
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.report import report
from pylogctl.zk.paths import checked_path, current_node

_NOT_HERE = ("shell", "start")


def run(env: Environment) -> None:
    """Run a command for each line; the first error of standard input ends it with its status."""
    if env.context is not None and env.context.protected and not env.context.read_only:
        confirm_context(env, "zk shell", can_say_yes=False)  # once, for all its lines
    with zookeeper_session(env):
        pass  # an address without a ZooKeeper is told before the first line
    is_interactive = env.streams.stdin_is_tty
    token = current_node.set("/")
    try:
        for number, line in enumerate(_prompted(env) if is_interactive else _given(env), start=1):
            try:
                status = _run_line(env, line)
            except KeyboardInterrupt:
                if not is_interactive:
                    raise
                env.note("interrupted")
            except Exception as error:
                if not is_interactive:
                    env.note(f"line {number}: {line.strip()}")
                    raise
                report(error, line.split())
            else:
                if status is None:
                    return
                if status and not is_interactive:
                    raise typer.Exit(status)
            env.flush()
    finally:
        current_node.reset(token)


def _run_line(env: Environment, line: str) -> int | None:
    """Run a command; return its exit status, None if it ends the shell."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise UsageError(f"not a command line: {error}") from error
    match words:
        case []:
            return 0
        case ["exit" | "quit"]:
            return None
        case ["cd", *where] if len(where) < 2:
            _change(env, checked_path(where[0] if where else "/"))
            return 0
        case ["pwd"]:
            env.write_line(current_node.get())
            return 0
        case ["help", *rest]:
            words = [*rest, "--help"]
        case [name, *_] if name in _NOT_HERE:
            raise UsageError(f"'{name}' is no command of the shell", hints=["try: help"])
    return tree.run(root(), ["zk", *_shared(env), *words], env.streams)


def _change(env: Environment, path: str) -> None:
    with zookeeper_session(env) as session:
        session.children(path)  # must exist
    current_node.set(path)


def _shared(env: Environment) -> list[str]:
    """Return the options of the shell that its commands take over."""
    settings = env.settings
    words = ["--zookeeper", settings.zookeeper] if settings.zookeeper else []
    if env.context is not None:  # which may refuse their changes
        words = ["--context", env.context.name]
    if settings.timeout_s is not None:
        words += ["--timeout", f"{settings.timeout_s}s"]
    return words


def _given(env: Environment) -> Iterator[str]:
    for line in env.streams.stdin or ():
        yield line.decode("utf-8", "surrogateescape")


def _prompted(env: Environment) -> Iterator[str]:
    import readline  # noqa: F401 - `input` edits lines with it

    while True:
        try:
            yield input(f"{env.zookeeper}{current_node.get()}> ")
        except EOFError:
            env.write_line("")
            return
        except KeyboardInterrupt:
            env.write_line("^C")
