"""Idempotent producers of 0.7 topics whose leaders are killed: each message is there once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.replication.conftest import StartCluster
from tests.integration.replication.pipes import Pipe, Way
from tests.support.command_line import Spawn

pytestmark = pytest.mark.zookeeper

KILLS = 3


def test_kill_leader_when_producers_are_idempotent_then_each_message_is_there_once_and_in_order(
    start_cluster: StartCluster, spawn: Spawn, tmp_path: Path
) -> None:
    cluster = start_cluster(log_file_size="20000")
    ways = [
        Way("bulk", 1, ("-X", "enable.idempotence=true"), pause_s=0.02, lot=300),
        Way("one", 1, ("-X", "enable.idempotence=true", "--sync"), pause_s=0.02, lot=1),
    ]
    pipes = [Pipe(cluster, spawn, one, tmp_path, cluster.zookeeper) for one in ways]
    for _ in range(KILLS):
        for pipe in pipes:
            pipe.await_progress()
            dead = cluster.kill_leader(pipe.partitions[0])
            pipe.await_progress()
            cluster.start(dead)
            cluster.await_full_isr(pipe.partitions)
    for pipe in pipes:
        pipe.finish()
    for pipe in pipes:
        (numbers,) = pipe.stored().values()
        assert numbers == list(range(pipe.fed))
