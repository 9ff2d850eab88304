"""The keys of the cluster in ZooKeeper: made by the first broker, followed by all."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from broker.errors import ConfigError, RegistryConflictError, RegistryNodeNotFoundError
from broker.security.cluster_keys import ClusterKeys
from broker.server.cluster.followed import ZookeeperFollower
from broker.zk import paths
from broker.zk.session import Session

logger = logging.getLogger(__name__)


class ClusterKeyFollower(ZookeeperFollower):
    """Reads the node with the keys; one that is lost while the broker runs is written again."""

    def __init__(
        self,
        session: Session,
        present: Callable[[], ClusterKeys],
        use: Callable[[ClusterKeys], None],
    ) -> None:
        super().__init__("cluster-keys", session)
        self._session = session
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
