"""`pylogctl cluster`: the options of its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.options import CONNECTION, OUTPUT, accepts
from pylogctl.cli.render import render
from pylogctl.cli.tree import Command, new_app

if TYPE_CHECKING:
    from broker.protocol.responses import ClusterMetadataResponse

app = new_app("Look at the brokers, leaders and replicas of a whole cluster.")

_READS = (
    ExitStatus.TIMEOUT,
    ExitStatus.UNREACHABLE,
    ExitStatus.REMOTE,
    ExitStatus.UNSUPPORTED,
)


def _metadata(env: Environment) -> ClusterMetadataResponse:
    from broker.client.controller_client import cluster_metadata
    from pylogctl.cli.connections import Absence, connector, open_cluster

    with open_cluster(env, absence=Absence.WARN) as cluster:
        return cluster_metadata(cluster.brokers(), connector(env), None)


@app.command("describe", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=_READS,
    examples=("pylogctl cluster describe", "pylogctl cluster describe -b broker-1:9092"),
)
def describe(env: Environment) -> None:
    """Show the live brokers, the controller, and how partitions are spread.

    Any one broker tells of the whole cluster.
    """
    from pylogctl.cluster.document import DESCRIBE, broker_record
    from pylogctl.cluster.facts import broker_facts

    render(env, DESCRIBE, map(broker_record, broker_facts(_metadata(env))))


@app.command("health", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=(*_READS, ExitStatus.THRESHOLD),
    examples=(
        "pylogctl cluster health",
        "pylogctl cluster health --output json | jq '.data[] | select(.result == \"fail\")'",
    ),
)
def health(env: Environment) -> None:
    """Check that all partitions have a leader and all their replicas are in sync.

    The exit status is 12 if a check fails, for monitoring. A warning is no failure: partitions
    that one more broker can make unavailable, and leaders that are not the preferred ones.
    """
    from pylogctl.cluster.document import HEALTH, check_record
    from pylogctl.cluster.facts import FAIL, health_checks

    checks = health_checks(_metadata(env))
    render(env, HEALTH, map(check_record, checks))
    failed = [one.name for one in checks if one.result == FAIL]
    if failed:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"not healthy: {', '.join(failed)}",
            hints=["try: pylogctl topic describe TOPIC, pylogctl broker list"],
        )
