"""Moves of a log to another data directory of the broker that has it, while it is used."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from broker import errors
from broker.admin.brokers import find_broker
from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.client.side import Side
from broker.ids import NO_LEADER
from broker.protocol.extension_requests import MoveLogRequest
from broker.protocol.layouts import DATA
from broker.protocol.responses import BrokerAddress
from broker.topic import NO_HOME, TopicPartition, validate_topic_name

_NAME = re.compile(r"(.+)\[([0-9-]+)\]", re.DOTALL)
_FIRST_POLL_S = 0.05
_LAST_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class LogMove:
    """A log that was moved to another directory."""

    partition: TopicPartition
    broker: int  # which has the log
    directory: str  # where it is now, a path on the machine of the broker
    copied_bytes: int
    duration_s: float


class MoveState(NamedTuple):
    """How far a move is, as the broker tells."""

    directory: str  # the new one
    copied_bytes: int
    total_bytes: int
    is_done: bool


def parse_log_name(name: str) -> TopicPartition:
    """Return the partition that `TOPIC[PARTITION]` means."""
    found = _NAME.fullmatch(name)
    try:
        topic, partition = found.groups() if found is not None else ("", "")
        named = TopicPartition.named(topic, partition)
    except ValueError as error:
        raise errors.ArgumentError(
            f"not a partition: '{name}'",
            hints=["valid: TOPIC[HOME-INDEX], as in 'orders[0-1]', or TOPIC[NUMBER]"],
        ) from error
    validate_topic_name(topic)
    return named


def find_holder(side: Side, partition: TopicPartition, broker_id: int | None) -> BrokerAddress:
    """Return the broker whose log is meant: one that is named, else the home, else the leader."""
    if broker_id is None:
        broker_id = partition.home
    if broker_id == NO_HOME:
        leader_id = side.cluster.find_leaders([partition.topic]).get(partition, NO_LEADER)
        if leader_id == NO_LEADER:
            raise errors.BrokerNotFoundError(
                f"no broker leads {partition}", hints=["name the broker whose log it is"]
            )
        broker_id = leader_id
    return find_broker(side, broker_id)


def begin_move(connection: Connection, partition: TopicPartition, directory: str) -> MoveState:
    """Have a broker begin to move a log; `directory` is a path on its machine."""
    if connection.hello() is None:
        raise errors.UnsupportedVersionError(
            f"{connection.name} knows only the requests of Kafka 0.7, which cannot move a log"
        )
    return _request(connection, partition, directory)


def await_move(
    connection: Connection,
    partition: TopicPartition,
    state: MoveState,
    advance: Callable[[int], None],  # gets the number of bytes copied since the last call
    *,
    timeout_s: float | None = None,
) -> MoveState:
    """Wait until a move that was begun is done."""
    started_s = time.monotonic()
    poll_s = _FIRST_POLL_S
    shown_bytes = 0
    while not state.is_done:
        if timeout_s is not None and time.monotonic() - started_s > timeout_s:
            raise errors.RequestTimeoutError(
                f"{partition} is still being moved after {timeout_s:g}s; that goes on"
            )
        time.sleep(poll_s)
        poll_s = min(2 * poll_s, _LAST_POLL_S)
        state = _request(connection, partition, "")
        advance(state.copied_bytes - shown_bytes)
        shown_bytes = state.copied_bytes
    return state


def move_log(
    connect: Connect,
    address: BrokerAddress,
    partition: TopicPartition,
    directory: str,
    *,
    timeout_s: float | None,
) -> LogMove:
    """Move a log, and return once it is in its new directory."""
    started_s = time.monotonic()
    with closing(connect(address)) as connection:
        state = begin_move(connection, partition, directory)
        try:
            state = await_move(connection, partition, state, lambda _: None, timeout_s=timeout_s)
        except errors.BrokerUnreachableError as error:
            raise errors.BrokerUnreachableError(f"{error}; {unknown_text(partition)}") from error
    seconds = time.monotonic() - started_s
    return LogMove(partition, address.id, state.directory, state.copied_bytes, seconds)


def unknown_text(partition: TopicPartition) -> str:
    """Return for a message what is known after the broker was lost."""
    return (
        f"it is not known whether {partition} was moved: its log is whole, in the new directory or "
        "in the old one"
    )


def _request(connection: Connection, partition: TopicPartition, directory: str) -> MoveState:
    found = json.loads(DATA.decode(connection.call(MoveLogRequest(partition, directory))))
    return MoveState(found["directory"], found["copied_bytes"], found["total_bytes"], found["done"])
