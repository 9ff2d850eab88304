"""Sets and unsets settings in ZooKeeper: validated first, written by version, then awaited."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from broker import errors
from broker.admin.brokers import request_status
from broker.config import BrokerConfig
from broker.protocol.responses import BrokerAddress
from broker.topic_settings import MIN_ISR, PARTITION_COUNT, setting_of
from broker.zk import paths
from broker.zk.replicated_values import decode_assignment
from broker.zk.settings import SettingsChange, SettingsRegistry
from pylogctl.cli.connections import connector
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.config.document import CHANGE, SettingChangeRow
from pylogctl.config.targets import BrokerSettings, Target, settings_in, validate_exists

if TYPE_CHECKING:
    from broker.zk.registry import Registry

_POLL_S = 0.05
_APPLIED_WITHIN_S = 5.0

_Edit = Callable[[Mapping[str, str]], Mapping[str, str]]


def parse_assignments(target: Target, items: Sequence[str]) -> dict[str, str]:
    """Parse texts of the form NAME=VALUE; return the settings under the names that are stored."""
    found: dict[str, str] = {}
    given: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise UsageError(f"'{item}' is not NAME=VALUE")
        name = name.strip()
        (stored, text) = next(iter(_normalize(target, {name: value}).items()))
        key = _key(target, stored)
        if key in given:
            raise UsageError(f"'{given[key]}' and '{name}' set the same")
        given[key] = name
        found[stored] = text
    return found


def set_settings(
    env: Environment,
    registry: Registry,
    target: Target,
    texts: Mapping[str, str],  # from `parse_assignments`
    *,
    may_be_absent: bool,
) -> None:
    """Set settings of a topic or broker, and render what has changed."""
    if not may_be_absent:
        try:
            validate_exists(registry, target)
        except (CliError, errors.TopicNotFoundError) as error:
            when = "when the topic is created" if target.topic else "a broker that is down"
            error.hints = (*error.hints, f"--absent sets it for {when}")
            raise
    if target.topic is not None:
        _validate_for_replicas(registry, target.topic, texts)

    def edit(before: Mapping[str, str]) -> dict[str, str]:
        try:
            valid = target.normalize(before)
        except errors.ConfigError as error:
            raise CliError(
                ExitStatus.CONFLICT,
                f"node {target.node.path} has settings that are not valid: {error}",
                hints=[
                    f"remove them: pylogctl config unset {target.options} NAME",
                    f"or all: pylogctl config unset {target.options} --all",
                ],
            ) from error
        kept = {
            name: text
            for name, text in valid.items()
            if _key(target, name) not in {_key(target, one) for one in texts}
        }
        return {**kept, **texts}

    _change(env, registry, target, edit)


def unset_settings(
    env: Environment, registry: Registry, target: Target, names: Sequence[str]
) -> None:
    """Remove settings of a topic or broker, and render what has changed."""

    def edit(before: Mapping[str, str]) -> dict[str, str]:
        after = dict(before)
        for name in names:
            if name in before:  # also an invalid setting that was written by hand
                after.pop(name, None)
                continue
            key = _key(target, _stored_name(target, name))
            for known in before:
                if _is_valid(target, known) and _key(target, _stored_name(target, known)) == key:
                    after.pop(known, None)
        return after

    _change(env, registry, target, edit)


def unset_all(env: Environment, registry: Registry, target: Target) -> None:
    """Remove all settings of a topic or broker, and render what has changed."""
    settings = SettingsRegistry(registry.session)
    try:
        before = settings.read(target.node)
    except errors.RegistryUnreachableError:
        raise
    except errors.CoordinationError as error:
        env.warn(str(error))
        if env.settings.dry_run:
            env.note(f"node {target.node.path} would be deleted; this was a dry run")
            return
        settings.delete(target.node)
        env.note(f"node {target.node.path} is deleted")
        _await_applied(env, registry, target, {})
        return
    if not env.settings.dry_run:
        settings.delete(target.node)
    _report(env, registry, target, SettingsChange(before, {}))


def _normalize(target: Target, texts: Mapping[str, str]) -> dict[str, str]:
    try:
        return target.normalize(texts)
    except errors.ConfigError as error:
        raise UsageError(
            str(error), hints=[f"try: pylogctl config list {target.options}"]
        ) from error


def _stored_name(target: Target, name: str) -> str:
    """Return the name under which a setting is stored; UsageError if it cannot be set."""
    try:
        if target.topic is None:
            return BrokerConfig.dynamic_property(name).name
        return setting_of(name).property.name
    except errors.ConfigError as error:
        raise UsageError(str(error)) from error


def _is_valid(target: Target, name: str) -> bool:
    try:
        _stored_name(target, name)
    except UsageError:
        return False
    return True


def _key(target: Target, stored_name: str) -> str:
    """Return the identity of a setting, which its names in several units share."""
    return BrokerConfig.property_of(stored_name).field if target.topic is None else stored_name


def _validate_for_replicas(registry: Registry, topic: str, texts: Mapping[str, str]) -> None:
    """Validate settings of a topic against its replicas, if it has any."""
    try:
        value, stat = registry.session.get(paths.replicated_topic(topic))
    except errors.RegistryNodeNotFoundError:
        return
    if PARTITION_COUNT in texts:  # a replicated topic has the partitions of its assignment
        raise UsageError(
            f"topic '{topic}' is replicated: {PARTITION_COUNT} does not say how many partitions "
            "it has",
        )
    replicas = decode_assignment(topic, value, stat.version).replicas.values()
    factor = min(map(len, replicas), default=0)
    if int(texts.get(MIN_ISR, "1")) > max(1, factor):
        raise UsageError(
            f"{MIN_ISR} is {texts[MIN_ISR]}, but topic '{topic}' has {factor} replicas of a "
            "partition: nothing could be published with acks -1"
        )


def _change(env: Environment, registry: Registry, target: Target, edit: _Edit) -> None:
    """Change the node of a target, or with `--dry-run` only show how; wait until it is applied."""
    settings = SettingsRegistry(registry.session)
    if env.settings.dry_run:
        before = settings.read(target.node)
        change = SettingsChange(before, edit(before))
    else:
        change = settings.change(target.node, edit)
    _report(env, registry, target, change)


def _report(env: Environment, registry: Registry, target: Target, change: SettingsChange) -> None:
    names = dict.fromkeys((*change.before, *change.after))
    before, after = change.before.get, change.after.get
    rows = [
        SettingChangeRow(
            target.topic, target.broker_id, name, before(name), after(name), target.node.path
        )
        for name in names
        if before(name) != after(name)
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
    give_up_s = time.monotonic() + env.timeout_s(_APPLIED_WITHIN_S)
    connect = connector(env)
    for broker in registry.brokers():
        if target.broker_id not in (None, broker.id):
            continue
        address = BrokerAddress(broker.id, broker.host, broker.port)
        while True:
            response = request_status(connect, address)
            if response.error is not None:
                env.warn(f"broker {broker.id} does not say whether it is applied: {response.error}")
                break
            found = None if response.document is None else settings_in(response.document)
            if found is None or _is_applied(found, target, wanted):
                break
            if time.monotonic() >= give_up_s:
                problem = found.problems.get(target.node.path, "it has not applied it yet")
                env.warn(f"broker {broker.id}: {problem}")
                break
            time.sleep(_POLL_S)


def _is_applied(broker: BrokerSettings, target: Target, wanted: Mapping[str, str]) -> bool:
    if target.topic is not None:
        return dict(broker.topics.get(target.topic, {})) == dict(wanted)
    return broker.overridden == {_key(target, name) for name in wanted} and (
        broker.now == broker.start.changed(wanted)
    )
