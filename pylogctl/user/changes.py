"""Adds, changes and removes users, and shows and sets their quotas.

A new password never comes from the command line, which all processes can read.
"""

from __future__ import annotations

import getpass
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from broker.admin import users
from broker.admin.users import read_quotas, set_quotas
from broker.errors import ArgumentError
from broker.properties import Secret
from broker.security.principal import ANONYMOUS
from broker.security.quotas import Quotas
from broker.security.scram import make_credential, normalize_user
from broker.security.users import CHOSEN_ITERATIONS, GENERATED_ITERATIONS
from broker.units import counted, parse_size
from broker.zk.paths import DEFAULT_USER
from broker.zk.registry import Registry
from broker.zk.session import Session
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import connector
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.cli.security import password_in_descriptor, password_in_file
from pylogctl.user.document import QUOTAS, QuotaRow

_RANDOM_BYTES = 18  # 24 characters


class NewPassword(NamedTuple):
    """A password, and how slow a guess of it has to be."""

    password: Secret
    iterations: int

    @property
    def is_generated(self) -> bool:
        """Whether nobody knows it yet."""
        return self.iterations == GENERATED_ITERATIONS


def new_password(
    env: Environment, user: str, *, file: Path | None, descriptor: int | None, generates: bool
) -> NewPassword:
    """Return the password of an option, a generated one, or the one typed at the terminal."""
    if (file is not None) + (descriptor is not None) + generates > 1:
        raise UsageError("give one of --password-file, --password-fd and --generate")
    if generates:
        return _generated()
    if file is not None:
        text = password_in_file(file)
    elif descriptor is not None:
        text = password_in_descriptor(descriptor)
    elif not env.can_ask:
        raise UsageError(
            f"no terminal to ask for the password of '{user}' at",
            "give --generate, --password-file FILE or --password-fd N",
        )
    else:
        text = getpass.getpass(f"new password of '{user}' (empty: generate one): ")
        if not text:
            return _generated()
        if getpass.getpass("the same again: ") != text:
            raise UsageError("the passwords differ; nothing changed")
    return NewPassword(Secret(text), CHOSEN_ITERATIONS)


def _generated() -> NewPassword:
    return NewPassword(Secret(secrets.token_urlsafe(_RANDOM_BYTES)), GENERATED_ITERATIONS)


def parse_quotas(
    bytes_in: str | None, bytes_out: str | None, work: str | None, connections: str | None
) -> dict[str, int | None]:
    """Return the wanted quotas by their names in ZooKeeper; None for one to be removed."""
    given = {
        "producer_byte_rate": ("--bytes-in", bytes_in),
        "consumer_byte_rate": ("--bytes-out", bytes_out),
        "request_percentage": ("--work", work),
        "connections": ("--connections", connections),
    }
    return {
        name: _number(option, text) for name, (option, text) in given.items() if text is not None
    }


def _number(option: str, text: str) -> int | None:
    if text == "default":
        return None
    if text == "none":
        return 0
    try:
        is_rate = option.startswith("--bytes")
        number = parse_size(text.removesuffix("/s")) if is_rate else int(text)
        if number < 1:
            raise ValueError
    except (ValueError, ArgumentError):
        example = "10MiB/s" if option.startswith("--bytes") else "50"
        raise UsageError(f"{option} is '{text}'", f"valid: {example}, none, default") from None
    return number


def _kept_name(user: str) -> str:
    return user if user in (DEFAULT_USER, ANONYMOUS.name) else normalize_user(user)


def change_quotas(
    env: Environment, session: Session, user: str, wanted: Mapping[str, int | None]
) -> None:
    """Set quotas, and tell those that the user has then."""
    name = _kept_name(user)
    before = read_quotas(session).get(name, Quotas())
    after = before._replace(**wanted)
    if env.settings.dry_run:
        env.note(f"would set for '{name}': {_text(after)}; nothing changed; this was a dry run")
        return
    set_quotas(session, name, wanted)
    env.note(f"quotas of '{name}' on each broker: {_text(after)}")


def _text(quotas: Quotas) -> str:
    units = ("bytes/s in", "bytes/s out", "% work", "connections")
    return ", ".join(
        f"default {unit}" if number is None else f"{number or 'unlimited'} {unit}"
        for number, unit in zip(quotas, units, strict=True)
    )


def show_quotas(env: Environment, session: Session, user: str | None) -> None:
    """Show the quotas of all users that have any, or of one."""
    found = read_quotas(session)
    if user is not None:
        name = _kept_name(user)
        found = {name: found.get(name, Quotas())}
    render(env, QUOTAS, (QuotaRow(name, *quotas) for name, quotas in found.items()))


_KNOWN_WITHIN_S = 5.0


def known_user(session: Session, name: str) -> str:
    """Return the name as it is kept; a user who is not there, or has no password, is an error."""
    kept = normalize_user(name)
    if not users.has_password(session, kept):
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"there is no user '{kept}'",
            "try: pylogctl user list",
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
            f"another password: pylogctl user password {kept}",
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


def remove_users(env: Environment, registry: Registry, names: Sequence[str]) -> None:
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
