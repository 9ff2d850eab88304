"""Documents in every output format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import LogCorruptError
from pylogctl.cli.columns import UNKNOWN, Column, ColumnKind, Document
from pylogctl.cli.environment import Environment, OutputFormat, SharedOptions, Streams, UsageError
from pylogctl.cli.render import Record, json_encoder, render

FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)
THINGS = Document(
    "thing.list/1",
    (
        Column("name", "its name"),
        Column("size_bytes", "its size", ColumnKind.BYTES),
        Column("seen", "when", ColumnKind.TIME),
        Column("alive", "whether", ColumnKind.BOOLEAN),
        Column("tags", "words", shown=False),
    ),
    empty="no things",
)
RECORDS: list[Record] = [
    {"name": "1e5", "size_bytes": 2048, "seen": 1_763_625_600_250, "alive": True, "tags": ["a"]},
    {"name": 'a\tb\n,"', "size_bytes": 7, "seen": None, "alive": False, "tags": ["a", "b"]},
    {"name": None, "size_bytes": None, "seen": None, "alive": None, "tags": None},
]


def _render(
    records: Any, *, tty: bool = False, encoding: str = "utf-8", **settings: Any
) -> tuple[str, str]:
    stdout, stderr = io.BytesIO(), io.StringIO()
    streams = Streams(None, stdout, stderr, stdout_is_tty=tty, encoding=encoding)
    env = Environment(streams, {"COLUMNS": "60"}, SharedOptions(**settings))
    render(env, THINGS, records)
    return stdout.getvalue().decode("utf-8", "surrogateescape"), stderr.getvalue()


def _names(text: str, output: str) -> Sequence[str | None]:
    """The first column of each record, as a program would read it."""
    if output == "json":
        return [record["name"] for record in json.loads(text)["data"]]
    if output == "jsonl":
        return [json.loads(line)["name"] for line in text.splitlines()]
    if output == "csv":
        return [row["name"] for row in csv.DictReader(io.StringIO(text, newline=""))]
    lines = text.splitlines()
    if output == "tsv":
        return [line.split("\t")[0] for line in lines[1:]]
    if output == "name":
        return lines
    skip = {"plain": 1, "table": 2, "markdown": 2}[output]
    return [line.strip("| ").split()[0] for line in lines[skip:]]


@pytest.mark.parametrize("output", FORMATS)
def test_render_given_any_format_writes_every_record_in_order(output: OutputFormat) -> None:
    records = [{"name": f"n{number}", "size_bytes": number} for number in range(2500)]
    text, stderr = _render(records, output=output)
    assert list(_names(text, output)) == [record["name"] for record in records]
    assert stderr == ""


def test_json_has_schema_and_raw_values_of_all_columns() -> None:
    text, _ = _render(RECORDS[:2], output="json")
    assert text == (
        '{"schema":"pylogctl.thing.list/1","data":['
        '{"name":"1e5","size_bytes":2048,"seen":"2025-11-20T08:00:00.250Z","alive":true,'
        '"tags":["a"]},'
        '{"name":"a\\tb\\n,\\"","size_bytes":7,"seen":null,"alive":false,"tags":["a","b"]}]}\n'
    )


@pytest.mark.parametrize("output", FORMATS)
def test_render_when_on_a_terminal_escapes_what_could_mislead_it(output: OutputFormat) -> None:
    records = [{"name": "a\x1b]0;x\x07\u202e\x9b\udc9b", "tags": ["\x1b[2J"]}]
    columns = ("name", "tags")
    text, _ = _render(records, tty=True, output=output, columns=columns, color="never")
    assert set(text) <= {"\n", "\t", *map(chr, range(32, 127)), "─"}
    assert "x1b" in text or "u001b" in text


def test_csv_in_a_pipe_keeps_every_byte_of_a_name() -> None:
    text, _ = _render([{"name": "a\x1b\u202e\udc9b"}], output="csv", columns=("name",))
    assert text == "name\na\x1b\u202e\udc9b\n"


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_json_when_columns_are_chosen_has_those_in_that_order(output: OutputFormat) -> None:
    text, _ = _render(RECORDS[:1], output=output, columns=("tags", "NAME"))
    first = json.loads(text)["data"][0] if output == "json" else json.loads(text)
    assert list(first.items()) == [("tags", ["a"]), ("name", "1e5")]


@pytest.mark.parametrize("output", [None, "plain", "table"])
def test_heading_when_colour_is_always_wanted_is_bold_in_a_pipe(output: OutputFormat) -> None:
    text, _ = _render(RECORDS, output=output, color="always")
    assert "\x1b[1m" in text.splitlines()[0]
    assert "\x1b[" not in _render(RECORDS, output=output)[0]


def test_json_on_a_terminal_is_indented_and_the_same() -> None:
    indented, _ = _render(RECORDS, output="json", tty=True)
    compact, _ = _render(RECORDS, output="json")
    assert "\n  " in indented
    assert json.loads(indented) == json.loads(compact)


def test_csv_quotes_and_has_empty_cells_for_unknown() -> None:
    text, _ = _render(RECORDS, output="csv", columns=("name", "size_bytes", "tags"))
    assert text == 'name,size_bytes,tags\n1e5,2048,a\n"a\tb\n,""",7,"a,b"\n,,\n'


def test_tsv_escapes_tabs_and_newlines() -> None:
    text, _ = _render(RECORDS, output="tsv", columns=("name", "alive"))
    assert text == 'name\talive\n1e5\ttrue\na\\tb\\n,"\tfalse\n\t\n'


def test_plain_keeps_numbers_as_text_and_one_line_a_record() -> None:
    text, _ = _render(RECORDS, output="plain")
    assert text.splitlines() == [
        "NAME      SIZE-BYTES  SEEN                      ALIVE",
        "1e5             2048  2025-11-20T08:00:00.250Z  yes",
        'a\\tb\\n,"           7  -                         no',
        "-                  -  -                         -",
    ]


def test_table_scales_units_unless_raw_numbers_are_asked_for() -> None:
    assert "2.0 KiB" in _render(RECORDS, output="table")[0]
    assert "2048" in _render(RECORDS, output="table", raw_numbers=True)[0]


def test_row_on_a_terminal_when_it_is_alone_then_is_names_and_values() -> None:
    text, _ = _render([{"name": "x" * 40, "size_bytes": 1}], tty=True, color="never")
    assert text == f"NAME        {'x' * 40}\nSIZE-BYTES  1 B\n"


def test_table_on_a_terminal_when_it_is_too_wide_then_says_what_is_left_out() -> None:
    records = [{"name": "x" * 50, "size_bytes": 1 << n, "seen": 1000 * n} for n in range(3)]
    text, note = _render(records, tty=True, color="never")
    assert all(len(line) <= 60 for line in text.splitlines())
    wide, no_note = _render(records, tty=True, color="never", wide=True)
    assert "x" * 50 in wide
    assert ("not shown" in note) == ("SEEN" not in text)
    assert no_note == ""


def test_table_on_a_terminal_of_several_blocks_has_the_same_columns_in_all() -> None:
    records = [{"name": "x" * (9 if n < 10 else 5), "size_bytes": n} for n in range(2500)]
    text, _ = _render(records, tty=True, color="never", columns=("name", "size_bytes"))
    assert {len(line) for line in text.splitlines()[2:]} == {len("xxxxxxxxx") + 2 + 10}


def test_table_on_a_terminal_without_unicode_uses_ascii() -> None:
    assert _render(RECORDS, tty=True, encoding="ascii")[0].isascii()


def test_table_on_a_terminal_is_coloured_only_when_allowed() -> None:
    assert "\x1b[" not in _render(RECORDS, tty=True, color="never")[0]


@pytest.mark.parametrize("output", ["table", "plain", "markdown", "name"])
def test_empty_result_is_a_note_on_stderr(output: OutputFormat) -> None:
    assert _render([], output=output) == ("", "no things\n")
    assert _render([], output=output, quiet=True) == ("", "")


def test_empty_result_for_programs_is_an_empty_document() -> None:
    assert _render([], output="json")[0] == '{"schema":"pylogctl.thing.list/1","data":[]}\n'
    assert _render([], output="jsonl")[0] == ""
    assert _render([], output="csv")[0] == "name,size_bytes,seen,alive\n"


def test_columns_are_chosen_and_ordered_in_either_spelling() -> None:
    text, _ = _render(RECORDS[:1], columns=("SIZE-BYTES", "name"), no_header=True)
    assert text == "2048  1e5\n"


def test_columns_help_lists_names_and_meanings() -> None:
    text, _ = _render(RECORDS, columns=("help",))
    assert "size_bytes  bytes    its size" in text


@pytest.mark.parametrize("settings", [{"columns": ("sise_bytes",)}, {"sort": "-sise_bytes"}])
def test_unknown_column_is_a_usage_error_with_a_guess(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no column 'sise_bytes'; did you mean 'size_bytes'"):
        _render(RECORDS, **settings)


def test_sort_puts_unknown_values_last_in_both_directions() -> None:
    for order, expected in (
        ("size_bytes", ["7", "2048", "-"]),
        ("-size_bytes", ["2048", "7", "-"]),
    ):
        text, _ = _render(RECORDS, sort=order, columns=("size_bytes",), no_header=True)
        assert text.split() == expected


def _failing() -> Iterator[Record]:
    yield from RECORDS[:2]
    raise LogCorruptError("broken")


@pytest.mark.parametrize("output", FORMATS)
def test_failure_half_way_leaves_the_complete_records(output: OutputFormat) -> None:
    stdout = io.BytesIO()
    env = Environment(Streams(None, stdout, None), {}, SharedOptions(output=output))
    with pytest.raises(LogCorruptError):
        render(env, THINGS, _failing())
    assert _names(stdout.getvalue().decode(), output)[0] == "1e5"
    assert len(_names(stdout.getvalue().decode(), output)) == 2


@given(st.lists(st.text(), min_size=1, max_size=5), st.sampled_from(["json", "jsonl", "csv"]))
def test_machine_formats_given_any_text_give_it_back(
    names: list[str], output: OutputFormat
) -> None:
    text, _ = _render([{"name": name} for name in names], output=output)
    assert list(_names(text, output)) == names


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_plain_given_any_text_is_one_line_a_record(names: list[str]) -> None:
    text, _ = _render([{"name": name} for name in names], output="plain")
    assert text.count("\n") == len(names) + 1


@given(
    st.recursive(
        st.decimals(allow_nan=False, allow_infinity=False) | st.text() | st.just("\U0010ffff1.5"),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_when_values_are_decimals_then_is_numbers_with_the_same_digits(value: Any) -> None:
    text = json_encoder()(value)

    assert json.loads(text, parse_float=Decimal, parse_int=Decimal) == value
    if isinstance(value, Decimal):
        assert text == str(value)


def test_value_that_nobody_told_is_a_question_mark_and_null_for_programs() -> None:
    records = [
        {"name": "a", "size_bytes": UNKNOWN, "seen": UNKNOWN, "alive": UNKNOWN, "tags": []},
        {"name": "b", "size_bytes": None, "seen": None, "alive": None, "tags": None},
    ]
    text, _ = _render(records, output="plain", columns=("name", "size_bytes", "seen", "tags"))
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["a", "?", "?", "-"],
        ["b", "-", "-", "-"],
    ]
    assert json.loads(_render(records[:1], output="jsonl")[0])["size_bytes"] is None
    assert _render(records[:1], output="csv")[0].endswith("\na,,,\n")
    assert _render(records, sort="size_bytes", output="name")[0] == "a\nb\n"


def test_table_has_times_to_the_second_and_rates_with_units() -> None:
    columns = (
        Column("at", "when", ColumnKind.TIME),
        Column("rate", "messages", ColumnKind.RATE),
        Column("speed", "bytes", ColumnKind.BYTE_RATE),
    )
    stdout = io.BytesIO()
    for raw in (False, True):
        settings = SharedOptions(output="table", raw_numbers=raw, no_header=True)
        env = Environment(Streams(None, stdout, None), {}, settings)
        row = {"at": 1_763_625_600_250, "rate": 3217.4, "speed": 12_998_144}
        render(env, Document("rate/1", columns, ""), [row])
    assert stdout.getvalue().decode().splitlines() == [
        "2025-11-20T08:00:00Z  3.2 k/s  12.4 MiB/s",
        "2025-11-20T08:00:00.250Z  3217.4  12998144",
    ]
