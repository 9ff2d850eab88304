"""The live brokers as the controller told last, connections to them, requests to the controller."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from broker import errors
from broker.client.connection import Connection
from broker.cluster_state import LiveBroker
from broker.config import BrokerConfig
from broker.endpoints import PLAIN_LISTENER, Endpoint
from broker.ids import NO_CONTROLLER
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import Reader
from broker.protocol.responses import BrokerAddress
from broker.security.client_security import ClientSecurity
from broker.security.mechanisms import ClientMechanism

_CONNECT_TIMEOUT_S = 2.0


class LiveBrokers:
    """The live brokers of the cluster of one broker; can be called from several threads.

    Another broker may have other listeners, and ask for other certificates, than this one: they are
    changed broker by broker.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self.controller_id = NO_CONTROLLER  # as far as this broker knows
        self.on_noted: list[Callable[[tuple[LiveBroker, ...]], object]] = []
        """Called with the live brokers of each push."""
        self.endpoints_of: Callable[[int], tuple[Endpoint, ...]] = lambda _id: ()
        """Returns the endpoints of a broker's registration, which pushes do not tell."""
        self.proof_to: Callable[[int, Endpoint], ClientMechanism | None] = lambda _id, _at: None
        """Returns how this broker proves itself to another one, at one of its endpoints."""
        self._listener = config.inter_broker_endpoint.listener
        # shown only to a broker that asks for it
        certificate = config.ssl_certificate
        self._security = ClientSecurity(
            security_protocol="SSL",
            tls_ca=config.ssl_ca,
            tls_cert=certificate,
            tls_key=config.ssl_key if certificate else None,
        )
        self._client_id = f"broker-{config.broker_id}"
        self._timeout_s = config.replica_socket_timeout_ms / 1000
        self._by_id: dict[int, LiveBroker] = {}
        self._is_stopped = False
        self._controller_lock = Lock()  # one request to the controller at a time
        self._controller: Connection | None = None

    def note(self, brokers: tuple[LiveBroker, ...], controller_id: int) -> None:
        """Note the live brokers and the controller, as a push tells them."""
        self._by_id = {one.id: one for one in brokers}
        for told in self.on_noted:
            told(brokers)
        self.controller_id = controller_id

    def epoch_of(self, broker_id: int) -> int | None:
        """Return the registration of a live broker, None for another."""
        broker = self._by_id.get(broker_id)
        return None if broker is None else broker.epoch

    def endpoint(self, broker: LiveBroker) -> Endpoint:
        """Return where to reach a broker, of what it is registered with.

        That is its listener of the name that is used here, else the one that it chose for brokers.
        """
        endpoints = broker.endpoints or self.endpoints_of(broker.id)
        plain = Endpoint(PLAIN_LISTENER, False, broker.host, broker.port)
        chosen = endpoints[0] if endpoints else plain
        return next((one for one in endpoints if one.listener == self._listener), chosen)

    def connect(
        self,
        broker_id: int,
        former: Connection | None = None,
        *,
        timeout_s: float | None = None,
        receive_bytes: int = 0,
    ) -> Connection | None:
        """Return a connection to a live broker as it is registered now, None for another.

        It is the former one if that is open and leads there. Without `timeout_s`, requests time out
        after `replica.socket.timeout.ms`.
        """
        broker = self._by_id.get(broker_id)
        if broker is None:
            return None
        endpoint = self.endpoint(broker)
        if former is not None:
            address = BrokerAddress(broker_id, endpoint.host, endpoint.port)
            if former.is_open and former.address == address:
                return former
            former.close()
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        return self.connect_to(broker, timeout_s=timeout_s, receive_bytes=receive_bytes)

    def connect_to(
        self,
        broker: LiveBroker,
        *,
        timeout_s: float,
        receive_bytes: int = 0,
        client_id: str | None = None,
    ) -> Connection:
        """Return a new connection to a broker of a registration, which the first request opens."""
        endpoint = self.endpoint(broker)
        return Connection(
            BrokerAddress(broker.id, endpoint.host, endpoint.port),
            timeout_s=timeout_s,
            connect_timeout_s=min(_CONNECT_TIMEOUT_S, timeout_s),
            client_id=client_id or self._client_id,
            receive_bytes=receive_bytes,
            retries_refused=False,
            security=self._security if endpoint.is_tls else None,
            mechanism=self.proof_to(broker.id, endpoint),
        )

    def ask_controller(self, request: ExtensionRequest) -> Reader:
        """Return the body of the controller's response; after a `ServerError` nothing was done."""
        with self._controller_lock:
            connection = self.connect(self.controller_id, self._controller)
            if connection is None:
                raise errors.NotControllerError("no controller is known at present")
            self._controller = connection
            if self._is_stopped:  # set later, `stop` finds the connection and interrupts it
                raise errors.ShuttingDownError("the broker is shutting down")
            try:
                return connection.call(request)
            except errors.ServerError:
                raise
            except errors.BrokerError:
                connection.close()
                raise

    def stop(self) -> None:
        """Give up the request to the controller that is under way, and refuse others."""
        self._is_stopped = True
        if (connection := self._controller) is not None:
            connection.interrupt()
        with self._controller_lock:
            if self._controller is not None:
                self._controller.close()
