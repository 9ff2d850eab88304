"""The broker that a command means, and processes of this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from broker.admin.brokers import find_broker as find_live
from broker.client.cluster import Cluster, Connect
from broker.client.connection import parse_broker_list
from broker.errors import BrokerNotFoundError
from broker.protocol.responses import BrokerAddress
from pylogctl.cli.errors import CliError, ExitStatus, UsageError


def find_broker(
    cluster: Cluster, connect: Connect, broker_id: int | None, listed: Sequence[str] = ()
) -> BrokerAddress:
    """Return the broker of an id; without one, that of the only address listed, or the only one."""
    if broker_id is not None:
        return find_live(cluster, connect, broker_id)
    brokers = cluster.brokers()
    if not brokers:
        raise BrokerNotFoundError(
            "no broker is registered", hints=["start one: pylogctl broker start"]
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


def local_pid(document: Mapping[str, Any]) -> int | None:
    """Return a broker's process id if that process has the data directory open on this machine."""
    from broker.log.data_directory import holder_pid

    # The address does not show it: it may be forwarded to another machine, or into a container.
    pid: int | None = document.get("pid")
    if pid is None or holder_pid(Path(document["data"])) != pid:
        return None
    return pid


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
