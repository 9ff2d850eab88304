"""The child process that matches patterns: in the broker, `re` would hold the interpreter lock.

It receives jobs over the socket that is its standard input, each with a descriptor of the segment
file to read, and sends a result for each. It exits when the broker does, as that ends the stream,
and dies of SIGPROF when a pattern takes too long: nothing else stops `re`.
"""

from __future__ import annotations

import os
import signal
import socket
from typing import NamedTuple

from broker.errors import NO_ERROR, StorageError
from broker.protocol.framing import FrameDecoder, encode_frame
from broker.protocol.message import LENGTH_BYTES, entry_bytes, has_length
from broker.protocol.message_set import filter_entries
from broker.protocol.payload_filter import PayloadFilter
from broker.protocol.primitives import INT16, INT32, INT64, Reader, clip, encode_short_string
from broker.protocol.responses import Run, encode_run

_RECEIVE_BYTES = 1 << 16


class ScanJob(NamedTuple):
    """A slice of a segment file to filter; `length` bytes of whole entries, if not damaged."""

    position: int  # of its first entry in the file
    length: int
    offset: int  # the log offset of its start
    scan_bytes: int  # how much of it to filter; a longer first entry is filtered all the same
    max_entry_bytes: int  # unless it is longer than this
    room_bytes: int  # how much to keep; the entry that reaches it is the last
    limit_ms: int  # how long the matching may take, at least 1
    payload_filter: PayloadFilter

    def encode(self) -> bytes:
        """Return the job as bytes."""
        return b"".join(
            (
                *map(INT64.pack, (self.position, self.length, self.offset)),
                *map(
                    INT32.pack,
                    (self.scan_bytes, self.max_entry_bytes, self.room_bytes, self.limit_ms),
                ),
                self.payload_filter.encode(),
            )
        )

    @classmethod
    def decode(cls, reader: Reader) -> ScanJob:
        """Read a job."""
        position, length, offset = reader.int64(), reader.int64(), reader.int64()
        sizes = (reader.int32(), reader.int32(), reader.int32(), reader.int32())
        return cls(position, length, offset, *sizes, PayloadFilter.decode(reader))


class ScanResult(NamedTuple):
    """The result of a job."""

    error: int  # a wire code that `text` explains
    text: str
    end_offset: int = 0  # everything before this log offset is filtered, if there is no error
    left_out_count: int = 0  # messages
    kept_bytes: int = 0
    run_count: int = 0
    runs: bytes = b""  # the other messages, encoded for the response

    def encode(self) -> bytes:
        """Return the result as bytes."""
        counts = (self.left_out_count, self.kept_bytes, self.run_count)
        return b"".join(
            (
                INT16.pack(self.error),
                encode_short_string(clip(self.text)),
                INT64.pack(self.end_offset),
                *map(INT32.pack, counts),
                self.runs,
            )
        )

    @classmethod
    def decode(cls, reader: Reader) -> ScanResult:
        """Read a result."""
        error, text, end_offset = reader.int16(), reader.short_string(), reader.int64()
        counts = (reader.int32(), reader.int32(), reader.int32())
        return cls(error, text, end_offset, *counts, bytes(reader.data(reader.remaining)))


def read_slice(fd: int, job: ScanJob) -> bytes:
    """Return the bytes to filter, or the whole first entry if that is longer."""
    size = min(job.length, max(job.scan_bytes, LENGTH_BYTES))
    data = _read(fd, size, job.position)
    if has_length(data):
        size = entry_bytes(data)
        if len(data) < size <= min(job.length, job.max_entry_bytes):
            data += _read(fd, size - len(data), job.position + len(data))
    return data


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


def filter_slice(data: bytes, job: ScanJob) -> ScanResult:
    """Return the wanted entries among the bytes of a job."""
    # an entry longer than the data cannot be matched, so the reader gets it (`end` is 0)
    found = filter_entries(data, job.payload_filter.compile(), job.room_bytes)
    end = found.end or len(data)
    spans = found.spans if found.end else [(0, end)]
    return ScanResult(
        NO_ERROR,
        "",
        job.offset + end,
        found.left_out_count,
        sum(end - start for start, end in spans),
        len(spans),
        b"".join(encode_run(Run(job.offset + start, data[start:end])) for start, end in spans),
    )


def do_job(fd: int, job: ScanJob) -> ScanResult:
    """Return the result of a job; SIGPROF ends the process if matching takes too long."""
    try:
        data = read_slice(fd, job)
    except OSError as error:
        return ScanResult(StorageError.code, error.strerror or str(error))
    # processor time: a pause of the machine does not count
    signal.setitimer(signal.ITIMER_PROF, job.limit_ms / 1000)
    result = filter_slice(data, job)
    signal.setitimer(signal.ITIMER_PROF, 0)
    return result


def serve(broker: socket.socket) -> None:
    """Do jobs until the broker closes the socket."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(broker, _RECEIVE_BYTES, 1)
        if not data:
            return
        try:
            decoder = FrameDecoder()
            decoder.receive_data(data)
            while (frame := decoder.next_frame()) is None:
                decoder.receive_data(broker.recv(_RECEIVE_BYTES))
            job = ScanJob.decode(Reader(frame))
            result = do_job(descriptors[0], job)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        broker.sendall(encode_frame(result.encode()))


def main() -> None:
    """Serve the broker at the other end of standard input."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with socket.socket(fileno=0) as broker:
        serve(broker)


if __name__ == "__main__":
    main()
