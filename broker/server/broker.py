"""The start and stop of a broker; it stops in the reverse order of its start."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from broker.clock import Clock, SystemClock
from broker.cluster_state import ReplicatedPartition
from broker.config import BrokerConfig
from broker.endpoints import PLAIN_LISTENER, Endpoint, parse_advertised
from broker.errors import AuthenticationStateError, StorageError
from broker.log.manager import LogManager
from broker.log.recovery import Recovery
from broker.protocol.extension_requests import ALL_PARTS, StatusParts
from broker.protocol.responses import BrokerAddress, HelloResponse
from broker.security.mechanisms import PLAIN, Channel, ServerExchange, ServerMechanisms
from broker.security.principal import Principal
from broker.security.rules import NO_VERSION, RuleSet, StoredRules, parse_super_users
from broker.security.users import SCRAM, SCRAM_PLUS, Users
from broker.security.warnings import warnings_of
from broker.server.cluster.cluster_keys import ClusterKeyStore
from broker.server.cluster.cluster_membership import ClusterMembership
from broker.server.cluster.cluster_view import ClusterView
from broker.server.cluster.peer_watch import Clocks
from broker.server.cluster.replica_manager import ReplicaManager
from broker.server.cluster.shutdown import Shutdown
from broker.server.cluster.state_change_log import StateChangeLog
from broker.server.network.connection import LingeringClient
from broker.server.network.socket_server import SocketServer, raise_open_files_limit
from broker.server.requests.admin import supported_versions
from broker.server.requests.audit_log import AuditLog
from broker.server.requests.broker_parts import BrokerParts
from broker.server.requests.client import Client
from broker.server.requests.control import ControlHandler
from broker.server.requests.creation_limits import CreationLimits
from broker.server.requests.failure_delays import FailureDelays
from broker.server.requests.forwarder import Forwarder
from broker.server.requests.handlers import RequestHandlers
from broker.server.requests.judge import Judge
from broker.server.requests.pattern_filter import PatternFilter
from broker.server.requests.read_sessions import new_fetch_sessions
from broker.server.requests.topic_creations import TopicCreations
from broker.server.status import SOFTWARE, BrokerStatus
from broker.state_changes import ChangeKind, LoggedChange
from broker.topic import TopicPartition

if TYPE_CHECKING:
    from broker.server.cluster.followed import Overrides

logger = logging.getLogger(__name__)


class Broker:
    """One broker: its logs, its registration, and the threads that serve clients.

    A context manager: it starts when the block is entered, and stops at its end.

    Args:
        config: its settings.
        clock: for all deadlines and ages.
        runs_zookeeper: whether ZooKeeper ends with this broker's process; part of its status.
        on_shutdown_request: called where `wait_for_shutdown_request` returns, in any thread.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock | None = None,
        *,
        runs_zookeeper: bool = False,
        on_shutdown_request: Callable[[], object] = lambda: None,
    ) -> None:
        self.config = config
        """The settings in effect: those of the start, and later changes in ZooKeeper."""
        self._start_config = config
        self.recoveries: list[Recovery] = []
        """What the start had to truncate from the logs, for the operator."""
        self.failure: StorageError | None = None
        """Why the broker asks for its own shutdown, if it does."""
        self._phase = "starting"
        self._is_flushed = False
        self._clock = clock = clock or SystemClock()
        self.changes = StateChangeLog(config.broker_id, clock)
        """The controller's decisions, and how this broker carried them out."""
        self._logs = logs = LogManager(config, clock)
        self._replicas = replicas = ReplicaManager(
            config, logs, clock, self._note_states, self.changes.note
        )
        logs.retention.is_ownerless = replicas.table.is_unknown
        logs.on_no_directory = self._fail
        logs.on_directory_failure = self._note_directory_failure
        self._users = Users()
        self._logins = _logins(config, self._users)
        self._keys = ClusterKeyStore(
            config,
            clock,
            epoch=lambda: replicas.table.broker_epoch,
            known_epoch=replicas.brokers.epoch_of,
            endpoints=self.endpoints,
        )
        replicas.brokers.proof_to = self._keys.proof_to
        self._judge = Judge(config.broker_id)
        self._delays = FailureDelays(clock)
        self._fetch_sessions = new_fetch_sessions()
        self._server = SocketServer(
            config,
            clock,
            lambda name: name in logs.topics or name in replicas.table.topics,
            self._make_client,
        )
        self._view = view = ClusterView(config.zookeeper_connect, self.address())
        replicas.brokers.on_noted.append(view.set_racks)
        replicas.brokers.endpoints_of = view.endpoints_of
        self._clocks = Clocks(config.broker_id, replicas.brokers, clock, logs.retention)
        view.on_brokers = self._note_brokers
        self._membership = ClusterMembership(logs, replicas, view, self.changes, clock, self._keys)
        self._limits = limits = CreationLimits(config, logs, clock)
        self._control = ControlHandler(replicas, self._server.errors, limits)
        self._creations = TopicCreations(
            config, logs, replicas.table, replicas.brokers, view.snapshot, self._membership, limits
        )
        self._forwarder = Forwarder(
            replicas.table, replicas.brokers, self._creations, clock, config.max_request_bytes
        )
        self._pattern_filter = PatternFilter(clock, max_entry_bytes=config.max_request_bytes)
        self._shutdown = Shutdown(clock, on_shutdown_request)
        self._parts = BrokerParts(
            config=config,
            host=self,
            clock=clock,
            logs=logs,
            replicas=replicas.table,
            view=view,
            shutdown=self._shutdown,
            changes=self.changes,
            creations=self._creations,
            forwarder=self._forwarder,
            pattern_filter=self._pattern_filter,
            sessions=self._fetch_sessions,
            control=self._control,
            judge=self._judge,
            delays=self._delays,
            workers=self._server.workers,
            listers=self._server.listers,
            logins=self._server.logins,
            admit=self._server.admit,
        )
        self._super_users = parse_super_users(config.super_users)
        if config.enforces_rules:
            self._apply_rules(StoredRules(), NO_VERSION)
        self._status = BrokerStatus(
            broker=self._parts,
            replicas=replicas,
            membership=self._membership,
            server=self._server,
            limits=limits,
            start_config=config,
            runs_zookeeper=runs_zookeeper,
            started_ms=clock.time_ms(),
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """Return the port listened on, also if the settings asked for any free one."""
        return self._server.port

    def start(self) -> None:
        """Open the data directory, listen, register, and serve.

        Raises:
            LogLockedError: another broker uses the data directory, or it is of another broker or
                cluster.
            ConfigError: the data directory cannot be used, or replicas need ZooKeeper.
            AddressInUseError: the port is taken.
            RegistryUnreachableError: ZooKeeper gives no session.
            RegistryConflictError: another broker holds this id.
        """
        raise_open_files_limit()
        _import_what_threads_need(self.config)
        try:
            self.recoveries = self._logs.open()
            self.changes.open(self._logs.directories.first_path())
            if self.config.audit_log is not None:
                audit = AuditLog(self.config.audit_log, self.config.broker_id, self._clock)
                audit.start()
                self._judge.audit = audit
            for directory in self._logs.directories.states():
                if directory.failure is not None:
                    self._note_directory_failure(directory.failure)
            self._server.listen(self.config)
            self._view.set_own_address(self.address(), self.endpoints())
            self._membership.open(self.config, self._apply_settings, self._apply_rules)
            for text in warnings_of(self.config, self._users.names()):
                logger.warning("%s", text)
            if self.config.zookeeper_connect:
                self._clocks.start()
            self._logs.start()  # retention must know the settings of topics
            self._control.controller = self._membership.register(
                self.config, self.address(), self.endpoints()
            )
            make_handlers = partial(RequestHandlers, self._parts)
            self._server.start(self.config, make_handlers, self._logs.files.make_room)
            self._membership.start()
        except BaseException:
            self._stop_everything()
            raise
        self._phase = "running"
        for one in self._server.endpoints:
            logger.info(
                "broker %(broker)d serves %(address)s%(tls)s",
                {
                    "broker": self.config.broker_id,
                    "address": one.address,
                    "tls": f" by TLS ({one.listener})" if one.is_tls else "",
                },
            )

    def _make_client(
        self,
        address: str,
        *,
        listener: str,
        channel: Channel = PLAIN,
        certified: Principal | None = None,
        port: int = 0,
    ) -> Client:
        client = Client(
            address,
            listener=listener,
            channel=channel,
            certified=certified,
            port=port,
            mechanisms={**self._logins, **self._keys.doors(listener)},
            now_s=self._clock.monotonic_s,
            may_start=self._judge.check_start,
            must_log_in=self.config.must_log_in(listener),
        )
        if certified is not None:
            with suppress(AuthenticationStateError):  # the answer to its first request says so
                self._server.admit(client)
        return client

    def _apply_settings(self, overrides: Overrides) -> None:
        """Use the settings of the start, overridden by those in ZooKeeper."""
        config = self._start_config.changed(overrides.broker)
        self._users.use(overrides.credentials, overrides.mock_secret)
        for topic in self._logs.reconfigure(config, overrides.topics):
            self._membership.note_topic(topic, is_new=False)
        self._server.reconfigure(config, overrides.users)
        self._limits.reconfigure(config)
        if self._membership.controller is not None:
            self._membership.controller.settings_changed()
        self.config = self._parts.config = config  # the status shows what is in effect

    def _apply_rules(self, stored: StoredRules, version: int) -> None:
        self._judge.rules = RuleSet(stored.rules, self._super_users, version=version)

    def _note_states(
        self, partitions: Iterable[ReplicatedPartition], gone: Iterable[TopicPartition]
    ) -> None:
        self._view.apply_partition_states(partitions, gone)
        self._replicas.records.note(partitions)

    def _note_brokers(self, brokers: Mapping[int, BrokerAddress]) -> None:
        self._clocks.follow(brokers)
        hosts = {one.host for id in brokers for one in self._view.endpoints_of(id)}
        self._server.broker_hosts.follow(hosts | {one.host for one in brokers.values()})

    def _note_directory_failure(self, failure: StorageError) -> None:
        self.changes.note([LoggedChange(ChangeKind.DIRECTORY_FAILED, text=str(failure))])

    def _fail(self, failure: StorageError) -> None:
        """Shut down, as no data directory is left."""
        self.failure = failure
        logger.error("the broker stops: no data directory is left")
        self.request_shutdown(force=True)

    def wait_for_shutdown_request(self, timeout_s: float | None = None) -> bool:
        """Wait until a client, or the loss of all disks, asks for the shutdown; False: none did."""
        return self._shutdown.requested.wait(timeout_s)

    def request_shutdown(self, *, force: bool) -> None:
        """Make `wait_for_shutdown_request` return, so that its caller calls `stop`.

        Args:
            force: do not wait for clients to leave; ends such a wait as well.
        """
        self._shutdown.request(force=force)

    def stop(self) -> None:
        """Shut down: deregister, let clients leave, flush, respond and close, write the marker.

        A shutdown that a client asked for waits for clients that send without acknowledgements to
        leave, unless it was forced; one by a signal does not. The client gets a report of all
        steps. Can be called on a broker that never started, or whose start failed; a second call
        does nothing.
        """
        if self._phase in ("stopping", "stopped"):
            return
        self._phase = "stopping"
        membership, shutdown = self._membership, self._shutdown
        if membership.registry is not None and not membership.has_session:
            shutdown.run("wait for ZooKeeper", membership.await_session)
        if self._replicas.table.all() and self.config.enable_controlled_shutdown:
            shutdown.run(
                "move leaderships",
                lambda: shutdown.move_leaderships(
                    self._replicas, self.config, lambda: membership.has_session
                ),
            )
        if membership.registry is not None:
            membership.registry.prepare_stop(0.0)
        if membership.controller is not None:
            shutdown.run("leave the controller's office", membership.leave_office)
        shutdown.run("deregister", membership.deregister)
        if shutdown.requested.is_set() and not shutdown.is_forced:
            shutdown.run(
                "wait for clients", lambda: shutdown.wait_for_clients(self._server.unanswered_since)
            )
        shutdown.run("refuse appends", self._refuse_appends)
        self._is_flushed = shutdown.run("flush", self._logs.flush_all)
        self._stop_everything()
        self._phase = "stopped"
        logger.info("broker %(broker)d is down", {"broker": self.config.broker_id})

    def kill(self, when_cut_off: Callable[[], object]) -> None:
        """End as after a crash: nobody is told, nothing more is responded to. For tests.

        `when_cut_off` is called once no client can get a response any more: the data directory is
        then as a crash would leave it. What is written after that, such as the marker of a clean
        end, is not part of the crash; nor is the end of the session with ZooKeeper, which comes at
        once instead of after its timeout.
        """
        if self._phase in ("stopping", "stopped"):
            return
        self._phase = "stopping"
        self._server.cut_off()
        when_cut_off()
        if self._membership.registry is not None:
            self._membership.registry.prepare_stop(0.0)
        self._stop_everything()
        self._phase = "stopped"

    def _refuse_appends(self) -> None:
        """Refuse appends and wait for those under way, so that the next flush has all of them."""
        self._shutdown.refuses_appends = True
        self._server.finish_turns()

    def _stop_everything(self) -> None:
        lingering: list[LingeringClient] = []
        self._membership.request_stop()
        self._delays.stop()
        self._shutdown.run("close connections", lambda: self._close_connections(lingering))
        self._membership.leave_office()
        self._clocks.stop()
        self._replicas.stop()  # ends orders that are being carried out
        self._control.stop()
        self._creations.stop()
        self._forwarder.stop()
        self._logs.close(self._shutdown.run)
        self.changes.close()
        if self._judge.audit is not None:
            self._judge.audit.stop()
            self._judge.audit.join()
        if self._membership.registry is not None:
            self._shutdown.run("leave the registry", self._membership.registry.stop)
        self._membership.join()
        self._clocks.join()
        for one in lingering:
            one.end()

    def _close_connections(self, lingering: list[LingeringClient]) -> None:
        lingering += self._server.stop("the broker is shutting down" if self._is_flushed else "")
        self._pattern_filter.stop()

    def apply_retention(self) -> None:
        """Delete what is too old or too much now, instead of at the next cleanup."""
        self._logs.retention.apply()

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the addresses that clients connect to, of each listener."""
        config = self.config
        advertised = parse_advertised(config.advertised_listeners)
        found = []
        for one in self._server.endpoints:
            host, port = advertised.get(one.listener, (_advertised_host(one.host), one.port))
            if one.listener == PLAIN_LISTENER and PLAIN_LISTENER not in advertised:
                host, port = config.hostname or host, config.advertised_port or port
            found.append(one._replace(host=host, port=port))
        return tuple(found)

    def address(self, listener: str = PLAIN_LISTENER) -> BrokerAddress:
        """Return the address that clients of a listener connect to, by default those of 0.7."""
        endpoints = self.endpoints()
        found = next((one for one in endpoints if one.listener == listener), endpoints[0])
        return BrokerAddress(self.config.broker_id, found.host, found.port)

    def reload_certificates(self) -> None:
        """Use the files of certificates if they have changed."""
        self._server.reload_certificates()

    def hello(self) -> HelloResponse:
        """Return who this broker is; its cluster has the name of its registry."""
        return HelloResponse(
            broker_id=self.config.broker_id,
            cluster_id=self.config.zookeeper_connect,
            software=SOFTWARE,
            max_message_bytes=self.config.max_message_bytes,
            max_request_bytes=self.config.max_request_bytes,
            versions=supported_versions(),
            time_ms=self._clock.time_ms(),
        )

    def status(self, parts: StatusParts = ALL_PARTS, topic: str = "") -> dict[str, Any]:
        """Return the state and counters as a document; of one topic only, if it is named."""
        return self._status.document(self._phase, parts, topic)

    def exposition(self, *, with_partitions: bool = True) -> str:
        """Return the metrics in Prometheus' text format, of each partition only if wanted."""
        return self._status.exposition(self._phase, with_partitions=with_partitions)


def _import_what_threads_need(config: BrokerConfig) -> None:
    """Import modules that seldom are needed: when they are, there may be no descriptor for it."""
    names = ["cramjam"]
    if any(one.is_tls for one in config.endpoints):
        names += ["broker.server.network.tls_transport", "broker.security.client_tls"]
    for name in names:
        import_module(name)


def _advertised_host(host: str) -> str:
    """Return an address for clients if the broker listens on all addresses."""
    if host in ("", "0.0.0.0", "::"):
        return socket.gethostname()
    return host


def _logins(config: BrokerConfig, users: Users) -> ServerMechanisms:
    """Return how users log in; not at all without ZooKeeper, which has the users."""
    if not (config.zookeeper_connect and config.sasl_mechanisms):
        return {}
    from broker.security.scram import serve_scram  # late: scramp takes 50 ms

    def serve(name: str, channel: Channel) -> ServerExchange:
        return serve_scram(users, channel, name)

    return {name: partial(serve, name) for name in (SCRAM, SCRAM_PLUS)}
