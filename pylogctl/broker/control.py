"""Looking at brokers from outside, and stopping one.

Asks over the network; knows no command and writes nothing.

Processes of this machine, by their id.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    RegistryNodeNotFoundError,
    RequestTimeoutError,
)
from broker.protocol.extension_requests import ShutdownRequest, StatusRequest
from broker.protocol.responses import BrokerAddress, decode_document
from broker.zk import paths
from broker.zk.values import decode_broker
from pylogctl.cli.errors import CliError, ExitStatus, UsageError


class StatusAnswer(NamedTuple):
    """What a broker says of itself; `document` is None for one that knows only 0.7's requests."""

    address: BrokerAddress
    document: dict[str, Any] | None
    error: BrokerError | None = None


class ShutdownStep(NamedTuple):
    """A step of a broker's shutdown, how long it took, and what there is to say about it."""

    name: str
    seconds: float
    is_done: bool = True
    note: str | None = None


def find_broker(cluster: Cluster, broker_id: int | None) -> BrokerAddress:
    """Return one broker: that of an id, or the only one.

    Raises:
        CliError: there is none with this id, or none at all.
        UsageError: there are several and no id was given.
    """
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
    if len(brokers) > 1:
        ids = ", ".join(str(address.id) for address in brokers)
        raise UsageError("missing ID: there are several brokers", hints=[f"brokers: {ids}"])
    return brokers[0]


def ask_status(connect: Connect, address: BrokerAddress) -> StatusAnswer:
    """Ask a broker for its state and counters; a failure is part of the answer."""
    connection = connect(address)
    try:
        if connection.hello() is None:
            return StatusAnswer(address, None)
        document = json.loads(decode_document(connection.call(StatusRequest())))
        return StatusAnswer(address, document)
    except BrokerError as error:
        return StatusAnswer(address, None, error)
    finally:
        connection.close()


def local_pid(document: Mapping[str, Any]) -> int | None:
    """Return the process id of a broker if its process is one of this machine.

    It is if the data directory it names is here, and this process has it open. An address says
    nothing: it may be forwarded to another machine, or into a container.

    Args:
        document: what it says of itself; empty for nothing.
    """
    from broker.log.data_directory import holder_pid

    pid: int | None = document.get("pid")
    if pid is None or holder_pid(Path(document["data"])) != pid:
        return None
    return pid


def shut_down(connection: Connection, *, force: bool) -> list[ShutdownStep]:
    """Have a broker shut down, and wait until it has closed everything, this connection last.

    Args:
        connection: to the broker; its timeout limits the wait for the answer.
        force: do not wait for clients to move on.

    Returns:
        The steps it has taken.

    Raises:
        CliError: it is a 0.7 broker, which cannot be asked.
        RequestTimeoutError: it took too long.
        BrokerUnreachableError: it is not there, or ended without an answer.
    """
    if connection.hello() is None:
        raise CliError(
            ExitStatus.UNSUPPORTED,
            f"{connection.name} speaks Kafka 0.7 only and cannot be asked to stop",
            hints=["send its process SIGTERM, or name its pid file: --pid-file FILE"],
        )
    steps = json.loads(decode_document(connection.call(ShutdownRequest(force))))
    try:
        connection.receive()
    except RequestTimeoutError:
        raise
    except BrokerUnreachableError:
        pass  # the end that was waited for
    return [
        ShutdownStep(one["step"], one["seconds"], one.get("done", True), one.get("note"))
        for one in steps
    ]


class RegisteredBroker(NamedTuple):
    """A broker as the registry has it."""

    id: int
    host: str
    port: int
    creator: str
    since_ms: int
    session: str
    topic_count: int


def registered_brokers(session: Any) -> Iterator[RegisteredBroker]:
    """Yield the registered brokers by id.

    Args:
        session: a started `broker.zk.session.Session`.

    Raises:
        CoordinationError: the registry failed, or a registration is malformed.
    """
    try:
        names = session.children(paths.BROKER_IDS)
    except RegistryNodeNotFoundError:
        return
    topic_counts = _topic_counts(session)
    for name in sorted(names, key=int):
        try:
            value, stat = session.get(paths.broker(int(name)))
        except RegistryNodeNotFoundError:
            continue  # it went away meanwhile
        info = decode_broker(int(name), value)
        yield RegisteredBroker(
            id=info.id,
            host=info.host,
            port=info.port,
            creator=info.creator,
            since_ms=stat.ctime_ms,
            session=f"0x{stat.ephemeral_owner & (1 << 64) - 1:x}",
            topic_count=topic_counts.get(name, 0),
        )


def _topic_counts(session: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    try:
        topics = session.children(paths.TOPICS)
    except RegistryNodeNotFoundError:
        return counts
    for topic in topics:
        for name in session.children(paths.topic(topic)):
            counts[name] = counts.get(name, 0) + 1
    return counts


_POLL_S = 0.05


def read_pid(path: Path) -> int:
    """Return the process id a pid file holds, of a process that runs.

    Raises:
        CliError: the file holds no id, or no such process runs.
        OSError: the file cannot be read.
    """
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if not text.isdecimal() or int(text) < 1:
        raise CliError(ExitStatus.CONFIG, f"'{path}' holds no process id: '{text[:40]}'")
    if not is_running(int(text)):
        raise CliError(ExitStatus.NOT_FOUND, f"no process {text} runs, which '{path}' names")
    return int(text)


def is_running(pid: int) -> bool:
    """Say whether a process runs; one that ended and was not waited for by its parent does not."""
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
    """Wait until a process has ended; return whether it has within the time."""
    give_up_s = time.monotonic() + timeout_s
    while is_running(pid):
        if time.monotonic() >= give_up_s:
            return False
        time.sleep(_POLL_S)
    return True
