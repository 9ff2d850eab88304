"""The keys of `pylogctl top`: read from the bytes of a terminal, and what they change. Pure."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from broker.errors import ArgumentError
from pylogctl.top.views import KEYS, VIEWS, ViewPlace, compile_filter, selected_index

_INTERVALS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
KEYS_LINE = "? help  Q end  o b t g r q views  / filter  < > sort  R reverse  space pause"
HELP = [
    "",
    "  o overview      b brokers        t topics",
    "  g groups        r replication    q requests",
    "",
    "  Up Down j k     select a row; PgUp PgDn Home End go further",
    "  Enter           what the row is made of; Esc goes back",
    "  /               filter: a part of a name, or ~ and a regular expression",
    "  < >             sort by the column to the left, to the right; R reverses",
    "  + -             longer or shorter interval",
    "  space           pause: the screen stands still, brokers are asked on",
    "  m               the newest messages of the topic, until Ctrl-C",
    "  s               save the screen as text in this directory",
    "  Q  Ctrl-C       end",
]

_SEQUENCE = re.compile(rb"\x1b(?:[\[O]([^a-zA-Z~]*[a-zA-Z~])|(?![\[O])(?=.))", re.DOTALL)
"""An escape: of a key's sequence, or by itself, if another character follows."""
_OF_SEQUENCES = {
    b"A": "up",
    b"B": "down",
    b"C": ">",
    b"D": "<",
    b"5~": "pgup",
    b"6~": "pgdn",
    b"H": "home",
    b"1~": "home",
    b"F": "end",
    b"4~": "end",
}
_CONTROLS = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace"}


class Action(Enum):
    """What a key asks for beside other choices."""

    NONE = "none"
    QUIT = "quit"
    SAVE = "save"
    TAIL = "tail"


class KeyReader:
    """Splits what a terminal sends into keys: characters, and names such as `up`."""

    def __init__(self) -> None:
        self._rest = b""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    @property
    def is_waiting(self) -> bool:
        """Whether an escape was read that may be the start of a key's sequence, or Esc."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[str]:
        """Return the keys that are complete."""
        data, self._rest = self._rest + data, b""
        keys: list[str] = []
        while data:
            text, escape, rest = data.partition(b"\x1b")
            keys += (_CONTROLS.get(one, one) for one in self._decode(text))
            data = escape + rest
            match = _SEQUENCE.match(data)
            if match is None:  # more of it is to come
                self._rest = data
                return keys
            if match[1] is None:
                keys.append("esc")
            elif match[1] in _OF_SEQUENCES:  # else a key that means nothing here
                keys.append(_OF_SEQUENCES[match[1]])
            data = data[match.end() :]
        return keys

    def flush(self) -> list[str]:
        """Return the keys of an escape that nothing has followed for a while."""
        rest, self._rest = self._rest, b""
        return ["esc", *map(chr, rest[1:])] if rest else []


@dataclass
class Choices:
    """What a user has chosen; `press` changes it."""

    places: list[ViewPlace]  # the last one is shown; those before it are where Esc goes
    interval_s: float = 2.0
    is_paused: bool = False
    shows_help: bool = False
    typed: str | None = None  # of a filter that is being typed
    message: str = ""
    _left: dict[str, ViewPlace] = field(default_factory=dict)  # views as they were left

    @property
    def place(self) -> ViewPlace:
        """The view that is shown."""
        return self.places[-1]

    def go(self, view: str) -> None:
        """Show a view, as it was left."""
        self._left[self.places[0].view] = self.places[0]
        self.places = [self._left.get(view) or ViewPlace(view, sort=VIEWS[view].sort)]

    def _set(self, **values: object) -> None:
        self.places[-1] = self.place._replace(**values)  # type: ignore[arg-type]  # fields by name

    def press(self, key: str, names: Sequence[str], page: int) -> Action:
        """Do what a key says.

        Args:
            names: of the lines of the view, in their order.
            page: how many of them are shown.
        """
        self.message = ""
        if self.typed is not None:
            self._type(key)
            return Action.NONE
        if self.shows_help:
            self.shows_help = False
            return Action.QUIT if key == "Q" else Action.NONE
        if key in ("up", "k", "down", "j", "pgup", "pgdn", "home", "end"):
            self._move(key, names, page)
        elif key in KEYS:
            self.go(KEYS[key])
        elif key == "enter":
            self._drill(names)
        elif key == "esc":
            self._back()
        elif key == "/":
            self.typed = self.place.filter
        elif key in ("<", ">"):
            self._sort_beside(1 if key == ">" else -1)
        elif key == "R" and self.place.sort:
            name = self.place.sort.removeprefix("-")
            self._set(sort=name if self.place.sort.startswith("-") else f"-{name}")
        elif key in ("+", "-"):
            self._change_interval(longer=key == "+")
        elif key == " ":
            self.is_paused = not self.is_paused
        elif key == "?":
            self.shows_help = True
        return {"Q": Action.QUIT, "s": Action.SAVE, "m": Action.TAIL}.get(key, Action.NONE)

    def _type(self, key: str) -> None:
        assert self.typed is not None
        if key == "enter":
            try:
                compile_filter(self.typed)
            except ArgumentError as error:
                self.message = str(error)
            else:
                self._set(filter=self.typed)
            self.typed = None
        elif key == "esc":
            self.typed = None
        elif key == "backspace":
            self.typed = self.typed[:-1]
        elif len(key) == 1 and key.isprintable():
            self.typed += key

    def _move(self, key: str, names: Sequence[str], page: int) -> None:
        if not names:
            return
        step = {"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "pgdn": page}.get(key, 0)
        last = len(names) - 1
        index = {"home": 0, "end": last}.get(key, selected_index(names, self.place) + step)
        index = max(0, min(index, last))
        self._set(row=index, selected=names[index])

    def _drill(self, names: Sequence[str]) -> None:
        drill = VIEWS[self.place.view].drill
        if not drill or not names:
            return
        name = names[selected_index(names, self.place)]
        self._set(selected=name, row=selected_index(names, self.place))
        target = f"{self.place.target}/{name}" if self.place.target else name
        self.places.append(ViewPlace(drill, target, VIEWS[drill].sort))

    def _back(self) -> None:
        if self.place.filter:
            self._set(filter="")
        elif len(self.places) > 1:
            self.places.pop()

    def _sort_beside(self, step: int) -> None:
        columns = VIEWS[self.place.view].document.columns
        names = [one.name for one in columns if one.shown]
        now = self.place.sort.removeprefix("-")
        place = names.index(now) + step if now in names else (0 if step > 0 else len(names) - 1)
        name = names[place % len(names)]
        self._set(sort=f"-{name}" if self.place.sort.startswith("-") else name)

    def _change_interval(self, *, longer: bool) -> None:
        now_s = self.interval_s
        if longer:
            self.interval_s = min((one for one in _INTERVALS_S if one > now_s), default=now_s)
        else:
            self.interval_s = max((one for one in _INTERVALS_S if one < now_s), default=now_s)
