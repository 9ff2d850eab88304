"""The start and stop of a broker; it stops in the reverse order of its start."""

from __future__ import annotations

import base64
import ipaddress
import json
import logging
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from broker import __version__
from broker.clock import Clock, SystemClock
from broker.cluster_state import NO_CONTROLLER, ReplicatedPartition, Unmoved
from broker.config import BrokerConfig
from broker.errors import BrokerError, ConfigError, RegistryUnreachableError, StorageError
from broker.log.manager import LogManager
from broker.log.recovery import Recovery
from broker.protocol import codec
from broker.protocol.responses import BrokerAddress, HelloResponse, encode_last_response
from broker.server.acceptor import Acceptor, listen
from broker.server.admin import AdminHandler, supported_versions
from broker.server.cluster_view import ClusterMetadata, ClusterView, RegistryFeed
from broker.server.connection import LingeringClient
from broker.server.control import ControlHandler
from broker.server.fetch import FetchHandler
from broker.server.forwarder import Forwarder
from broker.server.handlers import RequestHandlers
from broker.server.metrics import (
    ProcessorMetrics,
    purgatory_attributes,
    socket_server_attributes,
    stats_attributes,
    topic_attributes,
)
from broker.server.pattern_filter import PatternFilter
from broker.server.processor import Processor
from broker.server.produce import ProduceHandler
from broker.server.quotas import ConnectionCount, PeerLog, QueuedBytes
from broker.server.replica_manager import ReplicaManager
from broker.server.replica_reads import ReplicaReadHandler
from broker.server.replication_status import replica_records, replication_metrics
from broker.server.state_change_log import StateChangeLog
from broker.server.topic_creations import TopicCreations
from broker.server.validation import TURN_BYTES, Validator
from broker.state_changes import ChangeKind, LoggedChange
from broker.topic import TopicPartition
from broker.topic_settings import TOPIC_SETTINGS, value_text

if TYPE_CHECKING:
    from broker.server.controller_thread import ControllerThread
    from broker.server.settings import Overrides, SettingsFollower
    from broker.zk.registry import Registry

logger = logging.getLogger(__name__)

QUIET_CLIENT_S = 1.0
"""A shutdown waits until no client has sent a request without a response for this long.

Such clients, 0.7's producers above all, learn only from ZooKeeper that the broker stops. All others
know from their responses, and from the end of the connection, which requests it handled.
"""
MAX_CLIENT_WAIT_S = 10.0
_REGISTRY_WAIT_S = 2.0
"""How long a shutdown waits for a lost ZooKeeper: its servers may be about to elect."""


class _ShutdownSteps:
    """The steps of one shutdown, with the result and duration of each."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._steps: list[dict[str, Any]] = []

    def run(self, name: str, action: Callable[[], str | None]) -> bool:
        """Take a step and return whether it succeeded; `action` may return a note for people."""
        started_s = self._clock.monotonic_s()
        is_done = True
        try:
            note = action()
        except BrokerError as error:
            is_done, note = False, str(error)
            logger.error("shutdown step '%s' failed: %s", name, error)
        seconds = round(self._clock.monotonic_s() - started_s, 3)
        self._steps.append({"step": name, "seconds": seconds, "done": is_done, "note": note})
        logger.info("shutdown: %s (%.3f s)", name, seconds)
        return is_done

    def document(self) -> bytes:
        """Return the steps taken by now as a JSON array."""
        return json.dumps(self._steps).encode()


class Broker:
    """One broker: its logs, its registration, and the threads that serve clients.

    Args:
        config: its settings.
        clock: for all deadlines and ages.
        runs_zookeeper: whether ZooKeeper ends with this broker's process; part of its status.
    """

    def __init__(
        self, config: BrokerConfig, clock: Clock | None = None, *, runs_zookeeper: bool = False
    ) -> None:
        self.config = config
        """The settings in effect: those of the start, and later changes in ZooKeeper."""
        self._start_config = config
        self._overrides: Overrides | None = None
        self._settings: SettingsFollower | None = None
        self._handlers_made: list[RequestHandlers] = []
        self._runs_zookeeper = runs_zookeeper
        self.recoveries: list[Recovery] = []
        """What the start had to truncate from the logs, for the operator."""
        self._clock = clock or SystemClock()
        self._logs = LogManager(config, self._clock)
        self.changes = StateChangeLog(config.broker_id, self._clock)
        """The controller's decisions, and how this broker carried them out."""
        self._replicas = ReplicaManager(
            config, self._logs, self._clock, self._note_states, self.changes.note
        )
        self._logs.retention.is_ownerless = self._replicas.is_unknown
        self._logs.on_no_directory = self._fail
        self._logs.on_directory_failure = self._note_directory_failure
        self.failure: StorageError | None = None
        """Why the broker asks for its own shutdown, if it does."""
        self._control = ControlHandler(self._replicas)
        self._creations = TopicCreations(
            config, self._logs, self._replicas, self._snapshot, self._settings_of
        )
        self._forwarder = Forwarder(
            self._replicas,
            self._creations,
            self._clock,
            config.broker_id,
            config.max_request_bytes,
        )
        self._controller: ControllerThread | None = None
        self._registry: Registry | None = None
        self._view: ClusterView | None = None
        self._feed: RegistryFeed | None = None
        self._listener: socket.socket | None = None
        self._port = config.port
        self._acceptor: Acceptor | None = None
        self._processors: list[Processor] = []
        self._connection_count = ConnectionCount(
            config.max_connections, config.max_connections_per_ip
        )
        self._queued_bytes = QueuedBytes(config.max_queued_bytes)
        self._workers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="worker")
        # one thread: it computes, so more would only take turns, and its metrics take no lock
        self._offload_worker = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="offload-worker"
        )
        self._offload_metrics = self._make_metrics()
        self._pattern_filter = PatternFilter(self._clock, max_entry_bytes=config.max_request_bytes)
        self._software = f"pylogctl {__version__}"
        self._started_ms = self._clock.time_ms()
        self.refuses_appends = False
        """Whether the shutdown has reached the step that refuses appends."""
        self._phase = "starting"
        self._steps = _ShutdownSteps(self._clock)
        self._shutdown_requested = threading.Event()
        self._is_forced = False
        self._is_flushed = False

    @property
    def port(self) -> int:
        """Return the port listened on, also if the settings asked for any free one."""
        return self._port

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
        _raise_open_files_limit()
        try:
            self.recoveries = self._logs.open()
            self.changes.open(self._logs.directories.first_path())
            for directory in self._logs.directories.states():
                if directory.failure is not None:
                    self._note_directory_failure(directory.failure)
            self._listener = listen(
                self.config.host, self.config.port, receive_bytes=self.config.socket_receive_bytes
            )
            self._port = self._listener.getsockname()[1]
            _warn_if_exposed(self._listener)
            self._view = ClusterView(self.config.zookeeper_connect, self.address())
            self._replicas.on_brokers = self._view.set_racks
            self._open_registry()
            self._logs.start()  # retention must know the settings of topics
            self._register(self._view)
            self._start_threads(self._listener, self._view)
            if self._controller is not None:
                self._controller.start()
            if self._settings is not None:
                self._settings.start()
        except BaseException:
            self._stop_everything()
            raise
        self._phase = "running"
        logger.info("broker %d serves %s:%d", self.config.broker_id, self.config.host, self._port)

    def _open_registry(self) -> None:
        """Connect to ZooKeeper, join its cluster, and apply the settings there."""
        if not self.config.zookeeper_connect:
            if (factor := self.config.default_replication_factor) > 1:
                raise ConfigError(
                    f"default.replication.factor={factor} needs zk.connect: replicas are on other "
                    "brokers of a cluster"
                )
            return
        # late: kazoo, which a broker may do without
        from broker.server.settings import SettingsFollower
        from broker.zk.registry import Registry

        self._registry = Registry(
            self.config.zookeeper_connect, session_timeout_ms=self.config.zk_session_timeout_ms
        )
        self._registry.start(timeout_s=self.config.zk_connection_timeout_ms / 1000)
        proposed_id = self._logs.directories.cluster_id() or _new_cluster_id()
        self._logs.directories.join_cluster(self._registry.join_cluster(proposed_id))
        self._settings = SettingsFollower(
            self._registry.session,
            self.config.broker_id,
            self._logs.directories.first_path(),
            self._apply_settings,
        )
        self._replicas.records.settings_of = self._settings.last_good
        self._settings.load()

    def _apply_settings(self, overrides: Overrides) -> None:
        """Use the settings of the start, overridden by those in ZooKeeper."""
        config = self._start_config.changed(overrides.broker)
        for topic in self._logs.reconfigure(config, overrides.topics):
            self._note_topic(topic, is_new=False)
        self._connection_count.set_limits(config.max_connections, config.max_connections_per_ip)
        for processor in self._processors:
            processor.set_max_idle(config.max_idle_ms / 1000)
        for handlers in self._handlers_made:
            handlers.reconfigure(config)
        if self._controller is not None:
            self._controller.settings_changed()
        self.config, self._overrides = config, overrides  # the status shows what is in effect

    def _register(self, view: ClusterView) -> None:
        self._logs.topics.on_new = self._note_topic
        self._logs.topics.on_deleted = self._note_deleted_topic
        for topic in self._logs.topics.names():
            self._show_own(view, topic)
        registry = self._registry
        if registry is None:
            return
        self._replicas.registered_epoch = lambda: registry.broker_epoch
        self._replicas.registry_id = lambda: registry.registry_id

        def note_loss_known() -> None:
            self._logs.is_loss_known = True
            registry.mark_clean()

        self._replicas.on_first_orders = note_loss_known
        address = self.address()
        registry.register_broker(
            address.id,
            address.host,
            address.port,
            creator=self._logs.directories.creator_token(f"{address.host}-{self._clock.time_ms()}"),
            rack=self.config.rack,
            is_clean=self._logs.loaded.was_clean,
            has_replicas=lambda: self._logs.table.has_replicas,
        )
        for topic in self._logs.topics.names():
            self._register_topic(registry, topic, is_new=False)
        registry.await_registered(self.config.zk_connection_timeout_ms / 1000)
        self._feed = RegistryFeed(registry, view)
        self._feed.start()
        self._join_controllers(registry, view)

    def _join_controllers(self, registry: Registry, view: ClusterView) -> None:
        """Stand for election as the controller, and accept its pushes."""
        assert self._settings is not None
        from broker.controller.context import ControllerSettings  # late: as the next one
        from broker.server.controller_requests import ControllerRequests  # late: kazoo
        from broker.server.controller_thread import (  # late: kazoo
            ControllerThread,
            LeaderBalance,
        )
        from broker.zk.controller_election import stored_epoch  # late: kazoo
        from broker.zk.replicated_topics import ReplicatedTopics  # late: kazoo

        topics = ReplicatedTopics(registry.session, self._settings.last_good)
        names = topics.topics()
        expected = topics.partitions(
            names, lambda topic: self._logs.settings.of(topic).min_insync_replicas
        )
        self._replicas.expect_topics(names, (one.partition for one in expected))
        view.apply_partition_states(expected)

        def stored_controller_epoch() -> int:
            if not self._has_session:
                raise RegistryUnreachableError("there is no session at present")
            return stored_epoch(registry.session)

        self._replicas.stored_controller_epoch = stored_controller_epoch
        config = self.config
        balance = LeaderBalance(
            config.leader_balance_interval_ms / 1000, config.max_leader_imbalance
        )
        self._controller = ControllerThread(
            registry,
            topics,
            config.broker_id,
            self._clock,
            ControllerSettings(config.min_insync_replicas, config.allows_unclean_election),
            self._note_controller,
            self.changes,
            balance=balance if config.balances_leaders else None,
            stats_period_s=config.monitoring_period_ms / 1000,
            push_timeout_s=config.controller_socket_timeout_ms / 1000,
        )
        self._control.controller = ControllerRequests(self._controller, registry, topics)

    def _note_states(
        self, partitions: Iterable[ReplicatedPartition], gone: Iterable[TopicPartition]
    ) -> None:
        assert self._view is not None
        self._view.apply_partition_states(partitions, gone)
        self._replicas.records.note(partitions)

    def _snapshot(self) -> ClusterMetadata:
        assert self._view is not None
        return self._view.snapshot()

    def _settings_of(self, topic: str) -> Mapping[str, str]:
        return {} if self._settings is None else self._settings.last_good(topic)

    def _note_directory_failure(self, failure: StorageError) -> None:
        self.changes.note(LoggedChange(ChangeKind.DIRECTORY_FAILED, text=str(failure)))

    def _note_controller(self, broker_id: int) -> None:
        assert self._view is not None
        self._view.set_controller(broker_id)
        self._replicas.controller_id = broker_id

    def _note_topic(self, topic: str, *, is_new: bool = True) -> None:
        """Tell clients of a topic that is new, or has another number of partitions."""
        assert self._view is not None
        self._show_own(self._view, topic)
        if self._registry is not None:
            self._register_topic(self._registry, topic, is_new=is_new)

    def _show_own(self, view: ClusterView, topic: str) -> None:
        topics = self._logs.topics
        count, creation_id = topics.partition_count(topic), topics.creation_id(topic)
        view.set_own_topic(topic, count, creation_id)

    def _note_deleted_topic(self, topic: str) -> None:
        assert self._view is not None
        self._view.set_own_topic(topic, 0)
        if self._registry is not None:
            self._registry.deregister_topic(topic)

    def _register_topic(self, registry: Registry, topic: str, *, is_new: bool) -> None:
        registry.register_topic(
            topic,
            self._logs.topics.partition_count(topic),
            creation_id=self._logs.topics.creation_id(topic),
            is_new=is_new,
        )

    def _start_threads(self, listener: socket.socket, view: ClusterView) -> None:
        peer_log = PeerLog(self._clock)
        for number in range(self.config.num_threads):
            processor = Processor(
                f"processor-{number}",
                clock=self._clock,
                metrics=self._make_metrics(),
                peer_log=peer_log,
                queued_bytes=self._queued_bytes,
                worker=self._offload_worker,
                max_frame_bytes=self.config.max_request_bytes,
                max_idle_s=self.config.max_idle_ms / 1000,
                on_close=self._connection_count.leave,
            )
            self._processors.append(processor)
            processor.start(
                self._handlers(processor, view, processor.metrics, TURN_BYTES),
                self._handlers(processor, view, self._offload_metrics, None),
            )
        self._acceptor = Acceptor(
            listener,
            self._processors,
            count=self._connection_count,
            peer_log=peer_log,
            send_bytes=self.config.socket_send_bytes,
            make_room=self._logs.files.make_room,
        )
        self._acceptor.start()

    def _make_metrics(self) -> ProcessorMetrics:
        return ProcessorMetrics(self._clock, self.config.monitoring_period_ms / 1000)

    def _handlers(
        self,
        processor: Processor,
        view: ClusterView,
        metrics: ProcessorMetrics,
        turn_bytes: int | None,
    ) -> RequestHandlers:
        """Return the handlers of one thread, with its validation budget; None for no limit."""
        config = self.config
        validator = Validator(config.max_message_bytes, turn_bytes=turn_bytes)
        handlers = RequestHandlers(
            validator,
            ProduceHandler(
                self,
                self._logs,
                self._replicas,
                self._forwarder,
                self._creations,
                validator,
                metrics,
                self._clock,
                broker_id=config.broker_id,
                max_topic_name_length=config.max_topic_name_length,
            ),
            FetchHandler(
                self._logs,
                self._replicas,
                self._forwarder,
                self._pattern_filter,
                metrics,
                self._clock,
                processor.wake,
                broker_id=config.broker_id,
                max_topic_name_length=config.max_topic_name_length,
                max_wait_ms=config.max_fetch_wait_ms,
                max_positions=config.max_fetch_positions,
            ),
            ReplicaReadHandler(self._replicas, metrics, self._clock, config.max_fetch_wait_ms),
            self._control,
            AdminHandler(self, self._logs, self._replicas, view, self._clock, self._workers),
        )
        self._handlers_made.append(handlers)
        return handlers

    def _fail(self, failure: StorageError) -> None:
        """Shut down, as no data directory is left."""
        self.failure = failure
        logger.error("the broker stops: no data directory is left")
        self.request_shutdown(force=True)

    def wait_for_shutdown_request(self, timeout_s: float | None = None) -> bool:
        """Wait until a client, or the loss of all disks, asks for the shutdown; False: none did."""
        return self._shutdown_requested.wait(timeout_s)

    def request_shutdown(self, *, force: bool) -> None:
        """Make `wait_for_shutdown_request` return, so that its caller calls `stop`.

        Args:
            force: do not wait for clients to leave; ends such a wait as well.
        """
        self._is_forced |= force
        self._shutdown_requested.set()

    def shutdown_report(self) -> bytes:
        """Return the steps of the shutdown taken by now as a JSON array."""
        return self._steps.document()

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
        if self._registry is not None and not self._has_session:
            self._steps.run("wait for ZooKeeper", self._await_session)
        if self._replicas.is_hosting and self.config.enable_controlled_shutdown:
            self._steps.run("move leaderships", self._move_leaderships)
        if self._registry is not None:
            self._registry.prepare_stop(0.0)
        if self._controller is not None:
            self._steps.run("leave the controller's office", self._leave_office)
        self._steps.run("deregister", self._deregister)
        if self._shutdown_requested.is_set() and not self._is_forced:
            self._steps.run("wait for clients", self._wait_for_clients)
        self._steps.run("refuse appends", self._refuse_appends)
        self._is_flushed = self._steps.run("flush", self._logs.flush_all)
        self._stop_everything()
        self._phase = "stopped"
        logger.info("broker %d is down", self.config.broker_id)

    def _await_session(self) -> str | None:
        assert self._registry is not None
        is_connected = self._registry.prepare_stop(_REGISTRY_WAIT_S)
        return None if is_connected else "it is away"

    def _move_leaderships(self) -> str | None:
        """Have other brokers lead this one's partitions, and leave the in-sync replicas."""
        if not self._has_session:
            raise RegistryUnreachableError(
                "no connection to ZooKeeper: no other broker can be made the leader"
            )
        config = self.config
        moved: dict[TopicPartition, int] = {}
        left_count = 0
        pause = threading.Event()
        for tries_left in range(config.controlled_shutdown_retries, -1, -1):
            may_retry = tries_left and not self._is_forced
            asked = self._replicas.controller_id
            try:
                progress = self._replicas.ask_to_leave()
            except BrokerError as error:
                if not may_retry or not self._has_session:
                    raise
                logger.warning("the controller is asked again to move leaderships: %s", error)
            else:
                moved.update((one.partition, one.state.leader) for one in progress.moved)
                left_count += len(progress.left)
                unmoved = progress.unmoved
                # try again if another live broker could lead: its replica may soon catch up
                could_move = any(self._replicas.could_move(one.partition) for one in unmoved)
                if not could_move or not may_retry:
                    return _describe_progress(moved, left_count, unmoved)
            give_up_s = self._clock.monotonic_s() + config.controlled_shutdown_backoff_ms / 1000
            while self._clock.monotonic_s() < give_up_s and not self._is_forced:
                pause.wait(0.05)
                if self._replicas.controller_id not in (asked, NO_CONTROLLER):
                    break  # another controller was elected
        return None

    @property
    def _has_session(self) -> bool:
        return self._registry is not None and self._registry.session.state == "connected"

    def _leave_office(self) -> None:
        if self._controller is not None:
            self._controller.request_stop()
            self._controller.join()

    def _deregister(self) -> None:
        if self._registry is not None:
            self._registry.deregister_broker()

    def _wait_for_clients(self) -> str | None:
        give_up_s = self._clock.monotonic_s() + MAX_CLIENT_WAIT_S
        pause = threading.Event()
        while True:
            since_s = self._clock.monotonic_s() - QUIET_CLIENT_S
            count = sum(one.unanswered_since(since_s) for one in self._processors)
            if not count:
                return None
            if self._is_forced or self._clock.monotonic_s() >= give_up_s:
                who = "1 client still sends" if count == 1 else f"{count} clients still send"
                return f"{who} without acknowledgements"
            pause.wait(0.05)

    def _refuse_appends(self) -> None:
        """Refuse appends and wait for those under way, so that the next flush has all of them."""
        self.refuses_appends = True
        for processor in self._processors:
            processor.finish_turn()
        if self._processors:
            self._offload_worker.submit(_do_nothing).result()

    def _stop_everything(self) -> None:
        lingering: list[LingeringClient] = []
        if self._settings is not None:
            self._settings.stop()
        if self._view is not None:
            self._view.close()
        if self._feed is not None:
            self._feed.request_stop()
        self._steps.run("close connections", lambda: self._close_connections(lingering))
        self._leave_office()
        self._replicas.stop()  # ends orders that are being carried out
        self._control.stop()
        self._creations.stop()
        self._forwarder.stop()
        self._logs.close(self._steps.run)
        self.changes.close()
        if self._registry is not None:
            self._steps.run("leave the registry", self._registry.stop)
        if self._settings is not None:
            self._settings.join()
        if self._feed is not None:
            self._feed.join()
        for one in lingering:
            one.end()

    def _close_connections(self, lingering: list[LingeringClient]) -> None:
        if self._acceptor is not None:
            self._acceptor.stop()
        elif self._listener is not None:
            self._listener.close()
        last = encode_last_response("the broker is shutting down") if self._is_flushed else None
        for processor in self._processors:
            processor.begin_stop(last)
        for processor in self._processors:
            lingering += processor.stop()
        self._workers.shutdown()
        self._offload_worker.shutdown()
        self._pattern_filter.stop()

    def address(self) -> BrokerAddress:
        """Return the address that clients connect to."""
        host = self.config.hostname or _advertised_host(self.config.host)
        return BrokerAddress(self.config.broker_id, host, self.config.advertised_port or self._port)

    def hello(self) -> HelloResponse:
        """Return who this broker is; its cluster has the name of its registry."""
        return HelloResponse(
            broker_id=self.config.broker_id,
            cluster_id=self.config.zookeeper_connect,
            software=self._software,
            max_message_bytes=self.config.max_message_bytes,
            max_request_bytes=self.config.max_request_bytes,
            versions=supported_versions(),
        )

    def status(self) -> dict[str, Any]:
        """Return the state and counters as a document."""
        logs = self._logs.table.all()
        address = self.address()
        return {
            "broker": address.id,
            "host": address.host,
            "port": address.port,
            "pid": os.getpid(),
            "software": self._software,
            "codec": codec.describe(),
            "phase": self._phase,
            "started_ms": self._started_ms,
            "uptime_ms": self._clock.time_ms() - self._started_ms,
            "data": str(self._logs.directories.first_path().absolute()),
            "directories": self._directories(),
            "topics": len(self._logs.topics.names()),
            "partitions": len(logs),
            "bytes": sum(log.size_bytes for log in logs),
            "connections": self._connection_count.total,
            "queued_bytes": self._queued_bytes.taken,
            "waiting_for_queued_bytes": self._queued_bytes.waiting_count,
            "flush": {
                "before_read": self.config.flush_before_read,
                "interval_messages": self.config.flush_interval_messages,
                "interval_ms": self.config.flush_interval_ms,
                "topic_intervals_ms": dict(self.config.topic_flush_interval_ms),
            },
            "settings": self._settings_in_effect(),
            "start_settings": {
                prop.name: self._start_config.value_text(prop)
                for prop in self._start_config.shown_properties()
            },
            "topic_settings": self._topic_settings(),
            "settings_problems": {} if self._settings is None else dict(self._settings.problems),
            "failures": self._failures(),
            "retention_waits": self._logs.retention.waits,
            "last_flush_ms": max((log.last_flush_ms for log in logs), default=0) or None,
            "clean_start": not self._logs.loaded.was_recovered,
            "zookeeper": self.config.zookeeper_connect or None,
            "runs_zookeeper": self._runs_zookeeper,
            "session": self._session(),
            "replicas": self._replica_records(),
            "metrics": self.metrics(),
        }

    def _settings_in_effect(self) -> dict[str, dict[str, str]]:
        """Return value and origin of the settings by name."""
        config = self.config
        overrides = {} if self._overrides is None else self._overrides.broker
        changed = {config.property_of(name).field for name in overrides}
        defaults = BrokerConfig()
        found = {}
        for prop in config.shown_properties():
            # `start`: from the properties file or an option; `broker`: from ZooKeeper
            origin = "broker" if prop.field in changed else "start"
            if origin == "start" and getattr(config, prop.field) == getattr(defaults, prop.field):
                origin = "default"
            found[prop.name] = {"value": config.value_text(prop), "origin": origin}
        return found

    def _topic_settings(self) -> dict[str, dict[str, str]]:
        if self._overrides is None:
            return {}
        return {
            topic: {
                one.property.name: value_text(value, one)
                for one in TOPIC_SETTINGS
                if (value := overrides.get(one.property.field)) is not None
            }
            for topic, overrides in self._overrides.topics.items()
        }

    def _directories(self) -> list[dict[str, Any]]:
        return [
            {
                "path": str(one.path),
                "partitions": one.log_count,
                "free_bytes": one.free_bytes,
                "error": None if one.failure is None else str(one.failure),
            }
            for one in self._logs.directories.states()
        ]

    def _failures(self) -> list[dict[str, str]]:
        found = [(one, error, "offline") for one, error in self._logs.table.errors().items()]
        for log in self._logs.table.all():
            found += [(log.partition, error, error.state) for error in log.failures()]
        return [
            {
                "topic": partition.topic,
                "partition": partition.name,
                "state": state,
                "error": str(error),
            }
            for partition, error, state in found
        ]

    def _session(self) -> dict[str, Any] | None:
        if self._registry is None:
            return None
        status = self._registry.status
        return {
            "state": status.state,
            "id": status.session_id,
            "is_registered": status.is_registered,
            "error": status.error,
        }

    def _replica_records(self) -> list[dict[str, Any]]:
        return replica_records(self._replicas.all(), self._clock.monotonic_s())

    def _state_number(self) -> int:
        """Return the phase as a number of Kafka 0.8's broker states."""
        if self._phase == "running" and self._controller is not None:
            return _RUNNING_AS_CONTROLLER if self._controller.controller else _RUNNING
        return {"starting": 1, "running": _RUNNING, "stopping": 6}.get(self._phase, 0)

    def _name_of(self, partition: TopicPartition) -> str:
        """Return the name of a log in metrics: 0.7's, if this broker is its home."""
        if partition.home == self.config.broker_id:
            return f"{partition.topic}-{partition.index}"
        return str(partition)  # `t[2-0]`, as `t-2-0` would be partition 0 of a topic `t-2`

    def metrics(self) -> dict[str, dict[str, Any]]:
        """Return the attributes of 0.7's managed objects, by object name (the MBeans of Kafka 0.7).

        Sizes of a log are absolute: `CurrentOffset` is its high watermark, where 0.7 shows the
        position inside the last segment.
        """
        shards = [*(processor.metrics for processor in self._processors), self._offload_metrics]
        logs = {
            f"logs.{self._name_of(log.partition)}": {
                "Name": log.partition.name,
                "Size": log.size_bytes,
                "NumberOfSegments": len(log.segments.all),
                "CurrentOffset": log.high_watermark,
                "LogStartOffset": log.log_start_offset,
                "LogEndOffset": log.log_end_offset,
                "NumAppendedMessages": log.appended_message_count,
            }
            for log in self._logs.table.all()
        }
        offline_count = sum(one.failure is not None for one in self._logs.directories.states())
        registry = self._registry
        return {
            "SocketServerStats": {
                **socket_server_attributes(shards),
                "ConnectionsWithHeldRequests": sum(one.held_count for one in self._processors),
                "ConnectionsWithUnsentResponses": sum(one.unsent_count for one in self._processors),
            },
            "KafkaServer": {
                "BrokerState": self._state_number(),
                "CpuSeconds": time.process_time(),
            },
            "Purgatory": purgatory_attributes(
                [delayed for one in self._processors for delayed in one.waiting],
                [one.delay_counts for one in self._processors],
                sum(one.deadline_count for one in self._processors),
            ),
            "ZooKeeper": {
                "SessionState": None if registry is None else registry.status.state,
                "SessionExpirations": 0 if registry is None else registry.expiration_count,
            },
            "LogManager": {
                "OfflineLogDirectoryCount": offline_count,
                "RecoveryMs": round(1000 * self._logs.loaded.recovery_s),
            },
            **topic_attributes(shards),
            **replication_metrics(
                self._replica_records(),
                self._controller,
                self._replicas,
                sum(shard.fenced_fetch_count for shard in shards),
            ),
            "LogFlushStats": stats_attributes(self._logs.flush_stats, "Flush", "Flushes"),
            **logs,
        }


_SHOWN_PARTITIONS = 100
_RUNNING, _RUNNING_AS_CONTROLLER = 3, 4


def _describe_progress(
    moved: Mapping[TopicPartition, int], left_count: int, unmoved: Sequence[Unmoved]
) -> str:
    """Return the outcome of a controlled shutdown, partition by partition, for people."""
    parts = [f"{one}: led by broker {leader}" for one, leader in sorted(moved.items())]
    shown = parts[:_SHOWN_PARTITIONS]
    if len(parts) > len(shown):
        shown.append(f"{len(parts) - len(shown)} more led by others")
    if left_count:
        shown.append(f"{left_count} partitions led by others go on without this broker")
    shown += [f"{one}: still led here, {reason}" for one, reason in unmoved[:_SHOWN_PARTITIONS]]
    if len(unmoved) > _SHOWN_PARTITIONS:
        shown.append(f"{len(unmoved) - _SHOWN_PARTITIONS} more still led here")
    return "; ".join(shown) or "nothing to move"


def _do_nothing() -> None:
    """Do nothing; when a worker's only thread has done it, all work submitted before is done."""


def _advertised_host(host: str) -> str:
    """Return an address for clients if the broker listens on all addresses."""
    if host in ("", "0.0.0.0", "::"):
        return socket.gethostname()
    return host


def _new_cluster_id() -> str:
    """Return an id for a cluster that has none, in the form of later Kafka."""
    return base64.urlsafe_b64encode(os.urandom(16)).rstrip(b"=").decode()


def _warn_if_exposed(listener: socket.socket) -> None:
    """Warn of a listener that other machines may reach: every client may do everything."""
    host, port = listener.getsockname()[:2]
    if not ipaddress.ip_address(host.partition("%")[0]).is_loopback:
        logger.warning(
            "listening on %s:%d without authentication: all who reach this port can read, write "
            "and delete every topic and stop the broker; let only trusted networks reach it, or "
            "listen on 127.0.0.1 (property host)",
            *(host, port),
        )


def _raise_open_files_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:  # macOS caps it below an "unlimited" hard limit
            logger.debug("the limit on open files stays at %d: %s", soft, error)
