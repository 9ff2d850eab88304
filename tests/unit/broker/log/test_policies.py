"""Deletion policies that are plug-ins, asked by the retention of a real log manager."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from broker.config import BrokerConfig
from broker.errors import ConfigError
from broker.log import policies
from broker.log.manager import LogManager
from broker.log.policies import ExpiredSegment
from broker.protocol.codec import encode
from broker.topic_settings import parse_overrides
from tests.support.log_fixtures import ManagerFactory
from tests.support.waiting import wait_until

MODULE = "policies_of_a_unit_test"
MESSAGE = encode([b"ab"])
SIZE = len(MESSAGE)


class Policies(ModuleType):
    """A module of policies, which notes what they were asked."""

    def __init__(self) -> None:
        super().__init__(MODULE)
        self.asked: list[ExpiredSegment] = []
        self.released = threading.Event()

    def agree(self, segment: ExpiredSegment) -> bool:
        self.asked.append(segment)
        return True

    def refuse(self, segment: ExpiredSegment) -> bool:
        return False

    def fail(self, segment: ExpiredSegment) -> bool:
        raise OSError("the store is away")

    def forget(self, segment: ExpiredSegment) -> bool:
        return None  # type: ignore[return-value]  # the mistake

    def hang(self, segment: ExpiredSegment) -> bool:
        self.asked.append(segment)
        return self.released.wait(120)


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> Policies:
    found = Policies()
    monkeypatch.setitem(sys.modules, MODULE, found)
    return found


def filled(make_manager: ManagerFactory, policy: str) -> LogManager:
    """A manager whose topics a (of the policy) and b have two segments past retention."""
    manager = make_manager(
        segment_bytes=10,
        retention_bytes=SIZE,
        topic_retention_policy={"a": f"{MODULE}:{policy}"},
    )
    manager.open()
    for topic in "ab":
        for _ in range(3):
            manager.creation.get_or_create(topic, 0).append(MESSAGE, 1)
    return manager


def starts(manager: LogManager) -> list[int]:
    return [log.log_start_offset for log in manager.table.all()]


def test_policy_when_it_agrees_then_segments_are_deleted_after_it_has_seen_them(
    make_manager: ManagerFactory, module: Policies, tmp_path: Path
) -> None:
    manager = filled(make_manager, "agree")

    manager.retention.apply()

    wait_until(lambda: starts(manager) == [2 * SIZE, 2 * SIZE], "the deletion")
    assert [one[:2] + one[3:6] for one in module.asked] == [
        ("a", "0-0", 0, SIZE, SIZE),
        ("a", "0-0", SIZE, 2 * SIZE, SIZE),
    ]
    assert module.asked[0].path.parent == tmp_path / "data" / "a_0"
    assert manager.retention.waits is None


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("refuse", "refuses"),
        ("fail", "failed: OSError: the store is away"),
        ("forget", "returned None"),
    ],
)
def test_policy_when_it_refuses_or_fails_then_segments_stay_and_status_and_log_say_why(
    make_manager: ManagerFactory, caplog: pytest.LogCaptureFixture, policy: str, reason: str
) -> None:
    manager = filled(make_manager, policy)

    manager.retention.apply()

    wait_until(lambda: manager.retention.waits, "the reason")
    assert starts(manager) == [0, 2 * SIZE]
    title = f"topic.log.cleanup.policy={MODULE}:{policy} {reason}"
    assert title in str(manager.retention.waits)
    assert f"retention of a[0-0]: {title}" in caplog.text


def test_policy_when_it_hangs_then_other_logs_go_on_and_nothing_is_deleted_after_the_end(
    make_manager: ManagerFactory, module: Policies, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = filled(make_manager, "hang")
    monkeypatch.setattr(policies, "_LONG_S", 0.0)

    manager.retention.apply()
    wait_until(lambda: module.asked, "the question")
    manager.retention.apply()

    assert starts(manager) == [0, 2 * SIZE]
    assert "has not returned for" in str(manager.retention.waits)
    assert len(module.asked) == 1

    path = module.asked[0].path
    manager.close()
    module.released.set()
    thread = next(iter(manager.retention._plugged.values()))._thread
    assert thread is not None
    thread.join(60)
    assert path.exists()


def test_policy_when_it_cannot_be_loaded_then_the_broker_does_not_start(
    make_manager: ManagerFactory,
) -> None:
    with pytest.raises(ConfigError, match=r"topic\.log\.cleanup\.policy=.*: .* has no 'agre'"):
        filled(make_manager, "agre")


@pytest.mark.parametrize("name", ["cleanup.policy", "log.cleanup.policy"])
def test_policy_when_a_setting_of_a_topic_names_it_then_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="must be one of delete, archive"):
        parse_overrides({name: f"{MODULE}:agree"})
    with pytest.raises(ConfigError, match="changes at a start only"):
        BrokerConfig.dynamic_property("topic.log.cleanup.policy")
