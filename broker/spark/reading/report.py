"""The report of bytes that a read left out.

The first omissions of a task are logged as warnings. If the option `reportPath` is set, all are
written to that directory as JSON, adjacent ones joined and many summed up; `spark.read.json(path)`
returns them. The name of a file is derived from its first omission and files are replaced
atomically, so a task that is run again reports nothing twice.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any

from broker.spark.options import partition_of
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

MAX_OMISSIONS = 100
"""Omissions of a partition that a report or manifest lists singly."""
_MAX_LOGGED = 10


class Cause(StrEnum):
    """Why bytes of a range were left out."""

    LOST = "lost"
    """Retention deleted them, or the log was recreated."""
    CORRUPT = "corrupt"
    """They are not a valid message."""
    UNDECODABLE = "undecodable"
    """Their payload cannot be decoded."""
    INCOMPLETE = "incomplete"
    """They are the beginning of a message at the end of the newest segment file."""


@dataclass(frozen=True, slots=True)
class Omission:
    """Requested bytes of a partition that are not in the result."""

    cause: Cause
    partition: TopicPartition
    start: int
    end: int
    text: str  # of the first, if this stands for several omissions
    count: int = 1
    omitted_bytes: int | None = None  # None: all from `start` to `end`

    @property
    def size_bytes(self) -> int:
        """Return the number of omitted bytes."""
        return self.end - self.start if self.omitted_bytes is None else self.omitted_bytes

    @property
    def message(self) -> str:
        """Return the text with topic and partition."""
        more = f", and {self.count - 1} more up to {self.end}" if self.count > 1 else ""
        return f"{self.partition}: {self.text}{more}"

    def to_document(self) -> dict[str, Any]:
        """Return the omission as values of JSON."""
        return asdict(self) | {
            "cause": self.cause.value,
            "topic": self.partition.topic,
            "partition": self.partition.name,
            "size_bytes": self.size_bytes,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any], partition: TopicPartition) -> Omission:
        """Return the omission that `to_document` was called on."""
        start, end, text = document["start"], document["end"], document["text"]
        more = document.get("count", 1), document.get("omitted_bytes")
        return cls(Cause(document["cause"]), partition, start, end, text, *more)

    def is_followed_by(self, other: Omission) -> bool:
        """Return whether another omission has the same cause, and starts where this one ends."""
        return (
            (self.cause, self.partition, self.end) == (other.cause, other.partition, other.start)
            and self.omitted_bytes is None
            and other.omitted_bytes is None
        )

    def plus(self, other: Omission) -> Omission:
        """Return one omission for this and a later one; bytes between them are not omitted."""
        is_adjacent = self.is_followed_by(other)
        size_bytes = None if is_adjacent else self.size_bytes + other.size_bytes
        return replace(
            self, end=other.end, count=self.count + other.count, omitted_bytes=size_bytes
        )


def bounded(omissions: Iterable[Omission]) -> list[Omission]:
    """Sort omissions, join adjacent ones, and sum those beyond `MAX_OMISSIONS` up by cause."""
    found: list[Omission] = []
    for one in sorted(omissions, key=lambda one: (one.partition, one.start)):
        if found and found[-1].is_followed_by(one):
            found[-1] = found[-1].plus(one)
        else:
            found.append(one)
    kept: list[Omission] = []
    for _, group in groupby(found, key=lambda one: one.partition):
        some = list(group)
        sums: dict[Cause, Omission] = {}
        for one in some[MAX_OMISSIONS:]:
            sums[one.cause] = sums[one.cause].plus(one) if one.cause in sums else one
        kept += [*some[:MAX_OMISSIONS], *sums.values()]
    return kept


def read_omissions(directory: Path) -> list[Omission]:
    """Read all reports in a directory, as `bounded` returns them."""
    found: dict[tuple[TopicPartition, int], Omission] = {}
    for path in directory.glob("*.json"):
        for line in path.read_text().splitlines():
            document = json.loads(line)
            partition = partition_of(document["topic"], document["partition"])
            one = Omission.from_document(document, partition)
            key = (partition, one.start)  # once, however many jobs reported it
            if key not in found or found[key].end < one.end:
                found[key] = one
    return bounded(found.values())


class OmissionReport:
    """Omissions of one task or plan; if `directory` is None they are logged only."""

    def __init__(self, directory: Path | None) -> None:
        self.omissions: list[Omission] = []
        self._directory = directory

    def add(self, omission: Omission) -> None:
        """Add an omission that starts at or after the end of those before it."""
        if self.omissions and self.omissions[-1].is_followed_by(omission):
            self.omissions[-1] = self.omissions[-1].plus(omission)
            return
        self.omissions.append(omission)
        if len(self.omissions) <= _MAX_LOGGED:
            logger.warning("%s", omission.message)
        elif len(self.omissions) == _MAX_LOGGED + 1:
            logger.warning("%s: further omissions are not logged", omission.partition)

    def write(self) -> None:
        """Write the omissions to the directory, if there is one."""
        if self._directory is None or not self.omissions:
            return
        lines = [json.dumps(one.to_document()) for one in bounded(self.omissions)]
        first = self.omissions[0]
        key = f"{first.partition} {first.start}"
        name = hashlib.sha256(key.encode()).hexdigest()[:24]
        self._directory.mkdir(parents=True, exist_ok=True)
        temporary = self._directory / f".{name}.{os.getpid()}.{uuid.uuid4().hex}"
        temporary.write_text("".join(f"{line}\n" for line in lines))
        temporary.replace(self._directory / f"{name}.json")


def report_omissions(directory: Path | None, omissions: Iterable[Omission]) -> None:
    """Log the omissions of a plan, and write them to a directory unless it is None."""
    report = OmissionReport(directory)
    for omission in omissions:
        report.add(omission)
    report.write()
