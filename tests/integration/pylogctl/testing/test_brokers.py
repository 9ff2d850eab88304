"""Brokers for tests of programs: started, stopped, killed and restarted in one process."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import broker
import pylogctl
from pylogctl.testing import Broker, Clock, Faults, ephemeral_cluster
from tests.support.waiting import wait_until

READY_S = 0.05


def texts(client: pylogctl.Client, topic: str = "orders") -> list[str]:
    return [message.text() for message in client.read(topic)]


def test_server_when_used_as_context_manager_then_serves_in_the_block(tmp_path: Path) -> None:
    config = broker.BrokerConfig(data_dirs=(tmp_path,), port=0)
    with broker.Broker(config) as server, pylogctl.connect(f"127.0.0.1:{server.port}") as client:
        client.send("orders", "one")
        assert texts(client) == ["one"]
    with pytest.raises(pylogctl.Unreachable):
        pylogctl.connect(f"127.0.0.1:{server.port}", timeout=1)


def test_broker_when_started_then_is_ready_in_50_ms() -> None:
    took_s = []
    for _ in range(5):  # other processes can have the processor meanwhile
        started_s = time.perf_counter()
        with Broker():
            took_s.append(time.perf_counter() - started_s)
    assert min(took_s) < READY_S


def test_broker_when_closed_then_its_data_are_gone_unless_they_were_the_callers(
    tmp_path: Path,
) -> None:
    with Broker() as one, Broker(data_dir=tmp_path / "kept") as other:
        assert one.data_dir.is_dir()
    assert not one.data_dir.parent.exists()
    assert other.data_dir == tmp_path / "kept"
    assert other.data_dir.is_dir()


def test_broker_when_stopped_then_refuses_and_restarts_on_its_port_with_its_data() -> None:
    with Broker() as one, one.connect() as client:
        client.send("orders", "one")
        address = one.address
        one.stop()
        one.stop()
        with pytest.raises(pylogctl.Unreachable):
            one.connect(timeout=1)
        one.restart()
        assert one.address == address
        client.send("orders", "two")
        assert texts(client) == ["one", "two"]


def test_broker_when_killed_then_leaves_what_a_crash_leaves() -> None:
    with Broker() as one, one.connect() as client:
        client.send("orders", "one")
        one.stop()
        stopped = {path.name for path in one.data_dir.rglob("*")}
        one.restart()
        client.send("orders", "two")
        one.kill()
        killed = {path.name for path in one.data_dir.rglob("*")}
        assert stopped - killed, "an orderly stop marks the directory as clean"
        one.restart()
        assert texts(client) == ["one", "two"]


def test_broker_when_killed_then_a_call_under_way_is_broken_off() -> None:
    with Broker() as one, one.connect(timeout=3) as client:
        client.send("orders", "one")
        with client.read("orders", stop=None) as reader:
            assert next(reader).text() == "one"
            one.kill()
            with pytest.raises(pylogctl.Unreachable):
                next(reader)


def test_broker_when_its_clock_is_set_forward_then_old_messages_go() -> None:
    clock = Clock()
    settings = {"log.retention.hours": "1", "log.file.size": "100"}
    with Broker(settings, clock=clock) as one, one.connect() as client:
        client.send_many("orders", ["x" * 60, "y" * 60])
        clock.advance(minutes=30)
        one.apply_retention()
        assert len(texts(client)) == 2
        clock.advance(minutes=31)
        one.apply_retention()
        assert texts(client) == []
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(seconds=-1)
    with pytest.raises(RuntimeError, match="does not run"):
        one.apply_retention()


@pytest.mark.zookeeper
def test_cluster_when_the_leader_is_killed_then_another_broker_serves_its_messages() -> None:
    settings = {"default.replication.factor": "3"}
    with ephemeral_cluster(3, settings) as cluster, cluster.connect() as client:
        with pytest.raises(IndexError):
            cluster.broker(3)
        partition = client.send("orders", "one").partition
        leader = client._cluster.leader(partition).id
        cluster.broker(leader).kill()
        client.send("orders", "two", partition=partition)
        assert texts(client) == ["one", "two"]
        cluster.broker(leader).restart()
        client.send("orders", "three", partition=partition)
        assert texts(client) == ["one", "two", "three"]


def test_faults_when_none_is_set_then_clients_stay_behind_the_proxy() -> None:
    with Faults() as faults, faults.connect() as client:
        assert client.send("orders", "one").offset == 0
        assert faults.port != faults.broker.port
        faults.drop()
        client.send("orders", "two")
        assert texts(client) == ["one", "two"]


def test_faults_when_responses_are_delayed_then_a_call_takes_longer_or_times_out() -> None:
    with Faults() as faults, faults.connect() as client:
        client.send("orders", "one")
        faults.delay(0.2)
        started_s = time.monotonic()
        client.send("orders", "two")
        assert time.monotonic() - started_s >= 0.2
        with pytest.raises(pylogctl.TimedOut):
            client.send("orders", "three", timeout=0.1)
        faults.delay(0)
        wait_until(lambda: texts(client) == ["one", "two", "three"], "the third message")


def test_faults_when_cut_then_the_response_is_lost_and_the_request_carried_out() -> None:
    with Faults() as faults, faults.connect() as client:
        client.send("orders", "one")
        faults.cut_after(0)
        client.send("orders", "two")
        assert texts(client) == ["one", "two", "two"]  # at least once


def test_faults_when_the_broker_behind_is_down_then_connections_end() -> None:
    with Faults() as faults:
        faults.broker.stop()
        with pytest.raises(pylogctl.Unreachable):
            faults.connect(timeout=1)
        faults.broker.restart()
        with faults.connect() as client:
            assert client.topics() == []
