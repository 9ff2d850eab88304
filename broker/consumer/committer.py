"""Commits what the application has finished, and nothing that is somebody else's by now."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from broker.consumer.membership import Ownership
from broker.consumer.offset_store import OffsetStore, Position
from broker.consumer.owned import OwnedPartition
from broker.errors import BrokerError, CoordinationError, RegistryUnreachableError
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_MAX_RETRY_S = 1.0
_NAMED_MAX = 5


class Committer:
    """Writes finished positions into a store, guarded by the ownership nodes.

    Args:
        store: where positions are kept.
        ownership: tells what this process still owns.
        on_lost: called when it turns out that a partition is not owned any more.
    """

    def __init__(
        self, store: OffsetStore, ownership: Ownership, on_lost: Callable[[], None]
    ) -> None:
        self._store = store
        self._ownership = ownership
        self._on_lost = on_lost
        self._lock = threading.Lock()  # one commit at a time

    def commit(self, owned: Iterable[OwnedPartition]) -> None:
        """Commit the finished positions that are not committed yet.

        Raises:
            BrokerError: the registry or the store failed; some may have been committed.
        """
        with self._lock:
            due = _due(owned)
            if not due:
                return
            with _naming(due):
                held = self._ownership.held(due)
                if lost := due.keys() - held:
                    logger.warning("not committed, as no longer owned: %s", _names(lost))
                    self._on_lost()
                self._commit({partition: due[partition] for partition in held})

    def salvage(self, owned: Iterable[OwnedPartition]) -> None:
        """Commit positions of partitions whose owner nodes are gone, as far as they still hold.

        They do if nobody owns the partition, and nobody has committed for it since.

        Raises:
            BrokerError: the registry or the store failed; some may have been committed.
        """
        with self._lock:
            due = _due(owned)
            with _naming(due):
                free = self._ownership.unowned(due)
                self._store.commit({one: due[one][1] for one in free})

    def _commit(self, due: dict[TopicPartition, tuple[OwnedPartition, Position]]) -> None:
        positions = {partition: position for partition, (_, position) in due.items()}
        refused = self._store.commit(positions)
        if refused:
            refused = self._overwrite({one: positions[one] for one in refused})
        for partition, (owned, position) in due.items():
            if partition not in refused:
                owned.committed = position

    def _overwrite(self, positions: dict[TopicPartition, Position]) -> set[TopicPartition]:
        """Commit over what somebody else wrote, if the partitions are ours all the same.

        A commit of ours whose answer was lost looks like that too.
        """
        held = self._ownership.held(positions)
        found = self._store.load(held)
        for partition in held:
            if partition in found and found[partition] != positions[partition]:
                logger.warning(
                    "offset %d of %s, which somebody else wrote, is replaced by %d",
                    found[partition].offset,
                    partition,
                    positions[partition].offset,
                )
        refused = self._store.commit({partition: positions[partition] for partition in held})
        if refused:
            raise CoordinationError(f"offsets keep changing under us: {_names(refused)}")
        return positions.keys() - held


def _due(owned: Iterable[OwnedPartition]) -> dict[TopicPartition, tuple[OwnedPartition, Position]]:
    due = {}
    for one in owned:
        position = one.position
        if position is not None and position != one.committed:
            due[one.partition] = (one, position)
    return due


@contextmanager
def _naming(due: Mapping[TopicPartition, tuple[OwnedPartition, Position]]) -> Iterator[None]:
    """Have a failure of the registry say what was to be committed, and what that means."""
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


class AutoCommit:
    """A thread that commits at intervals; a failed commit is logged and soon tried again.

    Args:
        commit: does it.
        interval_s: how often.
    """

    def __init__(self, commit: Callable[[], None], interval_s: float) -> None:
        self._commit = commit
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="group-commit", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Tell the thread to stop."""
        self._stop.set()

    def join(self) -> None:
        """Wait for the thread's end."""
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        wait_s = self._interval_s
        while not self._stop.wait(wait_s):
            wait_s = self._interval_s
            try:
                self._commit()
            except BrokerError as error:
                wait_s = min(wait_s, _MAX_RETRY_S)
                logger.warning("%s; trying again in %gs", error, wait_s)
            except Exception:
                logger.exception("failure while committing offsets")
