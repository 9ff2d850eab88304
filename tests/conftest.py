from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).parents[1]

pytest.register_assert_rewrite("tests.support")  # its fixtures assert as tests do

settings.register_profile("repository", deadline=None)  # a busy machine must not fail a test
settings.load_profile("repository")

# A shell that runs the tests in the background has them, and every process they start, ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real input that lies beside a checkout on machines that have it."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder of real input, ../shared/data, is not here")
    return folder
