"""docs/operations/web.md tells of every path of the API."""

from __future__ import annotations

import re
from pathlib import Path

from pylogctl.web.api import BASE
from pylogctl.web.app import DESCRIBED

PAGE = Path(__file__).parents[4] / "docs/operations/web.md"


def test_table_of_paths_when_compared_with_the_routes_then_it_has_each_once() -> None:
    told = []
    for methods, paths in re.findall(
        r"^\| (GET|POST|PUT|PATCH|DELETE) (`/.*?`) \|", PAGE.read_text(), re.M
    ):
        told += [(methods, path) for path in re.findall(r"`([^`]+)`", paths)]
    routes = [
        (one.method, re.sub(r":int\}", "}", one.path.removeprefix(BASE))) for one in DESCRIBED
    ]
    assert sorted(told) == sorted(routes)
