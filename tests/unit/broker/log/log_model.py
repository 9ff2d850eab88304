"""A log as simple as it can be: the bytes ever appended, and four lists of numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

SEGMENT_BYTES = 100
ROLL_MS = 60_000
RETENTION_MS = 300_000
RETENTION_BYTES = 450


@dataclass
class ModelSegment:
    base: int
    size: int = 0
    modified_ms: int = 0
    since_ms: int | None = None

    @property
    def end(self) -> int:
        return self.base + self.size


@dataclass
class LogModel:
    """What the log must look like from outside."""

    now_ms: int
    stream: bytes = b""
    boundaries: list[int] = field(default_factory=lambda: [0])
    segments: list[ModelSegment] = field(default_factory=list)
    high_watermark: int = 0

    def __post_init__(self) -> None:
        self.segments = self.segments or [ModelSegment(0, modified_ms=self.now_ms)]

    @property
    def start(self) -> int:
        return self.segments[0].base

    @property
    def end(self) -> int:
        return len(self.stream)

    def roll_if_due(self) -> None:
        active = self.segments[-1]
        age_ms = 0 if active.since_ms is None else self.now_ms - active.since_ms
        went_back = active.size > 0 and self.now_ms < active.modified_ms
        if active.size > SEGMENT_BYTES or age_ms > ROLL_MS or went_back:
            self.roll()

    def roll(self) -> None:
        self.segments.append(ModelSegment(self.end, modified_ms=self.now_ms))

    def append(self, entries: list[bytes]) -> int:
        self.roll_if_due()
        offset = self.end
        for entry in entries:
            self.stream += entry
            self.boundaries.append(self.end)
        active = self.segments[-1]
        active.size = self.end - active.base
        active.modified_ms = self.now_ms
        if active.since_ms is None:
            active.since_ms = self.now_ms
        return offset

    def read(self, offset: int, max_bytes: int) -> bytes:
        segment = max((one for one in self.segments if one.base <= offset), key=lambda s: s.base)
        return self.stream[offset : min(offset + max_bytes, segment.end, self.high_watermark)]

    def retain(self) -> None:
        expired = 0
        times = [one.modified_ms for one in self.segments]
        for at, time_ms in enumerate(times):
            possible = [one for one in times[at:] if one <= self.now_ms] or [time_ms]
            if self.now_ms - possible[0] <= RETENTION_MS:
                break
            expired += 1
        self._remove(expired)
        excess = self.end - self.start - RETENTION_BYTES
        count = 0
        for segment in self.segments:
            if excess < segment.size:
                break
            excess -= segment.size
            count += 1
        self._remove(count)

    def _remove(self, count: int) -> None:
        if count == len(self.segments):
            if self.segments[-1].size:
                self.roll()
            else:
                self.segments[-1].modified_ms = self.now_ms
                count -= 1
        if count:
            self.high_watermark = self.end
        del self.segments[:count]

    def offsets_before(self, time_ms: int) -> list[int]:
        visible = [one for one in self.segments if one.base <= self.high_watermark]
        found = [
            (one.base, max(before.modified_ms for before in visible[: at + 1]))
            for at, one in enumerate(visible)
        ]
        if self.high_watermark > found[-1][0]:
            found.append((self.high_watermark, max(found[-1][1], self.now_ms)))
        if time_ms == -1:
            time_ms = 1 << 60
        while found and found[-1][1] > time_ms:
            found.pop()
        return [offset for offset, _ in reversed(found)]

    def truncate(self, end: int) -> None:
        """Forget what a crash took away."""
        self.stream = self.stream[:end]
        self.boundaries = [one for one in self.boundaries if one <= end]
        self.segments = [one for one in self.segments if one.base <= end or one.base == self.start]
        self.segments[-1].size = end - self.segments[-1].base
        self.high_watermark = end
