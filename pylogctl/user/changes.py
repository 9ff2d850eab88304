"""Adds, changes and removes users, and shows and sets their quotas.

A new password never comes from the command line, which all processes can read.
"""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from broker.admin import users
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
from pylogctl.cli.columns import Bytes, Document, Integer, Row, Text
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import open_registry, registry_side, zookeeper_session
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.cli.security import password_in_descriptor, password_in_file
from pylogctl.user.options import PasswordSource, QuotaOptions


class QuotaRow(Row):
    """What a user may use of each broker."""

    user: Annotated[Text, "name; <default> stands for users without quotas of their own"]
    bytes_in: Annotated[Bytes, "most bytes a second from the user; 0: no limit"]
    bytes_out: Annotated[Bytes, "most bytes a second to the user; 0: no limit"]
    work: Annotated[Integer, "most work for the user, percent of one thread's time; 0: no limit"]
    connections: Annotated[Integer, "most connections of the user, once logged in; 0: no limit"]


QUOTAS = Document("user.quotas/1", QuotaRow, empty="no user has quotas of its own")
USERS = Document("user.list/1", users.User, empty="no users; try: pylogctl user add NAME")

_RANDOM_BYTES = 18  # 24 characters


class NewPassword(NamedTuple):
    """A password, and how slow a guess of it has to be."""

    password: Secret
    iterations: int

    @property
    def is_generated(self) -> bool:
        """Whether nobody knows it yet."""
        return self.iterations == GENERATED_ITERATIONS


def _new_password(env: Environment, user: str, source: PasswordSource) -> NewPassword:
    """Return the password of an option, a generated one, or the one typed at the terminal."""
    file, descriptor = source.new_file, source.new_descriptor
    if (file is not None) + (descriptor is not None) + source.generate > 1:
        raise UsageError("give one of --password-file, --password-fd and --generate")
    if source.generate:
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


_QUOTA_NAMES = {  # in ZooKeeper, by their options
    "--bytes-in": "producer_byte_rate",
    "--bytes-out": "consumer_byte_rate",
    "--work": "request_percentage",
    "--connections": "connections",
}


def parse_quotas(options: QuotaOptions) -> dict[str, int | None]:
    """Return the wanted quotas by their names in ZooKeeper; None for one to be removed."""
    return {
        _QUOTA_NAMES[option]: _number(option, str(text))
        for option, text in options.by_option.items()
        if text is not None
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


def change_quotas(env: Environment, user: str, wanted: Mapping[str, int | None]) -> None:
    """Set quotas, and tell those that the user has then."""
    name = _kept_name(user)
    with zookeeper_session(env, may_be_new=True) as session:
        before = users.read_quotas(session).get(name, Quotas())
        after = before._replace(**wanted)
        if env.settings.dry_run:
            env.note(f"would set for '{name}': {_text(after)}; nothing changed; this was a dry run")
            return
        users.set_quotas(session, name, wanted)
    env.note(f"quotas of '{name}' on each broker: {_text(after)}")


def _text(quotas: Quotas) -> str:
    units = ("bytes/s in", "bytes/s out", "% work", "connections")
    return ", ".join(
        f"default {unit}" if number is None else f"{number or 'unlimited'} {unit}"
        for number, unit in zip(quotas, units, strict=True)
    )


def show_quotas(env: Environment, user: str | None) -> None:
    """Show the quotas of all users that have any, or of one."""
    with zookeeper_session(env) as session:
        found = users.read_quotas(session)
    if user is not None:
        name = _kept_name(user)
        found = {name: found.get(name, Quotas())}
    render(env, QUOTAS, (QuotaRow(name, *quotas) for name, quotas in found.items()))


_KNOWN_WITHIN_S = 5.0


def show_users(env: Environment) -> None:
    """Show the users, without passwords and what checks them."""
    with zookeeper_session(env) as session:
        found = users.read_users(session)
    render(env, USERS, found)


def _known_user(session: Session, name: str) -> str:
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


def add_user(env: Environment, user: str, source: PasswordSource) -> None:
    """Add a user, who must not be there already, and wait until brokers know the password."""
    with open_registry(env, may_be_new=True) as registry:
        name = normalize_user(user)
        if users.has_password(registry.session, name):
            raise CliError(
                ExitStatus.CONFLICT,
                f"user '{name}' is there already",
                f"another password: pylogctl user password {name}",
                code="USER_EXISTS",
            )
        _set_password(env, registry, name, _new_password(env, name, source))


def change_password(env: Environment, user: str, source: PasswordSource) -> None:
    """Give a user another password, and wait until brokers know it."""
    with open_registry(env) as registry:
        name = _known_user(registry.session, user)
        _set_password(env, registry, name, _new_password(env, name, source))


def _set_password(env: Environment, registry: Registry, name: str, new: NewPassword) -> None:
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
    side = registry_side(env, registry, _KNOWN_WITHIN_S)
    for one in users.await_credential(side, name, credential):
        env.warn(one)
    env.note(
        f"user '{name}' can log in with this password at brokers that offer SCRAM-SHA-256"
        + ("; it is not shown again" if new.is_generated else "")
    )


def remove_users(env: Environment, names: Sequence[str]) -> None:
    """Remove users after a question, and wait until brokers know it; all of them must be there."""
    with open_registry(env) as registry:
        kept = list(dict.fromkeys(_known_user(registry.session, name) for name in names))
        quoted = ", ".join(f"'{name}'" for name in kept)
        if env.settings.dry_run:
            env.note(f"would remove {quoted}; nothing changed; this was a dry run")
            return
        confirm(env, "user remove", f"remove {quoted}? Their connections end")
        removed = {name: users.remove_user(registry.session, name) for name in kept}
        side = registry_side(env, registry, _KNOWN_WITHIN_S)
        give_up_s = side.give_up_s
        for name, (credential, others) in removed.items():
            if others:
                env.note(f"settings of '{name}' stay: {', '.join(others)}")
            if credential is not None:
                left = side.until(give_up_s)
                for one in users.await_credential(left, name, credential, is_removed=True):
                    env.warn(one)
    env.note(f"{counted(len(kept), 'user')} removed: {quoted}")
