"""The settings of a broker about who reaches it: listeners, TLS, logins, rules, proofs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from broker.endpoints import PLAIN_LISTENER, Endpoint, parse_advertised, parse_endpoints
from broker.errors import ConfigError
from broker.properties import BaseConfig, setting


@dataclass(frozen=True)
class ListenerConfig(BaseConfig):
    """Where a broker listens, and whom it serves there."""

    host: str = setting("127.0.0.1", "host", "address to listen on")
    hostname: str = setting("", "hostname", "address to advertise; empty: the one listened on")
    port: int = setting(
        9092,
        "port",
        "port to listen on; 0 picks a free one, -1: listen at `listeners` only",
        -1,
        maximum=65535,
    )
    advertised_port: int = setting(
        0,
        "advertised.port",
        "port to advertise, where a proxy leads to this broker; 0: the one listened on",
        0,
        maximum=65535,
    )
    listeners: str = setting(
        "",
        "listeners",
        "where to listen as well: NAME=tls://HOST:PORT,.. or plain://; that of host and port "
        "is PLAIN",
    )
    advertised_listeners: str = setting(
        "",
        "advertised.listeners",
        "addresses to advertise, instead of those listened on: NAME=HOST:PORT[,NAME=HOST:PORT]",
    )
    inter_broker_listener: str = setting(
        "",
        "inter.broker.listener.name",
        "listener that brokers reach each other at; empty: that of host and port, or the first",
    )
    ssl_certificate: Path | None = setting(
        None,
        "ssl.certificate.location",
        "PEM file of the certificate of tls:// listeners, with those of its CAs behind it",
    )
    ssl_key: Path | None = setting(
        None, "ssl.key.location", "PEM file of its key; empty: the same file"
    )
    ssl_ca: Path | None = setting(
        None, "ssl.ca.location", "PEM file of the CAs of clients' certificates"
    )
    ssl_client_auth: str = setting(
        "none",
        "ssl.client.auth",
        "whether clients show a certificate, which names them",
        choices=("none", "requested", "required"),
    )
    ssl_principal_rules: str = setting(
        "DEFAULT",
        "ssl.principal.mapping.rules",
        "how a certificate's subject becomes a user: RULE:PATTERN/REPLACEMENT/[LU],..,DEFAULT",
    )
    sasl_mechanisms: str = setting(
        "SCRAM-SHA-256",
        "sasl.enabled.mechanisms",
        "how users may log in, with ZooKeeper; over TLS with -PLUS as well; empty: not at all",
        choices=("SCRAM-SHA-256", ""),
    )
    requires_authentication: bool = setting(
        False,
        "authentication.required",
        "serve only clients that have proved who they are, by a login or by a certificate",
    )
    optional_authentication: str = setting(
        "",
        "authentication.optional.listeners",
        "listeners that serve others all the same, as User:ANONYMOUS: NAME[,NAME]",
    )
    enforces_rules: bool = setting(
        False, "acl.enable", "clients may do what rules (acl add) allow them"
    )
    super_users: str = setting(
        "", "super.users", "users who may do everything, as User:alice;User:bob"
    )

    def _check_listeners(self) -> None:
        try:
            endpoints = self.endpoints
        except ConfigError as error:
            raise ConfigError(f"listeners: {error}") from error
        names = [one.listener for one in endpoints]
        if self.port != -1 and PLAIN_LISTENER in names[1:]:
            raise ConfigError(
                f"listeners: {PLAIN_LISTENER} is the name of the listener of host and port, which "
                "port=-1 leaves out"
            )
        if not endpoints:
            raise ConfigError("port=-1 leaves no listener: listeners names none")
        try:
            advertised = parse_advertised(self.advertised_listeners)
        except ConfigError as error:
            raise ConfigError(f"advertised.listeners: {error}") from error
        for name in advertised:
            if name not in names:
                raise ConfigError(f"advertised.listeners: there is no listener '{name}'")
        for name in self._open_listeners:
            if name not in names:
                raise ConfigError(
                    f"authentication.optional.listeners: there is no listener '{name}', "
                    f"only {', '.join(names)}"
                )
        if self.inter_broker_listener not in ("", *names):
            raise ConfigError(
                f"inter.broker.listener.name={self.inter_broker_listener}: there is no listener of "
                f"that name, only {', '.join(names)}"
            )
        if any(one.is_tls for one in endpoints) and self.ssl_certificate is None:
            raise ConfigError("listeners with tls:// need ssl.certificate.location")
        if self.ssl_client_auth != "none" and self.ssl_ca is None:
            raise ConfigError(f"ssl.client.auth={self.ssl_client_auth} needs ssl.ca.location")

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return what to listen on, that of host and port first."""
        own = (Endpoint(PLAIN_LISTENER, False, self.host, self.port),) if self.port != -1 else ()
        return own + parse_endpoints(self.listeners)

    @property
    def inter_broker_endpoint(self) -> Endpoint:
        """Return the listener that brokers reach each other at."""
        named = [one for one in self.endpoints if one.listener == self.inter_broker_listener]
        return (named or self.endpoints)[0]

    def must_log_in(self, listener: str) -> bool:
        """Return whether the clients of a listener must prove who they are."""
        return self.requires_authentication and listener not in self._open_listeners

    @property
    def _open_listeners(self) -> list[str]:
        return [one.strip() for one in self.optional_authentication.split(",") if one.strip()]
