"""Puts figures of saved runs into docs/performance.md: `python -m bench.page FILE...`.

Replaces the lines from `<!-- chart: TITLE -->` to `<!-- end -->` with the table of that chart and
a link to its SVG, and those from `<!-- machine -->` to `<!-- end -->` with the machine of the runs.
Charts that no file has are not changed; a later file overrides an earlier one.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.broker_process import REPOSITORY
from bench.charts import Chart, charts_of, write_charts

PAGE = REPOSITORY / "docs" / "performance.md"
_BLOCK = re.compile(r"(<!-- (machine|chart: ([^\n]*)) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Fill the page in."""
    documents = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    charts = {one.title: one for document in documents for one in charts_of(document["figures"])}
    folder = PAGE.with_suffix("")
    text = fill(PAGE.read_text(encoding="utf-8"), charts, documents[-1]["machine"], folder.name)
    PAGE.write_text(text, encoding="utf-8")
    write_charts(
        folder, [one for one in charts.values() if f"({folder.name}/{one.slug}.svg)" in text]
    )


def fill(text: str, charts: Mapping[str, Chart], machine: Mapping[str, Any], folder: str) -> str:
    """Return the page with the blocks replaced that have figures.

    Args:
        text: the page.
        charts: by title.
        machine: facts about the machine.
        folder: of the charts, relative to the page.
    """

    def block(match: re.Match[str]) -> str:
        begin, kind, title, end = match.groups()
        if kind == "machine":
            return f"{begin}{_machine(machine)}\n{end}"
        if title not in charts:
            return match[0]
        chart = charts[title]
        image = f"![{chart.title}]({folder}/{chart.slug}.svg)\n\n" if chart.is_drawable else ""
        unit = "" if chart.unit == "x" else f", in {chart.unit}"
        return f"{begin}\n{chart.title}{unit}:\n\n{chart.markdown()}\n\n{image}{end}"

    return _BLOCK.sub(block, text)


def _machine(facts: Mapping[str, Any]) -> str:
    named: Sequence[str] = [f"{name.replace('_', ' ')} {value}" for name, value in facts.items()]
    return f"Measured on: {'; '.join(named)}."


if __name__ == "__main__":
    main()
