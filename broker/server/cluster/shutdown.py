"""A broker's orderly stop: who asked for it, its steps, and what they wait for."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from broker.clock import Clock
from broker.cluster_state import Unmoved
from broker.config import BrokerConfig
from broker.errors import BrokerError, RegistryUnreachableError
from broker.ids import NO_CONTROLLER
from broker.server.cluster.replica_manager import ReplicaManager
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

QUIET_CLIENT_S = 1.0
"""A shutdown waits until no client has sent a request without a response for this long.

Such clients, 0.7's producers above all, learn only from ZooKeeper that the broker stops. All others
know from their responses, and from the end of the connection, which requests it handled.
"""
MAX_CLIENT_WAIT_S = 10.0
_POLL_S = 0.05
_SHOWN_PARTITIONS = 100


class Shutdown:
    """One shutdown, with the result and duration of each step; `on_request` hears of a request."""

    def __init__(self, clock: Clock, on_request: Callable[[], object] = lambda: None) -> None:
        self._clock = clock
        self._on_request = on_request
        self._steps: list[dict[str, Any]] = []
        self.requested = threading.Event()  # by a client, or as all disks are lost
        self.is_forced = False  # it does not wait for clients
        self.refuses_appends = False  # it has reached that step

    def request(self, *, force: bool) -> None:
        """Ask for it; with `force`, also end its waits."""
        self.is_forced |= force
        self.requested.set()
        self._on_request()

    def run(self, name: str, action: Callable[[], str | None]) -> bool:
        """Take a step and return whether it succeeded; `action` may return a note for people."""
        started_s = self._clock.monotonic_s()
        is_done = True
        try:
            note = action()
        except BrokerError as error:
            is_done, note = False, str(error)
            logger.error("shutdown step '%s' failed: %s", name, error)
        seconds = round(self._clock.monotonic_s() - started_s, 3)
        self._steps.append({"step": name, "seconds": seconds, "done": is_done, "note": note})
        logger.info("shutdown: %s (%.3f s)", name, seconds)
        return is_done

    def report(self) -> bytes:
        """Return the steps taken by now as a JSON array."""
        return json.dumps(self._steps).encode()

    def move_leaderships(
        self, replicas: ReplicaManager, config: BrokerConfig, has_session: Callable[[], bool]
    ) -> str | None:
        """Have other brokers lead this one's partitions, and leave the in-sync replicas."""
        if not has_session():
            raise RegistryUnreachableError(
                "no connection to ZooKeeper: no other broker can be made the leader"
            )
        moved: dict[TopicPartition, int] = {}
        left_count = 0
        pause = threading.Event()
        for tries_left in range(config.controlled_shutdown_retries, -1, -1):
            may_retry = tries_left and not self.is_forced
            asked = replicas.brokers.controller_id
            try:
                progress = replicas.ask_to_leave()
            except BrokerError as error:
                if not may_retry or not has_session():
                    raise
                logger.warning("the controller is asked again to move leaderships: %s", error)
            else:
                moved.update((one.partition, one.state.leader) for one in progress.moved)
                left_count += len(progress.left)
                unmoved = progress.unmoved
                # try again if another live broker could lead: its replica may soon catch up
                could_move = any(replicas.could_move(one.partition) for one in unmoved)
                if not could_move or not may_retry:
                    return _describe_progress(moved, left_count, unmoved)
            give_up_s = self._clock.monotonic_s() + config.controlled_shutdown_backoff_ms / 1000
            while self._clock.monotonic_s() < give_up_s and not self.is_forced:
                pause.wait(_POLL_S)
                if replicas.brokers.controller_id not in (asked, NO_CONTROLLER):
                    break  # another controller was elected
        return None

    def wait_for_clients(self, unanswered_since: Callable[[float], int]) -> str | None:
        """Wait until no client sends without acknowledgements; return who still does."""
        give_up_s = self._clock.monotonic_s() + MAX_CLIENT_WAIT_S
        pause = threading.Event()
        while count := unanswered_since(self._clock.monotonic_s() - QUIET_CLIENT_S):
            if self.is_forced or self._clock.monotonic_s() >= give_up_s:
                who = "1 client still sends" if count == 1 else f"{count} clients still send"
                return f"{who} without acknowledgements"
            pause.wait(_POLL_S)
        return None


def _describe_progress(
    moved: Mapping[TopicPartition, int], left_count: int, unmoved: Sequence[Unmoved]
) -> str:
    """Return the outcome of a controlled shutdown, partition by partition, for people."""
    parts = [f"{one}: led by broker {leader}" for one, leader in sorted(moved.items())]
    shown = parts[:_SHOWN_PARTITIONS]
    if len(parts) > len(shown):
        shown.append(f"{len(parts) - len(shown)} more led by others")
    if left_count:
        shown.append(f"{left_count} partitions led by others go on without this broker")
    shown += [f"{one}: still led here, {reason}" for one, reason in unmoved[:_SHOWN_PARTITIONS]]
    if len(unmoved) > _SHOWN_PARTITIONS:
        shown.append(f"{len(unmoved) - _SHOWN_PARTITIONS} more still led here")
    return "; ".join(shown) or "nothing to move"
