"""Reads messages from a pipe, incrementally, in every framing of `pylogctl.format.framing`.

Memory is bounded by the largest message allowed. For a plain delimiter `produce` hands whole blocks
of lines to the codec.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from pylogctl.cli.environment import CliError, ExitStatus, UsageError
from pylogctl.format.framing import FIXED_LENGTHS, VARINT_BYTES_MAX, Framing, LengthCode, Shape

CHUNK_BYTES = 1 << 19
COUNTED_BYTES_MAX = 64 << 20
"""Bytes of a message above the limit that are read to report its size."""

_BLANKS = b" \t\r\v\f"
_HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")
_BASE64_DIGITS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")


class ChunkReader(Protocol):
    """A binary stream that returns available bytes, as `io.BufferedReader.read1` does."""

    def read1(self, size: int, /) -> bytes:
        """Return at most `size` bytes, at least one unless the stream is at its end."""


class Framed(NamedTuple):
    """A message of an input."""

    number: int  # from 1
    position: int  # byte offset in the input
    raw: bytes  # with its framing
    payload: bytes  # of JSON lines the line, which `pylogctl.format.envelope` reads


Refuse = Callable[[int, UsageError], None]
"""Called with the number of each invalid message; raises to stop reading."""


def refuse_all(number: int, error: UsageError) -> None:
    """Stop reading at the first invalid message."""
    raise error


def too_large(number: int, position: int, size: int, limit: int) -> UsageError:
    """Return the error for a message above the limit; `size` is what was read of it, in bytes."""
    more_than = "more than " if size > limit + COUNTED_BYTES_MAX else ""
    return UsageError(
        f"message {number} (input byte {position}) has {more_than}{size} bytes; "
        f"the limit is {limit} (--max-size)"
    )


def read_messages(
    stream: ChunkReader, framing: Framing, *, max_message_bytes: int, refuse: Refuse = refuse_all
) -> Iterator[Framed]:
    """Yield the messages of a stream, as soon as each is complete.

    `max_message_bytes` limits a framed message: a wrong length prefix or a missing delimiter must
    not use up the memory. `refuse` is called for a message above the limit, and for a line that is
    not hexadecimal or base64. An input that ends inside a message is a CliError.
    """
    limit = max_message_bytes
    if framing.shape is Shape.WHOLE:
        return _read_whole(stream, limit, refuse)
    if framing.shape is Shape.LENGTH:
        return _read_lengths(stream, framing.length_code, limit, refuse)
    if framing.shape in (Shape.HEX, Shape.BASE64):
        lines = read_delimited(stream, b"\n", 2 * limit, refuse)
        return _decode_lines(lines, framing.shape, refuse)
    if framing.shape is Shape.JSONL:
        # A byte of payload takes at most six of JSON, and the other fields take little.
        return read_delimited(stream, b"\n", 6 * limit + 4096, refuse)
    return read_delimited(stream, framing.delimiter, limit, refuse)


class TextBuffer:
    """A buffer of delimited text: a list of chunks, so that long lines are copied only once."""

    def __init__(self, delimiter: bytes) -> None:
        self._delimiter = delimiter  # at least one byte
        self._overlap = len(delimiter) - 1
        self._chunks: list[bytes] = []
        self._tail = b""
        self.size = 0
        """Bytes in the buffer."""
        self.has_line = False
        """Whether a line is complete."""

    def add(self, chunk: bytes) -> None:
        """Append a chunk."""
        self._chunks.append(chunk)
        self.size += len(chunk)
        if not self.has_line:
            seam = self._tail + chunk[: self._overlap]
            self.has_line = self._delimiter in chunk or self._delimiter in seam
        if self._overlap:
            self._tail = (self._tail + chunk[-self._overlap :])[-self._overlap :]

    def take(self) -> bytes:
        """Return the whole text, and clear the buffer."""
        text = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._tail = b""
        self.size = 0
        self.has_line = False
        return text

    def skip_line(self, stream: ChunkReader, counted_bytes_max: int | None) -> tuple[int, bool]:
        """Drop the incomplete line in the buffer with the rest of it in the stream.

        Stops after more than `counted_bytes_max` bytes, if given; bytes after the line stay in the
        buffer. Returns the number of bytes dropped, without the delimiter, and whether the line has
        ended.
        """
        size = self.size
        tail = self._tail
        self.take()
        while counted_bytes_max is None or size <= counted_bytes_max:
            chunk = stream.read1(CHUNK_BYTES)
            if not chunk:
                return size, True
            text = tail + chunk
            end = text.find(self._delimiter)
            if end >= 0:
                rest = text[end + len(self._delimiter) :]
                if rest:
                    self.add(rest)
                return size + end - len(tail), True
            size += len(chunk)
            tail = text[-self._overlap :] if self._overlap else b""
        self._tail = tail
        return size, False


class Block(NamedTuple):
    """Whole lines of an input, or its last line without a delimiter."""

    position: int  # byte offset in the input
    text: bytes


def read_blocks(
    stream: ChunkReader, delimiter: bytes, limit: int, refuse: Callable[[int, int], None]
) -> Iterator[Block]:
    """Yield the lines of a stream, as many together as arrive together.

    A line above the limit is dropped if it does not end in the chunk in which it starts: `refuse`
    gets its position and its size, as counted up to `COUNTED_BYTES_MAX` above the limit, and an
    empty block tells where it ends. Shorter lines above the limit are in the blocks.
    """
    buffer = TextBuffer(delimiter)
    position = 0
    while chunk := stream.read1(CHUNK_BYTES):
        buffer.add(chunk)
        while buffer.has_line or buffer.size > limit + len(delimiter):
            if buffer.has_line:
                text = buffer.take()
                end = _end_of_lines(text, delimiter)
                if end < len(text):
                    buffer.add(text[end:])
                yield Block(position, text[:end])
                position += end
                continue
            size, is_complete = buffer.skip_line(stream, limit + COUNTED_BYTES_MAX)
            refuse(position, size)
            if not is_complete:
                size += buffer.skip_line(stream, None)[0]
            position += size + len(delimiter)
            yield Block(position, b"")
    if buffer.size:
        yield Block(position, buffer.take())


def _end_of_lines(text: bytes, delimiter: bytes) -> int:
    """Return the end of the last delimiter in a text, as found from the left."""
    overlaps = any(delimiter.startswith(delimiter[i:]) for i in range(1, len(delimiter)))
    if overlaps:  # from the right another delimiter may be found
        return len(text) - len(text.split(delimiter)[-1])
    return text.rfind(delimiter) + len(delimiter)


def read_delimited(
    stream: ChunkReader, delimiter: bytes, limit: int, refuse: Refuse = refuse_all
) -> Iterator[Framed]:
    """Yield the messages between delimiters; a last one without delimiter unless it is empty."""
    number = 0

    def refuse_line(position: int, size: int) -> None:
        nonlocal number
        number += 1
        refuse(number, too_large(number, position, size, limit))

    for start, text in read_blocks(stream, delimiter, limit, refuse_line):
        lines = text.split(delimiter)
        if not lines[-1]:
            del lines[-1]
        place = 0
        for line in lines:
            end = place + len(line) + len(delimiter)
            if len(line) <= limit:
                number += 1
                yield Framed(number, start + place, text[place:end], line)
            else:
                refuse_line(start + place, len(line))
            place = end


def _read_whole(stream: ChunkReader, limit: int, refuse: Refuse) -> Iterator[Framed]:
    parts: list[bytes] = []
    size = 0
    while (chunk := stream.read1(CHUNK_BYTES)) and size <= limit + COUNTED_BYTES_MAX:
        size += len(chunk)
        if size <= limit:
            parts.append(chunk)
        else:
            parts.clear()
    if size > limit:
        refuse(1, too_large(1, 0, size, limit))
        return
    whole = b"".join(parts)
    yield Framed(1, 0, whole, whole)


def _read_lengths(
    stream: ChunkReader, code: LengthCode, limit: int, refuse: Refuse
) -> Iterator[Framed]:
    buffer = bytearray()
    position = number = 0
    while True:
        header = _read_length(buffer, code)
        if header is not None and header[0] > limit:
            refuse(number + 1, too_large(number + 1, position, header[0], limit))
            _drop(stream, buffer, sum(header), _cut_inside(number + 1, position))
        elif header is not None and len(buffer) >= sum(header):
            raw = bytes(memoryview(buffer)[: sum(header)])
            del buffer[: sum(header)]
            yield Framed(number + 1, position, raw, raw[header[1] :])
        else:
            chunk = stream.read1(CHUNK_BYTES)
            if not chunk:
                break
            buffer += chunk
            continue
        position, number = position + sum(header), number + 1
    if buffer:
        raise _cut_inside(number + 1, position)


def _cut_inside(number: int, position: int) -> CliError:
    return CliError(
        ExitStatus.CORRUPT,
        f"the input ends inside message {number}, which starts at input byte {position}",
    )


def _drop(stream: ChunkReader, buffer: bytearray, size: int, if_cut: CliError) -> None:
    """Drop bytes from the front of buffer and stream together."""
    while len(buffer) < size:
        size -= len(buffer)
        buffer.clear()
        chunk = stream.read1(CHUNK_BYTES)
        if not chunk:
            raise if_cut
        buffer += chunk
    del buffer[:size]


def _read_length(buffer: bytearray, code: LengthCode) -> tuple[int, int] | None:
    """Return a length and the size of its prefix, None if the buffer ends inside the prefix."""
    if code is not LengthCode.VARINT:
        fixed = FIXED_LENGTHS[code]
        return (fixed.unpack_from(buffer)[0], fixed.size) if len(buffer) >= fixed.size else None
    value = 0
    for index, byte in enumerate(buffer[:VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, index + 1
    if len(buffer) >= VARINT_BYTES_MAX:
        raise CliError(ExitStatus.CORRUPT, "a varint length in the input has more than 10 bytes")
    return None


def _decode_lines(lines: Iterator[Framed], shape: Shape, refuse: Refuse) -> Iterator[Framed]:
    for line in lines:
        text = line.payload.translate(None, _BLANKS)
        try:
            if shape is Shape.HEX:
                payload = binascii.unhexlify(text)
            else:
                payload = binascii.a2b_base64(text, strict_mode=True) if text else b""
        except binascii.Error:
            refuse(line.number, UsageError(f"line {line.number}: {_bad_digit(text, shape)}"))
        else:
            yield line._replace(payload=payload)


def _bad_digit(line: bytes, shape: Shape) -> str:
    """Return why a line is not of its shape: a wrong character, or too few digits."""
    digits = _HEX_DIGITS if shape is Shape.HEX else _BASE64_DIGITS
    for byte in line:
        if byte not in digits:
            return f"{chr(byte)!r} is not a {shape.value} digit"
    return f"{len(line)} digits do not make whole bytes"
