"""What the interop tests share with the integration tests: a real ZooKeeper, broker processes."""

from __future__ import annotations

from tests.integration.cluster.fixtures import cluster as cluster
from tests.integration.cluster.fixtures import shared_cluster as shared_cluster
from tests.integration.cluster.fixtures import topic as topic
from tests.integration.cluster.fixtures import work_dir as work_dir
from tests.support.zookeeper import java as java
from tests.support.zookeeper import zookeeper as zookeeper
from tests.support.zookeeper import zookeeper_dir as zookeeper_dir
from tests.support.zookeeper import zookeeper_server as zookeeper_server
