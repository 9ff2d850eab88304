"""The calls of a client on settings of topics and brokers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from broker.api.access import Access
from broker.api.values import (
    UNSET,
    Timeout,
    broker_id_of,
    setting_name_of,
    setting_texts_of,
    topic_of,
)
from broker.errors import PartialError

if TYPE_CHECKING:  # what does the work is imported by the calls, as most programs make none of them
    from broker.admin.settings import Setting, Target
    from broker.admin.settings_changes import SettingChange
    from broker.zk.registry import Registry
    from broker.zk.settings import SettingsChange


class SettingCalls(Access):
    """The calls of a client on settings: of a topic or of a broker, of which one is named.

    Settings that change while brokers run are kept in ZooKeeper, and go over those of the brokers'
    files.
    """

    def settings(
        self, *, topic: str | None = None, broker: int | None = None, timeout: Timeout = UNSET
    ) -> dict[str, Setting]:
        """Return the settings that are in effect for a topic, or on a broker, by name.

        Of a broker's setting with several units it is the name in whose unit the value is a whole
        number, such as `log.retention.minutes`.

        Raises:
            UnknownTopic, UnknownBroker: there is none.
            Unreachable, TimedOut: the broker does not respond.
            Partial: some brokers do not tell those of the topic; `done` has the dict of the others.
            NotSupported: the broker is of Kafka 0.7.
        """
        from broker.admin.settings import settings_of_broker, settings_of_topic

        _validate_one(topic, broker)
        with self._asking(timeout) as side:
            if topic is not None:
                return settings_of_topic(side, topic)
            assert broker is not None  # `_validate_one`
            return settings_of_broker(side, broker)

    def set_settings(
        self,
        values: Mapping[str, int | bool | str],
        *,
        topic: str | None = None,
        broker: int | None = None,
        may_be_absent: bool = False,
        plan: bool = False,
        timeout: Timeout = UNSET,
    ) -> list[SettingChange]:
        """Set settings, for good, and return what has changed once the brokers apply it.

        A call that is repeated after an error changes what is left to change.

        Args:
            values: by name, also that of Kafka 0.7 or 0.8; numbers in the unit of the name.
            topic: the topic whose settings they are.
            broker: or the broker.
            may_be_absent: whether the topic may not be created yet, or the broker be down.
            plan: whether to return what would change, and change nothing.
            timeout: seconds until the brokers apply it; by default the client's.

        Raises:
            ArgumentError: a name is unknown, a value out of range, or the broker needs a restart.
            UnknownTopic, UnknownBroker: there is none.
            Conflict: what is set already is not valid.
            Partial: it is set, and `failed` are brokers that have not applied it yet.
            NoZooKeeper: the brokers' ZooKeeper cannot be reached from here.
        """
        from broker.admin import settings_changes

        _validate_one(topic, broker)
        given = setting_texts_of(values)
        with self._call():
            target = _target(topic, broker)
            texts = settings_changes.normalize_pairs(target, given.items())
            registry = self._zookeeper()
            change = settings_changes.set_settings(
                registry, target, texts, may_be_absent=may_be_absent, is_dry_run=plan
            )
            if not plan:
                self._await_applied(registry, target, change, timeout)
            return settings_changes.changes_of(target, change)

    def unset_settings(
        self,
        names: Collection[str] | None,
        *,
        topic: str | None = None,
        broker: int | None = None,
        plan: bool = False,
        timeout: Timeout = UNSET,
    ) -> list[SettingChange]:
        """Remove settings, so that those of the brokers' files hold again.

        Args:
            names: of the settings; None for all, which also removes what cannot be read.
            topic: the topic whose settings they are.
            broker: or the broker.
            plan: whether to return what would change, and change nothing.
            timeout: seconds until the brokers apply it; by default the client's.

        Raises:
            ArgumentError, Partial, NoZooKeeper: as for `set_settings`.
        """
        from broker.admin import settings_changes

        _validate_one(topic, broker)
        if isinstance(names, str | bytes) or not isinstance(names, Collection | None):
            raise TypeError(f"give names as a list of str, not {type(names).__name__}")
        with self._call():
            target = _target(topic, broker)
            registry = self._zookeeper()
            if names is None:
                change, _ = settings_changes.unset_all(registry, target, is_dry_run=plan)
            else:
                change = settings_changes.unset_settings(
                    registry, target, [setting_name_of(one) for one in names], is_dry_run=plan
                )
            if not plan:
                self._await_applied(registry, target, change, timeout)
            return settings_changes.changes_of(target, change)

    def _await_applied(
        self, registry: Registry, target: Target, change: SettingsChange, timeout: Timeout
    ) -> None:
        from broker.admin.settings_changes import await_applied, changes_of
        from broker.client.registry_cluster import RegistryCluster

        side = self._side(timeout)._replace(cluster=RegistryCluster(registry))
        if late := await_applied(side, target, change.after):
            raise PartialError(
                f"the settings are changed, and {len(late)} brokers have not applied that: "
                f"{late[0].text}",
                changes_of(target, change),
                {f"broker {one.broker_id}": one.error for one in late},
            )


def _validate_one(topic: object, broker: object) -> None:
    if (topic is None) == (broker is None):
        raise TypeError("give one: topic= or broker=")
    if topic is not None:
        topic_of(topic)
    else:
        broker_id_of(broker)


def _target(topic: str | None, broker: int | None) -> Target:
    from broker.admin.settings import target_of_broker, target_of_topic

    if topic is not None:
        return target_of_topic(topic)
    assert broker is not None  # `_validate_one`
    return target_of_broker(broker)
