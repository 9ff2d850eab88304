"""Our own requests by type and version, and those of an operator (field tables: REQUESTS.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import Annotated, NamedTuple

from broker.errors import InvalidRequestError
from broker.protocol import layouts, requests
from broker.protocol.layouts import DATA, ControlRequest, Int32, Topic
from broker.protocol.responses import CHANGES


class StatusParts(IntFlag):
    """What a status holds beside the broker's state: the large parts, which grow with its logs."""

    SETTINGS = 1
    REPLICAS = 2
    METRICS = 4  # of the broker
    TOPICS = 8  # metrics of each topic
    LOGS = 16  # metrics of each log
    REQUESTS = 32  # how long they took, as histograms


ALL_PARTS = ~StatusParts(0)


def _parts(number: int) -> StatusParts:
    return StatusParts(number & ~StatusParts(0))  # those of newer clients are not known here


@dataclass(frozen=True)
class StatusRequest(ControlRequest):
    """Request a broker's state, and some parts of it; `topic` if only those of one are wanted."""

    TYPE = requests.RequestType.STATUS
    RESPONSE = DATA

    parts: Annotated[StatusParts, layouts.mapped(layouts.INT16, int, _parts)] = ALL_PARTS
    topic: str = ""


@dataclass(frozen=True)
class ShutdownRequest(ControlRequest):
    """Request a broker's shutdown; `force` skips the wait for clients to move on."""

    TYPE = requests.RequestType.SHUTDOWN
    RESPONSE = DATA

    force: bool


class HomeCount(NamedTuple):
    """How many partitions of a topic a home broker has."""

    broker_id: Int32
    partition_count: Int32


@dataclass(frozen=True)
class CreateTopicRequest(ControlRequest):
    """Create a topic without replicas; the response names the brokers that have it by that.

    With a partition count: on the broker asked. With `homes`, pairs of a broker id and a number of
    partitions: as a whole on these, or without ZooKeeper the part of the broker asked. With
    neither: as a first message of 0.7 would, unless it exists.
    """

    TYPE = requests.RequestType.CREATE_TOPIC
    RESPONSE = layouts.BROKER_IDS

    topic: Topic
    partition_count: Int32 = 0
    homes: tuple[HomeCount, ...] = ()
    format: layouts.TopicFormat = ""  # for life; empty: `log.format` of the broker asked


def _without_nul(directory: str) -> str:
    if "\0" in directory:
        raise InvalidRequestError(f"{directory!r} is no directory: a path has no NUL")
    return directory


@dataclass(frozen=True)
class MoveLogRequest(ControlRequest):
    """Move a log to a data directory of the broker asked; if empty, return the progress."""

    TYPE = requests.RequestType.MOVE_LOG
    RESPONSE = DATA

    partition: layouts.ValidPartition
    directory: Annotated[str, layouts.mapped(layouts.STRING, str, _without_nul)]


@dataclass(frozen=True)
class ReadChangesRequest(ControlRequest):
    """Read the state-change log of the broker asked, from a position on; -1: from its start."""

    TYPE = requests.RequestType.READ_CHANGES
    RESPONSE = CHANGES

    position: layouts.Int64


@dataclass(frozen=True)
class DeleteTopicRequest(ControlRequest):
    """Delete a topic with all its logs on the broker asked."""

    TYPE = requests.RequestType.DELETE_TOPIC

    topic: Topic


# Room for as many partitions as a request can name, with names that are not too long.
MAX_CONTROLLER_REQUEST_BYTES = 4 << 20
