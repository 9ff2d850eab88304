"""A broker survives a bug of its own; the test during which it does fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def expects_bugs() -> None:
    """Let the broker log a bug of its own, which the test has planted."""


@pytest.fixture(autouse=True)
def no_bugs(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test during which the broker survived a bug of its own."""
    yield
    records = [*caplog.get_records("call"), *caplog.get_records("teardown")]
    bugs = [one.getMessage() for one in records if one.exc_info]
    assert not bugs or "expects_bugs" in request.fixturenames
