"""Changes rules, shows them, and explains decisions; the rows that show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from broker.admin import rules as admin
from broker.errors import ArgumentError, ConfigError
from broker.security import rules
from broker.security.rules import Decision, Operation, Rule
from broker.zk.registry import Registry
from pylogctl.cli.columns import Document, Fit, Flag, Integer, Row, Text
from pylogctl.cli.connections import open_registry, registry_side
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.render import render


class RuleRow(Row):
    """A rule."""

    id: Annotated[Integer, "number, which `acl remove` takes"]
    effect: Annotated[Text, "allow, or deny, which wins", Fit.WHOLE]
    principal: Annotated[Text, "user; User:* is everybody"]
    operation: Annotated[Text, "what it is about; all is everything", Fit.WHOLE]
    resource: Annotated[Text, "to what; topic:web* is each topic that begins so"]
    host: Annotated[Text, "address of the client; * is each"]


class CheckRow(Row):
    """A rule, and what it means for a decision; the first row is the one that decides."""

    allowed: Annotated[Flag, "the answer to the question"]
    role: Annotated[
        str,
        "decides, or lost to the one that does; default: no rule matched; super user: none is "
        "asked; misses: does not match, for this reason only",
        Fit.WRAP,
    ]
    rule: RuleRow


RULES = Document("acl.rules/1", RuleRow, empty="no rules")
CHANGE = Document("acl.change/1", RuleRow, empty="nothing changed")
CHECK = Document("acl.check/1", CheckRow, empty="no decision")


def row_of(rule: Rule) -> RuleRow:
    """Return the row of a rule."""
    effect = "allow" if rule.is_allowed else "deny"
    who, what = str(rule.principal), str(rule.operation)
    return RuleRow(rule.number, effect, who, what, rule.pattern, rule.host)


_KNOWN_WITHIN_S = 5.0
_NO_RULE = RuleRow(None, None, None, None, None, None)
_OF_CLUSTER = {Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.ALL}


def parse_rules(
    principal: str, operations: str, resource: str, *, is_allowed: bool, host: str
) -> list[Rule]:
    """Return the rules of words such as `User:alice read,write topic:orders`."""
    try:
        who = rules.parse_principal(principal)
        what, is_prefix = rules.parse_pattern(resource)
        address = host if host == rules.ANY else rules.host_of(host)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    found = [parse_operation(one) for one in operations.split(",")]
    if what == rules.CLUSTER and (wrong := set(found) - _OF_CLUSTER):
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


def add(env: Environment, wanted: Sequence[Rule]) -> None:
    """Add rules, render those that are new, and wait until brokers judge by them."""
    if any(rule.resource.type is rules.ResourceType.GROUP for rule in wanted):
        env.warn(
            "no broker mediates for groups yet: they are kept in ZooKeeper by their members, whom "
            "rules on groups do not bind"
        )
    is_dry_run = env.settings.dry_run
    with open_registry(env) as registry:
        _report(env, registry, admin.add_rules(registry.session, wanted, is_dry_run=is_dry_run))


def remove(env: Environment, numbers: Sequence[int]) -> None:
    """Remove rules, render them, and wait until brokers judge without them."""
    is_dry_run = env.settings.dry_run
    with open_registry(env) as registry:
        try:
            found = admin.remove_rules(registry.session, numbers, is_dry_run=is_dry_run)
        except ArgumentError as error:
            raise CliError(ExitStatus.NOT_FOUND, str(error), *error.hints) from error
        _report(env, registry, found)


def _report(env: Environment, registry: Registry, change: admin.Rules) -> None:
    side = registry_side(env, registry, _KNOWN_WITHIN_S)
    is_dry_run = env.settings.dry_run
    said = admin.ask_brokers(side) if is_dry_run else admin.await_version(side, change.version)
    _warn_of_brokers(env, said, change.version)
    render(env, CHANGE, map(row_of, change.rules))
    if is_dry_run:
        env.note("nothing changed; this was a dry run")


def show(env: Environment, principal: str | None) -> None:
    """Render all rules, or those for one user: also those for everybody."""
    found = _present(env)[0]
    shown = found.rules
    if principal is not None:
        try:
            who = rules.parse_principal(principal)
        except ConfigError as error:
            raise UsageError(str(error)) from error
        shown = tuple(rule for rule in shown if rule.is_of(who))
    render(env, RULES, map(row_of, shown))


def _present(env: Environment) -> tuple[admin.Rules, list[admin.BrokerRules]]:
    """Return the rules, and what brokers say of them; warn of brokers that judge by others."""
    with open_registry(env) as registry:
        found = admin.list_rules(registry.session)
        said = admin.ask_brokers(registry_side(env, registry))
    _warn_of_brokers(env, said, found.version)
    return found, said


def check(env: Environment, question: Rule) -> None:
    """Render how a question is decided, given as the rule that would allow it."""
    found, said = _present(env)
    judge = rules.RuleSet(found.rules, admin.super_users_of(said), version=found.version)
    who, operation, resource = question.principal, question.operation, question.resource
    decision = judge.explain(who, question.host, operation, resource)
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
    if rule.is_prefix or rules.ANY in (rule.resource.name, rule.principal.name):
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
