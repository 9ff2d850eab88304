"""What the interop tests share with the integration tests: a real ZooKeeper, broker processes."""

from __future__ import annotations

from tests.integration.conftest import cluster as cluster
from tests.integration.conftest import java as java
from tests.integration.conftest import shared_cluster as shared_cluster
from tests.integration.conftest import topic as topic
from tests.integration.conftest import work_dir as work_dir
from tests.integration.conftest import zookeeper as zookeeper
from tests.integration.conftest import zookeeper_dir as zookeeper_dir
from tests.integration.conftest import zookeeper_server as zookeeper_server
