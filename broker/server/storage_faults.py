"""Replicas whose disk fails reads or writes: another one leads, and this one is mended.

While a log is faulty its replica does not fetch: so it cannot be in sync again, and lead, before
the disk takes and gives messages again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import Executor
from contextlib import suppress

from broker.cluster_state import IsrChange
from broker.errors import ServerError
from broker.replication.leader import Leader
from broker.server.hosted_replica import HostedReplica
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


class StorageFaults:
    """Decides what becomes of replicas with faulty logs.

    Args:
        workers: retry what a disk has refused, as that can take seconds.
    """

    def __init__(self, workers: Executor) -> None:
        self._workers = workers
        self._reported: dict[TopicPartition, tuple[int, bool]] = {}
        self._retried: set[TopicPartition] = set()

    def resignation(self, hosted: HostedReplica, role: Leader) -> IsrChange | None:
        """Return what has another in-sync replica lead instead of a faulty one, which is locked.

        Returns:
            None if there is no other.
        """
        proposal = role.resignation()
        partition = hosted.log.partition
        key = role.info.state.leader_epoch, proposal is not None
        if self._reported.get(partition) != key and (failures := hosted.log.failures()):
            self._reported[partition] = key
            end = (
                "another in-sync replica is to lead"
                if proposal is not None
                else "it is led here nevertheless, as no other replica is in sync"
            )
            logger.error("%s has a faulty log: %s; %s", partition, failures[0], end)
        return proposal

    def retry(self, replicas: Iterable[HostedReplica]) -> None:
        """Begin to see whether disks take and give again what they have refused."""
        for hosted in replicas:
            partition = hosted.log.partition
            if hosted.log.is_faulty and partition not in self._retried:
                self._retried.add(partition)
                self._workers.submit(self._retry, hosted)

    def _retry(self, hosted: HostedReplica) -> None:
        try:
            with suppress(ServerError):  # known, and tried again
                hosted.log.retry_refused()
        finally:
            self._retried.discard(hosted.log.partition)
