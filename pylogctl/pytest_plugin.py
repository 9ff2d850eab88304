"""pytest fixtures for programs that use pylogctl; installed with it, imported when first used.

`pylog_broker` is one broker for the session (for each worker of pytest-xdist one), `pylog` a
client of it, `pylog_topic` the name of a new topic for the test.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pylogctl import Client
    from pylogctl.testing import Broker

_numbers = itertools.count()


@pytest.fixture(scope="session")
def pylog_broker() -> Iterator[Broker]:
    """A broker for the session, in this process; its data are deleted at the end."""
    from pylogctl.testing import Broker  # late: every run of pytest loads this module

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def pylog_address(pylog_broker: Broker) -> str:
    """The address of the session's broker, for programs under test."""
    return pylog_broker.address


@pytest.fixture
def pylog(pylog_broker: Broker) -> Iterator[Client]:
    """A client of the session's broker; failures that the test has not read are errors."""
    with pylog_broker.connect() as client:
        yield client


@pytest.fixture
def pylog_topic(request: pytest.FixtureRequest) -> str:
    """The name of a topic that no other test has; its first message makes it."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", request.node.name)[:80]
    return f"{name}-{next(_numbers)}"
