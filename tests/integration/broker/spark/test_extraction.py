"""Keys and times out of payloads, and formats of times."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from broker.errors import QueryError
from broker.spark.extraction import EventFields, events, parse_time_format
from broker.tools.audit import json_time
from tests.support.pattern_examples import EXAMPLES, REFUSED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOMENT_MS = 1_133_671_664_000  # 2005-12-04T04:47:44Z


def found(
    spark: SparkSession, payloads: list[bytes], fields: EventFields
) -> list[tuple[object, ...]]:
    """Return key, time in milliseconds, and text."""
    messages = spark.createDataFrame([(bytearray(one),) for one in payloads], "value binary")
    rows = events(messages, fields).selectExpr("key", "unix_millis(time)", "text").collect()
    return [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%Y-%m-%d %H:%M:%S", "yyyy-M-d H:m:s"),
        ("%Y%m%dT%H%M%S", "yyyyMMdd'T'HHmmss"),
        ("%d/%b/%Y:%H:%M:%S %z", "d/MMM/yyyy:H:m:s [XXX][XX][X]"),
        ("%F %T,%f", "yyyy-M-d H:m:s,SSSSSS"),
        ("%b  %e o'clock %I%p %%", "MMM d 'o''clock' hha '%'".replace("'%'", "%")),
    ],
)
def test_time_format_when_known_then_is_translated(text: str, expected: str) -> None:
    assert parse_time_format(text).pattern == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%a %b %d", "leave the weekday out"),
        ("%Y-%Q", "unknown '%Q'"),
        ("%Y-%", "unknown '%'"),
        ("yyyy-MM-dd", "'yyyy-MM-dd' is not a time format"),
    ],
)
def test_time_format_when_not_possible_then_says_what(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_time_format(text)


def test_time_zone_when_unknown_then_is_refused() -> None:
    with pytest.raises(QueryError, match="unknown time zone 'Mars/Base'"):
        parse_time_format(zone="Mars/Base")


@pytest.mark.spark
def test_json_times_when_of_any_kind_then_are_as_the_audit_reads_them(spark: SparkSession) -> None:
    times = [
        MOMENT_MS, MOMENT_MS / 1000, MOMENT_MS / 1000 + 0.25, str(MOMENT_MS // 1000 * 1000),
        "2005-12-04T04:47:44Z", "2005-12-04 04:47:44", "2005-12-04T05:47:44.5+01:00",
        "2005-12-04", "2005-12-04T04:47Z", "2005-12-04 04:47", "2005-12-04T05:47+01:00",
        "yesterday", None, True,
    ]  # fmt: skip
    payloads = [json.dumps({"meta": {"ts": time}, "user": "ada"}).encode() for time in times]
    time_of = json_time(".meta.ts")
    expected = [
        None if isinstance(t, bool) else time_of(p) for t, p in zip(times, payloads, strict=True)
    ]
    expected[3] = MOMENT_MS  # digits in quotes are a number here

    rows = found(spark, payloads, EventFields(key_field=".user", time_field=".meta.ts"))

    assert [row[1] for row in rows] == expected
    assert {row[0] for row in rows} == {"ada"}


@pytest.mark.spark
def test_json_times_when_no_time_can_be_that_then_are_null(spark: SparkSession) -> None:
    times = [b'"NaN"', b'"-Infinity"', b"1e30", b"9000000000000000000", b"-1e300"]

    rows = found(spark, [b'{"ts": %b}' % one for one in times], EventFields(time_field=".ts"))

    assert [row[1] for row in rows] == [None] * len(times)


@pytest.mark.spark
def test_values_when_only_java_takes_them_for_numbers_then_are_none(spark: SparkSession) -> None:
    values = [b"1.5", b'"-2e1"', b'" 3 "', b'"12d"', b'"7f"', b'"0x1p3"', b'"NaN"', b'"."']
    messages = spark.createDataFrame(
        [(b'{"v":%b,"t":%b}' % (v, v),) for v in values], "value binary"
    )

    rows = events(messages, EventFields(time_field=".t", value_field=".v")).collect()

    assert [row.value for row in rows] == [1.5, -20.0, 3.0] + [None] * 5
    assert [row.time is None for row in rows] == [False] * 3 + [True] * 5


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "zone", "times"),
    [
        ("%d/%m/%y %H", "America/New_York", ["31/12/99 20", "10/04/99 23", "01/01/68 00"]),
        ("%d/%m/%y %H %z", "UTC", ["31/12/99 23 +0000", "01/01/69 00 +0000", "31/12/68 23 +0000"]),
    ],
)
def test_times_when_years_have_two_digits_then_are_as_strptime_has_them(
    spark: SparkSession, text: str, zone: str, times: list[str]
) -> None:
    fields = EventFields(pattern="(?P<time>.*)", time_format=parse_time_format(text, zone))
    expected = [datetime.strptime(one, text) for one in times]  # noqa: DTZ007 - one has none
    zoned = [one if one.tzinfo else one.replace(tzinfo=ZoneInfo(zone)) for one in expected]

    rows = found(spark, [one.encode() for one in times], fields)

    assert [row[1] for row in rows] == [int(one.timestamp()) * 1000 for one in zoned]


@pytest.mark.spark
def test_json_when_payloads_are_none_then_key_and_time_are_null(spark: SparkSession) -> None:
    rows = found(spark, [b"no json", b"{}", b"a\xffb"], EventFields("user", "ts"))

    assert rows == [(None, None, "no json"), (None, None, "{}"), (None, None, "a�b")]


@pytest.mark.spark
def test_pattern_when_groups_are_named_in_either_spelling_then_both_work(
    spark: SparkSession,
) -> None:
    lines = [
        b"[Sun Dec  4 04:47:44 2005] [error] no",
        b"[Mon Dec 05 23:59:59 2005] [notice] ok",
        b"x",
    ]
    form = parse_time_format("%b %d %H:%M:%S %Y")
    python = r"^\[\w+ (?P<time>[^]]+)\] \[(?P<key>\w+)\]"

    rows = found(spark, lines, EventFields(pattern=python, time_format=form))
    same = found(spark, lines, EventFields(pattern=python.replace("(?P<", "(?<"), time_format=form))

    assert [row[:2] for row in rows] == [
        ("error", MOMENT_MS), ("notice", MOMENT_MS + 155_535_000), (None, None),
    ]  # fmt: skip
    assert same == rows


@pytest.mark.spark
def test_pattern_when_text_has_letters_of_any_script_then_groups_have_them(
    spark: SparkSession,
) -> None:
    lines = ["Größe=1 ok", "журнал=2 ok", "=3"]
    pattern = r"^(?P<key>\w+)=(?P<first_name>x)?(?P<value>\d+)"

    rows = found(spark, [one.encode() for one in lines], EventFields(pattern=pattern))

    assert [row[0] for row in rows] == ["Größe", "журнал", None]


@pytest.mark.spark
def test_pattern_when_it_is_none_then_refused_as_by_every_reader(spark: SparkSession) -> None:
    for pattern in REFUSED:
        with pytest.raises(QueryError, match=r"see pylogctl-patterns\(7\)"):
            found(spark, [b"x"], EventFields(pattern=f"(?P<key>{pattern})"))


@pytest.mark.spark
def test_pattern_when_one_of_the_examples_then_found_where_others_find_it(
    spark: SparkSession,
) -> None:
    examples = [one for one in EXAMPLES if one.not_in]
    matched = []
    for one in examples:
        fields = EventFields(pattern=f"(?P<key>{one.pattern})")
        rows = found(spark, [one.found_in.encode(), one.not_in.encode()], fields)
        matched.append([row[0] is not None for row in rows])

    assert matched == [[True, False]] * len(examples)


@pytest.mark.spark
def test_times_when_without_year_and_zone_then_take_those_given(spark: SparkSession) -> None:
    form = parse_time_format("%b %d %H:%M:%S", "Europe/Paris")
    pattern = r"^(?P<time>\w+ +\d+ [\d:]+)"

    given = found(
        spark, [b"Dec 4 05:47:44 x"], EventFields(pattern=pattern, time_format=form, year=2005)
    )

    assert given[0][1] == MOMENT_MS


@pytest.mark.spark
def test_times_when_without_a_year_then_are_in_the_newest_that_is_not_in_the_future(
    spark: SparkSession,
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    past, soon, later = now - timedelta(hours=1), now + timedelta(hours=20), now + timedelta(days=9)
    lines = [one.strftime("%b %d %H:%M:%S").encode() for one in (past, soon, later)]
    fields = EventFields(
        pattern=r"^(?P<time>\w+ +\d+ [\d:]+)",
        time_format=parse_time_format("%b %d %H:%M:%S"),
    )

    rows = found(spark, [*lines, b"Feb 29 12:00:00"], fields)

    wanted = [past, soon, later.replace(year=later.year - 1)]
    assert [row[1] for row in rows[:3]] == [one.timestamp() * 1000 for one in wanted]
    assert isinstance(rows[3][1], int)
    leap = datetime.fromtimestamp(rows[3][1] / 1000, UTC)
    assert (leap.month, leap.day) == (2, 29)
    assert now - timedelta(days=8 * 366) < leap <= now + timedelta(days=1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (EventFields(pattern="("), r"'\(' is no regular expression of RE2: missing \)"),
        (EventFields(pattern="(?P<user>x)"), "no group named key or time"),
        (EventFields(key_field=".a..b"), r"'.a..b' is not the path of a JSON field"),
        (EventFields(time_field=""), "'' is not the path of a JSON field"),
        (EventFields(key_field="a", pattern="(?P<key>x)"), "cannot be used together"),
    ],
)
@pytest.mark.spark
def test_fields_when_malformed_then_say_what_is_wrong(
    spark: SparkSession, fields: EventFields, message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        found(spark, [], fields)
