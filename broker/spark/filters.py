"""What Spark's filters say about which ranges a query needs.

Only leaves ranges out: Spark applies every filter again, so that one that is not understood costs
time and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from broker.spark.ranges import ALL_ROWS, RowFilter


def rows_of(filters: Iterable[Filter]) -> RowFilter:
    """Return which messages pass all of the filters, as far as ranges can tell.

    Args:
        filters: on any columns; those on topic, partition and offset count.
    """
    rows = ALL_ROWS
    for one in filters:
        rows = rows.both(_rows_of(one))
    return rows


def _rows_of(one: Filter) -> RowFilter:
    column = getattr(one, "attribute", ())
    if column == ("offset",):
        return _by_offset(one)
    wanted = _wanted(one)
    if wanted is None or column not in (("topic",), ("partition",)):
        return ALL_ROWS
    return RowFilter(topics=wanted) if column == ("topic",) else RowFilter(names=wanted)


def _wanted(one: Filter) -> frozenset[str] | None:
    match one:
        case EqualTo(value=str(value)) | EqualNullSafe(value=str(value)):
            return frozenset({value})
        case In(value=values):
            return frozenset(value for value in values if isinstance(value, str))
    return None


def _by_offset(one: Filter) -> RowFilter:
    match one:
        case EqualTo(value=int(value)) | EqualNullSafe(value=int(value)):
            return RowFilter(start=value, end=value + 1)
        case In(value=values) if values and all(isinstance(value, int) for value in values):
            return RowFilter(start=min(values), end=max(values) + 1)
        case GreaterThan(value=int(value)):
            return RowFilter(start=value + 1)
        case GreaterThanOrEqual(value=int(value)):
            return RowFilter(start=value)
        case LessThan(value=int(value)):
            return RowFilter(end=value)
        case LessThanOrEqual(value=int(value)):
            return RowFilter(end=value + 1)
    return ALL_ROWS
