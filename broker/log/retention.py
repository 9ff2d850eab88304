"""Retention: removing the segments past their age or size, after what their policy does with them.

Runs on a thread of its own; files are archived and deleted outside a log's append lock, and fetches
in flight keep their descriptors.
"""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

from broker.clock import Clock
from broker.errors import StorageError
from broker.log.archiving import Archive, prepare_removal, prune
from broker.log.expiry import excess_count, expired_count, written_times
from broker.log.log import Log
from broker.log.policies import PluggedPolicy, plugged_policies
from broker.log.segment import Segment
from broker.log.table import LogSettings, LogTable
from broker.properties import INT64_MAX
from broker.stats import ELECTION_BOUNDS_S, Histogram
from broker.topic import TopicPartition
from broker.topic_settings import TopicConfig

MAX_CLOCK_DIFFERENCE_S = 60.0
"""How far a clock may jump, or clocks of brokers differ, while segments are deleted by it."""

logger = logging.getLogger(__name__)


class RetentionTime:
    """The time that ages of segments are counted by: it does not jump ahead with the clock.

    A clock set ahead would make all segments old at once. If it moves more than a minute further
    than the monotonic clock between two calls, this time follows the monotonic clock, until the
    clock is back, the clocks of other brokers agree with it, or the broker starts again.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_s = self.offset_s()
        self.waits: str | None = None
        """Why segments that are old by the clock are kept; None if they are not."""

    def offset_s(self) -> float:
        """Return how far the clock is ahead of the monotonic clock now."""
        return self._clock.time_ms() / 1000 - self._clock.monotonic_s()

    def trust(self, offset_s: float) -> None:
        """Take the clock for right as it was when `offset_s` returned this."""
        self._ahead_s = offset_s

    def now_ms(self) -> int:
        """Return the time, milliseconds since 1970; an error is logged when the clock jumps."""
        jump_s = self.offset_s() - self._ahead_s
        if jump_s <= MAX_CLOCK_DIFFERENCE_S:
            self._ahead_s += jump_s
            if self.waits is not None:
                logger.warning("the clock is back: segments are deleted by its time again")
            self.waits = None
        elif self.waits is None:
            self.waits = (
                f"the clock has jumped {datetime.timedelta(seconds=round(jump_s))} ahead: segments "
                "are kept until they are old by the time that has passed; set the clock right, or "
                "start the broker again if it is right now"
            )
            logger.error("%s", self.waits)
        return round((self._clock.monotonic_s() + self._ahead_s) * 1000)


class Retention:
    """Removes what is past retention from all logs of a broker."""

    def __init__(self, table: LogTable, settings: LogSettings, clock: Clock) -> None:
        self.is_ownerless: Callable[[TopicPartition], bool] = lambda _partition: False
        """Whether no controller knows a replicated log: it is left alone then."""
        self._table = table
        self._settings = settings
        self._clock = clock
        self._is_ahead = False
        self.time = RetentionTime(clock)
        self.clock_doubt: str | None = None
        """Why this broker's clock may be wrong; nothing is deleted then."""
        self.awaits_clocks = False
        """Whether it has yet to be compared with those of other brokers; nothing is deleted."""
        self.times = Histogram(ELECTION_BOUNDS_S)
        self.removed_bytes = 0
        self.archive = Archive(settings.broker.archive_dir)
        self._plugged = plugged_policies(settings.broker)

    @property
    def waits(self) -> str | None:
        """Return why segments may be kept for too long; None if they are not."""
        clocks = self.clock_doubt or self.time.waits
        plugged = next(filter(None, (one.problem for one in self._plugged.values())), None)
        return clocks or self.archive.problem or plugged or self._ahead()

    @property
    def is_held(self) -> bool:
        """Return whether ages are not to be trusted now."""
        return self.awaits_clocks or (self.clock_doubt or self.time.waits) is not None

    def _ahead(self) -> str | None:
        """Return which segments are dated in the future, None without one."""
        latest_ms = self._clock.time_ms() + MAX_CLOCK_DIFFERENCE_S * 1000
        found = [
            one for log in self._table.all() for one in log.segments.all if one.time_ms > latest_ms
        ]
        if not found:
            return None
        text = "1 segment is" if len(found) == 1 else f"{len(found)} segments are"
        return (
            f"{text} dated in the future, such as {found[0].path}: retention takes the time of the "
            "segment behind it, and a start by time may be too early; set the clock right, or give "
            "the file its time (touch) while the broker is stopped"
        )

    def keeps(self, log: Log, offset: int, end_offset: int) -> bool:
        """Return whether messages of a log before an offset stay for more than another minute.

        For their size the log counts as one that ends at `end_offset`, as its leader's does.
        """
        config = self._config_of(log)
        now_ms = self.time.now_ms()
        least_ms = now_ms + 1000 * MAX_CLOCK_DIFFERENCE_S - config.retention_ms
        segments, since_ms = log.segments.all, log.active_since_ms or 0
        before_ms = 0
        for one, written_ms in zip(segments, written_times(segments, now_ms), strict=True):
            if one.base_offset >= offset:
                break
            end, time_ms = one.next_offset, written_ms
            if end > offset:  # of the messages before the offset only the earliest time is known
                end, first_ms = offset, min(since_ms, time_ms) if one is segments[-1] else 0
                time_ms = max(before_ms, first_ms)
            is_excess = 0 <= config.retention_bytes <= end_offset - end
            if one.size and time_ms >= least_ms and not is_excess:
                return True
            before_ms = written_ms
        return False

    def _config_of(self, log: Log) -> TopicConfig:
        """Return the settings of a log; what is only compacted is never too old or too much."""
        config = self._settings.of(log.partition.topic)
        if config.cleanup_policy == "compact" and log.format.counts_records:
            return replace(config, retention_ms=INT64_MAX, retention_bytes=-1)
        return config

    def apply(self) -> None:
        """Remove the segments past retention of all logs."""
        ahead = self._ahead()
        if ahead is not None and not self._is_ahead:
            logger.warning("%s", ahead)
        self._is_ahead = ahead is not None
        began_s = time.perf_counter()
        now_ms = self.time.now_ms()
        if self.awaits_clocks or self.clock_doubt is not None:
            return
        plugged: dict[str, list[Log]] = {}
        failures: list[StorageError] = []

        def prepare(partition: TopicPartition, segment: Segment) -> None:
            prepare_removal(policy, self._settings.broker, partition, segment.path)

        for log in self._table.all():
            log.forget_unused_producers()
            policy = self._settings.of(log.partition.topic).cleanup_policy
            if policy in self._plugged:
                plugged.setdefault(policy, []).append(log)
            else:
                # Under the lock: the files of a new log have the names of a deleted one's.
                with self._table.removal_lock:
                    failures += self._apply_to(log, now_ms, prepare, nullcontext())
        for name, logs in plugged.items():
            self._plugged[name].start(partial(self._apply_plugged, self._plugged[name], logs))
        prune(self._settings.broker, now_ms)
        self.archive.note(failures[0] if failures else None)
        self.times.record(time.perf_counter() - began_s)

    def _apply_plugged(self, policy: PluggedPolicy, logs: Sequence[Log]) -> StorageError | None:
        """Remove what a plug-in agrees to, in its thread; return the first failure."""
        lock, failures = self._table.removal_lock, list[StorageError]()
        for log in logs:
            failures += self._apply_to(log, self.time.now_ms(), policy.ask, lock)
        return failures[0] if failures else None

    def _apply_to(
        self,
        log: Log,
        now_ms: int,
        prepare: Callable[[TopicPartition, Segment], object],
        lock: AbstractContextManager[object],
    ) -> list[StorageError]:
        failures: list[StorageError] = []

        def is_there() -> bool:
            is_known = self._table.is_open and self._table.find(log.partition) is log
            is_left_alone = log.is_replicated and self.is_ownerless(log.partition)
            is_unsure = self.awaits_clocks or self.clock_doubt is not None
            return is_known and not (log.is_deleted or is_left_alone or is_unsure)

        removed = apply_retention(
            log,
            self._config_of(log),
            now_ms=now_ms,
            prepare=prepare,
            lock=lock,
            is_there=is_there,
            failed=failures.append,
        )
        with lock:  # two threads count
            self.removed_bytes += sum(one.size for one in removed)
        return failures


def _count_before(segments: Sequence[Segment], *, offset: int) -> int:
    """Return how many segments have only records that were deleted."""
    return sum(one.size and one.next_offset <= offset for one in segments)


def apply_retention(
    log: Log,
    config: TopicConfig,
    *,
    now_ms: int,
    prepare: Callable[[TopicPartition, Segment], object] = lambda _partition, _segment: None,
    lock: AbstractContextManager[object] = nullcontext(),  # noqa: B008 - it has no state
    is_there: Callable[[], bool] = lambda: True,
    failed: Callable[[StorageError], object] = lambda _error: None,
) -> list[Segment]:
    """Remove a log's segments past retention, and return them; an error is logged.

    `now_ms` is the time of `RetentionTime`. `prepare` is called with each segment before, without
    the `lock`; under it `is_there` says whether the log may still be changed.
    """
    removed: list[Segment] = []
    try:
        for choose in (
            partial(expired_count, now_ms=now_ms, retention_ms=config.retention_ms),
            partial(excess_count, retention_bytes=config.retention_bytes),
            partial(_count_before, offset=log.log_start_offset),
        ):
            with lock:
                segments = log.prepare_removal(choose) if is_there() else ()
                if segments:
                    # The following segment must be on disk before these are removed: a log without
                    # any segment would start again at offset 0.
                    log.flush()
            for segment in segments:
                prepare(log.partition, segment)
                with lock:
                    if not is_there():
                        return removed
                    log.remove(segment)
                removed.append(segment)
                values = {"partition": log.partition, "offset": segment.base_offset}
                logger.info("%(partition)s: removed segment %(offset)d", values)
    except StorageError as error:
        logger.error("retention of %s: %s", log.partition, error)
        failed(error)
    return removed
