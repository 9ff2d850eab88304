r"""Patterns that users write: regular expressions of RE2 on UTF-8, everywhere the same.

A search takes time linear in the text, and does not hold the interpreter's lock. Differs from RE2
in `\w` and `\W`, which mean letters, marks and digits of all scripts, and `_`.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, compress, count
from typing import Any, Protocol, cast

from broker.errors import ArgumentError, ConfigError, InvalidPatternError

MANUAL = "pylogctl-patterns(7)"
# Bounds the memory of a pattern, and the time to compile it, up to 40 ms with the interpreter's
# lock held. `\w{64}` fits.
_MAX_BYTES = 4 << 20
_NO_MATCH = -1
_TOGETHER = 256  # payloads that are searched at once
_Buffer = bytes | bytearray | memoryview
_ASSERTIONS = ("^", "$", r"\b", r"\B", r"\A", r"\z")
# options of RE2 that change what a pattern matches, beside the case
_MEANINGS = ("encoding", "posix_syntax", "longest_match", "literal", "never_nl", "dot_nl")
_WORD = r"\pL\pM\pN_"
_LACKS = {
    "(?=": "look-around",
    "(?!": "look-around",
    "(?<": "look-around",
    "(?>": "atomic groups",
    "(?(": "conditions",
    "(?x": "verbose patterns",
    "(?#": "comments",
    "\\Z": "\\Z (write \\z)",
    **{f"\\{digit}": "references to groups" for digit in range(1, 10)},
}
"""What RE2 lacks beside `re`, by how it starts."""

_OUTSIDE = r"""(?P<opaque>\\Q.*?(?:\\E|\Z)|\\[pP](?:\{[^}]*\}|.)|\\x(?:\{[^}]*\}|..)|\\[0-7]{1,3})
    |(?P<escape>\\.)|(?P<many>[*?]|\{\d+(?:,\d*)?\})|(?P<group>\((?:\?[a-zA-Z-]*[:)])?)
    |(?P<bracket>\[\^?\]?)|(?P<operator>[.^$+|)])|(?P<plain>.)"""
_INSIDE = r"(?P<opaque>\[:\^?\w+:\]|\\[pP](?:\{[^}]*\}|.))|(?P<escape>\\.)|(?P<end>\])|(?P<plain>.)"


class Match(Protocol):
    """Where a pattern matches a text, and its groups."""

    def __getitem__(self, group: int | str) -> str | None:
        """Return the text of a group; None if it did not take part."""

    def expand(self, template: str) -> str:
        r"""Return a template with `\1` and `\g<1>` replaced by groups."""


@dataclass(frozen=True)
class Pattern:
    """A pattern for text; `InvalidPatternError` if it is none, or too large."""

    text: str
    ignore_case: bool = False

    def __post_init__(self) -> None:
        _ = self._compiled

    @cached_property
    def _compiled(self) -> Any:
        translated = _Reader(self.text).translated
        return _compile(self.text, translated, ignore_case=self.ignore_case)

    def __reduce__(self) -> tuple[type[Pattern], tuple[str, bool]]:
        return Pattern, (self.text, self.ignore_case)

    @property
    def group_count(self) -> int:
        """Return the number of groups."""
        return int(self._compiled.groups)

    @property
    def group_numbers(self) -> dict[str, int]:
        """Return the numbers of the named groups."""
        return dict(self._compiled.groupindex)

    def search(self, text: str) -> Match | None:
        """Return the first match anywhere in a text."""
        return cast("Match | None", self._compiled.search(text))

    def fullmatch(self, text: str) -> Match | None:
        """Return the match of a whole text."""
        return cast("Match | None", self._compiled.fullmatch(text))

    def replace(self, text: str, template: str, count: int = 0) -> str:
        """Return a text with its first matches replaced, all of them if `count` is 0.

        Raises:
            IndexError: the template names a group that is not there, and there is a match.
        """
        return str(self._compiled.sub(template, text, count))


def from_re2(given: object) -> Pattern | None:
    """Return the pattern of one that `re2.compile` has made; None for anything else.

    `ArgumentError` if an option other than the case would make it another one.
    """
    if "re2" not in sys.modules or not isinstance(given, _binding()._Regexp):
        return None
    options, default = given.options, _binding().Options()
    for name in _MEANINGS:
        if getattr(options, name) != getattr(default, name):
            raise ArgumentError(
                f"a pattern of re2 cannot have the option '{name}' here, only case_sensitive: "
                "write what it means into the text, such as (?s)"
            )
    text = given.pattern if isinstance(given.pattern, str) else given.pattern.decode()
    return Pattern(text, ignore_case=not options.case_sensitive)


class PayloadTest:
    r"""Tells whether a pattern matches anywhere in payloads, or with `invert` whether it does not.

    In a payload that is not UTF-8, a byte of no character matches `\C` alone. Raises
    `InvalidPatternError` for a pattern that is none, or too large.
    """

    def __init__(self, text: str, *, ignore_case: bool = False, invert: bool = False) -> None:
        read = _Reader(text)
        options = {"ignore_case": ignore_case, "never_capture": True}
        # not `search`, which makes an object and takes twice the time
        self._match = _compile(text, read.translated, **options)._regexp.Match
        self._anchor = _binding()._Anchor.UNANCHORED
        self._match_any = self._match
        if read.weakened != read.translated:
            self._match_any = _compile(text, read.weakened, **options)._regexp.Match
        self._literal = b"" if ignore_case else read.literal.encode()
        self._is_literal = read.literal == text and not ignore_case
        self._invert = invert

    def __call__(self, payload: _Buffer) -> bool:
        """Test one payload."""
        if type(payload) is not bytes:
            payload = bytes(payload)
        return self._is_match(payload) is not self._invert

    def _is_match(self, payload: bytes) -> bool:
        if self._is_literal or self._literal not in payload:
            return self._literal in payload
        found: int = self._match(self._anchor, payload, 0, len(payload))[0][0]
        return found != _NO_MATCH

    def may_be_in(self, data: bytes) -> bool:
        """Return whether a part for which this is true may be among these bytes."""
        if self._invert:
            return True
        if self._literal or self._is_literal:
            return self._literal in data
        found: int = self._match_any(self._anchor, data, 0, len(data))[0][0]
        return found != _NO_MATCH

    def select(self, payloads: Sequence[bytes]) -> list[bool]:
        """Test many payloads, in less time than one by one."""
        literal, invert = self._literal, self._invert
        if literal:
            found = [literal in one for one in payloads]
            if not self._is_literal:
                for index in compress(count(), found):
                    found[index] = self._is_match(payloads[index])
        else:
            found = []
            for start in range(0, len(payloads), _TOGETHER):
                found += self._search(payloads[start : start + _TOGETHER])
        return [not one for one in found] if invert else found

    def select_any(self, *columns: Sequence[bytes | None]) -> list[bool]:
        """Test messages of several parts: each matches where one of its parts does, never None."""
        combine = all if self._invert else any
        tested = [
            [
                self._invert if part is None else is_wanted
                for part, is_wanted in zip(
                    parts, self.select([one or b"" for one in parts]), strict=True
                )
            ]
            for parts in columns
        ]
        return [combine(flags) for flags in zip(*tested, strict=True)]

    def select_between(
        self, data: bytes, bounds: Sequence[int], start_of: Callable[[int], int]
    ) -> list[bool]:
        """Test payloads where they stand in a buffer: fast, if few match.

        Args:
            data: entries, each with a payload at its end.
            bounds: the starts of the entries, and the end of the last.
            start_of: returns where the payload of an entry starts.
        """
        count, literal = len(bounds) - 1, self._literal
        found = [self._is_literal and not literal] * count
        is_sure = self._is_literal or (self._match_any is self._match and not literal)
        index = 0
        while index < count and not found[index]:
            position = bounds[index]
            if literal:
                start = data.find(literal, position)
                end = start + len(literal)
            else:
                start, end = self._match_any(self._anchor, data, position, len(data))[0]
            if start == _NO_MATCH:
                break
            index = bisect_right(bounds, start, index) - 1
            first, stop = start_of(bounds[index]), bounds[index + 1]
            is_inside = first <= start and end <= stop
            # what is found may be of several entries, or of a header, or by a weaker pattern
            found[index] = (is_sure and is_inside) or self._is_match(data[first:stop])
            index += 1
            if end > stop and not literal:  # such long searches must not add up
                for at in range(index, count):
                    found[at] = self._is_match(data[start_of(bounds[at]) : bounds[at + 1]])
                break
        return [not one for one in found] if self._invert else found

    def _search(self, payloads: Sequence[bytes]) -> list[bool]:
        """Search payloads together: where no match starts in the joined text, there is none."""
        text = b"\n".join(payloads)
        ends = list(accumulate(map(len, payloads), lambda end, size: end + 1 + size))
        found = [False] * len(payloads)
        index = position = 0
        while index < len(payloads):
            start, end = self._match_any(self._anchor, text, position, len(text))[0]
            if start == _NO_MATCH:
                break
            index = bisect_left(ends, start)
            if end > ends[index]:  # such long searches must not add up
                found[index:] = map(self._is_match, payloads[index:])
                break
            # `^` and the like mean something else there
            found[index] = self._match_any is self._match or self._is_match(payloads[index])
            position = ends[index] + 1
            index += 1
        return found


def _binding() -> Any:
    """Return the module that binds RE2, which Spark's executors need for patterns alone."""
    try:
        import re2
    except ImportError as error:
        raise ConfigError(
            f"regular expressions need the package google-re2 ({error})",
            hints=[
                "try: pip install google-re2; it has no wheels for musl, as of Alpine: there it "
                "has to be built, or use a distribution with glibc"
            ],
        ) from error
    return re2


def _compile(text: str, translated: str, *, ignore_case: bool, never_capture: bool = False) -> Any:
    re2 = _binding()
    options = re2.Options()
    options.max_mem = _MAX_BYTES
    options.case_sensitive = not ignore_case
    options.never_capture = never_capture
    options.log_errors = False  # it would write to standard error
    try:
        return re2._Regexp(translated, options)  # not `re2.compile`, which keeps 128 of them
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace")
    except UnicodeEncodeError:
        reason = "it is not UTF-8"
    lack = _LACKS.get(reason.rpartition(": ")[2][:3]) or _LACKS.get(reason[-2:])
    if lack is not None:
        reason += f"; RE2 has no {lack}"
    raise InvalidPatternError(f"'{text}' is no regular expression of RE2: {reason}; see {MANUAL}")


@cache
def _syntax() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what reads a pattern outside and inside of brackets; few commands need it."""
    return re.compile(_OUTSIDE, re.DOTALL | re.VERBOSE), re.compile(_INSIDE, re.DOTALL)


class _Reader:
    """What is read of a pattern, valid or not.

    Attributes:
        translated: the same for RE2.
        weakened: the same without what depends on the start and end of a text, such as `^`; matches
            wherever the pattern does.
        literal: the longest text that each match has, as far as that is easy to tell; the whole
            pattern if it has no operators.
    """

    def __init__(self, text: str) -> None:
        self.literal = ""
        self._run = ""
        outside, inside = _syntax()
        parts, weakened = [], []
        position = depth = 0
        is_inside = has_choice = has_flags = False
        while position < len(text):
            found = (inside if is_inside else outside).match(text, position)
            assert found is not None  # the last alternative matches anything
            position, kind, part = found.end(), found.lastgroup, found[0]
            parts.append(_word(part, is_inside=is_inside) if kind == "escape" else part)
            weakened.append("(?:)" if part in _ASSERTIONS and not is_inside else parts[-1])
            if kind == "bracket":
                is_inside = True
            elif kind == "end":
                is_inside = False
            if kind == "group":
                depth += not part.endswith(")")
                has_flags |= any(map(str.isalpha, part))
            depth -= part == ")"
            has_choice |= part == "|" and depth <= 0
            if kind == "many":
                self._run = self._run[:-1]
            is_literal = kind == "plain" or (kind == "escape" and not part[1:].isalnum())
            if is_literal and not is_inside and depth <= 0:
                self._run += part[-1]
            else:
                self._end_run()
        self._end_run()
        if has_choice or has_flags:  # such as (?i)
            self.literal = ""
        self.translated, self.weakened = "".join(parts), "".join(weakened)

    def _end_run(self) -> None:
        if len(self._run) > len(self.literal):
            self.literal = self._run
        self._run = ""


def _word(escape: str, *, is_inside: bool) -> str:
    r"""Return an escape for RE2, whose `\w` means ASCII alone."""
    if escape == "\\w":
        return _WORD if is_inside else f"[{_WORD}]"
    if escape != "\\W":
        return escape
    if is_inside:
        raise InvalidPatternError(f"\\W cannot stand inside of []; see {MANUAL}")
    return f"[^{_WORD}]"
