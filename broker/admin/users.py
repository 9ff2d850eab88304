"""The users of a cluster in ZooKeeper: what checks their passwords, and never those themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from broker.errors import CoordinationError
from broker.security.users import SCRAM, Credential
from broker.zk.session import Session
from broker.zk.settings import SettingsRegistry, node_of_user

_SCRAM_PREFIX = "SCRAM-"
"""Kafka keeps more mechanisms than ours; a removed user has none of them."""


class User(NamedTuple):
    """A user: how a password is checked, None if none is, and what else is set for it."""

    name: str
    iterations: int | None
    others: tuple[str, ...]


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
    return User(name, iterations, tuple(sorted(texts.keys() - {SCRAM})))


def has_password(session: Session, name: str) -> bool:
    """Return whether there is a user who can log in."""
    return SCRAM in SettingsRegistry(session).read(node_of_user(name))


def set_credential(session: Session, name: str, credential: Credential) -> None:
    """Have a user log in with the password that the credential was made of, and no other."""
    text = credential.encode()
    SettingsRegistry(session).change(node_of_user(name), lambda before: {**before, SCRAM: text})


def remove_user(session: Session, name: str) -> tuple[str, ...]:
    """Remove all that a user can log in with; return the names of settings that stay."""

    def edit(before: Mapping[str, str]) -> dict[str, str]:
        return {key: text for key, text in before.items() if not key.startswith(_SCRAM_PREFIX)}

    return tuple(sorted(SettingsRegistry(session).change(node_of_user(name), edit).after))
