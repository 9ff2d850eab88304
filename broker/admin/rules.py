"""Adds and removes rules of who may do what, and asks brokers by which ones they judge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker import deadlines, errors
from broker.admin.brokers import request_status
from broker.client.cluster import Connect
from broker.client.side import Side
from broker.protocol.extension_requests import StatusParts
from broker.protocol.responses import BrokerAddress
from broker.security.principal import Principal
from broker.security.rules import Rule, StoredRules, parse_principal
from broker.zk.settings import change_rules, read_rules

if TYPE_CHECKING:
    from broker.zk.session import Session


class Rules(NamedTuple):
    """All rules, and the version of their node, -1 without one."""

    rules: tuple[Rule, ...]
    version: int


class BrokerRules(NamedTuple):
    """What a live broker says of the rules that it judges by; `error` if it says nothing."""

    broker_id: int
    is_enabled: bool | None = None  # None: it does not say
    version: int | None = None
    problem: str = ""
    super_users: frozenset[Principal] = frozenset()
    error: errors.BrokerError | None = None


def list_rules(session: Session) -> Rules:
    """Return all rules; `CoordinationError` if the node is malformed."""
    value, version = read_rules(session)
    stored = StoredRules() if value is None else StoredRules.decode(value)
    return Rules(stored.rules, version)


def add_rules(session: Session, wanted: Sequence[Rule], *, is_dry_run: bool) -> Rules:
    """Add the rules that are not there yet; return these, with their numbers, and the version."""
    return _change(session, lambda stored: stored.adding(wanted), is_dry_run=is_dry_run)


def remove_rules(session: Session, numbers: Collection[int], *, is_dry_run: bool) -> Rules:
    """Remove rules; return these, and the version.

    Raises:
        ArgumentError: there is no rule of one of the numbers; nothing is changed.
    """

    def edit(stored: StoredRules) -> StoredRules:
        unknown = set(numbers) - {rule.number for rule in stored.rules}
        if unknown:
            raise errors.ArgumentError(
                f"there is no rule {', '.join(map(str, sorted(unknown)))}; nothing is removed",
                hints=["try: pylogctl acl list"],
            )
        kept = tuple(rule for rule in stored.rules if rule.number not in numbers)
        return stored._replace(rules=kept)

    return _change(session, edit, is_dry_run=is_dry_run)


def _change(
    session: Session, edit: Callable[[StoredRules], StoredRules], *, is_dry_run: bool
) -> Rules:
    """Change the rules; return those that are added or removed by it."""
    changed: list[Rule] = []

    def edit_value(value: bytes | None) -> bytes | None:
        before = StoredRules() if value is None else StoredRules.decode(value)
        after = edit(before)
        changed[:] = sorted(set(before.rules) ^ set(after.rules), key=lambda rule: rule.number)
        return after.encode() if changed else None

    if is_dry_run:
        value, version = read_rules(session)
        edit_value(value)
    else:
        version = change_rules(session, edit_value)
    return Rules(tuple(changed), version)


def ask_brokers(side: Side) -> list[BrokerRules]:
    """Return what each live broker says of its rules."""
    return [_ask(side.connect, one) for one in side.brokers()]


def _ask(connect: Connect, address: BrokerAddress) -> BrokerRules:
    _, document, error = request_status(connect, address, StatusParts(0))
    found = None if document is None else document.get("rules")
    if found is None:
        return BrokerRules(address.id, error=error)
    return BrokerRules(
        address.id,
        found["enabled"],
        found.get("version"),
        found.get("problem") or "",
        frozenset(map(parse_principal, found.get("super_users", ()))),
    )


def await_version(side: Side, version: int) -> list[BrokerRules]:
    """Wait until all live brokers that judge do so by a version or a later one.

    Return what they said last: of those that do not yet, too.
    """
    give_up_s = side.give_up_s
    said: dict[int, BrokerRules] = {}
    for broker in side.brokers():

        def is_late(broker: BrokerAddress = broker) -> bool:
            said[broker.id] = _ask(side.connect, broker)
            return is_behind(said[broker.id], version)

        deadlines.remaining(is_late, give_up_s)
    return list(said.values())


def is_behind(broker: BrokerRules, version: int) -> bool:
    """Return whether a broker judges by rules that are older than a version."""
    return bool(broker.is_enabled) and broker.version is not None and broker.version < version


def super_users_of(brokers: Iterable[BrokerRules]) -> frozenset[Principal]:
    """Return who is a super user on any of the brokers."""
    return frozenset[Principal]().union(*(one.super_users for one in brokers))
