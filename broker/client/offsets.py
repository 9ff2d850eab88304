"""Where a group's offsets are kept: the interface, and the registry as 0.7 uses it.

A store is told positions and remembers them; who owns a partition, and whether a position may be
committed at all, is not its subject.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from broker.client.group_message import GroupMessage, inner_index
from broker.errors import CoordinationError
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.values import decode_number, encode_number

logger = logging.getLogger(__name__)

UNREADABLE_OFFSET = -1
"""Stands for a stored offset that is no number: out of range on every broker."""


class Position(NamedTuple):
    """How far a group has come in a partition.

    `offset` is where to fetch next: a byte position at an entry's start. Of the compressed set
    that lies there, `inner_count` messages are finished already; 0.7's stores cannot say that.
    """

    offset: int
    inner_count: int = 0


def position_after(message: GroupMessage) -> Position:
    """Return the position once a message, as a stream gave it, and all before it are done."""
    _, _, offset, next_offset, _ = message
    if next_offset != offset:
        return Position(next_offset)
    return Position(offset, inner_index(message) + 1)


class OffsetStore(Protocol):
    """Keeps positions of one group. Methods are called from several threads."""

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Position]:
        """Return the positions of those partitions that have one.

        Raises:
            BrokerError: the store fails.
        """

    def commit(self, positions: Mapping[TopicPartition, Position]) -> set[TopicPartition]:
        """Keep positions, for good.

        Returns:
            The partitions that were left alone as somebody else has moved them since they were
            loaded; loading them again takes note of that.

        Raises:
            BrokerError: the store fails; any of the positions may have been kept.
        """

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Take note that a partition goes on at another offset, which may be a lower one.

        It is called before any message from there is given to the application: when there was no
        offset, or one out of range, and when the application asked for it.

        Raises:
            BrokerError: the store fails.
        """


class _Known(NamedTuple):
    """An offset node as this process last saw or wrote it."""

    offset: int
    version: int


class RegistryOffsets:
    """Keeps offsets in ZooKeeper, in 0.7's nodes and format.

    An offset is replaced only if its node is as this process last saw it, so that a process that
    was frozen and has lost its partitions cannot overwrite what the new owner committed.

    Args:
        session: started.
        group: the group's name.
    """

    def __init__(self, session: Session, group: str) -> None:
        self._session = session
        self._group = group
        self._lock = threading.Lock()  # guards _known
        self._known: dict[TopicPartition, _Known] = {}

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Position]:
        """Return the positions of those partitions that have one.

        An offset that is no number is logged and given as -1, which no broker has.

        Raises:
            RegistryUnreachableError: no answer came in time.
        """
        nodes = {paths.offset(self._group, partition): partition for partition in partitions}
        found = self._session.get_many(nodes)
        positions = {}
        with self._lock:
            for path, partition in nodes.items():
                self._known.pop(partition, None)
                if path in found:
                    value, stat = found[path]
                    offset = _offset_in(value, path)
                    self._known[partition] = _Known(offset, stat.version)
                    positions[partition] = Position(offset)
        return positions

    def commit(self, positions: Mapping[TopicPartition, Position]) -> set[TopicPartition]:
        """Keep the offsets; see `OffsetStore.commit`.

        Raises:
            RegistryUnreachableError: no answer came in time; any of them may have been kept.
        """
        offsets = {partition: position.offset for partition, position in positions.items()}
        with self._lock:
            known = {one: self._known[one] for one in offsets if one in self._known}
        changed = {
            one: offset
            for one, offset in offsets.items()
            if one not in known or known[one].offset != offset
        }
        done = self._replace({one: known[one].version for one in changed if one in known}, offsets)
        done |= self._create({one: at for one, at in changed.items() if one not in known})
        with self._lock:
            self._known.update({one: _Known(offsets[one], done[one]) for one in done})
        return changed.keys() - done.keys()

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Do nothing: the next commit writes whatever the offset is by then."""

    def _replace(
        self, versions: Mapping[TopicPartition, int], offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        nodes = {paths.offset(self._group, partition): partition for partition in versions}
        found = self._session.set_many(
            {
                path: (encode_number(offsets[partition]), versions[partition])
                for path, partition in nodes.items()
            }
        )
        return {nodes[path]: version for path, version in found.items()}

    def _create(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        nodes = {paths.offset(self._group, partition): partition for partition in offsets}
        existing = self._session.create_many(
            {path: encode_number(offsets[partition]) for path, partition in nodes.items()},
            ephemeral=False,
        )
        return {nodes[path]: 0 for path in nodes.keys() - set(existing)}


def _offset_in(value: bytes, path: str) -> int:
    try:
        return decode_number(value, f"offset in {path}")
    except CoordinationError as error:
        logger.error("%s; it is taken for one out of range", error)
        return UNREADABLE_OFFSET
