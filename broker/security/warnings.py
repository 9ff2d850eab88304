"""What the settings of a broker allow, or never come to, that nobody can have meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from broker.config import BrokerConfig
from broker.endpoints import is_loopback
from broker.security.principal import ANONYMOUS, Principal
from broker.security.rules import parse_super_users

_OWN_NAMES = ("", "DEFAULT")  # rules of certificates that name the subject itself


def warnings_of(config: BrokerConfig, users: Collection[str] | None) -> Iterator[str]:
    """Yield a sentence for each; `users` have passwords, None: they are not known."""
    logs_in = bool(config.zookeeper_connect and config.sasl_mechanisms)
    super_users = parse_super_users(config.super_users)
    if config.enforces_rules and not super_users:
        yield (
            "acl.enable=true and super.users is empty: clients may do only what rules in "
            "ZooKeeper allow, and no client may do what they forget"
        )
    for user in sorted(super_users - {ANONYMOUS}):
        reason = _reason_why_never(user, config, users if logs_in else ())
        if reason is not None:
            yield f"super.users: no client can be {user}: {reason}"
    for one in config.endpoints if logs_in else ():
        is_used = config.must_log_in(one.listener) if users is None else users
        if is_used and not (one.is_tls or is_loopback(one.host)):
            yield (
                f"logins are accepted at {one}, which is not encrypted: who listens there can "
                "try passwords at leisure, and read and change what is sent: use tls://"
            )


def _reason_why_never(
    user: Principal, config: BrokerConfig, users: Collection[str] | None
) -> str | None:
    has_certificates = config.ssl_client_auth != "none" and any(
        one.is_tls for one in config.endpoints
    )
    is_subject = "=" in user.name
    if has_certificates and (is_subject or config.ssl_principal_rules not in _OWN_NAMES):
        return None
    if users is None and not is_subject:
        return None
    if users is not None and user.name in users:
        return None
    if is_subject:
        return "no TLS listener asks clients for certificates (ssl.client.auth)"
    return f"it has no password in ZooKeeper (pylogctl user add {user.name})"
