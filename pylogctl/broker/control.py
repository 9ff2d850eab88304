"""Requests to brokers: find, status, shutdown; registrations; and processes of this machine.

`session` is a started `broker.zk.session.Session`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from broker import errors
from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection, parse_broker_list
from broker.protocol.extension_requests import ShutdownRequest, StatusRequest
from broker.protocol.layouts import DATA
from broker.protocol.responses import BrokerAddress
from broker.zk import paths
from broker.zk.values import decode_broker
from pylogctl.broker.document import BrokerRow, ShutdownStep
from pylogctl.cli.errors import CliError, ExitStatus, UsageError


class StatusResponse(NamedTuple):
    """The status document of a broker; None if it knows only 0.7's requests, or with an error."""

    address: BrokerAddress
    document: dict[str, Any] | None
    error: errors.BrokerError | None = None


def find_broker(
    cluster: Cluster, broker_id: int | None, listed: Sequence[str] = ()
) -> BrokerAddress:
    """Return the broker of an id; without one, that of the only address listed, or the only one."""
    brokers = cluster.brokers()
    if broker_id is not None:
        for address in brokers:
            if address.id == broker_id:
                return address
        known = ", ".join(str(address.id) for address in brokers) or "none"
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"broker '{broker_id}' not found",
            hints=[f"known brokers: {known}", "try: pylogctl broker list"],
            code="BROKER_NOT_FOUND",
        )
    if not brokers:
        raise CliError(
            ExitStatus.NOT_FOUND,
            "no broker is registered",
            hints=["start one: pylogctl broker start"],
            code="BROKER_NOT_FOUND",
        )
    given = {(one.host, one.port) for one in parse_broker_list(",".join(listed))}
    if len(given) == 1:
        for address in brokers:
            if (address.host, address.port) in given:
                return address
    if len(brokers) > 1:
        ids = ", ".join(str(address.id) for address in brokers)
        raise UsageError("missing ID: there are several brokers", hints=[f"brokers: {ids}"])
    return brokers[0]


def request_status(connect: Connect, address: BrokerAddress) -> StatusResponse:
    """Request the state and counters of a broker; a failure is part of the result."""
    connection = connect(address)
    try:
        if connection.hello() is None:
            return StatusResponse(address, None)
        document = json.loads(DATA.decode(connection.call(StatusRequest())))
        return StatusResponse(address, document)
    except errors.BrokerError as error:
        return StatusResponse(address, None, error)
    finally:
        connection.close()


def local_pid(document: Mapping[str, Any]) -> int | None:
    """Return a broker's process id if that process has the data directory open on this machine."""
    from broker.log.data_directory import holder_pid

    # The address does not show it: it may be forwarded to another machine, or into a container.
    pid: int | None = document.get("pid")
    if pid is None or holder_pid(Path(document["data"])) != pid:
        return None
    return pid


def shut_down(connection: Connection, *, force: bool) -> list[ShutdownStep]:
    """Shut a broker down, wait until it closes the connection, and return the steps it took."""
    if connection.hello() is None:
        raise CliError(
            ExitStatus.UNSUPPORTED,
            f"{connection.name} speaks Kafka 0.7 only and cannot be asked to stop",
            hints=["send its process SIGTERM, or name its pid file: --pid-file FILE"],
        )
    # The connection's timeout limits the wait for this response. Without `force` the broker waits
    # for clients that send without acknowledgements.
    steps = json.loads(DATA.decode(connection.call(ShutdownRequest(force))))
    try:
        connection.receive()
    except errors.RequestTimeoutError:
        raise
    except errors.BrokerUnreachableError:
        pass  # the broker has closed the connection, as expected
    return [
        ShutdownStep(one["step"], one["seconds"], one.get("done", True), one.get("note"))
        for one in steps
    ]


def registered_brokers(session: Any) -> Iterator[BrokerRow]:
    """Yield the registered brokers by id."""
    topic_counts = _topic_counts(session)
    for name in sorted(session.children_if_any(paths.BROKER_IDS), key=int):
        try:
            value, stat = session.get(paths.broker(int(name)))
        except errors.RegistryNodeNotFoundError:
            continue  # deregistered meanwhile
        info = decode_broker(int(name), value)
        yield BrokerRow(
            id=info.id,
            host=info.host,
            port=info.port,
            creator=info.creator,
            since=stat.ctime_ms,
            session=f"0x{stat.ephemeral_owner & (1 << 64) - 1:x}",
            topics=topic_counts.get(name, 0),
        )


def registered_members(session: Any) -> dict[str, int]:
    """Return how many members each consumer group has, without groups that have none."""
    counts = {}
    for group in session.children_if_any(paths.CONSUMERS):
        if count := len(session.children_if_any(paths.consumer_ids(group))):
            counts[group] = count
    return counts


def _topic_counts(session: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for topic in session.children_if_any(paths.TOPICS):
        for name in session.children(paths.topic(topic)):
            counts[name] = counts.get(name, 0) + 1
    return counts


_POLL_S = 0.05


def read_pid(path: Path) -> int:
    """Return the process id in a pid file; the process must be running."""
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if not text.isdecimal() or int(text) < 1:
        raise CliError(ExitStatus.CONFIG, f"'{path}' holds no process id: '{text[:40]}'")
    if not is_running(int(text)):
        raise CliError(ExitStatus.NOT_FOUND, f"no process {text} runs, which '{path}' names")
    return int(text)


def is_running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True
    return state.rpartition(")")[2].split()[:1] != ["Z"]


def wait_for_exit(pid: int, timeout_s: float) -> bool:
    """Wait until a process has ended; return False if the time is up."""
    give_up_s = time.monotonic() + timeout_s
    while is_running(pid):
        if time.monotonic() >= give_up_s:
            return False
        time.sleep(_POLL_S)
    return True
