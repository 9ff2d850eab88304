"""The report of bytes that a read left out.

Each omission is logged as a warning and, if the option `reportPath` is set, written to that
directory as JSON; `spark.read.json(path)` returns all of them. The name of a file is derived from
its first omission and files are replaced atomically, so a task that is run again reports nothing
twice.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from broker.spark.options import partition_of
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


class Cause(Enum):
    """Why bytes of a range were left out."""

    LOST = "lost"
    """Retention deleted them, or the log was recreated."""
    CORRUPT = "corrupt"
    """They are not a valid message."""
    INCOMPLETE = "incomplete"
    """They are the beginning of a message at the end of the newest segment file."""


@dataclass(frozen=True, slots=True)
class Omission:
    """Requested bytes of a partition that are not in the result."""

    cause: Cause
    partition: TopicPartition
    start: int
    end: int
    text: str

    @property
    def message(self) -> str:
        """Return the text with topic and partition."""
        return f"{self.partition}: {self.text}"

    def to_json(self) -> str:
        """Return the omission as one line of JSON."""
        fields = asdict(self) | {
            "cause": self.cause.value,
            "topic": self.partition.topic,
            "partition": self.partition.name,
            "size_bytes": self.end - self.start,
        }
        return json.dumps(fields)

    @classmethod
    def from_json(cls, line: str) -> Omission:
        """Parse a line that `to_json` returned."""
        fields = json.loads(line)
        partition = partition_of(fields["topic"], fields["partition"])
        return cls(
            Cause(fields["cause"]), partition, fields["start"], fields["end"], fields["text"]
        )


def read_omissions(directory: Path) -> list[Omission]:
    """Read all reports in a directory, sorted by partition and offset."""
    found: dict[tuple[TopicPartition, int], Omission] = {}
    for path in directory.glob("*.json"):
        for line in path.read_text().splitlines():
            one = Omission.from_json(line)
            found[one.partition, one.start] = one  # once, however many jobs reported it
    return [found[key] for key in sorted(found)]


class Report:
    """Omissions of one task or plan; if `directory` is None they are logged only."""

    def __init__(self, directory: Path | None) -> None:
        self.omissions: list[Omission] = []
        self._directory = directory
        self._name = ""

    def add(self, omission: Omission) -> None:
        """Log an omission, and write it to the directory.

        Raises:
            OSError: the report cannot be written.
        """
        logger.warning("%s", omission.message)
        self.omissions.append(omission)
        if self._directory is not None:
            self._write(self._directory)

    def _write(self, directory: Path) -> None:
        lines = [omission.to_json() for omission in self.omissions]
        self._name = self._name or hashlib.sha256(lines[0].encode()).hexdigest()[:24]
        directory.mkdir(parents=True, exist_ok=True)
        temporary = directory / f".{self._name}.{os.getpid()}.{uuid.uuid4().hex}"
        temporary.write_text("".join(f"{line}\n" for line in lines))
        temporary.replace(directory / f"{self._name}.json")
