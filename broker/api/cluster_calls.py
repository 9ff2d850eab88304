"""The calls of a client on brokers, replicas and settings."""

from __future__ import annotations

from broker.api.access import Access


class ClusterCalls(Access):
    """The calls of a client on brokers, replicas and settings."""
