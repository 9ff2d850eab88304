from __future__ import annotations

from html.parser import HTMLParser

from pylogctl.web.pages.charts import Line, chart, spark, thinned
from pylogctl.web.sampler import Point


def points(*values: float) -> list[Point]:
    return [Point(1_700_000_000 + 5 * index, value) for index, value in enumerate(values)]


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_thinned_points_keep_peaks_and_their_order() -> None:
    found = thinned(points(*[0.0] * 500, 9.0, *[0.0] * 499), 60)
    assert len(found) == 60
    assert max(one.value for one in found) == 9.0
    assert found == sorted(found)


def test_chart_has_a_name_and_its_values_as_a_table() -> None:
    lines = [Line("in", points(1, 2)), Line("out", points(3, 4)[1:])]
    text = chart("Bytes", lines, lambda value: f"{value:.0f} B")
    elements = Elements(text)
    (drawing,) = [one for one in elements.of("svg") if one.get("role") == "img"]
    assert drawing["aria-label"] == ("Bytes. in 2 B now, at most 2 B; out 4 B now, at most 4 B")
    assert len(elements.of("polyline")) == 2
    assert len(elements.of("tr")) == 3
    assert '<td class="number">2 B</td><td class="number">4 B</td>' in text
    assert '<td class="number">1 B</td><td class="number">-</td>' in text


def test_chart_of_nothing_says_so() -> None:
    assert "No values yet" in chart("Bytes", [Line("in", [])], str)


def test_names_in_charts_are_text() -> None:
    text = chart("<u>", [Line("<i>", points(1))], str) + spark(points(1, 0), '"><u>')
    assert not {"u", "i"} & {tag for tag, _ in Elements(text).found}
