"""Finds the broker of this machine for a command that names neither brokers nor a ZooKeeper.

`pylogctl broker start` runs without a ZooKeeper where none can run; clients then go to its port.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from pylogctl.cli.environment import (
    ADDRESS_PROPERTIES,
    DEFAULT_BROKER,
    DEFAULT_ZOOKEEPER,
    SharedOptions,
)

if TYPE_CHECKING:
    from broker.client.cluster import Connect

_PROBE_S = 0.3


def with_found_broker(settings: SharedOptions) -> SharedOptions:
    """Return the options, with the broker at the default port if only that listens."""
    if not ADDRESS_PROPERTIES.isdisjoint(settings.properties) or _listens(DEFAULT_ZOOKEEPER):
        return settings
    return settings._replace(brokers=(DEFAULT_BROKER,)) if _listens(DEFAULT_BROKER) else settings


def zookeeper_of_found_broker(connect: Connect) -> str | None:
    """Return the ZooKeeper of the broker at the default port, empty if it runs without one.

    None if there is no broker that tells it.
    """
    from broker.admin.brokers import request_status
    from broker.client.connection import parse_broker_list
    from broker.protocol.extension_requests import StatusParts

    if not _listens(DEFAULT_BROKER):
        return None
    (address,) = parse_broker_list(DEFAULT_BROKER)
    document = request_status(connect, address, StatusParts(0)).document
    return None if document is None else document["zookeeper"] or ""


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    try:
        socket.create_connection((host, int(port)), _PROBE_S).close()
    except OSError:
        return False
    return True
