"""What the connections of a processor share, as tests want it."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.server.network.connection import NetworkParts
from broker.server.network.principal_quotas import PrincipalQuotas
from broker.server.network.quotas import ConnectionCount, PeerLog, QueuedBytes


class Left(ConnectionCount):
    """Notes who has left, of clients that never entered."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(BrokerConfig(), clock)
        self.addresses: list[str] = []

    def leave(self, address: str) -> None:
        self.addresses.append(address)


def network_parts(clock: Clock, **others: Any) -> NetworkParts:
    """Return parts with large limits; `others` replace them."""
    parts: dict[str, Any] = {
        "clock": clock,
        "peer_log": PeerLog(clock),
        "queued_bytes": QueuedBytes(1 << 20),
        "quotas": PrincipalQuotas(clock),
        "worker": Mock(),
        "max_frame_bytes": 1 << 20,
        "max_idle_s": 600.0,
        "connection_count": Left(clock),
    }
    return NetworkParts(**parts | others)
