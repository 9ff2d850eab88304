"""`pylogctl top` at work: on a terminal until it is ended, or as a number of looks for scripts."""

from __future__ import annotations

import errno
import os
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from broker.client.registry_cluster import RegistryCluster
from broker.protocol.extension_requests import StatusParts
from broker.units import format_time
from pylogctl.cli.connections import Absence, cluster_name, open_cluster
from pylogctl.cli.environment import Environment
from pylogctl.cli.process import StopRequest, graceful_stop
from pylogctl.cli.render import chosen_columns, render
from pylogctl.cli.security import security_of
from pylogctl.cli.signals import Handler, installed
from pylogctl.top.keys import Action, Choices, KeyReader
from pylogctl.top.looks import Looks, Wish
from pylogctl.top.screen import Size, Style, absence, head_lines, screen
from pylogctl.top.state import TopState
from pylogctl.top.views import VIEWS, Moment, ViewPlace, lines_of, selected_index

_ESCAPE_S = 0.05
_OF_TEXT = frozenset(("output", "columns", "no_header", "raw_numbers", "wide"))
"""Options that a screen has no use for."""
_LEAST_TIMEOUT_S = 2.0  # a broker that is slower than a short interval is not down
_FOOT_AND_HEAD = 8  # lines of the screen that are no rows


def run(
    env: Environment, places: list[ViewPlace], *, interval_s: float, look_count: int | None
) -> None:
    """Show a cluster until interrupted; with `look_count`, or into a file or pipe, as text."""
    streams = env.streams
    if look_count is None and not streams.stdout_is_tty:
        look_count = 1
    is_text = look_count is not None or not env.given.isdisjoint(_OF_TEXT)
    has_screen = (
        streams.stdin_is_tty and streams.stdout_is_tty and env.environ.get("TERM") != "dumb"
    )
    if env.settings.sort:
        chosen_columns(VIEWS[places[-1].view].document, [env.settings.sort.removeprefix("-")])
        places[-1] = places[-1]._replace(sort=env.settings.sort)
        env = env.changed(settings=env.settings._replace(sort=""))
    with ExitStack() as closing:
        cluster = closing.enter_context(open_cluster(env, absence=Absence.WARN))
        registry = cluster.registry if isinstance(cluster, RegistryCluster) else None
        brokers = cluster.brokers()
        stop = closing.enter_context(graceful_stop())
        looks = closing.enter_context(Looks(brokers, registry, security_of(env)))
        watch = _Watch(looks, Choices(places, interval_s), env)
        watch.state.has_zookeeper = registry is not None
        if has_screen and not is_text:
            try:
                _Live(watch, stop).run()
            except OSError as error:
                if error.errno != errno.EIO:
                    raise  # else the terminal is gone, and nobody to be told
        else:
            _write_looks(watch, stop, look_count)


@dataclass
class _Watch:
    """What is asked for, and what is known."""

    looks: Looks
    choices: Choices
    env: Environment
    state: TopState = field(default_factory=TopState)
    next_s: float = 0.0  # when to ask again

    def now(self) -> Moment:
        return Moment(self.env.clock.time_ms(), time.monotonic())

    def take(self) -> None:
        """Take the answers that have come, and follow the brokers that they name."""
        now = self.now()
        for answer in self.looks.answers():
            self.state.take(answer, now.ms)
        cluster = self.state.cluster
        if cluster is not None:
            self.looks.follow(cluster.brokers)

    def ask(self) -> None:
        """Begin a look."""
        now = self.now()
        place, interval_s = self.choices.place, self.choices.interval_s
        parts, topic = VIEWS[place.view].parts, ""
        if place.view in ("partitions", "replicas"):
            topic = place.target.partition("/")[0]
        if self.state.wants_logs:
            parts, topic = parts | StatusParts.LOGS, ""
        sources = self.state.metadata_sources(self.looks.broker_ids, now.s)
        self.looks.ask(Wish(parts, topic, sources, max(interval_s, _LEAST_TIMEOUT_S)))
        self.next_s = now.s + max(interval_s, self.state.least_interval_s(parts))


def _write_looks(watch: _Watch, stop: StopRequest, count: int | None) -> None:
    """Write looks as text, or as rows of one document."""
    env, place = watch.env, watch.choices.place
    env = env.changed(settings=env.settings._replace(color="never"))
    looks = _looks(watch, stop, count)
    document = VIEWS[place.view].document
    if env.output in ("json", "jsonl", "csv", "tsv"):
        render(
            env,
            document,
            (line.row for state, now in looks for line in _rows(env, state, place, now)),
        )
        return
    for state, now in looks:
        for text in (f"{format_time(now.ms)}  {place.view}", *head_lines(state)):
            env.write_line(text)
        rows = (line.row for line in lines_of(state, place, now))
        render(env, document._replace(empty=absence(state, place)), rows)
        env.write_line("")
        env.flush()


def _rows(env: Environment, state: TopState, place: ViewPlace, now: Moment) -> Iterator[Any]:
    yield from lines_of(state, place, now)
    env.flush()


def _looks(
    watch: _Watch, stop: StopRequest, count: int | None
) -> Iterator[tuple[TopState, Moment]]:
    """Yield what is known after each look; the first has rates, as it is the second one taken."""
    taken = 0
    while not stop.is_set and (count is None or taken <= count):
        watch.ask()
        _await_answers(watch, stop)
        watch.state.end_look(watch.now().ms)
        if taken:
            yield watch.state, watch.now()
        taken += 1
        if count is None or taken <= count:
            stop.wait(max(0.0, watch.next_s - time.monotonic()))


def _await_answers(watch: _Watch, stop: StopRequest) -> None:
    give_up_s = time.monotonic() + 2 * max(watch.choices.interval_s, _LEAST_TIMEOUT_S)
    while not stop.is_set and not watch.looks.is_complete:
        left_s = give_up_s - time.monotonic()
        if left_s <= 0:
            return
        select.select([watch.looks.fileno()], [], [], min(left_s, 0.2))
        watch.take()


class _Live:
    """The live view on the terminal of standard input and output."""

    def __init__(self, watch: _Watch, stop: StopRequest) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        env = watch.env
        self._watch = watch
        self._stop = stop
        self._style = Style(env.use_color(), env.unicode_output)
        self._console = Console(no_color=not env.use_color(), highlight=False)
        self._make_live = partial(Live, console=self._console, screen=True, auto_refresh=False)
        self._text = Text
        self._live: Any = None
        self._keys = KeyReader()
        self._frozen: tuple[TopState, Moment] | None = None  # what is shown while paused
        self._wants_stop = False  # Ctrl-Z

    def run(self) -> None:
        """Show until a key or a signal ends it."""
        with self._handlers(), self._on_screen():
            while not self._stop.is_set:
                now = self._watch.now()
                if now.s >= self._watch.next_s:
                    self._watch.state.end_look(now.ms)
                    self._watch.ask()
                self._draw()
                if not self._wait():
                    return
                if self._wants_stop:
                    self._wants_stop = False
                    self._suspended(lambda: os.kill(os.getpid(), signal.SIGTSTP))

    @contextmanager
    def _handlers(self) -> Iterator[None]:
        """Note a changed size and Ctrl-Z; any signal ends a wait."""

        def note_stop(*_: object) -> None:
            self._wants_stop = True

        handlers: dict[int, Handler] = {signal.SIGWINCH: lambda *_: None, signal.SIGTSTP: note_stop}
        wakeup = signal.set_wakeup_fd(self._watch.looks.wake_writer, warn_on_full_buffer=False)
        try:
            with installed(handlers):
                yield
        finally:
            signal.set_wakeup_fd(wakeup)

    @contextmanager
    def _on_screen(self) -> Iterator[None]:
        """Use the alternate screen, and read keys as they are pressed."""
        stdin = sys.stdin.fileno()
        before = termios.tcgetattr(stdin)
        self._live = self._make_live()
        self._live.start()
        try:
            tty.setcbreak(stdin)
            yield
        finally:
            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(stdin, termios.TCSADRAIN, before)
            self._live.stop()

    def _suspended(self, action: Callable[[], object]) -> None:
        """Give the terminal back for an action."""
        stdin = sys.stdin.fileno()
        raw = termios.tcgetattr(stdin)
        self._live.stop()
        tty_before = list(raw)
        tty_before[3] |= termios.ICANON | termios.ECHO
        termios.tcsetattr(stdin, termios.TCSADRAIN, tty_before)
        try:
            with installed({signal.SIGTSTP: signal.SIG_DFL}):
                action()
        finally:
            termios.tcsetattr(stdin, termios.TCSADRAIN, raw)
            self._live = self._make_live()
            self._live.start()

    def _size(self) -> Size:
        columns, lines = shutil.get_terminal_size()
        return Size(max(columns, 20), max(lines, 8))

    def _shown(self) -> tuple[TopState, Moment]:
        choices = self._watch.choices
        if not choices.is_paused:
            self._frozen = None
        elif self._frozen is None:
            self._frozen = self._watch.state.copy(), self._watch.now()
        return self._frozen or (self._watch.state, self._watch.now())

    def _lines(self) -> list[str]:
        state, now = self._shown()
        env = self._watch.env
        name = env.context.name if env.context is not None else cluster_name(env)
        return screen(state, self._watch.choices, self._size(), now, self._style, name=name)

    def _draw(self) -> None:
        shown = "\n".join(self._lines())
        if not self._style.has_unicode:  # what the terminal's encoding lacks is escaped
            encoding = self._watch.env.streams.encoding
            shown = shown.encode(encoding, "backslashreplace").decode(encoding)
        text = self._text.from_ansi(shown, no_wrap=True, overflow="crop")
        self._live.update(text, refresh=True)

    def _wait(self) -> bool:
        """Wait for keys, answers, a signal or the next look; return whether to go on."""
        stdin, looks = sys.stdin.fileno(), self._watch.looks
        left_s = max(0.0, self._watch.next_s - time.monotonic())
        if self._keys.is_waiting:
            left_s = min(left_s, _ESCAPE_S)
        ready, _, _ = select.select([stdin, looks.fileno()], [], [], left_s)
        self._watch.take()
        if stdin in ready:
            data = os.read(stdin, 1024)
            return bool(data) and all(map(self._press, self._keys.feed(data)))
        return all(map(self._press, self._keys.flush() if self._keys.is_waiting else ()))

    def _press(self, key: str) -> bool:
        """Do what a key says; return whether to go on."""
        choices = self._watch.choices
        before = choices.place
        state, now = self._shown()
        names = [one.name for one in lines_of(state, before, now)]
        action = choices.press(key, names, max(1, self._size().height - _FOOT_AND_HEAD))
        if (choices.place.view, choices.place.target) != (before.view, before.target):
            self._watch.next_s = 0.0  # it needs other parts
        if action is Action.SAVE:
            self._save()
        elif action is Action.TAIL:
            self._tail(names)
        return action is not Action.QUIT

    def _save(self) -> None:
        choices = self._watch.choices
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self._watch.now().ms / 1000))
        name = f"pylogctl-top-{choices.place.view}-{stamp}.txt"
        style, self._style = self._style, self._style._replace(has_color=False)
        text = "\n".join(self._lines()) + "\n"
        self._style = style
        try:
            with Path(name).open("x", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
        except OSError as error:
            choices.message = f"cannot save the screen: {error}"
        else:
            choices.message = f"saved as {name}"

    def _tail(self, names: list[str]) -> None:
        place = self._watch.choices.place
        if place.view in ("partitions", "replicas"):
            topic = place.target.partition("/")[0]
        elif place.view == "topics" and names:
            topic = names[selected_index(names, place)]
        else:
            self._watch.choices.message = "m shows the messages of a topic: t, and choose one"
            return
        settings = self._watch.env.settings
        where = (
            ["-b", ",".join(settings.brokers)]
            if settings.brokers
            else ["-Z", self._watch.env.zookeeper]
        )
        command = [sys.executable, "-m", "pylogctl", "tail", *where, "--", topic]
        self._suspended(lambda: _run_child(command))


def _run_child(command: list[str]) -> None:
    with subprocess.Popen(command) as child, installed({signal.SIGINT: signal.SIG_IGN}):
        child.wait()
