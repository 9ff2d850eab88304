from __future__ import annotations

from tests.integration.cluster.fixtures import cluster as cluster
from tests.integration.cluster.fixtures import shared_cluster as shared_cluster
from tests.integration.cluster.fixtures import topic as topic
from tests.integration.cluster.fixtures import work_dir as work_dir
