"""Reads the messages of segment files for `log dump`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from broker.errors import InvalidMessageError, LogCorruptError
from broker.log.offline.inspect import first_entry_at_or_after, iter_segment_entries
from broker.log.offline.segments import (
    archived_base_offset_of,
    archived_partition_of,
    has_batches,
    is_archive,
    segment_bytes,
)
from broker.patterns import PayloadTest
from broker.positions import NO_RANGE, parse_offset_spec, resolve
from broker.protocol.envelope import Envelope, open_envelope
from broker.protocol.message_set import Entry, messages_of
from broker.topic import NO_HOME, MessagePosition, ReadRange, TopicPartition
from pylogctl.cli.decoding import Decoding
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.options import PayloadForm
from pylogctl.cli.render import paged, render
from pylogctl.format.envelope import MessageFacts
from pylogctl.format.message_format import Received, compile_format, payload_field
from pylogctl.log.document import DUMP, INDEX, DumpRow, IndexRow, dump_of_records
from pylogctl.log.records import DumpedRecord, dump_batches, index_places, range_of_records

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
    is_message: bool = True

    def row(self, path: Path, form: PayloadForm | None, *, is_json: bool) -> DumpRow:
        """Return the row; `form` is None to leave out the payload."""
        entry = self.entry
        base = archived_base_offset_of(path)
        return DumpRow(
            file=str(path),
            pos=entry.offset,
            offset=None if base is None else base + entry.offset,
            size=len(self.payload),
            magic=entry.magic,
            codec=_codec_name(entry),
            crc=f"{self.crc:08x}",
            valid=self.is_valid,
            inner=self.inner,
            **(payload_field("payload", self.payload, form, is_json=is_json) if form else {}),
        )

    def facts(self, path: Path, partition: TopicPartition) -> MessageFacts:
        """Return what format strings use."""
        base = archived_base_offset_of(path) or 0
        envelope, payload = open_envelope(self.payload)
        return MessageFacts(
            partition=partition,
            offset=base + self.entry.offset,
            next_offset=base + self.entry.next_offset,
            inner=self.inner or 0,
            crc=self.crc,
            codec=_codec_name(self.entry),
            magic=self.entry.magic,
            payload=payload,
            envelope=self.envelope or envelope,
        )


_AnyDumped = Dumped | DumpedRecord


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
    home = NO_HOME if has_batches(path) else 0
    match = _DIRECTORY.fullmatch(directory.name)
    if match is None:
        return TopicPartition(path.name, home, 0)
    return TopicPartition(match[1], home, int(match[2]))


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
    """Return the part of a segment file that `--offset` chooses; None for all of it.

    All of a file of Kafka is from offset 0 on.
    """
    partition = partition_of(path)
    offsets = NO_RANGE
    if offset is not None:
        offsets = parse_offset_spec([offset], now_ms=now_ms).range_for(partition)
    if partition.home != NO_HOME:
        source = _FileSource(path)
        if offsets == NO_RANGE:
            return ReadRange(MessagePosition(source.base), None)
        return resolve(offsets, partition, source)
    if offsets == NO_RANGE:
        return ReadRange(MessagePosition(0), None)
    return range_of_records(path, partition, offsets)


def dump_file(
    path: Path,
    found: ReadRange,
    *,
    shallow: bool = False,
    is_wanted: PayloadTest | None = None,
    decoding: Decoding | None = None,
) -> Iterator[_AnyDumped]:
    """Yield the messages of a segment file in a range; with `shallow`, compressed entries whole.

    With `is_wanted`, only good ones for whose payload it is true. `decoding` makes JSON of them.
    """
    partition = partition_of(path)
    if partition.home == NO_HOME:
        yield from dump_batches(
            path, partition, found, shallow=shallow, is_wanted=is_wanted, decoding=decoding
        )
        return
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
                yield dumped if decoding is None else _decoded(partition, offset, dumped, decoding)


def _decoded(partition: TopicPartition, offset: int, dumped: Dumped, decoding: Decoding) -> Dumped:
    if not dumped.is_valid or (dumped.entry.codec and dumped.inner is None):
        return dumped  # damaged, or a compressed set as a whole
    envelope, payload = open_envelope(dumped.payload)
    shown = decoding.payload(partition, offset, payload)
    return dumped if shown is None else dumped._replace(payload=shown, envelope=envelope)


def of_each(
    env: Environment, paths: Sequence[Path], read: Callable[[Path], Iterable[_Row]]
) -> Iterator[_Row]:
    """Yield the rows of files; skip, with a note, one of several that was removed meanwhile."""
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
    messages: Callable[[Path, ReadRange], Iterator[_AnyDumped]],
    max_messages: int | None,
    form: PayloadForm | None,
    message_format: str | None,
    *,
    shallow: bool = False,
) -> int:
    """Write messages of segment files, as rows or by a format string; return how many are damaged.

    `form` is None to leave out payloads.
    """
    now_ms = env.clock.time_ms()
    damaged_count = 0
    of_kafka = {_is_of_kafka(path) for path in paths}

    def counted_messages(path: Path) -> Iterator[tuple[Path, TopicPartition, _AnyDumped]]:
        nonlocal damaged_count
        partition = partition_of(path)
        for dumped in messages(path, range_of(path, offset, now_ms)):
            damaged_count += not dumped.is_valid
            if message_format is None or dumped.is_message:
                yield path, partition, dumped

    with paged(env) as out:
        found = islice(of_each(env, paths, counted_messages), max_messages)
        if message_format is not None:
            write_message = compile_format(
                message_format,
                for_terminal=out.streams.stdout_is_tty,
                has_keys=True in of_kafka,
            )
            for number, (path, partition, dumped) in enumerate(found, start=1):
                facts = dumped.facts(path, partition)
                out.write(write_message(Received(facts, number, env.clock.time_ms(), group="")))
        else:
            is_json = env.output in ("json", "jsonl")
            rows = (one.row(path, form, is_json=is_json) for path, _, one in found)
            is_laid_out = not is_json and of_kafka == {True}
            document = dump_of_records(shallow=shallow) if is_laid_out else DUMP
            # offsets tell the records of a partition of Kafka's apart
            places = {path.parent for path in paths} if is_laid_out else paths
            render(out, document.showing("file") if len(places) > 1 else document, rows)
        out.flush()
    return damaged_count


def _is_of_kafka(path: Path) -> bool:
    if is_archive(path):  # not all are unpacked before the first is read
        return path.name.endswith(".log.gz")
    try:
        return has_batches(path)
    except (OSError, LogCorruptError):  # raised again when its messages are read
        return False


def show_index(env: Environment, paths: Sequence[Path]) -> None:
    """Render where each entry of segment files starts."""
    with paged(env) as out:
        document = INDEX.showing("file") if len(paths) > 1 else INDEX
        render(out, document, of_each(env, paths, _index_file))


def _index_file(path: Path) -> Iterator[IndexRow]:
    """Yield position, offset and size of each entry of a segment file; no payload is validated."""
    if has_batches(path):
        for head in index_places(path):
            yield IndexRow(str(path), head.position, head.base_offset, head.size)
        return
    base = archived_base_offset_of(path)
    for entry in iter_segment_entries(path):
        offset = None if base is None else base + entry.offset
        yield IndexRow(str(path), entry.offset, offset, entry.next_offset - entry.offset)


def _codec_name(entry: Entry) -> str:
    """Return the name of an entry's codec, or its attributes if they are invalid."""
    codec = entry.codec
    return f"attributes {entry.attributes:#04x}" if codec is None else codec.name.lower()
