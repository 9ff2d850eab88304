"""Classes of rows as the columns of a document."""

from __future__ import annotations

import io
from typing import Annotated

import pytest

from pylogctl.cli.columns import (
    HIDDEN,
    Bytes,
    Column,
    ColumnKind,
    Document,
    Flag,
    Millis,
    Row,
    Text,
)
from pylogctl.cli.environment import Environment, SharedOptions, Streams
from pylogctl.cli.render import render


class Where(Row):
    topic: Annotated[str, "name of the topic"]
    broker: Annotated[int, "id of the broker", HIDDEN] = 0


class Thing(Row):
    where: Where
    size: Annotated[Bytes, "its size"] = None
    seen: Annotated[Millis, "when"] = None
    alive: Annotated[Flag, "whether"] = None
    tags: Annotated[tuple[str, ...], "words"] = ()
    note: Annotated[Text, "a remark", HIDDEN] = None


THINGS = Document("thing.list/1", Thing, "no things")


def _rendered(document: Document, rows: list[Thing], output: str) -> str:
    stdout = io.BytesIO()
    streams = Streams(None, stdout, io.StringIO(), stdout_is_tty=False, encoding="utf-8")
    render(Environment(streams, {}, SharedOptions(output=output)), document, rows)  # type: ignore[arg-type]
    return stdout.getvalue().decode()


def test_columns_of_rows_are_their_fields_and_those_of_rows_within() -> None:
    assert THINGS.columns == (
        Column("topic", "name of the topic", values=str),
        Column("broker", "id of the broker", shown=False, values=int),
        Column("size", "its size", ColumnKind.BYTES, values=int | None),
        Column("seen", "when", ColumnKind.TIME, values=int | None),
        Column("alive", "whether", ColumnKind.BOOLEAN, values=bool | None),
        Column("tags", "words", values=tuple[str, ...]),
        Column("note", "a remark", shown=False, values=str | None),
    )


@pytest.mark.parametrize("output", ["json", "jsonl", "csv", "tsv", "plain", "table", "markdown"])
def test_rows_are_written_as_mappings_with_the_same_values(output: str) -> None:
    rows = [Thing(Where("t", 3), 2048, 0, True, ("a", "b")), Thing(Where("u"))]
    same = [
        {"topic": "t", "broker": 3, "size": 2048, "seen": 0, "alive": True, "tags": ["a", "b"]},
        {"topic": "u", "broker": 0, "tags": []},
    ]
    assert _rendered(THINGS, rows, output) == _rendered(THINGS, same, output)  # type: ignore[arg-type]


class Other(Row):
    name: Annotated[str, "what it is called"]
    where: Annotated[Where, HIDDEN] = Where("t")


def test_columns_of_a_hidden_row_are_hidden_until_they_are_shown() -> None:
    others = Document("other.list/1", Other, "no others")
    assert [column.shown for column in others.columns] == [True, False, False]
    assert [column.shown for column in others.showing("topic").columns] == [True, True, False]


def test_a_document_without_some_columns_has_the_others() -> None:
    names = [column.name for column in THINGS.without("size", "tags").columns]
    assert names == ["topic", "broker", "seen", "alive", "note"]


def test_showing_columns_adds_them_and_leaves_the_others() -> None:
    shown = [column.name for column in THINGS.showing("note").columns if column.shown]
    assert shown == ["topic", "size", "seen", "alive", "tags", "note"]
