"""What a broker follows in ZooKeeper while it runs."""

from __future__ import annotations

import logging
import threading
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress

from broker.clock import Clock
from broker.errors import (
    ConfigError,
    CoordinationError,
    RegistryConflictError,
    RegistryNodeNotFoundError,
)
from broker.security.cluster_keys import ClusterKeys
from broker.security.rules import NO_VERSION, StoredRules
from broker.threads import StoppableThread
from broker.units import counted
from broker.zk import paths
from broker.zk.own_broker import open_nodes
from broker.zk.session import Session, SessionState
from broker.zk.settings import watch_rules
from broker.zk.watched_reads import WatchedReads

logger = logging.getLogger(__name__)

_RETRY_S = 1.0


class ZookeeperFollower(StoppableThread):
    """Reads nodes through `_watched`, and again after each change; `name` says what they hold.

    With `period_s` it also reads them that often: ZooKeeper tells nobody of a changed ACL.
    """

    def __init__(self, name: str, session: Session, period_s: float | None = None) -> None:
        super().__init__(name)
        self._session = session
        self._period_s = period_s
        self._changed = threading.Event()
        self._watched = WatchedReads(session, lambda _path: self._changed.set())

    @abstractmethod
    def _read(self) -> None:
        """Read the nodes, watch them, and apply them."""

    def stop(self) -> None:
        """Ask the thread to stop; it ends at once, or when its request fails with the session."""
        super().stop()
        self._changed.set()

    def _loop(self) -> None:
        """Apply changes until the thread is stopped."""
        while True:
            self._changed.wait(self._period_s)
            self._changed.clear()
            if self._stopping.is_set():
                return
            try:
                self._read()
            except CoordinationError as error:
                if not self._stopping.is_set():
                    logger.warning("%s may be out of date: %s; trying on", self.name, error)
                    self._try_later()
            except Exception:  # must not end the thread
                logger.exception("%s could not be applied", self.name)
                self._try_later()

    def _try_later(self) -> None:
        timer = threading.Timer(_RETRY_S, self._changed.set)
        timer.daemon = True
        timer.start()


_PERIOD_S = 10.0
_SHOWN = 5


class OpenNodesFollower(ZookeeperFollower):
    """Looks at the ACLs of the brokers' nodes, at the start and every 10 s."""

    def __init__(self, session: Session) -> None:
        super().__init__("zookeeper-acls", session, _PERIOD_S)
        self.found: list[str] = []
        """Which nodes are open, and who may do what with each; replaced, never changed in place."""
        self._changed.set()

    def _read(self) -> None:
        if self._session.state is not SessionState.CONNECTED:
            return
        found = open_nodes(self._session)
        if found != self.found:
            if found:
                logger.error(
                    "%s of the brokers in ZooKeeper can be changed by others: %s; "
                    "`pylogctl zk secure` closes them",
                    *(counted(len(found), "node"), ", ".join(found[:_SHOWN])),
                )
            else:
                logger.info("the brokers' nodes in ZooKeeper are closed to others again")
        self.found = found


class RulesFollower(ZookeeperFollower):
    """Reads the rules, and again after each change; what nobody may have written changes nothing.

    Nobody deletes the node: `acl remove` leaves one without rules. So one that is gone is written
    again, and one that others made again is not read.
    """

    def __init__(
        self, session: Session, clock: Clock, apply: Callable[[StoredRules, int], None]
    ) -> None:
        super().__init__("rules", session)
        self.problem = ""
        """Why the node is not used at present."""
        self.read_ms = 0
        """When it was read, since 1970."""
        self.vanished_count = 0
        """How often it was found deleted, or made again by others."""
        self._clock = clock
        self._apply = apply  # called with the rules and their version
        self._value: bytes | None = None  # of the node as it was applied last
        self._created = 0  # by which change of ZooKeeper

    def load(self) -> None:
        """Read and apply the rules, on the calling thread."""
        self._read()

    def _read(self) -> None:
        found = watch_rules(self._watched)
        if found is None:
            if self._value is None:
                self._note_read(StoredRules(), NO_VERSION)
            else:
                self._write_again(self._value)
            return
        value, stat = found
        if self._session.sets_acls and self._created != stat.czxid:
            excess = self._session.excess_rights([paths.RULES, paths.CLUSTER_ID])
            found_now = self._session.exists(paths.RULES)
            if found_now is None or found_now.czxid != stat.czxid:
                self._changed.set()  # the ACL may be another node's
                return
            # before `zk secure` all nodes are open, also that which was there at the start
            is_secured = paths.CLUSTER_ID not in excess
            if (others := excess.get(paths.RULES)) and (is_secured or self._created):
                self._note_vanished(f"node {paths.RULES} was made by others: {others}")
                return
        try:
            rules = StoredRules.decode(value)
        except CoordinationError as error:
            self._note_problem(str(error))
            return
        self._value, self._created = value, stat.czxid
        self._note_read(rules, stat.version)

    def _write_again(self, value: bytes) -> None:
        self._note_vanished(f"node {paths.RULES} is gone from ZooKeeper")
        with suppress(RegistryConflictError):  # another broker was faster
            self._session.create(paths.RULES, value)
            logger.warning("node %s was written again with the last good rules", paths.RULES)

    def _note_read(self, rules: StoredRules, version: int) -> None:
        self.problem, self.read_ms = "", self._clock.time_ms()
        self._apply(rules, version)

    def _note_vanished(self, problem: str) -> None:
        self.vanished_count += self.problem != problem
        self._note_problem(problem)

    def _note_problem(self, problem: str) -> None:
        if self.problem != problem:
            logger.error("%s; the last good rules stay in effect", problem)
        self.problem = problem


class ClusterKeyFollower(ZookeeperFollower):
    """Reads the node with the keys; one that is lost while the broker runs is written again."""

    def __init__(
        self,
        session: Session,
        present: Callable[[], ClusterKeys],
        use: Callable[[ClusterKeys], None],
    ) -> None:
        super().__init__("cluster-keys", session)
        self._present = present  # returns the keys of a cluster that has none in ZooKeeper
        self._use = use  # called with the keys after each change

    def load(self, kept: ClusterKeys | None) -> ClusterKeys:
        """Return the keys in ZooKeeper; those of the file, or new ones, if there are none."""
        with suppress(RegistryNodeNotFoundError):
            return self._get()
        with suppress(RegistryConflictError):  # another broker was faster
            self._session.create(paths.CLUSTER_KEYS, (kept or self._present()).encode())
        return self._get()

    def _get(self) -> ClusterKeys:
        self._watched.exists(paths.CLUSTER_KEYS)
        return ClusterKeys.decode(self._session.get(paths.CLUSTER_KEYS)[0], _NODE)

    def _read(self) -> None:
        try:
            self._use(self._get())
        except ConfigError as error:
            logger.error("%s: those of before stay in use", error)
        except RegistryNodeNotFoundError:
            logger.warning("ZooKeeper has lost %s: it is written again", paths.CLUSTER_KEYS)
            with suppress(RegistryConflictError):
                self._session.create(paths.CLUSTER_KEYS, self._present().encode())


_NODE = f"node {paths.CLUSTER_KEYS} of ZooKeeper"
