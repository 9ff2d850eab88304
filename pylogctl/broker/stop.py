"""Stops a broker for `broker stop`: by a request, or by a signal to its process.

A broker that runs the embedded ZooKeeper takes that along, and with it the whole cluster: it is not
stopped while others are registered there, unless asked for.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from broker import errors
from broker.admin import brokers
from broker.client.connection import parse_broker_list
from broker.client.side import Side
from broker.protocol.responses import BrokerAddress
from broker.units import format_duration
from broker.zk.embedded import EmbeddedZooKeeper
from pylogctl.broker.document import STOP, ShutdownStep
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import connector, open_for_requests, zookeeper_session
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.progress import announced_wait
from pylogctl.cli.render import render


def find_broker(side: Side, broker_id: int | None, listed: Sequence[str] = ()) -> BrokerAddress:
    """Return the broker of an id; without one, that of the only address listed, or the only one."""
    if broker_id is not None:
        return brokers.find_broker(side, broker_id)
    live = side.brokers()
    if not live:
        raise errors.BrokerNotFoundError(
            "no broker is registered", hints=["start one: pylogctl broker start"]
        )
    given = {(one.host, one.port) for one in parse_broker_list(",".join(listed))}
    if len(given) == 1:
        for address in live:
            if (address.host, address.port) in given:
                return address
    if len(live) > 1:
        ids = ", ".join(str(address.id) for address in live)
        raise UsageError("missing ID: there are several brokers", f"brokers: {ids}")
    return live[0]


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


STOP_TIMEOUT_S = 30.0
_STEPS_WITHOUT_LOGS = frozenset({"move leaderships", "deregister", "leave the registry"})
"""Steps on which no log depends: if only these fail, the next start finds complete logs."""


def stop_broker(
    env: Environment, broker_id: int | None, *, force: bool, kill: bool, with_zookeeper: bool
) -> None:
    """Ask a broker (None: the only one) to stop, wait until it has, and write the steps it took."""
    with open_for_requests(env) as side:
        address = find_broker(side, broker_id, env.settings.brokers)
    name = brokers.name_of(address)
    document = brokers.request_status(connector(env), address).document or {}
    zookeeper = document["zookeeper"] if document.get("runs_zookeeper") else None
    what = name
    if zookeeper is not None:
        # Seen from here, its address may be another one than the broker's own.
        seen = zookeeper if env.settings.brokers else env.zookeeper
        what = f"{name} and the ZooKeeper that it runs, {zookeeper}"
        _check_users(env, name, seen, address.id, with_zookeeper)
    if env.settings.dry_run:
        env.note(f"would stop {what}")
        return
    confirm(env, "broker stop", f"stop {what}?")
    started_s = env.clock.monotonic_s()
    with announced_wait(env, f"{name} to stop"):
        steps = _shut_down(env, address, local_pid(document), force=force)
    if steps is None:
        message = _not_in_time(env, name)
        if not kill:
            again = f"pylogctl broker stop {address.id}"
            raise CliError(
                ExitStatus.TIMEOUT,
                message,
                "nothing was killed; it may still be stopping",
                f"try: {again} --force",
            )
        _kill(env, local_pid(document), message)
        return
    for step in steps:
        env.note(_step_line(step))
    env.note(f"stopped {what} in {format_duration(env.clock.monotonic_s() - started_s)}")
    if env.settings.output:
        render(env, STOP, steps)
    _check_steps(name, steps)


def stop_process(env: Environment, pid_file: Path, *, kill: bool, with_zookeeper: bool) -> None:
    """Stop the process named in a pid file by SIGTERM, and wait for its end."""
    pid = read_pid(pid_file)
    name = what = f"process {pid}"
    zookeeper = EmbeddedZooKeeper.run_by(pid)
    if zookeeper is not None:
        what = f"{name} and the ZooKeeper that it runs, {zookeeper}"
        _check_users(env, name, zookeeper, None, with_zookeeper)
    if env.settings.dry_run:
        env.note(f"would stop {what}")
        return
    confirm(env, "broker stop", f"stop {what}?")
    started_s = env.clock.monotonic_s()
    os.kill(pid, signal.SIGTERM)
    timeout_s = env.timeout_s(STOP_TIMEOUT_S)
    with announced_wait(env, f"{name} to stop"):
        has_ended = wait_for_exit(pid, timeout_s)
    if not has_ended:
        if not kill:
            hints = ["nothing was killed; it may still be stopping", "try: --timeout 2m, or --kill"]
            raise CliError(ExitStatus.TIMEOUT, _not_in_time(env, name), *hints)
        _kill(env, pid, _not_in_time(env, name))
        return
    env.note(f"stopped {what} in {format_duration(env.clock.monotonic_s() - started_s)}")


def _check_users(
    env: Environment, name: str, zookeeper: str, broker_id: int | None, is_allowed: bool
) -> None:
    """Validate, or warn if not, that no other broker or member uses a broker's own ZooKeeper."""
    at = env.changed(settings=env.settings._replace(zookeeper=zookeeper))
    try:
        with zookeeper_session(at, may_be_new=True) as session:
            ids = [broker.id for broker in brokers.registered_brokers(session)]
            members = brokers.registered_members(session)
    except errors.RegistryUnreachableError as error:
        env.warn(f"cannot tell who uses the ZooKeeper of {name}: {error}")
        return
    # Without the broker's id, one registered broker is taken for it.
    others = ids[1:] if broker_id is None else [one for one in ids if one != broker_id]
    if broker_id is None and others:
        users = [f"brokers {', '.join(map(str, ids))}"]
    else:
        users = [f"broker {one}" for one in others]
    users += brokers.member_texts(members)
    if not users:
        return
    message = brokers.in_use_text(name, zookeeper, users)
    if is_allowed:
        env.warn(message)
        return
    raise CliError(
        ExitStatus.CONFLICT,
        message,
        "stop those first; they can do little without it",
        "to stop it under them: --with-zookeeper",
        "a ZooKeeper of its own outlives brokers: pylogctl zk start",
        code="ZOOKEEPER_IN_USE",
        details={"brokers": others, "members": members},
    )


def _shut_down(
    env: Environment, address: BrokerAddress, pid: int | None, *, force: bool
) -> list[ShutdownStep] | None:
    """Stop a broker and wait for its process if that runs here; None if the time is up."""
    give_up_s = env.clock.monotonic_s() + env.timeout_s(STOP_TIMEOUT_S)
    with closing(connector(env, timeout_s=STOP_TIMEOUT_S)(address)) as connection:
        try:
            taken = brokers.shut_down(connection, force=force)
        except errors.RequestTimeoutError:
            return None
        except errors.UnsupportedVersionError as error:
            hints = ["send its process SIGTERM, or name its pid file: --pid-file FILE"]
            raise CliError(ExitStatus.UNSUPPORTED, str(error), *hints) from error
    steps = [ShutdownStep(*one) for one in taken]
    if pid is None:
        return steps
    closed_s = env.clock.monotonic_s()
    if not wait_for_exit(pid, max(0.0, give_up_s - closed_s)):
        return None
    return [*steps, ShutdownStep("exit", round(env.clock.monotonic_s() - closed_s, 3))]


def _step_line(step: ShutdownStep) -> str:
    took = format_duration(step.seconds)
    if not step.done:
        return f"{step.step}: failed after {took}: {step.note}"
    return f"{step.step}: {took}{f', {step.note}' if step.note else ''}"


def _check_steps(name: str, steps: Sequence[ShutdownStep]) -> None:
    """Validate that every step of a shutdown succeeded."""
    failed = [step.step for step in steps if not step.done]
    if failed:
        hints = ["see its log for more"]
        if not _STEPS_WITHOUT_LOGS.issuperset(failed):
            hints.insert(0, "its next start recovers the logs")
        raise CliError(
            ExitStatus.PARTIAL,
            f"{name} has stopped, but these steps failed: {', '.join(failed)}",
            *hints,
            details={"failed": failed},
        )


def _not_in_time(env: Environment, name: str) -> str:
    return f"{name} did not stop within {format_duration(env.timeout_s(STOP_TIMEOUT_S))}"


def _kill(env: Environment, pid: int | None, message: str) -> None:
    if pid is None:
        raise CliError(
            ExitStatus.TIMEOUT,
            message,
            "its process is not known here, so nothing was killed",
            "try: --pid-file FILE",
        )
    confirm(env, "broker stop --kill", f"{message}; kill process {pid}?")
    os.kill(pid, signal.SIGKILL)
    env.warn(f"killed process {pid}; the next start recovers its logs")
