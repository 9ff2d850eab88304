"""From input to batches: blocks of delimited text in one go, or message by message.

Also the limits of messages and batches, and the handling of messages that cannot be sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from broker.protocol.codec import EncodedText, OversizePieceError, encode
from broker.protocol.codec import encode_delimited as encode_text
from broker.topic import TopicPartition
from pylogctl.cli.errors import CliError, UsageError
from pylogctl.cli.selection import PartitionPattern
from pylogctl.format.framing_reader import (
    CHUNK_BYTES,
    ChunkReader,
    Framed,
    Refuse,
    TextBuffer,
    drop_oversize_line,
    too_large,
)
from pylogctl.produce.input_reader import Input, InputError, InputStopped
from pylogctl.produce.sender import Batch, Sender

ANY_COUNT = (1 << 31) - 1  # no limit of messages


class Limits(NamedTuple):
    """Sizes of messages and batches, and how long a batch may wait to become full."""

    message_bytes: int
    batch_messages: int
    batch_bytes: int
    linger_s: float


class Quota:
    """How many messages may still be sent; None for any number."""

    def __init__(self, max_messages: int | None) -> None:
        self._left = max_messages

    def is_used_up(self) -> bool:
        """Return whether no more messages may be sent."""
        return self._left == 0

    def of(self, count: int) -> int:
        """Return how many of `count` messages may be sent."""
        return count if self._left is None else min(count, self._left)

    def use(self, count: int) -> None:
        """Subtract messages that are being sent."""
        if self._left is not None:
            self._left -= count


class RefusedError(CliError):
    """A message that cannot be sent ends the run; the text names its input."""


class Refusals:
    """Messages that cannot be sent: the first one ends the run, or each is reported and counted.

    Args:
        skips: report them with `tell` and continue.
    """

    def __init__(self, *, skips: bool, tell: Callable[[str], None]) -> None:
        self._skips = skips
        self._tell = tell
        self.count = 0  # messages left out

    def refuse(self, error: CliError, source: str = "", count: int = 1) -> None:
        """Leave `count` messages out, or raise `RefusedError`; the text starts with `source`."""
        message = f"{source}{error.message}"
        if not self._skips:
            raise RefusedError(error.status, message, hints=error.hints, code=error.code)
        self._tell(message)
        self.count += count


class TextBatches:
    """Sends delimited text in batches to one partition: the fast path, with no object for a line.

    Args:
        sender: takes batches.
        partition: the target.
        delimiter: ends a message; at least one byte.
        limits: of messages and batches.
        quota: how many messages to send.
        refusals: counts messages that are too large.
        accepted: called with the input bytes of the messages that were sent.
    """

    def __init__(
        self,
        sender: Sender,
        partition: TopicPartition,
        delimiter: bytes,
        *,
        limits: Limits,
        quota: Quota,
        refusals: Refusals,
        accepted: Callable[[bytes], None] | None = None,
    ) -> None:
        self._sender = sender
        self._partition = partition
        self._delimiter = delimiter
        self._limits = limits
        self._quota = quota
        self._refusals = refusals
        self._accepted = accepted
        self._buffer = TextBuffer(delimiter)
        self._since_s: float | None = None
        self._source = ""
        self._first_number = self._number = 1
        self.position = 0  # bytes of the current input that are processed

    def read(self, reader: Input) -> None:
        """Send all messages of an input; those that are complete also if `InputStopped` ends it."""
        self._source = reader.name
        self._first_number = self._number
        self.position = 0
        self._buffer.take()
        reader.attend(self)
        try:
            while not self._quota.is_used_up() and (chunk := reader.read1(CHUNK_BYTES)):
                self._add(chunk, reader)
        except (InputStopped, InputError):
            self._send_lines()
            raise
        self._send_lines()
        self._send_rest()

    def due_s(self) -> float | None:
        """Return when whole lines in the buffer must be sent, if there are any."""
        return None if self._since_s is None else self._since_s + self._limits.linger_s

    def on_idle(self) -> None:
        """Send the lines in the buffer and wait for their acknowledgement."""
        self._send_lines()
        self._sender.flush()

    def _add(self, chunk: bytes, reader: Input) -> None:
        buffer = self._buffer
        buffer.add(chunk)
        if not buffer.has_line:
            if buffer.size > self._limits.message_bytes + len(self._delimiter):
                self._drop_line(reader)
            return
        if self._since_s is None:
            self._since_s = time.monotonic()
        # Encoding more lines at once is cheaper, unless they have to be waited for.
        if buffer.size >= CHUNK_BYTES or (self._is_full() and not reader.is_ready()):
            self._send_lines()

    def _is_full(self) -> bool:
        limits = self._limits
        if self._buffer.size >= limits.batch_bytes:
            return True
        has_count = limits.batch_messages != ANY_COUNT
        return has_count and self._buffer.count_lines() >= limits.batch_messages

    def _send_lines(self) -> None:
        """Send the complete lines in the buffer that the quota allows."""
        self._since_s = None
        while self._buffer.has_line and not self._quota.is_used_up():
            text, beyond = self._at_quota(self._buffer.take())
            rest = self._send_text(text) + beyond
            if rest:
                self._buffer.add(rest)

    def _at_quota(self, text: bytes) -> tuple[bytes, bytes]:
        """Split a text behind the last line that the quota allows."""
        allowed = self._quota.of(len(text))
        if allowed == len(text):
            return text, b""
        *lines, rest = text.split(self._delimiter, allowed)
        end = len(text) - len(rest) if len(lines) == allowed else len(text)
        return text[:end], text[end:]

    def _send_text(self, text: bytes) -> bytes:
        """Send the complete lines of a text; return the rest."""
        while True:
            try:
                encoded = self._encode(text)
            except OversizePieceError as error:
                self._send_text(text[: error.position])
                self._refuse(error.size)
                self._step(1, error.size + len(self._delimiter))
                text = text[error.position + error.size + len(self._delimiter) :]
                continue
            self._send(encoded)
            if self._accepted is not None:
                self._accepted(text[: encoded.consumed])
            self._step(encoded.message_count, encoded.consumed)
            return text[encoded.consumed :]

    def _encode(self, text: bytes) -> EncodedText:
        return encode_text(
            text,
            self._delimiter,
            max_payload_bytes=self._limits.message_bytes,
            batch_count=self._limits.batch_messages,
            batch_bytes=self._limits.batch_bytes,
        )

    def _send(self, encoded: EncodedText) -> None:
        self._quota.use(encoded.message_count)
        message_set = memoryview(encoded.message_set)
        number = self._number
        start = 0
        for end, count in zip(encoded.cuts, encoded.counts, strict=True):
            numbers = range(number, number + count)
            self._sender.send(Batch(self._partition, message_set[start:end], numbers))
            start, number = end, number + count

    def _send_rest(self) -> None:
        """Send the bytes behind the last delimiter as a message."""
        if self._quota.is_used_up() or not self._buffer.size:
            self._buffer.take()
            return
        rest = self._buffer.take()
        if len(rest) > self._limits.message_bytes:
            self._refuse(len(rest))
        else:
            message_set = encode([rest])
            self._send(EncodedText(message_set, len(rest), 1, [len(message_set)], [1]))
            if self._accepted is not None:
                self._accepted(rest)
        self._step(1, len(rest))

    def _drop_line(self, reader: Input) -> None:
        size = drop_oversize_line(self._buffer, reader, self._limits.message_bytes, self._refuse)
        self._step(1, size + len(self._delimiter))

    def _refuse(self, size: int) -> None:
        number = self._number - self._first_number + 1
        error = too_large(number, self.position, size, self._limits.message_bytes)
        self._refusals.refuse(error, self._source)

    def _step(self, message_count: int, input_bytes: int) -> None:
        self._number += message_count
        self.position += input_bytes


class Outgoing(NamedTuple):
    """A message to send, and the key or pattern that chooses its partition."""

    payload: bytes
    key: bytes | None = None
    partition: PartitionPattern | None = None


ReadRecords = Callable[[ChunkReader, Refuse], Iterator[Framed]]  # messages as soon as complete
Interpret = Callable[[Framed, int], Outgoing]  # by the number in the run; raises UsageError
ChoosePartition = Callable[[Outgoing, Framed], TopicPartition]  # raises CliError


class _OpenBatch:
    __slots__ = ("numbers", "payload_bytes", "payloads")

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.numbers: list[int] = []
        self.payload_bytes = 0


class MessageBatches:
    """Sends messages one by one, in a batch for each partition: the general path.

    For framings other than delimiters, keys, templates, several partitions, and receipts.

    Args:
        sender: takes batches.
        read_records: splits an input into messages.
        interpret: returns the message to send for a framed one.
        choose_partition: returns its partition.
        limits: of messages and batches.
        quota: how many messages to send.
        refusals: counts messages that cannot be sent.
        accepted: called with the input bytes of each message that is sent.
        skip_empty: leave out empty messages.
        is_confirmed: returns by number and payload whether an earlier run has sent a message.
    """

    def __init__(
        self,
        sender: Sender,
        read_records: ReadRecords,
        interpret: Interpret,
        choose_partition: ChoosePartition,
        *,
        limits: Limits,
        quota: Quota,
        refusals: Refusals,
        accepted: Callable[[bytes], None] | None = None,
        skip_empty: bool = False,
        is_confirmed: Callable[[int, bytes], bool] | None = None,
    ) -> None:
        self._sender = sender
        self._read_records = read_records
        self._interpret = interpret
        self._choose_partition = choose_partition
        self._limits = limits
        self._quota = quota
        self._refusals = refusals
        self._accepted = accepted
        self._skip_empty = skip_empty
        self._is_confirmed = is_confirmed
        self._open: dict[TopicPartition, _OpenBatch] = {}
        self._since_s: float | None = None
        self._count_before = self._count = 0
        self.position = 0  # bytes of the current input that are processed

    def read(self, reader: Input) -> None:
        """Send all messages of an input; those that are complete also if `InputStopped` ends it."""
        reader.attend(self)
        self._count_before = self._count
        self.position = 0

        def refuse(number: int, error: UsageError) -> None:
            self._count = self._count_before + number
            self._refuse(error, reader)

        if self._quota.is_used_up():
            return
        for framed in self._records(reader, refuse):
            self._count = self._count_before + framed.number
            self.position = framed.position + len(framed.raw)
            self._take(framed, reader)
            if self._quota.is_used_up():
                break
        self._send_all()

    def _records(self, reader: Input, refuse: Refuse) -> Iterator[Framed]:
        """Yield the messages of an input; those before a failure of the input are sent."""
        try:
            yield from self._read_records(reader, refuse)
        except (InputStopped, InputError):
            self._send_all()
            raise
        except RefusedError:
            raise
        except CliError as error:
            # the reader also sends while it waits: this may be the failure of a broker
            if self._sender.has_failed:
                raise
            self._send_all()
            message = f"{reader.name}{error.message}"
            raise CliError(error.status, message, hints=error.hints, code=error.code) from error

    def due_s(self) -> float | None:
        """Return when open batches must be sent, if there are any."""
        return None if self._since_s is None else self._since_s + self._limits.linger_s

    def on_idle(self) -> None:
        """Send open batches and wait for their acknowledgement."""
        self._send_all()
        self._sender.flush()

    def _refuse(self, error: CliError, reader: Input) -> None:
        # messages before this one are sent, even if the refusal ends the run
        self._send_all()
        self._refusals.refuse(error, reader.name)

    def _take(self, framed: Framed, reader: Input) -> None:
        number = self._count
        try:
            outgoing = self._interpret(framed, number)
            payload = outgoing.payload
            if self._skip_empty and not payload:
                return
            if len(payload) > self._limits.message_bytes:
                raise too_large(
                    framed.number, framed.position, len(payload), self._limits.message_bytes
                )
            partition = self._choose_partition(outgoing, framed)
        except CliError as error:
            self._refuse(error, reader)
            return
        self._quota.use(1)
        if self._is_confirmed is not None and self._is_confirmed(number, payload):
            return
        self._add(partition, number, payload)
        if self._accepted is not None:
            self._accepted(framed.raw)

    def _add(self, partition: TopicPartition, number: int, payload: bytes) -> None:
        batch = self._open.get(partition)
        if batch is None:
            batch = self._open[partition] = _OpenBatch()
        elif batch.payload_bytes + len(payload) > self._limits.batch_bytes:
            self._send(partition)
            batch = self._open[partition] = _OpenBatch()
        batch.payloads.append(payload)
        batch.numbers.append(number)
        batch.payload_bytes += len(payload)
        if len(batch.payloads) >= self._limits.batch_messages:
            self._send(partition)
        elif self._since_s is None:
            self._since_s = time.monotonic()
        elif time.monotonic() > self._since_s + self._limits.linger_s and self._limits.linger_s:
            self._send_all()

    def _send(self, partition: TopicPartition) -> None:
        batch = self._open.pop(partition)
        if not self._open:
            self._since_s = None
        self._sender.send(Batch(partition, encode(batch.payloads), batch.numbers))

    def _send_all(self) -> None:
        for partition in list(self._open):
            self._send(partition)
