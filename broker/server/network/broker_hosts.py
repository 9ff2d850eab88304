"""The IP addresses of registered brokers, whose connections have a reserve."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address

from broker.endpoints import ip_address_of
from broker.threads import StoppableThread

logger = logging.getLogger(__name__)

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0


class BrokerHosts(StoppableThread):
    """Resolves the hosts of registered brokers, names that fail again and again, on its thread."""

    def __init__(self) -> None:
        super().__init__("broker-hosts")
        self._hosts: Collection[str] = ()
        self._has_changed = threading.Event()
        self._addresses: dict[str, set[IPv4Address | IPv6Address | None]] = {}  # by host

    def __contains__(self, address: str) -> bool:
        found = ip_address_of(address)
        return any(found in of_host for of_host in self._addresses.values())

    def follow(self, hosts: Collection[str]) -> None:
        """Use other hosts, soon."""
        self._hosts = hosts
        self._has_changed.set()
        if self.ident is None and not self._stopping.is_set():
            self.start()

    def stop(self) -> None:
        """Ask the thread to stop; a look-up that is under way may take longer."""
        super().stop()
        self._has_changed.set()

    def _loop(self) -> None:
        pause_s = None
        while not self._stopping.is_set():
            if self._has_changed.wait(pause_s):
                pause_s = None
            self._has_changed.clear()
            if self._resolve(is_first=pause_s is None):
                pause_s = None
            else:
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S) if pause_s else _FIRST_PAUSE_S

    def _resolve(self, *, is_first: bool) -> bool:
        """Look up all hosts; return whether their addresses are known."""
        found = {}
        is_known = True
        for host in self._hosts:
            if self._has_changed.is_set():
                break
            try:
                infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                is_known = False
                found[host] = self._addresses.get(host, set())
                if is_first:
                    logger.warning(
                        "cannot look up the address of broker %s, and tries again: its connections "
                        "may have no reserve: %s",
                        *(host, error),
                    )
            else:
                found[host] = {ip_address_of(str(info[4][0])) for info in infos}
        else:
            self._addresses = found
        return is_known
