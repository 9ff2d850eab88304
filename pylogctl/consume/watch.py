"""What a user sees of `pylogctl consume` while it reads: how far it is, or why nothing comes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from pylogctl.cli.environment import Environment
from pylogctl.cli.progress import Progress, progress

_SILENCE_S = 2.0


class _Source(Protocol):
    @property
    def left_bytes(self) -> int | None:
        """Return the bytes up to the ends of what is read; None without ends."""


class Watch:
    """Looks at a source after each poll, and shows how much of it is read."""

    def __init__(
        self, env: Environment, source: _Source, meter: Progress, *, has_no_start: bool
    ) -> None:
        self._env = env
        self._source = source
        self._meter = meter
        self._left = self._total = source.left_bytes or 0
        meter.expect(self._total)
        tells = has_no_start and env.streams.stdout_is_tty and env.streams.stderr_is_tty
        self._silent_at_s = env.clock.monotonic_s() + _SILENCE_S if tells else None

    def look(self, message_count: int) -> None:
        """Show what is read; `message_count` messages were so far."""
        if self._silent_at_s is not None:
            self._tell_of_silence(self._silent_at_s, message_count)
        if not self._meter.is_watched:
            return
        left = self._source.left_bytes
        if left is None:
            return
        if left > self._left:  # a group assigned more
            self._total += left - self._left
            self._meter.expect(self._total)
        self._meter.advance(max(0, self._left - left), message_count=message_count)
        self._left = left

    def _tell_of_silence(self, silent_at_s: float, message_count: int) -> None:
        if message_count:
            self._silent_at_s = None
        elif self._env.clock.monotonic_s() >= silent_at_s:
            self._silent_at_s = None
            self._env.note("new messages only; --from-beginning for all")


@contextmanager
def watched(env: Environment, source: _Source, *, has_no_start: bool) -> Iterator[Watch]:
    """Give a watch of a source; a bar is drawn only if messages do not go to the terminal, too."""
    if env.settings.progress == "auto" and not _is_to_file(env):
        env = env.changed(settings=env.settings._replace(progress="never"))
    with progress(env, "consume", None) as meter:
        yield Watch(env, source, meter, has_no_start=has_no_start)


def _is_to_file(env: Environment) -> bool:
    """Whether messages go to a file or are dropped: what reads a pipe may write to a terminal."""
    stdout = env.streams.stdout
    if stdout is None or env.streams.stdout_is_tty:
        return False
    try:
        mode = os.fstat(stdout.fileno()).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISCHR(mode)
