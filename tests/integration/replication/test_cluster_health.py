"""`pylogctl cluster describe` and `health` of brokers that are killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pylogctl.cli.errors import ExitStatus
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartCluster = Callable[..., ReplicatedCluster]


def test_broker_when_killed_then_all_that_show_brokers_name_it_until_it_is_back(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(2)
    (partition,) = cluster.create_topic("t", 1, 2)
    cluster.await_full_isr([partition])

    def ask(command: str) -> dict[Any, dict[str, Any]]:
        result = invoke("cluster", command, "-Z", cluster.zookeeper, "--output", "json")
        expected = (ExitStatus.OK, ExitStatus.THRESHOLD if command == "health" else ExitStatus.OK)
        assert result.status in expected, result.stderr
        rows = json.loads(result.text)["data"]
        return {row["check" if command == "health" else "broker"]: row for row in rows}

    cluster.kill(1)
    wait_until(lambda: not ask("describe")[1]["live"], "the end of its session", deadline_s=60)
    row = ask("describe")[1]
    assert (row["address"], row["leads"], row["replicas"]) == (None, 0, 1)
    assert row["state"] == "DOWN"
    assert ask("health")["brokers not there"]["all"] == ["broker 1"]
    for where in ("-Z", cluster.zookeeper), ("-b", cluster.listed()):
        listed = invoke("broker", "list", *where, "--output", "json")
        here, away = json.loads(listed.text)["data"]
        assert (here["state"], away["state"], away["first_topics"]) == ("up", "DOWN", "t"), where
        every = invoke("broker", "status", *where, "--output", "json")
        phases = {row["broker"]: row["phase"] for row in json.loads(every.text)["data"]}
        assert (every.status, phases) == (ExitStatus.PARTIAL, {0: "running", 1: "down"}), where
        one = invoke("broker", "status", "1", *where)
        assert one.status == ExitStatus.UNREACHABLE, where
        assert "broker 1 is down: it is not registered, and has logs of t" in one.stderr
        assert invoke("broker", "status", "7", *where).status == ExitStatus.NOT_FOUND
        assert invoke("broker", "stop", "1", *where, "--yes").status == ExitStatus.UNREACHABLE
        doctor = invoke("doctor", *where)
        assert doctor.status == ExitStatus.FAILED, where
        assert "broker 1 is down" in doctor.text

    cluster.start(1)
    wait_until(lambda: ask("describe")[1]["live"], "its registration", deadline_s=60)
    assert ask("health")["brokers not there"]["result"] == "ok"
