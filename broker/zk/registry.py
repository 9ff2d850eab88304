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
from typing import NamedTuple, Self

from broker import errors
from broker.threads import LoopThread, StoppableThread
from broker.zk import paths, values
from broker.zk.creations import absent_homes, change_homes, read_homes
from broker.zk.registration import Registration, Wake
from broker.zk.replicated_values import decode_endpoints
from broker.zk.security import ZooKeeperSecurity
from broker.zk.session import (
    DEFAULT_REQUEST_TIMEOUT_S,
    DEFAULT_SESSION_TIMEOUT_MS,
    Session,
    SessionState,
)
from broker.zk.watched_reads import WatchedReads

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


class Registry(Registration):
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
        self._events: queue.SimpleQueue[SessionState | Wake] = queue.SimpleQueue()
        session = Session(
            connect,
            session_timeout_ms=session_timeout_ms,
            request_timeout_s=request_timeout_s,
            on_state_change=self._events.put,
            security=security,
        )
        self.expiration_count: int = 0
        """Sessions that ended although this process wanted to keep them."""
        super().__init__(session, session_timeout_ms=session_timeout_ms, on_change=self._events.put)
        self._is_away = False
        self._away_since_s: float | None = None
        self._stopped = threading.Event()
        self._reported_error = ""
        self._worker = LoopThread(self._run, name="registry")

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
        self.extend_start(timeout_s)
        self.session.start(timeout_s, retries_refused=retries_refused)
        self._worker.start()

    def prepare_stop(self, wait_s: float) -> bool:
        """Register nothing from now on, and wait no more for a connection that is away.

        Before that it waits for one for up to `wait_s`; returns whether there is a connection.
        """
        self.own.close()
        return self.session.prepare_stop(wait_s)

    def stop(self) -> None:
        """End the session, which deletes its ephemeral nodes; a second call does nothing."""
        self.own.close()
        self._stopped.set()
        self.session.stop()
        if self._worker.is_alive():
            self._events.put(Wake.STOP)
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
        with self._changed:
            error = self._error
            is_registered = self._info is not None and self._is_complete()
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

    def create_topic(self, topic: str, homes: Mapping[int, int], timeout_s: float) -> None:
        """Record the partitions that a topic without replicas gets on brokers; wait for these.

        A home that is not live gets its part when it is back; one that is slow is not waited for
        beyond the timeout. `TopicExistsError` if one has the topic.
        """

        def added(before: dict[int, int]) -> dict[int, int]:
            if present := before.keys() & homes.keys():
                raise errors.TopicExistsError(
                    f"topic '{topic}' exists on broker {', '.join(map(str, sorted(present)))}"
                )
            return before | dict(homes)

        recorded = change_homes(self.session, {topic: added})[topic]
        with suppress(errors.RegistryConflictError):
            self.session.create(paths.topic(topic))  # by which brokers learn of it
        give_up_s = time.monotonic() + timeout_s
        while time.monotonic() < give_up_s:
            live = recorded.keys() & set(self._live_broker_ids())
            if live <= set(values.broker_ids(self.session.children_if_any(paths.topic(topic)))):
                return
            self._stopped.wait(_POLL_S)

    def brokers(self) -> list[values.BrokerNode]:
        """Return the live brokers, sorted by id; one with a malformed node is left out."""
        nodes = map(paths.broker, self._live_broker_ids())
        found = values.decode_brokers(self.session.get_many(nodes))
        return list(self._reached(found).values())

    def _reached(self, brokers: dict[int, values.BrokerNode]) -> dict[int, values.BrokerNode]:
        """Return brokers with the addresses that a client of this registry connects to."""
        if not self.speaks_tls:
            return brokers
        nodes = {paths.replicated_broker(one): one for one in brokers}
        for path, (value, _) in self.session.get_many(nodes).items():
            endpoints = decode_endpoints(nodes[path], value)
            brokers[nodes[path]] = brokers[nodes[path]]._replace(endpoints=endpoints).at_tls()
        return brokers

    def broker(self, broker_id: int) -> values.BrokerNode:
        """Return a live broker; `RegistryNodeNotFoundError` if there is none with this id."""
        try:
            value, _ = self.session.get(paths.broker(broker_id))
        except errors.RegistryNodeNotFoundError as error:
            raise errors.RegistryNodeNotFoundError(
                f"no broker {broker_id} is registered"
            ) from error
        return self._reached({broker_id: values.decode_broker(broker_id, value)})[broker_id]

    def topics(self) -> list[str]:
        """Return the names of all topics, sorted; those of the format kafka have no homes."""
        found = self.session.children_many([paths.TOPICS, paths.REPLICATED_TOPICS])
        return sorted(set().union(*found.values()))

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

    def _run(self) -> None:
        """Worker thread: keep the broker registered and run the callbacks, until stopped."""
        retry_s: float | None = None
        while True:
            try:
                event = self._events.get(timeout=retry_s)
            except queue.Empty:
                event = Wake.TOPIC
            if event is Wake.STOP:
                return
            try:
                retry_s = self._handle(event)
            except Exception:  # the thread must not end: without it nothing is registered again
                logger.exception("the registry's worker failed")
                retry_s = _RETRY_S

    def _handle(self, event: SessionState | Wake) -> float | None:
        """Handle an event; return after how many seconds to retry, None if all is registered."""
        if event is Wake.NODES:
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
            self.forget_session()
        retry_s = self._try_to_synchronize()
        if event is SessionState.CONNECTED and self._is_away:
            self._is_away = False
            logger.info("connected to ZooKeeper at %s again", self.connect)
        return retry_s

    def _try_to_synchronize(self) -> float | None:
        if self.state is not SessionState.CONNECTED:
            return None  # a change of state will follow
        try:
            self.synchronize()
        except errors.CoordinationError as error:
            if str(error) != self._reported_error:
                self._reported_error = str(error)
                logger.error("broker not registered, retrying: %s", error)
            return _RETRY_S
        self._reported_error = ""
        return None


_BROKERS = ""
"""The subject of a read of the brokers; other subjects are topic names."""
_TOPICS = "/"
"""The subject of a read of the list of topics."""


class RegistryChange(NamedTuple):
    """A change of the registry: the live brokers by id, None if they are the same, and counts.

    `counts` are of each topic that has changed: how many partitions each broker has, live or not.
    """

    brokers: dict[int, values.BrokerNode] | None
    counts: dict[str, dict[int, int]]


class WatchedRegistry(StoppableThread):
    """The brokers and topics of the registry as last read, for any number of threads.

    Watches tell of brokers that register, leave or move (their values are compared, KAFKA-474), new
    topics, and partitions added to a topic (KAFKA-1075). While ZooKeeper is unreachable, the last
    known state stays in use.

    Args:
        registry: started before `start` is called.
        name: of the thread that reads changes.
        on_change: called after the first read and after each change, in that thread.
        follows_all: read and watch every topic from the start; else those that `counts` is asked
            for.
        reads_endpoints: read those of brokers, too.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        name: str,
        on_change: Callable[[RegistryChange], None],
        follows_all: bool = False,
        reads_endpoints: bool = False,
    ) -> None:
        super().__init__(name)
        self._watched = WatchedReads(
            registry.session, lambda path: self._dirty.put(_subject_of(path))
        )
        self._on_change = on_change
        self._follows_all = follows_all
        self._reads_endpoints = reads_endpoints
        # replaced, never changed in place, as are the values of _counts: readers need no lock
        self._brokers: dict[int, values.BrokerNode] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._home_zxids: dict[str, int] = {}  # the changes that recorded the homes of topics
        self._reading = threading.Lock()
        self._dirty: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def start(self) -> None:
        """Start the thread that reads brokers and topics, and then their changes."""
        self._dirty.put(_BROKERS)
        if self._follows_all:
            self._dirty.put(_TOPICS)
        super().start()

    def stop(self) -> None:
        """Ask the thread to stop. A read under way ends with the registry's session."""
        super().stop()
        self._dirty.put(None)

    def brokers(self) -> dict[int, values.BrokerNode]:
        """Return the live brokers, by id."""
        return self._brokers

    def read_brokers(self) -> None:
        """Read the brokers in the caller's thread, and watch them."""
        self._read({_BROKERS})

    def counts(self, topic: str) -> dict[int, int]:
        """Return how many partitions of a topic each broker has, live or not.

        The topic is followed from now on.
        """
        counts = self._counts.get(topic)
        if counts is None:
            self._read({topic})
            counts = self._counts[topic]
        return counts

    def _loop(self) -> None:
        """Read changed subjects again, until stopped."""
        is_first, is_told = True, False
        while (subjects := self._next_subjects()) is not None:
            try:
                change = self._read(subjects)
            except Exception as error:
                for subject in subjects:
                    self._dirty.put(subject)
                if not isinstance(error, errors.CoordinationError):
                    raise  # a bug, after which the loop starts again
                if not (self._stopping.wait(_RETRY_S) or is_told):
                    is_told = True
                    logger.warning("cluster metadata may be stale: %s", error)
                continue
            is_told = False
            if change is not None or is_first:
                self._on_change(change or RegistryChange(None, {}))
            is_first = False

    def _next_subjects(self) -> set[str] | None:
        """Wait for changes; return all changed subjects, None at the end."""
        subjects: set[str] = set()
        while not subjects or not self._dirty.empty():
            subject = self._dirty.get()
            if subject is None:
                return None
            subjects.add(subject)
        return subjects

    def _read(self, subjects: set[str]) -> RegistryChange | None:
        """Read subjects and watch them; return the changes, None if there are none."""
        with self._reading:
            topics = subjects - {_BROKERS, _TOPICS}
            if _TOPICS in subjects:
                listed = self._watched.children([paths.TOPICS])[paths.TOPICS]
                topics |= set(listed) - self._counts.keys()
            found, zxids = self._read_counts(topics)
            # also those deleted and created again as they were, since they were read
            counts = {
                name: one
                for name, one in found.items()
                if one != self._counts.get(name) or zxids.get(name) != self._home_zxids.get(name)
            }
            # after the topics: a broker that leaves takes its counts with it
            brokers = self._read_brokers() if _BROKERS in subjects else self._brokers
            has_new_brokers = brokers != self._brokers
            self._brokers = brokers
            self._counts.update(counts)
            self._home_zxids.update(zxids)
        if not counts and not has_new_brokers:
            return None
        return RegistryChange(brokers if has_new_brokers else None, counts)

    def _read_brokers(self) -> dict[int, values.BrokerNode]:
        names = self._watched.children([paths.BROKER_IDS])[paths.BROKER_IDS]
        ids = values.broker_ids(names)
        brokers = values.decode_brokers(self._watched.values([paths.broker(one) for one in ids]))
        if not self._reads_endpoints:
            return brokers
        nodes = {paths.replicated_broker(one): one for one in brokers}
        found = self._watched.values(nodes)
        # registered a moment later; a broker of 0.7 has none
        late = [path for path in nodes if path not in found and self._watched.exists(path)]
        for path, (value, _) in {**found, **self._watched.values(late)}.items():
            try:
                endpoints = decode_endpoints(nodes[path], value)
            except errors.CoordinationError as error:
                logger.warning("the endpoints of broker %d are left out: %s", nodes[path], error)
            else:
                brokers[nodes[path]] = brokers[nodes[path]]._replace(endpoints=endpoints)
        return brokers

    def _read_counts(
        self, topics: Collection[str]
    ) -> tuple[dict[str, dict[int, int]], dict[str, int]]:
        """Return the partitions of topics by broker, and the changes that recorded their homes."""
        parents = {paths.topic(topic): topic for topic in topics}
        children = self._watched.children(parents)
        counts, zxids = self._read_homes(topics)
        nodes = {
            paths.topic_broker(parents[path], broker_id): (parents[path], broker_id)
            for path, names in children.items()
            for broker_id in values.broker_ids(names)
        }
        for path, (value, _) in self._watched.values(nodes).items():
            topic, broker_id = nodes[path]
            try:
                counts[topic][broker_id] = values.decode_number(value, f"value of {path}")
            except errors.CoordinationError as error:
                logger.warning("broker %d left out for topic %s: %s", broker_id, topic, error)
        return counts, zxids

    def _read_homes(
        self, topics: Collection[str]
    ) -> tuple[dict[str, dict[int, int]], dict[str, int]]:
        nodes = {paths.creation_ids(topic): topic for topic in topics}
        homes: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        zxids: dict[str, int] = {}
        for path, (value, stat) in self._watched.values(nodes).items():
            zxids[nodes[path]] = stat.mzxid
            try:
                homes[nodes[path]] = values.decode_homes(path, value)
            except errors.CoordinationError as error:
                logger.warning("only live brokers are known of topic %s: %s", nodes[path], error)
        return homes, zxids


def _subject_of(path: str) -> str:
    """Return the subject that a node belongs to."""
    if path.startswith((paths.BROKER_IDS, paths.REPLICATED_BROKERS)):
        return _BROKERS
    above = paths.CREATION_IDS if path.startswith(paths.CREATION_IDS) else paths.TOPICS
    return path.removeprefix(above).strip("/").partition("/")[0] or _TOPICS
