"""`pylogctl broker`: start, stop and look at brokers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pylogctl.broker.document import (
    LIST,
    STATUS,
    STOP,
    registered_record,
    status_record,
    stop_record,
)
from pylogctl.cli.connections import (
    Absence,
    connector,
    open_cluster,
    validate_chroot,
    zookeeper_session,
)
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.options import (
    CONFIRM,
    CONNECTION,
    DRY_RUN,
    OUTPUT,
    PROPERTIES,
    REGISTRY,
    SUMMARY,
    accepts,
)
from pylogctl.cli.progress import announced_wait
from pylogctl.cli.render import render
from pylogctl.cli.tree import Command, new_app
from pylogctl.cli.units import format_duration

if TYPE_CHECKING:
    from broker.protocol.responses import BrokerAddress
    from pylogctl.broker.control import ShutdownStep

app = new_app("Start, stop and look at brokers.")

STOP_TIMEOUT_S = 30.0
READS = (ExitStatus.TIMEOUT, ExitStatus.UNREACHABLE, ExitStatus.REMOTE)

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings: Java properties, or TOML (*.toml)."),
]
BrokerId = Annotated[
    int | None,
    typer.Option("--id", metavar="N", min=0, help="Number in the cluster. Default: 0."),
]
Host = Annotated[
    str | None,
    typer.Option("--host", metavar="HOST", help="Address to listen on. Default: 127.0.0.1."),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="PORT",
        min=0,
        max=65535,
        help="Port to listen on; 0 picks a free one. Default: 9092.",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Data directory. Default: data."),
]
NoZookeeper = Annotated[bool, typer.Option("--no-zookeeper", help="Run without ZooKeeper.")]
ZookeeperPort = Annotated[
    int | None,
    typer.Option(
        "--zookeeper-port",
        metavar="PORT",
        min=0,
        max=65535,
        help="Port of the embedded ZooKeeper; 0 picks a free one. Default: 2181.",
    ),
]
Ephemeral = Annotated[
    bool,
    typer.Option(
        "--ephemeral",
        help="A temporary directory, no ZooKeeper, a free port; deleted at the end.",
    ),
]
CheckConfig = Annotated[bool, typer.Option("--check-config", help="Validate the settings and end.")]
ReadyFile = Annotated[
    Path | None,
    typer.Option("--ready-file", metavar="FILE", help="Write the READY line there too."),
]
ReadyFd = Annotated[
    int | None,
    typer.Option("--ready-fd", metavar="N", min=0, help="And to this open descriptor."),
]
Daemon = Annotated[
    bool,
    typer.Option("--daemon", help="Go to the background once ready."),
]
PidFile = Annotated[
    Path | None,
    typer.Option("--pid-file", metavar="FILE", help="Keep the process id there."),
]
LogFile = Annotated[
    Path | None,
    typer.Option("--log-file", metavar="FILE", help="Write the log there, not to stderr."),
]


@app.command("start", cls=Command)
@accepts(
    *SUMMARY,
    *REGISTRY,
    *PROPERTIES,
    exits=(
        ExitStatus.FAILED,
        ExitStatus.CONFLICT,
        ExitStatus.CORRUPT,
        ExitStatus.CONFIG,
        ExitStatus.UNREACHABLE,
        ExitStatus.REMOTE,
    ),
    examples=(
        "pylogctl broker start",
        "pylogctl broker start --ephemeral --output json",
        "pylogctl broker start --config server.properties --id 1 --zookeeper zk1:2181,zk2:2181/log",
        "pylogctl broker start --daemon --pid-file broker.pid --log-file broker.log",
        "pylogctl broker start --config server.properties -X dump",
    ),
    dumps_properties=True,
)
def start(
    env: Environment,
    config: ConfigFile = None,
    broker_id: BrokerId = None,
    host: Host = None,
    port: Port = None,
    data: DataDir = None,
    no_zookeeper: NoZookeeper = False,
    zookeeper_port: ZookeeperPort = None,
    ephemeral: Ephemeral = False,
    check_config: CheckConfig = False,
    ready_file: ReadyFile = None,
    ready_fd: ReadyFd = None,
    daemon: Daemon = False,
    pid_file: PidFile = None,
    log_file: LogFile = None,
) -> None:
    """Run a broker until it is told to stop.

    Prints one READY line once its port is bound and it is registered. Without --zookeeper, an
    embedded ZooKeeper on the data directory is started with it, or used if it runs already;
    --zookeeper embedded asks for that explicitly.
    """
    from pylogctl.broker.service import (
        OnReady,
        StartOptions,
        broker_config,
        config_layers,
        serve,
    )
    from pylogctl.cli import service
    from pylogctl.cli.process import graceful_stop
    from pylogctl.cli.properties import BROKER, dump_properties

    options = StartOptions(
        config, broker_id, host, port, data, no_zookeeper, zookeeper_port, ephemeral
    )
    layers = config_layers(env, options)
    settings = broker_config(layers)
    if "dump" in env.settings.properties:
        dump_properties(env, BROKER, layers)
        return
    if check_config:
        env.note("the configuration is valid")
        return
    if daemon:
        status = service.go_to_background(log_file)
        if status is not None:
            raise typer.Exit(status)
    service.set_up_logging(env, log_file)
    with service.pid_file(pid_file), graceful_stop() as stop:
        targets = service.ReadyTargets(ready_file, ready_fd)
        serve(env, options, settings, OnReady(stop, targets, log_file, daemon))


@app.command("stop", cls=Command)
@accepts(
    *SUMMARY,
    *CONNECTION,
    *CONFIRM,
    *DRY_RUN,
    exits=(
        ExitStatus.NOT_FOUND,
        ExitStatus.DECLINED,
        ExitStatus.PARTIAL,
        ExitStatus.TIMEOUT,
        ExitStatus.CONFIG,
        ExitStatus.UNREACHABLE,
        ExitStatus.REMOTE,
        ExitStatus.UNSUPPORTED,
    ),
    examples=(
        "pylogctl broker stop 0",
        "pylogctl broker stop 0 --yes --output jsonl",
        "pylogctl broker stop --pid-file broker.pid --yes",
    ),
)
def stop(
    env: Environment,
    broker: Annotated[
        int | None,
        typer.Argument(metavar="[ID]", help="Which broker; not needed if there is only one."),
    ] = None,
    pid_file: Annotated[
        Path | None,
        typer.Option("--pid-file", metavar="FILE", help="Stop the process named there instead."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Do not wait for clients to disconnect; logs are still flushed."
        ),
    ] = False,
    kill: Annotated[
        bool,
        typer.Option("--kill", help="Kill the process if it has not stopped within --timeout."),
    ] = False,
) -> None:
    """Shut a broker down without losing anything.

    It deregisters, waits for clients to disconnect, refuses new data, flushes its logs and writes
    the marker of a clean stop; each step is printed with its duration. --timeout is 30s by default;
    a broker that has not stopped by then is left alone, and the exit status is 7. It is 6 if a step
    failed.
    """
    if pid_file is not None:
        if broker is not None:
            raise UsageError("ID cannot be used with --pid-file")
        _stop_process(env, pid_file, kill=kill)
    else:
        _stop_broker(env, broker, force=force, kill=kill)


def _stop_broker(env: Environment, broker: int | None, *, force: bool, kill: bool) -> None:
    from pylogctl.broker.control import find_broker, local_pid, request_status
    from pylogctl.cli.confirmation import confirm

    with open_cluster(env) as cluster:
        address = find_broker(cluster, broker)
    name = f"broker {address.id} at {address.host}:{address.port}"
    if env.settings.dry_run:
        env.note(f"would stop {name}")
        return
    confirm(env, "broker stop", f"stop {name}?")
    pid = local_pid(request_status(connector(env), address).document or {})
    started_s = env.clock.monotonic_s()
    with announced_wait(env, f"{name} to stop"):
        steps = _shut_down(env, address, pid, force=force)
    if steps is None:
        message = _not_in_time(env, name)
        if not kill:
            again = f"pylogctl broker stop {address.id}"
            raise CliError(
                ExitStatus.TIMEOUT,
                message,
                hints=["nothing was killed; it may still be stopping", f"try: {again} --force"],
            )
        _kill(env, pid, message)
        return
    for step in steps:
        env.note(_step_line(step))
    env.note(f"stopped {name} in {format_duration(env.clock.monotonic_s() - started_s)}")
    if env.settings.output:
        render(env, STOP, map(stop_record, steps))
    _check_steps(name, steps)


def _shut_down(
    env: Environment, address: BrokerAddress, pid: int | None, *, force: bool
) -> list[ShutdownStep] | None:
    """Stop a broker and wait for its process if that runs here; None if the time is up."""
    from broker.errors import RequestTimeoutError
    from pylogctl.broker.control import ShutdownStep, shut_down, wait_for_exit

    give_up_s = env.clock.monotonic_s() + env.timeout_s(STOP_TIMEOUT_S)
    connection = connector(env, timeout_s=STOP_TIMEOUT_S)(address)
    try:
        steps = shut_down(connection, force=force)
    except RequestTimeoutError:
        return None
    finally:
        connection.close()
    if pid is None:
        return steps
    closed_s = env.clock.monotonic_s()
    if not wait_for_exit(pid, max(0.0, give_up_s - closed_s)):
        return None
    return [*steps, ShutdownStep("exit", round(env.clock.monotonic_s() - closed_s, 3))]


def _step_line(step: ShutdownStep) -> str:
    """Return a step as a line of text."""
    took = format_duration(step.seconds)
    if not step.is_done:
        return f"{step.name}: failed after {took}: {step.note}"
    return f"{step.name}: {took}{f', {step.note}' if step.note else ''}"


def _check_steps(name: str, steps: Sequence[ShutdownStep]) -> None:
    """Validate that every step of a shutdown succeeded.

    Raises:
        CliError: one failed.
    """
    failed = [step.name for step in steps if not step.is_done]
    if failed:
        raise CliError(
            ExitStatus.PARTIAL,
            f"{name} has stopped, but these steps failed: {', '.join(failed)}",
            hints=["its next start recovers the logs", "see its log for more"],
            details={"failed": failed},
        )


def _not_in_time(env: Environment, name: str) -> str:
    return f"{name} did not stop within {format_duration(env.timeout_s(STOP_TIMEOUT_S))}"


def _stop_process(env: Environment, pid_file: Path, *, kill: bool) -> None:
    from pylogctl.broker.control import read_pid, wait_for_exit
    from pylogctl.cli.confirmation import confirm

    pid = read_pid(pid_file)
    name = f"process {pid}"
    if env.settings.dry_run:
        env.note(f"would stop {name}")
        return
    confirm(env, "broker stop", f"stop {name}?")
    started_s = env.clock.monotonic_s()
    os.kill(pid, signal.SIGTERM)
    timeout_s = env.timeout_s(STOP_TIMEOUT_S)
    with announced_wait(env, f"{name} to stop"):
        has_ended = wait_for_exit(pid, timeout_s)
    if not has_ended:
        if not kill:
            hints = ["nothing was killed; it may still be stopping", "try: --timeout 2m, or --kill"]
            raise CliError(ExitStatus.TIMEOUT, _not_in_time(env, name), hints=hints)
        _kill(env, pid, _not_in_time(env, name))
        return
    env.note(f"stopped {name} in {format_duration(env.clock.monotonic_s() - started_s)}")


def _kill(env: Environment, pid: int | None, message: str) -> None:
    from pylogctl.cli.confirmation import confirm

    if pid is None:
        raise CliError(
            ExitStatus.TIMEOUT,
            message,
            hints=["its process is not known here, so nothing was killed", "try: --pid-file FILE"],
        )
    confirm(env, "broker stop --kill", f"{message}; kill process {pid}?")
    os.kill(pid, signal.SIGKILL)
    env.warn(f"killed process {pid}; the next start recovers its logs")


@app.command("status", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, *READS),
    examples=(
        "pylogctl broker status",
        "pylogctl broker status 0 --output json | jq .data[0].metrics",
    ),
)
def status(
    env: Environment,
    broker: Annotated[
        int | None, typer.Argument(metavar="[ID]", help="Which broker. Default: all.")
    ] = None,
) -> None:
    """Show the state of brokers.

    Exit status 10 means that the broker is down, 6 that some of several are.
    """
    from pylogctl.broker.control import find_broker, request_status
    from pylogctl.cli.report import failure_of

    absence = Absence.PARTIAL if broker is None else Absence.WARN
    with open_cluster(env, absence=absence) as cluster:
        addresses = cluster.brokers() if broker is None else [find_broker(cluster, broker)]
    connect = connector(env, timeout_s=10.0)
    responses = [request_status(connect, address) for address in addresses]
    render(env, STATUS, [status_record(response) for response in responses])
    env.flush()
    failures = [one.error for one in responses if one.error is not None]
    if failures and len(failures) == len(responses) == 1:
        raise failures[0]
    for error in failures:
        failure = failure_of(error)
        env.error(failure.message if failure else str(error))
    if failures:
        raise typer.Exit(
            ExitStatus.UNREACHABLE if len(failures) == len(responses) else ExitStatus.PARTIAL
        )


@app.command("list", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=(ExitStatus.PARTIAL, *READS),
    examples=("pylogctl broker list", "pylogctl broker list --output name"),
)
def list_(env: Environment) -> None:
    """List the registered brokers, or those given with --broker."""
    records = _given_brokers(env) if env.settings.brokers else _registered(env)
    render(env, LIST, list(records))


def _registered(env: Environment) -> Iterator[dict[str, Any]]:
    from pylogctl.broker.control import registered_brokers

    with zookeeper_session(env) as session:
        validate_chroot(session)
        for broker in registered_brokers(session):
            yield registered_record(broker)


def _given_brokers(env: Environment) -> Iterator[dict[str, Any]]:
    from pylogctl.broker.control import request_status

    with open_cluster(env) as cluster:
        addresses = cluster.brokers()
    for address in addresses:
        document = request_status(connector(env), address).document or {}
        session = document.get("session") or {}
        yield {
            "id": address.id,
            "host": address.host,
            "port": address.port,
            "creator": None,
            "since": document.get("started_ms"),
            "session": session.get("id"),
            "topics": document.get("topics"),
        }
