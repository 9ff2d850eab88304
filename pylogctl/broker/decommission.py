"""`pylogctl broker decommission`: asks, shows what moves, and names the partitions that stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from broker.admin import decommission as admin
from broker.units import counted
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import Absence, open_for_requests
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.progress import announced_wait, progress
from pylogctl.topic import replication


def decommission(env: Environment, broker_id: int, throttle: str | None) -> None:
    """Move all replicas away from a broker, which may be dead, and wait until that is done."""
    limit = replication.parse_throttle(throttle)
    with open_for_requests(env, absence=Absence.WARN) as side:
        found = admin.find_replicas(side, broker_id)
        is_live = found.is_live
        replication.show_plan(env, found.plan, found.known)
        env.flush()
        if env.settings.dry_run:
            _name_plain(env, broker_id, found.plain)
            env.note("nothing changed; this was a dry run")
            return
        if found.plan:
            count = counted(len(found.plan), "partition")
            confirm(env, "broker decommission", f"move {count} away from broker {broker_id}?")

        @contextmanager
        def copying(found: admin.BrokerReplicas) -> Iterator[Callable[[int], None]]:
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
                yield meter.advance

        timeout_s = env.settings.timeout_s
        found = admin.move_all(side, found, copying, throttle=limit, timeout_s=timeout_s)
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
            f"topic '{topic}' has {counted(count, 'partition')} without replicas on broker "
            f"{broker_id}: `pylogctl topic alter {topic} --replication-factor N` gives it "
            "replicas, which the next decommission moves"
        )
