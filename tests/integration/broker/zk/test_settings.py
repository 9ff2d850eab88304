"""The nodes of settings: written by version, so that no change of another client is lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from functools import partial

import pytest

from broker.errors import CoordinationError, InvalidTopicError, RegistryConflictError
from broker.zk import paths, settings
from broker.zk.session import Session
from broker.zk.settings import SettingsRegistry, node_of_broker, node_of_topic

TOPIC = node_of_topic("t")
Texts = Mapping[str, str]


def test_settings_when_written_then_node_and_announcement_are_as_in_08(session: Session) -> None:
    registry = SettingsRegistry(session)

    changed = registry.change(TOPIC, lambda before: {**before, "retention.ms": "5"})
    registry.change(node_of_broker(3), lambda before: {**before, "log.file.size": "9"})

    assert (changed.before, changed.after) == ({}, {"retention.ms": "5"})
    value, _ = session.get("/config/topics/t")
    assert json.loads(value) == {"version": 1, "config": {"retention.ms": "5"}}
    names = session.children("/config/changes")
    assert names == ["config_change_0000000000", "config_change_0000000001"]
    announced = [json.loads(session.get(f"/config/changes/{name}")[0]) for name in names]
    assert announced == ["t", {"version": 1, "entity_type": "brokers", "entity_name": "3"}]
    assert (registry.topics(), registry.brokers()) == (["t"], [3])


def test_settings_when_nothing_changes_then_nothing_is_written(session: Session) -> None:
    changed = SettingsRegistry(session).change(TOPIC, dict)

    assert (changed.before, changed.after) == ({}, {})
    assert session.exists("/config") is None


def test_settings_when_the_last_one_is_removed_then_the_node_is_deleted(session: Session) -> None:
    registry = SettingsRegistry(session)
    registry.change(TOPIC, lambda _: {"retention.ms": "5"})

    registry.change(TOPIC, lambda _: {})

    assert session.exists(TOPIC.path) is None
    assert registry.read(TOPIC) == {}


@pytest.mark.parametrize("first", [{}, {"flush.ms": "1"}])
def test_settings_when_another_client_changes_them_meanwhile_then_both_changes_are_there(
    session: Session, zookeeper: str, first: Texts
) -> None:
    registry = SettingsRegistry(session)
    registry.change(TOPIC, lambda _: first)
    calls = []

    def edit(before: Texts) -> Texts:
        calls.append(before)
        if len(calls) == 1:
            with Session(zookeeper) as other:
                SettingsRegistry(other).change(TOPIC, lambda now: {**now, "segment.bytes": "9"})
        return {**before, "retention.ms": "5"}

    registry.change(TOPIC, edit)

    assert registry.read(TOPIC) == {**first, "segment.bytes": "9", "retention.ms": "5"}
    assert len(calls) == 2


def test_settings_when_another_client_deletes_them_meanwhile_then_they_are_not_restored(
    session: Session,
) -> None:
    registry = SettingsRegistry(session)
    registry.change(TOPIC, lambda _: {"flush.ms": "1"})

    def edit(before: Texts) -> Texts:
        if before:
            registry.delete(TOPIC)
        return {**before, "retention.ms": "5"}

    registry.change(TOPIC, edit)

    assert registry.read(TOPIC) == {"retention.ms": "5"}


def test_settings_when_many_clients_change_them_then_all_changes_are_there(
    session: Session, zookeeper: str
) -> None:
    def add(name: str, before: Texts) -> Texts:
        return {**before, name: "1"}

    def change(number: int) -> None:
        with Session(zookeeper) as own:
            for step in range(3):
                SettingsRegistry(own).change(TOPIC, partial(add, f"n{number}.{step}"))

    threads = [threading.Thread(target=change, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(SettingsRegistry(session).read(TOPIC)) == 9
    assert len(session.children(paths.SETTINGS_CHANGES)) == 9


def test_settings_when_others_change_them_all_the_time_then_raises_conflict(
    session: Session,
) -> None:
    registry = SettingsRegistry(session)

    def edit(before: Texts) -> Texts:
        session.create_many({paths.TOPIC_SETTINGS: b""}, ephemeral=False)
        if session.exists(TOPIC.path) is None:
            session.create(TOPIC.path, b'{"config":{}}')
        else:
            session.set(TOPIC.path, b'{"config":{}}')
        return {"flush.ms": "1"}

    with pytest.raises(RegistryConflictError, match=f"node {TOPIC.path} is changed"):
        registry.change(TOPIC, edit)


def test_node_when_malformed_then_is_not_changed_but_can_be_deleted(session: Session) -> None:
    registry = SettingsRegistry(session)
    session.create(TOPIC.path, b"{")

    with pytest.raises(CoordinationError, match=f"node {TOPIC.path} is not"):
        registry.change(TOPIC, lambda _: {"flush.ms": "1"})
    assert session.get(TOPIC.path)[0] == b"{"

    assert registry.delete(TOPIC)
    assert not registry.delete(TOPIC)
    assert session.exists(TOPIC.path) is None


def test_announcements_when_older_than_clients_need_then_are_deleted(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = SettingsRegistry(session)
    registry.change(TOPIC, lambda _: {"flush.ms": "1"})
    monkeypatch.setattr(settings, "_CHANGES_KEPT_MS", -1)

    registry.change(TOPIC, lambda _: {"flush.ms": "2"})

    assert session.children(paths.SETTINGS_CHANGES) == []


def test_topic_when_its_name_is_not_valid_then_it_has_no_node() -> None:
    with pytest.raises(InvalidTopicError):
        node_of_topic("../brokers")
