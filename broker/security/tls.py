"""The broker's side of TLS: the context of its listeners, made anew when the files change."""

from __future__ import annotations

import logging
import ssl
import time
from pathlib import Path
from typing import NamedTuple

from broker.config import BrokerConfig
from broker.errors import ConfigError
from broker.files import FileStamp, is_open_to_others, stamp_of
from broker.security.subject import PrincipalRules

logger = logging.getLogger(__name__)

DAY_S = 86_400
_WARNED_DAYS = (1, 7, 30)
_VERIFY_MODES = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_NO_CHECK_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME, for which Python has no name


class ServerContext(NamedTuple):
    """What connections begin with; those that are open keep theirs."""

    context: ssl.SSLContext
    certificate: bytes  # the leaf, as DER
    not_after_s: float  # by the system's clock


class ServerTls:
    """The certificate of the TLS listeners, as its files have it; see `reload`."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        named = (config.ssl_certificate, config.ssl_key, config.ssl_ca)
        self._files = [path for path in named if path is not None]
        self._state = self._look()
        self._warned_days: int | None = None
        self.rules = PrincipalRules(config.ssl_principal_rules)
        self.current = load_context(config)
        self.warn_of_end()

    def _look(self) -> list[FileStamp | None]:
        return [stamp_of(path) for path in self._files]

    def reload(self) -> None:
        """Use the files if they have changed; if they cannot be used, keep what was loaded."""
        state = self._look()
        if state != self._state:
            self._state = state
            try:
                self.current = load_context(self._config)
            except ConfigError as error:
                logger.warning("%s; the certificate that was loaded before stays in use", error)
            else:
                self._warned_days = None
                end = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(self.current.not_after_s))
                logger.info(
                    "loaded the certificate of %s, valid until %s",
                    self._config.ssl_certificate,
                    end,
                )
        self.warn_of_end()

    @property
    def days_left(self) -> float:
        """Return how long the certificate is valid still; negative after its end."""
        return (self.current.not_after_s - time.time()) / DAY_S

    def warn_of_end(self) -> None:
        """Warn 30, 7 and 1 days before the certificate expires, and when it has."""
        left = self.days_left
        due = next((days for days in (0, *_WARNED_DAYS) if left <= days), None)
        if due is None or due == self._warned_days:
            return
        self._warned_days = due
        end = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(self.current.not_after_s))
        logger.warning(
            "the certificate of %s %s %s: replace the file, which is loaded within 10 s",
            self._config.ssl_certificate,
            "expired at" if left <= 0 else "expires at",
            end,
        )


def load_context(config: BrokerConfig) -> ServerContext:
    """Return a new context from the files; `ConfigError` names the file that cannot be used.

    Never into a context in use: that has a slot for each type of key, and would go on with the old
    certificate if the type has changed.
    """
    certificate, key = config.ssl_certificate, config.ssl_key or config.ssl_certificate
    assert certificate is not None
    assert key is not None
    text = _read(certificate, "ssl.certificate.location")
    _check_private(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # a resumed session would not look at the client's certificate again
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    try:
        context.load_cert_chain(certificate, key, password=_refuse_password)
        leaf = ssl.PEM_cert_to_DER_cert(_first_certificate(text))
        found = _try_handshake(context, leaf)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"the certificate of {certificate} and the key of {key} cannot be used: "
            f"{_reason(error)}"
        ) from error
    except OSError as error:
        raise ConfigError(f"cannot read {key}: {error.strerror}") from error
    if config.ssl_ca is not None:
        _read(config.ssl_ca, "ssl.ca.location")
        try:
            context.load_verify_locations(config.ssl_ca)
        except ssl.SSLError as error:
            raise ConfigError(
                f"no CA can be read from {config.ssl_ca}: {_reason(error)}"
            ) from error
    context.verify_mode = _VERIFY_MODES[config.ssl_client_auth]
    return ServerContext(context, leaf, ssl.cert_time_to_seconds(str(found["notAfter"])))


def _read(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise ConfigError(f"cannot read {name}={path}: {error.strerror}") from error


def _check_private(key: Path) -> None:
    try:
        found = key.stat()
    except OSError as error:
        raise ConfigError(f"cannot read ssl.key.location={key}: {error.strerror}") from error
    if is_open_to_others(key, found):
        mode = found.st_mode & 0o777
        raise ConfigError(
            f"others may read the key of {key} (mode {mode:04o}): set it to 0600 (chmod 600 {key})"
        )


def _refuse_password() -> str:
    raise ValueError("the key is encrypted; store it without a passphrase, readable by its owner")


def _first_certificate(text: str) -> str:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    start = text.find(begin)
    return text[start : text.find(end, start) + len(end)]


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if reason in ("NO_CERTIFICATE_ASSIGNED", "KEY_VALUES_MISMATCH"):
        return "they are of two key pairs"
    return str(reason).lower().replace("_", " ") if reason else str(error)


def _try_handshake(context: ssl.SSLContext, leaf: bytes) -> dict[str, object]:
    """Shake hands with a client in memory; return the certificate as that client sees it."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.load_verify_locations(cadata=leaf)
    trusting.verify_flags = ssl.VerifyFlags(ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server)
    pending = [client, server]
    while pending:
        for side in tuple(pending):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            pending.remove(side)
    return dict(client.getpeercert() or {})
