"""The screens of `pylogctl top`, from what is known to lines of text.

What each looks like is kept in `screens/`; `python -m tests.unit.pylogctl.top.test_screen` writes
them anew: read the difference before it is committed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from pylogctl.top.keys import Choices
from pylogctl.top.screen import Size, Style, screen
from pylogctl.top.state import TopState
from pylogctl.top.views import VIEWS, ViewPlace
from tests.support.command_line import REPOSITORY
from tests.unit.pylogctl.top.top_state import now, watched

SCREENS = Path(__file__).parent / "screens"
SIZES = (Size(80, 24), Size(60, 15), Size(200, 60))
TARGETS = {
    "broker": "1",
    "partitions": "orders",
    "replicas": "orders/1-0",
    "group": "billing",
    "request": "produce",
}
PLAIN = Style()
LOOK = 4  # the last one of `watched`


def drawn(
    view: str, size: Size, style: Style = PLAIN, *, state: TopState | None = None
) -> list[str]:
    place = ViewPlace(view, TARGETS.get(view, ""), VIEWS[view].sort)
    return screen(state or watched(), Choices([place]), size, now(LOOK), style, name="dev")


def golden(view: str) -> str:
    """Return a view in all sizes, as its file has it."""
    parts = []
    for size in SIZES:
        parts += [f"{f' {size.width} x {size.height} ':=^{size.width}}", *drawn(view, size), ""]
    return "\n".join(parts)


@pytest.mark.parametrize("view", VIEWS)
def test_view_looks_as_it_did(view: str) -> None:
    assert golden(view) == (SCREENS / f"{view}.txt").read_text()


@pytest.mark.parametrize("size", [*SIZES, Size(20, 8), Size(40, 10)])
@pytest.mark.parametrize("view", VIEWS)
def test_screen_when_drawn_then_each_line_fits_and_the_last_has_the_keys(
    view: str, size: Size
) -> None:
    lines = drawn(view, size)
    assert len(lines) == size.height
    assert max(map(cell_len, lines)) <= size.width
    assert lines[-1].startswith("? help")
    colored = drawn(view, size, Style(has_color=True))
    assert [re.sub(r"\x1b\[\d+m", "", one).rstrip() for one in colored] == [
        one.rstrip() for one in lines
    ]


def test_screen_when_a_broker_is_silent_then_its_values_are_dim_and_have_an_age() -> None:
    row = next(one for one in drawn("brokers", SIZES[0], Style(has_color=True)) if ":9092" in one)
    assert "\x1b[2m" not in row
    rows = drawn("brokers", SIZES[0], Style(has_color=True))
    silent = next(one for one in rows if "DOWN" in one and "10.0.0.3" in one)
    assert silent.startswith("\x1b[2m")
    assert re.search(r"DOWN.*\s4s\s*", re.sub(r"\x1b\[\d+m", "", silent))


def test_screen_when_there_was_one_look_then_rates_are_unknown_and_not_zero() -> None:
    lines = drawn("overview", SIZES[0], state=watched(silent=(), looks=1))
    assert "in - msg/s -/s" in lines[2]


def test_screen_without_unicode_then_all_of_it_is_ascii() -> None:
    for view in VIEWS:
        text = "\n".join(drawn(view, SIZES[2], Style(has_unicode=False)))
        assert text.replace("注文", "").isascii(), view


def test_screen_when_rows_do_not_fit_then_the_selected_one_is_among_those_shown() -> None:
    size = Size(80, 9)
    place = ViewPlace("topics", selected="注文", sort="topic")
    lines = screen(watched(), Choices([place]), size, now(LOOK), PLAIN)
    assert any(line.startswith(">注文") for line in lines)
    assert lines[-2].startswith("2-4 of 4")


def test_screen_in_the_documentation_is_one_that_is_drawn() -> None:
    text = (REPOSITORY / "docs/operations/top.md").read_text()
    assert "\n".join(drawn("overview", SIZES[0])) in text


def _write_anew() -> None:
    SCREENS.mkdir(exist_ok=True)
    for path in SCREENS.iterdir():
        path.unlink()
    for view in VIEWS:
        (SCREENS / f"{view}.txt").write_text(golden(view))


if __name__ == "__main__":
    _write_anew()
