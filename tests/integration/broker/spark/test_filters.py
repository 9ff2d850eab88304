from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from broker.protocol.message_set import build_set
from broker.server.broker import Broker
from broker.spark.batch_reader import rows_of
from broker.spark.planner import plan_read
from broker.spark.ranges import ALL_ROWS, RowFilter
from tests.support.segments import WriteSegments
from tests.support.spark_rows import parse, run, values
from tests.support.spark_session import publish

OFFSET: Any = ("offset",)
TOPIC: Any = ("topic",)
PARTITION: Any = ("partition",)
SIZE = len(build_set([b"abc"]))


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        ([], ALL_ROWS),
        ([EqualTo(TOPIC, "a")], RowFilter(topics=frozenset({"a"}))),
        ([EqualNullSafe(PARTITION, "0-1")], RowFilter(names=frozenset({"0-1"}))),
        ([In(TOPIC, ("a", "b")), EqualTo(TOPIC, "a")], RowFilter(topics=frozenset({"a"}))),
        ([EqualTo(TOPIC, "a"), EqualTo(TOPIC, "b")], RowFilter(topics=frozenset())),
        ([GreaterThanOrEqual(OFFSET, 5), LessThan(OFFSET, 9)], RowFilter(start=5, end=9)),
        ([GreaterThan(OFFSET, 5), LessThanOrEqual(OFFSET, 9)], RowFilter(start=6, end=10)),
        ([GreaterThan(OFFSET, 5), GreaterThan(OFFSET, 7)], RowFilter(start=8)),
        ([EqualTo(OFFSET, 5)], RowFilter(start=5, end=6)),
        ([In(OFFSET, (7, 3))], RowFilter(start=3, end=8)),
    ],
)
def test_filters_when_understood_then_bound_the_rows(
    filters: list[Filter], rows: RowFilter
) -> None:
    assert rows_of(filters) == rows


@pytest.mark.parametrize(
    "one",
    [
        IsNotNull(OFFSET),
        Not(EqualTo(TOPIC, "a")),
        StringStartsWith(TOPIC, "a"),
        EqualTo(("crc",), 5),
        EqualTo(TOPIC, None),
        EqualTo(OFFSET, None),
        GreaterThan(("value",), b"x"),
    ],
)
def test_filter_when_not_understood_then_all_rows_stay(one: Filter) -> None:
    assert rows_of([one]) == ALL_ROWS


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%03d" % number for number in range(first, last)]


@pytest.mark.parametrize(
    ("rows", "first", "last"),
    [
        (RowFilter(start=10 * SIZE), 10, 100),
        (RowFilter(start=10 * SIZE + 1), 11, 100),
        (RowFilter(end=10 * SIZE), 0, 10),
        (RowFilter(end=10 * SIZE + 1), 0, 11),
        (RowFilter(start=10 * SIZE, end=10 * SIZE + 1), 10, 11),
        (RowFilter(start=1000 * SIZE), 100, 100),
        (RowFilter(end=-5), 0, 0),
        (RowFilter(start=20 * SIZE, end=10 * SIZE), 0, 0),
    ],
)
@pytest.mark.parametrize("place", ["broker", "files"])
def test_ranges_when_narrowed_then_have_exactly_the_messages_that_start_inside(
    place: str,
    rows: RowFilter,
    first: int,
    last: int,
    request: pytest.FixtureRequest,
    write_segments: WriteSegments,
) -> None:
    if place == "broker":
        broker: Broker = request.getfixturevalue("running_broker")
        publish(broker, "events", numbered(0, 100))
        options = {"brokers": f"127.0.0.1:{broker.port}", "subscribe": "events"}
    else:
        options = {"path": str(write_segments(numbered(0, 60), numbered(60, 100)))}

    made = plan_read(parse(options), rows)

    assert values(run(made, options)) == numbered(first, last)


def test_partitions_when_others_are_wanted_then_are_not_even_looked_at(
    write_segments: WriteSegments,
) -> None:
    write_segments(numbered(0, 10), directory="events_1")
    options = {"path": str(write_segments(numbered(10, 20), directory="events_2"))}

    made = plan_read(parse(options), RowFilter(names=frozenset({"0-2"})))

    assert [one.partition.name for one in made.ranges] == ["0-2"]
    assert values(run(made, options)) == numbered(10, 20)
