"""Times in messages: formats as `strptime` has them, in the words of Spark's parser.

Pure text to text; `extraction` makes columns of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from broker.errors import QueryError

AUTO = "auto"
"""Times of any kind: ISO 8601, or seconds or milliseconds since 1970."""

_DIRECTIVES = {
    "Y": "yyyy", "y": "yy", "m": "MM", "d": "dd", "e": "dd", "j": "DDD", "b": "MMM", "h": "MMM",
    "B": "MMMM", "H": "HH", "I": "hh", "M": "mm", "S": "ss", "f": "SSSSSS", "p": "a",
    "z": "[XXX][XX][X]",
}  # fmt: skip
_SHORTHANDS = {"T": "%H:%M:%S", "F": "%Y-%m-%d", "R": "%H:%M", "D": "%m/%d/%y"}
_ONE_DIGIT_TOO = frozenset("mdeHIMS")
_TOKEN = re.compile(r"%(.)|([^%]+)|(%)", re.DOTALL)
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """How times are written in messages.

    Attributes:
        pattern: for Spark's parser; None for `AUTO`.
        has_zone: whether times name their zone.
        has_year: whether times name their year.
        zone: of times that name none.
    """

    pattern: str | None = None
    has_zone: bool = False
    has_year: bool = True
    zone: str = "UTC"


def parse_time_format(text: str = AUTO, zone: str = "UTC") -> TimeFormat:
    """Return what a format means.

    Numbers may have fewer digits than they could, and runs of spaces count as one, as in the
    `Dec  4` of system logs.

    Args:
        text: `auto`, or directives of `strptime`, such as `%d/%b/%Y:%H:%M:%S %z`.
        zone: of times that name none, such as `Europe/Paris`.

    Raises:
        QueryError: a directive or the zone is not known.
    """
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise QueryError(f"no time zone '{zone}'; valid: UTC, Europe/Paris") from error
    if text == AUTO:
        return TimeFormat(zone=zone)
    expanded = re.sub("%([TFRD])", lambda found: _SHORTHANDS[found[1]], text)
    tokens = list(_TOKEN.finditer(expanded))
    letters = {found[1] for found in tokens if found[1]}
    if not letters & set(_DIRECTIVES):
        raise QueryError(f"no time format: '{text}'; valid: auto, %Y-%m-%d %H:%M:%S")
    pattern = "".join(_translated(tokens, place, text) for place in range(len(tokens)))
    return TimeFormat(pattern, "z" in letters, not letters.isdisjoint("Yy"), zone)


def _translated(tokens: list[re.Match[str]], place: int, whole: str) -> str:
    letter, literal, _ = tokens[place].groups()
    if literal is not None:
        return _quoted(_SPACES.sub(" ", literal))
    if letter == "%":
        return _quoted("%")
    if letter in ("a", "A"):
        raise QueryError(
            f"a time format cannot have %{letter}: leave the weekday out of what is parsed "
            f"('{whole}')"
        )
    if letter not in _DIRECTIVES:
        valid = " ".join(f"%{one}" for one in (*_DIRECTIVES, *_SHORTHANDS))
        raise QueryError(f"unknown '%{letter or ''}' in the time format '{whole}'; valid: {valid}")
    made = _DIRECTIVES[letter]
    is_alone = not any(
        0 <= beside < len(tokens) and tokens[beside][1] not in (None, "%")
        for beside in (place - 1, place + 1)
    )
    return made[:1] if letter in _ONE_DIGIT_TOO and is_alone else made


def _quoted(literal: str) -> str:
    return re.sub("[A-Za-z\\[\\]{}#']+", lambda found: _quote(found[0]), literal)


def _quote(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
