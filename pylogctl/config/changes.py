"""Sets and unsets settings, and shows what has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.admin import settings_changes
from broker.admin.settings import Target
from broker.errors import BrokerNotFoundError, TopicNotFoundError
from broker.zk.registry import Registry
from broker.zk.settings import SettingsChange
from pylogctl.cli.connections import registry_side
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.render import render
from pylogctl.config.document import CHANGE, SettingChangeRow
from pylogctl.config.reads import open_target

_APPLIED_WITHIN_S = 5.0


def _parse_assignments(target: Target, items: Sequence[str]) -> dict[str, str]:
    """Parse texts of the form NAME=VALUE; return the settings under the names that are stored."""
    pairs = []
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise UsageError(f"'{item}' is not NAME=VALUE")
        pairs.append((name.strip(), value))
    return settings_changes.normalize_pairs(target, pairs)


def set_settings(
    env: Environment,
    topic: str | None,
    broker: str | None,
    assignments: Sequence[str],
    *,
    may_be_absent: bool,
) -> None:
    """Set settings of a topic or broker, NAME=VALUE each, and render what has changed."""
    is_dry_run = env.settings.dry_run
    with open_target(env, topic, broker) as (registry, target):
        texts = _parse_assignments(target, assignments)
        try:
            change = settings_changes.set_settings(
                registry, target, texts, may_be_absent=may_be_absent, is_dry_run=is_dry_run
            )
        except (BrokerNotFoundError, TopicNotFoundError) as error:
            when = "when the topic is created" if target.topic else "a broker that is down"
            error.hints = (*error.hints, f"--absent sets it for {when}")
            raise
        _report(env, registry, target, change)


def unset_settings(
    env: Environment, topic: str | None, broker: str | None, names: Sequence[str]
) -> None:
    """Remove settings of a topic or broker, all without names, and render what has changed."""
    is_dry_run = env.settings.dry_run
    with open_target(env, topic, broker) as (registry, target):
        if names:
            change = settings_changes.unset_settings(registry, target, names, is_dry_run=is_dry_run)
            _report(env, registry, target, change)
        else:
            _unset_all(env, registry, target)


def _unset_all(env: Environment, registry: Registry, target: Target) -> None:
    change, damage = settings_changes.unset_all(registry, target, is_dry_run=env.settings.dry_run)
    if not damage:
        _report(env, registry, target, change)
        return
    env.warn(damage)
    if env.settings.dry_run:
        env.note(f"node {target.node.path} would be deleted; this was a dry run")
        return
    env.note(f"node {target.node.path} is deleted")
    _await_applied(env, registry, target, {})


def _report(env: Environment, registry: Registry, target: Target, change: SettingsChange) -> None:
    before, after = change.before.get, change.after.get
    rows = [
        SettingChangeRow(
            target.topic, target.broker_id, name, before(name), after(name), target.node.path
        )
        for name, *_ in settings_changes.changes_of(target, change)
    ]
    render(env, CHANGE, rows)
    if env.settings.dry_run:
        env.note("nothing changed; this was a dry run")
    elif rows:
        env.flush()
        _await_applied(env, registry, target, change.after)


def _await_applied(
    env: Environment, registry: Registry, target: Target, wanted: Mapping[str, str]
) -> None:
    """Wait until live brokers have applied settings; warn of those that will apply them later."""
    side = registry_side(env, registry, _APPLIED_WITHIN_S)
    for late in settings_changes.await_applied(side, target, wanted):
        env.warn(late.text)
