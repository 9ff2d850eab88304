"""Charts and tables made of figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.charts import charts_of, write_charts
from bench.page import fill
from bench.svg import bars, lines, short

SVG = "{http://www.w3.org/2000/svg}"


def figure(chart: str, series: str, x: float | str, median: float) -> dict[str, Any]:
    return {
        "unit": "MB/s",
        "median": median,
        "place": {"chart": chart, "series": series, "x": x},
    }


def test_bars_are_as_long_as_their_values() -> None:
    root = ElementTree.fromstring(bars("a < b", "MB/s", {"one & all": 1.0, "two": 4.0, "no": 0.0}))
    widths = [float(rect.attrib["width"]) for rect in root.iter(f"{SVG}rect") if "x" in rect.attrib]
    assert widths == [100.0, 400.0, 0.0]
    assert "one & all" in [text.text for text in root.iter(f"{SVG}text")]


def test_lines_go_through_every_point_from_left_to_right() -> None:
    text = lines("t", "MB/s", "things", {"a": [(100, 2.0), (1, 4.0), (10, 0.0)], "b": [(1, 1.0)]})
    root = ElementTree.fromstring(text)
    first, second = (
        [tuple(map(float, spot.split(","))) for spot in line.attrib["points"].split()]
        for line in root.iter(f"{SVG}polyline")
    )
    assert [x for x, _ in first] == sorted(x for x, _ in first)
    assert first[1][1] > first[2][1] > first[0][1]
    assert second[0][0] == first[0][0]


def test_lines_of_one_point_are_drawn() -> None:
    assert "NaN" not in lines("t", "ms", "things", {"a": [(7, 0.0)]})


@pytest.mark.parametrize(
    ("value", "text"), [(0.01234, "0.0123"), (12, "12"), (1500, "1.5k"), (2.5e6, "2.5M")]
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert short(value) == text


def test_a_table_has_a_column_for_each_series_and_rows_in_order() -> None:
    figures = [
        figure("rate over partitions", "in", 10, 200.0),
        figure("rate over partitions", "in", 1, 1234.0),
        figure("rate over partitions", "out", 10, 3.14159),
        {"unit": "s", "median": 1.0, "place": None},
    ]
    (chart,) = charts_of(figures)
    assert chart.markdown() == (
        "| partitions | in | out |\n| --- | ---: | ---: |\n| 1 | 1,234 |  |\n| 10 | 200 | 3.14 |"
    )


def test_charts_are_files_named_after_them(tmp_path: Path) -> None:
    figures = [figure("Rate: in, out", "", name, 1.0) for name in ("we", "they")]
    write_charts(tmp_path / "new", charts_of(figures))
    (path,) = (tmp_path / "new").iterdir()
    assert path.name == "rate-in-out.svg"
    assert re.search(">we<", path.read_text())


def test_names_by_names_are_a_table_only(tmp_path: Path) -> None:
    (chart,) = charts_of([figure("t", "a", "x", 1.0), figure("t", "b", "x", 2.0)])
    assert not chart.is_drawable
    write_charts(tmp_path, [chart])
    assert not list(tmp_path.iterdir())


def test_a_page_gets_the_charts_there_are_and_keeps_the_others() -> None:
    charts = {one.title: one for one in charts_of([figure("rate over x", "in", 1, 2.0)])}
    page = (
        "a\n<!-- machine -->\nold\n<!-- end -->\n<!-- chart: rate over x -->\n<!-- end -->\n"
        "b\n<!-- chart: other -->\nkept\n<!-- end -->\n"
    )
    filled = fill(page, charts, {"cores": 2, "memory_gb": 8}, "folder")
    assert "<!-- machine -->\nMeasured on: cores 2; memory gb 8.\n<!-- end -->" in filled
    assert "| 1 | 2 |" in filled
    assert "![rate over x](folder/rate-over-x.svg)" in filled
    assert "kept" in filled
    assert fill(filled, charts, {"cores": 2, "memory_gb": 8}, "folder") == filled
