"""`consume --exec`: runs a command for each message, and keeps failed messages in a retry store.

No shell is involved: the command is split into words once, and then placeholders are replaced, so
that a message never adds words.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker.tools import retry
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.process import StopRequest
from pylogctl.consume.options import ExecChoice
from pylogctl.format.envelope import MessageFacts

_PLACES: dict[str, Callable[[retry.RetryMessage], str]] = {
    "topic": lambda m: m.partition.topic,
    "partition": lambda m: m.partition.name,
    "offset": lambda m: str(m.offset),
    "next_offset": lambda m: str(m.next_offset),
    "size": lambda m: str(len(m.payload)),
}
_TEXT_PLACE = "{topic}"  # all others are made of digits
_SHELLS = frozenset({"sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh"})
_PLACE = re.compile(r"\{(" + "|".join((*_PLACES, "number")) + r")\}")


class _CommandFailedError(Exception):
    """A command could not be started, or ended with another status than 0."""


class ExecCommand:
    """Runs a command for a message, with the payload as its standard input.

    The command inherits standard output and standard error. Signals from the terminal do not reach
    it, so that it can finish.

    Args:
        text: split into words as a shell does; braces that are no placeholder are kept. Refused if
            a shell's script in it contains the topic, or if there is no such command.
    """

    def __init__(self, text: str) -> None:
        try:
            self._words = shlex.split(text)
        except ValueError as error:
            reason = str(error).lower()
            raise UsageError(f"--exec '{text}' cannot be split into words: {reason}") from error
        if not self._words:
            raise UsageError("--exec needs a command")
        if any(_TEXT_PLACE in script for script in _shell_scripts(self._words)):
            raise UsageError(
                f"--exec '{text}' puts {_TEXT_PLACE} into a shell's script, where a topic's name "
                "could be run as a command",
                """try: sh -c 'echo "$1"' sh {topic}""",
            )
        name = self._words[0]
        if not _PLACE.search(name) and shutil.which(name) is None:
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"no command '{name}' for --exec",
                "words are split as a shell does it, but no shell runs them: sh -c '...'",
            )
        self._run_count = 0

    def run(self, message: retry.RetryMessage) -> None:
        """Run the command for a message and wait for its end; raise `_CommandFailedError`."""
        self._run_count += 1
        message = message.opened()
        words = [self._fill(word, message) for word in self._words]
        try:
            process = subprocess.Popen(words, stdin=subprocess.PIPE, process_group=0)
        except (OSError, ValueError) as error:
            raise _CommandFailedError(f"'{words[0]}' cannot be started: {error}") from error
        process.communicate(message.payload)
        if process.returncode:
            raise _CommandFailedError(f"'{words[0]}' {_how_it_ended(process.returncode)}")

    def _fill(self, word: str, message: retry.RetryMessage) -> str:
        def value(match: re.Match[str]) -> str:
            get = _PLACES.get(match[1])
            return str(self._run_count) if get is None else get(message)

        return _PLACE.sub(value, word)


def _shell_scripts(words: Sequence[str]) -> Iterator[str]:
    """Yield the scripts that words such as `sh -c SCRIPT` give to a shell."""
    for position, word in enumerate(words):
        if word.rpartition("/")[2] not in _SHELLS:
            continue
        has_script = False
        for following in words[position + 1 :]:
            if not following.startswith(("-", "+")):
                if has_script:
                    yield following
                break
            has_script |= bool(re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", following))


def _how_it_ended(status: int) -> str:
    if status > 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


DEFAULT_RETRIES = 3
_BACKOFF_MS = 1000  # before the first run of a kept message; doubled for each later one


_Rules = tuple[retry.InPlace, retry.RetryPolicy]


@dataclass(frozen=True, slots=True)
class ExecOptions:
    """The command for each message; without a retry store failures are only counted."""

    command: ExecCommand
    retry_dir: Path | None
    rules: _Rules


def make_exec_options(choice: ExecChoice, *, is_in_group: bool) -> ExecOptions:
    """Return the values of `--exec` and its related options, of which at least one is given."""
    if choice.retry_dir is None:
        given = {"--retries": choice.retries, "--max-attempts": choice.max_attempts}
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"{option} says how --retry-dir works, which is not given")
    if choice.exec_command is None or (choice.retry_dir is not None and not is_in_group):
        raise UsageError("--retry-dir needs --exec and --group")
    count = DEFAULT_RETRIES if choice.retries is None else choice.retries
    rules = retry_rules(count, choice.max_attempts)
    return ExecOptions(ExecCommand(choice.exec_command), choice.retry_dir, rules)


def retry_rules(retries: int = DEFAULT_RETRIES, max_attempts: int | None = None) -> _Rules:
    """Return the rules of retries: `retries` runs at once before a message is kept.

    `max_attempts` in all, 0 or None for no limit.
    """
    in_place = retry.InPlace.before(_BACKOFF_MS, retries)
    return in_place, retry.RetryPolicy(first_wait_ms=_BACKOFF_MS, max_attempts=max_attempts or None)


@contextmanager
def open_executor(env: Environment, options: ExecOptions, stop: StopRequest) -> Iterator[Executor]:
    """Give the executor, with its retry store open and locked until the end of the block."""
    if options.retry_dir is None:
        yield Executor(env, options.command)
        return
    with retry.RetryStore(options.retry_dir) as store:
        handler = retry.RetryingHandler(
            options.command.run, store, *options.rules, env.clock, stop.wait
        )
        yield Executor(env, options.command, handler)


@dataclass(frozen=True, slots=True)
class Executor:
    """Handles messages instead of standard output: runs a command for each.

    With a handler, messages for which the command fails are kept; without, it is reported.
    """

    env: Environment
    command: ExecCommand
    handler: retry.RetryingHandler | None = None

    def take(self, message: MessageFacts) -> bool:
        """Handle a message; return whether that succeeded, or the message is kept."""
        partition, offset, next_offset, inner = message[:4]
        given = retry.RetryMessage(partition, offset, next_offset, inner, message.stored)
        where = f"{partition} at {offset}"
        if self.handler is not None:
            outcome = self.handler.handle(given)
            if outcome is not retry.RetryOutcome.DONE:
                self.env.warn(f"{where} is {outcome.value} in {self.handler.store.directory}")
            return True
        try:
            self.command.run(given)
        except _CommandFailedError as error:
            self.env.error(f"{where}: {error}")
            return False
        return True

    def work(self) -> None:
        """Handle one message kept earlier whose retry is due."""
        if self.handler is not None:
            self.handler.retry_due()

    @property
    def remark(self) -> str:
        """Return a text for the summary, empty for none."""
        store = None if self.handler is None else self.handler.store
        return f"{len(store)} left in {store.directory}" if store else ""
