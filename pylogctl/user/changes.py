"""Adds, changes and removes users, and tells it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.admin import users
from broker.security.scram import make_credential, normalize_user
from broker.units import counted
from broker.zk.session import Session
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import connector
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.user.passwords import NewPassword

if TYPE_CHECKING:
    from broker.zk.registry import Registry

_KNOWN_WITHIN_S = 5.0


def known_user(session: Session, name: str) -> str:
    """Return the name as it is kept; a user who is not there, or has no password, is an error."""
    kept = normalize_user(name)
    if not users.has_password(session, kept):
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"there is no user '{kept}'",
            hints=["try: pylogctl user list"],
            code="USER_NOT_FOUND",
        )
    return kept


def absent_user(session: Session, name: str) -> str:
    """Return the name as it is kept; a user who is there already is an error."""
    kept = normalize_user(name)
    if users.has_password(session, kept):
        raise CliError(
            ExitStatus.CONFLICT,
            f"user '{kept}' is there already",
            hints=[f"another password: pylogctl user password {kept}"],
            code="USER_EXISTS",
        )
    return kept


def set_password(env: Environment, registry: Registry, name: str, new: NewPassword) -> None:
    """Keep the credential of a password, and wait until brokers know it.

    The password itself is written if it was generated.
    """
    credential = make_credential(new.password, new.iterations)
    if env.settings.dry_run:
        env.note(f"user '{name}' could log in; nothing changed; this was a dry run")
        return
    users.set_credential(registry.session, name, credential)
    if new.is_generated:
        env.write_line(new.password.reveal())
        env.flush()
    timeout_s = env.timeout_s(_KNOWN_WITHIN_S)
    for one in users.await_credential(
        registry, connector(env), name, credential, timeout_s=timeout_s
    ):
        env.warn(one)
    env.note(
        f"user '{name}' can log in with this password at brokers that offer SCRAM-SHA-256"
        + ("; it is not shown again" if new.is_generated else "")
    )


def remove(env: Environment, registry: Registry, names: Sequence[str]) -> None:
    """Remove users after a question, and wait until brokers know it; all of them must be there."""
    kept = list(dict.fromkeys(known_user(registry.session, name) for name in names))
    quoted = ", ".join(f"'{name}'" for name in kept)
    if env.settings.dry_run:
        env.note(f"would remove {quoted}; nothing changed; this was a dry run")
        return
    confirm(env, "user remove", f"remove {quoted}? Their connections end")
    removed = {name: users.remove_user(registry.session, name) for name in kept}
    give_up_s = time.monotonic() + env.timeout_s(_KNOWN_WITHIN_S)
    for name, (credential, others) in removed.items():
        if others:
            env.note(f"settings of '{name}' stay: {', '.join(others)}")
        if credential is not None:
            left_s = max(0.0, give_up_s - time.monotonic())
            for one in users.await_credential(
                registry, connector(env), name, credential, is_removed=True, timeout_s=left_s
            ):
                env.warn(one)
    env.note(f"{counted(len(kept), 'user')} removed: {quoted}")
