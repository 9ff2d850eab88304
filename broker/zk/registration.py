"""Keeping one broker registered: its id node and a node for each of its topics.

Holds what should stand in the registry and makes it so, again after each new session. Who calls
when, and from which thread, is the subject of `registry`.

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

# Servers end sessions at the next tick after the time-out, and not before they have a leader.
_EXPIRY_SLACK = 1.5


class Registration:
    """What one broker wants to have in the registry, and how much of it stands.

    Args:
        session: the session the nodes belong to.
        session_timeout_ms: after so long the nodes of a former life are gone.
    """

    def __init__(self, session: Session, *, session_timeout_ms: int) -> None:
        self._session = session
        self._wait_limit_s = session_timeout_ms / 1000 * _EXPIRY_SLACK
        self._work = threading.Lock()  # one writer of nodes at a time
        self._changed = threading.Condition()  # guards the fields below
        self._broker: BrokerInfo | None = None
        self._topics: dict[str, int] = {}
        self._standing_topics: dict[str, int] = {}
        self._standing_session: int | None = None
        self._error: CoordinationError | None = None
        self._nudge = threading.Event()
        self._is_closed = False

    @property
    def broker(self) -> BrokerInfo | None:
        """Return the broker that is, or should be, registered."""
        return self._broker

    @property
    def error(self) -> CoordinationError | None:
        """Return why the last attempt failed, `None` if it did not."""
        return self._error

    @property
    def is_complete(self) -> bool:
        """Return whether all that should be in the registry was put there in this session."""
        with self._changed:
            return self._is_complete()

    def _is_complete(self) -> bool:
        """Caller holds `_changed`."""
        if self._broker is None:
            return True
        is_current = self._standing_session is not None
        return is_current and self._topics == self._standing_topics

    def register_broker(self, info: BrokerInfo) -> None:
        """Register a broker; see `Registry.register_broker`."""
        with self._work:
            self._register_broker(info)
            with self._changed:
                self._broker = info
                self._changed.notify_all()

    def want_topic(self, topic: str, count: int) -> None:
        """Note that a topic is to be registered, which `bring_up_to_date` does."""
        with self._changed:
            self._topics[topic] = count

    def forget_topic(self, topic: str) -> None:
        """Note that a topic is not to be registered, which `bring_up_to_date` sees to."""
        with self._changed:
            self._topics.pop(topic, None)

    def bring_up_to_date(self) -> None:
        """Register what is not registered in the present session, and remove what should not be.

        Raises:
            RegistryConflictError: another broker has taken the id.
            CoordinationError: the registry could not be reached, or refused.
        """
        with self._work:
            try:
                self._bring_up_to_date()
            except CoordinationError as error:
                with self._changed:
                    self._error = error
                raise
            with self._changed:
                self._error = None
                self._changed.notify_all()

    def _bring_up_to_date(self) -> None:
        """Caller holds `_work`."""
        broker = self._broker
        if broker is None:
            return
        if self._session.session_id != self._standing_session:
            self._register_broker(broker)
        with self._changed:
            missing = dict(self._topics.items() - self._standing_topics.items())
            surplus = self._standing_topics.keys() - self._topics.keys()
        if surplus:
            self._session.delete_many(paths.topic_broker(topic, broker.id) for topic in surplus)
            with self._changed:
                for topic in surplus:
                    self._standing_topics.pop(topic, None)
        if missing:
            self._register_topics(broker.id, missing)

    def forget_session(self) -> None:
        """Note that the session, and with it all that was registered, is gone."""
        with self._changed:
            self._standing_session = None
            self._standing_topics = {}

    def await_complete(self, timeout_s: float) -> bool:
        """Wait until all that should be in the registry is, and return whether it is."""
        with self._changed:
            return self._changed.wait_for(self._is_complete, timeout_s)

    def deregister(self) -> None:
        """Remove the topic nodes, then the id node, and want none of them any more.

        Raises:
            CoordinationError: some node may be left; it goes with the session.
        """
        with self._changed:
            broker, self._broker = self._broker, None
            self._topics = {}
        if broker is None:
            return
        # Not worth waiting for: without a connection the session ends soon, and the nodes with it.
        if self._session.state is not SessionState.CONNECTED:
            raise RegistryUnreachableError("no connection to ZooKeeper: nodes left to expire")
        with self._work:
            nodes = [paths.topic_broker(topic, broker.id) for topic in self._standing_topics]
            self._session.delete_many(nodes)
            self._delete_own(paths.broker(broker.id))
            self.forget_session()

    def close(self) -> None:
        """End any wait, and register nothing from now on."""
        self._is_closed = True
        self._nudge.set()

    def _register_broker(self, info: BrokerInfo) -> None:
        """Put the id node there; caller holds `_work`."""
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
            self._standing_session = session_id
            self._standing_topics = {}

    def _try_register_broker(self, info: BrokerInfo, deadline_s: float) -> bool:
        """Return whether the id node is ours; if not, it is worth another try.

        After a lost connection a node of our own session may be found: the first try's.
        """
        if self._is_closed:
            raise RegistryUnreachableError("the registry was stopped")
        path = paths.broker(info.id)
        try:
            self._session.create(path, encode_broker(info), ephemeral=True)
        except RegistryConflictError:
            with contextlib.suppress(RegistryNodeNotFoundError):
                return self._settle_conflict(info, *self._session.get(path), deadline_s)
            return False
        return True

    def _settle_conflict(
        self, info: BrokerInfo, value: bytes, stat: NodeStat, deadline_s: float
    ) -> bool:
        """Deal with an id node that is there already, and return whether it is ours now.

        The same creator at the same address is a former life of this broker: its node is replaced.
        With only one of the two equal (the port was changed, the data directory is new or a copy)
        the holder may be alive, so its session gets the chance to end.
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
            "waiting up to %.0f s for the former registration of broker %d (%s) to end",
            timeout_s,
            holder.id,
            holder.address,
        )
        self._nudge.clear()
        if not self._is_closed and self._session.exists(path, watch=self._nudge.set):
            self._nudge.wait(timeout_s)

    def _register_topics(self, broker_id: int, topics: dict[str, int]) -> None:
        """Put topic nodes there; caller holds `_work`.

        The id node is ours, so a node that another session left behind is of a former life. It
        is replaced even if its value is right, as it would go with that session.
        """
        nodes = {
            paths.topic_broker(topic, broker_id): encode_number(count)
            for topic, count in topics.items()
        }
        for path in self._session.create_many(nodes):
            self._take_over(path, nodes[path])
        with self._changed:
            self._standing_topics.update(topics)

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
