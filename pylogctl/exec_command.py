"""The command of `--exec`: its words, and one run of it for a message.

No shell is involved: the text is split into words once, and what a message brings never becomes
more than a part of a word.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable

from broker.client.retry_store import RetryMessage
from pylogctl.errors import CliError, UsageError
from pylogctl.exit_status import ExitStatus

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
