"""The list of failures names tests and simulated faults that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TEXT = (REPOSITORY / "docs/replication-failures.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+)::(\w+)`", TEXT)))


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[name for _, name in NAMED])
def test_cover_when_named_then_exists(path: str, name: str) -> None:
    source = (REPOSITORY / path).read_text(encoding="utf-8")
    assert re.search(rf"^\s*def {name}\(", source, re.MULTILINE)


def test_failures_when_listed_then_each_has_a_cover_or_a_reason() -> None:
    sections = re.split(r"^## S(\d+): .*\n", TEXT, flags=re.MULTILINE)[1:]
    numbers, bodies = sections[::2], sections[1::2]
    assert list(map(int, numbers)) == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 54
    assert [number for number, body in zip(numbers, bodies, strict=True) if not body.strip()] == []
