"""Brokers of which one is the controller, with a real ZooKeeper."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from broker.client.controller_client import ask_controller
from broker.protocol.cluster_requests import CreateReplicatedTopicRequest
from broker.protocol.replica_requests import PARTITIONS
from tests.integration.broker.factories import BrokerFactory, ConnectionFactory, address_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


def test_topic_when_created_then_defaults_are_the_brokers_and_each_new_role_is_a_line(
    start_broker: BrokerFactory,
    open_connection: ConnectionFactory,
    zookeeper: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "broker.state_change")
    brokers = [
        start_broker(
            broker_id=broker_id,
            data_dir=tmp_path / str(broker_id),
            zookeeper=zookeeper,
            min_insync_replicas=2,
        )
        for broker_id in range(2)
    ]

    body = ask_controller(
        [address_of(one) for one in brokers],
        open_connection,
        CreateReplicatedTopicRequest("t", 1, 2, ()),
        timeout_s=60,
    )

    (created,) = PARTITIONS.decode(body)
    assert created.min_isr == 2
    leader = created.state.leader
    where = f"controller epoch 1: {created.partition}: leader epoch 0: broker"
    wait_until(lambda: f"{where} {leader} leads" in caplog.text, "the line of the leader")
    wait_until(lambda: f"{where} {1 - leader} follows" in caplog.text, "that of the follower")
    assert f"decided leader {leader}, in sync" in caplog.text
