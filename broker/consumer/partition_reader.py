"""Reads one partition: joins messages that were cut at the end of a chunk, and stops at an end.

Every reader of message sets uses it, whichever fetcher the chunks are from: add a chunk, decode
`data`, and call `take` with the number of bytes decoded. The partial message at the end stays until
the next chunk completes it.

Of a topic of format `kafka`, whose chunks have whole batches, `take_records` is called instead,
while there are batches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from operator import itemgetter

from broker.client.counts import TopicCounts
from broker.consumer.chunk import Chunk
from broker.errors import InvalidMessageError, WrongFormatError
from broker.protocol.codec import Fault, Record, decode, decode_records
from broker.protocol.message import entry_end, has_length
from broker.protocol.message_set import describe_fault
from broker.protocol.record_batch import HEADER_BYTES, parse_head
from broker.topic import MessagePosition, TopicPartition

_NOTHING = memoryview(b"")
_RECORDS_BYTES = 8 << 20
"""Records are decoded until they have so many bytes, unfolded; a batch is decoded whole."""


@dataclass(eq=False, repr=False, slots=True)
class PartitionReader:
    """The position in one partition, and the bytes after it that are not decoded yet."""

    partition: TopicPartition
    start: InitVar[MessagePosition]
    end: MessagePosition | None = None  # where reading stops; None for never
    # where the next message starts, and how many messages of the next entry, a wrapper, lie before
    # the position: the user of `data` leaves them out
    offset: int = field(init=False)
    inner: int = field(init=False)
    _bytes: memoryview = field(default=_NOTHING, init=False)
    # behind the record batches that are left; None if there are none
    _records_end: int | None = field(default=None, init=False)
    _high_watermark: int = field(default=-1, init=False)
    # of the next message, if its length has arrived
    expected_end: int = field(default=-1, init=False)
    # set to those of the thread that decodes
    counts: TopicCounts = field(default_factory=TopicCounts, init=False)
    # in a group: another member continues behind what is finished
    is_leaving: bool = field(default=False, init=False)
    # by the last response, which may be ahead of `data`; -1 if unknown
    log_end: int = field(default=-1, init=False)

    def __post_init__(self, start: MessagePosition) -> None:
        self.offset, self.inner = start

    @property
    def read_up_to(self) -> int:
        """Return the offset after the last message that was taken."""
        return self.offset

    @property
    def data(self) -> memoryview:
        """Return the bytes from `offset` on; the last message may be incomplete.

        `WrongFormatError` if they are record batches, which `batches` returns.
        """
        if self._records_end is not None:
            raise WrongFormatError(
                f"topic '{self.partition.topic}' is of format kafka, and this reads only those of "
                "format 0.7"
            )
        if self.end is None or self.end.inner:
            return self._bytes  # an end inside a wrapper does not cut the bytes
        return self._bytes[: max(0, self.end.offset - self.offset)]

    @property
    def batches(self) -> memoryview:
        """Return the record batches that are left; the first one holds `offset`."""
        return self._bytes

    @property
    def has_batches(self) -> bool:
        """Return whether there are record batches for `take_records`."""
        return self._records_end is not None

    @property
    def is_done(self) -> bool:
        """Return whether the end of the range is reached."""
        end = self.end
        return end is not None and self.offset > end.offset - (not end.inner)

    def add(self, chunk: Chunk) -> bool:
        """Append a chunk to the bytes that are left; return False if nothing new can be read."""
        left = self._bytes
        behind = self.offset + len(left) if self._records_end is None else self._records_end
        if chunk.offset != behind or self.is_done:
            return False  # requested before a seek, or past the end of the range
        if chunk.skip_to is not None:
            if len(left):
                raise self.corrupt(Fault.SIZE)  # the rest of a message will never arrive
            self.offset, self.inner = chunk.skip_to, 0
            return True
        if not len(chunk.data):
            return False
        self._bytes = memoryview(b"".join((left, chunk.data)) if len(left) else chunk.data)
        self._high_watermark = max(self._high_watermark, chunk.high_watermark)
        self._records_end = chunk.records_end
        if chunk.records_end is None:
            self._note_expected_end()
        return True

    def _note_expected_end(self) -> None:
        is_known = has_length(self._bytes) and not self.ends_beyond_log()
        self.expected_end = self.offset + entry_end(self._bytes, 0) if is_known else -1

    def take(self, valid_bytes: int, message_count: int = 0) -> None:
        """Move past `valid_bytes` of whole entries, which were decoded; count their messages."""
        self.counts.messages += message_count
        if not valid_bytes:
            return
        self.counts.size_bytes += valid_bytes
        self.offset += valid_bytes
        self.inner = 0
        left = self._bytes[valid_bytes:]
        # copy a small rest, so that it does not keep a whole chunk in memory until the next one
        is_small = 2 * len(left) <= len(self._bytes)
        self._bytes = memoryview(bytes(left)) if is_small else left
        self._note_expected_end()

    def take_valid(self, valid_bytes: int, fault: Fault, message_count: int = 0) -> None:
        """Move past good entries of `data`, and raise an error if the next one is corrupt."""
        self.take(valid_bytes, message_count)
        # the next chunk completes a `PARTIAL` entry
        if fault and (fault is not Fault.PARTIAL or self.ends_beyond_log()):
            raise self.corrupt(fault)

    def take_messages(self) -> list[tuple[int, int, bytes]]:
        """Move past the whole messages in `data`; return those in the range, as `decode` does.

        Raises `InvalidMessageError` if the next one in the range is corrupt.
        """
        messages, valid_bytes, fault = decode(self.data, self.offset)
        end = self.end
        if end is not None and end.inner:
            del messages[bisect_left(messages, end.offset, key=itemgetter(0)) + end.inner :]
        del messages[: self.inner]
        self.take(valid_bytes, len(messages))
        if not self.is_done:
            self.take_valid(0, fault)
        return messages

    def take_records(self) -> list[Record]:
        """Move past batches in `batches`, as many as may be in memory; return records of the range.

        Raises `InvalidMessageError` if the next batch is corrupt.
        """
        found = decode_records(self._bytes, max_bytes=_RECORDS_BYTES)
        if found.fault and not found.valid_bytes:
            raise self.corrupt(found.fault)
        # the first batch can start before the offset, and the last one end behind the range
        first, records = self.offset, found.records
        if records and records[0].offset < first:
            del records[: bisect_left(records, first, key=itemgetter(0))]
        if self.end is not None and records and records[-1].offset >= self.end.offset:
            del records[bisect_left(records, self.end.offset, key=itemgetter(0)) :]
        next_offset = found.records[-1].offset + 1 if found.records else first
        self.take_batches(found.valid_bytes, max(first, next_offset), len(records))
        return records

    def take_batches(self, valid_bytes: int, next_offset: int, record_count: int) -> None:
        """Move past whole batches, to an offset behind their records."""
        self.counts.messages += record_count
        self.counts.size_bytes += valid_bytes
        self._bytes = self._bytes[valid_bytes:]
        self.offset = next_offset
        if not len(self._bytes):
            assert self._records_end is not None
            # what compaction removed, and marks of transactions, take offsets too
            self.offset = max(next_offset, self._records_end)
        if self.is_done or not len(self._bytes):
            self.drop_data()

    def give_back(self, offset: int) -> None:
        """Continue at an offset below `offset`: records behind it were taken and are not used."""
        self.drop_data()
        self.offset = offset

    def after_damage(self) -> int:
        """Return the offset behind the damaged batch in `batches`, as far as its head tells."""
        head = parse_head(self._bytes[:HEADER_BYTES], 0)
        is_plausible = head is not None and head.base_offset <= self.offset <= head.last_offset
        return head.next_offset if head is not None and is_plausible else self.offset + 1

    def ends_beyond_log(self, after_bytes: int = 0) -> bool:
        """Return whether an incomplete entry ends past the high watermark, and so is corrupt."""
        if not has_length(self._bytes, after_bytes):
            return False
        # brokers serve whole messages only, up to the high watermark
        return 0 <= self._high_watermark < self.offset + entry_end(self._bytes, after_bytes)

    def corrupt(self, fault: Fault) -> InvalidMessageError:
        """Return the error for the entry at `offset`."""
        text = describe_fault(fault, self.offset)
        if fault is Fault.PARTIAL:
            text = (
                f"the message at {self.offset} is larger than the fetch, or its length is corrupt"
            )
        return _corrupt(self.partition, text)

    def drop_data(self) -> None:
        """Drop the bytes that are left; the next chunk starts at `offset` again."""
        self._bytes = _NOTHING
        self._records_end = None
        self.expected_end = -1

    def restart_at(self, offset: int, inner: int = 0) -> None:
        """Continue at another offset, where a message starts; drop the bytes that are left."""
        self.offset, self.inner = offset, inner
        self.drop_data()
        self._high_watermark = -1

    def finish(self, next_offset: int) -> bool:
        """Mark all messages before an offset as processed; return False after a revocation.

        The offset is where an entry starts or ends, not past those taken.
        """
        return True  # without a group nothing is recorded


def _corrupt(partition: TopicPartition, text: str) -> InvalidMessageError:
    error = InvalidMessageError(f"{partition}: {text}")
    error.partition = partition
    return error


@contextmanager
def naming_partition(partition: TopicPartition) -> Iterator[None]:
    """Add the partition to errors about corrupt messages."""
    try:
        yield
    except InvalidMessageError as error:
        raise _corrupt(partition, str(error)) from error
