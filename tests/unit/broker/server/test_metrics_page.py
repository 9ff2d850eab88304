from __future__ import annotations

from broker.server.metrics_page import PAGE, with_tables
from broker.server.status import MANAGED_OBJECTS


def test_page_of_metrics_when_written_again_then_is_the_same() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page, "run make generated"


def test_page_of_metrics_when_compared_with_the_objects_then_has_a_section_of_each() -> None:
    headings = "".join(
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("### ")
    )
    assert [one.title for one in MANAGED_OBJECTS if f"`{one.title}`" not in headings] == []
