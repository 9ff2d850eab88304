"""How a broker reaches another one: at which of its listeners, and how it proves itself there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.client.connection import Connection
from broker.config import BrokerConfig
from broker.endpoints import PLAIN_LISTENER, Endpoint
from broker.protocol.responses import BrokerAddress
from broker.security.client_security import ClientSecurity
from broker.security.mechanisms import ClientMechanism

_CONNECT_TIMEOUT_S = 2.0


class Peers:
    """Chooses endpoints of other brokers, and makes the connections to them; for any thread.

    The other one may have other listeners, and ask for other certificates, than this broker: they
    are changed broker by broker.
    """

    def __init__(self, config: BrokerConfig) -> None:
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

    def endpoint(self, host: str, port: int, endpoints: Sequence[Endpoint]) -> Endpoint:
        """Return where to reach a broker, of what it is registered with.

        That is its listener of the name that is used here, else the one that it chose for brokers.
        """
        chosen = endpoints[0] if endpoints else Endpoint(PLAIN_LISTENER, False, host, port)
        return next((one for one in endpoints if one.listener == self._listener), chosen)

    def connection(
        self,
        broker_id: int,
        endpoint: Endpoint,
        *,
        timeout_s: float,
        client_id: str,
        receive_bytes: int = 0,
    ) -> Connection:
        """Return a new connection to a broker, which the first request opens."""
        return Connection(
            BrokerAddress(broker_id, endpoint.host, endpoint.port),
            timeout_s=timeout_s,
            connect_timeout_s=min(_CONNECT_TIMEOUT_S, timeout_s),
            client_id=client_id,
            receive_bytes=receive_bytes,
            retries_refused=False,
            security=self._security if endpoint.is_tls else None,
            mechanism=self.proof_to(broker_id, endpoint),
        )
