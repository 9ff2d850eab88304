"""The sequences that `audit gaps` has found, in any order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pylogctl.audit.gaps import Sequences


@given(st.lists(st.integers(0, 40), min_size=1))
def test_sequences_when_added_in_any_order_then_missing_and_repeated_are_counted(
    numbers: list[int],
) -> None:
    sequences = Sequences()
    for number in numbers:
        sequences.add(number)
    row = sequences.row("t", "h", 0x1F)

    lacking = sorted({*range(min(numbers), max(numbers))} - {*numbers})
    assert (row.first, row.last, row.messages) == (min(numbers), max(numbers), len(numbers))
    assert row.missing == len(lacking)
    assert row.repeated == sum(count - 1 for count in Counter(numbers).values())
    assert row.producer == "0000001f"
    assert (row.gap or "").split("..")[0] == (str(lacking[0]) if lacking else "")
