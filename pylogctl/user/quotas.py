"""Shows and sets the quotas of users."""

from __future__ import annotations

from collections.abc import Mapping

from broker.admin.quotas import read_quotas, set_quotas
from broker.errors import ArgumentError
from broker.security.principal import ANONYMOUS
from broker.security.quotas import Quotas
from broker.security.scram import normalize_user
from broker.units import parse_size
from broker.zk.paths import DEFAULT_USER
from broker.zk.session import Session
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.render import render
from pylogctl.user.document import QUOTAS, QuotaRow


def parse(
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
        raise UsageError(
            f"{option} is '{text}'", hints=[f"valid: {example}, none, default"]
        ) from None
    return number


def _kept_name(user: str) -> str:
    return user if user in (DEFAULT_USER, ANONYMOUS.name) else normalize_user(user)


def change(env: Environment, session: Session, user: str, wanted: Mapping[str, int | None]) -> None:
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


def show(env: Environment, session: Session, user: str | None) -> None:
    """Show the quotas of all users that have any, or of one."""
    found = read_quotas(session)
    if user is not None:
        name = _kept_name(user)
        found = {name: found.get(name, Quotas())}
    render(env, QUOTAS, (QuotaRow(name, *quotas) for name, quotas in found.items()))
