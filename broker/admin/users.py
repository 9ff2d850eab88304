"""The users of a cluster in ZooKeeper: what checks their passwords, and never those themselves."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from contextlib import closing
from typing import Annotated, NamedTuple

from broker import deadlines, errors
from broker.client.side import Side
from broker.errors import ConfigError, CoordinationError
from broker.protocol.client_requests import AUTHENTICATED, AuthenticateRequest
from broker.protocol.responses import BrokerAddress
from broker.records import Fit, Integer, Text
from broker.security.quotas import Quotas, parse_quotas
from broker.security.users import SCRAM, Credential
from broker.zk.session import Session
from broker.zk.settings import SettingsRegistry, node_of_user

_NO_LOGINS = (
    errors.SecurityDisabledError,
    errors.UnsupportedMechanismError,
    errors.UnsupportedVersionError,
)
_SCRAM_PREFIX = "SCRAM-"
"""Kafka keeps more mechanisms than ours; a removed user has none of them."""


class User(NamedTuple):
    """A user: how a password is checked, None if none is, and what else is set for it."""

    user: Annotated[Text, "name"]
    mechanism: Annotated[Text, "how the password is proved; missing for one without", Fit.WHOLE]
    iterations: Annotated[Integer, "rounds of PBKDF2 that a guess of the password costs"]
    settings: Annotated[Text, "names of what else is set for the user", Fit.WRAP]


def read_users(session: Session) -> list[User]:
    """Return the users by name."""
    return [_user(name, texts) for name, texts in SettingsRegistry(session).users().items()]


def _user(name: str, texts: Mapping[str, str]) -> User:
    iterations = None
    if SCRAM in texts:
        try:
            iterations = Credential.decode(texts[SCRAM]).iterations
        except CoordinationError as error:
            raise CoordinationError(f"user '{name}': {error}") from error
    others = ", ".join(sorted(texts.keys() - {SCRAM}))
    return User(name, SCRAM if iterations else None, iterations, others or None)


def has_password(session: Session, name: str) -> bool:
    """Return whether there is a user who can log in."""
    return SCRAM in SettingsRegistry(session).read(node_of_user(name))


def set_credential(session: Session, name: str, credential: Credential) -> None:
    """Have a user log in with the password that the credential was made of, and no other."""
    text = credential.encode()
    SettingsRegistry(session).change(node_of_user(name), lambda before: {**before, SCRAM: text})


def await_credential(
    side: Side, name: str, credential: Credential, *, is_removed: bool = False
) -> list[str]:
    """Wait until all live brokers check logins by a credential that was just set, or none does.

    Return what is known of the others, a sentence each.
    """
    lag = f"still take the password of '{name}'" if is_removed else "not know the password yet"
    give_up_s = side.give_up_s
    unsure = []
    for broker in side.brokers():

        def is_late(broker: BrokerAddress = broker) -> bool:
            salt = _salt_at(side.until(give_up_s), broker, name)
            return (salt == credential.salt) == is_removed  # it invents one for an unknown name

        try:
            if deadlines.remaining(is_late, give_up_s):
                unsure.append(f"broker {broker.id} may {lag}")
        except _NO_LOGINS:
            continue
        except errors.BrokerError as error:
            unsure.append(f"broker {broker.id} may {lag}: {error}")
    return unsure


def _salt_at(side: Side, address: BrokerAddress, name: str) -> bytes:
    """Return the salt that a broker tells whoever begins to log in as a user."""
    escaped = name.replace("=", "=3D").replace(",", "=2C")
    opening = f"n,,n={escaped},r={secrets.token_hex()}"
    with deadlines.Limit(side.timeout_s), closing(side.connect(address)) as connection:
        body = connection.call(AuthenticateRequest(SCRAM, 0, opening.encode()))
    challenge = dict(
        one.split("=", 1) for one in AUTHENTICATED.decode(body).data.decode().split(",")
    )
    return base64.b64decode(challenge["s"])


def remove_user(session: Session, name: str) -> tuple[Credential | None, tuple[str, ...]]:
    """Remove all that a user can log in with.

    Return what it logged in with at brokers, None if nothing, and the names of settings that stay.
    """

    def edit(before: Mapping[str, str]) -> dict[str, str]:
        return {key: text for key, text in before.items() if not key.startswith(_SCRAM_PREFIX)}

    before, after = SettingsRegistry(session).change(node_of_user(name), edit)
    try:
        credential = Credential.decode(before[SCRAM]) if SCRAM in before else None
    except CoordinationError:  # malformed, so that nobody could log in
        credential = None
    return credential, tuple(sorted(after))


def read_quotas(session: Session) -> dict[str, Quotas]:
    """Return the quotas of the users that have any of their own, by name."""
    found = {}
    for name, texts in SettingsRegistry(session).users().items():
        try:
            quotas = parse_quotas(texts)
        except ConfigError as error:
            raise CoordinationError(f"user '{name}': {error}") from error
        if quotas != Quotas():
            found[name] = quotas
    return found


def set_quotas(session: Session, name: str, quotas: Mapping[str, int | None]) -> None:
    """Set quotas of a user by their names; None removes one, so that the default holds."""

    def edit(before: Mapping[str, str]) -> dict[str, str]:
        kept = {key: text for key, text in before.items() if key not in quotas}
        return kept | {key: str(number) for key, number in quotas.items() if number is not None}

    SettingsRegistry(session).change(node_of_user(name), edit)
