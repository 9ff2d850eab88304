"""Progress of long work on standard error, and notes about waits.

A bar on a terminal if the work lasts over half a second; with `-v` and no terminal a line every
five seconds. SIGUSR1 asks for a line at once.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Literal

from broker.clock import Clock
from broker.units import format_count, format_duration, format_size
from pylogctl.cli.environment import Environment
from pylogctl.cli.escapes import printable
from pylogctl.cli.signals import installed

Unit = Literal["bytes", "messages", "tasks"]

_SHOW_AFTER_S = 0.5
_REFRESH_S = 0.1
LINE_EVERY_S = 5.0
_MINUTE_S = 60
ANNOUNCE_WAIT_AFTER_S = 2.0


class Progress:
    """Counts the work that is done and displays it.

    `label` names the work, such as `verify`; `total` is None if it is not known.
    """

    def __init__(
        self, env: Environment, label: str, total: int | None, *, unit: Unit = "bytes"
    ) -> None:
        self._env = env
        self._label = label
        self._total = total
        self._unit = unit
        self._done = 0
        self._message_count: int | None = None
        self._bar: Any = None
        self._task: Any = None
        self._started_s = env.clock.monotonic_s()
        self._next_s = self._started_s
        self._wants_bar = wants_progress(env)
        self._wants_lines = not self._wants_bar and env.settings.verbosity > 0
        self._line_now = False
        if self._wants_bar:
            self._next_s += _SHOW_AFTER_S
        elif self._wants_lines:
            self._next_s += LINE_EVERY_S

    @property
    def is_watched(self) -> bool:
        """Whether anything is shown of it now or later."""
        return self._wants_bar or self._wants_lines or self._line_now

    def advance(self, amount: int, *, message_count: int | None = None) -> None:
        """Add to the work done, and display it if an update is due.

        `message_count` is of how many messages it was so far, where the unit is bytes.
        """
        self._done += amount
        self._message_count = message_count
        if self._line_now:
            self._line_now = False
            self._env.report(self.line())
        if not (self._wants_bar or self._wants_lines):
            return
        now_s = self._env.clock.monotonic_s()
        if now_s < self._next_s:
            return
        if self._wants_lines:
            self._next_s = now_s + LINE_EVERY_S
            self._env.trace(1, self.line())
        else:
            self._next_s = now_s + _REFRESH_S
            self._draw()

    def expect(self, total: int) -> None:
        """Set the total, once more of it is known."""
        self._total = total

    def line(self) -> str:
        """Return label, amount, total, rate and the time that is left as one line."""
        behind = ":" if self._message_count is None else ","
        line = f"{self._name}{behind} {self._amount}"
        if self._total and 0 < self._done < self._total:
            left_s = (self._total - self._done) / self._rate
            left = f"{left_s:.0f}s" if left_s < _MINUTE_S else format_duration(left_s)
            line += f", {100 * self._done // self._total} %, {left} left"
        return line

    @property
    def _rate(self) -> float:
        return self._done / max(self._env.clock.monotonic_s() - self._started_s, 1e-9)

    @property
    def _amount(self) -> str:
        show = format_size if self._unit == "bytes" else format_count
        unit = "" if self._unit == "bytes" else f" {self._unit}"
        of_total = f" of {show(self._total)}" if self._total else ""
        return f"{show(self._done)}{of_total}{unit}, {show(self._rate)}/s"

    @property
    def _name(self) -> str:
        if self._message_count is None:
            return self._label
        return f"{self._label}: {format_count(self._message_count)} messages"

    def ask_for_line(self, *_: object) -> None:
        """Request a line at the next `advance`; runs as a signal handler."""
        self._line_now = True

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _draw(self) -> None:
        if self._bar is None:
            self._bar = _make_bar(self._env)
            name, amount = printable(self._name), self._amount
            self._task = self._bar.add_task(name, total=self._total, amount=amount)
            self._bar.start()
        self._bar.update(
            self._task,
            description=printable(self._name),
            amount=self._amount,
            completed=self._done,
            total=self._total,
            refresh=True,
        )


class Silence:
    """The seconds that brokers of a command may be silent at first, all together.

    A service has them again after a minute in which none was silent.
    """

    def __init__(self, limit_s: float, clock: Clock) -> None:
        self._limit_s = self._left_s = limit_s
        self._clock = clock
        self._last_s = clock.monotonic_s()

    @property
    def left_s(self) -> float:
        """Return how long the next broker may be silent."""
        if self._clock.monotonic_s() - self._last_s > _MINUTE_S:
            self._left_s = self._limit_s
        return self._left_s

    def note(self, seconds: float) -> None:
        """Count a silence that has ended now."""
        self._left_s -= seconds
        self._last_s = self._clock.monotonic_s()


def wants_progress(env: Environment) -> bool:
    """Whether a bar may be drawn on standard error."""
    if env.settings.progress != "auto":
        return env.settings.progress == "always"
    return env.streams.stderr_is_tty and not env.settings.quiet


@contextmanager
def progress(
    env: Environment, label: str, total: int | None, *, unit: Unit = "bytes"
) -> Iterator[Progress]:
    """Display the progress of a block; see `Progress`."""
    meter = Progress(env, label, total, unit=unit)
    with closing(meter), installed({signal.SIGUSR1: meter.ask_for_line}):
        yield meter


def _make_bar(env: Environment) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    color = env.use_color(stderr=True)
    console = Console(file=env.streams.stderr, force_terminal=True, no_color=not color)
    return RichProgress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[amount]}", markup=False),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        auto_refresh=False,
    )


@contextmanager
def announced_wait(
    env: Environment,
    what: str,
    *,
    after_s: float | None = None,
    every_s: float | None = None,
) -> Iterator[None]:
    """Write a note if a block takes longer than `after_s` (2 s), and then one each `every_s`.

    `what` is such as `ZooKeeper at localhost:2181`.
    """
    has_ended = threading.Event()

    def announce() -> None:
        wait_s: float | None = ANNOUNCE_WAIT_AFTER_S if after_s is None else after_s
        began_s = time.monotonic()
        while wait_s is not None and not has_ended.wait(wait_s):
            so_far = f", {time.monotonic() - began_s:.0f} s so far" if every_s else ""
            env.note(f"waiting for {what}{so_far}")
            wait_s = every_s

    threading.Thread(target=announce, name="announced-wait", daemon=True).start()
    try:
        yield
    finally:
        has_ended.set()
