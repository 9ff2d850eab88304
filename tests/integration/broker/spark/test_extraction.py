"""Keys and times out of payloads, and formats of times."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from broker.errors import QueryError
from broker.spark.extraction import EventFields, events
from broker.spark.loading.dates import TimeFormat
from broker.times import epoch_ms
from broker.tools.audit import json_time
from tests.support.pattern_examples import EXAMPLES, REFUSED
from tests.support.time_examples import NO_TIMES, TIMES, ZONELESS_TIMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOMENT_MS = 1_133_671_664_000  # 2005-12-04T04:47:44Z


def utc_ms(text: str) -> int:
    return epoch_ms(datetime.fromisoformat(text).replace(tzinfo=UTC))


def found(
    spark: SparkSession, payloads: list[bytes], fields: EventFields
) -> list[tuple[object, ...]]:
    """Return key, time in milliseconds, and text."""
    messages = spark.createDataFrame([(bytearray(one),) for one in payloads], "value binary")
    rows = events(messages, fields).selectExpr("key", "unix_millis(time)", "text").collect()
    return [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("%Y-%m-%d %H:%M:%S", "2005-12-4 4:47:44"),
        ("%Y%m%dT%H%M%S", "20051204T044744"),
        ("%d/%b/%Y:%H:%M:%S %z", "04/Dec/2005:05:47:44 +0100"),
        ("%F %T,%f", "2005-12-04 04:47:44,000000"),
        ("%h  %e %Y o'clock %I%p %M%S %%", " Dec  4 2005 o'clock 4AM 4744 %"),
        ("%a %D %R:%S", "Sun 12/04/05 04:47:44"),
    ],
)
def test_time_format_when_known_then_reads_times(text: str, time: str) -> None:
    moment = TimeFormat(text).moment_of(time, datetime.now(UTC))

    assert moment is not None and epoch_ms(moment) == MOMENT_MS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%Y-%Q", "'%Y-%Q' is not a time format: 'Q' is a bad directive"),
        ("%H:%M %Z", "'%H:%M %Z' is not a time format: %Z names no offset: use %z"),
        ("%b %Q", "'%b %Q' is not a time format: 'Q' is a bad directive; valid"),
        ("%Y-%", "'%Y-%' is not a time format: stray %"),
        ("yyyy-MM-dd", "'yyyy-MM-dd' is not a time format: it has no directive; valid: auto"),
    ],
)
def test_time_format_when_not_possible_then_says_what(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        TimeFormat(text)


def test_time_zone_when_unknown_then_is_refused() -> None:
    with pytest.raises(QueryError, match="unknown time zone 'Mars/Base'"):
        TimeFormat(zone="Mars/Base")


@pytest.mark.spark
def test_json_times_when_tools_write_them_then_are_as_the_audit_reads_them(
    spark: SparkSession,
) -> None:
    texts = [*TIMES, *ZONELESS_TIMES, *NO_TIMES]
    payloads = [json.dumps({"meta": {"ts": text}, "user": "ada"}).encode() for text in texts]
    numbers = [b'{"meta":{"ts":1,"ts":%d},"user":"ada"}' % MOMENT_MS, b'{"meta":{"ts":null}}']
    time_of = json_time(".meta.ts")

    rows = found(spark, payloads + numbers, EventFields(key_field=".user", time_field=".meta.ts"))

    expected = [*TIMES.values(), *ZONELESS_TIMES.values()]
    assert [row[1] for row in rows[: len(expected)]] == [utc_ms(one) for one in expected]
    assert [row[1] for row in rows] == [time_of(payload) for payload in payloads + numbers]
    assert rows[-2][1] == MOMENT_MS
    assert {row[0] for row in rows[:-1]} == {"ada"}


@pytest.mark.spark
def test_json_times_when_a_zone_is_given_then_it_is_that_of_times_without_one(
    spark: SparkSession,
) -> None:
    payloads = [json.dumps({"ts": text}).encode() for text in ZONELESS_TIMES]
    fields = EventFields(time_field="ts", time_format=TimeFormat(zone="Asia/Kolkata"))

    rows = found(spark, payloads, fields)

    assert [row[1] for row in rows] == [utc_ms(one) - 19_800_000 for one in ZONELESS_TIMES.values()]


@pytest.mark.spark
def test_json_keys_when_of_any_kind_then_are_as_they_stand(spark: SparkSession) -> None:
    values = [
        "1.10",
        "12345678901234567890",
        "1e400",
        '"a\\u00e9"',
        '"\\ud800"',
        "true",
        "null",
        "{}",
    ]
    payloads = [b'{"k":0,"k":%b}' % one.encode() for one in values]

    rows = found(spark, payloads, EventFields(key_field="k"))

    keys = ["1.10", "12345678901234567890", "1e400", "aé", "?", "true", None, "{}"]
    assert [row[0] for row in rows] == keys


@pytest.mark.spark
def test_values_when_only_java_takes_them_for_numbers_then_are_none(spark: SparkSession) -> None:
    values = [b"1.5", b'"-2e1"', b'" 3 "', b'"12d"', b'"7f"', b'"0x1p3"', b'"NaN"', b'"."']
    messages = spark.createDataFrame([(b'{"v":%b}' % one,) for one in values], "value binary")

    rows = events(messages, EventFields(value_field=".v")).collect()

    assert [row.value for row in rows] == [1.5, -20.0, 3.0] + [None] * 5


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
    fields = EventFields(pattern="(?P<time>.*)", time_format=TimeFormat(text, zone))
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
    form = TimeFormat("%b %d %H:%M:%S %Y")
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
    form = TimeFormat("%b %d %H:%M:%S", "Europe/Paris", 2005)
    pattern = r"^(?P<time>\w+ +\d+ [\d:]+)"

    given = found(spark, [b"Dec 4 05:47:44 x"], EventFields(pattern=pattern, time_format=form))

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
        time_format=TimeFormat("%b %d %H:%M:%S"),
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
