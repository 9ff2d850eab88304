"""Compares this broker's clock with those of the other live brokers.

A broker whose clock is wrong takes young messages for old ones: retention deletes nothing there.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterable, Mapping
from threading import Event

from broker.client.connection import Connection
from broker.clock import Clock
from broker.cluster_state import UNKNOWN_BROKER_EPOCH, LiveBroker
from broker.errors import BrokerError
from broker.log.retention import MAX_CLOCK_DIFFERENCE_S, Retention
from broker.protocol.responses import BrokerAddress
from broker.server.cluster.live_brokers import LiveBrokers
from broker.threads import StoppableThread

logger = logging.getLogger(__name__)

_INTERVAL_S = 60.0
_RETRY_S = 2.0
_TIMEOUT_S = 2.0


class Clocks(StoppableThread):
    """Asks the live brokers for their time each minute, and when others have registered."""

    def __init__(self, me: int, brokers: LiveBrokers, clock: Clock, retention: Retention) -> None:
        super().__init__("clocks")
        self._me = me
        self._brokers = brokers
        self._clock = clock
        self._retention = retention
        self._live: Mapping[int, BrokerAddress] = {}
        self._changed = Event()
        self._connection: Connection | None = None  # on which a broker is being asked

    def start(self) -> None:
        """Have retention wait until the registry has told of the live brokers."""
        self._retention.awaits_clocks = True
        super().start()

    def follow(self, brokers: Mapping[int, BrokerAddress]) -> None:
        """Compare with these brokers from now on; retention waits for that."""
        if brokers != self._live:
            self._live = brokers
            self._retention.awaits_clocks = True
            self._changed.set()

    def stop(self) -> None:
        """Stop soon, also in the middle of a request."""
        super().stop()
        self._changed.set()
        if (connection := self._connection) is not None:
            connection.interrupt()

    def _loop(self) -> None:
        """Compare until the thread is to end."""
        while True:
            interval_s = _RETRY_S if self._retention.awaits_clocks else _INTERVAL_S
            self._changed.wait(interval_s if self._live else None)
            self._changed.clear()
            if self._stopping.is_set():
                return
            try:
                self._compare(self._live.values())
            except Exception:  # the next comparison may succeed
                logger.exception("comparing the clocks of brokers failed")

    def _compare(self, live: Iterable[BrokerAddress]) -> None:
        others = [one for one in live if one.id != self._me]
        offset_s = self._retention.time.offset_s()
        ahead_ms = self._ahead_ms(others)
        if others and not ahead_ms:
            return  # what was known before still counts
        doubt, before = doubt_of(ahead_ms), self._retention.clock_doubt
        if doubt is not None and before is None:
            logger.error("%s", doubt)
        elif doubt is None and before is not None:
            logger.warning("the clock agrees with those of other brokers again")
        if others and doubt is None:
            self._retention.time.trust(offset_s)
        self._retention.clock_doubt = doubt
        self._retention.awaits_clocks = False

    def _ahead_ms(self, others: Iterable[BrokerAddress]) -> dict[int, int]:
        """Return how far this clock is ahead of those of other brokers, of those that respond."""
        found = {}
        for broker in others:
            if self._stopping.is_set():
                break
            began_ms = self._clock.time_ms()
            peer = LiveBroker(*broker, UNKNOWN_BROKER_EPOCH, True, "")
            self._connection = connection = self._brokers.connect_to(peer, timeout_s=_TIMEOUT_S)
            try:
                hello = connection.hello()
            except BrokerError:
                continue
            finally:
                connection.close()
            if hello is not None:
                found[broker.id] = (began_ms + self._clock.time_ms()) // 2 - hello.time_ms
        return found


def doubt_of(ahead_ms: Mapping[int, int]) -> str | None:
    """Return why this clock may be wrong: most others differ from it; None if they do not.

    `ahead_ms` is how far it is ahead of those of other brokers.
    """
    off = {id: ms for id, ms in ahead_ms.items() if abs(ms) > 1000 * MAX_CLOCK_DIFFERENCE_S}
    if 2 * len(off) <= len(ahead_ms):
        return None
    found = []
    for id, ms in sorted(off.items()):
        difference = datetime.timedelta(seconds=round(abs(ms) / 1000))
        found.append(f"{difference} {'ahead of' if ms > 0 else 'behind'} broker {id}")
    return f"the clock is {', '.join(found)}: no segments are deleted until the clocks agree"
