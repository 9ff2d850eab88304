"""The process that matches patterns: `re` would hold the broker's interpreter lock meanwhile.

It gets one job after another over the socket that is its standard input, each with a descriptor of
the segment file to read, and answers each. It ends when the broker does, as the socket then comes
to its end, and dies of SIGALRM when a pattern takes too long: nothing else gets `re` to stop.
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
from broker.protocol.primitives import INT16, INT32, INT64, Reader, encode_short_string
from broker.protocol.responses import Run, clip, encode_run

_RECEIVE_BYTES = 1 << 16


class ScanJob(NamedTuple):
    """A stretch of a segment file to look through.

    Args:
        position: where it starts in the file: an entry.
        length: how many bytes there are; whole entries, if the file is in order.
        offset: the log offset of its start.
        scan_bytes: how much to look at; an entry that is longer is looked at nevertheless.
        max_entry_bytes: but not if it is longer than this.
        room_bytes: how much to keep; the entry that reaches it is the last.
        limit_ms: how long the matching may take, at least 1.
        payload_filter: what to keep.
    """

    position: int
    length: int
    offset: int
    scan_bytes: int
    max_entry_bytes: int
    room_bytes: int
    limit_ms: int
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
    """What a job came to.

    `error` is a wire code that `text` explains; else everything before log offset `end_offset` has
    been looked at, `left_out_count` messages are left out, and `runs` are the others as they go
    into an answer.
    """

    error: int
    text: str
    end_offset: int = 0
    left_out_count: int = 0
    kept_bytes: int = 0
    run_count: int = 0
    runs: bytes = b""

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


def read_stretch(fd: int, job: ScanJob) -> bytes:
    """Return the bytes a job is about.

    Raises:
        OSError: the file cannot be read, or is shorter than it should be.
    """
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


def choose(data: bytes, job: ScanJob) -> ScanResult:
    """Return what a reader is to get of the bytes of a job.

    An entry that goes on behind all there is cannot be looked at; so it is for the reader to see.
    """
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


def answer(fd: int, job: ScanJob) -> ScanResult:
    """Return what a job came to; the process dies of SIGALRM if that takes longer than it may."""
    try:
        data = read_stretch(fd, job)
    except OSError as error:
        return ScanResult(StorageError.code, error.strerror or str(error))
    signal.setitimer(signal.ITIMER_REAL, job.limit_ms / 1000)
    result = choose(data, job)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return result


def serve(broker: socket.socket) -> None:
    """Answer jobs until the socket comes to its end."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(broker, _RECEIVE_BYTES, 1)
        if not data:
            return
        try:
            job = ScanJob.decode(Reader(_rest_of_frame(broker, data)))
            result = answer(descriptors[0], job)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        broker.sendall(encode_frame(result.encode()))


def _rest_of_frame(broker: socket.socket, data: bytes) -> bytes:
    decoder = FrameDecoder()
    decoder.receive_data(data)
    while (frame := decoder.next_frame()) is None:
        decoder.receive_data(broker.recv(_RECEIVE_BYTES))
    return frame


def main() -> None:
    """Serve the broker at the other end of standard input."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with socket.socket(fileno=0) as broker:
        serve(broker)


if __name__ == "__main__":
    main()
