"""The live brokers as the controller told last, connections to them, requests to the controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

from broker import errors
from broker.client.connection import Connection
from broker.cluster_state import LiveBroker
from broker.config import BrokerConfig
from broker.ids import NO_CONTROLLER
from broker.protocol.extension_requests import ExtensionRequest
from broker.protocol.primitives import Reader
from broker.protocol.responses import BrokerAddress
from broker.security.client_security import ClientSecurity
from broker.security.mechanisms import ClientMechanism

_CONNECT_TIMEOUT_S = 2.0


def security_between(config: BrokerConfig) -> ClientSecurity | None:
    """Return how brokers secure connections to each other; None if that listener is plain.

    The certificate of the listeners is a client's here. It is not given to a broker that does not
    ask for it: each side proves itself with what both have seen.
    """
    if not config.inter_broker_endpoint.is_tls:
        return None
    is_asked_for = config.ssl_client_auth != "none"
    return ClientSecurity(
        security_protocol="SSL",
        tls_ca=config.ssl_ca,
        tls_cert=config.ssl_certificate if is_asked_for else None,
        tls_key=config.ssl_key if is_asked_for else None,
    )


class LiveBrokers:
    """The live brokers of the cluster of one broker; can be called from several threads."""

    def __init__(self, config: BrokerConfig) -> None:
        self.controller_id = NO_CONTROLLER  # as far as this broker knows
        self.on_noted: Callable[[Iterable[LiveBroker]], object] = lambda _brokers: None
        """Called with the live brokers of each push."""
        self.proof_to: Callable[[BrokerAddress], ClientMechanism | None] = lambda _address: None
        """Returns how this broker proves itself to the one at an address."""
        self._client_id = f"broker-{config.broker_id}"
        self._security = security_between(config)
        self._timeout_s = config.replica_socket_timeout_ms / 1000
        self._by_id: dict[int, LiveBroker] = {}
        self._is_stopped = False
        self._controller_lock = Lock()  # one request to the controller at a time
        self._controller: Connection | None = None

    def note(self, brokers: Iterable[LiveBroker], controller_id: int) -> None:
        """Note the live brokers and the controller, as a push tells them."""
        self._by_id = {one.id: one for one in brokers}
        self.on_noted(brokers)
        self.controller_id = controller_id

    def address_of(self, broker_id: int) -> BrokerAddress | None:
        """Return the address of a live broker, None for another."""
        broker = self._by_id.get(broker_id)
        return None if broker is None else BrokerAddress(broker.id, broker.host, broker.port)

    def epoch_of(self, broker_id: int) -> int | None:
        """Return the registration of a live broker, None for another."""
        broker = self._by_id.get(broker_id)
        return None if broker is None else broker.epoch

    def connect(
        self,
        address: BrokerAddress,
        former: Connection | None = None,
        *,
        timeout_s: float | None = None,
        receive_bytes: int = 0,
    ) -> Connection:
        """Return the former connection if it is to this address, else a new one in its place.

        Without `timeout_s`, requests time out after `replica.socket.timeout.ms`.
        """
        if former is not None:
            if former.address == address:
                return former
            former.close()
        return Connection(
            address,
            timeout_s=self._timeout_s if timeout_s is None else timeout_s,
            connect_timeout_s=_CONNECT_TIMEOUT_S,
            client_id=self._client_id,
            retries_refused=False,
            security=self._security,
            receive_bytes=receive_bytes,
            mechanism=self.proof_to(address),
        )

    def ask_controller(self, request: ExtensionRequest) -> Reader:
        """Return the body of the controller's response; after a `ServerError` nothing was done."""
        with self._controller_lock:
            address = self.address_of(self.controller_id)
            if address is None:
                raise errors.NotControllerError("no controller is known at present")
            connection = self._controller = self.connect(address, self._controller)
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
