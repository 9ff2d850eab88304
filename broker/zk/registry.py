"""The registry: which brokers and topics there are, and this process's own broker among them.

A `Session` that speaks of brokers and topics. It stays usable while ZooKeeper is away, however
long, and puts the broker back after each expired session.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import NamedTuple

from broker.errors import CoordinationError, RegistryNodeNotFoundError, RegistryUnreachableError
from broker.zk import paths
from broker.zk.registration import Registration
from broker.zk.session import (
    DEFAULT_REQUEST_TIMEOUT_S,
    DEFAULT_SESSION_TIMEOUT_MS,
    Session,
    SessionState,
)
from broker.zk.values import BrokerInfo, decode_broker, decode_number

logger = logging.getLogger(__name__)

_RETRY_S = 1.0


class RegistryStatus(NamedTuple):
    """How things stand between this process and the registry.

    `session_id` is hexadecimal as ZooKeeper's own tools write it, `None` without a connection;
    `is_registered` is true if a broker and all its topics are; `error` says why the last attempt
    to register them failed.
    """

    state: SessionState
    session_id: str | None
    is_registered: bool
    error: str | None


class _Wake(Enum):
    """What wakes the worker up, other than a change of the session's state."""

    TOPIC = auto()
    STOP = auto()


class Registry(Session):
    """The brokers and topics of a cluster, in ZooKeeper.

    Methods may be called from any thread but kazoo's own (that is, not from a `watch`); `stop`
    not from a callback.

    Attributes:
        on_session_expired: called when a session, and all that was registered in it, is gone.
        on_reconnected: called when the connection is back, after this broker was registered again
            if the session is a new one. Both run in the registry's worker thread, not at the same
            time, and may use the registry.

    Args:
        connect: `host:port,host:port[/chroot]`.
        session_timeout_ms: the server forgets this broker after so long without a sign of life.
        request_timeout_s: how long a request waits for the connection and the answer.

    Raises:
        ConfigError: `connect` is malformed.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
        request_timeout_s: float = DEFAULT_REQUEST_TIMEOUT_S,
    ) -> None:
        super().__init__(
            connect, session_timeout_ms=session_timeout_ms, request_timeout_s=request_timeout_s
        )
        self.on_session_expired: Callable[[], None] | None = None
        self.on_reconnected: Callable[[], None] | None = None
        self._registration = Registration(self, session_timeout_ms=session_timeout_ms)
        self._events: queue.SimpleQueue[SessionState | _Wake] = queue.SimpleQueue()
        self._is_away = False
        self._reported_error = ""
        self._worker = threading.Thread(target=self._work, name="registry", daemon=True)

    def start(self, timeout_s: float = 10.0) -> None:
        """Connect, and wait until the session stands.

        Args:
            timeout_s: how long to try.

        Raises:
            RegistryUnreachableError: no server answered in time.
        """
        super().start(timeout_s)
        self._worker.start()

    def stop(self) -> None:
        """End the session, which deletes its ephemeral nodes; a second call does nothing."""
        self._registration.close()
        super().stop()
        if self._worker.is_alive():
            self._events.put(_Wake.STOP)
            self._worker.join()

    @property
    def status(self) -> RegistryStatus:
        """Return how things stand now."""
        session_id = self.session_id
        error = self._registration.error
        return RegistryStatus(
            state=self.state,
            session_id=None if session_id is None else f"0x{session_id & (1 << 64) - 1:x}",
            is_registered=self._registration.broker is not None and self._registration.is_complete,
            error=None if error is None else str(error),
        )

    def register_broker(self, broker_id: int, host: str, port: int, *, creator: str) -> None:
        """Register this process's broker, and from now on after each expired session.

        If a former life of the same broker is still registered, its node is replaced, or waited
        for if it is not certain to be one: the same creator at another address, or the reverse.

        Args:
            broker_id: 0 or more.
            host: the address clients connect to.
            port: the port clients connect to.
            creator: `<host>-<milliseconds>`, made once for a data directory and kept in it.

        Raises:
            RegistryConflictError: another broker has the id; the message names it.
            RegistryUnreachableError: no answer came in time.

        Source: Kafka 0.7 `ZkUtils.registerBrokerInZk`, which refuses a fast restart as well.
        """
        self._registration.register_broker(BrokerInfo(broker_id, host, port, creator))
        self._events.put(_Wake.TOPIC)  # topics may have been waiting for the broker

    def register_topic(self, topic: str, partition_count: int) -> None:
        """Have a topic of this broker registered, now and after each expired session.

        Returns at once; `await_registered` waits for it. Before `register_broker` it is only
        remembered.

        Args:
            topic: its name.
            partition_count: how many partitions of it this broker has.
        """
        self._registration.want_topic(topic, partition_count)
        self._events.put(_Wake.TOPIC)

    def deregister_topic(self, topic: str) -> None:
        """Have a topic of this broker taken out of the registry; returns at once.

        The topic's own node stays: other brokers may have it.

        Args:
            topic: its name; nothing happens if it is not registered.
        """
        self._registration.forget_topic(topic)
        self._events.put(_Wake.TOPIC)

    def await_registered(self, timeout_s: float = 10.0) -> None:
        """Wait until the broker and all its topics are registered.

        Args:
            timeout_s: how long to wait.

        Raises:
            CoordinationError: they are not, and this is why.
        """
        if not self._registration.await_complete(timeout_s):
            raise self._registration.error or RegistryUnreachableError(
                f"registration at {self.connect} is not complete after {timeout_s:g}s"
            )

    def deregister_broker(self) -> None:
        """Take this broker and its topics out of the registry, and do not put them back.

        The first step of a controlled shutdown: clients look elsewhere while the broker still
        serves. Topics go first, as 0.7's consumers watch only those.

        Raises:
            CoordinationError: some node may be left; it goes when the session ends.
        """
        self._registration.deregister()

    def brokers(self) -> list[BrokerInfo]:
        """Return the live brokers by id.

        Raises:
            RegistryUnreachableError: no answer came in time.
        """
        found = []
        for broker_id in self._live_broker_ids():
            try:
                found.append(self.broker(broker_id))
            except RegistryNodeNotFoundError:
                continue  # it went away meanwhile
            except RegistryUnreachableError:
                raise
            except CoordinationError as error:
                logger.warning("broker %d left out: %s", broker_id, error)
        return found

    def broker(self, broker_id: int) -> BrokerInfo:
        """Return a live broker.

        Raises:
            RegistryNodeNotFoundError: there is none with this id.
            CoordinationError: its registration is malformed.
            RegistryUnreachableError: no answer came in time.
        """
        try:
            value, _ = self.get(paths.broker(broker_id))
        except RegistryNodeNotFoundError as error:
            raise RegistryNodeNotFoundError(f"no broker {broker_id} is registered") from error
        return decode_broker(broker_id, value)

    def topics(self) -> list[str]:
        """Return the names of all topics that ever were, sorted.

        Raises:
            RegistryUnreachableError: no answer came in time.
        """
        return self._children_if_any(paths.TOPICS)

    def topic_partitions(self, topic: str) -> dict[int, int]:
        """Return how many partitions of a topic each live broker has, by broker id.

        Args:
            topic: its name; an unknown topic is one no broker has.

        Raises:
            RegistryUnreachableError: no answer came in time.
        """
        return self.partitions_of([topic])[topic]

    def partitions_of(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """Return how many partitions of each topic each live broker has, by broker id.

        Args:
            topics: their names; an unknown topic is one no broker has.

        Raises:
            RegistryUnreachableError: no answer came in time.
        """
        live = set(self._live_broker_ids())
        homes = {paths.topic(topic): topic for topic in topics}
        nodes = {
            paths.topic_broker(homes[path], broker_id): (homes[path], broker_id)
            for path, names in self.children_many(homes).items()
            for broker_id in _numbers(names)
            if broker_id in live
        }
        counts: dict[str, dict[int, int]] = {topic: {} for topic in homes.values()}
        for path, (value, _) in self.get_many(nodes).items():
            topic, broker_id = nodes[path]
            counts[topic][broker_id] = decode_number(value, f"value of {path}")
        return counts

    def _live_broker_ids(self) -> list[int]:
        return _numbers(self._children_if_any(paths.BROKER_IDS))

    def _children_if_any(self, path: str) -> list[str]:
        try:
            return self.children(path)
        except RegistryNodeNotFoundError:
            return []

    def _state_changed(self, state: SessionState) -> None:
        """Hand a change of state to the worker; runs in kazoo's thread, where nothing may wait."""
        self._events.put(state)

    def _work(self) -> None:
        """Keep the broker registered, and tell about the session, until stopped."""
        retry_s: float | None = None
        while True:
            try:
                event = self._events.get(timeout=retry_s)
            except queue.Empty:
                event = _Wake.TOPIC
            if event is _Wake.STOP:
                return
            try:
                retry_s = self._handle(event)
            except Exception:
                logger.exception("failure in the registry's worker or a callback")
                retry_s = _RETRY_S

    def _handle(self, event: SessionState | _Wake) -> float | None:
        """Deal with an event, and return after how long to try again if something is left."""
        if event is SessionState.SUSPENDED:
            self._is_away = True
            logger.warning("connection to ZooKeeper at %s lost", self.connect)
        if event is SessionState.LOST:
            self._is_away = True
            logger.warning("session with ZooKeeper at %s expired", self.connect)
            self._registration.forget_session()
            if self.on_session_expired:
                self.on_session_expired()
        retry_s = self._bring_up_to_date()
        if event is SessionState.CONNECTED and self._is_away:
            self._is_away = False
            logger.info("connected to ZooKeeper at %s again", self.connect)
            if self.on_reconnected:
                self.on_reconnected()
        return retry_s

    def _bring_up_to_date(self) -> float | None:
        if self.state is not SessionState.CONNECTED:
            return None  # a change of state will come
        try:
            self._registration.bring_up_to_date()
        except CoordinationError as error:
            if str(error) != self._reported_error:
                self._reported_error = str(error)
                logger.error("broker not registered, trying on: %s", error)
            return _RETRY_S
        self._reported_error = ""
        return None


def _numbers(names: list[str]) -> list[int]:
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())
