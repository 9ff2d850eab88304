"""Requests about replicas that the registry has lost (field tables: REQUESTS.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from broker.errors import ProtocolError
from broker.protocol.primitives import INT32, Reader
from broker.protocol.requests import RequestType, read_item_count
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.topic import validate_topic_name

_UNKNOWN = struct.Struct(">biqq")
"""Is live, last leader epoch, log start offset, log end offset."""


@dataclass(frozen=True, slots=True)
class ListUnknownReplicasRequest:
    """Ask a broker for the replicas that it has logs of, and that the registry does not know."""

    TYPE: ClassVar[RequestType] = RequestType.LIST_UNKNOWN_REPLICAS
    VERSION: ClassVar[int] = 0

    def encode(self) -> bytes:
        """Return the body, which is empty."""
        return b""

    @classmethod
    def decode(cls, reader: Reader) -> ListUnknownReplicasRequest:
        """Read the body, which is empty."""
        return cls()


@dataclass(frozen=True, slots=True)
class RestorePartitionsRequest:
    """Ask the controller to put partitions that the registry has lost into it again.

    Attributes:
        records: of partitions of one topic; what their states are to be.
    """

    TYPE: ClassVar[RequestType] = RequestType.RESTORE_PARTITIONS
    VERSION: ClassVar[int] = 0

    records: tuple[ReplicaRecord, ...]

    def encode(self) -> bytes:
        """Return the body."""
        return INT32.pack(len(self.records)) + b"".join(map(_encode_record, self.records))

    @classmethod
    def decode(cls, reader: Reader) -> RestorePartitionsRequest:
        """Read the body."""
        count = read_item_count(reader, INT32.size)
        records = tuple(_decode_record(reader) for _ in range(count))
        for record in records:
            validate_topic_name(record.partition.topic)
        return cls(records)


def encode_unknown_replicas(replicas: Iterable[UnknownReplica]) -> bytes:
    """Return the body of a response that names replicas which the registry does not know."""
    parts = [
        _encode_record(one.record)
        + _UNKNOWN.pack(one.is_live, one.last_epoch, one.log_start_offset, one.log_end_offset)
        for one in replicas
    ]
    return INT32.pack(len(parts)) + b"".join(parts)


def decode_unknown_replicas(reader: Reader) -> list[UnknownReplica]:
    """Read the body of a response that names replicas which the registry does not know."""
    found = []
    for _ in range(reader.count(INT32, INT32.size + _UNKNOWN.size)):
        record = _decode_record(reader)
        is_live, last_epoch, log_start_offset, log_end_offset = reader.fields(_UNKNOWN)
        found.append(
            UnknownReplica(record, bool(is_live), last_epoch, log_start_offset, log_end_offset)
        )
    return found


def _encode_record(record: ReplicaRecord) -> bytes:
    document = record.encode()
    return INT32.pack(len(document)) + document


def _decode_record(reader: Reader) -> ReplicaRecord:
    document = bytes(reader.data(reader.int32()))
    try:
        return ReplicaRecord.decode(document)
    except ValueError as error:
        raise ProtocolError(str(error)) from error
