"""Tables on a terminal: what is shortened, what is left out, and what stands above them."""

from __future__ import annotations

import re
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from broker.admin.lag import LagStatus
from broker.admin.rebalance import ProblemKind
from broker.tools.audit import Judgement
from broker.zk.session import SessionState
from pylogctl.cli.columns import RARE, Column, ColumnKind, Fit
from pylogctl.cli.escapes import one_line
from pylogctl.cli.layout import _COLORS, Table, Terminal
from pylogctl.doctor.checks import Verdict

LAG = (
    Column("group", "its name"),
    Column("topic", "its topic"),
    Column("partition", "HOME-INDEX", noted_fit=Fit.WHOLE),
    Column("offset", "where it is", ColumnKind.INTEGER),
    Column("end", "of the log", ColumnKind.INTEGER),
    Column("lag_bytes", "behind", ColumnKind.BYTES),
    Column("status", "its state", noted_fit=Fit.STATE),
    Column("owner", "the member", rank=2),
    Column("client", "its program", rank=3),
)
ROWS = [
    [
        "billing",
        "a-topic-with-a-name-of-forty-characters-x",
        f"0-{number}",
        f"{1234567890123 + number}",
        "1234567899999",
        "9.6 KiB",
        "LAG" if number else "OK",
        f"billing_host-17.example.org-1763625600250-9a3e1b2c-{number}",
        "-",
    ]
    for number in range(3)
]


def screen(
    rows: list[list[str]], width: int, *, columns: tuple[Column, ...] = LAG, color: bool = False
) -> list[str]:
    table = Table(columns, Terminal(width, has_color=color))
    lines = list(table.add(rows, are_all=True))
    return [*lines, *table.notes("--wide shows all, --columns chooses")]


def test_table_when_it_fits_then_is_whole_but_for_what_is_the_same_or_empty() -> None:
    lines = screen(ROWS, 140)
    assert lines[0] == "GROUP billing  TOPIC a-topic-with-a-name-of-forty-characters-x"
    assert lines[1].split() == [
        *("PARTITION", "OFFSET", "END", "LAG-BYTES", "STATUS", "OWNER"),
    ]
    assert [line.split()[-1] for line in lines[3:]] == [row[-2] for row in ROWS]


@pytest.mark.parametrize("width", [80, 100, 130])
def test_table_of_a_width_when_it_is_too_wide_then_fits_and_folds_nothing(width: int) -> None:
    lines = screen(ROWS, width)

    assert all(cell_len(line) <= width for line in lines if not line.startswith("not shown"))
    assert "1234567890125" in "\n".join(lines)
    assert "END 1234567899999" in "\n".join(lines) or "1234567899999" in lines[-1]
    assert sum(line.startswith("0-") for line in lines) == 3


def test_table_when_columns_do_not_fit_then_leaves_out_those_of_the_highest_rank_and_says_so() -> (
    None
):
    lines = screen(ROWS, 45)

    assert lines[-2:] == ["not shown: owner; --wide shows all, --columns", "chooses"]
    assert re.search("PARTITION +OFFSET", "\n".join(lines))


@pytest.mark.parametrize(("width", "path_width"), [(70, 43), (60, 36), (45, 43)])
def test_column_when_it_is_rarely_asked_for_then_is_left_out_before_names_are_cut_short(
    width: int, path_width: int
) -> None:
    columns = (Column("path", ""), Column("at", "", ColumnKind.TIME, rank=RARE))
    rows = [["/a" * 21 + f"{n}", "2026-11-26T01:34:25Z" + "." * n] for n in range(3)]

    rule = screen(rows, width, columns=columns)[1]

    assert len(rule.split()[0]) == path_width


def test_list_when_it_is_too_long_then_is_folded_between_its_items() -> None:
    columns = (Column("name", ""), Column("brokers", "", noted_fit=Fit.WRAP))
    rows = [["one", ",".join(map(str, range(100, 120)))], ["two", "broker-17.example.org"]]

    folded = screen(rows, 30, columns=columns)

    assert re.findall(r"\d+(?=,|$)", "\n".join(folded[2:-1])) == rows[0][1].split(",")
    assert folded[-1].endswith("broker-17.example.org")


@given(st.text(max_size=80), st.integers(20, 40))
def test_text_given_any_then_is_folded_to_the_width(text: str, width: int) -> None:
    columns = (Column("a", ""), Column("b", "", noted_fit=Fit.WRAP))
    rows = [["x", one_line(text)], ["y", ""]]

    assert all(cell_len(line) <= width for line in screen(rows, width, columns=columns))


def test_name_when_it_is_too_long_then_loses_its_middle() -> None:
    owners = [line.split()[-1] for line in screen(ROWS, 80) if line.startswith("0-")]

    assert [owner[0] + owner[-3:] for owner in owners] == ["bc-0", "bc-1", "bc-2"]
    assert all("…" in owner for owner in owners)


def test_sentence_when_it_is_too_long_then_goes_on_below() -> None:
    columns = (Column("name", ""), Column("why", "", noted_fit=Fit.WRAP))
    rows = [["one", "a sentence of some words that is long"], ["two", "short"]]

    lines = screen(rows, 30, columns=columns)

    assert lines[2:] == ["one   a sentence of some words", "      that is long", "two   short"]


def test_measure_when_it_is_the_same_in_all_rows_then_stays_in_its_column() -> None:
    columns = (Column("topic", ""), Column("bytes", "", ColumnKind.BYTES))

    assert screen([["a", "1 B"], ["b", "1 B"]], 80, columns=columns)[0] == "TOPIC  BYTES"


def test_text_when_one_column_would_remain_then_the_first_stays_beside_it() -> None:
    columns = (Column("topic", ""), Column("partition", ""), Column("changed", ""))

    assert screen([["t", "0-0", "no"], ["t", "1-0", "no"]], 80, columns=columns) == [
        "CHANGED no",
        "TOPIC  PARTITION",
        "─────  ─────────",
        "t      0-0",
        "t      1-0",
    ]


@pytest.mark.parametrize("width", [20, 80])
def test_rows_when_all_are_the_same_then_none_of_their_columns_stand_above(width: int) -> None:
    columns = (Column("owner", ""), Column("streams", "", ColumnKind.INTEGER), Column("state", ""))

    lines = screen([["host-1", "4", "idle"]] * 2, width, columns=columns)

    assert lines[0].split()[:2] == ["OWNER", "STREAMS"]
    assert [line.split()[:2] for line in lines[2:4]] == [["host-1", "4"]] * 2


def test_state_when_colour_is_wanted_then_has_that_of_its_meaning() -> None:
    text = "\n".join(screen(ROWS, 130, color=True))

    assert "\x1b[32mOK" in text
    assert "\x1b[33mLAG" in text
    assert "\x1b[" not in "\n".join(screen(ROWS, 130))


@pytest.mark.parametrize(
    "states",
    [LagStatus, ProblemKind, Judgement, Verdict, SessionState],
    ids=lambda one: one.__name__,
)
def test_state_has_a_colour_whatever_it_is(states: type[Enum]) -> None:
    assert [one for one in states if str(one.value).lower() not in _COLORS] == []


def test_row_when_it_is_alone_then_is_shown_as_names_and_values() -> None:
    lines = list(Table(LAG, Terminal(80)).add(ROWS[:1], are_all=True))
    assert lines[:2] == ["GROUP      billing", f"TOPIC      {ROWS[0][1]}"]
    assert not any(line.startswith("CLIENT") for line in lines)


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z", "M")), max_size=60)


@given(
    rows=st.integers(1, 6).flatmap(
        lambda count: st.lists(
            st.lists(CELLS, min_size=count, max_size=count), min_size=1, max_size=5
        )
    ),
    width=st.integers(20, 160),
    kinds=st.lists(st.sampled_from(ColumnKind), min_size=6, max_size=6),
)
def test_table_given_any_text_then_each_column_is_kept_common_empty_or_named(
    rows: list[list[str]], width: int, kinds: list[ColumnKind]
) -> None:
    columns = tuple(Column(f"c{place}", "", kinds[place]) for place in range(len(rows[0])))
    table = Table(columns, Terminal(width))
    lines = list(table.add(rows, are_all=True))

    shown = {columns[place].name for place in table.kept} | set(table.left_out)
    common = {column.name for column, _ in table.common}
    for place, column in enumerate(columns):
        is_empty = {row[place] for row in rows} <= {"-", ""}
        assert column.name in shown or column.name in common or is_empty
    if len(table.kept) > 1 and not table.is_record(rows):
        assert all(cell_len(line) <= width for line in lines)
