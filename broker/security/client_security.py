"""How a client secures its connections: TLS, and the user that it logs in as."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from broker import errors
from broker.properties import BaseConfig, Secret, setting

if TYPE_CHECKING:
    from broker.security.mechanisms import ClientMechanism

_WITHOUT_LOGIN = "connect without --user (or sasl.*), or at another port of the broker"
_LOGIN_HINTS: dict[type[errors.ServerError], str] = {
    errors.AuthenticationFailedError: "check the name and where the password comes from",
    errors.SecurityDisabledError: _WITHOUT_LOGIN,
    errors.UnsupportedMechanismError: _WITHOUT_LOGIN,
}
_NO_PASSWORD = Secret("")


class TlsFiles(NamedTuple):
    """PEM files: the CA of servers (None: those of the system), a client's certificate and key.

    `prefix` is that of the properties which name them; empty for those of brokers.
    """

    ca: Path | None
    cert: Path | None
    key: Path | None
    prefix: str = ""


@dataclass(frozen=True)
class ClientSecurity(BaseConfig):
    """How a client secures its connections, under the property names of librdkafka."""

    security_protocol: str = setting(
        "PLAINTEXT",
        "security.protocol",
        "SSL for TLS; with SASL a user logs in",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    tls_ca: Path | None = setting(
        None, "ssl.ca.location", "PEM file of brokers' CA; empty: the system's CAs"
    )
    tls_cert: Path | None = setting(
        None, "ssl.certificate.location", "PEM file of the client's certificate"
    )
    tls_key: Path | None = setting(None, "ssl.key.location", "PEM file of its key; empty: the same")
    sasl_mechanism: str = setting(
        "SCRAM-SHA-256",
        "sasl.mechanism",
        "to log in; -PLUS binds the login to the broker's certificate",
        choices=("SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"),
    )
    user: str = setting("", "sasl.username", "the user that logs in")
    password: Secret = setting(_NO_PASSWORD, "sasl.password", "the user's password")

    def __post_init__(self) -> None:
        set_to = f"security.protocol={self.security_protocol}"
        if any(self.tls_files) and not self.has_tls:
            raise errors.ConfigError(f"ssl.* has no effect with {set_to}: set SSL or SASL_SSL")
        if self.tls_key and not self.tls_cert:
            raise errors.ConfigError(
                "ssl.key.location has no effect without ssl.certificate.location"
            )
        has_sasl = self.security_protocol.startswith("SASL_")
        if self.user and not has_sasl:
            raise errors.ConfigError(f"sasl.username has no effect with {set_to}: set SASL_SSL")
        if has_sasl and not (self.user and self.password):
            missing = "sasl.password" if self.user else "sasl.username"
            raise errors.ConfigError(f"{set_to} needs {missing}")
        if self.sasl_mechanism.endswith("-PLUS") and not self.has_tls:
            raise errors.ConfigError(
                f"sasl.mechanism={self.sasl_mechanism} binds to TLS, so not with {set_to}: "
                "set SASL_SSL"
            )

    @classmethod
    def of_files(
        cls,
        *,
        has_tls: bool = False,
        ca: str | Path | None = None,
        cert: str | Path | None = None,
        key: str | Path | None = None,
        user: str | None = None,
        password: str | None = None,
    ) -> ClientSecurity:
        """Return the settings for these; a file of TLS means TLS, and a user that one logs in."""
        is_tls = has_tls or ca is not None or cert is not None or key is not None
        sasl = "" if user is None else "SASL_"
        return ClientSecurity(
            security_protocol=sasl + ("SSL" if is_tls else "PLAINTEXT"),
            tls_ca=None if ca is None else Path(ca),
            tls_cert=None if cert is None else Path(cert),
            tls_key=None if key is None else Path(key),
            user=user or "",
            password=Secret(password or ""),
        )

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol.endswith("SSL")

    @property
    def mechanism(self) -> ClientMechanism | None:
        """What logs the user in; None without a user."""
        if not self.user:
            return None
        from broker.security.scram import ScramClient  # late: it loads scramp

        return ScramClient(self.user, self.password, self.sasl_mechanism)

    def refused_login(self, broker: str, error: errors.ServerError) -> errors.ServerError:
        """Return the error for a broker, by its name, that does not log the user in."""
        hint = _LOGIN_HINTS.get(type(error))
        return type(error)(
            f"{broker} does not log in user '{self.user}': {error}", hints=[hint] if hint else []
        )

    @property
    def tls_files(self) -> TlsFiles:
        """The files of certificates."""
        return TlsFiles(self.tls_ca, self.tls_cert, self.tls_key)
