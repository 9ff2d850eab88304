"""`pylogctl retry`: lists and drains messages that `consume --retry-dir` kept after a failure."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from broker.units import format_time
from pylogctl.cli.columns import HIDDEN, Bytes, Document, Fit, Integer, Millis, Rank, Row, Text
from pylogctl.cli.declarations import argument, outputs, selection
from pylogctl.cli.environment import Environment, ExitStatus
from pylogctl.cli.options import OUTPUT, App
from pylogctl.cli.process import StopRequest, graceful_stop
from pylogctl.cli.render import render
from pylogctl.format.framing import escape

if TYPE_CHECKING:
    from broker.tools.retry import RetryEntry, RetryStore

app = App()

DirArgument = Annotated[Path, argument("DIR", "The directory of consume --retry-dir.")]


@app.command(OUTPUT, name="list", exits=(ExitStatus.FAILED, ExitStatus.NOT_FOUND))
def list_entries(env: Environment, directory: DirArgument) -> None:
    """List the messages in a retry store, oldest first.

    A consumer that uses the store meanwhile is not disturbed.

    $ pylogctl retry list failed
    $ pylogctl retry list failed --sort state
    """
    from broker.tools.retry import read_entries  # late: help needs no consumer, which has kazoo

    render(env, DOCUMENT, _rows(read_entries(directory)))


@app.command(
    exits=(ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.PARTIAL),
    changes=True,
)
def drain(
    env: Environment,
    directory: DirArgument,
    *,
    take_all: bool = selection.flag(
        "--all", "Every message, dead ones too. Default: those that are due."
    ),
    command: str = outputs.option(
        "--exec CMD", "Run CMD once for each message, as consume does.", default=...
    ),
) -> int:
    """Take messages out of a retry store: run a command for each.

    A message leaves the store when CMD ends with status 0. One for which CMD fails stays, to be
    tried later. Status 6 if messages are left, with the reason.

    $ pylogctl retry drain failed --exec 'bill --at {offset}'
    $ pylogctl retry drain failed --all --exec 'pylogctl produce orders-failed --whole'
    """
    from broker.tools.retry import RetryingHandler  # late: as above
    from pylogctl.consume.exec import ExecCommand, retry_rules

    handle = ExecCommand(command).run
    with _open_store(directory) as store, graceful_stop() as stop:
        handler = RetryingHandler(handle, store, *retry_rules(), env.clock, stop.wait)
        failed = handler.drain(_chosen(env, store, take_all, stop))
        return stop.status or _report(env, store, handler.tally.done, failed)


def _open_store(directory: Path) -> RetryStore:
    from broker.tools.retry import DATABASE_NAME, RetryStore  # late: as above

    path = directory / DATABASE_NAME  # required, so that a mistyped name creates no store
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "no retry store", str(path))
    return RetryStore(directory)


def _chosen(
    env: Environment, store: RetryStore, take_all: bool, stop: StopRequest
) -> Iterator[RetryEntry]:
    now_ms = env.clock.time_ms()
    for entry in store.entries():
        if stop.is_set:
            return
        due_ms = entry.next_attempt_ms
        if take_all or (due_ms is not None and due_ms <= now_ms):
            yield entry


def _report(env: Environment, store: RetryStore, done: int, failed: int) -> ExitStatus:
    """Note how many messages left the store, and why others stay; return the exit status."""
    text = f"{done} message{'s' * (done != 1)} drained"
    if failed:
        text += f", {failed} failed"
    due_ms = [entry.next_attempt_ms for entry in store.entries()]
    if not due_ms:
        env.note(text)
        return ExitStatus.OK
    scheduled = [one for one in due_ms if one is not None]
    reasons = []
    if scheduled:
        reasons.append(
            f"{len(scheduled)} to be retried, the first at {format_time(min(scheduled))}"
        )
    if dead := len(due_ms) - len(scheduled):
        reasons.append(f"{dead} dead")
    env.note(f"{text}, {len(due_ms)} left in {store.directory}: {', '.join(reasons)}")
    env.note("--all takes every message")
    return ExitStatus.PARTIAL


class RetryRow(Row):
    """A message in a retry store."""

    topic: Annotated[Text, "topic of the message"]
    partition: Annotated[Text, "its partition, as broker and index", Fit.WHOLE]
    offset: Annotated[Integer, "where its entry starts"]
    next_offset: Annotated[Integer, "where reading resumes after it", HIDDEN]
    inner: Annotated[Integer, "index in a compressed set, -1 if not known", HIDDEN]
    size: Annotated[Bytes, "bytes of its payload", Rank(2)]
    attempts: Annotated[Integer, "how often handling it failed", Rank(1)]
    state: Annotated[Text, "scheduled: will be retried; dead: given up", Fit.STATE]
    next_attempt: Annotated[Millis, "when it is tried again; dead ones are not", Rank(1)]
    error: Annotated[Text, "why it failed the last time", Fit.WRAP]
    payload: Annotated[Text, "the payload, bytes that are no text as escapes", HIDDEN]


DOCUMENT = Document("retry.list/1", RetryRow, empty="no messages")


def _rows(entries: Iterable[RetryEntry]) -> Iterator[RetryRow]:
    for entry in entries:
        message = entry.message.opened()
        yield RetryRow.of(
            message,
            topic=message.partition.topic,
            partition=message.partition.name,
            size=len(message.payload),
            attempts=entry.attempts,
            state="dead" if entry.is_dead else "scheduled",
            next_attempt=entry.next_attempt_ms,
            error=entry.last_error,
            payload=escape(message.payload),
        )
