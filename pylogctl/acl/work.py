"""Changes rules, shows them, and explains decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.admin import rules as admin
from broker.errors import ArgumentError, ConfigError
from broker.security.rules import (
    ANY,
    CLUSTER,
    Decision,
    Operation,
    ResourceType,
    Rule,
    RuleSet,
    host_of,
    parse_pattern,
    parse_principal,
)
from pylogctl.acl.document import CHANGE, CHECK, RULES, CheckRow, RuleRow, row_of
from pylogctl.cli.connections import connector
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.render import render

if TYPE_CHECKING:
    from broker.zk.registry import Registry

_KNOWN_WITHIN_S = 5.0
_NO_RULE = RuleRow(None, None, None, None, None, None)
_OF_CLUSTER = {Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.ALL}


def parse_rules(
    principal: str, operations: str, resource: str, *, is_allowed: bool, host: str
) -> list[Rule]:
    """Return the rules of words such as `User:alice read,write topic:orders`."""
    try:
        who = parse_principal(principal)
        what, is_prefix = parse_pattern(resource)
        address = host if host == ANY else host_of(host)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    found = [parse_operation(one) for one in operations.split(",")]
    if what == CLUSTER and (wrong := set(found) - _OF_CLUSTER):
        raise UsageError(
            f"nobody can {sorted(wrong)[0]} the cluster: it is created in, altered and described"
        )
    return [Rule(who, one, what, is_prefix, is_allowed, address) for one in found]


def parse_operation(text: str) -> Operation:
    """Return an operation by its name."""
    try:
        return Operation(text)
    except ValueError:
        known = ", ".join(Operation)
        raise UsageError(f"'{text}' is no operation: {known} are") from None


def add(env: Environment, registry: Registry, wanted: Sequence[Rule]) -> None:
    """Add rules, render those that are new, and wait until brokers judge by them."""
    if any(rule.resource.type is ResourceType.GROUP for rule in wanted):
        env.warn(
            "no broker mediates for groups yet: they are kept in ZooKeeper by their members, whom "
            "rules on groups do not bind"
        )
    _report(env, registry, admin.add_rules(registry.session, wanted, is_dry_run=_is_dry(env)))


def remove(env: Environment, registry: Registry, numbers: Sequence[int]) -> None:
    """Remove rules, render them, and wait until brokers judge without them."""
    try:
        found = admin.remove_rules(registry.session, numbers, is_dry_run=_is_dry(env))
    except ArgumentError as error:
        raise CliError(ExitStatus.NOT_FOUND, str(error), *error.hints) from error
    _report(env, registry, found)


def _is_dry(env: Environment) -> bool:
    return env.settings.dry_run


def _report(env: Environment, registry: Registry, change: admin.Rules) -> None:
    if _is_dry(env):
        _warn_of_brokers(env, admin.ask_brokers(registry, connector(env)), change.version)
        render(env, CHANGE, map(row_of, change.rules))
        env.note("nothing changed; this was a dry run")
        return
    timeout_s = env.timeout_s(_KNOWN_WITHIN_S)
    said = admin.await_version(registry, connector(env), change.version, timeout_s=timeout_s)
    _warn_of_brokers(env, said, change.version)
    render(env, CHANGE, map(row_of, change.rules))


def show(env: Environment, registry: Registry, principal: str | None) -> None:
    """Render all rules, or those for one user: also those for everybody."""
    found = admin.list_rules(registry.session)
    _warn_of_brokers(env, admin.ask_brokers(registry, connector(env)), found.version)
    shown = found.rules
    if principal is not None:
        try:
            who = parse_principal(principal)
        except ConfigError as error:
            raise UsageError(str(error)) from error
        shown = tuple(rule for rule in shown if rule.is_of(who))
    render(env, RULES, map(row_of, shown))


def check(env: Environment, registry: Registry, question: Rule) -> None:
    """Render how a question is decided, given as the rule that would allow it."""
    found = admin.list_rules(registry.session)
    said = admin.ask_brokers(registry, connector(env))
    _warn_of_brokers(env, said, found.version)
    rules = RuleSet(found.rules, admin.super_users_of(said), version=found.version)
    who, operation, resource = question.principal, question.operation, question.resource
    decision = rules.explain(who, question.host, operation, resource)
    render(env, CHECK, _rows_of(decision))
    version = "there are no rules" if found.version < 0 else f"version {found.version} of the rules"
    verdict = f"{who} may{'' if decision.is_allowed else ' not'} {operation} {resource}"
    env.flush()
    if not decision.is_allowed:
        why = "nothing matched" if decision.rule is None else f"rule {decision.rule.number}"
        raise CliError(ExitStatus.NOT_ALLOWED, f"{verdict}: {why} ({version})", code="NOT_ALLOWED")
    why = f"rule {decision.rule.number}" if decision.rule else "a super user"
    env.note(f"{verdict}: {why} ({version})")


def parse_question(principal: str, operation: str, resource: str, host: str) -> Rule:
    """Return the rule that would allow what is asked; it names one resource and one address."""
    found = parse_rules(principal, operation, resource, is_allowed=True, host=host)
    if len(found) > 1 or found[0].operation is Operation.ALL:
        raise UsageError("ask about one operation at a time")
    (rule,) = found
    if rule.is_prefix or ANY in (rule.resource.name, rule.principal.name):
        raise UsageError("ask about one user and one resource, without *")
    return rule


def _rows_of(decision: Decision) -> list[CheckRow]:
    is_allowed = decision.is_allowed
    if decision.rule is None:
        role = "super user" if decision.is_super_user else "default"
        rows = [CheckRow(is_allowed, role, _NO_RULE)]
    else:
        rows = [CheckRow(is_allowed, "decides", row_of(decision.rule))]
    rows += [CheckRow(is_allowed, "lost", row_of(rule)) for rule in decision.lost]
    rows += [CheckRow(is_allowed, f"misses: {what}", row_of(rule)) for rule, what in decision.near]
    return rows


def _warn_of_brokers(env: Environment, brokers: Sequence[admin.BrokerRules], version: int) -> None:
    """Say first that rules are off, then which brokers do not judge by the present ones."""
    off = [str(one.broker_id) for one in brokers if one.is_enabled is False]
    if off:
        env.warn(
            f"rules are off on broker {', '.join(off)}: acl.enable is false there, so everybody "
            "may do everything"
        )
    for one in brokers:
        name = f"broker {one.broker_id}"
        if one.problem:
            env.warn(f"{name} judges by older rules: {one.problem}")
        elif admin.is_behind(one, version):
            env.warn(f"{name} judges by version {one.version} of the rules, not by {version} yet")
        elif one.is_enabled is None:
            env.warn(
                f"{name} does not say by which rules it judges: {one.error or 'it is too old'}"
            )
