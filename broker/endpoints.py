"""Endpoints: the addresses that a broker listens on, or is reached at, each with a name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from broker.errors import ConfigError

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

PLAIN_LISTENER = "PLAIN"
"""The name of the listener of `host` and `port`, which 0.7's clients know."""
_NAME = r"[A-Za-z0-9_.-]{1,64}"
_ADDRESS = r"(?:\[([^\[\]\s]*)\]|([^\[\]:/\s]*)):([0-9]{1,5})"
_ENDPOINT = re.compile(rf"({_NAME})=(plain|tls)://{_ADDRESS}")
_ADVERTISED = re.compile(rf"({_NAME})={_ADDRESS}")
_MAX_PORT = 65535


def join_address(host: str, port: int) -> str:
    """Return `host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Endpoint(NamedTuple):
    """An address of a broker: `listener` is the name of what listens there."""

    listener: str
    is_tls: bool
    host: str
    port: int

    @property
    def address(self) -> str:
        """Return `host:port`, an IPv6 address in brackets."""
        return join_address(self.host, self.port)

    def __str__(self) -> str:
        return f"{self.listener}={'tls' if self.is_tls else 'plain'}://{self.address}"


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches what listens on an address or name."""
    import ipaddress  # late: most processes listen nowhere

    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:  # a name
        return host.lower() == "localhost"


def ip_address_of(address: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address; IPv4 mapped to IPv6 is IPv4. None for anything else."""
    import ipaddress  # late: as above

    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def network_of(address: str) -> str:
    """Return an IPv4 address, or the network of an IPv6 one (/64), as a client has all of that."""
    import ipaddress  # late: as above

    found = ip_address_of(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(found), 64), strict=False))
    return address if found is None else str(found)


def parse_endpoints(text: str) -> tuple[Endpoint, ...]:
    """Parse `NAME=tls://HOST:PORT[,..]`, or `plain://`; `ConfigError` names the item."""
    found = []
    for item in filter(None, map(str.strip, text.split(","))):
        match = _ENDPOINT.fullmatch(item)
        if match is None or int(match[5]) > _MAX_PORT:
            raise ConfigError(f"'{item}' is not NAME=tls://HOST:PORT or NAME=plain://HOST:PORT")
        found.append(Endpoint(match[1], match[2] == "tls", match[3] or match[4], int(match[5])))
    _check_names([one.listener for one in found])
    return tuple(found)


def parse_advertised(text: str) -> dict[str, tuple[str, int]]:
    """Parse `NAME=HOST:PORT[,..]` into host and port by name; `ConfigError` names the item."""
    found = []
    for item in filter(None, map(str.strip, text.split(","))):
        match = _ADVERTISED.fullmatch(item)
        if match is None or not (match[2] or match[3]) or not 0 < int(match[4]) <= _MAX_PORT:
            raise ConfigError(f"'{item}' is not NAME=HOST:PORT")
        found.append((match[1], (match[2] or match[3], int(match[4]))))
    _check_names([name for name, _ in found])
    return dict(found)


def _check_names(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"'{name}' is there twice")
