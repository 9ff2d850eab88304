"""Ways to registry and brokers for commands, made from the shared options.

Imports the client libraries only when a connection is asked for, so that help and the commands on
files stay fast. Whoever opens a connection here closes it by leaving the block.

Commands that work on two clusters: where messages come from, and where they go.

Each side has its own options; a side without any is the cluster that `--zookeeper` and `--broker`
name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pylogctl.cli.context import TRACE_VERBOSITY, Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.progress import announced_wait

if TYPE_CHECKING:
    from broker.client.cluster import Cluster, Connect, OnAbsent
    from broker.client.connection import Connection
    from broker.config import ConsumerConfig, ProducerConfig
    from broker.errors import BrokerError
    from broker.protocol.responses import BrokerAddress
    from broker.zk.registry import Registry
    from broker.zk.session import Session
    from pylogctl.cli.options import ClusterChoice


REQUEST_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0


@contextmanager
def registry_session(env: Environment) -> Iterator[Session]:
    """Open a session with the registry.

    Raises:
        RegistryUnreachableError: no server answered within `--timeout`.
        ConfigError: the address is malformed.
    """
    from broker.zk.session import Session

    timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)
    session = Session(env.zookeeper, request_timeout_s=timeout_s)
    with announced_wait(env, f"ZooKeeper at {env.zookeeper}"):
        session.start(timeout_s)
    try:
        yield session
    finally:
        session.stop()


class Absence(Enum):
    """What it means for a command that a broker named by `--broker` does not answer."""

    PARTIAL = "partial"
    """The result lacks what it has: the command ends as partly done."""
    WARN = "warn"
    """The others will do."""
    FAIL = "fail"
    """Nothing is done without it."""


@contextmanager
def open_cluster(
    env: Environment,
    connect: Connect | None = None,
    *,
    absence: Absence = Absence.PARTIAL,
    config: ProducerConfig | ConsumerConfig | None = None,
    may_be_new: bool = False,
) -> Iterator[Cluster]:
    """Open the way to brokers and topics: the static brokers if any are given, else the registry.

    Args:
        env: says which.
        connect: makes connections to brokers; `connector(env)` unless given.
        absence: what it means that a static broker does not answer, while others do.
        config: has the timeouts of the registry.
        may_be_new: a chroot that no broker has made yet is no error.

    Raises:
        RegistryUnreachableError: the registry did not answer within `--timeout`.
        CliError: there is no such chroot.
        UsageError: a broker's address is malformed.
    """
    if env.settings.brokers:
        from broker.client.cluster import StaticCluster
        from broker.client.connection import parse_broker_list
        from broker.errors import ProtocolError

        try:
            addresses = parse_broker_list(",".join(env.settings.brokers))
        except ProtocolError as error:
            raise UsageError(str(error)) from error
        static = StaticCluster(
            addresses, connect or connector(env), on_absent=_absence_teller(env, absence)
        )
        try:
            yield static
        finally:
            static.close()
        return
    from broker.client.cluster import RegistryCluster

    with open_registry(env, config, may_be_new=may_be_new) as registry:
        yield RegistryCluster(registry)


def _absence_teller(env: Environment, absence: Absence) -> OnAbsent:
    """Return what is done when a static broker does not answer."""

    def tell(error: BrokerError) -> None:
        if absence is Absence.FAIL:
            raise error
        say = env.warn if absence is Absence.WARN else env.leave_out
        say(f"{error}; going on without it")

    return tell


@contextmanager
def open_registry(
    env: Environment,
    config: ProducerConfig | ConsumerConfig | None = None,
    *,
    may_be_new: bool = False,
) -> Iterator[Registry]:
    """Open the registry, with its view of brokers and topics.

    Args:
        env: says which; `--timeout` goes before the timeouts of the settings.
        config: has its timeouts.
        may_be_new: a chroot that no broker has made yet is no error.

    Raises:
        RegistryUnreachableError: no server answered within `--timeout`.
        ConfigError: the address is malformed.
        CliError: there is no such chroot.
    """
    from broker.zk.registry import Registry

    timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)
    if config is None:
        start_s = timeout_s
        registry = Registry(env.zookeeper, request_timeout_s=timeout_s)
    else:
        start_s = env.timeout_s(config.zk_connection_timeout_ms / 1000)
        registry = Registry(
            env.zookeeper,
            session_timeout_ms=config.zk_session_timeout_ms,
            request_timeout_s=timeout_s,
        )
    with announced_wait(env, f"ZooKeeper at {env.zookeeper}"):
        registry.start(start_s)
    try:
        if not may_be_new:
            validate_chroot(registry.session)
        yield registry
    finally:
        registry.stop()


def validate_chroot(session: Session) -> None:
    """Check that the chroot is there: what looks like an empty cluster may be a wrong name.

    Raises:
        CliError: it is not.
    """
    from broker.zk.paths import parse_connect_string

    address = parse_connect_string(session.connect)
    if address.chroot and session.exists("/") is None:
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"ZooKeeper at {address.servers} has no node '{address.chroot}', so no cluster",
            hints=[
                "a cluster's first broker makes it; check how the chroot is spelled",
                f"try: pylogctl zk tree / --zookeeper {address.servers}",
            ],
            code="CHROOT_NOT_FOUND",
        )


def with_addresses(env: Environment, config: ProducerConfig | ConsumerConfig) -> Environment:
    """Return the environment with brokers and registry from `-X` where no option names them."""
    settings = env.settings
    if not settings.brokers and settings.zookeeper is None:
        settings = replace(
            settings,
            brokers=tuple(filter(None, config.broker_list.split(","))),
            zookeeper=config.zookeeper or None,
        )
    return replace(env, settings=settings)


def connector(
    env: Environment,
    *,
    timeout_s: float = 30.0,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    send_bytes: int = 0,
    receive_bytes: int = 0,
) -> Connect:
    """Return what makes connections to brokers, with the limits the user asked for.

    Args:
        env: `--timeout` bounds connecting and every answer.
        timeout_s: how long an answer is waited for without `--timeout`.
        connect_timeout_s: how long connecting is tried, at most.
        send_bytes: SO_SNDBUF; 0 leaves it to the system.
        receive_bytes: SO_RCVBUF; 0 leaves it to the system.
    """
    answer_s = env.timeout_s(timeout_s)
    connect_s = min(env.timeout_s(connect_timeout_s), connect_timeout_s)

    def connect(address: BrokerAddress) -> Connection:
        from broker.client.connection import Connection

        if env.settings.verbosity >= TRACE_VERBOSITY:
            from pylogctl.cli.tracing import TracedConnection

            return TracedConnection(
                env,
                address,
                timeout_s=answer_s,
                connect_timeout_s=connect_s,
                send_bytes=send_bytes,
                receive_bytes=receive_bytes,
            )
        return Connection(
            address,
            timeout_s=answer_s,
            connect_timeout_s=connect_s,
            send_bytes=send_bytes,
            receive_bytes=receive_bytes,
        )

    return connect


class Side(NamedTuple):
    """One of the two clusters, open."""

    cluster: Cluster
    connect: Connect


def at_cluster(env: Environment, choice: ClusterChoice) -> Environment:
    """Return the environment of a command at one of its two clusters."""
    if choice.zookeeper is None and choice.brokers is None:
        return env
    brokers = tuple(filter(None, (choice.brokers or "").split(",")))
    return replace(env, settings=replace(env.settings, zookeeper=choice.zookeeper, brokers=brokers))


def cluster_name(env: Environment) -> str:
    """Return where a side's cluster is, for messages."""
    return ",".join(env.settings.brokers) or env.zookeeper


@contextmanager
def open_side(env: Environment, *, absence: Absence = Absence.PARTIAL) -> Iterator[Side]:
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
