"""pytest fixtures for programs that use pylogctl; installed with it, imported when first used.

| fixture | scope | gives |
|---|---|---|
| `pylog_broker` | session | a `pylogctl.testing.Broker` |
| `pylog_address` | session | its address, for programs under test |
| `pylog` | test | a client of it; topics that the test made are deleted |
| `pylog_topic` | test | the name of a topic that no other test has; with its marker, the topic |
| `pylog_env` | test | the address, which is also in `PYLOGCTL_BROKER` |
| `pylog_own_broker` | test | makes brokers: `pylog_own_broker({"num.threads": "1"})` |
| `pylog_clock` | test | a `Clock` to set forward, for `pylog_own_broker(clock=pylog_clock)` |
| `pylog_faults` | test | a `Faults`: a broker of the test behind a proxy that drops, delays, cuts |
| `pylog_group` | test | a client of a broker of the test with a double of ZooKeeper, for groups |
| `pylog_cluster` | session | three brokers and a ZooKeeper; skips without Java |

With pytest-xdist each worker has a session of its own, and so brokers of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from pylogctl import Client
    from pylogctl.testing import Broker, Clock, Cluster, Faults

# late: every run of pytest loads this module, so that fixtures import what they use

_MAX_NAME_LENGTH = 100
_numbers = itertools.count()


class MakeBroker(Protocol):
    """The type of `pylog_own_broker`; the arguments are those of `pylogctl.testing.Broker`."""

    def __call__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        data_dir: Path | None = None,
        clock: Clock | None = None,
    ) -> Broker:
        """Start a broker, which is closed after the test."""


@pytest.fixture(scope="session")
def pylog_broker() -> Iterator[Broker]:
    """A broker for the session, in this process; its data are deleted at the end."""
    from pylogctl.testing import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def pylog_address(pylog_broker: Broker) -> str:
    """The address of the session's broker, for programs under test."""
    return pylog_broker.address


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "pylog_topic(partitions=1): make the topic of `pylog_topic`, with partitions"
    )


@pytest.fixture
def pylog(pylog_broker: Broker) -> Iterator[Client]:
    """A client of the session's broker; topics that the test has made are deleted at the end.

    Failures that the test has not read are errors.
    """
    with pylog_broker.connect() as own:  # the test may close the other one
        before = {topic.name for topic in own.topics()}
        try:
            with pylog_broker.connect() as client:
                yield client
        finally:
            for topic in own.topics():
                if topic.name not in before:
                    own.delete_topic(topic.name, missing_ok=True)


@pytest.fixture
def pylog_topic(request: pytest.FixtureRequest) -> str:
    """The name of a topic that no other test has; the first message, or the test, makes it.

    With `@pytest.mark.pylog_topic(partitions=3)` it is there, empty, on the broker of `pylog`.
    """
    name = re.sub(r"[^A-Za-z0-9._-]", "-", request.node.name)
    end = f"-{next(_numbers)}"
    topic = name[: _MAX_NAME_LENGTH - len(end)] + end
    if marker := request.node.get_closest_marker("pylog_topic"):
        client: Client = request.getfixturevalue("pylog")
        client.create_topic(topic, partitions=marker.kwargs.get("partitions", 1))
    return topic


@pytest.fixture
def pylog_env(pylog_address: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the session's broker, which commands and `PYLOGCTL_BROKER` have as well."""
    monkeypatch.setenv("PYLOGCTL_BROKER", pylog_address)
    return pylog_address


@pytest.fixture
def pylog_own_broker() -> Iterator[MakeBroker]:
    """A factory of brokers with settings, to stop, kill and restart; closed after the test."""
    from pylogctl.testing import Broker

    with ExitStack() as closing:

        def make(
            settings: Mapping[str, str] | None = None,
            *,
            data_dir: Path | None = None,
            clock: Clock | None = None,
        ) -> Broker:
            return closing.enter_context(Broker(settings, data_dir=data_dir, clock=clock))

        yield make


@pytest.fixture
def pylog_clock() -> Clock:
    """A clock that the test sets forward, for `pylog_own_broker(clock=..)`."""
    from pylogctl.testing import Clock

    return Clock()


@pytest.fixture
def pylog_faults() -> Iterator[Faults]:
    """A broker of the test behind a proxy that drops, delays and cuts."""
    from pylogctl.testing import Faults

    with Faults() as faults:
        yield faults


@pytest.fixture
def pylog_group() -> Iterator[Client]:
    """A client of a broker of the test that has a ZooKeeper in memory: for groups, without Java."""
    from pylogctl.testing import memory_cluster

    with memory_cluster() as cluster, cluster.connect() as client:
        yield client


@pytest.fixture(scope="session")
def pylog_cluster() -> Iterator[Cluster]:
    """Three brokers of the session and their ZooKeeper; tests are skipped without Java."""
    from broker.errors import ConfigError
    from pylogctl.testing import ephemeral_cluster

    with ExitStack() as closing:
        try:
            cluster = closing.enter_context(ephemeral_cluster(3))
        except ConfigError as error:
            pytest.skip(str(error))
        yield cluster
