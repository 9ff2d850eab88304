"""Commands that work on two clusters: where messages come from, and where they go.

Each side has its own options; a side without any is the cluster that `--zookeeper` and `--broker`
name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from pylogctl.connections import Absence, connector, open_cluster
from pylogctl.context import Environment

if TYPE_CHECKING:
    from broker.client.cluster import Cluster, Connect

FromZookeeper = Annotated[
    str | None,
    typer.Option(
        "--from-zookeeper",
        metavar="HOST:PORT[,..][/CHROOT]",
        help="Registry of the cluster to read from. Default: --zookeeper.",
        rich_help_panel="Connection",
    ),
]
FromBroker = Annotated[
    str | None,
    typer.Option(
        "--from-broker",
        metavar="HOST:PORT[,..]",
        help="Brokers to read from, without a registry. Default: --broker.",
        rich_help_panel="Connection",
    ),
]
ToZookeeper = Annotated[
    str | None,
    typer.Option(
        "--to-zookeeper",
        metavar="HOST:PORT[,..][/CHROOT]",
        help="Registry of the cluster to write to. Default: --zookeeper.",
        rich_help_panel="Connection",
    ),
]
ToBroker = Annotated[
    str | None,
    typer.Option(
        "--to-broker",
        metavar="HOST:PORT[,..]",
        help="Brokers to write to, without a registry. Default: --broker.",
        rich_help_panel="Connection",
    ),
]

OnCorruptChoice = Annotated[
    Literal["stop", "skip"],
    typer.Option(
        "--on-corrupt",
        help="Stop at a corrupt message with status 8, or leave it out and end with 6.",
        rich_help_panel="Limits",
    ),
]


class Side(NamedTuple):
    """One of the two clusters, open."""

    cluster: Cluster
    connect: Connect


def at_cluster(env: Environment, zookeeper: str | None, brokers: str | None) -> Environment:
    """Return the environment of a command at one of its two clusters.

    Args:
        env: what holds for both.
        zookeeper: the side's own registry, None if it was not given.
        brokers: the side's own brokers, separated by commas, None if they were not given.
    """
    if zookeeper is None and brokers is None:
        return env
    addresses = tuple(filter(None, (brokers or "").split(",")))
    return replace(env, settings=replace(env.settings, zookeeper=zookeeper, brokers=addresses))


def cluster_name(env: Environment) -> str:
    """Return where a side's cluster is, for messages."""
    return ",".join(env.settings.brokers) or env.zookeeper


@contextmanager
def open_side(env: Environment, *, absence: Absence = Absence.LEFT_OUT) -> Iterator[Side]:
    """Open one of the two clusters.

    Args:
        env: says which.
        absence: what it means that a static broker does not answer, while others do.

    Raises:
        RegistryUnreachableError: the registry did not answer within `--timeout`.
        UsageError: a broker's address is malformed.
    """
    connect = connector(env)
    with open_cluster(env, connect, absence=absence) as cluster:
        yield Side(cluster, connect)


def are_same(one: Side, other: Side) -> bool:
    """Say whether two sides are one cluster, which they are if they have a broker in common.

    Raises:
        BrokerError: a registry or a broker does not answer.
    """
    addresses = {(broker.host, broker.port) for broker in one.cluster.brokers()}
    return any((broker.host, broker.port) in addresses for broker in other.cluster.brokers())
