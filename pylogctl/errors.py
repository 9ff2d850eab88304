"""What a command raises when it cannot do what was asked.

Owns the exceptions of the command line itself. What the library raises stands in
`broker.errors`; `pylogctl.exit_status` maps both to an exit status and a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from pylogctl.exit_status import ExitStatus


class CliError(Exception):
    """A failure that ends the command, told in one sentence and at most three more lines.

    Args:
        status: how the process ends.
        message: one sentence with the offending value in quotes, no full stop.
        hints: what was expected, the likely cause, the next command.
        code: word for programs, such as `TOPIC_NOT_FOUND`; empty for the name of the status.
        details: values for programs.
    """

    def __init__(
        self,
        status: ExitStatus,
        message: str,
        *,
        hints: Iterable[str] = (),
        code: str = "",
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hints = tuple(hints)
        self.code = code or status.name
        self.details = dict(details or {})


class UsageError(CliError):
    """An option, value, combination or expression is not understood: exit status 2."""

    def __init__(self, message: str, *, hints: Iterable[str] = ()) -> None:
        super().__init__(ExitStatus.USAGE, message, hints=hints)


class MissingCommandError(UsageError):
    """A command group was named without a command; the short help is shown instead."""

    def __init__(self, path: str, help_text: str) -> None:
        super().__init__(f"missing command after '{path}'", hints=[f"try: {path} --help"])
        self.help_text = help_text


def did_you_mean(value: str, candidates: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest candidate, or nothing."""
    matches = get_close_matches(value, list(candidates), n=1, cutoff=0.6)
    return f"; did you mean '{matches[0]}'?" if matches else ""
