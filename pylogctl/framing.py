"""How messages stand in a pipe: incremental readers and writers of every framing.

Each pair gives back any bytes it is safe for (`cli.md` calls this the piping contract). Pure bytes:
the stream is handed in, nothing is opened here. The readers are for framings that need a look at
each message; with a plain delimiter `produce` hands whole chunks to `codec.encode_delimited` and
takes only `Framing.delimiter` from here.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from pylogctl.errors import CliError, UsageError
from pylogctl.escapes import unescape
from pylogctl.exit_status import ExitStatus

CHUNK_BYTES = 1 << 20
_BLANKS = b" \t\r\v\f"
_HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")
_BASE64_DIGITS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")


class Shape(Enum):
    """The kinds of framing."""

    DELIMITED = "delimiter"
    LENGTH = "length prefix"
    HEX = "hex"
    BASE64 = "base64"
    JSONL = "jsonl"
    WHOLE = "whole"


class LengthCode(Enum):
    """How a length prefix is written; the words of `--length-prefixed`."""

    U32BE = "u32be"
    U32LE = "u32le"
    U64BE = "u64be"
    VARINT = "varint"


@dataclass(frozen=True, slots=True)
class Framing:
    """One framing: its shape, the delimiter or the length code where it has one."""

    shape: Shape
    delimiter: bytes = b"\n"
    length_code: LengthCode = LengthCode.U32BE


class ChunkReader(Protocol):
    """A binary stream that returns what is there, as `io.BufferedReader.read1` does."""

    def read1(self, size: int, /) -> bytes:
        """Return at most `size` bytes, at least one unless the stream is at its end."""


_FIXED = {
    LengthCode.U32BE: struct.Struct(">I"),
    LengthCode.U32LE: struct.Struct("<I"),
    LengthCode.U64BE: struct.Struct(">Q"),
}
_HEADER_BYTES_MAX = 10


def choose_framing(
    *,
    delimiter: str | None = None,
    null: bool = False,
    length_prefixed: LengthCode | None = None,
    hex_lines: bool = False,
    base64_lines: bool = False,
    jsonl: bool = False,
    whole: bool = False,
) -> Framing:
    """Return the framing the options ask for; newline if none does.

    Raises:
        UsageError: more than one does, or the delimiter has an unknown escape.
    """
    given = {
        "--delimiter": delimiter is not None,
        "--null": null,
        "--length-prefixed": length_prefixed is not None,
        "--hex": hex_lines,
        "--base64": base64_lines,
        "--jsonl": jsonl,
        "--whole or --raw": whole,
    }
    chosen = [option for option, is_given in given.items() if is_given]
    if len(chosen) > 1:
        raise UsageError(f"only one framing is possible: {' and '.join(chosen)}")
    if length_prefixed is not None:
        return Framing(Shape.LENGTH, length_code=length_prefixed)
    if hex_lines or base64_lines:
        return Framing(Shape.HEX if hex_lines else Shape.BASE64)
    if jsonl:
        return Framing(Shape.JSONL)
    text = "\n" if delimiter is None else delimiter
    separator = b"\0" if null else unescape(text)
    if whole or not separator:
        return Framing(Shape.WHOLE, delimiter=b"")
    return Framing(Shape.DELIMITED, delimiter=separator)


def read_messages(
    stream: ChunkReader, framing: Framing, *, max_message_bytes: int
) -> Iterator[bytes]:
    """Yield the messages of a stream, as soon as each is complete.

    JSON lines are yielded as lines; `pylogctl.envelope` reads them.

    Args:
        stream: read in large chunks until its end.
        framing: how messages are told apart.
        max_message_bytes: limit of a framed message, so that a wrong length prefix or a missing
            delimiter cannot take all memory.

    Raises:
        CliError: the input is cut inside a message, or a message is above the limit.
        UsageError: a line is not hexadecimal or base64; the text names line and character.
    """
    if framing.shape is Shape.WHOLE:
        return _read_whole(stream, max_message_bytes)
    if framing.shape is Shape.LENGTH:
        return _read_lengths(stream, framing.length_code, max_message_bytes)
    if framing.shape is Shape.HEX:
        return _decode_lines(_read_delimited(stream, b"\n", 2 * max_message_bytes), _decode_hex)
    if framing.shape is Shape.BASE64:
        return _decode_lines(_read_delimited(stream, b"\n", 2 * max_message_bytes), _decode_base64)
    if framing.shape is Shape.JSONL:
        # A byte of payload takes at most six of JSON, and the other fields take little.
        return _read_delimited(stream, b"\n", 6 * max_message_bytes + 4096)
    return _read_delimited(stream, framing.delimiter, max_message_bytes)


def _read_whole(stream: ChunkReader, limit: int) -> Iterator[bytes]:
    parts = []
    size = 0
    while chunk := stream.read1(CHUNK_BYTES):
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            raise too_large(1, 0, size, limit)
    yield b"".join(parts)


def _read_delimited(stream: ChunkReader, delimiter: bytes, limit: int) -> Iterator[bytes]:
    """Yield pieces between delimiters; a last piece without one is yielded unless empty."""
    rest = bytearray()
    count = consumed = 0
    while chunk := stream.read1(CHUNK_BYTES):
        search_from = max(0, len(rest) - len(delimiter) + 1)
        rest += chunk
        if rest.find(delimiter, search_from) >= 0:
            *pieces, last = bytes(rest).split(delimiter)
            rest = bytearray(last)
            for piece in pieces:
                count += 1
                if len(piece) > limit:
                    raise too_large(count, consumed, len(piece), limit)
                consumed += len(piece) + len(delimiter)
                yield piece
        if len(rest) > limit + len(delimiter):
            raise too_large(count + 1, consumed, len(rest), limit)
    if len(rest) > limit:
        raise too_large(count + 1, consumed, len(rest), limit)
    if rest:
        yield bytes(rest)


def too_large(number: int, position: int, size: int, limit: int) -> UsageError:
    """Return the error of a message above the limit.

    Args:
        number: which message of the input, from 1.
        position: where it starts in the input, in bytes.
        size: its size in bytes, as far as it was read.
        limit: the largest size allowed.
    """
    return UsageError(
        f"message {number} (input byte {position}) has {size} bytes; "
        f"the limit is {limit} (--max-size)"
    )


def _read_lengths(stream: ChunkReader, code: LengthCode, limit: int) -> Iterator[bytes]:
    buffer = bytearray()
    position = number = 0
    is_at_end = False
    while True:
        header = _read_length(buffer, code)
        if header is not None:
            length, header_bytes = header
            if length > limit:
                raise too_large(number + 1, position, length, limit)
            end = header_bytes + length
            if len(buffer) >= end:
                yield bytes(memoryview(buffer)[header_bytes:end])
                del buffer[:end]
                position, number = position + end, number + 1
                continue
        if is_at_end:
            break
        chunk = stream.read1(CHUNK_BYTES)
        is_at_end = not chunk
        buffer += chunk
    if buffer:
        raise CliError(
            ExitStatus.CORRUPT,
            f"the input ends inside message {number + 1}, which starts at input byte {position}",
        )


def _read_length(buffer: bytearray, code: LengthCode) -> tuple[int, int] | None:
    """Return a length and the bytes it takes, None if the buffer ends inside it."""
    if code is not LengthCode.VARINT:
        fixed = _FIXED[code]
        return (fixed.unpack_from(buffer)[0], fixed.size) if len(buffer) >= fixed.size else None
    value = 0
    for index, byte in enumerate(buffer[:_HEADER_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, index + 1
    if len(buffer) >= _HEADER_BYTES_MAX:
        raise CliError(ExitStatus.CORRUPT, "a varint length in the input has more than 10 bytes")
    return None


def encode_length(length: int, code: LengthCode) -> bytes:
    """Return a length prefix.

    Args:
        length: at least 0; below 2^32 for the 32-bit codes.
        code: how it is written.
    """
    if code is not LengthCode.VARINT:
        return _FIXED[code].pack(length)
    out = bytearray()
    while length > 0x7F:
        out.append(length & 0x7F | 0x80)
        length >>= 7
    out.append(length)
    return bytes(out)


class _LineDecoder(Protocol):
    def __call__(self, line: bytes) -> bytes:
        """Return the message a line stands for; raises `_BadDigitError`."""


class _BadDigitError(Exception):
    """A line holds something that is not a digit of its encoding; the text says what."""


def _decode_lines(lines: Iterator[bytes], decode: _LineDecoder) -> Iterator[bytes]:
    for number, line in enumerate(lines, start=1):
        try:
            yield decode(line.translate(None, _BLANKS))
        except _BadDigitError as error:
            raise UsageError(f"line {number}: {error}") from error


def _decode_hex(line: bytes) -> bytes:
    try:
        return binascii.unhexlify(line)
    except binascii.Error as error:
        raise _BadDigitError(_bad_digit(line, _HEX_DIGITS, "a hex digit")) from error


def _decode_base64(line: bytes) -> bytes:
    try:
        return binascii.a2b_base64(line, strict_mode=True) if line else b""
    except binascii.Error as error:
        raise _BadDigitError(_bad_digit(line, _BASE64_DIGITS, "a base64 digit")) from error


def _bad_digit(line: bytes, digits: frozenset[int], what: str) -> str:
    for byte in line:
        if byte not in digits:
            return f"{chr(byte)!r} is not {what}"
    return f"{len(line)} digits do not make whole bytes"


def write_message(payload: bytes, framing: Framing) -> bytes:
    """Return a message as it stands in the pipe, delimiter included.

    Args:
        payload: any bytes; a delimiter in it is written as it is.
        framing: any but JSON lines, which need more than the payload.
    """
    if framing.shape is Shape.LENGTH:
        return encode_length(len(payload), framing.length_code) + payload
    if framing.shape is Shape.HEX:
        return binascii.hexlify(payload) + b"\n"
    if framing.shape is Shape.BASE64:
        return binascii.b2a_base64(payload)
    return payload + framing.delimiter
