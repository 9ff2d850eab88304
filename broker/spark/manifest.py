"""What a load says of itself: the file that makes its directory a load.

`_offsets.json` lies beside the data and becomes visible with it. The newest one has all the state
there is: where each partition goes on, the ones included that this load had nothing of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from broker.errors import ConfigError, LogCorruptError, OutputConflictError
from broker.spark.offsets import Offsets, from_document, partition_of, to_document
from broker.topic import TopicPartition

MANIFEST_NAME = "_offsets.json"
_VERSION = 1


class ManifestError(OutputConflictError):
    """A directory of a load has no manifest that this program has written."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Bytes of a partition that a load does not have, and why: lost, corrupt or undecodable."""

    cause: str
    start: int
    end: int
    text: str

    @property
    def size_bytes(self) -> int:
        """Return how many bytes of the log it is."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """What a load has of one partition.

    Attributes:
        partition: which.
        start: where it starts, a message boundary.
        end: where it ends, and the next load starts.
        message_count: rows.
        payload_bytes: of their payloads, as the log has them.
        crc_sum: sum of the CRC-32 of all payloads, to compare with a count of another kind.
        left_out: bytes between start and end, or before start, that are not in the load.
    """

    partition: TopicPartition
    start: int
    end: int
    message_count: int = 0
    payload_bytes: int = 0
    crc_sum: int = 0
    left_out: tuple[LeftOut, ...] = ()

    def plus(self, other: PartitionLoad) -> PartitionLoad:
        """Return what this and the load of the range behind it have together."""
        return PartitionLoad(
            self.partition,
            self.start,
            other.end,
            self.message_count + other.message_count,
            self.payload_bytes + other.payload_bytes,
            self.crc_sum + other.crc_sum,
            (*self.left_out, *other.left_out),
        )


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file of a load; `path` is relative to the load's directory."""

    path: str
    size_bytes: int
    message_count: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """A load.

    Attributes:
        number: loads of an output are numbered from 1.
        layout: what all loads of an output have in common: group, format and the like.
        started_ms: milliseconds since 1970.
        finished_ms: milliseconds since 1970.
        partitions: what it has of each.
        offsets: where the next load goes on, for every partition ever loaded.
        files: all data files.
    """

    number: int
    layout: Mapping[str, str]
    started_ms: int
    finished_ms: int
    partitions: tuple[PartitionLoad, ...]
    offsets: Offsets
    files: tuple[LoadedFile, ...]

    @property
    def message_count(self) -> int:
        """Return the rows of all partitions."""
        return sum(one.message_count for one in self.partitions)

    @property
    def size_bytes(self) -> int:
        """Return the size of all files."""
        return sum(one.size_bytes for one in self.files)

    @property
    def left_out(self) -> list[tuple[TopicPartition, LeftOut]]:
        """Return what is missing, by partition."""
        return [(one.partition, gap) for one in self.partitions for gap in one.left_out]

    def to_json(self) -> str:
        """Return the document that is written."""
        document = {
            "version": _VERSION,
            "load": self.number,
            "layout": dict(self.layout),
            "started_ms": self.started_ms,
            "finished_ms": self.finished_ms,
            "message_count": self.message_count,
            "size_bytes": self.size_bytes,
            "partitions": [_partition_document(one) for one in self.partitions],
            "offsets": to_document(self.offsets),
            "files": [asdict(one) for one in self.files],
        }
        return json.dumps(document, indent=1) + "\n"


def _partition_document(one: PartitionLoad) -> dict[str, Any]:
    fields = asdict(one) | {"topic": one.partition.topic, "partition": one.partition.name}
    return {"topic": fields.pop("topic"), **fields}


def read_manifest(path: Path) -> Manifest:
    """Return a load's manifest.

    Args:
        path: the file.

    Raises:
        ManifestError: it is missing, or none that this program has written.
    """
    try:
        document = json.loads(path.read_text())
        if document["version"] != _VERSION:
            raise ManifestError(f"{path} has version {document['version']}; known: {_VERSION}")
        return _manifest_of(document)
    except FileNotFoundError as error:
        raise ManifestError(f"{path.parent} has no {path.name}: it is no load") from error
    except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise ManifestError(f"{path} is no manifest of a load: {error!r}") from error


def _manifest_of(document: Mapping[str, Any]) -> Manifest:
    return Manifest(
        number=int(document["load"]),
        layout=dict(document["layout"]),
        started_ms=int(document["started_ms"]),
        finished_ms=int(document["finished_ms"]),
        partitions=tuple(_partition_load(one) for one in document["partitions"]),
        offsets=from_document(document["offsets"]),
        files=tuple(LoadedFile(**one) for one in document["files"]),
    )


def _partition_load(document: Mapping[str, Any]) -> PartitionLoad:
    fields = dict(document)
    partition = partition_of(fields.pop("topic"), fields.pop("partition"))
    left_out = tuple(LeftOut(**one) for one in fields.pop("left_out"))
    return PartitionLoad(partition, left_out=left_out, **fields)


def joined(parts: Iterable[PartitionLoad]) -> tuple[PartitionLoad, ...]:
    """Return the loads of ranges that follow each other as one for each partition.

    Args:
        parts: without gap or overlap between those of a partition.

    Raises:
        LogCorruptError: there is one; the load must not be committed.
    """
    whole: dict[TopicPartition, PartitionLoad] = {}
    for part in sorted(parts, key=lambda one: (one.partition, one.start)):
        before = whole.get(part.partition)
        if before is not None and before.end != part.start:
            raise LogCorruptError(
                f"{part.partition}: a range ends at {before.end}, and the next one starts at "
                f"{part.start}"
            )
        whole[part.partition] = part if before is None else before.plus(part)
    return tuple(whole.values())
