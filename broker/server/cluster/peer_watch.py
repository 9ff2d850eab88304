"""Whether other brokers are there, found sooner than their sessions with ZooKeeper end.

The controller watches all brokers, every other broker watches the controller: each by a connection
of its own, on which HELLO is asked again and again. Another broker is asked before a broker is
taken for dead (`Suspicion`).

Also `Clocks`, which compares this broker's clock with theirs: a broker whose clock is wrong takes
young messages for old ones, so retention deletes nothing there.
"""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Event
from typing import NamedTuple

from broker import errors
from broker.client.connection import Connection
from broker.clock import Clock
from broker.cluster_state import UNKNOWN_BROKER_EPOCH, LiveBroker, PeerFinding
from broker.controller.suspicion import Suspicion, Witness
from broker.errors import BrokerError
from broker.log.retention import MAX_CLOCK_DIFFERENCE_S, Retention
from broker.protocol.client_requests import HelloRequest
from broker.protocol.replica_requests import ProbeBrokerRequest
from broker.protocol.responses import BrokerAddress
from broker.server.cluster.live_brokers import LiveBrokers
from broker.threads import StoppableThread

logger = logging.getLogger(__name__)

_PROBE_AGAIN_S = 0.05
_MAX_TIMEOUT_S = 10.0


def probe(connection: Connection) -> PeerFinding | None:
    """Ask a broker whether it is there; None if the connection is lost: ask again."""
    try:
        connection.call(HelloRequest())
    except errors.TlsError:  # a certificate is not accepted: so it is there
        connection.close()
    except errors.BrokerUnreachableError as error:
        connection.close()
        if isinstance(error.__cause__, TimeoutError):
            return PeerFinding.SILENT
        return PeerFinding.REFUSES if is_refused(error) else None
    except errors.RequestTimeoutError:
        connection.close()
        return PeerFinding.SILENT
    except errors.BrokerError:  # it refuses this broker, or the request: so it is there
        connection.close()
    return PeerFinding.ANSWERS


def is_refused(error: errors.BrokerError) -> bool:
    """Return whether nobody listens where a connection was tried."""
    return isinstance(error.__cause__, ConnectionRefusedError)


def probe_registered(brokers: LiveBrokers, request: ProbeBrokerRequest) -> PeerFinding:
    """Ask a live broker anew, for another broker that misses it."""
    timeout_s = min(max(0.001, request.timeout_ms / 1000), _MAX_TIMEOUT_S)
    end_s = time.monotonic() + timeout_s
    connection = brokers.connect(request.probed_id, timeout_s=timeout_s)
    if connection is None or brokers.epoch_of(request.probed_id) != request.probed_epoch:
        raise errors.UnknownEpochError(f"broker {request.probed_id} is not known as registered so")
    try:
        while (finding := probe(connection)) is None and time.monotonic() < end_s:
            time.sleep(_PROBE_AGAIN_S)
    finally:
        connection.close()
    return PeerFinding.SILENT if finding is None else finding


_RETRY_S = 0.3
_LONGEST_BEAT_S = 0.5


class Watcher(NamedTuple):
    """What all watches of one broker have in common."""

    me: int
    brokers: LiveBrokers  # that connects
    clock: Clock
    silence_s: float  # 0: silence is no evidence
    on_found: Callable[[LiveBroker, Suspicion], None]  # called again and again


@dataclass(eq=False)
class PeerWatch(StoppableThread):
    """Watches one broker in one of its registrations.

    `others` returns all brokers but the two, each with whether it can be asked what it finds.
    """

    peer: LiveBroker
    watcher: Watcher
    others: Callable[[LiveBroker], Mapping[LiveBroker, bool]]

    def __post_init__(self) -> None:
        super().__init__(f"watch-of-{self.peer.id}")
        self.suspicion = Suspicion(self.watcher.silence_s, self.watcher.clock.monotonic_s())
        self._connection = self.watcher.brokers.connect_to(
            self.peer, timeout_s=self.suspicion.patience_s
        )
        self._witness: Connection | None = None  # to the one that is being asked

    def stop(self) -> None:
        """Stop soon, also in the middle of a request."""
        super().stop()
        self._connection.interrupt()
        if (witness := self._witness) is not None:
            witness.interrupt()

    def _loop(self) -> None:
        """Ask until the thread is to end."""
        while not self._stopping.is_set():
            try:
                self._look()
            except Exception:  # a bug must not end the watch
                logger.exception("watching broker %d failed", self.peer.id)
                self._stopping.wait(_RETRY_S)
        self._connection.close()

    def _look(self) -> None:
        was_open = self._connection.is_open
        finding = probe(self._connection)
        if self._stopping.is_set() or (finding is None and was_open):
            return
        suspicion, watcher = self.suspicion, self.watcher
        found = PeerFinding.SILENT if finding is None else finding
        if suspicion.note(found, watcher.clock.monotonic_s()):
            self._ask_others()
        watcher.on_found(self.peer, suspicion)
        if self._connection.is_open:
            self._connection.await_end(min(_LONGEST_BEAT_S, suspicion.patience_s / 4))
        else:
            self._stopping.wait(_RETRY_S)

    def _ask_others(self) -> None:
        """Have the first broker that can tell be the witness."""
        suspicion, others = self.suspicion, self.others(self.peer)
        request = ProbeBrokerRequest(
            self.watcher.me, self.peer.id, self.peer.epoch, int(1000 * suspicion.witness_patience_s)
        )
        for other in [one for one, can_be_asked in others.items() if can_be_asked]:
            self._witness = connection = self.watcher.brokers.connect_to(
                other, timeout_s=2 * suspicion.witness_patience_s
            )
            try:
                finding = request.RESPONSE.decode(connection.call(request))
                suspicion.judge(Witness(other.id, finding), has_others=True)
                return
            except errors.BrokerError as error:
                logger.info(
                    "broker %(other)d cannot say whether broker %(peer)d is there: %(error)s",
                    {"other": other.id, "peer": self.peer.id, "error": error},
                )
            finally:
                connection.close()
            if self._stopping.is_set():
                return
        suspicion.judge(None, has_others=bool(others))


class PeerWatches:
    """The watches of one broker, for one thread."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._by_id: dict[int, PeerWatch] = {}
        self._live: tuple[LiveBroker, ...] = ()

    def follow(self, peers: Iterable[LiveBroker], live: Iterable[LiveBroker]) -> None:
        """Watch these peers and no others; any of the live brokers can be asked about them."""
        self._live = tuple(live)
        wanted = {one.id: one for one in peers if one.id != self._watcher.me}
        for broker_id, watch in list(self._by_id.items()):
            if broker_id not in wanted or wanted[broker_id].epoch != watch.peer.epoch:
                self._by_id.pop(broker_id).stop()
        for broker_id, peer in wanted.items():
            if broker_id not in self._by_id:
                watch = PeerWatch(peer, self._watcher, self._others)
                self._by_id[broker_id] = watch
                watch.start()

    def _others(self, peer: LiveBroker) -> dict[LiveBroker, bool]:
        """Return the brokers besides this one and a peer, and whether they are not missed."""
        watches = self._by_id.copy()
        return {
            one: not (one.id in watches and watches[one.id].suspicion.is_missed)
            for one in self._live
            if one.id not in (self._watcher.me, peer.id)
        }

    def stop(self) -> None:
        """End all watches, and wait for the end of their threads."""
        for watch in self._by_id.values():
            watch.stop()
        for watch in self._by_id.values():
            watch.join()
        self._by_id = {}


_COMPARE_EVERY_S = 60.0
_COMPARE_AGAIN_S = 2.0
_ANSWER_S = 2.0


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
            interval_s = _COMPARE_AGAIN_S if self._retention.awaits_clocks else _COMPARE_EVERY_S
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
            self._connection = connection = self._brokers.connect_to(peer, timeout_s=_ANSWER_S)
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
