"""The keys of the cluster at a running broker: in ZooKeeper, in its data directory, in its proofs.

The first broker of a cluster makes the key. A broker that has never been in one has no key.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.endpoints import Endpoint
from broker.errors import ConfigError, CoordinationError
from broker.files import open_file, write_atomically
from broker.log.data_directory import CLUSTER_KEY_NAME
from broker.security.cluster_keys import CLUSTER_PROOF, BrokerIdentity, ClusterKeys, new_key
from broker.security.mechanisms import ServerMechanisms

if TYPE_CHECKING:
    from broker.security.cluster_proof import BrokerProof
    from broker.server.cluster.followed import ClusterKeyFollower
    from broker.zk.session import Session

logger = logging.getLogger(__name__)

_KEY_FILE_MODE = 0o600


@dataclass(eq=False)
class ClusterKeyStore:
    """The keys that a broker accepts, and its halves of the proof; for any thread.

    Args:
        config: of the broker.
        clock: for the age of keys.
        epoch: returns the broker's registration, -1 before it.
        known_epoch: returns the registration of another broker as told last, None if unknown.
        endpoints: returns what others dial, of each listener.
    """

    config: BrokerConfig
    clock: Clock
    _: KW_ONLY
    epoch: Callable[[], int]
    known_epoch: Callable[[int], int | None]
    endpoints: Callable[[], Sequence[Endpoint]]

    def __post_init__(self) -> None:
        self.stored_epoch: Callable[[int], int | None] | None = None
        """Looks up a broker's registration in ZooKeeper; None without ZooKeeper."""
        self._me = self.config.broker_id
        self._cluster_id = ""
        self._keys = ClusterKeys(())
        self._file = Path()
        self.follower: ClusterKeyFollower | None = None

    @property
    def key_ids(self) -> list[str]:
        """Return the ids of the keys that are accepted now, the one to choose first."""
        return [one.id.hex() for one in self._keys.accepted(self.clock.time_ms())]

    def open(self, directory: Path, cluster_id: str, session: Session | None) -> None:
        """Read the keys, or make them; `ConfigError` if they are another cluster's, or readable."""
        self._file = directory / CLUSTER_KEY_NAME
        self._cluster_id = cluster_id
        kept = self._read_file()
        if session is None:
            self._keys = kept or self._keys
        else:
            # late: kazoo, which a broker may do without
            from broker.server.cluster.followed import ClusterKeyFollower

            self.follower = ClusterKeyFollower(session, self._first_keys, self._use)
            self._keys = self.follower.load(kept)
            if kept is not None and not self._keys.replaces(kept):
                raise ConfigError(
                    f"the keys of the cluster in ZooKeeper ({self._keys.ids_text()}) are not those "
                    f"in {self._file} ({kept.ids_text()}): is zk.connect right? If ZooKeeper's are "
                    "to be used, remove the file"
                )
        if self._keys != (kept or ClusterKeys(())):
            self._write_file()
        if self._keys.keys:
            import broker.security.cluster_proof  # noqa: F401  # before threads of requests need it

    def _first_keys(self) -> ClusterKeys:
        """Return the keys for a cluster that has none."""
        return self._keys if self._keys.keys else ClusterKeys((new_key(self.clock.time_ms()),))

    def _use(self, keys: ClusterKeys) -> None:
        """Use the keys that stand in ZooKeeper now, if they are of this cluster."""
        if keys == self._keys:
            return
        if not keys.replaces(self._keys):
            logger.error(
                "the keys of the cluster in ZooKeeper (%s) replace none of this broker's (%s): "
                "they are not used",
                *(keys.ids_text(), self._keys.ids_text()),
            )
            return
        self._keys = keys
        logger.info("the keys of the cluster are %s now", keys.ids_text())
        self._write_file()

    def proof_to(self, broker_id: int, endpoint: Endpoint) -> BrokerProof:
        """Return how this broker proves itself to another one, at one of its endpoints."""
        from broker.security.cluster_proof import BrokerProof  # `open` has imported it

        return BrokerProof(self._own, broker_id, endpoint.listener, endpoint.address)

    def doors(self, listener: str) -> ServerMechanisms:
        """Return how other brokers prove themselves to this one, at one of its listeners."""
        if not self._keys.keys:
            return {}
        from broker.security.cluster_proof import Door  # `open` has imported it

        endpoint = partial(self._endpoint_of, listener)
        return {CLUSTER_PROOF: Door(self._own, listener, endpoint, self._is_registered).serve}

    def _endpoint_of(self, listener: str) -> str:
        return next((one.address for one in self.endpoints() if one.listener == listener), "")

    def _own(self) -> BrokerIdentity:
        keys = self._keys.accepted(self.clock.time_ms())
        return BrokerIdentity(self._me, self.epoch(), self._cluster_id, keys)

    def _is_registered(self, broker_id: int, epoch: int) -> bool:
        known = self.epoch() if broker_id == self._me else self.known_epoch(broker_id)
        if known == epoch:
            return True
        if self.stored_epoch is None:
            return known is None
        try:
            return self.stored_epoch(broker_id) == epoch
        except CoordinationError as error:
            logger.warning("broker %d is not recognised: %s", broker_id, error)
            return False

    def _read_file(self) -> ClusterKeys | None:
        try:
            fd = open_file(self._file, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigError(f"cannot read {self._file}: {error.strerror}") from error
        with os.fdopen(fd, "rb") as file:
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            if mode & 0o077:
                raise ConfigError(
                    f"{self._file} can be read by others (mode {mode:04o}): who may have read it "
                    "can give orders to brokers; run chmod 600, and rotate the key of the cluster"
                )
            return ClusterKeys.decode(file.read(), str(self._file))

    def _write_file(self) -> None:
        try:
            write_atomically(self._file, self._keys.encode(), _KEY_FILE_MODE)
        except OSError as error:
            logger.warning("cannot keep the keys of the cluster in %s: %s", self._file, error)
