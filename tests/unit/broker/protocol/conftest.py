"""Both twins of the codec, for tests of what they do."""

from __future__ import annotations

import pytest

from tests.support.twins import TWIN_NAMES, Twin, load_twin


@pytest.fixture(scope="session", params=TWIN_NAMES)
def twin(request: pytest.FixtureRequest) -> Twin:
    """One twin after the other."""
    return load_twin(request.param)
