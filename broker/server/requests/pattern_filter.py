"""The broker's side of filtering: starts, feeds and ends the process of `filter_worker`.

The process starts with the first search, starts again when it was killed, and ends with the broker.
One thread sends it one job after another; a processor only asks whether its search is done.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from broker import errors
from broker.clock import Clock
from broker.log.segment import FileSlice
from broker.protocol.framing import encode_frame
from broker.protocol.payload_filter import PayloadFilter
from broker.protocol.primitives import INT32, Reader
from broker.server.requests import filter_worker
from broker.server.requests.filter_worker import ScanJob, ScanResult
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

LIMIT_S = 5.0
"""How long one request may keep the process busy before the process is killed."""
SCAN_BYTES = 4 << 20  # of the logs, filtered for one request
KEPT_BYTES = 1 << 20  # kept for one request; the entry that reaches it is the last
_TURN_S = 1.0
_CHUNK_BYTES = 1 << 18
_RESULT_TIMEOUT_S = 15.0
_SOURCE_ROOT = Path(__file__).parents[2]


class Search:
    """A slice of one partition to filter, and its result up to now."""

    def __init__(
        self, partition: TopicPartition, file_slice: FileSlice, offset: int, room_bytes: int
    ) -> None:
        self.partition = partition
        self.next_offset = offset  # everything before it has been filtered
        self.left_out_count = 0
        self.kept_bytes = 0
        self.run_count = 0
        self.runs: list[bytes] = []  # the wanted entries, encoded for the response
        self.error: errors.ServerError | None = None  # why the search ended at `next_offset`
        self._slice = file_slice
        self._base_offset = offset  # the log offset of the slice's start
        self._room_bytes = room_bytes  # the entry that reaches it is the last one kept

    @property
    def is_done(self) -> bool:
        """Return whether there is nothing left to filter."""
        is_at_end = self.next_offset - self._base_offset >= self._slice.length
        return is_at_end or self.error is not None or self.kept_bytes >= self._room_bytes

    @property
    def descriptor(self) -> int:
        """Return the descriptor of the file to read."""
        return self._slice.file.fd

    def job(
        self,
        payload_filter: PayloadFilter,
        *,
        scan_bytes: int,
        max_entry_bytes: int,
        room_bytes: int,
        limit_s: float,
    ) -> ScanJob:
        """Return the next job, within the limits of the whole request."""
        done = self.next_offset - self._base_offset
        return ScanJob(
            position=self._slice.position + done,
            length=self._slice.length - done,
            offset=self.next_offset,
            scan_bytes=min(_CHUNK_BYTES, scan_bytes),
            max_entry_bytes=max_entry_bytes,
            room_bytes=min(self._room_bytes - self.kept_bytes, room_bytes),
            limit_ms=max(1, int(limit_s * 1000)),
            payload_filter=payload_filter,
        )

    def note_unreadable(self) -> errors.StorageError | None:
        """Have the log note that reading its file failed where the next job starts."""
        position = self._slice.position + self.next_offset - self._base_offset
        return self._slice.source.note_unreadable(self._slice._replace(position=position), position)

    def take(self, result: ScanResult) -> None:
        """Add the result of a job."""
        self.next_offset = result.end_offset
        self.left_out_count += result.left_out_count
        self.kept_bytes += result.kept_bytes
        self.run_count += result.run_count
        self.runs.append(result.runs)


class PatternFilter:
    """Searches logs for the requests of all processors, one request after another."""

    def __init__(self, clock: Clock, *, max_entry_bytes: int) -> None:
        self._clock = clock
        self._max_entry_bytes = max_entry_bytes  # of a valid entry
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pattern-filter")
        self._lock = threading.Lock()  # guards _child and _is_stopped
        self._child: _Child | None = None
        self._is_stopped = False

    def submit(
        self, searches: Sequence[Search], payload_filter: PayloadFilter, max_bytes: int
    ) -> Future[None]:
        """Do searches in order, as far as the limits allow; callable from any thread.

        The searches must not be used before the future is done; they have their results then.
        `max_bytes` is the limit of what is kept for all of them together.
        """
        return self._executor.submit(self._run, searches, payload_filter, max_bytes)

    def stop(self) -> None:
        """End the process and the thread, also in the middle of a job."""
        with self._lock:
            self._is_stopped = True
            if self._child is not None:
                self._child.kill()
        self._executor.shutdown(cancel_futures=True)
        if self._child is not None:
            self._child.end()

    def _run(
        self, searches: Sequence[Search], payload_filter: PayloadFilter, max_bytes: int
    ) -> None:
        """Do searches until a limit is reached, but at least one job."""
        started_s = self._clock.monotonic_s()
        scan_bytes, room_bytes = SCAN_BYTES, min(max_bytes, KEPT_BYTES)
        elapsed_s = 0.0
        for search in searches:
            while not search.is_done and min(scan_bytes, room_bytes) > 0 and elapsed_s < _TURN_S:
                job = search.job(
                    payload_filter,
                    scan_bytes=scan_bytes,
                    max_entry_bytes=self._max_entry_bytes,
                    room_bytes=room_bytes,
                    limit_s=LIMIT_S - elapsed_s,
                )
                try:
                    result = self._do_job(search, job)
                except errors.ServerError as error:
                    search.error = error
                else:
                    search.take(result)
                    scan_bytes -= result.end_offset - job.offset
                    room_bytes -= result.kept_bytes
                elapsed_s = self._clock.monotonic_s() - started_s

    def _do_job(self, search: Search, job: ScanJob) -> ScanResult:
        """Do a job, with a new process if the old one was killed."""
        where = f"{search.partition} from offset {job.offset} on"
        try:
            result = self._attempt(search, job, where)
        except _ChildEndedError as ended:
            logger.warning("%s; starting it again", ended)
            result = self._attempt(search, job, where)
        if result.error != errors.NO_ERROR:
            noted = search.note_unreadable()
            text = f"cannot read {where}: {result.text}"
            raise noted or errors.error_for_code(result.error, text)
        return result

    def _attempt(self, search: Search, job: ScanJob, where: str) -> ScanResult:
        child = self._running_child()
        try:
            return child.exchange(search.descriptor, job)
        except EOFError as error:
            status = self._drop_child(child)
            if status == -signal.SIGPROF:
                raise _too_slow(where, job) from error
            raise _ChildEndedError(
                f"the process that matches patterns ended with status {status} over {where}"
            ) from error
        except TimeoutError as error:
            self._drop_child(child)
            raise errors.RequestTimedOutError(
                f"{where} could not be filtered in {_RESULT_TIMEOUT_S:g} s; is the disk stuck?"
            ) from error

    def _running_child(self) -> _Child:
        with self._lock:
            if self._is_stopped:
                raise errors.ShuttingDownError("the broker is shutting down")
            if self._child is None:
                try:
                    self._child = _Child()
                except OSError as error:
                    raise errors.UnknownServerError(
                        f"cannot start the process that matches patterns: {error.strerror}"
                    ) from error
            return self._child

    def _drop_child(self, child: _Child) -> int:
        """Forget the process, so that the next job starts another; return its exit status."""
        with self._lock:
            self._child = None
        return child.end()


class _ChildEndedError(errors.UnknownServerError):
    """The process that matches patterns was killed, or failed by a bug."""


class _Child:
    """The process and the socket to it; `OSError` if it cannot be started."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(_RESULT_TIMEOUT_S)
        search_path = os.pathsep.join(
            filter(None, (str(_SOURCE_ROOT), os.environ.get("PYTHONPATH")))
        )
        try:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-m", filter_worker.__name__],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": search_path},
                start_new_session=True,  # Ctrl-C on the terminal is for the broker alone
            )
        except OSError:
            self._socket.close()
            raise
        finally:
            theirs.close()
        logger.info("process %d matches patterns from now on", self._process.pid)

    def exchange(self, descriptor: int, job: ScanJob) -> ScanResult:
        """Send a job and return its result; `EOFError` if the process ended, perhaps due to it."""
        try:
            socket.send_fds(self._socket, [encode_frame(job.encode())], [descriptor])
            (size,) = INT32.unpack(self._receive(INT32.size))
            return ScanResult.decode(Reader(self._receive(size)))
        except ConnectionError as error:
            raise EOFError from error

    def _receive(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            received = self._socket.recv_into(view)
            if not received:
                raise EOFError
            view = view[received:]
        return data

    def kill(self) -> None:
        """End the process at once; `exchange` then raises."""
        self._process.kill()

    def end(self) -> int:
        """End the process and return its exit status (negative: a signal)."""
        self._socket.close()
        self._process.kill()  # without effect if it has ended by itself
        return self._process.wait()


def _too_slow(where: str, job: ScanJob) -> errors.PatternTooSlowError:
    error = errors.PatternTooSlowError(
        f"pattern '{job.payload_filter.text}' is too slow: {where} it took {LIMIT_S:g} s without "
        "coming to an end; repetitions inside repetitions are the usual reason"
    )
    logger.warning("%s", error)
    return error
