"""`pylogctl broker decommission`: asks, shows what moves, and names the partitions that stay."""

from __future__ import annotations

import time
from collections.abc import Mapping

from broker.admin import decommission as admin
from broker.protocol.cluster_requests import THROTTLE_STAYS
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, Absence, connector, open_cluster
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.progress import announced_wait, progress
from pylogctl.topic import replication


def decommission(env: Environment, broker_id: int, throttle: str | None) -> None:
    """Move all replicas away from a broker, which may be dead, and wait until that is done."""
    limit = THROTTLE_STAYS if throttle is None else replication.parse_throttle(throttle)
    connect, timeout_s = connector(env), env.timeout_s(REQUEST_TIMEOUT_S)
    with open_cluster(env, absence=Absence.WARN) as cluster:
        found = admin.find_replicas(cluster, connect, broker_id, timeout_s=timeout_s)
        is_live = found.is_live
        replication.show_plan(env, found.plan, found.known)
        env.flush()
        if env.settings.dry_run:
            _name_plain(env, broker_id, found.plain)
            env.note("nothing changed; this was a dry run")
            return
        if found.plan:
            count = f"{len(found.plan)} partition{'' if len(found.plan) == 1 else 's'}"
            confirm(env, "broker decommission", f"move {count} away from broker {broker_id}?")
        began_s = time.monotonic()
        while found.known:
            if found.plan:  # otherwise the reassignments under way move all
                admin.begin(cluster, connect, found.plan, throttle=limit, timeout_s=timeout_s)
            for one in found.leaderless:
                env.warn(
                    f"{one.partition} has no leader and cannot be copied: start a broker of "
                    f"{list(one.isr)}, or give messages up with `pylogctl topic elect "
                    f"{one.partition.topic} --unclean`"
                )
            with (
                announced_wait(env, f"{len(found.known)} partitions to be copied"),
                progress(env, "move", len(found.known), unit="tasks") as meter,
            ):
                admin.await_moved(
                    cluster,
                    connect,
                    found,
                    advance=meter.advance,
                    request_timeout_s=timeout_s,
                    timeout_s=env.settings.timeout_s,
                    began_s=began_s,
                )
            # A topic may have been created before the change began.
            found = admin.find_replicas(cluster, connect, broker_id, timeout_s=timeout_s)
    env.note(f"broker {broker_id} has no replicas")
    if found.plain:
        _name_plain(env, broker_id, found.plain)
        raise CliError(
            ExitStatus.PARTIAL,
            f"{sum(found.plain.values())} partitions without replicas stay on broker {broker_id}",
        )
    if is_live:
        env.note(f"stop it before other topics are created: pylogctl broker stop {broker_id}")


def _name_plain(env: Environment, broker_id: int, plain: Mapping[str, int]) -> None:
    for topic, count in sorted(plain.items()):
        env.warn(
            f"topic '{topic}' has {count} partition{'' if count == 1 else 's'} without replicas on "
            f"broker {broker_id}: `pylogctl topic alter {topic} --replication-factor N` gives it "
            "replicas, which the next decommission moves"
        )
