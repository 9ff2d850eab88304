"""`topic alter` of topics that were created without replicas."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from broker.topic import TopicPartition
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.conftest import StartCluster
from tests.integration.replication.pipes import Pipe, Way
from tests.support.command_line import Invoke, Spawn
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

TOPIC = "turns"
PARTITIONS = [TopicPartition(TOPIC, home, index) for home in range(3) for index in range(2)]


def numbers_in(path: Path) -> list[int]:
    """Return the numbers in the whole lines of a file that is being written."""
    return [int(line) for line in path.read_text().split("\n")[:-1]]


@pytest.mark.slow
def test_alter_when_a_pipe_and_a_group_run_then_nothing_is_missing_or_read_twice(
    start_cluster: StartCluster, invoke: Invoke, spawn: Spawn, tmp_path: Path
) -> None:
    cluster = start_cluster()
    place = ("-Z", cluster.zookeeper)
    assert invoke("topic", "create", TOPIC, "--partitions-per-broker", "2", *place).status == 0
    way = Way(TOPIC, len(PARTITIONS), ("--partitioner", "round-robin"))
    pipe = Pipe(cluster, spawn, way, tmp_path, cluster.zookeeper, PARTITIONS)
    output = tmp_path / "consumed"
    reading = ("consume", TOPIC, "--group", "g", "-o", "start", *place)
    try:
        with output.open("wb") as file:
            group = spawn(*reading, stdout=file)
        wait_until(lambda: len(numbers_in(output)) > 100, "messages in the group")

        altered = invoke("topic", "alter", TOPIC, "--replication-factor", "3", "--yes", *place)
        assert altered.status == 0, altered.stderr
        cluster.await_full_isr(PARTITIONS)
        pipe.await_progress()
        pipe.finish()
        stored = Counter(number for some in pipe.stored().values() for number in some)

        assert stored == Counter(range(pipe.fed))
        wait_until(lambda: len(numbers_in(output)) >= pipe.fed, "all messages in the group")
        group.send_signal(signal.SIGTERM)
        group.wait(60)
        assert Counter(numbers_in(output)) == stored
    finally:
        pipe.end()
    compared = invoke("log", "compare", TOPIC, *place, "--output", "json")
    assert compared.status == 0, compared.text
    assert [one["copies"] for one in json.loads(compared.text)["data"]]

    cluster.kill_replaceable(0, PARTITIONS)
    produced = invoke("produce", TOPIC, "--partitioner", "round-robin", *place, stdin=b"1\n2\n3\n")
    assert produced.status == 0, produced.stderr
    again = invoke(*reading, "--exit-at-end")
    assert sorted(again.text.split()) == ["1", "2", "3"], again.stderr


def test_alter_when_a_home_is_killed_at_once_then_it_leads_again_with_all_it_had(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    place = ("-Z", cluster.zookeeper)
    group = ("consume", TOPIC, "--group", "g", "-o", "start", "--exit-at-end", *place)
    lines = [str(number) for number in range(1000)]
    data = "".join(f"{line}\n" for line in lines).encode()
    assert invoke("topic", "create", TOPIC, "--partitions-per-broker", "2", *place).status == 0
    assert invoke("produce", TOPIC, "-p", "0-0", *place, stdin=data).status == 0
    assert invoke(*group).text.split() == lines

    altered = invoke("topic", "alter", TOPIC, "--replication-factor", "3", "--yes", *place)
    assert altered.status == 0, altered.stderr
    cluster.kill(0)
    cluster.start(0)
    cluster.await_full_isr(PARTITIONS)

    assert invoke("produce", TOPIC, "-p", "0-0", *place, stdin=b"last\n").status == 0
    assert invoke(*group).text.split() == ["last"]
    cluster.await_equal_logs(PARTITIONS[0])
    everything = invoke("consume", TOPIC, "-p", "0-0", "--from-beginning", "--exit-at-end", *place)
    assert everything.text.split() == [*lines, "last"]


def test_alter_when_a_home_is_away_then_refused_by_name_and_no_replicas(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    place = ("-Z", cluster.zookeeper)
    assert invoke("topic", "create", TOPIC, "--partitions-per-broker", "2", *place).status == 0
    cluster.stop(2)

    refused = invoke("topic", "alter", TOPIC, "--replication-factor", "2", "--yes", *place)

    assert refused.status == ExitStatus.CONFLICT, refused.stderr
    assert "cannot get replicas while its brokers [2] are away" in refused.stderr
    assert cluster.state(PARTITIONS[0]) is None


def test_alter_when_not_confirmed_or_a_dry_run_then_nothing_is_changed(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(2)
    place = ("-Z", cluster.zookeeper)
    alter = ("topic", "alter", TOPIC, "--replication-factor", "2", *place)
    assert invoke("topic", "create", TOPIC, "--partitions-per-broker", "2", *place).status == 0

    assert invoke(*alter).status == ExitStatus.DECLINED
    planned = invoke(*alter, "--dry-run")
    assert (planned.status, "4 partitions would get 2 replicas" in planned.stderr) == (0, True)
    many = invoke(*alter, "--replication-factor", "3", "--yes")
    assert (many.status, "cannot have 3 replicas" in many.stderr) == (ExitStatus.CONFLICT, True)
    assert cluster.state(PARTITIONS[0]) is None


def test_alter_partitions_when_the_topic_has_no_replicas_then_each_home_adds_them(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(2)
    place = ("-Z", cluster.zookeeper)
    alter = ("topic", "alter", TOPIC, "--partitions")
    assert invoke("topic", "create", TOPIC, "--partitions-per-broker", "2", *place).status == 0

    odd = invoke(*alter, "5", *place)
    assert odd.status == ExitStatus.CONFLICT
    assert "it can have --partitions 6 (--partitions-per-broker 3)" in odd.stderr
    planned = invoke(*alter, "6", *place, "--dry-run", "--output", "json")
    assert [one["before"] for one in json.loads(planned.text)["data"]] == [2, 2]
    unasked = invoke(*alter, "6", *place)
    assert unasked.status == ExitStatus.DECLINED
    added = invoke(*alter, "6", *place, "--yes", "--output", "json")
    assert added.status == 0, added.stderr
    assert f"topic {TOPIC}: 6 partitions, 3 on each of brokers" in added.stderr
    assert [one["partitions"] for one in json.loads(added.text)["data"]] == [3, 3]
    produced = invoke("produce", TOPIC, "-p", "1-2", *place, stdin=b"1\n")
    assert produced.status == 0, produced.stderr
    for fewer in ("6", "2"):
        refused = invoke(*alter, fewer, *place)
        assert refused.status == ExitStatus.CONFLICT
        assert "cannot become fewer" in refused.stderr
    with_replicas = invoke("topic", "alter", TOPIC, "--replication-factor", "2", "--yes", *place)
    assert with_replicas.status == 0, with_replicas.stderr
    found = TopicPartition(TOPIC, 1, 2)
    cluster.await_full_isr([found])
    cluster.await_equal_logs(found)
