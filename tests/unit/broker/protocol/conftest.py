"""Both engines of the codec, for tests of what they do."""

from __future__ import annotations

import pytest

from tests.support.codec_engines import ENGINE_NAMES, Engine, load_engine


@pytest.fixture(scope="session", params=ENGINE_NAMES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """One engine after the other."""
    return load_engine(request.param)
