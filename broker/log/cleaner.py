"""The cleaner: the thread that compacts logs, the one with the largest dirty part first.

How far each log is clean is in a file of each data directory, as later Kafka has it. A lost one
costs time: the log is dirty as a whole then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import NamedTuple

from broker.clock import Clock
from broker.errors import LogCorruptError, ServerError, StorageError
from broker.files import reason_of
from broker.log.aborted import AbortedTransactions, aborted_beside
from broker.log.compaction import (
    CleanablePart,
    Rewrite,
    cleanable_part,
    discard,
    grouped,
    map_offsets,
)
from broker.log.data_directory import CLEANER_OFFSETS_NAME, read_offsets, write_offsets
from broker.log.log import Log
from broker.log.segment import Segment
from broker.log.table import LogSettings, LogTable
from broker.stats import ELECTION_BOUNDS_S, Histogram
from broker.token_bucket import TokenBucket
from broker.topic import TopicPartition
from broker.topic_settings import TopicConfig

logger = logging.getLogger(__name__)


class _StoppedError(Exception):
    """The broker stops, or the log has other segments by now."""


class _Candidate(NamedTuple):
    log: Log
    part: CleanablePart
    config: TopicConfig


class Uncleanable(NamedTuple):
    """Why a log could not be compacted, and its segments then."""

    error: StorageError
    segments: Sequence[Segment]  # none if it may be possible with the same ones


class Cleaner:
    """Compacts the logs of one broker.

    Args:
        table: of the logs.
        settings: of broker and topics.
        clock: for the throttle.
        now_ms: returns the time that ages are counted by, milliseconds since 1970.
        sync: makes what was written to a file durable.
    """

    def __init__(
        self,
        table: LogTable,
        settings: LogSettings,
        clock: Clock,
        now_ms: Callable[[], int],
        sync: Callable[[int], object],
    ) -> None:
        self.times = Histogram(ELECTION_BOUNDS_S)
        """Of compactions of one log."""
        self.copied_bytes = 0
        """Read and written."""
        self.removed_bytes = 0
        self.max_dirty_ratio = 0.0
        """Of the logs that were found when these were last looked for."""
        self.uncleanable: dict[TopicPartition, Uncleanable] = {}
        """Logs that could not be compacted; each is tried again once its segments are others."""
        self._table = table
        self._settings = settings
        self._clock = clock
        self._now_ms = now_ms
        self._sync = sync
        self._looked_s = clock.monotonic_s()
        self._stopping = Event()
        self._rate = 0
        self._bucket = TokenBucket(1, 1, 0)

    @property
    def idle_s(self) -> float:
        """Return how long ago logs to compact were looked for."""
        return self._clock.monotonic_s() - self._looked_s

    def load(self) -> None:
        """Read how far the logs are clean."""
        for directory in self._table.directories.online:
            offsets = read_offsets(directory.path / CLEANER_OFFSETS_NAME)
            for partition, offset in offsets.items():
                log = self._table.find(partition)
                if log is not None and self._table.directories.place_of[partition] is directory:
                    log.clean_offset = offset

    def stop(self) -> None:
        """Abandon the compaction that is under way, and those that follow."""
        self._stopping.set()

    def run(self) -> None:
        """Compact the logs that are dirty enough, one after another."""
        done: set[Log] = set()
        while not self._stopping.is_set() and (found := self._dirtiest(done)) is not None:
            done.add(found.log)
            self._clean(found)

    def _dirtiest(self, done: set[Log]) -> _Candidate | None:
        """Return the log with the greatest dirty ratio among those that are dirty enough."""
        ready: list[_Candidate] = []
        max_ratio = 0.0
        partitions: set[TopicPartition] = set()
        for log in self._table.all():
            config = self._settings.of(log.partition.topic)
            if not (config.is_compacted and log.format.counts_records) or log.failure is not None:
                continue
            partitions.add(log.partition)
            found = self._candidate(log, config)
            ratio = found.part.dirty_ratio
            max_ratio = max(max_ratio, ratio)
            is_dirty = found.part.dirty_bytes and ratio >= config.min_cleanable_ratio
            if is_dirty and log not in done and not self._is_given_up(log):
                ready.append(found)
        for partition in self.uncleanable.keys() - partitions:
            del self.uncleanable[partition]
        self.max_dirty_ratio = max_ratio
        self._looked_s = self._clock.monotonic_s()
        return max(ready, key=lambda one: one.part.dirty_ratio, default=None)

    def _candidate(self, log: Log, config: TopicConfig) -> _Candidate:
        lag_ms = config.min_compaction_lag_ms
        part = cleanable_part(
            log.segments.all,
            log.clean_offset,
            end_offset=log.stable_offset,
            latest_ms=self._now_ms() - lag_ms if lag_ms else None,
        )
        return _Candidate(log, part, config)

    def _is_given_up(self, log: Log) -> bool:
        known = self.uncleanable.get(log.partition)
        return known is not None and known.segments is log.segments.all

    def _clean(self, found: _Candidate) -> None:
        """Compact a log; an error is logged, unless it is the one that is known."""
        log, part, _ = found
        segments = log.segments.all
        began_s = time.perf_counter()
        try:
            removed_bytes = self._compact(found)
        except _StoppedError:
            log.clean_offset = min(log.clean_offset, part.start_offset)
        except (OSError, ServerError, LogCorruptError) as error:
            log.clean_offset = min(log.clean_offset, part.start_offset)
            if not log.is_deleted and not part.segments[0].is_removed:  # else it is no wonder
                self._note_failure(log.partition, segments, error)
        else:
            self.uncleanable.pop(log.partition, None)
            self.times.record(time.perf_counter() - began_s)
            self.removed_bytes += removed_bytes
            values = {"partition": log.partition, "count": removed_bytes, "end": log.clean_offset}
            logger.info("%(partition)s: compacted to offset %(end)d, %(count)d bytes less", values)

    def _note_failure(
        self, partition: TopicPartition, segments: Sequence[Segment], error: Exception
    ) -> None:
        reason = f"{error}"
        if isinstance(error, OSError):
            reason, segments = f"{error.filename}: {reason_of(error)}", ()
        text = f"{partition} cannot be compacted: {reason}"
        known = self.uncleanable.get(partition)
        if known is None or str(known.error) != text:
            logger.error("%s", text)
        self.uncleanable[partition] = Uncleanable(StorageError(text), segments)

    def _compact(self, found: _Candidate) -> int:
        """Compact a log; return how many bytes less it has."""
        log, part, config = found
        throttle = partial(self._throttle, log)
        aborted = AbortedTransactions(aborted_beside([log.segments.all[0].path]))
        max_bytes = self._settings.broker.cleaner_map_bytes
        offsets = map_offsets(part, aborted, max_bytes=max_bytes, throttle=throttle)
        log.clean_offset = offsets.end_offset  # before the end, as the log may be cut meanwhile
        rewrite = Rewrite(
            *(offsets, aborted, log.last_offsets(), self._now_ms(), config.delete_retention_ms),
            throttle=throttle,
            sync=self._sync,
        )
        removed_bytes = 0
        segments = [one for one in part.segments if one.base_offset < offsets.end_offset]
        for group in grouped(segments, config.segment_bytes):
            swap = rewrite.write(group)
            if swap is not None:
                removed_bytes += sum(one.size for one in group) - swap.stat().st_size
                self._replace(log, group, swap)
        self._write_offsets(log)
        return removed_bytes

    def _replace(self, log: Log, group: Sequence[Segment], swap: Path) -> None:
        """Put a new segment in its place, unless the log has other segments there by now."""
        with self._table.removal_lock:  # against retention, moves and deletion
            try:
                if self._table.find(log.partition) is log and log.directory == swap.parent:
                    log.replace_segments(group, swap)
            finally:
                if not group[0].is_replaced:
                    discard(swap.with_suffix(""))
        if not group[0].is_replaced:
            raise _StoppedError

    def _write_offsets(self, log: Log) -> None:
        """Write how far the logs are clean that are in the data directory of one."""
        places = self._table.directories.place_of
        directory = places.get(log.partition)
        if directory is not None:
            offsets = {
                one.partition: one.clean_offset
                for one in self._table.all()
                if one.clean_offset and places.get(one.partition) is directory
            }
            write_offsets(directory.path / CLEANER_OFFSETS_NAME, offsets)

    def _throttle(self, log: Log, byte_count: int) -> None:
        """Count bytes that were read or written, and wait while they are too many."""
        self.copied_bytes += byte_count
        rate, now_s = self._settings.broker.cleaner_bytes_per_s, self._clock.monotonic_s()
        if rate != self._rate:
            self._rate, self._bucket = rate, TokenBucket(rate, rate, now_s)
        wait_s = self._bucket.spend(now_s, byte_count) if rate else 0.0
        if self._stopping.wait(wait_s) or log.is_deleted:
            raise _StoppedError
