"""Assigned partitions, and commits of the positions that the application has finished in them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from broker.client.counts import ConsumerCounts
from broker.cluster_state import Creation
from broker.consumer.membership import Ownership
from broker.consumer.offset_store import OffsetStore
from broker.consumer.partition_reader import PartitionReader
from broker.errors import BrokerError, CoordinationError, RegistryUnreachableError
from broker.threads import StoppableThread
from broker.topic import MessagePosition, TopicPartition

logger = logging.getLogger(__name__)

_MAX_RETRY_S = 1.0
_STARTS_TOGETHER_S = 0.2
_NAMED_MAX = 5
MAX_BATCH = 1000
_BATCH_S = 0.01


@dataclass(eq=False, repr=False, slots=True, kw_only=True)
class AssignedPartition(PartitionReader):
    """A partition from its assignment to its revocation; a later assignment makes a new object.

    Three threads use it, each with attributes of its own: the fetcher thread fetches ahead, the
    application's thread finishes messages, and the committing thread reads `position`. A start of
    -1 is to be found by the fetcher thread.
    """

    thread_id: str
    committed: MessagePosition | None = None  # the position in the store, if it has one
    creation: Creation | None = None  # of its topic, if known
    starts_at_beginning: bool = False  # without an offset, whatever the reset is
    # the offset up to which messages were committed unseen
    committed_ahead: int = field(default=-1, init=False)
    finished: int = field(init=False)  # after the last finished message; -1 at first
    # of the next fetch; None until the fetcher has listed the reset offset
    fetch_offset: int | None = field(init=False)
    seek_offset: int | None = field(default=None, init=False)  # set by a seek for the fetcher
    is_revoked: bool = field(default=False, init=False)  # no more of its messages are handed out
    is_released: bool = field(default=False, init=False)  # its positions are committed no more
    # the next message is unreadable, or the offset does not exist
    is_blocked: bool = field(default=False, init=False)
    # by the application; nothing of it is fetched or handed out
    is_paused: bool = field(default=False, init=False)
    # decoded and being handed out, see `Found` of streams; a revocation empties the list
    current_messages: list[Any] = field(default_factory=list, init=False)
    next_inner: int = field(default=0, init=False)  # index of the next one of them in its wrapper
    _inner: MessagePosition = field(init=False)

    def __post_init__(self, start: MessagePosition) -> None:
        PartitionReader.__post_init__(self, start)  # `super` knows no class with slots
        self.finished, self._inner = start.offset, start
        self.fetch_offset = None if self.committed is None else self.committed.offset

    @property
    def read_up_to(self) -> int:
        """Return the offset after the last finished message; -1 if there is none."""
        return self.finished

    @property
    def position(self) -> MessagePosition | None:
        """Return the position to commit, None while there is none."""
        finished, inner = self.finished, self._inner
        if finished == inner.offset >= 0:
            return inner
        return None if self.committed is None and finished < 0 else MessagePosition(finished)

    def finish(self, next_offset: int) -> bool:
        """Mark everything before an offset as processed, so that it may be committed."""
        if self.is_revoked:
            return False  # another member continues at the last commit
        if next_offset > self.offset:  # committing it would lose messages
            raise ValueError(f"messages of {self.partition} were taken up to {self.offset} only")
        self.finished = next_offset
        return True

    def finish_inner(self, position: MessagePosition) -> None:
        """Mark everything before a position, which may be inside a wrapper, as processed."""
        self._inner = position
        self.finished = position.offset

    def restart_at(self, offset: int, inner: int = 0) -> None:
        """Continue at an offset; all messages before it are finished."""
        PartitionReader.restart_at(self, offset, inner)
        self.finished = offset
        self._inner = MessagePosition(offset, inner)
        self.committed_ahead = -1
        self.is_blocked = False

    def rewind(self, position: MessagePosition) -> None:
        """Drop what has come and is not handed out: it is fetched again; what is finished stays."""
        PartitionReader.restart_at(self, *position)
        self.seek_offset = position.offset


_Due = dict[TopicPartition, tuple[AssignedPartition, MessagePosition]]
"""Positions to commit."""


@dataclass(eq=False, repr=False)
class Committer:
    """Writes finished positions to a store, of partitions whose owner nodes still exist.

    `on_lost` is called when the owner node of an assigned partition is gone. After an error some
    positions may have been committed.
    """

    store: OffsetStore
    ownership: Ownership
    on_lost: Callable[[], None]
    counts: ConsumerCounts  # guarded by `_lock`

    def __post_init__(self) -> None:
        self._lock = threading.Lock()  # one commit at a time

    def commit(self, assigned: Iterable[AssignedPartition]) -> set[TopicPartition]:
        """Commit the finished positions that are not committed yet; return the lost partitions."""
        with self._lock:
            return self._commit_owned(_due(assigned))

    def commit_at(self, assigned: AssignedPartition, position: MessagePosition) -> bool:
        """Commit a position, whatever is finished; return False if the partition is lost."""
        with self._lock:
            return not self._commit_owned({assigned.partition: (assigned, position)})

    def commit_ahead(self, assigned: AssignedPartition, offset: int) -> bool:
        """Commit an offset before the messages in front of it are handed out.

        It goes back to `position` when the partition is revoked. Returns False if that has happened
        or the partition is lost.
        """
        with self._lock:
            if assigned.is_revoked:
                return False
            assigned.committed_ahead = offset
            assigned.committed = None  # unknown if the commit fails
            return not self._commit_owned({assigned.partition: (assigned, MessagePosition(offset))})

    def _commit_owned(self, due: _Due) -> set[TopicPartition]:
        if not due:
            return set()
        started_s, counts, lost = time.monotonic(), self.counts, set(due)
        try:
            lost = self._commit_or_lose(due)
        finally:
            counts.commit_times.record(time.monotonic() - started_s)
            if lost:
                counts.failed_commits += 1
            else:
                counts.commits += 1
        return lost

    def _commit_or_lose(self, due: _Due) -> set[TopicPartition]:
        with _named_uncommitted(due):
            owned = self.ownership.owned(due)
            if lost := due.keys() - owned:
                logger.warning("not committed, as no longer owned: %s", _names(lost))
                self.on_lost()
            self._commit({partition: due[partition] for partition in owned})
            return lost

    def salvage(self, assigned: Iterable[AssignedPartition]) -> None:
        """Commit positions of partitions whose owner nodes are gone, where that is safe.

        It is if no other member has created an owner node or committed since.
        """
        with self._lock:
            lost = list(assigned)
            due = _due(lost)
            with _named_uncommitted(due):
                positions = {one.partition: one.position for one in lost}
                free = self.ownership.unowned(positions)
                self.store.commit({one: due[one][1] for one in free & due.keys()})
                stored = self.store.load(free)
                # committed, but not stored any more: ZooKeeper may have lost its data
                missing = {one: positions[one] for one in free - stored.keys()}
                self.store.commit({one: at for one, at in missing.items() if at is not None})

    def _commit(self, due: _Due) -> None:
        positions = {partition: position for partition, (_, position) in due.items()}
        for partition, (assigned, position) in due.items():
            if position.offset < assigned.committed_ahead:
                self.store.restart(partition, position.offset)
        refused = self.store.commit(positions)
        if refused:
            refused = self._overwrite({one: positions[one] for one in refused})
        for partition, (assigned, position) in due.items():
            if partition not in refused:
                assigned.committed = position

    def _overwrite(self, positions: dict[TopicPartition, MessagePosition]) -> set[TopicPartition]:
        """Commit over changed offsets of partitions of this process; return the others."""
        # the change may also be a commit of this process whose response was lost
        owned = self.ownership.owned(positions)
        found = self.store.load(owned)
        for partition in owned:
            if partition in found and found[partition] != positions[partition]:
                logger.warning(
                    "offset %d of %s, written by another process, is replaced by %d",
                    found[partition].offset,
                    partition,
                    positions[partition].offset,
                )
        refused = self.store.commit({partition: positions[partition] for partition in owned})
        if refused:
            raise CoordinationError(
                f"another process keeps changing committed offsets: {_names(refused)}"
            )
        return positions.keys() - owned


def _due(assigned: Iterable[AssignedPartition]) -> _Due:
    due: _Due = {}
    for one in assigned:
        position = one.position
        if position is None or position == one.committed:
            continue
        if position.inner and position.offset < one.committed_ahead:
            continue  # from its start the wrapper's messages would come twice
        due[one.partition] = (one, position)
    return due


@contextmanager
def _named_uncommitted(due: _Due) -> Iterator[None]:
    """Add the positions that were not committed to the error of an unreachable ZooKeeper."""
    try:
        yield
    except RegistryUnreachableError as error:
        wanted = [f"{one} at {position.offset}" for one, (_, position) in sorted(due.items())]
        rest = f" and {len(wanted) - _NAMED_MAX} more" if len(wanted) > _NAMED_MAX else ""
        raise RegistryUnreachableError(
            f"{error}; not committed, so that messages before it may come again: "
            f"{', '.join(wanted[:_NAMED_MAX])}{rest}"
        ) from error


def _names(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))


class AheadCommits(threading.local):
    """Commits as many messages at once as were handled in 10 ms, at least one and at most 1,000.

    So many can be lost for each thread that handles messages, if the process is killed.

    Args:
        commit: commits an offset of a partition; returns False if the partition is lost.
    """

    def __init__(self, commit: Callable[[AssignedPartition, int], bool]) -> None:
        self._commit = commit
        self._count = 0  # of the last batch of this thread
        self._since_s = 0.0

    def commit(self, assigned: AssignedPartition, bounds: Iterable[tuple[int, int]]) -> int:
        """Commit the next messages of a partition, given by offset and next offset.

        A wrapper is committed as a whole, and nothing behind it: its end is the committed offset
        while its messages are handed out, as most stores cannot go back to one of them.

        Returns:
            How many messages may be handed out; 0 if the partition is lost.
        """
        handling_s = max(time.monotonic() - self._since_s, 1e-6)
        wanted = min(MAX_BATCH, 2 * self._count, int(self._count * _BATCH_S / handling_s))
        count, end, is_inside = 0, -1, False
        for count, (offset, next_offset) in enumerate(bounds, 1):
            end, was_inside, is_inside = next_offset, is_inside, next_offset == offset
            if not is_inside and (was_inside or count >= wanted):
                break
        self._count = count if count and self._commit(assigned, end) else 0
        self._since_s = time.monotonic()
        return self._count


class AutoCommit(StoppableThread):
    """A thread that commits at intervals; a failed commit is logged and soon retried.

    Where a new group begins is committed as it begins, not an interval later: the group's lag is
    known from then on, and it goes on from there after a crash.
    """

    def __init__(self, commit: Callable[[], object], interval_s: float) -> None:
        super().__init__("group-commit")
        self._commit = commit
        self._interval_s = interval_s
        self._begins = threading.Event()

    def note_start(self) -> None:
        """Commit soon: a partition is read from an offset that is not committed, as at first."""
        self._begins.set()

    def stop(self) -> None:
        """Ask the thread to stop."""
        super().stop()
        self._begins.set()

    def _loop(self) -> None:
        """Commit until the thread is stopped."""
        wait_s = self._interval_s
        while not self._stopping.is_set():
            if self._begins.wait(wait_s) and self._stopping.wait(min(wait_s, _STARTS_TOGETHER_S)):
                return
            self._begins.clear()
            wait_s = self._interval_s
            try:
                self._commit()
            except BrokerError as error:
                wait_s = min(wait_s, _MAX_RETRY_S)
                logger.warning("%s; trying again in %gs", error, wait_s)
            except Exception:  # the thread must not end: the next commit includes these offsets
                logger.exception("failure while committing offsets")
