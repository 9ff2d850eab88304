"""Keeping one broker registered: its id node and a node for each of its topics.

Holds the wanted nodes and creates them, again after each new session. `registry` decides when, and
on which thread.

Source: Kafka 0.7 `KafkaZooKeeper`, `ZkUtils.createEphemeralPathExpectConflict`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time

from broker.errors import (
    CoordinationError,
    RegistryConflictError,
    RegistryNodeNotFoundError,
    RegistryUnreachableError,
)
from broker.zk import paths
from broker.zk.session import NodeStat, Session, SessionState
from broker.zk.values import BrokerInfo, decode_broker, encode_broker, encode_number

logger = logging.getLogger(__name__)

# Servers expire sessions at the next tick after the timeout, and only while they have a leader.
_EXPIRY_SLACK = 1.5


class Registration:
    """The nodes one broker wants in the registry, and those it has created.

    Args:
        session: the session the nodes belong to.
        session_timeout_ms: after so long the nodes of an earlier run expire.
    """

    def __init__(self, session: Session, *, session_timeout_ms: int) -> None:
        self._session = session
        self._wait_limit_s = session_timeout_ms / 1000 * _EXPIRY_SLACK
        self._work = threading.Lock()  # one writer of nodes at a time
        self._changed = threading.Condition()  # guards the fields below
        self._broker: BrokerInfo | None = None
        self._topics: dict[str, int] = {}
        self._registered_topics: dict[str, int] = {}
        self._registered_session: int | None = None
        self._error: CoordinationError | None = None
        self._wakeup = threading.Event()
        self._is_closed = False

    @property
    def broker(self) -> BrokerInfo | None:
        """Return the broker that is, or should be, registered."""
        return self._broker

    @property
    def error(self) -> CoordinationError | None:
        """Return the error of the last attempt, None if it succeeded."""
        return self._error

    @property
    def is_complete(self) -> bool:
        """Return whether all wanted nodes were created in this session."""
        with self._changed:
            return self._is_complete()

    def _is_complete(self) -> bool:
        """Caller holds `_changed`."""
        if self._broker is None:
            return True
        is_current = self._registered_session is not None
        return is_current and self._topics == self._registered_topics

    def register_broker(self, info: BrokerInfo) -> None:
        """Register a broker; see `Registry.register_broker`."""
        with self._work:
            self._register_broker(info)
            with self._changed:
                self._broker = info
                self._changed.notify_all()

    def add_topic(self, topic: str, count: int) -> None:
        """Add a topic to the wanted ones; `synchronize` registers it."""
        with self._changed:
            self._topics[topic] = count

    def remove_topic(self, topic: str) -> None:
        """Remove a topic from the wanted ones; `synchronize` deregisters it."""
        with self._changed:
            self._topics.pop(topic, None)

    def synchronize(self) -> None:
        """Create the wanted nodes missing in the present session, and delete unwanted ones.

        Raises:
            RegistryConflictError: another broker has taken the id.
            CoordinationError: ZooKeeper could not be reached, or refused.
        """
        with self._work:
            try:
                self._synchronize()
            except CoordinationError as error:
                with self._changed:
                    self._error = error
                raise
            with self._changed:
                self._error = None
                self._changed.notify_all()

    def _synchronize(self) -> None:
        """Caller holds `_work`."""
        broker = self._broker
        if broker is None:
            return
        if self._session.session_id != self._registered_session:
            self._register_broker(broker)
        with self._changed:
            missing = dict(self._topics.items() - self._registered_topics.items())
            surplus = self._registered_topics.keys() - self._topics.keys()
        if surplus:
            self._session.delete_many(paths.topic_broker(topic, broker.id) for topic in surplus)
            with self._changed:
                for topic in surplus:
                    self._registered_topics.pop(topic, None)
        if missing:
            self._register_topics(broker.id, missing)

    def forget_session(self) -> None:
        """Record that the session, and with it all nodes, has expired."""
        with self._changed:
            self._registered_session = None
            self._registered_topics = {}

    def await_complete(self, timeout_s: float) -> bool:
        """Wait until all wanted nodes exist; return whether they do."""
        with self._changed:
            return self._changed.wait_for(self._is_complete, timeout_s)

    def deregister(self) -> None:
        """Delete the topic nodes, then the id node, for good.

        Raises:
            CoordinationError: some node may remain until the session ends.
        """
        with self._changed:
            broker, self._broker = self._broker, None
            self._topics = {}
        if broker is None:
            return
        # Without a connection the session expires soon, and the nodes with it.
        if self._session.state is not SessionState.CONNECTED:
            raise RegistryUnreachableError("no connection to ZooKeeper: nodes left to expire")
        with self._work:
            nodes = [paths.topic_broker(topic, broker.id) for topic in self._registered_topics]
            self._session.delete_many(nodes)
            self._delete_own(paths.broker(broker.id))
            self.forget_session()

    def close(self) -> None:
        """End a wait in progress, and register nothing from now on."""
        self._is_closed = True
        self._wakeup.set()

    def _register_broker(self, info: BrokerInfo) -> None:
        """Create the id node; caller holds `_work`."""
        session_id = self._session.session_id
        deadline_s = time.monotonic() + self._wait_limit_s
        is_registered = False
        while not is_registered:
            try:
                is_registered = self._try_register_broker(info, deadline_s)
            except RegistryUnreachableError:
                if self._is_closed or time.monotonic() >= deadline_s:
                    raise
        with self._changed:
            self._registered_session = session_id
            self._registered_topics = {}

    def _try_register_broker(self, info: BrokerInfo, deadline_s: float) -> bool:
        """Return whether the id node is ours; if not, try again.

        After a lost connection, the node may be our own from the first attempt.
        """
        if self._is_closed:
            raise RegistryUnreachableError("the registry was stopped")
        path = paths.broker(info.id)
        try:
            self._session.create(path, encode_broker(info), ephemeral=True)
        except RegistryConflictError:
            with contextlib.suppress(RegistryNodeNotFoundError):
                return self._resolve_conflict(info, *self._session.get(path), deadline_s)
            return False
        return True

    def _resolve_conflict(
        self, info: BrokerInfo, value: bytes, stat: NodeStat, deadline_s: float
    ) -> bool:
        """Handle an existing id node; return whether it is ours now.

        The same creator at the same address is an earlier run of this broker: its node is
        replaced. With only one of the two equal (the port was changed, or the data directory is
        new or a copy) the holder may be alive, so its session gets time to expire.
        """
        path = paths.broker(info.id)
        if stat.ephemeral_owner == self._session.session_id:
            if value != encode_broker(info):
                self._session.set(path, encode_broker(info))
            return True
        holder = decode_broker(info.id, value)
        if holder == info:
            with contextlib.suppress(RegistryConflictError):
                self._session.replace_ephemeral(path, value, version=stat.version)
                return True
            return False
        if holder.creator == info.creator or holder.address == info.address:
            remaining_s = deadline_s - time.monotonic()
            if remaining_s > 0:
                self._await_end_of(path, holder, remaining_s)
                return False
        raise RegistryConflictError(
            f"broker id {info.id} is already registered by {holder.address}"
            f" (creator {holder.creator})"
        )

    def _await_end_of(self, path: str, holder: BrokerInfo, timeout_s: float) -> None:
        logger.info(
            "waiting up to %.0f s for the former registration of broker %d (%s) to expire",
            timeout_s,
            holder.id,
            holder.address,
        )
        self._wakeup.clear()
        if not self._is_closed and self._session.exists(path, watch=self._wakeup.set):
            self._wakeup.wait(timeout_s)

    def _register_topics(self, broker_id: int, topics: dict[str, int]) -> None:
        """Create topic nodes; caller holds `_work`.

        The id node is ours, so a node of another session is from an earlier run. It is replaced
        even if its value is right, as it would expire with that session.
        """
        nodes = {
            paths.topic_broker(topic, broker_id): encode_number(count)
            for topic, count in topics.items()
        }
        for path in self._session.create_many(nodes):
            self._take_over(path, nodes[path])
        with self._changed:
            self._registered_topics.update(topics)

    def _take_over(self, path: str, value: bytes) -> None:
        try:
            stat = self._session.get(path)[1]
        except RegistryNodeNotFoundError:
            self._session.create(path, value, ephemeral=True)
            return
        if stat.ephemeral_owner == self._session.session_id:
            self._session.set(path, value)
        else:
            self._session.replace_ephemeral(path, value, version=stat.version)

    def _delete_own(self, path: str) -> None:
        with contextlib.suppress(RegistryNodeNotFoundError):
            if self._session.get(path)[1].ephemeral_owner == self._session.session_id:
                self._session.delete(path)
