"""What `consume --exec` does with messages: a command for each, and a retry store behind it.

Says of each message whether it is dealt with; what that means for a group is for others.

The command of `--exec`: its words, and one run of it for a message.

No shell is involved: the text is split into words once, and what a message brings never becomes
more than a part of a word.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from broker.tools.retry import (
    InPlace,
    Outcome,
    RetryingHandler,
    RetryMessage,
    RetryPolicy,
    RetryStore,
)
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.process import StopRequest
from pylogctl.cli.units import parse_duration_ms
from pylogctl.consume.exec_options import ExecChoice
from pylogctl.format.envelope import MessageFacts

_PLACES: dict[str, Callable[[RetryMessage], str]] = {
    "topic": lambda m: m.partition.topic,
    "partition": lambda m: m.partition.name,
    "offset": lambda m: str(m.offset),
    "next_offset": lambda m: str(m.next_offset),
    "size": lambda m: str(len(m.payload)),
}
_PLACE = re.compile(r"\{(" + "|".join((*_PLACES, "number")) + r")\}")


class CommandFailedError(Exception):
    """A command did not end with status 0, or could not be started."""


class ExecCommand:
    """Runs a command for a message, with the payload as its standard input.

    What the command writes goes where this process writes. A signal from the terminal does not
    reach it, so that it can finish what it has begun.

    Args:
        text: words as a shell splits them; other braces than those of placeholders stay.

    Raises:
        UsageError: the text cannot be split, or is empty.
        CliError: there is no such command.
    """

    def __init__(self, text: str) -> None:
        try:
            self._words = shlex.split(text)
        except ValueError as error:
            reason = str(error).lower()
            raise UsageError(f"--exec '{text}' cannot be split into words: {reason}") from error
        if not self._words:
            raise UsageError("--exec needs a command")
        name = self._words[0]
        if not _PLACE.search(name) and shutil.which(name) is None:
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"no command '{name}' for --exec",
                hints=["words are split as a shell does it, but no shell runs them: sh -c '...'"],
            )
        self._run_count = 0

    def run(self, message: RetryMessage) -> None:
        """Run the command and wait for its end.

        Args:
            message: what to put into placeholders and standard input.

        Raises:
            CommandFailedError: it did not end with status 0.
        """
        self._run_count += 1
        words = [self._fill(word, message) for word in self._words]
        try:
            process = subprocess.Popen(words, stdin=subprocess.PIPE, process_group=0)
        except (OSError, ValueError) as error:
            raise CommandFailedError(f"'{words[0]}' cannot be started: {error}") from error
        process.communicate(message.payload)
        if process.returncode:
            raise CommandFailedError(f"'{words[0]}' {_how_it_ended(process.returncode)}")

    def _fill(self, word: str, message: RetryMessage) -> str:
        def value(match: re.Match[str]) -> str:
            get = _PLACES.get(match[1])
            return str(self._run_count) if get is None else get(message)

        return _PLACE.sub(value, word)


def _how_it_ended(status: int) -> str:
    if status > 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


DEFAULT_RETRIES = 3
DEFAULT_BACKOFF = "1s"
_IN_PLACE_SHARE = 10


class Executor(Protocol):
    """Does something with each message, instead of writing it."""

    def take(self, message: MessageFacts) -> bool:
        """Deal with a message; return False if that failed, so that it is not dealt with."""

    def work(self) -> None:
        """Do a piece of what is left over from before."""

    @property
    def remark(self) -> str:
        """Return what to say at the end, empty for nothing."""


@dataclass(frozen=True, slots=True)
class RetryOptions:
    """Where messages go whose command fails, and when it is run for them again."""

    directory: Path
    in_place: InPlace
    policy: RetryPolicy


@dataclass(frozen=True, slots=True)
class ExecOptions:
    """The command for each message; `retry` is None where a failure is simply counted."""

    command: ExecCommand
    retry: RetryOptions | None = None


def make_exec_options(choice: ExecChoice, *, is_in_group: bool) -> ExecOptions:
    """Return what `--exec` and the options around it ask for.

    Args:
        choice: the options; at least one of them is given.
        is_in_group: whether messages are committed, so that those that fail can be kept.

    Raises:
        UsageError: an option is malformed, or needs another one that is not given.
        CliError: there is no such command.
    """
    if choice.retry_dir is None:
        given = {
            "--retries": choice.retries,
            "--retry-backoff": choice.retry_backoff,
            "--max-attempts": choice.max_attempts,
        }
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"{option} says how --retry-dir works, which is not given")
    if choice.exec_command is None or (choice.retry_dir is not None and not is_in_group):
        raise UsageError("--retry-dir needs --exec and --group")
    if choice.retry_dir is None:
        return ExecOptions(ExecCommand(choice.exec_command))
    count = DEFAULT_RETRIES if choice.retries is None else choice.retries
    retry = make_retry_options(choice.retry_dir, count, choice.retry_backoff, choice.max_attempts)
    return ExecOptions(ExecCommand(choice.exec_command), retry)


def make_retry_options(
    directory: Path, retries: int, backoff: str | None, max_attempts: int | None
) -> RetryOptions:
    """Return how a retry store is worked with.

    Args:
        directory: of the store.
        retries: how often to try again in place.
        backoff: the first wait, as a duration; None for the default.
        max_attempts: in all; 0 or None for ever.

    Raises:
        UsageError: the duration is malformed.
    """
    wait_ms = parse_duration_ms(DEFAULT_BACKOFF if backoff is None else backoff)
    return RetryOptions(
        directory,
        InPlace(retries, wait_ms // _IN_PLACE_SHARE),
        RetryPolicy(first_wait_ms=wait_ms, max_attempts=max_attempts or None),
    )


@contextmanager
def open_executor(env: Environment, options: ExecOptions, stop: StopRequest) -> Iterator[Executor]:
    """Give what runs the command, with its retry store open for the duration of a block.

    Raises:
        RetryStoreBusyError: another process has the store.
        RetryStoreError: the store cannot be opened.
    """
    if options.retry is None:
        yield CommandExecutor(env, options.command)
        return
    retry = options.retry
    with RetryStore(retry.directory) as store:
        handler = RetryingHandler(
            options.command.run, store, retry.in_place, retry.policy, env.clock, stop.wait
        )
        yield RetryExecutor(env, handler)


class CommandExecutor:
    """Runs a command for each message, and keeps nothing.

    Args:
        env: where to complain.
        command: what to run.
    """

    def __init__(self, env: Environment, command: ExecCommand) -> None:
        self._env = env
        self._command = command

    def take(self, message: MessageFacts) -> bool:
        """Run the command for a message; return whether it succeeded."""
        try:
            self._command.run(_retry_message(message))
        except CommandFailedError as error:
            self._env.error(f"{message.partition} at {message.offset}: {error}")
            return False
        return True

    def work(self) -> None:
        """Do nothing: there is nothing left over."""

    @property
    def remark(self) -> str:
        """Return nothing to say."""
        return ""


class RetryExecutor:
    """Runs a command for each message, and keeps those for which it fails.

    Args:
        env: where to warn.
        handler: runs the command.
    """

    def __init__(self, env: Environment, handler: RetryingHandler) -> None:
        self._env = env
        self._handler = handler

    def take(self, message: MessageFacts) -> bool:
        """Run the command for a message, or else keep it; it is dealt with in any case.

        Raises:
            RetryStoreError: the message can be neither.
        """
        outcome = self._handler.handle(_retry_message(message))
        if outcome is not Outcome.DONE:
            where = self._handler.store.directory
            self._env.warn(f"{message.partition} at {message.offset} is {outcome.value} in {where}")
        return True

    def work(self) -> None:
        """Run the command for one message of the store whose time has come."""
        self._handler.retry_due()

    @property
    def remark(self) -> str:
        """Return how much is in the store, empty if nothing is."""
        count = len(self._handler.store)
        return f"{count} left in {self._handler.store.directory}" if count else ""


def _retry_message(message: MessageFacts) -> RetryMessage:
    return RetryMessage(
        message.partition, message.offset, message.next_offset, message.inner, message.payload
    )
