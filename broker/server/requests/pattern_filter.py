"""Filtering of logs for reads, on threads of their own, in turns by client.

RE2 takes time linear in what it searches, but some patterns take microseconds for each byte: one
client's searches must not hold up those of others.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, TypeVar

from broker import errors
from broker.clock import Clock
from broker.log.segment import FileSlice
from broker.patterns import PayloadTest
from broker.protocol.client_requests import PayloadFilter
from broker.protocol.message import LENGTH_BYTES, entry_bytes, has_length
from broker.protocol.message_set import filter_entries
from broker.protocol.responses import Run, encode_run
from broker.topic import TopicPartition

with suppress(ImportError):  # then the broker refuses patterns
    import re2  # noqa: F401 - `broker.patterns` would import it on a thread

SCAN_BYTES = 4 << 20  # of the logs, filtered for one request
KEPT_BYTES = 1 << 20  # kept for one request; the entry that reaches it is the last
_THREADS = 2
_TURN_S = 0.25
_MIN_CHUNK_BYTES = 1 << 12
_MAX_CHUNK_BYTES = 1 << 18
_QUICK_S = 0.01

_Result = TypeVar("_Result")
# consumers send their pattern with each read
_compile = lru_cache(16)(PayloadFilter.compile)


@dataclass(eq=False)
class Search:
    """A slice of one partition to filter, and its result up to now."""

    partition: TopicPartition
    file_slice: FileSlice
    next_offset: int  # everything before it has been filtered
    room_bytes: int  # the entry that reaches it is the last one kept
    left_out_count: int = field(default=0, init=False)
    kept_bytes: int = field(default=0, init=False)
    run_count: int = field(default=0, init=False)
    runs: list[bytes] = field(default_factory=list, init=False)
    """The wanted entries, encoded for the response."""
    error: errors.ServerError | None = field(default=None, init=False)
    """Why the search ended at `next_offset`."""

    def __post_init__(self) -> None:
        self._base_offset = self.next_offset  # the log offset of the slice's start

    @property
    def is_done(self) -> bool:
        """Return whether there is nothing left to filter."""
        is_at_end = self.next_offset - self._base_offset >= self.file_slice.length
        return is_at_end or self.error is not None or self.kept_bytes >= self.room_bytes

    def advance(
        self, is_wanted: PayloadTest, *, chunk_bytes: int, max_entry_bytes: int, room_bytes: int
    ) -> None:
        """Filter the next bytes; of an entry that is longer, all of it."""
        try:
            data = self._read(chunk_bytes, max_entry_bytes)
        except OSError as error:
            self.error = self._note_unreadable() or errors.StorageError(
                f"cannot read {self.partition} from offset {self.next_offset} on: "
                f"{error.strerror or error}"
            )
            return
        room_bytes = min(self.room_bytes - self.kept_bytes, room_bytes)
        # an entry longer than the data cannot be matched, so the reader gets it (`end` is 0)
        found = filter_entries(data, is_wanted, room_bytes)
        end = found.end or len(data)
        for start, stop in found.spans if found.end else [(0, end)]:
            self.runs.append(encode_run(Run(self.next_offset + start, data[start:stop])))
            self.run_count += 1
            self.kept_bytes += stop - start
        self.left_out_count += found.left_out_count
        self.next_offset += end

    def _read(self, chunk_bytes: int, max_entry_bytes: int) -> bytes:
        """Return the next bytes, or the whole next entry if that is longer."""
        done = self.next_offset - self._base_offset
        position, length = self.file_slice.position + done, self.file_slice.length - done
        size = min(length, max(chunk_bytes, LENGTH_BYTES))
        data = _read(self.file_slice.file.fd, size, position)
        if has_length(data):
            size = entry_bytes(data)
            if len(data) < size <= min(length, max_entry_bytes):
                data += _read(self.file_slice.file.fd, size - len(data), position + len(data))
        return data

    def _note_unreadable(self) -> errors.StorageError | None:
        """Have the log note that its file cannot be read where the search goes on."""
        position = self.file_slice.position + self.next_offset - self._base_offset
        return self.file_slice.source.note_unreadable(
            self.file_slice._replace(position=position), position
        )


def _read(fd: int, size: int, position: int) -> bytes:
    parts = []
    while size:
        part = os.pread(fd, size, position)
        if not part:
            raise OSError(f"the file ends {size} bytes early")
        parts.append(part)
        size -= len(part)
        position += len(part)
    return b"".join(parts)


class PatternFilter:
    """Searches logs for the requests of all processors: one request is one turn of its client.

    `turn_of` names the client to whom a turn belongs. All methods can be called from any thread.
    """

    def __init__(self, clock: Clock, *, max_entry_bytes: int) -> None:
        self._clock = clock
        self._max_entry_bytes = max_entry_bytes  # of a valid entry
        self._turns = Turns()

    def compile(self, payload_filter: PayloadFilter, turn_of: str) -> Future[PayloadTest]:
        """Compile a filter, which takes up to 40 ms; the future has its error, too."""
        return self._turns.submit(turn_of, partial(_compile, payload_filter))

    def submit(
        self, searches: Sequence[Search], is_wanted: PayloadTest, max_bytes: int, turn_of: str
    ) -> Future[None]:
        """Do searches in order, as far as the limits allow.

        The searches must not be used before the future is done; they have their results then.
        `max_bytes` is the limit of what is kept for all of them together.
        """
        return self._turns.submit(turn_of, partial(self._run, searches, is_wanted, max_bytes))

    def stop(self) -> None:
        """End the threads, after the chunks that they search, and cancel what waits."""
        self._turns.stop()

    def _run(self, searches: Sequence[Search], is_wanted: PayloadTest, max_bytes: int) -> None:
        """Do searches until a limit is reached, but at least one chunk."""
        before_s = self._clock.monotonic_s()
        end_s = before_s + _TURN_S
        scan_bytes, room_bytes = SCAN_BYTES, min(max_bytes, KEPT_BYTES)
        chunk_bytes = _MIN_CHUNK_BYTES  # doubled while the pattern proves to be quick
        for search in searches:
            while not search.is_done and min(scan_bytes, room_bytes) > 0 and before_s < end_s:
                offset, kept_bytes = search.next_offset, search.kept_bytes
                search.advance(
                    is_wanted,
                    chunk_bytes=min(chunk_bytes, scan_bytes),
                    max_entry_bytes=self._max_entry_bytes,
                    room_bytes=room_bytes,
                )
                scan_bytes -= search.next_offset - offset
                room_bytes -= search.kept_bytes - kept_bytes
                now_s = self._clock.monotonic_s()
                if now_s - before_s < _QUICK_S:
                    chunk_bytes = min(_MAX_CHUNK_BYTES, 2 * chunk_bytes)
                else:
                    chunk_bytes = max(_MIN_CHUNK_BYTES, chunk_bytes // 2)
                before_s = end_s if self._turns.is_stopped else now_s


class Turns:
    """Calls functions for many clients on a few threads, those of each client one after another."""

    def __init__(self, threads: int = _THREADS, name: str = "pattern-filter") -> None:
        self.is_stopped = False
        self._thread_count = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._busy: set[str] = set()  # clients that have their turn
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}  # next first

    def submit(self, turn_of: str, call: Callable[[], _Result]) -> Future[_Result]:
        """Return the future of a call; `ShuttingDownError` once stopped."""
        future: Future[_Result] = Future()
        with self._lock:
            if self.is_stopped:
                raise errors.ShuttingDownError("the broker is shutting down")
            self._waiting.setdefault(turn_of, deque()).append((future, call))
        self._start()
        return future

    def stop(self) -> None:
        """Cancel what waits, and wait for what runs."""
        with self._lock:
            self.is_stopped = True
            waiting, self._waiting = self._waiting, {}
        for calls in waiting.values():
            for future, _ in calls:
                future.cancel()
        self._threads.shutdown()

    def _start(self) -> None:
        """Start the turns of clients for which there is a thread."""
        with self._lock:
            free = [one for one in self._waiting if one not in self._busy]
            for turn_of in free[: self._thread_count - len(self._busy)]:
                calls = self._waiting.pop(turn_of)
                future, call = calls.popleft()
                if calls:
                    self._waiting[turn_of] = calls  # behind the others
                self._busy.add(turn_of)
                self._threads.submit(self._run, turn_of, future, call)

    def _run(self, turn_of: str, future: Future[Any], call: Callable[[], Any]) -> None:
        if future.set_running_or_notify_cancel():  # else its client is gone
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                future.set_exception(error)
        with self._lock:
            self._busy.discard(turn_of)
        self._start()
