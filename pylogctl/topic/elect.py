"""Elections of leaders, confirmed and shown."""

from __future__ import annotations

from collections.abc import Sequence

from broker.admin.replicas import plan_election, raise_refused, replicas_of, request_election
from broker.client.cluster import Cluster
from broker.errors import NO_ERROR
from broker.protocol.cluster_requests import ElectionKind, PartitionOutcome
from pylogctl.cli.confirmation import confirm_name
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, connector
from pylogctl.cli.environment import Environment
from pylogctl.cli.render import render
from pylogctl.topic.document import ELECT, ElectRow


def elect_leaders(
    env: Environment,
    cluster: Cluster,
    topics: Sequence[str],
    kind: ElectionKind,
    *,
    confirmed: str | None,
) -> None:
    """Have the controller elect leaders, and render the outcome for each partition."""
    connect = connector(env)
    known = replicas_of(cluster, connect, topics)
    wanted = plan_election(known, kind)
    # An unclean election can lose messages: only without a leader, and confirmed by name.
    if kind is ElectionKind.UNCLEAN:
        env.warn(f"messages of {', '.join(map(str, wanted))} that were acknowledged may be lost")
        if not env.settings.dry_run:
            confirm_name(env, "topic elect --unclean", topics[0], confirmed)
    if not wanted or env.settings.dry_run:
        render(env, ELECT, [ElectRow(one, "elect") for one in wanted])
        return
    outcomes = request_election(
        cluster, connect, wanted, kind, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S)
    )
    render_outcomes(env, outcomes, "elected")


def render_outcomes(env: Environment, outcomes: Sequence[PartitionOutcome], done: str) -> None:
    """Render the outcome of a request for each partition; fail if some were refused."""
    rows = [
        ElectRow(one.partition, done if one.error == NO_ERROR else "refused", one.text or None)
        for one in outcomes
    ]
    render(env, ELECT, rows)
    raise_refused(outcomes)
