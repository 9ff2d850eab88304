"""Sets and unsets settings in ZooKeeper: validated first, written by version, then awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from broker import deadlines, errors
from broker.admin.brokers import request_status
from broker.admin.settings import (
    BrokerSettings,
    SettingValue,
    Target,
    settings_in,
    validate_exists,
    value_of,
)
from broker.client.side import Side
from broker.config import BrokerConfig
from broker.properties import Property
from broker.protocol.extension_requests import StatusParts
from broker.protocol.responses import BrokerAddress
from broker.topic import FORMAT_07
from broker.topic_settings import MIN_ISR, PARTITION_COUNT, setting_of, validate_for_format
from broker.zk import paths
from broker.zk.replicated_values import decode_assignment
from broker.zk.settings import SettingsChange, SettingsRegistry

if TYPE_CHECKING:
    from broker.zk.registry import Registry

_Edit = Callable[[Mapping[str, str]], Mapping[str, str]]


class SettingChange(NamedTuple):
    """A setting that is, or would be, changed; None where it is not set in ZooKeeper."""

    name: str
    before: SettingValue | None
    after: SettingValue | None


class NotApplied(NamedTuple):
    """A live broker that has not applied settings, or does not say whether it has."""

    broker_id: int
    text: str  # names the broker
    error: errors.BrokerError


def normalize_pairs(target: Target, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return texts by the names that are stored; `ArgumentError` if two set the same."""
    found: dict[str, str] = {}
    given: dict[str, str] = {}
    for name, value in pairs:
        try:
            (stored, text) = next(iter(target.normalize({name: value}).items()))
        except errors.ConfigError as error:
            raise errors.ArgumentError(
                str(error), hints=[f"try: pylogctl config list {target.options}"]
            ) from error
        key = _key(target, stored)
        if key in given:
            raise errors.ArgumentError(f"'{given[key]}' and '{name}' set the same")
        given[key] = name
        found[stored] = text
    return found


def set_settings(
    registry: Registry,
    target: Target,
    texts: Mapping[str, str],  # from `normalize_pairs`
    *,
    may_be_absent: bool,
    is_dry_run: bool,
) -> SettingsChange:
    """Set settings of a topic or broker."""
    if not may_be_absent:
        validate_exists(registry, target)
    if target.topic is not None:
        _validate_for_replicas(registry, target.topic, texts, may_be_absent=may_be_absent)

    def edit(before: Mapping[str, str]) -> dict[str, str]:
        try:
            valid = target.normalize(before)
        except errors.ConfigError as error:
            raise errors.ConflictError(
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

    return _change(registry, target, edit, is_dry_run=is_dry_run)


def unset_settings(
    registry: Registry, target: Target, names: Iterable[str], *, is_dry_run: bool
) -> SettingsChange:
    """Remove settings of a topic or broker."""

    def edit(before: Mapping[str, str]) -> dict[str, str]:
        after = dict(before)
        for name in names:
            if name in before:  # also an invalid setting that was written by hand
                after.pop(name, None)
                continue
            key = _key(target, _property(target, name).name)
            for known in before:
                with suppress(errors.ArgumentError):  # one that cannot be set
                    if _key(target, _property(target, known).name) == key:
                        after.pop(known, None)
        return after

    return _change(registry, target, edit, is_dry_run=is_dry_run)


def unset_all(
    registry: Registry, target: Target, *, is_dry_run: bool
) -> tuple[SettingsChange, str]:
    """Remove all settings of a topic or broker; also return why they cannot be read, if so."""
    settings = SettingsRegistry(registry.session)
    before: Mapping[str, str] = {}
    damage = ""
    try:
        before = settings.read(target.node)
    except errors.RegistryUnreachableError:
        raise
    except errors.CoordinationError as error:
        damage = str(error)
    if not is_dry_run:
        settings.delete(target.node)
    return SettingsChange(before, {}), damage


def changes_of(target: Target, change: SettingsChange) -> list[SettingChange]:
    """Return the settings that differ, with their values; a text that is not valid stays one."""
    before, after = change.before.get, change.after.get
    return [
        SettingChange(name, _value(target, name, before(name)), _value(target, name, after(name)))
        for name in dict.fromkeys((*change.before, *change.after))
        if before(name) != after(name)
    ]


def _value(target: Target, name: str, text: str | None) -> SettingValue | None:
    try:
        return None if text is None else value_of(_property(target, name), text)
    except (errors.ArgumentError, ValueError):
        return text


def _property(target: Target, name: str) -> Property:
    """Return the property of a setting as it is stored; `ArgumentError` if it cannot be set."""
    try:
        if target.topic is None:
            return BrokerConfig.dynamic_property(name)
        return setting_of(name).property
    except errors.ConfigError as error:
        raise errors.ArgumentError(str(error)) from error


def _key(target: Target, stored_name: str) -> str:
    """Return the identity of a setting, which its names in several units share."""
    return BrokerConfig.property_of(stored_name).field if target.topic is None else stored_name


def _validate_for_format(topic: str, format: str, texts: Mapping[str, str]) -> None:
    try:
        validate_for_format(topic, format, texts)
    except errors.ConfigError as error:
        raise errors.ArgumentError(str(error)) from error


def _validate_for_replicas(
    registry: Registry, topic: str, texts: Mapping[str, str], *, may_be_absent: bool
) -> None:
    """Validate settings of a topic against its format, and its replicas, if it has any."""
    try:
        value, stat = registry.session.get(paths.replicated_topic(topic))
    except errors.RegistryNodeNotFoundError:
        if not may_be_absent:
            _validate_for_format(topic, FORMAT_07, texts)
        return
    if PARTITION_COUNT in texts:  # a replicated topic has the partitions of its assignment
        raise errors.ArgumentError(
            f"topic '{topic}' is replicated: {PARTITION_COUNT} does not say how many partitions "
            "it has"
        )
    replicas = decode_assignment(topic, value, stat.version).replicas
    for partition in [*replicas][:1]:
        _validate_for_format(topic, partition.format, texts)
    factor = min(map(len, replicas.values()), default=0)
    if int(texts.get(MIN_ISR, "1")) > max(1, factor):
        raise errors.ArgumentError(
            f"{MIN_ISR} is {texts[MIN_ISR]}, but topic '{topic}' has {factor} replicas of a "
            "partition: nothing could be published with acks -1"
        )


def _change(registry: Registry, target: Target, edit: _Edit, *, is_dry_run: bool) -> SettingsChange:
    settings = SettingsRegistry(registry.session)
    if not is_dry_run:
        return settings.change(target.node, edit)
    before = settings.read(target.node)
    return SettingsChange(before, edit(before))


def await_applied(side: Side, target: Target, wanted: Mapping[str, str]) -> list[NotApplied]:
    """Wait until live brokers have applied settings; return those that will apply them later."""
    give_up_s = side.give_up_s
    late = []
    for broker in side.brokers():
        if target.broker_id not in (None, broker.id):
            continue

        def look(broker: BrokerAddress = broker) -> NotApplied | None:
            response = request_status(side.connect, broker, StatusParts.SETTINGS)
            if (error := response.error) is not None:
                text = f"broker {broker.id} does not say whether it is applied: {error}"
                late.append(NotApplied(broker.id, text, error))
                return None
            found = None if response.document is None else settings_in(response.document)
            if found is None or _is_applied(found, target, wanted):
                return None
            return _late(found, target)

        if (found := deadlines.remaining(look, give_up_s)) is not None:
            late.append(found)
    return late


def _late(broker: BrokerSettings, target: Target) -> NotApplied:
    problem = broker.problems.get(target.node.path)
    if problem is not None:
        return NotApplied(broker.id, f"broker {broker.id}: {problem}", errors.ConfigError(problem))
    text = f"broker {broker.id}: it has not applied it yet"
    return NotApplied(broker.id, text, errors.RequestTimeoutError(text))


def _is_applied(broker: BrokerSettings, target: Target, wanted: Mapping[str, str]) -> bool:
    if target.topic is not None:
        return dict(broker.topics.get(target.topic, {})) == dict(wanted)
    return broker.overridden == {_key(target, name) for name in wanted} and (
        broker.now == broker.start.changed(wanted)
    )
