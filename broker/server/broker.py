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
from broker.log.data_directory import SCHEMAS_NAME
from broker.log.manager import LogManager
from broker.log.recovery import Recovery
from broker.protocol.extension_requests import ALL_PARTS, StatusParts
from broker.protocol.responses import BrokerAddress, HelloResponse
from broker.schemas.store import FileHome, SchemaStore
from broker.schemas.values import TopicContract
from broker.security.mechanisms import PLAIN, Channel, ServerExchange, ServerMechanisms
from broker.security.principal import Principal
from broker.security.rules import NO_VERSION, RuleSet, StoredRules, parse_super_users
from broker.security.users import SCRAM, SCRAM_PLUS, Users
from broker.security.warnings import warnings_of
from broker.server.cluster import cluster_keys, cluster_view, peer_watch, replica_manager
from broker.server.cluster.cluster_membership import ClusterMembership
from broker.server.cluster.shutdown import Shutdown
from broker.server.cluster.state_change_log import StateChangeLog
from broker.server.network.connection import LingeringClient
from broker.server.network.socket_server import SocketServer, raise_open_files_limit
from broker.server.requests import admin, audit_log, control, creation_limits, judge
from broker.server.requests.broker_parts import BrokerParts
from broker.server.requests.client import ConnectedClient
from broker.server.requests.failure_delays import FailureDelays
from broker.server.requests.forwarder import Forwarder
from broker.server.requests.handlers import RequestHandlers
from broker.server.requests.pattern_filter import PatternFilter, Turns
from broker.server.requests.read_sessions import new_fetch_sessions
from broker.server.requests.schema_guard import SchemaGuard, contract_of
from broker.server.requests.topic_creations import TopicCreations
from broker.server.status import SOFTWARE, StatusReport
from broker.state_changes import ChangeKind, LoggedChange
from broker.topic import TopicPartition

if TYPE_CHECKING:
    from broker.server.cluster.followed import Overrides

logger = logging.getLogger(__name__)


class Broker(BrokerParts):
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
        self.start_config = config
        self.recoveries: list[Recovery] = []
        """What the start had to truncate from the logs, for the operator."""
        self.failure: StorageError | None = None
        """Why the broker asks for its own shutdown, if it does."""
        self.runs_zookeeper = runs_zookeeper
        self.phase = "starting"
        self._is_flushed = False
        self.clock = clock = clock or SystemClock()
        self.started_ms = clock.time_ms()
        self.changes = StateChangeLog(config.broker_id, clock)
        """The controller's decisions, and how this broker carried them out."""
        self.logs = logs = LogManager(config, clock)
        self.replica_manager = manager = replica_manager.ReplicaManager(
            config, logs, clock, self._note_states, self.changes.note
        )
        self.replicas = replicas = manager.table
        logs.retention.is_ownerless = replicas.is_unknown
        logs.on_no_directory = self._fail
        logs.on_directory_failure = self._note_directory_failure
        self._users = Users()
        self._mechanisms = _mechanisms(config, self._users)
        self.keys = cluster_keys.ClusterKeyStore(
            config,
            clock,
            epoch=lambda: replicas.broker_epoch,
            known_epoch=manager.brokers.epoch_of,
            endpoints=self.endpoints,
        )
        manager.brokers.proof_to = self.keys.proof_to
        self.judge = judge.Judge(config.broker_id)
        self.delays = FailureDelays(clock)
        self.sessions = new_fetch_sessions()
        self.server = server = SocketServer(
            config,
            clock,
            lambda name: name in logs.topics or name in replicas.topics,
            self._make_client,
        )
        self.workers, self.listers, self.logins = server.workers, server.listers, server.logins
        self.judges = Turns(1, "schema-judge")
        self.schemas = self._open_schemas()
        self.admit: Callable[[ConnectedClient], None] = server.admit
        self.view = view = cluster_view.ClusterView(config.zookeeper_connect, self.address())
        manager.brokers.on_noted.append(view.set_racks)
        manager.brokers.endpoints_of = view.endpoints_of
        self._clocks = peer_watch.Clocks(config.broker_id, manager.brokers, clock, logs.retention)
        view.on_brokers = self._note_brokers
        self.membership = ClusterMembership(logs, manager, view, self.changes, clock, self.keys)
        self.limits = limits = creation_limits.CreationLimits(config, logs, clock)
        self.control = control.ControlHandler(manager, server.errors, limits)
        self.creations = TopicCreations(
            config, logs, replicas, manager.brokers, view.snapshot, self.membership, limits
        )
        self.forwarder = Forwarder(
            replicas, manager.brokers, self.creations, clock, config.max_request_bytes
        )
        self.pattern_filter = PatternFilter(clock, max_entry_bytes=config.max_request_bytes)
        self.guard = SchemaGuard(lambda: self.schemas, clock)
        self.shutdown = Shutdown(clock, on_shutdown_request)
        self._super_users = parse_super_users(config.super_users)
        if config.enforces_rules:
            self._apply_rules(StoredRules(), NO_VERSION)
        self._status = StatusReport(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """Return the port listened on, also if the settings asked for any free one."""
        return self.server.port

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
            self.recoveries = self.logs.open()
            self.changes.open(self.logs.directories.first_path())
            if self.config.audit_log is not None:
                audit = audit_log.AuditLog(self.config.audit_log, self.config.broker_id, self.clock)
                audit.start()
                self.judge.audit = audit
            for directory in self.logs.directories.states():
                if directory.failure is not None:
                    self._note_directory_failure(directory.failure)
            self.server.listen(self.config)
            self.view.set_own_address(self.address(), self.endpoints())
            self.membership.open(self.config, self._apply_settings, self._apply_rules)
            for text in warnings_of(self.config, self._users.names()):
                logger.warning("%s", text)
            if self.config.zookeeper_connect:
                self._clocks.start()
            self.logs.start()  # retention must know the settings of topics
            self.control.controller = self.membership.register(
                self.config, self.address(), self.endpoints()
            )
            make_handlers = partial(RequestHandlers, self)
            self.server.start(self.config, make_handlers, self.logs.files.make_room)
            self.membership.start()
        except BaseException:
            self._stop_everything()
            raise
        self.phase = "running"
        for one in self.server.endpoints:
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
    ) -> ConnectedClient:
        client = ConnectedClient(
            address,
            listener=listener,
            channel=channel,
            certified=certified,
            port=port,
            mechanisms={**self._mechanisms, **self.keys.doors(listener)},
            now_s=self.clock.monotonic_s,
            may_start=self.judge.check_start,
            must_log_in=self.config.must_log_in(listener),
        )
        if certified is not None:
            with suppress(AuthenticationStateError):  # the answer to its first request says so
                self.server.admit(client)
        return client

    def _apply_settings(self, overrides: Overrides) -> None:
        """Use the settings of the start, overridden by those in ZooKeeper."""
        config = self.start_config.changed(overrides.broker)
        self._users.use(overrides.credentials, overrides.mock_secret)
        for topic in self.logs.reconfigure(config, overrides.topics):
            self.membership.note_topic(topic, is_new=False)
        self.server.reconfigure(config, overrides.users)
        self.limits.reconfigure(config)
        self.guard.reconfigure(config, overrides.topics)
        if self.membership.controller is not None:
            self.membership.controller.settings_changed()
        self.config = config  # the status shows what is in effect

    def _apply_rules(self, stored: StoredRules, version: int) -> None:
        self.judge.rules = RuleSet(stored.rules, self._super_users, version=version)

    def _open_schemas(self) -> SchemaStore:
        if not self.config.zookeeper_connect:
            # in another directory, ids would begin at 1 again
            return SchemaStore(FileHome(self.logs.directories.all[0].path / SCHEMAS_NAME))
        from broker.schemas.zookeeper_home import ZooKeeperHome  # late: kazoo

        return SchemaStore(ZooKeeperHome(lambda: self.membership.session()))

    def contract(self, topic: str) -> TopicContract:
        """Return which schemas the messages of a topic have."""
        return contract_of(self.logs.settings.of(topic))

    def _note_states(
        self, partitions: Iterable[ReplicatedPartition], gone: Iterable[TopicPartition]
    ) -> None:
        self.view.apply_partition_states(partitions, gone)
        self.replica_manager.records.note(partitions)

    def _note_brokers(self, brokers: Mapping[int, BrokerAddress]) -> None:
        self._clocks.follow(brokers)
        hosts = {one.host for id in brokers for one in self.view.endpoints_of(id)}
        self.server.broker_hosts.follow(hosts | {one.host for one in brokers.values()})

    def _note_directory_failure(self, failure: StorageError) -> None:
        self.changes.note([LoggedChange(ChangeKind.DIRECTORY_FAILED, text=str(failure))])

    def _fail(self, failure: StorageError) -> None:
        """Shut down, as no data directory is left."""
        self.failure = failure
        logger.error("the broker stops: no data directory is left")
        self.request_shutdown(force=True)

    def wait_for_shutdown_request(self, timeout_s: float | None = None) -> bool:
        """Wait until a client, or the loss of all disks, asks for the shutdown; False: none did."""
        return self.shutdown.requested.wait(timeout_s)

    def request_shutdown(self, *, force: bool) -> None:
        """Make `wait_for_shutdown_request` return, so that its caller calls `stop`.

        Args:
            force: do not wait for clients to leave; ends such a wait as well.
        """
        self.shutdown.request(force=force)

    def stop(self) -> None:
        """Shut down: deregister, let clients leave, flush, respond and close, write the marker.

        A shutdown that a client asked for waits for clients that send without acknowledgements to
        leave, unless it was forced; one by a signal does not. The client gets a report of all
        steps. Can be called on a broker that never started, or whose start failed; a second call
        does nothing.
        """
        if self.phase in ("stopping", "stopped"):
            return
        self.phase = "stopping"
        membership, shutdown = self.membership, self.shutdown
        if membership.registry is not None and not membership.has_session:
            shutdown.run("wait for ZooKeeper", membership.await_session)
        if self.replicas.all() and self.config.enable_controlled_shutdown:
            shutdown.run(
                "move leaderships",
                lambda: shutdown.move_leaderships(
                    self.replica_manager, self.config, lambda: membership.has_session
                ),
            )
        if membership.registry is not None:
            membership.registry.prepare_stop(0.0)
        if membership.controller is not None:
            shutdown.run("leave the controller's office", membership.leave_office)
        shutdown.run("deregister", membership.deregister)
        if shutdown.requested.is_set() and not shutdown.is_forced:
            shutdown.run(
                "wait for clients", lambda: shutdown.wait_for_clients(self.server.unanswered_since)
            )
        shutdown.run("refuse appends", self._refuse_appends)
        self._is_flushed = shutdown.run("flush", self.logs.flush_all)
        self._stop_everything()
        self.phase = "stopped"
        logger.info("broker %(broker)d is down", {"broker": self.config.broker_id})

    def kill(self, when_cut_off: Callable[[], object]) -> None:
        """End as after a crash: nobody is told, nothing more is responded to. For tests.

        `when_cut_off` is called once no client can get a response any more: the data directory is
        then as a crash would leave it. What is written after that, such as the marker of a clean
        end, is not part of the crash; nor is the end of the session with ZooKeeper, which comes at
        once instead of after its timeout.
        """
        if self.phase in ("stopping", "stopped"):
            return
        self.phase = "stopping"
        self.server.cut_off()
        when_cut_off()
        if self.membership.registry is not None:
            self.membership.registry.prepare_stop(0.0)
        self._stop_everything()
        self.phase = "stopped"

    def _refuse_appends(self) -> None:
        """Refuse appends and wait for those under way, so that the next flush has all of them."""
        self.shutdown.refuses_appends = True
        self.server.finish_turns()

    def _stop_everything(self) -> None:
        lingering: list[LingeringClient] = []
        self.membership.request_stop()
        self.delays.stop()
        self.shutdown.run("close connections", lambda: self._close_connections(lingering))
        self.membership.leave_office()
        self._clocks.stop()
        self.replica_manager.stop()  # ends orders that are being carried out
        self.control.stop()
        self.creations.stop()
        self.forwarder.stop()
        self.guard.stop()
        self.logs.close(self.shutdown.run)
        self.changes.close()
        if self.judge.audit is not None:
            self.judge.audit.stop()
            self.judge.audit.join()
        if self.membership.registry is not None:
            self.shutdown.run("leave the registry", self.membership.registry.stop)
        self.membership.join()
        self._clocks.join()
        for one in lingering:
            one.end()

    def _close_connections(self, lingering: list[LingeringClient]) -> None:
        lingering += self.server.stop("the broker is shutting down" if self._is_flushed else "")
        self.pattern_filter.stop()
        self.schemas.stop()
        self.judges.stop()

    def apply_retention(self) -> None:
        """Delete what is too old or too much now, instead of at the next cleanup."""
        self.logs.retention.apply()

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the addresses that clients connect to, of each listener."""
        config = self.config
        advertised = parse_advertised(config.advertised_listeners)
        found = []
        for one in self.server.endpoints:
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
        self.server.reload_certificates()

    def hello(self) -> HelloResponse:
        """Return who this broker is; its cluster has the name of its registry."""
        return HelloResponse(
            broker_id=self.config.broker_id,
            cluster_id=self.config.zookeeper_connect,
            software=SOFTWARE,
            max_message_bytes=self.config.max_message_bytes,
            max_request_bytes=self.config.max_request_bytes,
            versions=admin.supported_versions(),
            time_ms=self.clock.time_ms(),
        )

    def status(self, parts: StatusParts = ALL_PARTS, topic: str = "") -> dict[str, Any]:
        """Return the state and counters as a document; of one topic only, if it is named."""
        return self._status.document(parts, topic)

    def exposition(self, *, with_partitions: bool = True) -> str:
        """Return the metrics in Prometheus' text format, of each partition only if wanted."""
        return self._status.exposition(with_partitions=with_partitions)


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


def _mechanisms(config: BrokerConfig, users: Users) -> ServerMechanisms:
    """Return how users log in; not at all without ZooKeeper, which has the users."""
    if not (config.zookeeper_connect and config.sasl_mechanisms):
        return {}
    from broker.security.scram import serve_scram  # late: scramp takes 50 ms

    def serve(name: str, channel: Channel) -> ServerExchange:
        return serve_scram(users, channel, name)

    return {name: partial(serve, name) for name in (SCRAM, SCRAM_PLUS)}
