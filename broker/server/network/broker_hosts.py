"""The IP addresses of registered brokers, whose connections have a reserve."""

from __future__ import annotations

import logging
import socket
from collections.abc import Collection
from concurrent.futures import Executor
from contextlib import suppress

from broker.endpoints import network_of

logger = logging.getLogger(__name__)


class BrokerHosts:
    """Resolves the hosts of registered brokers; names need an executor, as that may take long."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._networks: frozenset[str] = frozenset()

    def __contains__(self, address: str) -> bool:
        return network_of(address) in self._networks

    def follow(self, hosts: Collection[str]) -> None:
        """Use other hosts, soon."""
        with suppress(RuntimeError):  # the broker stops
            self._executor.submit(self._resolve, hosts)

    def _resolve(self, hosts: Collection[str]) -> None:
        found = set()
        for host in hosts:
            try:
                infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except OSError as error:
                logger.warning(
                    "the address of broker %s is not known, so its connections have no reserve: %s",
                    *(host, error),
                )
            else:
                found |= {network_of(str(info[4][0])) for info in infos}
        self._networks = frozenset(found)
