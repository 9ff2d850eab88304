"""The result of a measurement."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from broker.protocol.compression import Codec
from pylogctl.perf.document import (
    CONSUME,
    ResultRow,
    consume_csv_07,
    produce_csv_07,
    row_of,
)
from pylogctl.perf.measure import Latencies, Result, Tally


@pytest.fixture
def result() -> Result:
    latencies = Latencies()
    for milliseconds in range(1, 101):
        latencies.add(milliseconds / 1000)
    return Result(Tally(0.0, 1000, 5 << 20, latencies), 1_700_000_000_007, 2.5, 1.25, 99)


def _record(result: Result) -> dict[str, Any]:
    return row_of(ResultRow, result).by_column()


def test_record_has_every_column(result: Result) -> None:
    assert {*_record(result)} == {column.name for column in CONSUME.columns}


def test_record_has_rates_and_percentiles(result: Result) -> None:
    record = _record(result)
    assert (record["msg_per_s"], record["mib_per_s"], record["max_ms"]) == (400, 2, 100)
    assert record["p50_ms"] == pytest.approx(50, rel=0.011)
    assert record["p99_9_ms"] == pytest.approx(100, rel=0.011)


def test_record_when_nothing_was_measured_divides_by_no_zero() -> None:
    record = _record(Result(Tally(), 0, 0.0, 0.0, 0))
    assert (record["msg_per_s"], record["p50_ms"]) == (0, None)


@pytest.mark.parametrize(
    ("log_bytes", "overhead"), [(None, None), ((5 << 20) + 10_000, 10.0), (0, -5242.88)]
)
def test_overhead_is_the_bytes_of_log_beyond_payloads(
    result: Result, log_bytes: int | None, overhead: float | None
) -> None:
    assert replace(result, log_bytes=log_bytes).overhead_bytes == overhead


def test_overhead_of_no_message_is_unknown() -> None:
    nothing = Result(Tally(), 0, 0.0, 0.0, 0, log_bytes=0)
    assert nothing.overhead_bytes is None


@pytest.fixture
def utc() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("utc")
def test_produce_csv_of_07_has_its_columns_and_formats(result: Result) -> None:
    batches = [[b"x" * 10, b"x" * 100], [b""]]
    header, row = produce_csv_07(result, batches, Codec.SNAPPY)
    assert row == (
        "2023-11-14 22:13:20:007, 2023-11-14 22:13:22:507, 2, 100, 2, 5.00, 2.0000, 1000, 400.0000"
    )
    assert len(row.split(", ")) == len(header.split(", "))


@pytest.mark.usefixtures("utc")
def test_consume_csv_of_07_has_its_columns_and_formats(result: Result) -> None:
    header, row = consume_csv_07(result, 1 << 20)
    assert row == (
        "2023-11-14 22:13:20:007, 2023-11-14 22:13:22:507, 1048576, 5.0000, 2.0000, 1000, 400.0000"
    )
    assert len(row.split(", ")) == len(header.split(", "))
