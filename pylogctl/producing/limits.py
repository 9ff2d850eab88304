"""What bounds a run and its batches, and what happens to messages that cannot be sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pylogctl.errors import CliError

ANY_COUNT = (1 << 31) - 1
"""As a number of messages: no limit."""


class Limits(NamedTuple):
    """Sizes of messages and batches, and how long a batch may wait to become full."""

    message_bytes: int
    batch_messages: int
    batch_bytes: int
    linger_s: float


class Quota:
    """How many messages may still be sent.

    Args:
        max_messages: at the start; None for any number.
    """

    def __init__(self, max_messages: int | None) -> None:
        self._left = max_messages

    def is_used_up(self) -> bool:
        """Say whether no more may be sent."""
        return self._left == 0

    def of(self, count: int) -> int:
        """Return how many of `count` messages may be sent."""
        return count if self._left is None else min(count, self._left)

    def use(self, count: int) -> None:
        """Note that messages are being sent."""
        if self._left is not None:
            self._left -= count


class RefusedError(CliError):
    """A message that cannot be sent ends the run; the text names its input."""


class Refusals:
    """Messages that cannot be sent: the first one ends the run, or each is told and counted.

    Args:
        skips: go on after telling.
        tell: how it is told.
    """

    def __init__(self, *, skips: bool, tell: Callable[[str], None]) -> None:
        self._skips = skips
        self._tell = tell
        self.count = 0
        """Messages left out."""

    def refuse(self, error: CliError, source: str = "", count: int = 1) -> None:
        """Leave messages out.

        Args:
            error: what is wrong with them.
            source: which input they are from, to put before the text.
            count: how many they are.

        Raises:
            RefusedError: they end the run.
        """
        message = f"{source}{error.message}"
        if not self._skips:
            raise RefusedError(error.status, message, hints=error.hints, code=error.code)
        self._tell(message)
        self.count += count
