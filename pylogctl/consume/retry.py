"""`pylogctl retry`: lists and drains messages that `consume --retry-dir` kept after a failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.tools.retry import RetryEntry
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.options import OUTPUT, accepts
from pylogctl.cli.render import Column, Document, Kind, Record
from pylogctl.cli.tree import Command, new_app
from pylogctl.cli.units import format_time
from pylogctl.format.framing import (
    NO_FRAMING,
    WRITE_FRAMING,
    Framing,
    FramingChoice,
    choose_framing,
    escape,
)

if TYPE_CHECKING:
    from broker.tools.retry import RetryEntry, RetryStore
    from pylogctl.cli.process import StopRequest


app = new_app("List and drain messages whose handling failed.")

DirArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The directory of consume --retry-dir.")
]


@app.command("list", cls=Command)
@accepts(
    *OUTPUT,
    exits=(ExitStatus.FAILED, ExitStatus.NOT_FOUND),
    examples=(
        "pylogctl retry list failed",
        "pylogctl retry list failed --dead --output jsonl",
    ),
)
def list_entries(
    env: Environment,
    directory: DirArgument,
    dead: Annotated[
        bool,
        typer.Option("--dead", help="Only messages given up.", rich_help_panel="Selection"),
    ] = False,
) -> None:
    """List the messages in a retry store, oldest first.

    A consumer that uses the store meanwhile is not disturbed.
    """
    from broker.tools.retry import read_entries
    from pylogctl.cli.render import render

    entries = (one for one in read_entries(directory) if one.is_dead or not dead)
    render(env, DOCUMENT, retry_records(entries))


@app.command("drain", cls=Command)
@accepts(
    exits=(
        ExitStatus.FAILED,
        ExitStatus.NOT_FOUND,
        ExitStatus.CONFLICT,
        ExitStatus.PARTIAL,
        ExitStatus.SIGPIPE,
    ),
    examples=(
        "pylogctl retry drain failed --exec 'bill --at {offset}'",
        "pylogctl retry drain failed --all -L | pylogctl produce orders -L",
    ),
)
def drain(
    env: Environment,
    directory: DirArgument,
    take_all: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Every message, dead ones too. Default: those that are due.",
            rich_help_panel="Selection",
        ),
    ] = False,
    exec_command: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="CMD",
            help="Run CMD once for each message, as consume does. Default: write payloads to "
            "stdout.",
            rich_help_panel="Output",
        ),
    ] = None,
    retry_backoff: Annotated[
        str | None,
        typer.Option(
            "--retry-backoff",
            metavar="DUR",
            help="With --exec, as for consume. Default: 1s.",
            rich_help_panel="Limits",
        ),
    ] = None,
    max_attempts: Annotated[
        int | None,
        typer.Option(
            "--max-attempts",
            metavar="N",
            min=0,
            help="With --exec, as for consume. Default: 0, never give up.",
            rich_help_panel="Limits",
        ),
    ] = None,
    framing: Annotated[FramingChoice, WRITE_FRAMING] = NO_FRAMING,
) -> None:
    """Take messages out of a retry store: run a command for each, or write them to stdout.

    A message leaves the store when CMD ends with status 0, or when it is written and flushed. One
    for which CMD fails stays, to be tried later; status 6 then.
    """
    if exec_command is not None and framing.names:
        raise UsageError("a framing cannot be used with --exec (the command gets the payload)")
    if exec_command is None and not (retry_backoff is None and max_attempts is None):
        raise UsageError("--retry-backoff and --max-attempts say how --exec works")
    if exec_command is None:
        status = _drain_to_stdout(env, directory, take_all, choose_framing(framing))
    else:
        status = _drain_by(env, directory, take_all, exec_command, retry_backoff, max_attempts)
    if status:
        raise typer.Exit(status)


def _drain_to_stdout(
    env: Environment, directory: Path, take_all: bool, framing: Framing
) -> ExitStatus:
    from pylogctl.cli.process import graceful_stop
    from pylogctl.format.framing import write_message

    count = 0
    with _open_store(directory) as store, graceful_stop() as stop:
        for entry in _until(stop, _chosen(env, store, take_all)):
            env.write(write_message(entry.message.payload, framing))
            env.flush()
            store.done(entry)
            count += 1
        _note_summary(env, store, count, 0)
    return stop.status


def _drain_by(
    env: Environment,
    directory: Path,
    take_all: bool,
    text: str,
    backoff: str | None,
    max_attempts: int | None,
) -> ExitStatus:
    from broker.tools.retry import RetryingHandler
    from pylogctl.cli.process import graceful_stop
    from pylogctl.consume.exec import DEFAULT_RETRIES, ExecCommand, make_retry_options

    options = make_retry_options(directory, DEFAULT_RETRIES, backoff, max_attempts)
    command = ExecCommand(text)
    with _open_store(directory) as store, graceful_stop() as stop:
        handler = RetryingHandler(
            command.run, store, options.in_place, options.policy, env.clock, stop.wait
        )
        failed = handler.drain(_until(stop, _chosen(env, store, take_all)))
        _note_summary(env, store, handler.tally.done, failed)
    return stop.status or (ExitStatus.PARTIAL if failed else ExitStatus.OK)


def _open_store(directory: Path) -> RetryStore:
    """Open an existing store; a mistyped name must not create one."""
    import errno

    from broker.tools.retry import DATABASE_NAME, RetryStore

    path = directory / DATABASE_NAME
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "no retry store", str(path))
    return RetryStore(directory)


def _chosen(env: Environment, store: RetryStore, take_all: bool) -> Iterable[RetryEntry]:
    """Give every entry, or those that are due now, oldest first."""
    now_ms = env.clock.time_ms()
    for entry in store.entries():
        due_ms = entry.next_attempt_ms
        if take_all or (due_ms is not None and due_ms <= now_ms):
            yield entry


def _until(stop: StopRequest, entries: Iterable[RetryEntry]) -> Iterable[RetryEntry]:
    for entry in entries:
        if stop.is_set:
            return
        yield entry


def _note_summary(env: Environment, store: RetryStore, done: int, failed: int) -> None:
    text = f"{done} message{'s' * (done != 1)} drained"
    if failed:
        text += f", {failed} failed"
    if left := len(store):
        text += f", {left} left in {store.directory}"
    env.note(text)


DOCUMENT = Document(
    "retry.list/1",
    (
        Column("topic", "topic of the message"),
        Column("partition", "its partition, as broker and index"),
        Column("offset", "where its entry starts", Kind.INTEGER),
        Column("next_offset", "where reading resumes after it", Kind.INTEGER, shown=False),
        Column("inner", "index in a compressed set, -1 if not known", Kind.INTEGER, shown=False),
        Column("size", "bytes of its payload", Kind.BYTES),
        Column("attempts", "how often handling it failed", Kind.INTEGER),
        Column("state", "parked: tried again by itself; dead: given up"),
        Column("next_attempt", "when it is tried again; unknown for dead ones"),
        Column("error", "why it failed the last time"),
        Column("payload", "the payload, bytes that are no text as escapes", shown=False),
    ),
    empty="no messages",
)


def retry_records(entries: Iterable[RetryEntry]) -> Iterator[Record]:
    """Give a row for each entry."""
    for entry in entries:
        message = entry.message
        due_ms = entry.next_attempt_ms
        yield {
            "topic": message.partition.topic,
            "partition": message.partition.name,
            "offset": message.offset,
            "next_offset": message.next_offset,
            "inner": message.inner,
            "size": len(message.payload),
            "attempts": entry.attempts,
            "state": "dead" if entry.is_dead else "parked",
            "next_attempt": None if due_ms is None else format_time(due_ms),
            "error": entry.last_error,
            "payload": escape(message.payload),
        }
