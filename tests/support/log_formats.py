"""Message sets of both formats of a log, and what a log has read back, for tests of all logs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from broker.log.format import BATCHES, ENTRIES
from broker.log.log import Log
from broker.log.segment import FileSlice, LogFormat
from broker.protocol import codec
from broker.protocol.codec import NEW_BATCH, Fault, Record, RecordBatch
from broker.protocol.primitives import Buffer
from broker.topic import NO_HOME, TopicPartition


class Message(NamedTuple):
    """A message as a reader finds it."""

    offset: int
    value: bytes


@dataclass(frozen=True)
class FormatExample:
    """A format of logs, and a message set in it.

    Attributes:
        format: that of the set.
        partition: one with a log of it.
        one: a message set of one message, `ab`.
        step: by how much that moves the offset.
    """

    format: LogFormat
    partition: TopicPartition
    one: bytes
    step: int

    @property
    def size(self) -> int:
        """Return the bytes of the set."""
        return len(self.one)

    def set_of(self, *values: bytes) -> bytes:
        """Return a message set of other messages."""
        return set_of(self.format, values)

    def at(self, offset: int, message_set: bytes) -> bytes:
        """Return a message set as it is in the log of a leader, from an offset on."""
        if self.format is ENTRIES:
            return message_set
        return codec.stamp_batches(message_set, offset, 0)[0]


def set_of(
    format: LogFormat, values: Sequence[bytes], *, time_ms: int = 0, head: RecordBatch = NEW_BATCH
) -> bytes:
    """Return a message set; one of batches is a single one, whose head and time may be given."""
    if format is ENTRIES:
        return codec.encode(values)
    records = [Record(at, time_ms, b"key", value) for at, value in enumerate(values)]
    return codec.encode_batch(records, head)


def messages_in(format: LogFormat, data: Buffer, offset: int = 0) -> list[Message]:
    """Return the messages of valid bytes that were read from an offset on."""
    if format is ENTRIES:
        decoded = codec.decode(data, offset)
        assert decoded.fault is Fault.NONE
        return [Message(start, bytes(value)) for start, _, value in decoded.messages]
    found = codec.decode_records(data)
    assert found.fault is Fault.NONE
    return [Message(one.offset, one.value or b"") for one in found.records]


def bytes_of(found: FileSlice) -> bytes:
    """Return the bytes of a slice."""
    return os.pread(found.file.fd, found.length, found.position)


def read_messages(
    log: Log, offset: int | None = None, *, to_log_end: bool = False
) -> list[Message]:
    """Return the messages of a log from an offset, or its start, on."""
    offset = log.log_start_offset if offset is None else offset
    found: list[Message] = []
    while (part := log.read(offset, 1 << 20, to_log_end=to_log_end)) is not None:
        data = bytes_of(part)
        found += messages_in(log.format, data, offset)
        if log.format is ENTRIES:
            offset += len(data)
        else:
            offset = codec.scan_batches(data).batches[-1].next_offset
    return found


def read_values(log: Log, offset: int | None = None, *, to_log_end: bool = False) -> list[bytes]:
    """Return the values of `read_messages`."""
    return [one.value for one in read_messages(log, offset, to_log_end=to_log_end)]


def _example(format: LogFormat, home: int, *, step: int | None = None) -> FormatExample:
    one = set_of(format, [b"ab"])
    return FormatExample(format, TopicPartition("events", home, 0), one, step or len(one))


EXAMPLES = {"0.7": _example(ENTRIES, 0), "kafka": _example(BATCHES, NO_HOME, step=1)}
