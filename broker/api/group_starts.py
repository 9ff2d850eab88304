"""Where a group starts in partitions that it has never read."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from broker.api.values import Start, position_of, positions_of
from broker.client.cluster import Cluster, Connect
from broker.cluster_state import Creation
from broker.consumer.boundaries import BoundaryFinder
from broker.consumer.offset_store import OffsetStore
from broker.positions import Absolute, Mark, OffsetRange, resolve
from broker.topic import MessagePosition, TopicPartition


def reset_of(start: Start) -> str | None:
    """Return 0.7's word for a start that is one end of all partitions; None for other starts."""
    if not isinstance(start, str):
        return None
    found = position_of(start, 0)
    resets = {Mark.EARLIEST: "smallest", Mark.LATEST: "largest"}
    return resets.get(found) if isinstance(found, Mark) else None


class FirstOffsets:
    """An offset store that has a start for partitions without a stored position.

    Partitions that came while the group was reading their topic are read from their beginning.
    """

    def __init__(
        self,
        store: OffsetStore,
        start: Start,
        cluster: Cluster,
        connect: Connect,
        came_later: Callable[[TopicPartition], bool],
    ) -> None:
        self._store = store
        self._start_of = positions_of(start, time.time_ns() // 1_000_000)
        self._cluster = cluster
        self._connect = connect
        self._came_later = came_later

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, MessagePosition]:
        """Return stored positions, or the starts where there are none."""
        found = self._store.load(partitions)
        missing = [one for one in partitions if one not in found and not self._came_later(one)]
        if not missing:
            return found
        with BoundaryFinder(self._cluster, self._connect) as finder:
            return found | {one: self._find(one, finder) for one in missing}

    def _find(self, partition: TopicPartition, finder: BoundaryFinder) -> MessagePosition:
        start = self._start_of(partition) or Mark.LATEST
        if isinstance(start, Absolute):  # in a thread of its own there is no caller to refuse it to
            start = Absolute(start.position, nearest=True)
        return resolve(OffsetRange(start, None), partition, finder).start

    def void_former(self, creations: Mapping[TopicPartition, Creation]) -> None:
        """Void positions of former topics; see `OffsetStore`."""
        self._store.void_former(creations)

    def commit(self, positions: Mapping[TopicPartition, MessagePosition]) -> set[TopicPartition]:
        """Store positions; see `OffsetStore`."""
        return self._store.commit(positions)

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Continue elsewhere; see `OffsetStore`."""
        self._store.restart(partition, offset)
