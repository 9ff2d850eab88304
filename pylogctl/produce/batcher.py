"""From input to batches, and the handling of messages that cannot be sent."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from broker.producer.records import overhead_of, record_of
from broker.protocol.codec import (
    EncodedText,
    OversizePieceError,
    Record,
    encode,
    encode_delimited,
)
from broker.protocol.record_batch import HEADER_BYTES
from broker.topic import TopicPartition
from pylogctl.cli.environment import CliError
from pylogctl.format import framing_reader
from pylogctl.format.framing_reader import CHUNK_BYTES, Block, ChunkReader, Framed, Refuse
from pylogctl.produce.input_reader import InputError, InputReader, InputStopped
from pylogctl.produce.sender import MessageBatch, Sender

_Part = TypeVar("_Part", Block, Framed)

ANY_COUNT = (1 << 31) - 1  # no limit of messages


class BatchLimits(NamedTuple):
    """Sizes of messages and batches, and how long a batch may wait to become full."""

    message_bytes: int
    batch_messages: int
    batch_bytes: int
    linger_s: float


class RefusedError(CliError):
    """A message that cannot be sent ends the run; the text names its input."""


@dataclass(eq=False, kw_only=True)
class Refusals:
    """Messages that cannot be sent: the first one ends the run, or each is reported and counted.

    Attributes:
        skips: report them with `tell` and continue.
        tell: reports a message that is left out.
        count: messages left out.
    """

    skips: bool
    tell: Callable[[str], None]
    count: int = field(default=0, init=False)

    def refuse(self, error: CliError, source: str = "", count: int = 1) -> None:
        """Leave `count` messages out, or raise `RefusedError`; the text starts with `source`."""
        message = f"{source}{error.message}"
        if not self.skips:
            raise RefusedError(error.status, message, *error.hints, code=error.code)
        self.tell(message)
        self.count += count


class Lines(NamedTuple):
    """Splits text at a delimiter; every line is a message as it is, and all go to one partition."""

    partition: TopicPartition
    delimiter: bytes  # at least one byte


class UnsentMessage(NamedTuple):
    """A message to send; topics of format `kafka` store the rest, see `Queued`."""

    partition: TopicPartition
    payload: bytes
    key: bytes | None = None
    record: Record | None = None


class Splitter(Protocol):
    """Splits an input into messages, each with its own partition."""

    def split(self, stream: ChunkReader, refuse: Refuse) -> Iterator[Framed]:
        """Yield what the framing gives, as soon as each is complete."""

    def message_of(self, framed: Framed, number: int) -> UnsentMessage | None:
        """Return the message with a number in the run; None to leave it out; raise `CliError`."""


@dataclass(slots=True)
class _OpenBatch:
    message_limit: int
    payloads: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    payload_bytes: int = 0
    records: list[Record] = field(default_factory=list)  # of a topic of format `kafka`


@dataclass(eq=False)
class Batcher:
    """Sends the messages of inputs, with an open batch for each partition.

    `Lines` are encoded in blocks, with no object for a line. With a `Splitter` messages are handled
    one by one.

    Attributes:
        sender: takes batches.
        splitter: splits an input into messages.
        limits: of messages and batches.
        max_messages: how many to send, in all inputs together; None for all.
        refusals: counts messages that cannot be sent.
        accepted: called with the input bytes of messages that are sent.
        is_confirmed: returns by number and payload whether an earlier run has sent a message; not
            with `Lines`.
        position: bytes of the current input that are processed.
    """

    sender: Sender
    splitter: Lines | Splitter
    _: KW_ONLY
    limits: BatchLimits
    max_messages: int | None
    refusals: Refusals
    accepted: Callable[[bytes], None] | None = None
    is_confirmed: Callable[[int, bytes], bool] | None = None
    position: int = field(default=0, init=False)
    _open: dict[TopicPartition, _OpenBatch] = field(default_factory=dict, init=False)
    _blocks: list[bytes] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._left_count = sys.maxsize if self.max_messages is None else self.max_messages
        self._block_bytes = self._line_count = 0  # in `_blocks`; lines only if they are limited
        self._since_s: float | None = None  # when the first message that is not sent came in
        self._source = ""  # of the current input
        self._number_before = self._number = 0  # messages of inputs before, and up to now

    def read(self, reader: InputReader) -> None:
        """Send all messages of an input; those that are complete also if `InputStopped` ends it."""
        reader.attend(self)
        self._source, self._number_before, self.position = reader.name, self._number, 0
        if not self._left_count:
            return
        if isinstance(self.splitter, Lines):
            limit, delimiter = self.limits.message_bytes, self.splitter.delimiter
            blocks = framing_reader.read_blocks(reader, delimiter, limit, self._refuse_line)
            for block in self._until_failure(blocks):
                self._take_block(block, self.splitter, reader)
                if not self._left_count:
                    break
        else:
            for framed in self._until_failure(self.splitter.split(reader, self._refuse)):
                self._take(framed, self.splitter)
                if not self._left_count:
                    break
        self._send_all()

    def due_s(self) -> float | None:
        """Return when open batches must be sent, if there are any."""
        return None if self._since_s is None else self._since_s + self.limits.linger_s

    def on_idle(self) -> None:
        """Send open batches and wait for their acknowledgement."""
        self._send_all()
        self.sender.flush()

    def _until_failure(self, parts: Iterator[_Part]) -> Iterator[_Part]:
        """Yield parts of an input; if it fails, those before are sent."""
        try:
            yield from parts
        except (InputStopped, InputError):
            self._send_all()
            raise
        except RefusedError:
            raise
        except CliError as error:
            # the reader also sends while it waits: this may be the failure of a broker
            if self.sender.has_failed:
                raise
            self._send_all()
            message = f"{self._source}{error.message}"
            raise CliError(error.status, message, *error.hints, code=error.code) from error

    def _refuse(self, number: int, error: CliError) -> None:
        """Refuse a message by its number in the input."""
        # messages before this one are sent, even if the refusal ends the run
        self._send_all()
        self._number = self._number_before + number
        self.refusals.refuse(error, self._source)

    def _take(self, framed: Framed, splitter: Splitter) -> None:
        self._number = number = self._number_before + framed.number
        self.position = framed.position + len(framed.raw)
        try:
            message = splitter.message_of(framed, number)
        except CliError as error:
            self._refuse(framed.number, error)
            return
        if message is None:
            return
        self._left_count -= 1
        if self.is_confirmed is not None and self.is_confirmed(number, message.payload):
            return
        if self._add(message, number) and self.accepted is not None:
            self.accepted(framed.raw)

    def _add(self, message: UnsentMessage, number: int) -> bool:
        """Add a message to the open batch of its partition; return False if it is refused."""
        partition, payload, *_ = message
        limits = self.limits
        batch = self._open.get(partition)
        limit = self.sender.message_limit(partition) if batch is None else batch.message_limit
        size_bytes, batch_bytes = len(payload), limits.batch_bytes
        if partition.has_records:  # the limit is that of a batch
            size_bytes += HEADER_BYTES + overhead_of(message)
            batch_bytes = min(batch_bytes, limit)
        if size_bytes > limit:
            return self._send_alone(message, number)
        if batch is None:
            batch = self._open[partition] = _OpenBatch(limit)
        elif batch.payload_bytes + size_bytes > batch_bytes:
            self._send(partition)
            batch = self._open[partition] = _OpenBatch(limit)
        if partition.has_records:
            batch.records.append(_record_of(message, len(batch.records)))
        else:
            batch.payloads.append(payload)
        batch.numbers.append(number)
        batch.payload_bytes += size_bytes
        if len(batch.numbers) >= limits.batch_messages:
            self._send(partition)
        elif self._since_s is None:
            self._since_s = time.monotonic()
        elif time.monotonic() > self._since_s + limits.linger_s and limits.linger_s:
            self._send_all()
        return True

    def _send_alone(self, message: UnsentMessage, number: int) -> bool:
        """Send a message that its broker may refuse, behind all others; return whether it did not.

        Messages behind it are sent when the broker has answered.
        """
        refused_count = self.refusals.count
        self._send_all()
        if message.partition.has_records:
            batch = MessageBatch(message.partition, b"", [number], [_record_of(message, 0)])
        else:
            batch = MessageBatch(message.partition, encode([message.payload]), [number])
        self.sender.send(batch)
        self.sender.flush()
        return self.refusals.count == refused_count

    def _send(self, partition: TopicPartition) -> None:
        batch = self._open.pop(partition)
        if not self._open:
            self._since_s = None
        message_set = b"" if partition.has_records else encode(batch.payloads)
        self.sender.send(MessageBatch(partition, message_set, batch.numbers, batch.records))

    def _send_all(self) -> None:
        if isinstance(self.splitter, Lines):
            self._send_blocks(self.splitter)
        for partition in list(self._open):
            self._send(partition)

    def _take_block(self, block: Block, lines: Lines, reader: InputReader) -> None:
        if not self._blocks:
            self.position = block.position
        if not block.text:
            return
        self._blocks.append(block.text)
        self._block_bytes += len(block.text)
        if self._since_s is None:
            self._since_s = time.monotonic()
        limits = self.limits
        if min(limits.batch_messages, self._left_count) < ANY_COUNT:
            self._line_count += block.text.count(lines.delimiter)
        is_full = (
            self._block_bytes >= limits.batch_bytes or self._line_count >= limits.batch_messages
        )
        # encoding more lines at once is cheaper, unless they have to be waited for
        if (
            self._block_bytes >= CHUNK_BYTES
            or self._line_count >= self._left_count
            or (is_full and not reader.is_ready())
        ):
            self._send_blocks(lines)

    def _send_blocks(self, lines: Lines) -> None:
        """Send the lines in the blocks, as many as may be sent."""
        text = b"".join(self._blocks)
        self._blocks.clear()
        self._block_bytes = self._line_count = 0
        self._since_s = None
        while text and self._left_count:
            end = len(text)
            if self._left_count < end:  # there are at most as many lines as bytes
                pieces = text.split(lines.delimiter, self._left_count)
                end -= len(pieces[-1]) if len(pieces) > self._left_count else 0
            text = self._send_lines(text[:end], lines) + text[end:]

    def _send_lines(self, text: bytes, lines: Lines) -> bytes:
        """Send lines up to the first one above a limit, or that one; return the rest."""
        limits = self.limits
        limit = min(limits.message_bytes, self.sender.message_limit(lines.partition))
        try:
            encoded = encode_delimited(
                text,
                lines.delimiter,
                max_payload_bytes=limit,
                batch_count=limits.batch_messages,
                batch_bytes=limits.batch_bytes,
            )
        except OversizePieceError as error:
            if error.position:
                return self._send_lines(text[: error.position], lines) + text[error.position :]
            step = error.size + len(lines.delimiter)
            self._take_large_line(text[:step], error.size, lines)
            return text[step:]
        if not encoded.message_count:  # the last line of the input, without a delimiter
            if len(text) > limit:
                self._take_large_line(text, len(text), lines)
                return b""
            message_set = encode([text])
            encoded = EncodedText(message_set, len(text), 1, [len(message_set)], [1])
        self._left_count -= encoded.message_count
        view = memoryview(encoded.message_set)
        start = 0
        for end, count in zip(encoded.cuts, encoded.counts, strict=True):
            numbers = range(self._number + 1, self._number + count + 1)
            self._number += count
            self.sender.send(MessageBatch(lines.partition, view[start:end], numbers))
            start = end
        if self.accepted is not None:
            self.accepted(text[: encoded.consumed])
        self.position += encoded.consumed
        return text[encoded.consumed :]

    def _take_large_line(self, raw: bytes, size: int, lines: Lines) -> None:
        """Send a line that its broker may refuse, or refuse it, as it is too large for any."""
        if size > self.limits.message_bytes:
            self._refuse_line(self.position, size)
        else:
            self._left_count -= 1
            self._number += 1
            is_sent = self._send_alone(UnsentMessage(lines.partition, raw[:size]), self._number)
            if is_sent and self.accepted is not None:
                self.accepted(raw)
        self.position += len(raw)

    def _refuse_line(self, position: int, size: int) -> None:
        self._send_all()  # then the number of this line is known
        number = self._number - self._number_before + 1
        self._refuse(
            number, framing_reader.too_large(number, position, size, self.limits.message_bytes)
        )


def _record_of(message: UnsentMessage, number: int) -> Record:
    return record_of(message, number, message.payload, time.time_ns() // 1_000_000)
