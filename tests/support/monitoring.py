"""What is in the files of `monitoring/`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "monitoring"
_SUFFIX = re.compile(r"_(bucket|sum|count)$")


class Alert(NamedTuple):
    """An alert of `alerts.yml`."""

    name: str
    expression: str
    severity: str
    runbook: str  # path and anchor


def alerts() -> list[Alert]:
    """Return the alerts, in order."""
    blocks = (FOLDER / "alerts.yml").read_text(encoding="utf-8").split("- alert: ")[1:]
    return [_alert(block) for block in blocks]


def _alert(block: str) -> Alert:
    found = re.fullmatch(
        r"(\w+)\n +expr: (?:\|\n)?(.*?)\n(?: +for: \w+\n)? +labels: {severity: (\w+)}\n.*"
        r"runbook_url: (\S+)\s*",
        block,
        re.DOTALL,
    )
    assert found is not None, block
    return Alert(*found.groups())


def dashboard() -> dict[str, Any]:
    """Return the dashboard."""
    found: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
    return found


def queries() -> Iterator[str]:
    """Yield the expressions of the dashboard, with values for Grafana's variables."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield re.sub(r"\$\w+", lambda one: _VARIABLES.get(one[0], ".*"), target["expr"])


_VARIABLES = {"$__rate_interval": "1m"}


def series_in(text: str) -> set[str]:
    """Return the metrics that are named in expressions, without the parts of histograms."""
    return {_SUFFIX.sub("", one) for one in re.findall(r"pylogctl_\w+", text)}
