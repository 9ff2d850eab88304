"""The codec engine in plain Python, which runs where the compiled one is not built.

Documents each function for both engines; those for Kafka's record batches are in
`_batches_python`. Shares only the result types and the unfolding of
wrappers with the other one, so that tests can compare the two.

If not said otherwise, a `buffer` is a message set that starts on an entry; a partial entry at its
end is not decoded. `base_offset` is the log offset of its first byte: `OverflowError` if the offset
after the buffer exceeds 64 bits.
"""

from __future__ import annotations

import re
import struct
import sys
from array import array
from collections.abc import Collection, Iterable
from functools import partial
from itertools import accumulate, pairwise
from typing import Any
from zlib import crc32

from broker.errors import MessageSizeTooLargeError
from broker.protocol import message
from broker.protocol._batches_python import crc32c as crc32c
from broker.protocol._batches_python import decode_record_columns as decode_record_columns
from broker.protocol._batches_python import decode_records as decode_records
from broker.protocol._batches_python import encode_batch as encode_batch
from broker.protocol._batches_python import encode_records as encode_records
from broker.protocol._batches_python import scan_batches as scan_batches
from broker.protocol._batches_python import stamp_batches as stamp_batches
from broker.protocol._batches_python import verify_batches as verify_batches
from broker.protocol.message import LENGTH_BYTES, Columns, CrcCheck, Fault, codec_at, entry_end
from broker.protocol.primitives import INT16, INT32, INT64, Buffer
from broker.protocol.read_message import Message as Message
from broker.protocol.read_message import make_message as make_message
from broker.protocol.read_message import make_messages
from broker.topic import TopicPartition

# Matches where an entry may start: a length from 5 to 2^24-1 and a magic byte of 0 or 1. Larger
# lengths are left out: every zero byte of text would be a candidate, and a smaller entry follows
# soon.
_ENTRY_CANDIDATE = re.compile(
    rb"\x00(?:[^\x00]..|\x00[^\x00].|\x00\x00[\x05-\xff])[\x00\x01]", re.DOTALL
)
_MAX_OFFSET = 2**63 - 1
_MAX_INT32 = 2**31 - 1
_UINT32 = struct.Struct(">I")
_LENGTH_AND_MAGIC = struct.Struct(">iB")

# requests that append one set: see native/publishes.c for their layout
_SIZE_BYTES = 4
_ID_BYTES = 4
_PRODUCE_START = b"\x00\x00"
_PUBLISH_START = b"\x00\x41\x00\x00"
_ACKS_TIMEOUT_COUNT_BYTES = 10
_ONE_SET = b"\x00\x00\x00\x01"  # the count
_HOME_AND_INDEX_BYTES = 8
# longer heads are left to the general decoder: a cache full of them would take too much memory
_MAX_HEAD_BYTES = 1024
_RESPONSE_ID_AT = 6
_RESPONSE_OFFSET_FROM_END = 18


def _validate_offsets(base_offset: int, size: int) -> None:
    if base_offset > _MAX_OFFSET - size:
        raise OverflowError("the offset after the last message exceeds 64 bits")


class _Rows:
    """The columns under construction."""

    def __init__(self, base_offset: int, crc_check: CrcCheck, max_value_bytes: int) -> None:
        self.value_bytes = 0
        self._base_offset = base_offset
        self._crc_check = crc_check
        self._max_value_bytes = max_value_bytes
        self._starts: list[int] = []
        self._nexts: list[int] = []
        self._crcs: list[int] = []
        self._values: list[bytes] = []
        # row, index in the wrapper, attributes and validity of each message that is not plain
        self._others: list[tuple[int, int, int, bool]] = []

    def add_plain(self, data: bytes, position: int) -> int:
        """Add good entries without attributes up to the first other one; return its position."""
        unpack, checksum = _KIND.unpack_from, crc32
        is_checked = self._crc_check is not CrcCheck.OFF
        value_bytes, most = self.value_bytes, self._max_value_bytes
        add_start, add_next = self._starts.append, self._nexts.append
        add_crc, add_value = self._crcs.append, self._values.append
        last_start = len(data) - message.ENTRY_OVERHEAD_BYTES
        while position <= last_start:
            length, kind, crc = unpack(data, position)
            end = position + 4 + length
            value_bytes += length - 6
            if kind != _PLAIN or length < 6 or end > len(data) or value_bytes > most:
                break
            value = data[position + 10 : end]
            if is_checked and checksum(value) != crc:
                break
            add_start(position)
            add_next(end)
            add_crc(crc)
            add_value(value)
            self.value_bytes = value_bytes
            position = end
        return position

    def add(self, view: memoryview, position: int, payloads: list[bytes], *, is_good: bool) -> None:
        """Add the messages of an entry of any kind."""
        if not payloads:
            return
        row, count = len(self._starts), len(payloads)
        attributes = message.attributes_at(view, position)
        is_wrapper = is_good and codec_at(view, position)
        self._starts += [position] * count
        self._nexts += [position] * (count - 1) + [entry_end(view, position)]
        self._crcs += map(crc32, payloads) if is_wrapper else [message.crc_at(view, position)]
        self._values += payloads
        self._others += [(row + inner, inner, attributes, is_good) for inner in range(count)]
        self.value_bytes += sum(map(len, payloads))

    def columns(self, valid_bytes: int, fault: Fault) -> Columns:
        """Return the columns of the rows added."""
        count = len(self._starts)
        inners = array("i", [0]) * count
        attributes = bytearray(count)
        for row, inner, attribute, _ in self._others:
            inners[row] = inner
            attributes[row] = attribute
        base_offset = self._base_offset
        return Columns(
            message_count=count,
            valid_bytes=valid_bytes,
            fault=fault,
            offsets=array("q", [base_offset + start for start in self._starts]).tobytes(),
            next_offsets=array("q", [base_offset + end for end in self._nexts]).tobytes(),
            inners=inners.tobytes(),
            attributes=bytes(attributes),
            crcs=array("I", self._crcs).tobytes(),
            value_offsets=array("i", accumulate(map(len, self._values), initial=0)).tobytes(),
            values=b"".join(self._values),
            crc_ok=self._marks() if self._crc_check is CrcCheck.MARK else b"",
        )

    def _marks(self) -> bytes:
        count = len(self._starts)
        bits = (1 << count) - 1
        for row, _, _, is_good in self._others:
            if not is_good:
                bits &= ~(1 << row)
        return bits.to_bytes((count + 7) // 8, "little")


_SHORT_BYTES = 500
_COPY_MAX_BYTES = 4 << 20

_MAGIC1 = struct.Struct(">iBBI")
_KIND = struct.Struct(">iHI")
_PLAIN = 0x0100  # magic 1 and attributes 0 as one uint16, as in nearly all entries


def encode(payloads: Iterable[Buffer]) -> bytes:
    """Return the message set, magic 1 and uncompressed, of these payloads.

    `MessageSizeTooLargeError` if a payload exceeds `MAX_PAYLOAD_BYTES`.
    """
    payloads = list(payloads)
    largest = max(map(len, payloads), default=0)
    if largest > message.MAX_PAYLOAD_BYTES:
        raise MessageSizeTooLargeError(
            f"a message of {largest} bytes is too large for the format; "
            f"the limit is {message.MAX_PAYLOAD_BYTES}"
        )
    pack, header_bytes = _MAGIC1.pack, message.MAGIC1_HEADER_BYTES
    parts: list[Buffer] = []
    add = parts.append
    for payload in payloads:
        add(pack(len(payload) + header_bytes, 1, 0, crc32(payload)))
        add(payload)
    return b"".join(parts)


def encode_delimited(
    buffer: Buffer,
    delimiter: bytes,
    *,
    max_payload_bytes: int,
    batch_count: int,
    batch_bytes: int | None = None,
) -> message.EncodedText:
    """Encode each line of delimited text as a message.

    Args:
        buffer: text; an incomplete last line is left for the next call.
        delimiter: at least one byte; it is not part of a message.
        max_payload_bytes: the largest payload allowed; `OversizePieceError` for a larger line.
        batch_count: the most messages of one batch, at least 1.
        batch_bytes: the most bytes of the set in one batch, at least 0; a larger message is a
            batch of its own.
    """
    if not delimiter or batch_count < 1 or min(max_payload_bytes, batch_bytes or 0) < 0:
        raise ValueError("a delimiter or a limit is out of range")
    lines = bytes(buffer).split(delimiter)
    rest = lines.pop()
    sizes = list(map(len, lines))
    limit = min(max_payload_bytes, message.MAX_PAYLOAD_BYTES)
    if sizes and max(sizes) > limit:
        index = next(i for i, size in enumerate(sizes) if size > limit)
        position = sum(sizes[:index]) + index * len(delimiter)
        raise message.OversizePieceError(index, position, sizes[index], limit)
    ends = list(accumulate([size + message.ENTRY_OVERHEAD_BYTES for size in sizes]))
    cuts, counts = _cut(ends, batch_count, batch_bytes)
    return message.EncodedText(encode(lines), len(buffer) - len(rest), len(lines), cuts, counts)


def _cut(ends: list[int], batch_count: int, batch_bytes: int | None) -> tuple[list[int], list[int]]:
    """Return the end and the message count of each batch."""
    if batch_bytes is None or not ends or ends[-1] <= batch_bytes:
        cuts = ends[batch_count - 1 :: batch_count]
        counts = [batch_count] * len(cuts)
        if len(ends) % batch_count:
            cuts.append(ends[-1])
            counts.append(len(ends) % batch_count)
        return cuts, counts
    cuts, counts = [], []
    batch_start = last_end = count = 0
    for end in ends:
        if count == batch_count or (count and end - batch_start > batch_bytes):
            cuts.append(last_end)
            counts.append(count)
            batch_start, count = last_end, 0
        last_end = end
        count += 1
    return [*cuts, last_end], [*counts, count]


def scan(buffer: Buffer) -> message.Scan:
    """Validate sizes, magic bytes, codecs and CRCs of the outer entries of any bytes."""
    view = memoryview(buffer)
    data = _to_slice(buffer)
    size = len(view)
    unpack = _KIND.unpack_from
    checksum = crc32
    last_start = size - message.ENTRY_OVERHEAD_BYTES
    wrappers: list[int] = []
    position = count = largest = 0
    fault = Fault.NONE
    while position <= last_start:
        length, kind, crc = unpack(data, position)
        end = position + 4 + length
        if kind != _PLAIN or length < 6 or end > size:
            fault = message.fault_at(view, position)
            if fault:
                break
            if codec_at(view, position):
                wrappers.append(position)
            if kind < _PLAIN:
                length += 1  # magic 0 has no attributes: the payload is larger by one
        elif checksum(data[position + 10 : end]) != crc:
            fault = Fault.CRC
            break
        if length > largest:
            largest = length
        position = end
        count += 1
    else:
        if position < size:  # one last magic 0 entry of 9 bytes may be left, or a tail
            fault = message.fault_at(view, position)
            if not fault:
                position, count = size, count + 1
    return message.Scan(
        position, count, fault, wrappers, max(0, largest - message.MAGIC1_HEADER_BYTES)
    )


def _to_slice(buffer: Buffer) -> bytes | memoryview:
    """Return a buffer in the form whose slices cost least, by the size of its first entry."""
    # short slices of `bytes` cost less than views, so another buffer is copied up to a limit
    view = memoryview(buffer)
    is_short = len(view) < LENGTH_BYTES or INT32.unpack_from(view)[0] <= _SHORT_BYTES
    if not is_short or len(view) > _COPY_MAX_BYTES:
        return view
    return buffer if isinstance(buffer, bytes) else bytes(view)


def boundaries(
    buffer: Buffer,
    least_bytes: int = message.MAGIC0_HEADER_BYTES,
    most_bytes: int = _MAX_INT32,
    most_count: int = sys.maxsize,
    /,
) -> list[int]:
    """Return the starts of all whole entries, by length alone, and the end of the last one.

    At least `[0]`. The walk ends early at a length out of range, and after `most_count` entries;
    the ranges of other things than entries, which have their length before them too, are given.
    """
    if not (0 <= least_bytes <= _MAX_INT32 and most_bytes >= 0 and most_count >= 0):
        raise ValueError("a limit is out of range")
    unpack = INT32.unpack_from
    position = 0
    last_start = len(buffer) - LENGTH_BYTES - least_bytes
    end_of_buffer = len(buffer)
    found = [0]
    add = found.append
    while position <= last_start and len(found) <= most_count:
        (length,) = unpack(buffer, position)
        position += 4 + length
        if not least_bytes <= length <= most_bytes or position > end_of_buffer:
            break
        add(position)
    return found


def find_entry(buffer: Buffer, stop: int, rest: int, /) -> tuple[int, bool]:
    """Return the position of the first whole entry with a good CRC in any bytes, and True.

    The time is linear in the bytes only with the compiled engine.

    Args:
        buffer: the bytes searched.
        stop: the positions below it are searched, at least 0.
        rest: the bytes of the file from the start of the buffer on, at least those of the buffer.

    Returns:
        Without such an entry, where the search ended, and False: at `stop`, or before it at the
        first position that needs bytes behind the buffer.
    """
    view = memoryview(buffer)
    size = len(view)
    if stop < 0 or rest < size:
        raise ValueError("a limit is out of range")
    stop = min(stop, size)
    candidates_end = min(stop, max(0, size - LENGTH_BYTES))
    unpack = _LENGTH_AND_MAGIC.unpack_from
    position = -1
    while found := _ENTRY_CANDIDATE.search(view, position + 1, candidates_end + LENGTH_BYTES):
        position = found.start()
        length, magic = unpack(view, position)
        payload_start = position + message.MIN_ENTRY_BYTES + magic
        end = position + LENGTH_BYTES + length
        if end <= payload_start or end > rest:
            continue  # without a payload no CRC tells an entry from a few stray zero bytes
        has_following = rest - end >= message.MIN_ENTRY_BYTES
        if end + (message.MIN_ENTRY_BYTES if has_following else 0) > size:
            return position, False
        if has_following:
            length, magic = unpack(view, end)
            if magic > 1 or length < message.MAGIC0_HEADER_BYTES + magic:
                continue
        (crc,) = _UINT32.unpack_from(view, payload_start - message.CRC_BYTES)
        if crc32(view[payload_start:end]) == crc:
            return position, True
    return (candidates_end if size < rest else stop), False


def single_appends(
    buffer: Buffer, bounds: list[int], first: int, /
) -> message.SingleAppends | None:
    """Return the requests from one on that append one set each and differ in little else.

    They differ in correlation id and set. `bounds`: those of the frames in the buffer, as
    `boundaries` returns them; `first` is the number of one. None if that is another request, or
    unusual: the general decoder must read it.
    """
    if not 0 <= first < len(bounds) - 1:
        raise ValueError("there is no such frame")
    view = memoryview(buffer)
    frame = view[bounds[first] + _SIZE_BYTES : bounds[first + 1]]
    head_start, set_start = _append_start(frame)
    if not set_start:
        return None
    head = bytes(frame[head_start : set_start - _SIZE_BYTES])
    layout = struct.Struct(f">{'4s4s' if head_start else ''}{len(head)}sI")
    unpack = layout.unpack_from
    ids: list[bytes] = []
    sets: list[memoryview] = []
    for start, end in pairwise(bounds[first:]):
        start += _SIZE_BYTES
        if end - start < set_start:
            break
        fields = unpack(view, start)
        if fields[-2] != head or fields[-1] != end - start - set_start:
            break
        if head_start:
            if fields[0] != _PUBLISH_START:
                break
            ids.append(fields[1])
        sets.append(view[start + set_start : end])
    if not sets:
        return None
    sizes = struct.pack(f">{len(sets)}I", *map(len, sets))
    joined = sets[0] if len(sets) == 1 else b"".join(sets)
    are_whole = all(_is_entry(one) or boundaries(one)[-1] == len(one) for one in sets)
    return first + len(sets), head, b"".join(ids), sizes, joined, are_whole


def _is_entry(buffer: memoryview) -> bool:
    """Return whether a buffer is one entry, by its length alone: what most sets are."""
    size = len(buffer) - LENGTH_BYTES
    return size >= message.MAGIC0_HEADER_BYTES and bool(INT32.unpack_from(buffer)[0] == size)


def _append_start(frame: memoryview) -> tuple[int, int]:
    """Return where head and set of a request start; the latter is 0 if it is unusual."""
    if frame[: len(_PUBLISH_START)] == _PUBLISH_START:
        head_start = len(_PUBLISH_START) + _ID_BYTES
        client_end = _behind_text(frame, head_start)
        count_end = client_end + _ACKS_TIMEOUT_COUNT_BYTES
        end = _behind_text(frame, count_end) + _HOME_AND_INDEX_BYTES
        if frame[count_end - len(_ONE_SET) : count_end] != _ONE_SET:
            return 0, 0  # before the run is sought, which all requests of it would repeat
    elif frame[: len(_PRODUCE_START)] == _PRODUCE_START:
        head_start = 0
        end = _behind_text(frame, len(_PRODUCE_START)) + INT32.size
    else:
        return 0, 0
    set_start = end + _SIZE_BYTES
    is_good = end - head_start <= _MAX_HEAD_BYTES and set_start <= len(frame)
    return head_start, set_start if is_good else 0


def _behind_text(frame: memoryview, position: int) -> int:
    """Return the position behind a short string; beyond the frame if it is cut off, or null."""
    if len(frame) - position < INT16.size:
        return len(frame)
    length: int = INT16.unpack_from(frame, position)[0]
    return position + INT16.size + length if length >= 0 else len(frame)


def publish_responses(template: bytes, ids: bytes, sizes: bytes, base_offset: int, /) -> bytes:
    """Return the responses to publishes of one set each that were appended together.

    Args:
        template: such a response, of which correlation id and offset are replaced.
        ids: the correlation ids, as in `SingleAppends`.
        sizes: those of the sets, likewise.
        base_offset: that of the first set.
    """
    id_end = _RESPONSE_ID_AT + _ID_BYTES
    is_short = len(template) < id_end + _RESPONSE_OFFSET_FROM_END
    if is_short or len(ids) % _ID_BYTES or len(sizes) != len(ids):
        raise ValueError("template, ids and sizes do not fit together")
    lengths = [length for (length,) in _UINT32.iter_unpack(sizes)]
    _validate_offsets(base_offset, sum(lengths))
    front = template[:_RESPONSE_ID_AT]
    middle = template[id_end:-_RESPONSE_OFFSET_FROM_END]
    back = template[INT64.size - _RESPONSE_OFFSET_FROM_END :]
    parts: list[bytes] = []
    for place, length in enumerate(lengths):
        at = place * _ID_BYTES
        parts += (front, ids[at : at + _ID_BYTES], middle, INT64.pack(base_offset), back)
        base_offset += length
    return b"".join(parts)


def decode(buffer: Buffer, base_offset: int) -> message.Decoded:
    """Return the messages of a message set up to the first fault, wrappers unfolded.

    Inside a wrapper all messages have the wrapper's start as their offset, and all but the last
    have it as their next offset too, as in Kafka 0.7's `ByteBufferMessageSet`.
    """
    view = memoryview(buffer)
    data = buffer if isinstance(buffer, bytes) else bytes(buffer)
    size = len(data)
    _validate_offsets(base_offset, size)
    unpack = _KIND.unpack_from
    checksum = crc32
    last_start = size - message.ENTRY_OVERHEAD_BYTES
    messages: list[tuple[int, int, bytes]] = []
    add = messages.append
    position = 0
    offset = base_offset
    while position <= last_start:
        length, kind, crc = unpack(data, position)
        end = position + 4 + length
        if kind != _PLAIN or length < 6 or end > size:
            fault, inner = _unfold_entry(view, position, _open)
            if fault:
                return message.Decoded(messages, position, fault)
            messages += [(offset, offset, payload) for payload in inner[:-1]]
            next_offset = base_offset + end
            messages += [(offset, next_offset, payload) for payload in inner[-1:]]
            offset = next_offset
        else:
            payload = data[position + 10 : end]
            if checksum(payload) != crc:
                return message.Decoded(messages, position, Fault.CRC)
            add((offset, (offset := base_offset + end), payload))
        position = end
    if position == size:
        return message.Decoded(messages, position, Fault.NONE)
    fault, inner = _unfold_entry(view, position, _open)
    if fault:
        return message.Decoded(messages, position, fault)
    messages += [(offset, base_offset + size, payload) for payload in inner]
    return message.Decoded(messages, size, Fault.NONE)


def decode_messages(
    buffer: Buffer, base_offset: int, topic: str, partition: TopicPartition
) -> tuple[list[Message], int, Fault]:
    """Return what `decode` does, as messages of a partition."""
    found, valid_bytes, fault = decode(buffer, base_offset)
    return make_messages(topic, partition, found), valid_bytes, fault


def decode_delimited(buffer: Buffer, delimiter: bytes, limit: int = -1) -> message.DecodedText:
    """Write at most `limit` (-1: all) payloads, each followed by the delimiter, or by none."""
    parts, position, fault = _walk(_to_slice(buffer), _open, limit)
    count = len(parts)
    if count:
        parts.append(b"")
    return message.DecodedText(delimiter.join(parts), position, count, fault)


def _walk(data: Any, open_: message.Opener, limit: int = -1) -> tuple[list[Any], int, Fault]:
    """Return at most `limit` payloads, slices of `data`; where the walk ended, and why."""
    view = memoryview(data)
    size = len(data)
    unpack = _KIND.unpack_from
    checksum = crc32
    last_start = size - message.ENTRY_OVERHEAD_BYTES
    parts: list[Any] = []
    add = parts.append
    position = 0
    while position != size and len(parts) != limit:
        if position <= last_start:
            length, kind, crc = unpack(data, position)
            end = position + 4 + length
            if kind == _PLAIN and length >= 6 and end <= size:
                payload = data[position + 10 : end]
                if checksum(payload) != crc:
                    return parts, position, Fault.CRC
                add(payload)
                position = end
                continue
        fault, inner = _unfold_entry(view, position, open_)
        if fault:
            return parts, position, fault
        if 0 <= limit < len(parts) + len(inner):
            parts += inner[: limit - len(parts)]
            break
        parts += inner
        position = entry_end(view, position)
    return parts, position, Fault.NONE


def _unfold_entry(
    view: memoryview, position: int, open_: message.Opener
) -> tuple[Fault, list[bytes]]:
    """Return the payloads of the entry at `position`, or its fault."""
    fault = message.fault_of_header(view, position)
    return (fault, []) if fault else _content(view, position, open_)


def _content(
    view: memoryview, position: int, open_: message.Opener, crc_check: CrcCheck = CrcCheck.STOP
) -> tuple[Fault, list[bytes]]:
    """Return the payloads of an entry whose header is good, or the fault in its content."""
    fault = message.fault_of_content(view, position)
    if fault and not (fault is Fault.CRC and crc_check is CrcCheck.OFF):
        return fault, []
    codec, payload = codec_at(view, position), message.payload_at(view, position)
    if not codec:
        return Fault.NONE, [bytes(payload)]
    inner = open_(codec, payload)
    return (Fault.COMPRESSED, []) if inner is None else (Fault.NONE, inner)


def _payloads(buffer: Buffer, open_: message.Opener) -> tuple[list[bytes], int, Fault]:
    return _walk(bytes(buffer), open_)


def count_delimiters(text: Buffer, delimiter: bytes) -> int:
    """Count the occurrences of a delimiter in a text, without overlaps."""
    return bytes(text).count(delimiter)


# what they raise: see there
unfold = partial(message.unfold_with, _payloads)
count_unfolded = partial(message.count_with, scan)
_open = message.opener(_payloads)


def decode_columns(
    buffer: Buffer,
    base_offset: int,
    *,
    crc_check: CrcCheck = CrcCheck.STOP,
    max_value_bytes: int = message.MAX_VALUE_BYTES,
    columns: Collection[str] = message.COLUMN_NAMES,
) -> Columns:
    """Return the messages of a message set as columns for Arrow, wrappers unfolded.

    Args:
        crc_check: how to treat entries with a wrong CRC or an unreadable content. An impossible
            length or an unknown magic byte ends the walk in any case.
        max_value_bytes: the most bytes of payload, at least 0; the walk ends before the entry that
            would exceed it, but takes at least one.
        columns: names of those to make; the others are empty.
    """
    if max_value_bytes < 0:
        raise ValueError("max_value_bytes is at least 0")
    max_value_bytes = min(max_value_bytes, message.MAX_VALUE_BYTES)
    _validate_offsets(base_offset, len(buffer))
    rows = _Rows(base_offset, crc_check, max_value_bytes)
    data = bytes(buffer)
    view = memoryview(data)
    fault = Fault.NONE
    position = rows.add_plain(data, 0)
    while position < len(data) and rows.value_bytes <= max_value_bytes:
        fault = message.fault_of_header(view, position)
        if fault:
            break
        fault, payloads = _content(view, position, _open, crc_check)
        is_good = not fault
        if fault and crc_check is CrcCheck.MARK:
            fault, payloads = Fault.NONE, [bytes(message.payload_at(view, position))]
        value_bytes = rows.value_bytes + sum(map(len, payloads))
        if fault or (position and value_bytes > max_value_bytes):
            break
        rows.add(view, position, payloads, is_good=is_good)
        position = rows.add_plain(data, entry_end(view, position))
    unwanted: dict[str, Any] = {name: b"" for name in message.COLUMN_NAMES if name not in columns}
    return rows.columns(position, fault)._replace(**unwanted)
