"""Reads the messages of segment files for `log dump`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from broker.errors import InvalidMessageError
from broker.log.offline.inspect import first_entry_at_or_after, iter_segment_entries
from broker.log.offline.segments import (
    archived_base_offset_of,
    archived_partition_of,
    is_archive,
    segment_bytes,
)
from broker.patterns import PayloadTest
from broker.positions import NO_RANGE, parse_offset_spec, resolve
from broker.protocol.envelope import Envelope, open_envelope
from broker.protocol.message_set import Entry, messages_of
from broker.topic import MessagePosition, ReadRange, TopicPartition
from pylogctl.cli.decoding import Decoding
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.options import PayloadForm
from pylogctl.cli.render import paged, render
from pylogctl.format.envelope import MessageFacts, encode_payload
from pylogctl.format.message_format import PAYLOAD_TEXTS, Received, compile_format
from pylogctl.log.document import DUMP, INDEX, DumpRow, IndexRow

_Row = TypeVar("_Row")
_DIRECTORY = re.compile(r"(.+)[_-](\d+)")


class Dumped(NamedTuple):
    """A message of a segment file; `inner` is None for a whole entry.

    `payload` is as stored, or decoded and without the envelope.
    """

    entry: Entry
    is_valid: bool
    inner: int | None
    crc: int
    payload: bytes
    envelope: Envelope | None = None


class _FileSource:
    """An `OffsetSource` of one segment file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.base = archived_base_offset_of(path) or 0  # 0 if the file's name has no offset

    def earliest(self, partition: TopicPartition) -> int:
        return self.base

    def latest(self, partition: TopicPartition) -> int:
        return self.base + segment_bytes(self._path)

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        raise UsageError("offsets by time need a broker; a segment file stores no time")

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        if self.boundary_after(partition, position) == position:
            return position
        before = self.base
        for entry in iter_segment_entries(self._path):
            if self.base + entry.offset > position:
                break
            before = self.base + entry.offset
        return before

    def boundary_after(self, partition: TopicPartition, position: int) -> int:
        return self.base + first_entry_at_or_after(self._path, position - self.base)

    def message_counts(
        self, partition: TopicPartition, start: int, end: int
    ) -> Sequence[tuple[int, int]]:
        counts = []
        for entry in iter_segment_entries(self._path, start - self.base):
            if self.base + entry.offset >= end:
                break
            counts.append((self.base + entry.offset, sum(1 for _ in _unfold_entry(entry))))
        return counts


def partition_of(path: Path) -> TopicPartition:
    """Return the partition of a segment file, by the name of its directory."""
    directory = path.absolute().parent
    if is_archive(path) and (partition := archived_partition_of(directory)):
        return partition
    match = _DIRECTORY.fullmatch(directory.name)
    if match is None:
        return TopicPartition(path.name, 0, 0)
    return TopicPartition(match[1], 0, int(match[2]))


def _unfold_entry(entry: Entry) -> Iterator[Dumped]:
    """Yield the messages of an entry, or the entry itself if it is corrupt."""
    try:
        for message in messages_of(entry):  # an invalid entry raises before its first message
            yield Dumped(entry, True, message.inner, message.crc, message.payload)
    except InvalidMessageError:
        yield Dumped(entry, False, None, entry.crc, bytes(entry.payload))


def _whole_entry(entry: Entry) -> Iterator[Dumped]:
    yield Dumped(entry, entry.is_valid, None, entry.crc, bytes(entry.payload))


def range_of(path: Path, offset: str | None, now_ms: int) -> ReadRange:
    """Return the part of a segment file that `--offset` chooses; None for all of it."""
    source, partition = _FileSource(path), partition_of(path)
    offsets = NO_RANGE
    if offset is not None:
        offsets = parse_offset_spec([offset], now_ms=now_ms).range_for(partition)
    if offsets == NO_RANGE:
        return ReadRange(MessagePosition(source.base), None)
    return resolve(offsets, partition, source)


def dump_file(
    path: Path,
    found: ReadRange,
    *,
    shallow: bool = False,
    is_wanted: PayloadTest | None = None,
    decoding: Decoding | None = None,
) -> Iterator[Dumped]:
    """Yield the messages of a segment file in a range; with `shallow`, compressed entries whole.

    With `is_wanted`, only good ones for whose payload it is true. `decoding` makes JSON of them.
    """
    base = archived_base_offset_of(path) or 0
    end = found.end
    take = _whole_entry if shallow else _unfold_entry
    start = found.start.offset - base
    for entry in iter_segment_entries(path, start, is_wanted=is_wanted):
        offset = base + entry.offset
        if end is not None and offset >= end.offset + (end.inner > 0):
            return
        for number, dumped in enumerate(take(entry)):
            payload = open_envelope(dumped.payload)[1]
            if is_wanted is not None and not (dumped.is_valid and is_wanted(payload)):
                continue
            position = MessagePosition(offset, number)
            if shallow or (position >= found.start and (end is None or position < end)):
                yield dumped if decoding is None else _decoded(path, offset, dumped, decoding)


def _decoded(path: Path, offset: int, dumped: Dumped, decoding: Decoding) -> Dumped:
    if not dumped.is_valid or (dumped.entry.codec and dumped.inner is None):
        return dumped  # damaged, or a compressed set as a whole
    envelope, payload = open_envelope(dumped.payload)
    shown = decoding.payload(partition_of(path), offset, payload)
    return dumped if shown is None else dumped._replace(payload=shown, envelope=envelope)


def of_each(
    env: Environment, paths: Sequence[Path], read: Callable[[Path], Iterable[_Row]]
) -> Iterator[_Row]:
    """Yield what is read from files; of several, those that are removed meanwhile are left out."""
    for path in paths:
        try:
            yield from read(path)
        except FileNotFoundError:
            if len(paths) == 1:
                raise
            env.leave_out(f"'{path}' was removed meanwhile")


def show(
    env: Environment,
    paths: Sequence[Path],
    offset: str | None,
    messages: Callable[[Path, ReadRange], Iterator[Dumped]],
    max_messages: int | None,
    form: PayloadForm | None,
    message_format: str | None,
) -> int:
    """Write messages of segment files, as rows or by a format string; return how many are damaged.

    `form` is None to leave out payloads.
    """
    now_ms = env.clock.time_ms()
    damaged_count = 0

    def counted_messages(path: Path) -> Iterator[tuple[Path, Dumped]]:
        nonlocal damaged_count
        for dumped in messages(path, range_of(path, offset, now_ms)):
            damaged_count += not dumped.is_valid
            yield path, dumped

    with paged(env) as out:
        found = islice(of_each(env, paths, counted_messages), max_messages)
        if message_format is not None:
            write_message = compile_format(message_format, for_terminal=out.streams.stdout_is_tty)
            for number, (path, dumped) in enumerate(found, start=1):
                facts = facts_of(path, dumped)
                out.write(write_message(Received(facts, number, env.clock.time_ms(), group="")))
        else:
            is_json = env.output in ("json", "jsonl")
            records = (row_of(path, one, form, is_json=is_json) for path, one in found)
            render(out, DUMP.showing("file") if len(paths) > 1 else DUMP, records)
        out.flush()
    return damaged_count


def show_index(env: Environment, paths: Sequence[Path]) -> None:
    """Render where each entry of segment files starts."""
    with paged(env) as out:
        document = INDEX.showing("file") if len(paths) > 1 else INDEX
        render(out, document, of_each(env, paths, _index_file))


def _index_file(path: Path) -> Iterator[IndexRow]:
    """Yield the place of each entry of a segment file, without a look at what it holds."""
    base = archived_base_offset_of(path)
    for entry in iter_segment_entries(path):
        offset = None if base is None else base + entry.offset
        yield IndexRow(str(path), entry.offset, offset, entry.next_offset - entry.offset)


def row_of(path: Path, dumped: Dumped, form: PayloadForm | None, *, is_json: bool) -> DumpRow:
    """Return the row of a message; `form` is None to leave out the payload."""
    entry = dumped.entry
    base = archived_base_offset_of(path)
    return DumpRow(
        file=str(path),
        pos=entry.offset,
        offset=None if base is None else base + entry.offset,
        size=len(dumped.payload),
        magic=entry.magic,
        codec=_codec_name(entry),
        crc=f"{dumped.crc:08x}",
        valid=dumped.is_valid,
        inner=dumped.inner,
        **(_payload_fields(dumped.payload, form, is_json=is_json) if form else {}),
    )


def _payload_fields(payload: bytes, form: PayloadForm, *, is_json: bool) -> dict[str, str]:
    if is_json and form != "escape":  # under the name by which `produce --jsonl` reads it
        key, text = encode_payload(payload, "auto" if form == "utf8" else form)
        return {key: text}
    return {"payload": PAYLOAD_TEXTS[form](payload)}


def _codec_name(entry: Entry) -> str:
    """Return the name of an entry's codec, or its attributes if they are invalid."""
    codec = entry.codec
    return f"attributes {entry.attributes:#04x}" if codec is None else codec.name.lower()


def facts_of(path: Path, dumped: Dumped) -> MessageFacts:
    """Return a message as the facts that format strings use."""
    base = archived_base_offset_of(path) or 0
    envelope, payload = open_envelope(dumped.payload)
    return MessageFacts(
        partition=partition_of(path),
        offset=base + dumped.entry.offset,
        next_offset=base + dumped.entry.next_offset,
        inner=dumped.inner or 0,
        crc=dumped.crc,
        codec=_codec_name(dumped.entry),
        magic=dumped.entry.magic,
        payload=payload,
        envelope=dumped.envelope or envelope,
    )
