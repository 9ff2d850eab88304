"""`pylogctl log move`: has a running broker move a log to another of its data directories."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from broker.client.connection import Connection
from broker.errors import BrokerUnreachableError
from broker.protocol.extension_requests import MoveLogRequest
from broker.protocol.layouts import DATA
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition, validate_topic_name
from pylogctl.cli.connections import Absence, connector, open_cluster
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.log.document import MOVE, MoveRow

_NAME = re.compile(r"(.+)\[(\d+)-(\d+)\]", re.DOTALL)
_FIRST_POLL_S = 0.05
_LAST_POLL_S = 1.0


def move(env: Environment, name: str, directory: str, broker_id: int | None) -> None:
    """Move the log of partition `name`, `TOPIC[HOME-INDEX]`, and wait until that is done."""
    partition = _parse_partition(name)
    if not directory:
        raise UsageError("--to is empty; it must be a data directory of the broker")
    # `directory` is a path on the broker's machine.
    address = _find_broker(env, partition.home if broker_id is None else broker_id)
    connection = connector(env)(address)
    started_s = env.clock.monotonic_s()
    try:
        if connection.hello() is None:
            raise CliError(
                ExitStatus.UNSUPPORTED,
                f"{connection.name} knows only the requests of Kafka 0.7, which cannot move a log",
            )
        state = _request(connection, partition, directory)
        try:
            state = _await_end(env, connection, partition, state)
        except KeyboardInterrupt:
            env.warn(f"the broker goes on moving {partition}; `broker status` names its directory")
            raise
        except BrokerUnreachableError:
            env.warn(
                f"it is not known whether {partition} was moved: its log is whole, in the new "
                "directory or in the old one"
            )
            raise
    finally:
        connection.close()
    seconds = round(env.clock.monotonic_s() - started_s, 3)
    row = MoveRow(
        partition.topic,
        partition.name,
        address.id,
        state["directory"],
        state["copied_bytes"],
        seconds,
    )
    render(env, MOVE, [row])


def _parse_partition(name: str) -> TopicPartition:
    found = _NAME.fullmatch(name)
    if found is None:
        raise UsageError(
            f"not a partition: '{name}'", hints=["valid: TOPIC[HOME-INDEX], as in 'orders[0-1]'"]
        )
    validate_topic_name(found[1])
    return TopicPartition(found[1], int(found[2]), int(found[3]))


def _find_broker(env: Environment, broker_id: int) -> BrokerAddress:
    with open_cluster(env, absence=Absence.WARN) as cluster:
        brokers = cluster.brokers()
    for address in brokers:
        if address.id == broker_id:
            return address
    raise CliError(
        ExitStatus.NOT_FOUND,
        f"broker '{broker_id}' not found",
        hints=[f"live brokers: {', '.join(str(one.id) for one in brokers) or 'none'}"],
        code="BROKER_NOT_FOUND",
    )


def _request(connection: Connection, partition: TopicPartition, directory: str) -> dict[str, Any]:
    found = DATA.decode(connection.call(MoveLogRequest(partition, directory)))
    state: dict[str, Any] = json.loads(found)
    return state


def _await_end(
    env: Environment, connection: Connection, partition: TopicPartition, state: dict[str, Any]
) -> dict[str, Any]:
    poll_s = _FIRST_POLL_S
    shown_bytes = 0
    with progress(env, "move", state["total_bytes"]) as meter:
        while not state["done"]:
            time.sleep(poll_s)
            poll_s = min(2 * poll_s, _LAST_POLL_S)
            state = _request(connection, partition, "")
            meter.advance(state["copied_bytes"] - shown_bytes)
            shown_bytes = state["copied_bytes"]
    return state
