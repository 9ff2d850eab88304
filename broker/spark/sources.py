"""The bytes of a range, in order, from a broker or from segment files.

Runs on executors. Pieces are contiguous and end where the range ends; where they are cut means
nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from broker.client.connection import Connection
from broker.consumer.chunk import Chunk
from broker.consumer.fetcher import Fetcher
from broker.errors import (
    NO_ERROR,
    BrokerUnreachableError,
    LogCorruptError,
    OffsetOutOfRangeError,
    RequestTimeoutError,
    StorageError,
    error_for_code,
)
from broker.log.segment import SegmentFile
from broker.protocol.primitives import Buffer
from broker.protocol.requests import EARLIEST_TIME, OffsetsRequest
from broker.protocol.responses import decode_offsets_response
from broker.spark.places import BrokerPlace, FilePlace, Place, SegmentPiece
from broker.spark.ranges import ByteRange
from broker.spark.report import DataLossError

_MAX_WAIT_MS = 500


class Data(NamedTuple):
    """Bytes of a partition from an offset on."""

    offset: int
    data: Buffer


def read_bytes(place: Place, whole: ByteRange, fetch_bytes: int) -> Iterator[Data]:
    """Give the bytes of a range.

    Args:
        place: where they are.
        whole: the range.
        fetch_bytes: how much to ask for at a time.

    Raises:
        DataLossError: some of them are gone since the range was planned.
        BrokerUnreachableError, RequestTimeoutError: the broker is gone, also after retries.
        LogCorruptError: a file is shorter than it was.
        StorageError: a file cannot be read.
        BrokerError: the broker refuses.
    """
    if isinstance(place, BrokerPlace):
        return _fetch(place, whole, fetch_bytes)
    return _read_files(place, whole, fetch_bytes)


def _read_files(place: FilePlace, whole: ByteRange, fetch_bytes: int) -> Iterator[Data]:
    for piece in place.pieces:
        try:
            yield from _read_file(piece, whole, fetch_bytes)
        except FileNotFoundError as error:
            raise DataLossError(
                f"{whole.partition}: {piece.path} is gone since the read was planned"
            ) from error
        except OSError as error:
            raise StorageError(f"cannot read {piece.path}: {error.strerror}") from error


def _read_file(piece: SegmentPiece, whole: ByteRange, fetch_bytes: int) -> Iterator[Data]:
    file = SegmentFile(piece.path)
    offset = max(whole.start, piece.base_offset)
    end = min(whole.end, piece.end_offset)
    while offset < end:
        data = os.pread(file.fd, min(fetch_bytes, end - offset), offset - piece.base_offset)
        if not data:
            raise LogCorruptError(
                f"{piece.path} ends at offset {offset} of {whole.partition}; "
                f"it had {piece.end_offset} when the read was planned"
            )
        yield Data(offset, data)
        offset += len(data)


def _fetch(place: BrokerPlace, whole: ByteRange, fetch_bytes: int) -> Iterator[Data]:
    partition = whole.partition
    options = place.connection
    connection = Connection(
        place.address,
        timeout_s=options.timeout_s,
        connect_timeout_s=options.connect_timeout_s,
        client_id="pylogctl-spark",
    )
    fetcher = Fetcher(
        connection,
        {partition: whole.start},
        fetch_bytes=fetch_bytes,
        max_wait_ms=_MAX_WAIT_MS,
        retry_s=options.timeout_s,
        ends={partition: whole.end},
    )
    offset = whole.start
    try:
        while offset < whole.end:
            try:
                pieces = fetcher.poll()
            except (BrokerUnreachableError, RequestTimeoutError) as error:
                raise type(error)(f"{whole}: stopped at offset {offset}: {error}") from error
            if not pieces:
                raise _ends_early(whole, offset)
            for piece in pieces:
                _check(piece, place, whole)
                if len(piece.data):
                    yield Data(offset, piece.data)
                    offset += len(piece.data)
    finally:
        fetcher.close()


def _check(piece: Chunk, place: BrokerPlace, whole: ByteRange) -> None:
    """Raise what a piece without data means: all of a planned range could be read once."""
    if piece.error == OffsetOutOfRangeError.code:
        raise _gone(place, whole, piece.offset)
    if piece.error != NO_ERROR:
        raise error_for_code(piece.error, f"cannot read {whole} at offset {piece.offset}")
    if not len(piece.data) and piece.high_watermark < whole.end:
        raise _ends_early(whole, piece.high_watermark)


def _ends_early(whole: ByteRange, offset: int) -> DataLossError:
    return DataLossError(
        f"{whole.partition} ends at {offset} now, before the planned end of the range, {whole.end}"
    )


def _gone(place: BrokerPlace, whole: ByteRange, offset: int) -> DataLossError:
    return DataLossError(
        f"{whole.partition}: offset {offset} is gone since the read was planned: "
        f"the log starts at {log_start(place, whole)}"
    )


def log_start(place: BrokerPlace, whole: ByteRange) -> int:
    """Return the log start offset of a range's partition, asked now."""
    options = place.connection
    connection = Connection(
        place.address, timeout_s=options.timeout_s, connect_timeout_s=options.connect_timeout_s
    )
    partition = whole.partition
    try:
        request = OffsetsRequest(partition.topic, partition.index, EARLIEST_TIME, 1)
        return decode_offsets_response(connection.ask(request))[0]
    finally:
        connection.close()
