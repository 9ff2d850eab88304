"""What rows about topics say of what is not known, and how plans of moves are read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from broker.admin.cluster import BrokerInfo
from broker.admin.topics import PartitionInfo, TopicInfo
from broker.topic import TopicPartition
from pylogctl.cli.columns import UNKNOWN, by_column
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.topic.document import partition_row, topic_row
from pylogctl.topic.replication import read_plan

PARTITION = TopicPartition("t", 0, 1)


@pytest.mark.parametrize(
    ("size_bytes", "offline", "state"),
    [(5, 0, "ok"), (None, 0, UNKNOWN), (None, 1, "offline"), (5, 1, "offline")],
)
def test_topic_when_a_broker_is_silent_then_is_not_said_to_be_ok(
    size_bytes: int | None, offline: int, state: object
) -> None:
    row = topic_row(TopicInfo("t", 2, None, (0,), size_bytes, offline), None)
    assert (row["state"], row["messages"]) == (state, UNKNOWN)


@pytest.mark.parametrize(
    ("lags", "lag"), [({}, None), ({1: None, 2: 7}, UNKNOWN), ({1: 0, 2: 7}, 7)]
)
@pytest.mark.parametrize("leader", [0, None])
def test_lag_when_there_are_no_followers_then_there_is_none_and_else_the_longest_or_unknown(
    lags: dict[int, int | None], lag: object, leader: int | None
) -> None:
    one = PartitionInfo(partition=PARTITION, leader=leader, replicas=(0,), in_sync=(0,), lags=lags)
    assert partition_row(one)["lag"] == lag


def test_broker_when_partitions_are_offline_then_shows_how_many_and_hides_which() -> None:
    one = BrokerInfo(1, None, "", False, False, 0, 2, 2, 0, ("t[1-0]", "t[1-1]"))
    row = by_column(one)
    assert (row["offline"], row["offline_partitions"]) == (2, ["t[1-0]", "t[1-1]"])


@pytest.mark.parametrize("target", ["12", "1,2", 12, None, {"1": 2}])
def test_plan_when_a_target_is_no_list_then_is_refused(tmp_path: Path, target: Any) -> None:
    plan = tmp_path / "plan.json"
    step = {"topic": "t", "partition": "0-1", "target": target}
    plan.write_text(json.dumps({"data": [step]}), encoding="utf-8")
    with pytest.raises(UsageError, match=r"is no plan: target .* of t\[0-1\] is no list of broker"):
        read_plan(cast(Environment, None), plan)


def test_plan_when_targets_are_lists_then_is_read(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    step = {"topic": "t", "partition": "0-1", "target": [12, 0]}
    plan.write_text(json.dumps({"data": [step]}), encoding="utf-8")
    assert read_plan(cast(Environment, None), plan) == {PARTITION: (12, 0)}
