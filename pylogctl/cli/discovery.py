"""Finds the broker of this machine for a command that names neither brokers nor a ZooKeeper.

`pylogctl broker start` runs without a ZooKeeper where none can run; clients then go to its port.
"""

from __future__ import annotations

import socket
from dataclasses import replace

from pylogctl.cli.context import DEFAULT_BROKER, DEFAULT_ZOOKEEPER, SharedOptions

_PROBE_S = 0.3
_ADDRESSES = frozenset(("zk.connect", "zookeeper", "broker.list"))


def with_found_broker(settings: SharedOptions) -> SharedOptions:
    """Return the options, with the broker at the default port if only that listens."""
    if not _ADDRESSES.isdisjoint(settings.properties) or _listens(DEFAULT_ZOOKEEPER):
        return settings
    return replace(settings, brokers=(DEFAULT_BROKER,)) if _listens(DEFAULT_BROKER) else settings


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    try:
        socket.create_connection((host, int(port)), _PROBE_S).close()
    except OSError:
        return False
    return True
