"""Brokers compare their clocks; one whose clock is wrong deletes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pylogctl
from broker.config import BrokerConfig
from broker.protocol.codec import encode
from broker.protocol.requests import EARLIEST_TIME
from broker.server.broker import Broker
from broker.server.cluster.peer_watch import doubt_of
from tests.integration.broker.factories import PeerFactory
from tests.integration.broker.server.test_clock_jump import TEN_DAYS_MS, SettableClock
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("ahead_ms", "doubt"),
    [
        ({}, None),
        ({2: -60_000, 3: 60_000}, None),
        ({2: 0, 3: HOUR_MS}, None),  # broker 3 is wrong
        ({2: HOUR_MS, 3: HOUR_MS}, "1:00:00 ahead of broker 2, 1:00:00 ahead of broker 3"),
        ({2: -HOUR_MS}, "1:00:00 behind broker 2"),  # one of the two is wrong
    ],
)
def test_clock_when_it_differs_from_most_others_then_is_doubted(
    ahead_ms: dict[int, int], doubt: str | None
) -> None:
    found = doubt_of(ahead_ms)
    expected = f"the clock is {doubt}: no segments are deleted until the clocks agree"
    assert found == (None if doubt is None else expected)


@pytest.fixture
def brokers(zookeeper: str, tmp_path: Path, connect: PeerFactory) -> Iterator[list[Broker]]:
    """Three brokers; the last has a message, and since a restart a clock that is days ahead."""

    def make(broker_id: int, ahead_ms: int = 0) -> Broker:
        clock = SettableClock()
        clock.ahead_ms = ahead_ms
        config = BrokerConfig(
            broker_id=broker_id,
            data_dirs=(tmp_path / str(broker_id),),
            port=0,
            hostname="127.0.0.1",
            zookeeper=zookeeper,
            cleanup_interval_ms=20,
        )
        return Broker(config, clock)

    with make(0) as first, make(1) as second:
        with make(2) as third:
            assert connect(third).publish("events", encode([b"ab"])).error == 0
        with make(2, TEN_DAYS_MS) as third:
            yield [first, second, third]


def test_broker_when_its_clock_is_ten_days_ahead_then_it_deletes_nothing_and_health_says_so(
    brokers: list[Broker], connect: PeerFactory
) -> None:
    with pylogctl.connect(",".join(f"127.0.0.1:{one.port}" for one in brokers)) as client:

        def found() -> tuple[str, ...]:
            return next(one.found for one in client.health().checks if one.name == "retention")

        wait_until(lambda: len(found()) == 1, "the comparison of clocks")
        (text,) = found()
        # give or take what the response of the other broker has taken
        assert re.match(r"broker 2: the clock is (10 days, 0:00|9 days, 23:59):", text)
        brokers[2].apply_retention()
        assert connect(brokers[2]).offsets("events", EARLIEST_TIME) == [0]
