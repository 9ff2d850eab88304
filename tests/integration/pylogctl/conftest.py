from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker import Broker
from tests.integration.pylogctl.proxies import BrokerOf07
from tests.support.command_line import clean_environment as clean_environment
from tests.support.command_line import invoke as invoke
from tests.support.command_line import run_process as run_process
from tests.support.command_line import spawn as spawn
from tests.support.kafka_files import copy_partition as copy_partition


@pytest.fixture
def broker_of_07(running_broker: Broker) -> Iterator[BrokerOf07]:
    """`running_broker` as a client sees it that may use 0.7's requests only."""
    broker = BrokerOf07(running_broker)
    yield broker
    broker.stop()
