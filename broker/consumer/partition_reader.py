"""Reads one partition: joins messages that were cut at the end of a chunk, and stops at an end.

Every reader of message sets uses it, whoever fetches the chunks: add a chunk, decode `data`, and
call `take` with the number of bytes decoded. The partial message at the end stays until the next
chunk completes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from broker.consumer.chunk import Chunk
from broker.errors import InvalidMessageError
from broker.protocol.codec import Fault
from broker.protocol.message import entry_end, has_length
from broker.protocol.message_set import describe_fault
from broker.topic import MessagePosition, TopicPartition


class PartitionReader:
    """The position in one partition, and the bytes from there on that are not decoded yet.

    Attributes:
        offset: where the next message starts.
        inner: how many messages of the next entry, a compressed set, lie before the position; who
            decodes `data` leaves them out.
        end: where reading stops; None for never.
        expected_end: the end of the next message, whose length has come; -1 if unknown.
    """

    __slots__ = (
        "_bytes",
        "_high_watermark",
        "end",
        "expected_end",
        "inner",
        "offset",
        "partition",
    )

    def __init__(
        self, partition: TopicPartition, start: MessagePosition, end: MessagePosition | None = None
    ) -> None:
        self.partition = partition
        self.end = end
        self.offset, self.inner = start
        self._bytes = memoryview(b"")
        self._high_watermark = -1
        self.expected_end = -1

    @property
    def data(self) -> memoryview:
        """Return the bytes from `offset` on; the last message may be incomplete.

        They end where the range ends, unless that lies inside a compressed set.
        """
        if self.end is None or self.end.inner:
            return self._bytes
        return self._bytes[: max(0, self.end.offset - self.offset)]

    @property
    def is_done(self) -> bool:
        """Return whether the end of the range is reached."""
        end = self.end
        return end is not None and self.offset > end.offset - (not end.inner)

    def add(self, chunk: Chunk) -> bool:
        """Append a chunk to the bytes that are left.

        Returns:
            False if it holds nothing to read: it is empty, lies past the end of the range, or was
            requested before a seek and does not continue what is here.

        Raises:
            InvalidMessageError: a filter skipped messages behind the start of a message here, so
                that the rest of it will never come.
        """
        left = self._bytes
        if chunk.offset != self.offset + len(left) or self.is_done:
            return False
        if chunk.skip_to is not None:
            if len(left):
                raise self.corrupt(Fault.SIZE)
            self.offset, self.inner = chunk.skip_to, 0
            return True
        if not len(chunk.data):
            return False
        self._bytes = memoryview(b"".join((left, chunk.data)) if len(left) else chunk.data)
        self._high_watermark = max(self._high_watermark, chunk.high_watermark)
        self._note_expected_end()
        return True

    def _note_expected_end(self) -> None:
        is_known = has_length(self._bytes) and not self.ends_beyond_log()
        self.expected_end = self.offset + entry_end(self._bytes, 0) if is_known else -1

    def take(self, valid_bytes: int) -> None:
        """Move past entries that were decoded.

        Args:
            valid_bytes: the length of whole entries.
        """
        if not valid_bytes:
            return
        self.offset += valid_bytes
        self.inner = 0
        left = self._bytes[valid_bytes:]
        # Copy a small rest, so that it does not keep a whole chunk in memory until the next one.
        is_small = 2 * len(left) <= len(self._bytes)
        self._bytes = memoryview(bytes(left)) if is_small else left
        self._note_expected_end()

    def take_valid(self, valid_bytes: int, fault: Fault) -> None:
        """Move past the good entries of `data`.

        Args:
            valid_bytes: the length of the good entries.
            fault: why no more of them are good; a `PARTIAL` entry is completed by the next chunk.

        Raises:
            InvalidMessageError: the next entry is corrupt.
        """
        self.take(valid_bytes)
        if fault and (fault is not Fault.PARTIAL or self.ends_beyond_log()):
            raise self.corrupt(fault)

    def ends_beyond_log(self, after_bytes: int = 0) -> bool:
        """Return whether an incomplete entry would end past the high watermark: it is corrupt.

        Brokers serve whole messages only, up to the high watermark.

        Args:
            after_bytes: where in `data` the entry starts.
        """
        if not has_length(self._bytes, after_bytes):
            return False
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
        """Forget the bytes that are left; the next chunk starts at `offset` again."""
        self._bytes = memoryview(b"")
        self.expected_end = -1

    def restart_at(self, offset: int) -> None:
        """Continue at another offset, where a message starts; drop the bytes that are left."""
        self.offset, self.inner = offset, 0
        self.drop_data()
        self._high_watermark = -1

    def finish(self, next_offset: int) -> bool:
        """Mark all messages before an offset as processed; without a group nothing records it.

        Args:
            next_offset: where an entry starts or ends; not past what was taken.

        Returns:
            False if the partition was revoked: another member of the group continues it.
        """
        return True


def _corrupt(partition: TopicPartition, text: str) -> InvalidMessageError:
    error = InvalidMessageError(f"{partition}: {text}")
    error.partition = partition
    return error


@contextmanager
def naming_partition(partition: TopicPartition) -> Iterator[None]:
    """Have errors about corrupt messages name their partition.

    Raises:
        InvalidMessageError: a message is corrupt.
    """
    try:
        yield
    except InvalidMessageError as error:
        raise _corrupt(partition, str(error)) from error
