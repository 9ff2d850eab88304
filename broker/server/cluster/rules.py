"""Follows the rules in ZooKeeper: the broker judges by the last ones that it has read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from broker.clock import Clock
from broker.errors import CoordinationError, RegistryConflictError
from broker.security.rules import NO_VERSION, StoredRules
from broker.server.cluster.followed import ZookeeperFollower
from broker.zk import paths
from broker.zk.rules import watch_rules
from broker.zk.session import Session

logger = logging.getLogger(__name__)


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
        self._session = session
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
