from __future__ import annotations

from pathlib import Path

from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.protocol.codec import encode
from broker.protocol.requests import EARLIEST_TIME
from broker.server.broker import Broker
from tests.integration.broker.factories import PeerFactory
from tests.support.waiting import wait_until

TEN_DAYS_MS = 10 * 86_400_000


class SettableClock(SystemClock):
    """The machine's clock, as if it could be set."""

    ahead_ms = 0

    def time_ms(self) -> int:
        return super().time_ms() + self.ahead_ms


def test_retention_when_the_clock_is_set_ten_days_ahead_then_deletes_nothing_and_status_says_why(
    connect: PeerFactory, tmp_path: Path
) -> None:
    clock = SettableClock()
    config = BrokerConfig(data_dirs=(tmp_path / "data",), port=0, cleanup_interval_ms=20)
    broker = Broker(config, clock)
    broker.start()
    try:
        peer = connect(broker)
        assert peer.publish("events", encode([b"ab"])).error == 0
        clock.ahead_ms = TEN_DAYS_MS
        wait_until(
            lambda: (
                peer.status().get("retention_waits") or peer.offsets("events", EARLIEST_TIME) != [0]
            ),
            "a run of retention",
        )
        assert peer.offsets("events", EARLIEST_TIME) == [0]
        clock.ahead_ms = 0
        wait_until(lambda: peer.status()["retention_waits"] is None, "another run of retention")
    finally:
        broker.stop()
