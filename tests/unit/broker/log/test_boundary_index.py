from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.log.segment import SPACING_BYTES, BoundaryIndex


def test_floor_when_new_then_zero() -> None:
    assert BoundaryIndex().floor(5 * SPACING_BYTES) == 0


def test_append_when_close_to_the_last_then_left_out() -> None:
    index = BoundaryIndex()
    index.append(SPACING_BYTES - 1)
    assert len(index) == 1


@given(st.lists(st.integers(0, 20 * SPACING_BYTES)), st.integers(0, 20 * SPACING_BYTES))
def test_floor_when_positions_inserted_then_nearest_kept_one_at_or_below(
    positions: list[int], target: int
) -> None:
    index = BoundaryIndex()
    kept = [0]
    for position in positions:
        index.insert(position)
        if all(abs(position - known) >= SPACING_BYTES for known in kept):
            kept.append(position)
    assert len(index) == len(kept)
    assert index.floor(target) == max(known for known in kept if known <= target)
