"""Reads the records of Kafka's segment files for `log dump`, and finds offsets in them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from broker.errors import InvalidMessageError, LogCorruptError
from broker.log.offline import records
from broker.log.offline.records import StoredBatch, iter_batches
from broker.log.offline.segments import base_offset_of, segment_bytes
from broker.patterns import PayloadTest
from broker.positions import Absolute, ByBytes, OffsetRange, resolve
from broker.protocol.codec import Record, RecordBatch
from broker.protocol.envelope import Envelope, open_envelope
from broker.protocol.message import Fault
from broker.protocol.record_batch import MAGIC
from broker.topic import MessagePosition, ReadRange, TopicPartition
from pylogctl.cli.columns import UNKNOWN
from pylogctl.cli.decoding import Decoding
from pylogctl.cli.environment import UsageError
from pylogctl.cli.options import PayloadForm
from pylogctl.format.envelope import MessageFacts, header_text, time_of
from pylogctl.format.message_format import payload_field
from pylogctl.log.document import DumpRow

_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_TYPES = (
    "abort", "commit", "leader-change", "snapshot-header", "snapshot-footer", "kraft-version",
    "kraft-voters",
)  # fmt: skip
_SEQUENCES = 2**31  # the number after the last is 0


class DumpedRecord(NamedTuple):
    """A record of a segment file; a whole batch, good or damaged, has none.

    `payload` is the value as stored, or decoded and without the envelope.
    """

    batch: StoredBatch
    contents: Sequence[Record] = ()  # of the batch
    inner: int | None = None
    payload: bytes | None = None
    envelope: Envelope | None = None

    @property
    def is_valid(self) -> bool:
        """Whether the batch is undamaged."""
        return not self.batch.fault

    @property
    def record(self) -> Record | None:
        """The record; None for a whole batch."""
        return None if self.inner is None else self.contents[self.inner]

    @property
    def offset(self) -> int:
        """The offset of the record; of a whole batch as its head has it."""
        return self.batch.head.base_offset if self.record is None else self.record.offset

    @property
    def is_message(self) -> bool:
        """Whether it is what a consumer gets, no mark of a transaction and not damaged."""
        return self.is_valid and not self.batch.head.is_control

    def row(self, path: Path, form: PayloadForm | None, *, is_json: bool) -> DumpRow:
        """Return the row; `form` is None to leave out the payload."""
        head, record = self.batch.head, self.record
        codec = head.codec
        fields: dict[str, Any] = {
            "file": str(path),
            "pos": head.position,
            "magic": head.magic,
            "codec": f"attributes {head.attributes:#x}" if codec is None else codec.name.lower(),
            "crc": f"{head.crc:08x}",
            "valid": self.is_valid,
            "inner": self.inner,
            "size": None,
            "leader_epoch": head.leader_epoch if head.leader_epoch >= 0 else None,
            "transactional": head.is_transactional,
        }
        if head.producer_id >= 0:
            fields |= {"producer_id": head.producer_id, "producer_epoch": head.producer_epoch}
        if record is None:
            return DumpRow(**fields | self._batch_fields())
        if head.producer_id >= 0 and head.base_sequence >= 0:
            delta = record.offset - head.base_offset
            fields["sequence"] = (head.base_sequence + delta) % _SEQUENCES
        fields |= {"offset": record.offset, "timestamp": _shown_time(record.timestamp)}
        if head.is_control:
            return DumpRow(**fields, control=_control_of(record))
        key_form = form or "utf8"
        if record.key is not None:
            fields |= payload_field("key", record.key, key_form, is_json=is_json)
        if self.payload is not None:
            fields["size"] = len(self.payload)
            if form is not None:
                fields |= payload_field("payload", self.payload, form, is_json=is_json)
        return DumpRow(**fields, headers=_headers_of(record, key_form, is_json=is_json))

    def _batch_fields(self) -> dict[str, Any]:
        head = self.batch.head
        fields: dict[str, Any] = {"offset": head.base_offset, "size": head.size}
        if not self.is_valid:
            return fields | dict.fromkeys(("timestamp", "key", "payload", "headers"), UNKNOWN)
        control = _control_of(self.contents[0]) if head.is_control and self.contents else None
        return fields | {
            "offset": records.first_offset_of(self.batch),
            "last_offset": self.batch.head.last_offset,
            "records": len(self.contents),
            "timestamp": _shown_time(head.max_timestamp),
            "sequence": head.base_sequence if head.base_sequence >= 0 else None,
            "control": control,
        }

    def facts(self, _: Path, partition: TopicPartition) -> MessageFacts:
        """Return what format strings use."""
        head, record = self.batch.head, self.record
        envelope, payload = self.envelope, self.payload or b""
        if envelope is None:
            envelope, payload = open_envelope(payload)
        return MessageFacts(
            partition=partition,
            offset=self.offset,
            next_offset=self.offset + 1,
            inner=self.inner or 0,
            crc=head.crc,
            codec="unknown" if head.codec is None else head.codec.name.lower(),
            magic=head.magic,
            payload=payload,
            envelope=envelope,
            record=record,
        )


def _shown_time(time_ms: int) -> Any:
    return UNKNOWN if time_of(time_ms) is None and time_ms >= 0 else time_of(time_ms)


def _control_of(record: Record) -> str:
    """Return what a control record marks."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        return "unknown"
    kind = _CONTROL_KEY.unpack_from(record.key)[1]
    return _CONTROL_TYPES[kind] if 0 <= kind < len(_CONTROL_TYPES) else f"type {kind}"


def _headers_of(record: Record, form: PayloadForm, *, is_json: bool) -> Sequence[Any]:
    if not is_json:
        return [header_text(*one) for one in record.headers]
    return [
        {"key": name}
        | ({"value": None} if one is None else payload_field("value", one, form, is_json=True))
        for name, one in record.headers
    ]


def dump_batches(
    path: Path,
    partition: TopicPartition,
    found: ReadRange,
    *,
    shallow: bool,
    is_wanted: PayloadTest | None,
    decoding: Decoding | None,
) -> Iterator[DumpedRecord]:
    """Yield the records of a segment file in a range, or its batches; see `dump_file`.

    With `is_wanted`, the records whose key or value matches, no marks of transactions.
    """
    reached, start = found.start.offset, found.start.offset
    end = None if found.end is None else found.end.offset
    for batch in iter_batches(path, records.position_of(path, start), deep=False):
        head = batch.head
        if end is not None and reached >= end:
            return
        if not batch.fault:
            reached = batch.head.next_offset
        if is_wanted is not None and not _may_match(batch, is_wanted):
            continue
        contents: list[Record] = []
        if not batch.fault:
            try:
                contents = records.records_of(batch)
            except InvalidMessageError:
                batch = batch._replace(fault=Fault.RECORDS)
        if batch.fault or shallow:
            if is_wanted is None:
                yield DumpedRecord(batch, contents)
            continue
        wanted = None if is_wanted is None else _selected(contents, is_wanted)
        for inner, record in enumerate(contents):
            if wanted is not None and not wanted[inner]:
                continue
            if record.offset < start or (end is not None and record.offset >= end):
                continue
            payload = record.value
            dumped = DumpedRecord(batch, contents, inner, payload)
            if decoding is not None and payload is not None and not head.is_control:
                envelope, payload = open_envelope(payload)
                decoded = decoding.payload(partition, record.offset, payload)
                if decoded is not None:
                    dumped = dumped._replace(payload=decoded, envelope=envelope)
            yield dumped


def _may_match(batch: StoredBatch, is_wanted: PayloadTest) -> bool:
    if batch.fault or batch.head.is_control:
        return False
    return bool(batch.head.codec) or is_wanted.may_be_in(batch.data)


def _selected(contents: Sequence[Record], is_wanted: PayloadTest) -> list[bool]:
    values = [None if one.value is None else open_envelope(one.value)[1] for one in contents]
    return is_wanted.select_any(values, [one.key for one in contents])


class _BatchSource:
    """An `OffsetSource` of one segment file of Kafka, in which each number is an offset."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def earliest(self, partition: TopicPartition) -> int:
        with suppress(LogCorruptError, InvalidMessageError):
            batch = next(iter_batches(self._path, deep=False), None)
            if batch is not None and not batch.fault:
                return records.first_offset_of(batch)
        return base_offset_of(self._path) or 0

    def latest(self, partition: TopicPartition) -> int:
        end = records.end_offset_of(self._path)
        return self.earliest(partition) if end is None else end

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        """Return the offset of the first record of this time or later."""
        offset = records.offset_by_time(self._path, time_ms)
        if offset is not None:
            return offset
        end = self.latest(partition)
        if end > self.earliest(partition) and records.offset_by_time(self._path, 0) is None:
            raise UsageError(f"offsets by time need timestamps, of which '{self._path}' has none")
        return end

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        return position

    def boundary_after(self, partition: TopicPartition, position: int) -> int:
        return position

    def message_counts(
        self, partition: TopicPartition, start: int, end: int
    ) -> Sequence[tuple[int, int]]:
        found = ReadRange(MessagePosition(start), MessagePosition(end))
        dumped = dump_batches(
            self._path, partition, found, shallow=False, is_wanted=None, decoding=None
        )
        counts = []
        with suppress(LogCorruptError):  # raised again when the records of the range are read
            for one in dumped:
                counts.append((one.offset, 1))
        return counts


def range_of_records(path: Path, partition: TopicPartition, offsets: OffsetRange) -> ReadRange:
    """Return the part of a segment file in a range, each number of which is an offset."""
    wanted = (_absolute(path, one) if isinstance(one, ByBytes) else one for one in offsets)
    return resolve(OffsetRange(*wanted), partition, _BatchSource(path))


def _absolute(path: Path, wanted: ByBytes) -> Absolute:
    """Return the first offset at or behind a position given in bytes from either end of a file."""
    position = segment_bytes(path) - wanted.size if wanted.from_end else wanted.size
    return Absolute(records.offset_at(path, position), nearest=False)


def index_places(path: Path) -> Iterator[RecordBatch]:
    """Yield the heads of the batches of a segment file, wrappers with their first offset."""
    for batch in iter_batches(path, deep=False):
        head = batch.head
        if head.magic < MAGIC and head.codec and not batch.fault:
            with suppress(InvalidMessageError):
                head = head._replace(base_offset=records.first_offset_of(batch))
        yield head
