"""Patterns with texts that they match and do not match: the same for every reader of patterns."""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """A pattern, a text in which it is found, and one in which it is not."""

    pattern: str
    found_in: str
    not_in: str


EXAMPLES = (
    Example("Gr.ße", "die Größe", "die Grße"),
    Example("[äöü]", "Größe", "Straße"),
    Example(r"^\w+$", "Größe", "Größe!"),
    Example(r"^[\w-]+$", "Größen-Wahn", "Größe n"),
    Example(r"^\W+$", "!?", "ß"),
    Example("^.$", "ß", "ab"),
    Example("(?i)ÄRGER", "Ärger", "Arger"),
    Example(r"\p{Cyrillic}+", "журнал", "journal"),
    Example(r"id=\d{3}\b", "id=123 x", "id=1234 x"),
    Example("ERROR|FATAL", "a FATAL b", "a WARN b"),
    Example("(?P<first_name>[A-Z]+)x", "ABx", "abx"),
    Example(r"a\.b", "a.b", "aab"),
    Example("ab{2,3}c", "abbc", "abc"),
    Example("x?yz*", "y", "xz"),
    Example("", "anything", ""),
    Example("(a+)+$", "b" + "a" * 5000, "a" * 5000 + "!"),
)
"""`not_in` of the empty pattern, which matches all, is left out by readers."""

REFUSED = ("(", "(?=a)", "(?<!a)b", r"(a)\1", "a**", "[z-a]", r"[\W]", r"\w{1000}", "x{1001}")
"""Patterns that every reader refuses."""

RAW_EXAMPLES = (
    ("ERROR", b"\xff\xfe ERROR \xc3", b"\xff\xfe ERR \xc3OR"),
    (r"a\C", b"a\xff", b"\xffa"),
    ("^a.c$", b"abc", b"a\xffc"),
    ("ß", "ß".encode(), "ß".encode("latin-1")),
)
"""Patterns with payloads that are not UTF-8: found in the first, not in the second."""
