from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support import command_line
from tests.support.command_line import invoke as invoke
from tests.support.command_line import spawn as spawn

StartCluster = Callable[..., ReplicatedCluster]


@pytest.fixture
def start_cluster(
    zookeeper: str,
    tmp_path: Path,
    is_closed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[StartCluster]:
    """Start a cluster of processes; what its brokers logged is shown if the test fails."""
    clusters: list[ReplicatedCluster] = []

    def start(
        broker_count: int = 3,
        *,
        disk_count: int = 1,
        racks: Sequence[str] = (),
        **properties: str,
    ) -> ReplicatedCluster:
        clusters.append(
            ReplicatedCluster(
                zookeeper,
                tmp_path,
                broker_count=broker_count,
                disk_count=disk_count,
                racks=racks,
                is_closed=is_closed,
                **properties,
            )
        )
        for name, text in clusters[-1].access.environment.items():
            monkeypatch.setenv(name, text)
        monkeypatch.setattr(command_line, "arguments", clusters[-1].access.arguments)
        return clusters[-1]

    yield start
    for cluster in clusters:
        cluster.close()
        for log in sorted(tmp_path.glob("broker-*/broker.log")):
            print(f"---- {log.parent.name}\n{log.read_text()}")
