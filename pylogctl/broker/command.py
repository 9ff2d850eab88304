"""`pylogctl broker`: start, stop and look at brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pylogctl.broker.options import ProcessOptions, StartOptions
from pylogctl.cli import options as shared
from pylogctl.cli.columns import UNKNOWN
from pylogctl.cli.connections import Absence, open_for_requests, zookeeper_session
from pylogctl.cli.declarations import argument, flag, option
from pylogctl.cli.environment import Environment, ExitStatus, UsageError
from pylogctl.cli.render import render

if TYPE_CHECKING:
    from broker.admin.brokers import BrokerStatus
    from pylogctl.broker.document import BrokerRow

app = shared.App()

_STARTS = (
    *(ExitStatus.FAILED, ExitStatus.CONFLICT, ExitStatus.CORRUPT),
    *(ExitStatus.CONFIG, ExitStatus.UNREACHABLE, ExitStatus.REMOTE),
)
_CHANGES = (ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.PARTIAL, ExitStatus.UNSUPPORTED)


@app.command(
    shared.SUMMARY + shared.REGISTRY + shared.PROPERTIES,
    exits=_STARTS,
    first="--config --id --host --port --data --ephemeral --no-zookeeper --daemon --ready-file "
    "--check-config",
    dumps_properties=True,
)
def start(env: Environment, options: StartOptions, process: ProcessOptions) -> int:
    """Run a broker until it is told to stop.

    Prints one READY line once its port is bound and it is registered. Without --zookeeper, an
    embedded ZooKeeper on the data directory is started with it, or used if it runs already;
    --zookeeper embedded asks for that explicitly. It ends with the broker. A broker with a TLS
    listener rereads its certificates every 10 s and on SIGHUP; one without TLS stops on SIGHUP.
    With -X authentication.required=true clients log in, but at authentication.optional.listeners.

    $ pylogctl broker start
    $ pylogctl broker start --ephemeral --output json
    $ pylogctl broker start --config server.properties --id 1 --zookeeper zk1:2181,zk2:2181/log
    $ pylogctl broker start --daemon --pid-file broker.pid --log-file broker.log
    $ pylogctl broker start --config server.properties -X dump
    """
    from pylogctl.broker.service import run

    return run(env, options, process)


@app.command(
    shared.SUMMARY + shared.CONNECTION + shared.CHANGE, exits=(*_CHANGES, ExitStatus.CONFIG)
)
def stop(
    env: Environment,
    broker: int | None = argument(
        "[ID]", "Which broker; not needed if there is only one.", default=None
    ),
    pid_file: Path | None = option("--pid-file FILE", "Stop the process named there instead."),
    force: bool = flag("--force", "Do not wait for producers of 0.7; logs are still flushed."),
    with_zookeeper: bool = flag(
        "--with-zookeeper",
        "Stop a broker that runs the embedded ZooKeeper although others use that.",
    ),
    kill: bool = flag("--kill", "Kill the process if it has not stopped within --timeout."),
) -> None:
    """Shut a broker down without losing anything.

    It deregisters, waits for clients to disconnect, refuses new data, flushes its logs and writes
    the marker of a clean stop; each step is printed with its duration. --timeout is 30s by default;
    a broker that has not stopped by then is left alone, and the exit status is 7. It is 6 if a step
    failed, 4 if the broker runs the embedded ZooKeeper and other brokers or members of groups are
    registered there.

    $ pylogctl broker stop 0
    $ pylogctl broker stop 0 --yes --output jsonl
    $ pylogctl broker stop --pid-file broker.pid --yes
    """
    from pylogctl.broker import stop as work

    if pid_file is None:
        work.stop_broker(env, broker, force=force, kill=kill, with_zookeeper=with_zookeeper)
        return
    if broker is not None:
        raise UsageError("ID cannot be used with --pid-file")
    work.stop_process(env, pid_file, kill=kill, with_zookeeper=with_zookeeper)


@app.command(shared.OUTPUT + shared.CONNECTION, exits=(ExitStatus.NOT_FOUND, ExitStatus.PARTIAL))
def status(
    env: Environment,
    ids: list[int] | None = argument("[ID...]", "Which brokers. Default: all.", default=None),
) -> int:
    """Show the state of brokers, and name the partitions that their disks fail.

    Exit status 10 means that the broker is down, 6 that some of several are, or not there.

    $ pylogctl broker status
    $ pylogctl broker status 0 2
    $ pylogctl broker status 0 --output json | jq .data[0].metrics
    """
    from broker.admin import brokers
    from broker.protocol.responses import BrokerAddress
    from pylogctl.broker.document import STATUS
    from pylogctl.cli.failures import for_each
    from pylogctl.cli.report import failure_of

    absence = Absence.WARN if ids else Absence.PARTIAL
    with open_for_requests(env, absence=absence) as side:
        live = {one.id: one for one in side.brokers()}
        away = brokers.find_away(side)

        def look(id: int) -> brokers.StatusResponse:
            if id in away:
                return brokers.StatusResponse(
                    BrokerAddress(id, "", 0), None, brokers.away_error(id, away[id])
                )
            return brokers.request_status(
                side.connect, live.get(id) or brokers.find_broker(side, id)
            )

        wanted = ids or sorted(live.keys() | away.keys())
        responses, (failures, *_) = for_each(env, "brokers", wanted, look)
    rows = list(map(brokers.status_of, responses))
    render(env, STATUS, rows)
    env.flush()
    for row in rows:
        for warning in _warnings(row):
            env.warn(f"broker {row.id}: {warning}")
    down = [one.error for one in responses if one.error is not None]
    failures = [*failures, *down]
    if down and len(failures) == len(responses) == 1:
        raise down[0]
    for error in failures:
        reported = failure_of(error)
        env.error(reported.message if reported else str(error))
    if not failures:
        return ExitStatus.OK
    all_down = len(down) == len(failures) == len(responses)
    return ExitStatus.UNREACHABLE if all_down else ExitStatus.PARTIAL


def _warnings(row: BrokerStatus) -> Iterator[str]:
    """Yield the problems of a broker; a failed directory once, not for each of its partitions."""
    lost = [one.error for one in row.directories or () if one.error]
    yield from lost
    for failure in row.failures or ():
        if not any(error in failure.error for error in lost):
            yield failure.error
    if row.retention_waits:
        yield row.retention_waits
    for path, problem in (row.settings_problems or {}).items():
        yield f"node {path} is not used: {problem}"


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PROGRESS + shared.CHANGE,
    exits=_CHANGES,
)
def decommission(
    env: Environment,
    broker: int = argument("ID", "Which broker; it may be dead."),
    throttle: shared.ThrottleOption = None,
) -> None:
    """Move all replicas away from a broker, so that it can be stopped for good.

    Shows the plan, asks, and waits until the other brokers have copied everything; without
    --timeout as long as that takes. Exit status 6 means that partitions without replicas stay on
    the broker: these are named.

    $ pylogctl broker decommission 2 --dry-run
    $ pylogctl broker decommission 2 --yes --timeout 2h --throttle 50MB/s
    """
    from pylogctl.broker import decommission as work

    work.decommission(env, broker, throttle)


@app.command(shared.OUTPUT + shared.CONNECTION, exits=(ExitStatus.PARTIAL,))
def list_(env: Environment) -> None:
    """List the brokers of the cluster.

    One that is not registered is down, and listed as long as it has logs of topics.

    $ pylogctl broker list
    $ pylogctl broker list --output name
    """
    from pylogctl.broker.document import LIST

    records = _given_brokers(env) if env.settings.brokers else _registered(env)
    rows = sorted(records, key=lambda row: row.id or 0)
    render(env, LIST, rows)


def _registered(env: Environment) -> Iterator[BrokerRow]:
    from broker.admin.brokers import away_brokers, registered_brokers
    from pylogctl.broker.document import BrokerRow, down_row

    with zookeeper_session(env) as session:
        for one in registered_brokers(session):
            yield BrokerRow(*one)
        for id, topics in away_brokers(session).items():
            yield down_row(id, topics)


def _given_brokers(env: Environment) -> Iterator[BrokerRow]:
    from broker.admin.brokers import find_away, request_status
    from pylogctl.broker.document import BrokerRow, down_row

    with open_for_requests(env) as side:
        addresses = side.brokers()
        away = find_away(side)
    for id, topics in away.items():
        yield down_row(id, topics)
    for address in addresses:
        document = request_status(side.connect, address).document
        session = UNKNOWN if document is None else (document.get("session") or {}).get("id")
        known = document or {}
        yield BrokerRow(
            address.id,
            address.host,
            address.port,
            UNKNOWN,
            known.get("started_ms", UNKNOWN),
            session,
            known.get("topics", UNKNOWN),
        )
