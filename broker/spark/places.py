"""Where the bytes of a range are: on a broker, or in segment files.

Made on the driver, pickled, used on executors: values only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from broker.protocol.responses import BrokerAddress
from broker.spark.options import ConnectionOptions


@dataclass(frozen=True, slots=True)
class BrokerPlace:
    """The broker that serves a partition."""

    address: BrokerAddress
    connection: ConnectionOptions


@dataclass(frozen=True, slots=True)
class SegmentPiece:
    """A segment file that holds the bytes of a partition from `base_offset` up to `end_offset`."""

    path: Path
    base_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Segment files of a partition, in order, that have all of a range."""

    pieces: tuple[SegmentPiece, ...]


Place = BrokerPlace | FilePlace
