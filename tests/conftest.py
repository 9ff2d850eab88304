from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer

REPOSITORY = Path(__file__).parents[1]

pytest.register_assert_rewrite("tests.support")  # its fixtures assert as tests do

settings.register_profile("repository", deadline=None)  # a busy machine must not fail a test
settings.load_profile("repository")

# A shell that runs the tests in the background has them, and every process they start, ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> object:
    from tests.support.scheduling import FilesInOrder  # late: assertions are rewritten first

    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # by the number of tests, which says little
    return FilesInOrder(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from tests.support.scheduling import shares_spark  # late: as above

    items.sort(key=lambda item: not shares_spark(item.nodeid))  # the longest part first


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real input that lies beside a checkout on machines that have it."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder of real input, ../shared/data, is not here")
    return folder
