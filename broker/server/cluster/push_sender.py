"""The controller's pushes to brokers: a thread for each broker, so that none waits for another."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from broker import errors
from broker.clock import Clock
from broker.cluster_state import LiveBroker, ReplicatedPartition
from broker.config import BrokerConfig
from broker.controller.controller import Controller
from broker.controller.pushes import Push
from broker.protocol.replica_requests import UNKNOWN_REPLICAS, PushStatesRequest
from broker.replica_records import UnknownReplica
from broker.server.cluster.live_brokers import LiveBrokers
from broker.stats import ELECTION_BOUNDS_S, SharedStats, WindowedStats
from broker.threads import StoppableThread

logger = logging.getLogger(__name__)

_PUSH_AGAIN_S = 0.3


class PushTimes(NamedTuple):
    """How fast one broker carries out pushes."""

    stats: WindowedStats  # of carried out pushes, from the decision to the response
    oldest_s: float  # age of the oldest push without a response; 0 if there is none


class PushAnswer(NamedTuple):
    """A broker's response to a push."""

    error: errors.ServerError | None  # why it refused; None if it carried the push out
    unknown: list[UnknownReplica]  # replicas with logs there that a full push does not name


_OnAnswer = Callable[[Controller, int, Push, PushAnswer], None]


@dataclass(eq=False)
class PushSender(StoppableThread):
    """Sends pushes to one broker, in one of its registrations, each until it gets a response.

    Pushes that come while a request is under way, or cannot be delivered, are joined.
    """

    broker: LiveBroker
    controller: Controller
    on_answer: _OnAnswer  # called in the sender's thread
    clock: Clock
    stats: WindowedStats
    brokers: LiveBrokers  # that connects
    timeout_s: float  # to carry out a push

    def __post_init__(self) -> None:
        super().__init__(f"controller-to-{self.broker.id}")
        self._waiting: Push | None = None
        self._waiting_since_s: float | None = None
        self._sent_since_s: float | None = None  # of the push that is under way
        self._changed = threading.Condition()  # guards the fields above
        self._reported_error = ""
        self._connection = self.brokers.connect_to(
            self.broker, timeout_s=self.timeout_s, client_id=f"controller-{self.controller.me}"
        )
        self.start()

    def send(self, push: Push) -> None:
        """Have a push sent after earlier ones."""
        with self._changed:
            if self._waiting is None:
                self._waiting, self._waiting_since_s = push, self.clock.monotonic_s()
            else:
                self._waiting = _joined(self._waiting, push)
            self._changed.notify()

    def times(self) -> PushTimes:
        """Return how fast the broker takes pushes; callable from any thread."""
        with self._changed:
            since = [one for one in (self._sent_since_s, self._waiting_since_s) if one is not None]
        now_s = self.clock.monotonic_s()
        return PushTimes(self.stats, max(0.0, now_s - min(since)) if since else 0.0)

    def stop(self) -> None:
        """End, also in the middle of a request."""
        with self._changed:
            super().stop()
            self._changed.notify()
        self._connection.interrupt()

    def _loop(self) -> None:
        """Send until the thread is stopped."""
        while (push := self._next()) is not None:
            try:
                body = self._connection.call(self._request(push))
                answer = PushAnswer(None, UNKNOWN_REPLICAS.decode(body))
            except (errors.StaleControllerEpochError, errors.StaleBrokerEpochError) as error:
                # Sent again while this controller is in office: the broker may be about to learn of
                # its own registration.
                self.on_answer(self.controller, self.broker.id, push, PushAnswer(error, []))
                self._wait_to_retry(push, error)
            except errors.BrokerError as error:
                self._connection.close()
                self._wait_to_retry(push, error)
            except Exception as error:  # a bug must not lose the push
                logger.exception("telling broker %d failed", self.broker.id)
                self._connection.close()
                self._wait_to_retry(push, error)
            else:
                self._note_carried_out()
                self.on_answer(self.controller, self.broker.id, push, answer)
        self._connection.close()

    def _note_carried_out(self) -> None:
        with self._changed:
            since_s, self._sent_since_s = self._sent_since_s, None
        if since_s is not None:
            self.stats.record(self.clock.monotonic_s() - since_s)

    def _next(self) -> Push | None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping.is_set() or self._waiting is not None)
            push, self._waiting = self._waiting, None
            self._sent_since_s, self._waiting_since_s = self._waiting_since_s, None
            return None if self._stopping.is_set() else push

    def _wait_to_retry(self, push: Push, error: Exception) -> None:
        with self._changed:
            if not self._stopping.is_set() and str(error) != self._reported_error:
                self._reported_error = str(error)
                logger.warning(
                    "broker %(peer)d is told again and again: %(error)s",
                    {"peer": self.broker.id, "error": error},
                )
            if not self._stopping.is_set():
                self._changed.wait_for(self._stopping.is_set, _PUSH_AGAIN_S)
            self._waiting = push if self._waiting is None else _joined(push, self._waiting)
            self._waiting_since_s, self._sent_since_s = self._sent_since_s, None

    def _request(self, push: Push) -> PushStatesRequest:
        controller, throttle = self.controller, push.throttle_bytes_per_s
        states = push[:-1]
        return PushStatesRequest(
            controller.me, controller.epoch, *states, throttle_bytes_per_s=throttle
        )


@dataclass(eq=False)
class PushSenders:
    """The senders to all brokers, for the time that their controller is in office."""

    on_answer: _OnAnswer
    clock: Clock
    brokers: LiveBrokers  # that connects
    config: BrokerConfig
    _senders: dict[int, PushSender] = field(default_factory=dict, init=False)
    # kept for a broker that comes back
    _stats: dict[int, WindowedStats] = field(default_factory=dict, init=False)

    def send(self, controller: Controller) -> None:
        """Send what brokers have not been told; end the senders to brokers that are gone."""
        pushes, live = controller.pushes.take(), controller.context.brokers
        for broker_id in self._senders.keys() - live.keys():
            self._senders.pop(broker_id).stop()
        for broker_id, push in pushes.items():
            self._sender_to(live[broker_id], controller).send(push)

    def times(self) -> dict[int, PushTimes]:
        """Return how fast brokers carry out pushes, by broker id; callable from any thread."""
        return {id: sender.times() for id, sender in self._senders.copy().items()}

    def stop(self) -> None:
        """End all senders, and wait for the end of their threads."""
        for sender in self._senders.values():
            sender.stop()
        for sender in self._senders.values():
            sender.join()
        self._senders = {}

    def _sender_to(self, broker: LiveBroker, controller: Controller) -> PushSender:
        sender = self._senders.get(broker.id)
        # The pushes of a sender that ends are lost. Only a new registration gets a full one, not a
        # broker that `is_clean` from now on.
        if sender is not None and (
            sender.controller is not controller or sender.broker.epoch != broker.epoch
        ):
            sender.stop()
            sender = None
        if sender is None:
            period_s = self.config.monitoring_period_ms / 1000
            timeout_s = self.config.controller_socket_timeout_ms / 1000
            stats = self._stats.setdefault(
                broker.id, SharedStats(self.clock, period_s, ELECTION_BOUNDS_S)
            )
            sender = self._senders[broker.id] = PushSender(
                *(broker, controller, self.on_answer, self.clock, stats, self.brokers, timeout_s)
            )
        return sender


def _joined(first: Push, second: Push) -> Push:
    """Return one push with the effect of two consecutive ones to the same broker.

    A replica that the first one stops and the second one names again has a later leader epoch, or
    is of another topic, so that the stop does not apply to it.
    """
    if second.is_full:
        partitions: Iterable[ReplicatedPartition] = second.partitions
    else:
        latest = {one.partition: one for one in first.partitions}
        latest.update((one.partition, one) for one in second.partitions)
        partitions = latest.values()
    return Push(
        second.broker_epoch,
        first.is_full or second.is_full,
        second.brokers,
        tuple(partitions),
        first.stopped + second.stopped,
        second.throttle_bytes_per_s,
    )
