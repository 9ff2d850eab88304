"""The sending process, and how its failure is reported."""

from __future__ import annotations

import os
import signal

import pytest

from broker import Broker, TopicPartition
from broker.errors import BrokerUnreachableError
from broker.producer.config import ProducerConfig
from broker.protocol.responses import BrokerAddress
from pylogctl.cli.environment import CliError
from pylogctl.perf.e2e import SendingProcess
from pylogctl.perf.measure import Halt
from pylogctl.perf.open_loop import LoopPlan, TopicLeaders
from pylogctl.perf.produce import SizeRange
from tests.integration.broker.server.peer import Peer


@pytest.fixture(autouse=True)
def topic(running_broker: Broker) -> None:
    with Peer(running_broker.port) as peer:
        peer.make_topics(["t"])


def make_order(port: int, *, count: int = 10) -> LoopPlan:
    leaders = TopicLeaders({TopicPartition("t", 0, 0): BrokerAddress(0, "127.0.0.1", port)})
    config = ProducerConfig(num_retries=0)
    return LoopPlan(leaders, 7, 1000.0, count, SizeRange(20, 20), config, 10.0, 1.0)


@pytest.fixture
def halt() -> Halt:
    return Halt(lambda: False)


def test_sender_says_how_much_it_sent(running_broker: Broker, halt: Halt) -> None:
    with SendingProcess(make_order(running_broker.port)) as sender:
        sender.run(halt)
    assert sender.is_done
    assert sender.sent.message_count == 10


def test_sender_when_told_to_stop_says_how_much_it_sent_until_then(
    running_broker: Broker,
) -> None:
    def has_sent() -> bool:
        return bool(running_broker.status()["bytes"])

    with SendingProcess(make_order(running_broker.port, count=1_000_000)) as sender:
        sender.run(Halt(has_sent))
    assert 0 < sender.sent.message_count < 1_000_000


def test_sender_when_the_broker_is_not_there_raises_what_its_producer_raised(halt: Halt) -> None:
    with SendingProcess(make_order(1)) as sender, pytest.raises(BrokerUnreachableError):
        sender.run(halt)
    assert sender.is_done


def test_sender_when_killed_says_so(running_broker: Broker, halt: Halt) -> None:
    with SendingProcess(make_order(running_broker.port)) as sender:
        os.kill(sender.pid, signal.SIGKILL)
        with pytest.raises(CliError, match="the sending process ended with status -9"):
            sender.run(halt)
    assert sender.is_done
