"""Connections of commands to ZooKeeper and brokers, by the shared options.

The client libraries are imported when a connection is opened, so that help and commands on files
start fast. Connections are context managers: leaving the block closes them. Opening one raises
RegistryUnreachableError if ZooKeeper does not respond within `--timeout`, ConfigError or
UsageError for a malformed address, CliError for a chroot that does not exist unless `may_be_new`.
`config` has the timeouts for ZooKeeper, which `--timeout` overrides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING

from pylogctl.cli import environment
from pylogctl.cli.context import listens
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.progress import Silence, announced_wait
from pylogctl.cli.security import security_of, speaks_tls

if TYPE_CHECKING:
    from broker.client.cluster import Cluster, Connect
    from broker.client.connection import Connection
    from broker.client.side import Side
    from broker.client.static_cluster import OnAbsent
    from broker.consumer.config import ConsumerConfig
    from broker.errors import BrokerError
    from broker.producer.config import ProducerConfig
    from broker.protocol.responses import BrokerAddress
    from broker.zk.registry import Registry
    from broker.zk.security import ZooKeeperSecurity
    from broker.zk.session import Session


REQUEST_TIMEOUT_S = 10.0
STREAM_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5.0
_PROBE_S = 0.5


def zookeeper_security(env: Environment) -> ZooKeeperSecurity | None:
    """Return what the options say of how to prove oneself to ZooKeeper, None if nothing."""
    from broker.zk.security import security_in

    return security_in(env.settings.zk_credential, env.settings.zk_tls_config)


@contextmanager
def zookeeper_session(env: Environment, *, may_be_new: bool = False) -> Iterator[Session]:
    """Open a session with ZooKeeper, whose chroot must exist unless it may be new."""
    from broker.zk.session import Session

    timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)
    session = Session(env.zookeeper, request_timeout_s=timeout_s, security=zookeeper_security(env))
    with _started(env, session, timeout_s, may_be_new=may_be_new):
        yield session


@contextmanager
def _started(
    env: Environment,
    service: Session | Registry,
    timeout_s: float,
    *,
    may_be_new: bool,
    waits: bool = False,
) -> Iterator[None]:
    """Start a session or registry, and stop it at the end.

    Its chroot must exist, unless it may be new. The user is told that ZooKeeper is waited for, and
    which ZooKeeper the broker of this machine has if this one cannot be reached.
    """
    from broker.errors import RegistryUnreachableError
    from broker.zk.session import Session

    try:
        with announced_wait(env, f"ZooKeeper at {env.zookeeper}"):
            service.start(timeout_s, retries_refused=waits)
    except RegistryUnreachableError as error:
        if env.settings.zookeeper is not None:
            raise
        found = _zookeeper_of_local_broker(env)
        if found is None:
            raise
        text = f"uses the ZooKeeper at {found}" if found else "runs without ZooKeeper"
        hint = (
            f"try: -Z {found}" if found else "try: pylogctl doctor, for what it needs to have one"
        )
        raise RegistryUnreachableError(
            f"no ZooKeeper at {env.zookeeper}; the broker at {environment.DEFAULT_BROKER} {text}",
            hints=[hint],
        ) from error
    try:
        if not may_be_new:
            _validate_chroot(service if isinstance(service, Session) else service.session)
        yield
    finally:
        service.stop()


def _zookeeper_of_local_broker(env: Environment) -> str | None:
    """Return the ZooKeeper of the broker at the default port, empty if it runs without one.

    None if there is no broker that tells it.
    """
    from broker.admin.brokers import request_status
    from broker.client.connection import parse_broker_list
    from broker.protocol.extension_requests import StatusParts

    if not listens(environment.DEFAULT_BROKER):
        return None
    (address,) = parse_broker_list(environment.DEFAULT_BROKER)
    document = request_status(connector(env), address, StatusParts(0)).document
    return None if document is None else document["zookeeper"] or ""


class Absence(Enum):
    """The reaction of a command to one of several brokers of `--broker` that cannot be reached."""

    PARTIAL = "partial"
    """Report an error, continue with the others, end with PARTIAL."""
    WARN = "warn"
    """Warn, and continue with the others."""
    FAIL = "fail"
    """End with the error."""


@contextmanager
def open_cluster(
    env: Environment,
    connect: Connect | None = None,
    *,
    absence: Absence = Absence.PARTIAL,
    config: ProducerConfig | ConsumerConfig | None = None,
    may_be_new: bool = False,
) -> Iterator[Cluster]:
    """Open a cluster: the brokers of `--broker` if there are any, else those of the registry."""
    if env.settings.brokers:
        from broker.client.connection import parse_broker_list
        from broker.client.static_cluster import StaticCluster
        from broker.errors import ProtocolError

        try:
            addresses = parse_broker_list(",".join(env.settings.brokers))
        except ProtocolError as error:
            raise UsageError(str(error)) from error
        static = StaticCluster(
            addresses, connect or connector(env), on_absent=_absence_handler(env, absence)
        )
        if connect is not None and "connect.timeout.ms" not in env.settings.properties:
            _validate_some_listen(env, addresses)
        try:
            yield static
        finally:
            static.close()
        return
    from broker.client.registry_cluster import RegistryCluster

    with open_registry(env, config, may_be_new=may_be_new) as registry:
        yield RegistryCluster(registry, connect)


def _validate_some_listen(env: Environment, addresses: Sequence[BrokerAddress]) -> None:
    """Raise if every broker refuses connections, which streams would retry for seconds."""
    from broker.client.connection import Connection
    from broker.errors import BrokerUnreachableError

    refusal = None
    for address in addresses:
        connection = Connection(
            address, connect_timeout_s=_PROBE_S, retries_refused=False, security=security_of(env)
        )
        try:
            connection.connect()
        except BrokerUnreachableError as error:
            if not isinstance(error.__cause__, ConnectionRefusedError):
                return
            refusal = error
        else:
            connection.close()
            return
    if refusal is not None:
        raise refusal


def _absence_handler(env: Environment, absence: Absence) -> OnAbsent:
    def handle(error: BrokerError) -> None:
        if absence is Absence.FAIL:
            raise error
        report = env.warn if absence is Absence.WARN else env.leave_out
        report(f"{error}; going on without it")

    return handle


@contextmanager
def open_registry(
    env: Environment,
    config: ProducerConfig | ConsumerConfig | None = None,
    *,
    may_be_new: bool = False,
) -> Iterator[Registry]:
    """Open the registry: the data of brokers, topics and groups in ZooKeeper."""
    from broker.zk.registry import Registry
    from broker.zk.security import security_of as zk_security_of
    from broker.zk.session import DEFAULT_SESSION_TIMEOUT_MS

    start_s = timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)
    security, session_timeout_ms, waits = zookeeper_security(env), DEFAULT_SESSION_TIMEOUT_MS, False
    if config is not None:
        start_s = env.timeout_s(config.zk_connection_timeout_ms / 1000)
        security = zk_security_of(config) or security
        session_timeout_ms = config.zk_session_timeout_ms
        # A user who sets the time to wait for ZooKeeper expects it to come up in that time.
        waits = "zk.connectiontimeout.ms" in map(config.name_in_07, env.settings.properties)
    registry = Registry(
        env.zookeeper,
        session_timeout_ms=session_timeout_ms,
        request_timeout_s=timeout_s,
        security=security,
        speaks_tls=speaks_tls(env),
    )
    with _started(env, registry, start_s, may_be_new=may_be_new, waits=waits):
        yield registry


def _validate_chroot(session: Session) -> None:
    """Validate that the chroot exists: with a misspelled one the cluster would look empty."""
    from broker.zk.paths import parse_connect_string

    address = parse_connect_string(session.connect)
    if address.chroot and session.exists("/") is None:
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"ZooKeeper at {address.servers} has no node '{address.chroot}', so no cluster",
            "a cluster's first broker makes it; check how the chroot is spelled",
            f"try: pylogctl zk tree / --zookeeper {address.servers}",
            code="CHROOT_NOT_FOUND",
        )


def with_addresses(env: Environment, config: ProducerConfig | ConsumerConfig) -> Environment:
    """Return the environment with the addresses of `-X` if no option names brokers or ZooKeeper."""
    settings = env.settings
    if not settings.brokers and settings.zookeeper is None:
        settings = settings._replace(
            brokers=tuple(filter(None, config.broker_list.split(","))),
            zookeeper=config.zookeeper or None,
        )
    return env.changed(settings=settings)


def connector(
    env: Environment,
    *,
    timeout_s: float = REQUEST_TIMEOUT_S,
    connect_timeout_s: float | None = None,
    send_bytes: int = 0,
    receive_bytes: int = 0,
) -> Connect:
    """Return a function that opens connections to brokers.

    `--timeout` limits connecting and each response; without it, `timeout_s` limits a response.
    Brokers that say nothing at all take that time together, unless `connect_timeout_s` is given.
    `connect_timeout_s` limits connecting, also to a broker that refuses connections as it is
    starting; a larger `--timeout` does not extend it. None: a refusal is final. `send_bytes` and
    `receive_bytes` are SO_SNDBUF and SO_RCVBUF, 0 for the system's default.
    """
    connect_s = CONNECT_TIMEOUT_S if connect_timeout_s is None else connect_timeout_s
    # of a stream each connection may be lost and made again
    silence = None
    if connect_timeout_s is None:
        silence = Silence(min(env.timeout_s(timeout_s), REQUEST_TIMEOUT_S), env.clock)
    options = {
        "security": security_of(env),
        "timeout_s": env.timeout_s(timeout_s),
        "connect_timeout_s": min(env.timeout_s(connect_s), connect_s),
        "send_bytes": send_bytes,
        "receive_bytes": receive_bytes,
        "retries_refused": connect_timeout_s is not None,
    }

    def connect(address: BrokerAddress) -> Connection:
        from pylogctl.cli.tracing import AnnouncedConnection, TracedConnection

        is_traced = env.settings.verbosity >= environment.TRACE_VERBOSITY
        kind = TracedConnection if is_traced else AnnouncedConnection
        return kind(env, address, silence, **options)

    return connect


def stream_connector(env: Environment) -> Connect:
    """Return a function that opens connections for long work, which survives a broker's restart."""
    return connector(env, timeout_s=STREAM_TIMEOUT_S, connect_timeout_s=CONNECT_TIMEOUT_S)


def registry_side(
    env: Environment, registry: Registry, timeout_s: float = REQUEST_TIMEOUT_S
) -> Side:
    """Return the cluster of a registry; `--timeout` replaces the limit of a change."""
    from broker.client.registry_cluster import RegistryCluster
    from broker.client.side import Side

    return Side(RegistryCluster(registry), connector(env), env.timeout_s(timeout_s))


@contextmanager
def open_for_requests(env: Environment, *, absence: Absence = Absence.PARTIAL) -> Iterator[Side]:
    """Open a cluster as `open_cluster` does, to look at it or change it by single requests."""
    from broker.client.side import Side

    with open_cluster(env, absence=absence) as cluster:
        yield Side(cluster, connector(env), env.timeout_s(REQUEST_TIMEOUT_S))


def cluster_name(env: Environment) -> str:
    """Return the addresses of a cluster, for messages."""
    return ",".join(env.settings.brokers) or env.zookeeper


@contextmanager
def open_side(
    env: Environment, *, absence: Absence = Absence.PARTIAL, is_stream: bool = False
) -> Iterator[Side]:
    """Open a cluster as `open_cluster` does, for requests or for a stream of messages."""
    from broker.client.side import Side

    connect = stream_connector(env) if is_stream else connector(env)
    with open_cluster(env, connect, absence=absence) as cluster:
        yield Side(cluster, connect, env.timeout_s(REQUEST_TIMEOUT_S))
