"""Who sends requests on one connection."""

from __future__ import annotations

from broker.endpoints import PLAIN_LISTENER
from broker.errors import ConfigError
from broker.security.mechanisms import PLAIN, Channel, ServerMechanisms
from broker.security.principal import Principal
from broker.security.rules import host_of
from broker.server.requests.authentication import Authentication
from broker.server.requests.produce import RefusedPartitions


class Client:
    """A client as the handlers see it: where it came in, who it is, and what was refused to it."""

    def __init__(
        self,
        address: str,
        *,
        listener: str = PLAIN_LISTENER,
        channel: Channel = PLAIN,
        mechanisms: ServerMechanisms | None = None,
        certified: Principal | None = None,
    ) -> None:
        self.address = address
        self.host = _host_of(address)
        self.listener = listener  # its name
        self.authentication = Authentication(mechanisms or {}, channel, certified)
        self.refused: RefusedPartitions = {}
        self.worked_s = 0.0  # by a worker, for the request that it handled last


def _host_of(address: str) -> str:
    """Return the address as rules name it; one that is no IP address, as of a test, stays."""
    try:
        return host_of(address)
    except ConfigError:
        return address
