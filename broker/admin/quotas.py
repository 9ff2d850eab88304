"""The quotas of users in ZooKeeper, beside what checks their passwords."""

from __future__ import annotations

from collections.abc import Mapping

from broker.errors import ConfigError, CoordinationError
from broker.security.quotas import Quotas, parse_quotas
from broker.zk.session import Session
from broker.zk.settings import SettingsRegistry, node_of_user


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
