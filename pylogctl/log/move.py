"""`pylogctl log move`: has a running broker move a log to another of its data directories."""

from __future__ import annotations

from broker.admin.log_moves import (
    await_move,
    begin_move,
    find_holder,
    parse_log_name,
    unknown_text,
)
from broker.errors import BrokerUnreachableError, UnsupportedVersionError
from pylogctl.cli.connections import Absence, open_for_requests
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.log.document import MOVE, MoveRow


def move(env: Environment, name: str, directory: str, broker_id: int | None) -> None:
    """Move the log of partition `name`, `TOPIC[PARTITION]`, and wait until that is done."""
    partition = parse_log_name(name)
    if not directory:
        raise UsageError("--to is empty; it must be a data directory of the broker")
    with open_for_requests(env, absence=Absence.WARN) as side:
        address = find_holder(side, partition, broker_id)
    connection = side.connect(address)
    started_s = env.clock.monotonic_s()
    try:
        state = begin_move(connection, partition, directory)
        try:
            with progress(env, "move", state.total_bytes) as meter:
                state = await_move(connection, partition, state, meter.advance)
        except KeyboardInterrupt:
            env.warn(f"the broker goes on moving {partition}; `broker status` names its directory")
            raise
        except BrokerUnreachableError:
            env.warn(unknown_text(partition))
            raise
    except UnsupportedVersionError as error:
        raise CliError(ExitStatus.UNSUPPORTED, str(error)) from error
    finally:
        connection.close()
    row = MoveRow(
        partition.topic,
        partition.name,
        address.id,
        state.directory,
        state.copied_bytes,
        round(env.clock.monotonic_s() - started_s, 3),
    )
    render(env, MOVE, [row])
