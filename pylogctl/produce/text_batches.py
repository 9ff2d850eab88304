"""The fast way from input to batches: blocks of delimited text through the codec.

For runs that need no look at single messages and send to one partition. No Python object is made
for a line.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from broker.protocol.codec import EncodedText, OversizePieceError, encode
from broker.protocol.codec import encode_delimited as encode_text
from broker.topic import TopicPartition
from pylogctl.format.framing_reader import CHUNK_BYTES, TextBuffer, drop_oversize_line, too_large
from pylogctl.produce.input_reader import Input, InputError, InputStopped
from pylogctl.produce.plan import ANY_COUNT, Limits, Quota, Refusals
from pylogctl.produce.sender import Batch, Sender


class TextBatches:
    """Reads delimited text, and sends it in batches to one partition.

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
        self.position = 0
        """How far the current input is used, in bytes."""

    def read(self, reader: Input) -> None:
        """Send all messages of an input.

        Raises:
            CliError: a message cannot be sent, or a broker fails.
            InputStopped: a signal ended the input; all whole messages before that are sent.
        """
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
        # More lines in one go are cheaper, as long as there is no wait for them.
        if buffer.size >= CHUNK_BYTES or (self._is_full() and not reader.is_ready()):
            self._send_lines()

    def _is_full(self) -> bool:
        limits = self._limits
        if self._buffer.size >= limits.batch_bytes:
            return True
        has_count = limits.batch_messages != ANY_COUNT
        return has_count and self._buffer.count_lines() >= limits.batch_messages

    def _send_lines(self) -> None:
        """Send the whole lines in the buffer, as far as the quota goes."""
        self._since_s = None
        while self._buffer.has_line and not self._quota.is_used_up():
            text, beyond = self._at_quota(self._buffer.take())
            rest = self._send_text(text) + beyond
            if rest:
                self._buffer.add(rest)

    def _at_quota(self, text: bytes) -> tuple[bytes, bytes]:
        """Cut a text behind the last line that the quota allows."""
        allowed = self._quota.of(len(text))
        if allowed == len(text):
            return text, b""
        *lines, rest = text.split(self._delimiter, allowed)
        end = len(text) - len(rest) if len(lines) == allowed else len(text)
        return text[:end], text[end:]

    def _send_text(self, text: bytes) -> bytes:
        """Send the whole lines of a text; return what follows them."""
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
        """Send what follows the last delimiter as a message."""
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
        """Refuse the message at the current position."""
        number = self._number - self._first_number + 1
        error = too_large(number, self.position, size, self._limits.message_bytes)
        self._refusals.refuse(error, self._source)

    def _step(self, message_count: int, input_bytes: int) -> None:
        self._number += message_count
        self.position += input_bytes
