"""The start and stop of a broker; it stops in the reverse order of its start."""

from __future__ import annotations

import json
import logging
import os
import resource
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from typing import TYPE_CHECKING, Any

from broker.clock import Clock, SystemClock
from broker.config import BrokerConfig
from broker.errors import BrokerError
from broker.log.manager import LogManager
from broker.log.recovery import Recovery
from broker.protocol import codec
from broker.protocol.responses import BrokerAddress, HelloResponse
from broker.server.acceptor import Acceptor, listen
from broker.server.admin import AdminHandler, supported_versions
from broker.server.connection import LingeringClient
from broker.server.fetch import FetchHandler
from broker.server.handlers import RequestHandlers
from broker.server.metrics import (
    ProcessorMetrics,
    socket_server_attributes,
    stats_attributes,
    topic_attributes,
)
from broker.server.pattern_filter import PatternFilter
from broker.server.processor import Processor
from broker.server.produce import ProduceHandler
from broker.server.quotas import ConnectionCount, PeerLog, QueuedBytes
from broker.server.validation import TURN_BYTES, Validator

if TYPE_CHECKING:
    from broker.zk.registry import Registry

logger = logging.getLogger(__name__)

QUIET_CLIENT_S = 1.0
"""A shutdown stops waiting for clients when none has sent a request for so long."""
MAX_CLIENT_WAIT_S = 10.0


class _ShutdownSteps:
    """The steps of one shutdown, with the result and duration of each."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._steps: list[dict[str, Any]] = []

    def run(self, name: str, action: Callable[[], str | None]) -> None:
        """Take a step; a failure is noted, and the next step follows all the same.

        Args:
            name: a few words for people.
            action: the step; returns a note for people, or None.
        """
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

    def document(self) -> bytes:
        """Return the steps so far as a JSON array."""
        return json.dumps(self._steps).encode()


class Broker:
    """One broker: its logs, its registration, and the threads that serve clients.

    Args:
        config: its settings.
        clock: for all deadlines and ages.
    """

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        self.config = config
        self.recoveries: list[Recovery] = []
        """What the start had to cut off the logs, for the operator."""
        self._clock = clock or SystemClock()
        self._logs = LogManager(config, self._clock)
        self._registry: Registry | None = None
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
        self._software = f"pylogctl {metadata.version('pylogctl')}"
        self._started_ms = self._clock.time_ms()
        self.refuses_appends = False
        """Whether the shutdown has reached the step that takes no more messages."""
        self._phase = "starting"
        self._steps = _ShutdownSteps(self._clock)
        self._shutdown_requested = threading.Event()
        self._is_forced = False

    @property
    def port(self) -> int:
        """Return the port listened on, also where the settings asked for any free one."""
        return self._port

    def start(self) -> None:
        """Open the data directory, listen, register, and serve.

        Raises:
            LogLockedError: another broker uses the data directory, or it is of another broker.
            LogCorruptError: the logs contradict themselves.
            ConfigError: the data directory cannot be used.
            AddressInUseError: the port is taken.
            RegistryUnreachableError: ZooKeeper gives no session.
            RegistryConflictError: another broker holds this id.
        """
        _raise_open_files_limit()
        try:
            self.recoveries = self._logs.open()
            self._listener = listen(
                self.config.host, self.config.port, receive_bytes=self.config.socket_receive_bytes
            )
            self._port = self._listener.getsockname()[1]
            self._logs.start()
            self._register()
            self._start_threads(self._listener)
        except BaseException:
            self._stop_everything()
            raise
        self._phase = "running"
        logger.info("broker %d serves %s:%d", self.config.broker_id, self.config.host, self._port)

    def _register(self) -> None:
        if not self.config.zookeeper_connect:
            return
        from broker.zk.registry import Registry  # late: kazoo, which a broker may do without

        self._registry = Registry(
            self.config.zookeeper_connect, session_timeout_ms=self.config.zk_session_timeout_ms
        )
        self._registry.start(timeout_s=self.config.zk_connection_timeout_ms / 1000)
        address = self.address()
        self._registry.register_broker(
            address.id, address.host, address.port, creator=self._logs.creator_token(address.host)
        )
        for topic in self._logs.topics():
            self._register_topic(topic)
        self._logs.on_new_topic = self._register_topic
        self._logs.on_deleted_topic = self._registry.deregister_topic
        self._registry.await_registered(self.config.zk_connection_timeout_ms / 1000)

    def _register_topic(self, topic: str) -> None:
        assert self._registry is not None
        self._registry.register_topic(topic, self._logs.partition_count(topic))

    def _start_threads(self, listener: socket.socket) -> None:
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
                self._handlers(processor, processor.metrics, TURN_BYTES),
                self._handlers(processor, self._offload_metrics, None),
            )
        self._acceptor = Acceptor(
            listener,
            self._processors,
            count=self._connection_count,
            peer_log=peer_log,
            send_bytes=self.config.socket_send_bytes,
        )
        self._acceptor.start()

    def _make_metrics(self) -> ProcessorMetrics:
        return ProcessorMetrics(self._clock, self.config.monitoring_period_ms / 1000)

    def _handlers(
        self, processor: Processor, metrics: ProcessorMetrics, turn_bytes: int | None
    ) -> RequestHandlers:
        """Return the handlers of one thread, with its validation budget; None for no limit."""
        config = self.config
        validator = Validator(config.max_message_bytes, turn_bytes=turn_bytes)
        return RequestHandlers(
            validator,
            ProduceHandler(
                self,
                self._logs,
                validator,
                metrics,
                self._clock,
                broker_id=config.broker_id,
                max_topic_name_length=config.max_topic_name_length,
            ),
            FetchHandler(
                self._logs,
                self._pattern_filter,
                metrics,
                self._clock,
                processor.wake,
                broker_id=config.broker_id,
                max_topic_name_length=config.max_topic_name_length,
            ),
            AdminHandler(self, self._logs, self._clock, self._workers, processor.wake),
        )

    def wait_for_shutdown_request(self, timeout_s: float | None = None) -> bool:
        """Wait until a client asks for the shutdown; return whether one did."""
        return self._shutdown_requested.wait(timeout_s)

    def request_shutdown(self, *, force: bool) -> None:
        """Make `wait_for_shutdown_request` return, so that its caller calls `stop`.

        Args:
            force: do not wait for clients to leave; ends such a wait as well.
        """
        self._is_forced |= force
        self._shutdown_requested.set()

    def shutdown_report(self) -> bytes:
        """Return the steps of the shutdown so far as a JSON array."""
        return self._steps.document()

    def stop(self) -> None:
        """Shut down: deregister, let clients go, flush, write the marker, close.

        A shutdown that a client asked for waits for the other clients to leave, unless it was
        forced; one by a signal does not. The client gets a report of all steps. Can be called on
        a broker that never started, or whose start failed; a second call does nothing.
        """
        if self._phase in ("stopping", "stopped"):
            return
        self._phase = "stopping"
        self._steps.run("deregister", self._deregister)
        if self._shutdown_requested.is_set() and not self._is_forced:
            self._steps.run("wait for clients", self._wait_for_clients)
        self._steps.run("refuse appends", self._refuse_appends)
        self._steps.run("flush", self._logs.flush_all)
        self._stop_everything()
        self._phase = "stopped"
        logger.info("broker %d is down", self.config.broker_id)

    def _deregister(self) -> None:
        if self._registry is not None:
            self._registry.deregister_broker()

    def _wait_for_clients(self) -> str | None:
        give_up_s = self._clock.monotonic_s() + MAX_CLIENT_WAIT_S
        pause = threading.Event()
        while True:
            since_s = self._clock.monotonic_s() - QUIET_CLIENT_S
            active_count = sum(one.active_since(since_s) for one in self._processors)
            if not active_count:
                return None
            if self._is_forced or self._clock.monotonic_s() >= give_up_s:
                return f"{active_count} client{'s' * (active_count > 1)} still active"
            pause.wait(0.05)

    def _refuse_appends(self) -> None:
        self.refuses_appends = True

    def _stop_everything(self) -> None:
        lingering: list[LingeringClient] = []
        self._steps.run("close connections", lambda: self._close_connections(lingering))
        self._logs.close(self._steps.run)
        if self._registry is not None:
            self._steps.run("leave the registry", self._registry.stop)
        for one in lingering:
            one.end()

    def _close_connections(self, lingering: list[LingeringClient]) -> None:
        if self._acceptor is not None:
            self._acceptor.stop()
        elif self._listener is not None:
            self._listener.close()
        for processor in self._processors:
            lingering += processor.stop()
        self._workers.shutdown()
        self._offload_worker.shutdown()
        self._pattern_filter.stop()

    def address(self) -> BrokerAddress:
        """Return the address that clients connect to."""
        host = self.config.hostname or _advertised_host(self.config.host)
        return BrokerAddress(self.config.broker_id, host, self._port)

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
        logs = self._logs.logs()
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
            "data": str(self.config.data_dir.absolute()),
            "topics": len(self._logs.topics()),
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
            "last_flush_ms": max((log.last_flush_ms for log in logs), default=0) or None,
            "clean_start": not self._logs.was_recovered,
            "zookeeper": self.config.zookeeper_connect or None,
            "session": self._session(),
            "metrics": self.metrics(),
        }

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

    def metrics(self) -> dict[str, dict[str, Any]]:
        """Return the attributes of 0.7's managed objects, by object name (kafka07.md section 9).

        Sizes of a log are absolute: `CurrentOffset` is its high watermark, where 0.7 shows the
        position inside the last segment.
        """
        shards = [*(processor.metrics for processor in self._processors), self._offload_metrics]
        logs = {
            f"logs.{log.partition.topic}-{log.partition.index}": {
                "Name": log.partition.name,
                "Size": log.size_bytes,
                "NumberOfSegments": log.segment_count,
                "CurrentOffset": log.high_watermark,
                "NumAppendedMessages": log.appended_message_count,
            }
            for log in self._logs.logs()
        }
        return {
            "SocketServerStats": socket_server_attributes(shards),
            **topic_attributes(shards),
            "LogFlushStats": stats_attributes(self._logs.flush_stats, "Flush", "Flushes"),
            **logs,
        }


def _advertised_host(host: str) -> str:
    """Return an address for clients where the broker listens on all addresses."""
    if host in ("", "0.0.0.0", "::"):
        return socket.gethostname()
    return host


def _raise_open_files_limit() -> None:
    """Raise the limit on open files to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:  # macOS caps it below an "unlimited" hard limit
            logger.debug("the limit on open files stays at %d: %s", soft, error)
