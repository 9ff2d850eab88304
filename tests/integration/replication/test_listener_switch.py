"""Brokers that go over to another listener for each other, one by one, under load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.zk.paths import replicated_broker
from broker.zk.replicated_values import decode_endpoints
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.trial import Trial
from tests.support.certificates import Certificates

pytestmark = [pytest.mark.zookeeper, pytest.mark.open_only("its brokers begin without TLS")]

StartCluster = Callable[..., ReplicatedCluster]


def test_brokers_when_switched_to_tls_one_by_one_under_load_then_nothing_is_lost(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    files = Certificates(tmp_path)
    cluster = start_cluster(
        listeners="SECURE=tls://127.0.0.1:0",
        ssl_certificate_location=str(files.certificate),
        ssl_key_location=str(files.key),
        ssl_ca_location=str(files.ca_file),
    )
    trial = Trial(cluster)
    cluster.properties |= {"inter.broker.listener.name": "SECURE", "ssl.client.auth": "required"}
    for broker_id in (1, 2, 0):
        cluster.await_full_isr(trial.partitions)
        cluster.stop(broker_id)
        cluster.start(broker_id)
        trial.await_progress()
    trial.verdict()

    nodes = cluster.session.get_many({replicated_broker(one): one for one in range(3)})
    chosen = [decode_endpoints(0, value)[0] for value, _ in nodes.values()]
    assert [(one.listener, one.is_tls) for one in chosen] == [("SECURE", True)] * 3
