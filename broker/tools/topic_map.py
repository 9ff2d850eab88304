"""What a topic is called in another cluster: substitutions on its name, as sed writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from broker.errors import ConfigError
from broker.topic import validate_topic_name

_UNESCAPED_AMPERSAND = re.compile(r"(\\.)|&")


class _Substitution(NamedTuple):
    pattern: re.Pattern[str]
    replacement: str
    limit: int


class TopicMap:
    r"""Renames topics.

    Args:
        texts: substitutions such as `s/^/a./`, applied one after another. Any character may stand
            for the slash. `&` is what was matched, `\1` a group; a `g` at the end replaces every
            match, an `i` ignores case.

    Raises:
        ConfigError: one is malformed.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._steps: Sequence[_Substitution] = [_parse(text) for text in texts]

    def __call__(self, topic: str) -> str:
        """Return the new name of a topic.

        Raises:
            InvalidTopicError: no topic can have it.
        """
        for step in self._steps:
            topic = step.pattern.sub(step.replacement, topic, count=step.limit)
        validate_topic_name(topic)
        return topic


def _parse(text: str) -> _Substitution:
    parts = _split(text)
    if len(parts) != 4 or parts[0] != "s" or set(parts[3]) - set("gi"):
        raise ConfigError(f"not a substitution: '{text}'; valid: s/^/a./, s/old/new/g")
    _, pattern_text, replacement, flags = parts
    replacement = _UNESCAPED_AMPERSAND.sub(_python_form, replacement)
    try:
        pattern = re.compile(pattern_text, re.IGNORECASE if "i" in flags else 0)
        pattern.sub(replacement, "")  # a reference to a group that is not there fails here
    except (re.error, IndexError) as error:
        raise ConfigError(f"illegal substitution '{text}': {error}") from error
    return _Substitution(pattern, replacement, 0 if "g" in flags else 1)


def _python_form(match: re.Match[str]) -> str:
    if match[1] is None:
        return r"\g<0>"
    return "&" if match[1] == r"\&" else match[1]


def _split(text: str) -> list[str]:
    r"""Split at the character after the `s`, where no backslash stands before it."""
    delimiter = text[1:2]
    if not delimiter or delimiter.isalnum() or delimiter == "\\":
        return []
    parts = re.split(rf"(?<!\\){re.escape(delimiter)}", text)
    return [part.replace(f"\\{delimiter}", delimiter) for part in parts]
