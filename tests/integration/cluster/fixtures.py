"""Broker processes with a registry, shared by all tests of groups."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.zk.embedded import EmbeddedZooKeeper
from tests.integration.cluster.group_harness import Cluster


@pytest.fixture(scope="session")
def shared_cluster(
    zookeeper_server: EmbeddedZooKeeper,
    tmp_path_factory: pytest.TempPathFactory,
    *,
    is_closed: bool,
) -> Iterator[Cluster]:
    """Two brokers; every topic has four partitions on each."""
    chroot = f"{zookeeper_server.connect}/{uuid.uuid4().hex}"
    cluster = Cluster(chroot, tmp_path_factory.mktemp("cluster"), is_closed=is_closed)
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The shared brokers without any members; those that a test starts end with it."""
    shared_cluster.connect()
    yield shared_cluster
    shared_cluster.disconnect()


@pytest.fixture
def topic() -> str:
    """A topic of the test's own, which is also a group's name."""
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    """A directory for what a test's processes write."""
    return tmp_path
