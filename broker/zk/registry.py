"""The registry: the brokers and topics in ZooKeeper, and this process's own broker among them.

Has a `Session`. Stays usable however long ZooKeeper is unreachable, and registers the broker again
after each expired session. Source: Kafka 0.7 `KafkaZooKeeper`.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from enum import Enum, auto
from typing import NamedTuple, Self

from broker.endpoints import Endpoint
from broker.errors import (
    CoordinationError,
    RegistryConflictError,
    RegistryNodeNotFoundError,
    RegistryUnreachableError,
    TopicExistsError,
)
from broker.threads import LoopThread
from broker.zk import paths, values
from broker.zk.creations import absent_homes, change_homes, read_homes
from broker.zk.registration import Registration
from broker.zk.replicated_values import decode_endpoints
from broker.zk.security import ZooKeeperSecurity
from broker.zk.session import (
    DEFAULT_REQUEST_TIMEOUT_S,
    DEFAULT_SESSION_TIMEOUT_MS,
    Session,
    SessionState,
)

logger = logging.getLogger(__name__)

_RETRY_S = 1.0
_QUIET_S = 0.3
_POLL_S = 0.01


class RegistryStatus(NamedTuple):
    """State of the session and of the registration.

    Attributes:
        session_id: hexadecimal as in ZooKeeper's own tools, None without a connection.
        is_registered: whether a broker and all its topics are, as far as is known: not while the
            connection is away for longer than the session timeout.
        error: of the last attempt to register them.
    """

    state: SessionState
    session_id: str | None
    is_registered: bool
    error: str | None


class _Wake(Enum):
    """Events of the worker, besides changes of the session's state."""

    TOPIC = auto()
    NODES = auto()  # of this broker, which may be gone
    STOP = auto()


class Registry:
    """The brokers and topics of a cluster, in ZooKeeper.

    Methods may be called from any thread but kazoo's own (that is, not from a `watch`).
    They raise `RegistryUnreachableError` if ZooKeeper does not respond in time, and
    `CoordinationError` for a malformed node.

    Attributes:
        session: the session with ZooKeeper, for other nodes; started and stopped with the registry.

    Args:
        connect: `host:port,host:port[/chroot]`; `ConfigError` if it is malformed.
        session_timeout_ms: the server removes this broker after so long without a heartbeat.
        request_timeout_s: how long a request waits for the connection and the response.
        security: what the session proves itself with.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
        request_timeout_s: float = DEFAULT_REQUEST_TIMEOUT_S,
        security: ZooKeeperSecurity | None = None,
        speaks_tls: bool = False,
    ) -> None:
        self.speaks_tls = speaks_tls
        self._events: queue.SimpleQueue[SessionState | _Wake] = queue.SimpleQueue()
        self.session: Session = Session(
            connect,
            session_timeout_ms=session_timeout_ms,
            request_timeout_s=request_timeout_s,
            on_state_change=self._events.put,
            security=security,
        )
        self.expiration_count: int = 0
        """Sessions that ended although this process wanted to keep them."""
        self._registration = Registration(
            self.session,
            session_timeout_ms=session_timeout_ms,
            on_change=lambda: self._events.put(_Wake.NODES),
        )
        self._is_away = False
        self._away_since_s: float | None = None
        self._stopped = threading.Event()
        self._reported_error = ""
        self._worker = LoopThread(self._work, name="registry")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, timeout_s: float = 10.0, *, retries_refused: bool = True) -> None:
        """Connect, and wait until the session is established.

        Args:
            timeout_s: the longest wait. A broker that loses the connection while it is being
                registered retries for as long.
            retries_refused: wait as long, too, if every server refuses connections.
        """
        self._registration.extend_start(timeout_s)
        self.session.start(timeout_s, retries_refused=retries_refused)
        self._worker.start()

    def prepare_stop(self, wait_s: float) -> bool:
        """Register nothing from now on, and wait no more for a connection that is away.

        Before that it waits for one for up to `wait_s`; returns whether there is a connection.
        """
        self._registration.own.close()
        return self.session.prepare_stop(wait_s)

    def stop(self) -> None:
        """End the session, which deletes its ephemeral nodes; a second call does nothing."""
        self._registration.own.close()
        self._stopped.set()
        self.session.stop()
        if self._worker.is_alive():
            self._events.put(_Wake.STOP)
            self._worker.join()

    @property
    def connect(self) -> str:
        """Return the connect string, `host:port,host:port[/chroot]`."""
        return self.session.connect

    @property
    def state(self) -> SessionState:
        """Return the state of the session."""
        return self.session.state

    @property
    def status(self) -> RegistryStatus:
        """Return the present state of session and registration."""
        session_id = self.session.session_id
        error = self._registration.error
        is_registered = self._registration.broker is not None and self._registration.is_complete
        return RegistryStatus(
            state=self.state,
            session_id=None if session_id is None else f"0x{session_id & (1 << 64) - 1:x}",
            is_registered=is_registered and not self._may_have_expired(),
            error=None if error is None else str(error),
        )

    def _may_have_expired(self) -> bool:
        """Return whether the connection is away for longer than the session lasts without it."""
        since_s = self._away_since_s
        return since_s is not None and time.monotonic() > since_s + self.session.session_timeout_s

    def join_cluster(self, proposed_id: str) -> str:
        """Return the id of the cluster; one without an id gets the proposed one.

        The broker is registered with this cluster only, also after an expired session. If ZooKeeper
        has lost the id by then, it gets it again.
        """
        return self._registration.join_cluster(proposed_id)

    @property
    def broker_epoch(self) -> int | None:
        """Return the number of this registration of the broker, None before the first."""
        return self._registration.broker_epoch

    @property
    def registry_id(self) -> int:
        """Return a number that changes if ZooKeeper loses its data; 0 before `join_cluster`."""
        return self._registration.own.registry_id

    def register_broker(
        self,
        broker_id: int,
        host: str,
        port: int,
        *,
        creator: str,
        rack: str = "",
        is_clean: bool = False,
        has_replicas: Callable[[], bool] = lambda: False,
        on_assigned: Callable[[str, int], object] = lambda _topic, _count: None,
        endpoints: tuple[Endpoint, ...] = (),
    ) -> None:
        """Register this process's broker, and again after each expired session.

        A node left by an earlier run of the same broker is replaced. If it may belong to a live
        broker (same creator at another address, or the reverse), its session gets time to expire.

        Args:
            broker_id: 0 or more.
            host: the address clients connect to.
            port: the port clients connect to.
            creator: `<host>-<milliseconds>`, made once for a data directory and kept in it.
            rack: the broker's rack, empty if unknown.
            is_clean: whether the logs are as they were when the broker was last registered; if not,
                it leaves the in-sync replicas of its partitions. See `mark_clean`.
            has_replicas: returns whether it has logs of replicas. The controller asks such a broker
                about them even if it knows of no topic with replicas.
            on_assigned: called with a topic recorded as of this broker that it does not have, and
                the number of its partitions here; in the worker's thread.
            endpoints: of all its listeners, that for other brokers first; empty if there is only
                the plain one of `host` and `port`.

        Raises:
            RegistryConflictError: another broker has the id; the message names it.

        Source: Kafka 0.7 `ZkUtils.registerBrokerInZk`, which refuses a fast restart as well.
        """
        info = values.BrokerInfo(broker_id, host, port, creator)
        self._registration.on_assigned = on_assigned
        self._registration.own.has_replicas = has_replicas
        self._registration.own.endpoints = endpoints
        self._registration.register_broker(info, rack=rack, is_clean=is_clean)
        self._events.put(_Wake.TOPIC)  # topics may have been added before the broker

    def mark_clean(self) -> None:
        """Record that the controller knows of an unclean start: the process has lost nothing since.

        Returns at once. Called when the controller's first states have come.
        """
        self._registration.mark_clean()
        self._events.put(_Wake.TOPIC)

    def register_topic(
        self,
        topic: str,
        partition_count: int,
        *,
        creation_id: str | None = None,
        is_new: bool = False,
    ) -> None:
        """Have the worker register a topic of this broker, now and after each expired session.

        Returns at once; `await_registered` waits for it. Takes effect after `register_broker`.

        Args:
            topic: its name.
            partition_count: how many partitions of it this broker has.
            creation_id: differs from that of former topics of the same name; None if unknown.
            is_new: it has just been created: offsets stored until now are not of this topic.
        """
        self._registration.add_topic(topic, partition_count, creation_id=creation_id, is_new=is_new)
        self._events.put(_Wake.TOPIC)

    def create_topic(self, topic: str, homes: Mapping[int, int], timeout_s: float) -> None:
        """Record the partitions that a topic without replicas gets on brokers; wait for these.

        A home that is not live gets its part when it is back; one that is slow is not waited for
        beyond the timeout. `TopicExistsError` if one has the topic.
        """

        def added(before: dict[int, int]) -> dict[int, int]:
            if present := before.keys() & homes.keys():
                raise TopicExistsError(
                    f"topic '{topic}' exists on broker {', '.join(map(str, sorted(present)))}"
                )
            return before | dict(homes)

        recorded = change_homes(self.session, {topic: added})[topic]
        with suppress(RegistryConflictError):
            self.session.create(paths.topic(topic))  # by which brokers learn of it
        give_up_s = time.monotonic() + timeout_s
        while time.monotonic() < give_up_s:
            live = recorded.keys() & set(self._live_broker_ids())
            if live <= set(values.broker_ids(self.session.children_if_any(paths.topic(topic)))):
                return
            self._stopped.wait(_POLL_S)

    def note_assigned(self, topics: Collection[str]) -> None:
        """Have the worker create topics recorded as of this broker that it does not have.

        Returns at once.
        """
        self._registration.note_assigned(topics)
        self._events.put(_Wake.TOPIC)

    def deregister_topic(self, topic: str) -> None:
        """Have the worker remove a topic of this broker, if it is registered; returns at once.

        The topic's own node stays: other brokers may have it.
        """
        self._registration.remove_topic(topic)
        self._events.put(_Wake.TOPIC)

    def await_registered(self, timeout_s: float = 10.0) -> None:
        """Wait until the broker and all its topics are registered.

        Raises the `CoordinationError` of the last attempt, or one about the time limit.
        """
        if not self._registration.await_complete(timeout_s):
            raise self._registration.error or RegistryUnreachableError(
                f"registration at {self.connect} is not complete after {timeout_s:g}s"
            )

    def deregister_broker(self) -> None:
        """Remove this broker and its topics from the registry for good.

        The first step of a controlled shutdown: clients turn to other brokers while this one still
        serves. Topics are removed first, as 0.7's consumers watch only those. On a
        `CoordinationError` some node may remain until the session ends.
        """
        self._registration.deregister()

    def brokers(self) -> list[values.BrokerInfo]:
        """Return the live brokers, sorted by id; one with a malformed node is left out."""
        nodes = map(paths.broker, self._live_broker_ids())
        found = values.decode_brokers(self.session.get_many(nodes))
        return list(self._reached(found).values())

    def _reached(self, brokers: dict[int, values.BrokerInfo]) -> dict[int, values.BrokerInfo]:
        """Return brokers with the addresses that a client of this registry connects to."""
        if not self.speaks_tls:
            return brokers
        nodes = {paths.replicated_broker(one): one for one in brokers}
        for path, (value, _) in self.session.get_many(nodes).items():
            endpoints = decode_endpoints(nodes[path], value)
            brokers[nodes[path]] = brokers[nodes[path]]._replace(endpoints=endpoints).at_tls()
        return brokers

    def broker(self, broker_id: int) -> values.BrokerInfo:
        """Return a live broker; `RegistryNodeNotFoundError` if there is none with this id."""
        try:
            value, _ = self.session.get(paths.broker(broker_id))
        except RegistryNodeNotFoundError as error:
            raise RegistryNodeNotFoundError(f"no broker {broker_id} is registered") from error
        return self._reached({broker_id: values.decode_broker(broker_id, value)})[broker_id]

    def topics(self) -> list[str]:
        """Return the names of all topics ever created, sorted."""
        return self.session.children_if_any(paths.TOPICS)

    def topic_partitions(self, topic: str) -> dict[int, int]:
        """Return how many partitions of a topic each live broker has registered, by its id.

        An unknown topic has no brokers.
        """
        return self.partitions_of([topic])[topic]

    def partitions_of(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """Return how many partitions of each topic each live broker has registered.

        An unknown topic has no brokers.
        """
        live = set(self._live_broker_ids())
        homes = {paths.topic(topic): topic for topic in topics}
        nodes = {
            paths.topic_broker(homes[path], broker_id): (homes[path], broker_id)
            for path, names in self.session.children_many(homes).items()
            for broker_id in values.broker_ids(names)
            if broker_id in live
        }
        counts: dict[str, dict[int, int]] = {topic: {} for topic in homes.values()}
        for path, (value, _) in self.session.get_many(nodes).items():
            topic, broker_id = nodes[path]
            counts[topic][broker_id] = values.decode_number(value, f"value of {path}")
        return counts

    def homes_of(
        self, topics: Iterable[str], *, live_only: bool = False
    ) -> dict[str, dict[int, int]]:
        """Return how many partitions of each topic each broker has, live or not.

        Of a topic with replicas these are the live home brokers. An unknown topic has none.
        """
        registered = self.partitions_of(topics)
        recorded = read_homes(self.session, registered)
        if live_only and recorded:
            live = self._live_broker_ids()
            recorded = {
                topic: {home: count for home, count in homes.items() if home in live}
                for topic, homes in recorded.items()
            }
        return {topic: recorded.get(topic, {}) | homes for topic, homes in registered.items()}

    def absent_homes(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Return the brokers that have each topic and are not live.

        A topic of which no broker has left a record, as those of Kafka 0.7, has no list.
        """
        return absent_homes(self.session, topics, self._live_broker_ids())

    def _live_broker_ids(self) -> list[int]:
        return values.broker_ids(self.session.children_if_any(paths.BROKER_IDS))

    def _work(self) -> None:
        """Worker thread: keep the broker registered and run the callbacks, until stopped."""
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
            except Exception:  # the thread must not end: without it nothing is registered again
                logger.exception("the registry's worker failed")
                retry_s = _RETRY_S

    def _handle(self, event: SessionState | _Wake) -> float | None:
        """Handle an event; return after how many seconds to retry, None if all is registered."""
        if event is _Wake.NODES:
            self._stopped.wait(_QUIET_S)  # a client that deletes nodes may delete more in a moment
        if event is SessionState.CONNECTED:
            self._away_since_s = None
        if event is SessionState.SUSPENDED:
            self._is_away = True
            self._away_since_s = time.monotonic()
            logger.warning("connection to ZooKeeper at %s lost", self.connect)
        if event is SessionState.LOST:
            self._is_away = True
            self.expiration_count += 1
            logger.warning("session with ZooKeeper at %s expired", self.connect)
            self._registration.forget_session()
        retry_s = self._synchronize()
        if event is SessionState.CONNECTED and self._is_away:
            self._is_away = False
            logger.info("connected to ZooKeeper at %s again", self.connect)
        return retry_s

    def _synchronize(self) -> float | None:
        if self.state is not SessionState.CONNECTED:
            return None  # a change of state will follow
        try:
            self._registration.synchronize()
        except CoordinationError as error:
            if str(error) != self._reported_error:
                self._reported_error = str(error)
                logger.error("broker not registered, retrying: %s", error)
            return _RETRY_S
        self._reported_error = ""
        return None
