from __future__ import annotations

import signal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.remote import Producer

REPOSITORY = Path(__file__).parents[1]

pytest.register_assert_rewrite("tests.support")  # its fixtures assert as tests do

# a busy machine must not fail a test; `--hypothesis-profile default` tries more than twice as much
settings.register_profile("repository", deadline=None, max_examples=40)
settings.load_profile("repository")

# A shell that runs the tests in the background has them, and every process they start, ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--closed", action="store_true", help="run clusters of several brokers with everything on"
    )
    parser.addoption("--rounds", type=int, default=1, help="of test_chaos.py")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "is_closed" not in metafunc.fixturenames:
        return
    ways: dict[bool, Any] = {False: pytest.HIDDEN_PARAM, True: "closed"}
    if metafunc.config.getoption("closed") or metafunc.definition.get_closest_marker("closed_only"):
        del ways[False]
    elif metafunc.definition.get_closest_marker("both_ways") is None:
        del ways[True]
    metafunc.parametrize("is_closed", ways, indirect=True, ids=ways.values(), scope="session")


@cache
def why_no_zookeeper() -> str:
    """Return why no ZooKeeper can be started here; empty if one can."""
    from broker.errors import ConfigError
    from broker.zk.embedded import find_jars
    from broker.zk.java import find_java

    try:
        find_java()
        find_jars()
    except ConfigError as error:
        return str(error)
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("zookeeper") and why_no_zookeeper():
        pytest.skip(why_no_zookeeper())
    open_only = item.get_closest_marker("open_only")
    if item.config.getoption("closed") and open_only is not None:
        pytest.skip(f"--closed: {open_only.args[0]}")


@pytest.fixture(scope="session")
def is_closed(request: pytest.FixtureRequest) -> bool:
    """Return whether clusters have everything on that keeps strangers out."""
    return bool(request.param)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real input that lies beside a checkout on machines that have it."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder of real input, ../shared/data, is not here")
    return folder


@pytest.fixture(scope="session")
def kafka_logs(shared_data: Path) -> Path:
    """The directories of partitions that brokers of Apache Kafka have written."""
    folder = shared_data / "kafka-magic2"
    if not folder.is_dir():
        pytest.skip("the directories that Kafka brokers wrote are not in ../shared/data")
    return folder
