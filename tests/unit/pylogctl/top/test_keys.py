"""Keys of `pylogctl top`, and what they change."""

from __future__ import annotations

import pytest

from pylogctl.top.keys import Action, Choices, KeyReader
from pylogctl.top.views import ViewPlace

NAMES = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"jk", ["j", "k"]),
        (b"\x1b[A\x1bOB", ["up", "down"]),
        (b"\x1b[5~\x1b[6~\x1b[1~\x1bOF", ["pgup", "pgdn", "home", "end"]),
        (b"\r\x7f", ["enter", "backspace"]),
        (b"\x1b[15~q", ["q"]),  # F5 means nothing
        (b"\x1bq", ["esc", "q"]),
        ("注".encode(), ["注"]),
    ],
)
def test_reader_when_fed_in_any_parts_then_finds_the_keys(data: bytes, keys: list[str]) -> None:
    assert KeyReader().feed(data) == keys
    reader = KeyReader()
    assert [key for byte in data for key in reader.feed(bytes([byte]))] == keys


def test_reader_when_nothing_follows_an_escape_then_it_is_esc() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    assert reader.is_waiting
    assert reader.flush() == ["esc"]
    assert not reader.is_waiting


def pressed(*keys: str, choices: Choices | None = None) -> Choices:
    choices = choices or Choices([ViewPlace("topics", sort="-bytes_in")])
    for key in keys:
        choices.press(key, NAMES, 2)
    return choices


def test_selection_when_the_order_changes_then_it_stays_with_the_name() -> None:
    choices = pressed("down", "j")
    assert choices.place.selected == "c"
    choices.press("up", ["d", "c", "b", "a"], 2)
    assert choices.place.selected == "d"


@pytest.mark.parametrize(
    ("keys", "selected"),
    [
        (["end"], "d"),
        (["end", "home"], "a"),
        (["pgdn"], "c"),
        (["pgdn", "pgdn", "pgdn"], "d"),
        (["end", "pgup", "k"], "a"),
        (["up"], "a"),
    ],
)
def test_selection_when_moved_then_stays_within_the_rows(keys: list[str], selected: str) -> None:
    assert pressed(*keys).place.selected == selected


def test_selection_when_its_row_is_gone_then_goes_on_from_where_it_was() -> None:
    choices = pressed("down", "down")
    choices.press("down", ["a", "b", "d"], 2)
    assert choices.place.selected == "d"


def test_enter_when_pressed_then_goes_into_the_row_and_esc_back_to_it() -> None:
    choices = pressed("down", "enter")
    assert (choices.place.view, choices.place.target) == ("partitions", "b")
    pressed("down", "enter", choices=choices)
    assert (choices.place.view, choices.place.target) == ("replicas", "b/b")
    pressed("esc", "esc", choices=choices)
    assert (choices.place.view, choices.place.selected) == ("topics", "b")


def test_views_when_left_then_are_found_as_they_were() -> None:
    choices = pressed("/", "x", "enter", "R", "g", "t")
    assert choices.place == ViewPlace("topics", sort="bytes_in", filter="x")


def test_filter_when_typed_then_holds_after_enter_and_not_after_esc() -> None:
    choices = pressed("/", "o", "q", "backspace", "Q", "enter")
    assert choices.place.filter == "oQ"
    pressed("/", "z", "esc", choices=choices)
    assert choices.place.filter == "oQ"
    pressed("esc", choices=choices)
    assert choices.place.filter == ""


def test_filter_when_no_regular_expression_then_says_so_and_keeps_the_old_one() -> None:
    choices = pressed("/", "~", "(", "enter")
    assert "'(' is no regular expression" in choices.message
    assert choices.place.filter == ""


def test_sort_when_moved_then_takes_the_column_beside() -> None:
    assert pressed(">").place.sort == "-bytes_out"
    assert pressed("<", "R").place.sort == "messages_in"
    assert pressed(">", choices=Choices([ViewPlace("overview")])).place.sort == "broker"


def test_interval_when_changed_then_stays_between_half_a_second_and_a_minute() -> None:
    assert pressed("-", "-", "-", "-").interval_s == 0.5
    assert pressed(*"+" * 9).interval_s == 60


def test_help_when_shown_then_any_key_ends_it() -> None:
    choices = pressed("?")
    assert choices.shows_help
    assert choices.press("g", NAMES, 2) is Action.NONE
    assert choices.place.view == "topics"
    assert choices.press("Q", NAMES, 2) is Action.QUIT
