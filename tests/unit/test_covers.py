"""The lists of failures, ways in and promises name tests and simulated faults that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TEXTS = {
    "S": (REPOSITORY / "docs/replication-failures.md").read_text(encoding="utf-8"),
    "W": (REPOSITORY / "docs/ways-in.md").read_text(encoding="utf-8"),
    "P": (REPOSITORY / "docs/promises.md").read_text(encoding="utf-8"),
}
NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+)::(\w+)`", "".join(TEXTS.values()))))


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[name for _, name in NAMED])
def test_cover_when_named_then_exists(path: str, name: str) -> None:
    source = (REPOSITORY / path).read_text(encoding="utf-8")
    assert re.search(rf"^\s*def {name}\(", source, re.MULTILINE)


@pytest.mark.parametrize(("letter", "count"), [("S", 74), ("W", 55)])
def test_sections_when_listed_then_each_has_a_cover_or_a_reason(letter: str, count: int) -> None:
    sections = re.split(rf"^## {letter}(\d+): .*\n", TEXTS[letter], flags=re.MULTILINE)[1:]
    numbers, bodies = sections[::2], sections[1::2]
    assert list(map(int, numbers)) == list(range(1, len(numbers) + 1))
    assert len(numbers) >= count
    assert [number for number, body in zip(numbers, bodies, strict=True) if not body.strip()] == []
