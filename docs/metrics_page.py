"""Writes the tables of the pages about metrics from the declared ones: `make generated`.

The headings, which name the managed objects, and the prose stay as they are.
"""

from __future__ import annotations

import re
from pathlib import Path

from broker.client import metrics as clients
from broker.server.status import MANAGED_OBJECTS

PAGE = Path(__file__).with_name("operations") / "metrics.md"
CLIENT_PAGE = PAGE.with_name("client-metrics.md")
_HEAD = "| attribute | series | kind | healthy | meaning |\n|---|---|---|---|---|\n"


def with_tables(page: str) -> str:
    """Return the page with the table of each section as it is declared now."""
    rows: dict[str, str] = {}
    for one in MANAGED_OBJECTS:
        rows[one.title] = rows.get(one.title, "") + "".join(f"{row}\n" for row in one.rows())

    def section(found: re.Match[str]) -> str:
        return f"{found['start']}{_HEAD}{rows[found['title']]}"

    # a heading that names an object, prose, and a table
    return re.sub(
        r"(?P<start>^### `(?P<title>[^`]+)`.*\n(?:[^#|\n].*\n|\n)*)(?:\|.*\n)+",
        section,
        page,
        flags=re.MULTILINE,
    )


def with_client_table(page: str) -> str:
    """Return the page about clients with its first table as the metrics are declared now."""
    rows = "".join(f"{row}\n" for one in clients.MANAGED_OBJECTS for row in one.series_rows())
    head = "| series | labels | kind | Kafka's name | meaning |\n|---|---|---|---|---|\n"
    return re.sub(r"(?:^\|.*\n)+", lambda _: head + rows, page, count=1, flags=re.MULTILINE)


if __name__ == "__main__":
    CLIENT_PAGE.write_text(
        with_client_table(CLIENT_PAGE.read_text(encoding="utf-8")), encoding="utf-8"
    )
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
