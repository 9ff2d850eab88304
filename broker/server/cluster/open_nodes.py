"""Looks whether nodes of a secured cluster are open to others in ZooKeeper."""

from __future__ import annotations

import logging

from broker.server.cluster.followed import ZookeeperFollower
from broker.units import counted
from broker.zk.acls import open_nodes
from broker.zk.session import Session, SessionState

logger = logging.getLogger(__name__)

_PERIOD_S = 10.0
_SHOWN = 5


class OpenNodesFollower(ZookeeperFollower):
    """Looks at the ACLs of the brokers' nodes, at the start and every 10 s."""

    def __init__(self, session: Session) -> None:
        super().__init__("zookeeper-acls", session, _PERIOD_S)
        self.found: list[str] = []
        """Which nodes are open, and who may do what with each; replaced, never changed in place."""
        self._session = session
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
