"""Files of offsets: every form, and what is said of broken lines."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.admin.group_plans import OffsetRecord
from broker.partition_patterns import PartitionPattern
from broker.topic import TopicPartition
from pylogctl.cli.environment import UsageError
from pylogctl.group.offsets_file import parse_entries, zk07_line

NAMES = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True).filter(
    lambda s: s not in (".", "..")
)
OFFSETS = st.tuples(NAMES, NAMES, st.integers(0, 9), st.integers(0, 9), st.integers(-1, 1 << 62))


def facts(
    entries: list[OffsetRecord],
) -> list[tuple[str | None, str, PartitionPattern, int | None]]:
    return [(one.group, one.topic, one.pattern, one.offset) for one in entries]


@given(st.lists(OFFSETS))
def test_zk07_lines_come_back_as_they_were(
    offsets: list[tuple[str, str, int, int, int]],
) -> None:
    lines = [zk07_line(g, TopicPartition(t, h, i), str(o)) for g, t, h, i, o in offsets]
    expected = [(g, t, PartitionPattern(h, i, i), o) for g, t, h, i, o in offsets]
    assert facts(parse_entries("".join(f"{line}\n" for line in lines), "f")) == expected


@given(st.lists(OFFSETS))
def test_json_lines_documents_and_csv_mean_the_same(
    offsets: list[tuple[str, str, int, int, int]],
) -> None:
    records = [
        {"group": g, "topic": t, "partition": f"{h}-{i}", "offset": o} for g, t, h, i, o in offsets
    ]
    table = io.StringIO()
    writer = csv.DictWriter(table, ["group", "topic", "partition", "offset"])
    writer.writeheader()
    writer.writerows(records)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    found = facts(parse_entries(lines, "f"))
    assert found == facts(parse_entries(json.dumps({"data": records}), "f"))
    assert found == facts(parse_entries(table.getvalue(), "f"))
    assert len(found) == len(offsets)


def test_zk07_line_is_that_of_kafka() -> None:
    assert zk07_line("g", TopicPartition("t", 2, 0), "17") == "/consumers/g/offsets/t/2-0:17"


def test_plain_words_have_no_group_and_comments_do_not_count() -> None:
    (entry,) = parse_entries("# offsets\n\nt 2-0 17\n", "f")
    assert entry == OffsetRecord(None, "t", PartitionPattern(2, 0, 0), 17, line=3)
    assert entry.matches(TopicPartition("t", 2, 0))
    assert not entry.matches(TopicPartition("t", 1, 0))
    assert not entry.matches(TopicPartition("u", 2, 0))


def test_a_null_offset_is_one_to_remove() -> None:
    (entry,) = parse_entries('{"group":"g","topic":"t","partition":"0-0","offset":null}', "f")
    assert entry.offset is None


def test_a_saved_plan_keeps_the_current_offset() -> None:
    plan = {"group": "g", "topic": "t", "partition": "0-0", "current": 5, "new": 7}
    (entry,) = parse_entries(json.dumps({"schema": "x", "data": [plan]}), "f")
    assert (entry.offset, entry.checks_current, entry.current) == (7, True, 5)


@pytest.mark.parametrize(
    "line",
    [
        "/consumers/g/offsets/t/0-0:abc",
        "/consumers/g/offsets/t/0:1",
        "/brokers/ids/0",
        "t 0-0",
        "t 0-0 x",
        "t 0-0 1 2",
        '{"topic":"t"}',
        '{"topic":"t","partition":"0-0","offset":true}',
        '{"topic":"t","partition":"0-0","offset":1.5}',
        "{broken",
        "nonsense",
    ],
)
def test_a_broken_line_is_named_by_its_number(line: str) -> None:
    with pytest.raises(UsageError, match=r"line 2 of 'f' is not an offset: ") as caught:
        parse_entries(f"t 0-0 1\n{line}\nt 0-1 2\n{line}\n", "f")
    assert caught.value.hints[0] == "neither are these: 4"


def test_broken_lines_when_the_file_is_another_one_then_only_the_first_are_named() -> None:
    with pytest.raises(UsageError, match=r"line 1 of 'f' is not an offset: ") as caught:
        parse_entries("nonsense\n" * 2000, "f")
    assert caught.value.hints[0].startswith("neither are these: 2, 3, 4, ")
    assert caught.value.hints[0].endswith(", 20, 21 and 1979 more")


@pytest.mark.parametrize("row", ["t,0-1", 't,"0-1,5'])
def test_a_broken_row_of_csv_is_named_by_its_number(row: str) -> None:
    with pytest.raises(UsageError, match="line 3 of 'f'"):
        parse_entries(f"topic,partition,offset\nt,0-0,1\n{row}\n", "f")


def test_a_broken_record_of_a_document_is_named() -> None:
    with pytest.raises(UsageError, match="record 2 of 'f'"):
        parse_entries('{"data":[{"topic":"t","partition":"0-0","offset":1},3]}', "f")


@given(st.text())
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        entries = parse_entries(text, "f")
    except UsageError:
        return
    assert all(one.offset is None or isinstance(one.offset, int) for one in entries)
