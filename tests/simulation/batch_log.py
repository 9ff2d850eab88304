"""Logs of record batches of simulated brokers: real files, held against the model beside them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from broker.clock import Clock
from broker.errors import BrokerError, InvalidProducerEpochError, OutOfOrderSequenceError
from broker.log import side_files
from broker.log.format import BATCHES
from broker.log.log import Log, LogParts
from broker.log.recovery import is_whole, list_segments, recover
from broker.log.replica_files import EpochFile, read_epochs
from broker.log.segment import Appended, Disk, Segment, SegmentFiles
from broker.protocol import codec
from broker.protocol.codec import Record, RecordBatch
from broker.stats import WindowedStats
from broker.topic_settings import TopicConfig
from tests.simulation.checker import Checker, Created, Send, Stored
from tests.simulation.disk import SimulatedLog

_RECORD_BYTES = 1500
"""So that an index, which has a row for each 4 kB, has some in a segment of a few batches."""
_CONFIG = TopicConfig(
    segment_bytes=16 * _RECORD_BYTES,
    roll_ms=1 << 60,
    retention_ms=1 << 60,
    retention_bytes=-1,
    flush_interval_messages=1 << 30,
    flush_interval_ms=1 << 30,
)


def encode_batch(messages: Sequence[Send], producer_id: int, sequence: int) -> bytes:
    """Return the batch of an idempotent producer."""
    records = [
        Record(offset, 0, None, b"%d %d ".ljust(_RECORD_BYTES, b".") % message)
        for offset, message in enumerate(messages)
    ]
    return codec.encode_batch(
        records, RecordBatch(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    )


def _stored(chunk: bytes, offset: int, end_offset: int) -> list[object]:
    """Return the records of a range that are in the whole batches of a chunk."""
    found: list[object] = []
    for head in BATCHES.heads(chunk):
        batch = chunk[head.position : head.end]
        for record in codec.decode_records(batch).records:
            if offset <= record.offset < end_offset:
                producer, number, *_ = (record.value or b"").split(b" ")
                found.append(Stored(Send(int(producer), int(number)), batch))
    return found


class BatchLog(SimulatedLog):
    """A log whose model has one entry for each record; the batches are in the files of a real log.

    Its indexes and snapshots of producers may be damaged whenever it is opened.
    """

    def __init__(
        self,
        owner: int,
        created: Created,
        checker: Checker,
        directory: Path,
        clock: Clock,
        random: Random,
    ) -> None:
        super().__init__(owner, created, checker)
        self.directory = directory
        self._clock = clock
        self._random = random
        self._is_closed = True
        self._point = 0
        """Up to where the files are known to be flushed when they are opened."""
        directory.mkdir(parents=True)
        segment = Segment(directory, 0, size=0, modified_ms=0, format=BATCHES)
        segment.path.touch()
        self._open()

    def publish(self, message_set: object, now_s: float) -> Appended:
        assert isinstance(message_set, bytes)
        self.raise_if_failed()
        self.raise_if_full()
        with self._sound():
            appended = self.log.append(message_set, 1)
        if appended.base_offset < self.log_end_offset:
            self.checker.counts["repeated batches found"] += 1
        else:
            offset, epoch = appended.base_offset, max(0, self.epochs.last_epoch)
            data, _ = codec.stamp_batches(message_set, offset, epoch)
            entries = _stored(data, *appended)
            super().append(*entries, times_s=[now_s] * len(entries))
        return appended

    def fetch(self, offset: int, count: int) -> tuple[object, int]:
        max_bytes = count * _RECORD_BYTES
        with self._sound():
            while True:
                data = self._slice(offset, max_bytes)
                copied = BATCHES.copied(data, self.partition, offset)
                if copied.next_offset > offset or offset == self.log_end_offset:
                    return data, copied.next_offset
                if not data:
                    self._fail(f"nothing at {offset}")
                max_bytes *= 2

    def count_in(self, data: object, offset: int) -> int:
        if not data:
            return 0
        assert isinstance(data, bytes)
        return BATCHES.copied(data, self.partition, offset).next_offset - offset

    def append_copied(self, data: object, offset: int, times_s: Iterable[float]) -> None:
        assert isinstance(data, bytes)
        self.raise_if_failed()
        self.raise_if_full()
        copied = BATCHES.copied(data, self.partition, offset)
        with self._sound():
            self.log.append_copied(copied, offset)
        super().append(*_stored(data, offset, copied.next_offset), times_s=times_s)

    def read_committed(self, offset: int, end_offset: int) -> list[object]:
        return self._read(offset, end_offset, to_log_end=False)

    def begin_epoch(self, epoch: int, start_offset: int) -> None:
        super().begin_epoch(epoch, start_offset)
        with self._sound():
            self.log.begin_epoch(epoch, start_offset)

    def truncate(self, offset: int) -> None:
        self.raise_if_failed()
        with self._sound():
            self.log.truncate(offset)
        super().truncate(offset)
        self._point = self.flushed_offset
        self.compare()

    def restart_at(self, offset: int) -> None:
        self.raise_if_failed()
        with self._sound():
            self.log.restart_at(offset)
        super().restart_at(offset)
        self._point = self.flushed_offset
        self.compare()

    def advance_high_watermark(self, offset: int) -> None:
        self.log.advance_high_watermark(offset)
        super().advance_high_watermark(offset)

    def flush(self) -> None:
        super().flush()
        self.flushed(self.log_end_offset)

    def flushed(self, end_offset: int) -> None:
        super().flushed(end_offset)
        self._point = self.flushed_offset
        if self.log.flushed_offset < self.flushed_offset:
            with self._sound():
                self.log.flush()

    def expire(self, now_s: float) -> None:
        if self.is_failed:
            return
        before = self.start
        super().expire(now_s)
        if self.start == before:
            return
        self.flush()
        with self._sound():
            self.log.delete_records(self.start)
            for segment in self.log.prepare_removal(
                lambda segments: sum(one.next_offset <= self.start for one in segments)
            ):
                self.log.remove(segment)
        self.compare()

    def close(self) -> None:
        super().close()
        with self._sound():
            self.log.close()
        self._is_closed = True

    def crash(self, kept_end: int) -> None:
        segments = self.log.segments.all
        batches = [
            (segment, head)
            for segment in segments
            for head in BATCHES.heads(segment.path.read_bytes())
        ]
        lost = [one for one in batches if one[1].next_offset > kept_end]
        if lost:
            segment, head = lost[0]
            kept_end = max(self.start, head.base_offset)
            size = segment.path.stat().st_size
            os.truncate(segment.path, head.position + self._random.randrange(head.size))
            if self._random.random() < 0.3:  # the disk knew of its length, and not of its content
                os.truncate(segment.path, size)
            for later in segments[segments.index(segment) + 1 :]:
                if self._random.random() < 0.5:
                    later.unlink()
        point = self.flushed_offset
        super().crash(kept_end)
        self._point = point

    def opened(self) -> None:
        self._damage()
        self._open()
        super().opened()
        self.compare()

    def _open(self) -> None:
        """Open the files as a broker does at its start, when it was killed or has lost power."""
        segments = list_segments(self.directory, BATCHES)
        point = self._point
        if not (self._is_closed and is_whole(segments, point)):
            recover(
                self.partition,
                segments,
                recovery_point=self._random.choice((None, 0, point, point)),
                time_ms=self._clock.time_ms(),
                has_copies=True,
            )
        self._is_closed = False
        parts = LogParts(
            clock=self._clock,
            files=SegmentFiles(),
            schedule_flush=lambda log, due_s: None,
            flush_stats=WindowedStats(self._clock, 60.0),
            disk=Disk(sync=lambda fd: None),
        )
        self.log = log = Log(self.partition, self.directory, _CONFIG, segments, parts)
        epochs = EpochFile(self.directory, read_epochs(self.directory))
        epochs.replace(epochs.epochs.recovered(log.log_start_offset, log.log_end_offset))
        log.replicate(epochs, self.checkpoint)

    def _damage(self) -> None:
        """Lose snapshots of producers, and have rows of indexes point elsewhere."""
        random, counts = self._random, self.checker.counts
        for path in sorted(self.directory.iterdir()):
            if path.suffix == side_files.SNAPSHOT_SUFFIX and random.random() < 0.3:
                path.unlink()
                counts["snapshots of producers lost"] += 1
            elif path.suffix == side_files.INDEX_SUFFIX and random.random() < 0.3:
                rows = path.read_bytes()
                ends = [head.end for head in BATCHES.heads(path.with_suffix(".log").read_bytes())]
                lies = [
                    rows[at : at + 4] + random.choice([0, *ends]).to_bytes(4, "big")
                    for at in range(0, len(rows), 8)
                ]
                path.write_bytes(b"".join(lies))
                counts["indexes that lie"] += b"".join(lies) != rows

    def compare(self) -> None:
        log, epochs = self.log, self.epochs.trimmed(self.start)
        expected = self.start, self.log_end_offset, self.high_watermark, epochs
        found = log.log_start_offset, log.log_end_offset, log.high_watermark, log.epochs
        if found != expected:
            self._fail(f"{found}, not {expected}")
        entries = self._read(self.start, self.log_end_offset)
        if entries != self.entries:
            self._fail(f"{entries}, not {self.entries}")

    def _read(self, offset: int, end_offset: int, *, to_log_end: bool = True) -> list[object]:
        """Return the records of a range as the log has them."""
        found: list[object] = []
        while offset < end_offset:
            with self._sound():
                chunk = self._slice(offset, 1 << 20, to_log_end=to_log_end)
                next_offset = BATCHES.copied(chunk, self.partition, offset).next_offset
            if next_offset == offset:
                self._fail(f"nothing at {offset}")
            found += _stored(chunk, offset, end_offset)
            offset = next_offset
        return found

    def _slice(self, offset: int, max_bytes: int, *, to_log_end: bool = True) -> bytes:
        found = self.log.read(offset, max_bytes, to_log_end=to_log_end)
        return b"" if found is None else os.pread(found.file.fd, found.length, found.position)

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Count each error of the log as a violation, but those that a producer is to get."""
        try:
            yield
        except (OutOfOrderSequenceError, InvalidProducerEpochError):
            raise
        except BrokerError as error:
            self._fail(f"{type(error).__name__}: {error}")

    def _fail(self, text: str) -> None:
        self.checker.fail("I26", f"the files of {self.created} on broker {self.owner}: {text}")
