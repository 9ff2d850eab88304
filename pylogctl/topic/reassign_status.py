"""Shows the progress of replica reassignments, and whether their throttle lets them finish."""

from __future__ import annotations

from collections.abc import Sequence

from broker.admin import reassignment
from broker.client.cluster import Cluster
from broker.units import format_size
from pylogctl.cli.columns import if_known
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, connector
from pylogctl.cli.environment import Environment
from pylogctl.cli.render import render
from pylogctl.topic.document import REASSIGN_STATUS, ReassignStatusRow
from pylogctl.topic.reassign import format_throttle


def show_status(env: Environment, cluster: Cluster, topics: Sequence[str]) -> None:
    """Render the reassignments under way, of `topics` or all, with the bytes left to copy."""
    connect = connector(env)
    found = reassignment.progress(
        cluster, connect, topics, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S)
    )
    for error in found.failures:
        env.leave_out(str(error))
    render(env, REASSIGN_STATUS, map(_row, found.moves))
    throttle = found.throttle_bytes_per_s
    if not throttle:
        return
    env.flush()
    for broker_id, bytes_per_s in reassignment.arriving(cluster, connect, found).items():
        if bytes_per_s >= throttle:
            env.warn(
                f"broker {broker_id} cannot catch up: {format_size(bytes_per_s)}/s arrive in "
                f"the partitions that it copies with {format_throttle(throttle)}; raise that: "
                "pylogctl topic reassign throttle --throttle RATE"
            )


def _row(one: reassignment.MoveProgress) -> ReassignStatusRow:
    return ReassignStatusRow(
        one.partition,
        ",".join(map(str, one.before)),
        ",".join(map(str, one.target)),
        ",".join(map(str, one.missing)),
        if_known(one.left_bytes),
        if_known(one.percent),
        one.throttle_bytes_per_s,
    )
