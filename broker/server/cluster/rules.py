"""Follows the rules in ZooKeeper: the broker judges by the last ones that it has read."""

from __future__ import annotations

import logging
from collections.abc import Callable

from broker.clock import Clock
from broker.errors import CoordinationError
from broker.security.rules import StoredRules
from broker.server.cluster.followed import ZookeeperFollower
from broker.zk.rules import watch_rules
from broker.zk.session import Session

logger = logging.getLogger(__name__)


class RulesFollower(ZookeeperFollower):
    """Reads the rules, and again after each change; malformed ones change nothing."""

    def __init__(
        self, session: Session, clock: Clock, apply: Callable[[StoredRules, int], None]
    ) -> None:
        super().__init__("rules", session)
        self.problem = ""
        """Why the node is not used at present."""
        self.read_ms = 0
        """When it was read, since 1970."""
        self._clock = clock
        self._apply = apply  # called with the rules and their version

    def load(self) -> None:
        """Read and apply the rules, on the calling thread."""
        self._read()

    def _read(self) -> None:
        value, version = watch_rules(self._watched)
        try:
            rules = StoredRules() if value is None else StoredRules.decode(value)
        except CoordinationError as error:
            if self.problem != str(error):
                logger.error("%s; the last good ones stay in effect", error)
            self.problem = str(error)
            return
        self.problem, self.read_ms = "", self._clock.time_ms()
        self._apply(rules, version)
