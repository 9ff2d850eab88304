"""The threads that serve clients: the acceptor, the processors, and the workers behind them."""

from __future__ import annotations

import logging
import resource
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.endpoints import is_loopback
from broker.errors import AuthenticationStateError
from broker.security.quotas import Quotas
from broker.server.network.acceptor import Acceptor, listen
from broker.server.network.broker_hosts import BrokerHosts
from broker.server.network.connection import (
    LingeringClient,
    Listener,
    NetworkParts,
    ServerConnection,
)
from broker.server.network.principal_quotas import PrincipalQuotas
from broker.server.network.processor import Processor
from broker.server.network.quotas import ConnectionCount, PeerLog, QueuedBytes
from broker.server.requests.client import ConnectedClient
from broker.server.requests.metrics import ProcessorMetrics, RequestErrors
from broker.server.requests.outcomes import Handlers
from broker.server.requests.purgatory import DelayedResponse
from broker.server.requests.validation import TURN_BYTES

if TYPE_CHECKING:
    from broker.security.tls import ServerTls

logger = logging.getLogger(__name__)

MakeHandlers = Callable[[ProcessorMetrics, int | None, Callable[[DelayedResponse], None]], Handlers]
"""Makes the handlers of one thread: its metrics, its validation budget, None for no limit, and how
a delayed response is attempted again."""


class SocketServer:
    """Listens, and serves connections in its processors."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        is_topic: Callable[[str], bool],
        make_client: Callable[..., ConnectedClient],
    ) -> None:
        self._is_topic = is_topic
        self._metrics_period_s = config.monitoring_period_ms / 1000
        self.endpoints = config.endpoints
        """What it listens on; once it does, with the real ports."""
        self.processors: list[Processor] = []
        self.network = NetworkParts(
            clock=clock,
            peer_log=PeerLog(clock),
            queued_bytes=QueuedBytes(config.max_queued_bytes),
            quotas=PrincipalQuotas(clock),
            # one thread: it computes, so more would only take turns, and its metrics take no lock
            worker=ThreadPoolExecutor(max_workers=1, thread_name_prefix="offload-worker"),
            max_frame_bytes=config.max_request_bytes,
            max_idle_s=config.max_idle_ms / 1000,
            connection_count=ConnectionCount(config, clock),
            make_client=make_client,
        )
        self.network.quotas.set(_default_quotas(config), {})
        self.workers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="worker")
        self.broker_hosts = BrokerHosts()
        self.listers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lister")
        # of their own: many logins must not hold up who administers, nor the reverse
        self.logins = ThreadPoolExecutor(max_workers=2, thread_name_prefix="login")
        self.errors = RequestErrors()
        self._offload_metrics = self._make_metrics()
        self._handlers: list[Handlers] = []
        self.tls: ServerTls | None = None
        """The certificate of the TLS listeners, if there are any."""
        self._listeners: dict[socket.socket, Listener] = {}
        self._acceptor: Acceptor | None = None

    def _make_metrics(self) -> ProcessorMetrics:
        made = ProcessorMetrics(self.network.clock, self._metrics_period_s, self.errors)
        made.is_topic = self._is_topic
        return made

    @property
    def metrics(self) -> list[ProcessorMetrics]:
        """The counters of each thread."""
        return [*(one.metrics for one in self.processors), self._offload_metrics]

    def listen(self, config: BrokerConfig) -> None:
        """Take the ports; connections wait until `start`."""
        if any(one.is_tls for one in config.endpoints):
            from broker.security.tls import ServerTls  # late: ssl, which a plain broker needs not

            self.tls = ServerTls(config)
        found = []
        reserved = _listeners_with_reserve(config)
        for one in config.endpoints:
            sock = listen(one.host, one.port, receive_bytes=config.socket_receive_bytes)
            self._listeners[sock] = Listener(
                one.listener, self.tls if one.is_tls else None, one.listener in reserved
            )
            found.append(one._replace(port=sock.getsockname()[1]))
            if not (config.must_log_in(one.listener) or config.enforces_rules):
                _warn_if_exposed(sock)
        self.endpoints = tuple(found)

    @property
    def port(self) -> int:
        """Return the port of the first listener."""
        return self.endpoints[0].port

    def start(
        self, config: BrokerConfig, make_handlers: MakeHandlers, make_room: Callable[[], None]
    ) -> None:
        """Accept connections and serve them; `make_room` frees descriptors when they run out."""
        for number in range(config.num_threads):
            processor = Processor(f"processor-{number}", self._make_metrics(), self.network)
            self.processors.append(processor)
            own = make_handlers(processor.metrics, TURN_BYTES, processor.wake)
            offloaded = make_handlers(self._offload_metrics, None, processor.wake)
            self._handlers += (own, offloaded)
            processor.start(own, offloaded)
        self._acceptor = Acceptor(
            listeners=self._listeners,
            processors=self.processors,
            network=self.network,
            broker_hosts=self.broker_hosts,
            send_bytes=config.socket_send_bytes,
            make_room=make_room,
        )
        self._acceptor.start()

    def reconfigure(self, config: BrokerConfig, users: Mapping[str, Quotas]) -> None:
        """Use other limits from now on; `users` have quotas of their own."""
        self.network.quotas.set(_default_quotas(config), users)
        self.network.connection_count.set_limits(config)
        self.network.max_idle_s = config.max_idle_ms / 1000
        for handlers in self._handlers:
            handlers.reconfigure(config)

    def finish_turns(self) -> None:
        """Return once the requests that are being handled are."""
        for processor in self.processors:
            processor.finish_turn()
        if self.processors:
            self.network.worker.submit(_do_nothing).result()

    def reload_certificates(self) -> None:
        """Use the files of certificates if they have changed, soon."""
        if self._acceptor is not None:
            self._acceptor.reload_certificates()

    def admit(self, client: ConnectedClient) -> None:
        """Raise if a client that has proved who it is has as many connections as it may have.

        It was admitted before it proved that, so only this one ends.
        """
        who = client.authentication.identity
        limit = self.network.quotas.max_connections(who)
        others = (one.client for one in self.connections if one.client is not client)
        if limit and sum(one.authentication.identity == who for one in others) >= limit:
            reason = f"{who} has {limit} connections to this broker, as many as its quota allows"
            client.authentication.fail(reason)
            raise AuthenticationStateError(reason)

    def unanswered_since(self, since_s: float) -> int:
        """Return how many clients sent requests without a response since then."""
        return sum(one.last_unanswered_s >= since_s for one in self.connections)

    @property
    def connections(self) -> list[ServerConnection]:
        """Return the open connections; callable from any thread."""
        return [connection for one in self.processors for connection in one.connections]

    def cut_off(self) -> None:
        """Close the listener, and break all connections, without responses."""
        if self._acceptor is not None:
            self._acceptor.stop()
        self.finish_turns()  # connections that were accepted are open after it
        for connection in self.connections:
            with suppress(OSError):  # the client is gone
                connection.sock.shutdown(socket.SHUT_RDWR)

    def stop(self, reason: str) -> list[LingeringClient]:
        """Close the listener and all connections; the caller ends the returned clients.

        See `Processor.begin_stop`.
        """
        if self._acceptor is not None:
            self._acceptor.stop()
        for sock in self._listeners:
            sock.close()
        for processor in self.processors:
            processor.begin_stop(reason)
        lingering = [client for processor in self.processors for client in processor.stop()]
        self.broker_hosts.stop()
        self.workers.shutdown()
        self.listers.shutdown()
        self.logins.shutdown()
        self.network.worker.shutdown()
        return lingering


def _default_quotas(config: BrokerConfig) -> Quotas:
    return Quotas(
        config.quota_producer_bytes, config.quota_consumer_bytes, config.quota_request_percent
    )


def _listeners_with_reserve(config: BrokerConfig) -> set[str]:
    """Return the listeners for brokers or this machine, if others are there for all clients."""
    local = {one.listener for one in config.endpoints if is_loopback(one.host)}
    if len(local) == len(config.endpoints):
        local.clear()
    found = local | {config.inter_broker_listener} - {""}
    return found if len(found) < len(config.endpoints) else set()


def _do_nothing() -> None:
    """Do nothing; when a worker's only thread has done it, all work submitted before is done."""


def raise_open_files_limit() -> None:
    """Let this process have as many descriptors as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:  # macOS caps it below an "unlimited" hard limit
            logger.debug("the limit on open files stays at %d: %s", soft, error)


def _warn_if_exposed(listener: socket.socket) -> None:
    """Warn of a listener that other machines may reach: every client may do everything."""
    host, port = listener.getsockname()[:2]
    if not is_loopback(host):
        logger.warning(
            "listening on %s:%d without authentication: all who reach this port can read, write "
            "and delete every topic and stop the broker; let only trusted networks reach it, or "
            "listen on 127.0.0.1 (property host)",
            *(host, port),
        )
