"""Parts of a log: listeners of its offsets, what no flush has made durable, and incarnations.

By incarnations producers ask for lost messages. A broker gets another one after a crash, which can
take the end of a log. An incarnation with the creation of the topic is a term; a producer that
knows the term of its message, and its end, learns whether the log still has it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from broker.cluster_state import EpochStart
from broker.files import sync_directory
from broker.leader_epochs import LeaderEpochs, term_of
from broker.log.segment import Disk, Segment, SegmentFile, SegmentFiles

logger = logging.getLogger(__name__)


class Listeners:
    """Callbacks run when an offset of a log advances, with no lock held."""

    __slots__ = ("__weakref__", "_counts", "_lock")

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[int, dict[Callable[[], None], int]] = {}
        """By the offset that an advance must reach for the callbacks to run."""

    def add_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        """Add a callback; see `Log.add_listener`."""
        with self._lock:
            counts = self._counts.setdefault(from_offset, {})
            counts[callback] = counts.get(callback, 0) + 1

    def remove_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        """Undo one `add_listener`; an unknown callback is ignored."""
        with self._lock:
            counts = self._counts.get(from_offset)
            if counts is None or callback not in counts:
                return
            counts[callback] -= 1
            if not counts[callback]:
                del counts[callback]
                if not counts:
                    del self._counts[from_offset]

    def notify(self, reached_offset: int | None = None) -> None:
        """Run the callbacks whose offset an advance reached; None for all, as nothing advanced."""
        with self._lock:
            callbacks = [
                callback
                for from_offset, counts in self._counts.items()
                if reached_offset is None or from_offset <= reached_offset
                for callback in counts
            ]
        for callback in callbacks:
            try:
                callback()
            except Exception:  # a failing listener must not keep the others from being called
                logger.exception("a listener of a log failed")


class Incarnations:
    """The incarnations that appended to one log without replicas."""

    def __init__(self) -> None:
        self._epochs = LeaderEpochs()
        self._creation = 0
        self.term = term_of(self._creation, self._epochs.last_epoch)
        """The term of messages appended now."""

    def begin(
        self, incarnation: int, start_offset: int, *, log_start_offset: int, creation: int
    ) -> None:
        """Note the present incarnation, counted from `FIRST_INCARNATION`.

        Messages before `start_offset` are of the incarnation before; it is the log start offset if
        the incarnation is the same. `creation` is the topic's `creation_key`.
        """
        first = incarnation - 1 if start_offset > log_start_offset else incarnation
        epochs = LeaderEpochs((EpochStart(first, log_start_offset),))
        self._epochs = epochs.begun(incarnation, start_offset)
        self._creation = creation
        self.term = term_of(creation, self._epochs.last_epoch)

    def end_of_term(self, term: int, log_end_offset: int) -> int:
        """Return the end offset of a term, -1 if the term is unknown."""
        return self._epochs.end_of_term(term, self._creation, log_end_offset)


class FlushedPart(NamedTuple):
    """The data one flush makes durable, captured under the append lock."""

    end_offset: int
    message_count: int
    files: list[SegmentFile]
    directories: list[Path]

    def sync(self, files: SegmentFiles, disk: Disk) -> None:
        """Make it durable; an `OSError` if the disk refuses."""
        for directory in self.directories:
            files.with_room(partial(sync_directory, directory))
        for file in self.files:
            disk.sync(file.fd)


class Unflushed:
    """The unflushed data of one log; guarded by its append lock.

    Args:
        directories: those with entries not yet durable: of a new log, its own and its parent.
    """

    def __init__(self, directories: Iterable[Path]) -> None:
        self.message_count = 0
        self.is_flush_scheduled = False
        self.rolled_files: list[SegmentFile] = []
        self.directories = list(directories)

    def capture(self, active: Segment, flushed_offset: int) -> FlushedPart | None:
        """Return the data the flush that starts now must cover, None if there is none."""
        self.is_flush_scheduled = False
        end_offset = active.next_offset
        if end_offset == flushed_offset and not self.directories:
            return None
        files = self.rolled_files
        if active.file is not None and end_offset > flushed_offset:
            files.append(active.file)
        directories = list(dict.fromkeys(self.directories))
        self.rolled_files, self.directories = [], []
        return FlushedPart(end_offset, self.message_count, files, directories)

    def put_back(self, part: FlushedPart) -> None:
        """Leave the data of a flush that found no free descriptor to a later flush."""
        self.rolled_files = [*part.files, *self.rolled_files]
        self.directories = [*part.directories, *self.directories]
        self.is_flush_scheduled = True

    def clear(self) -> None:
        """Forget all, as the log has been made durable elsewhere."""
        self.rolled_files, self.directories = [], []
        self.message_count = 0
