"""The calls of the Python API on brokers and the cluster."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import pylogctl
from broker.config import BrokerConfig
from broker.log.format import segment_name
from broker.server.broker import Broker as Server
from broker.topic import TopicPartition
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.session import Session
from pylogctl.testing import Broker, Cluster, ephemeral_cluster
from tests.integration.broker.factories import BrokerFactory
from tests.integration.broker.peers import Server as Peer
from tests.integration.broker.peers import as_true_07_broker, stay_silent
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

Call = Callable[[pylogctl.Client], object]


@contextmanager
def serving(
    data_dir: Path, own_zookeeper: EmbeddedZooKeeper | None = None, **settings: object
) -> Iterator[Server]:
    """Run a broker that ends when a client asks for it, as the process of one does."""
    config = BrokerConfig(port=port_of_its_own(), data_dirs=(data_dir,), **settings)  # type: ignore[arg-type]  # test settings by name
    server = Server(config, runs_zookeeper=own_zookeeper is not None)
    server.start()

    def run() -> None:
        server.wait_for_shutdown_request()
        server.stop()
        if own_zookeeper is not None:
            own_zookeeper.stop()

    process = threading.Thread(target=run)
    process.start()
    try:
        yield server
    finally:
        server.request_shutdown(force=True)
        process.join(60)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(2, {"broker.rack": "here"}) as running:
        with running.connect() as client:
            client.send("t", "x")
        yield running


@pytest.fixture
def broker_of_07(pylog_broker: Broker) -> Iterator[str]:
    """The address of a broker that knows only 0.7's requests."""
    peer = Peer(as_true_07_broker(pylog_broker.port))
    yield f"127.0.0.1:{peer.port}"
    peer.stop()


def test_brokers_when_without_zookeeper_then_each_tells_of_itself() -> None:
    with (
        Broker({"brokerid": "1"}) as one,
        Broker({"brokerid": "4", "num.partitions": "3"}) as other,
        pylogctl.connect([one.address, other.address]) as client,
    ):
        client.send("t", "x", partition="1-0")
        client.send("t", "x", partition="4-0")
        found = client.brokers()

        assert [(one.id, one.address, one.is_live) for one in found] == [
            (1, one.address, True),
            (4, other.address, True),
        ]
        assert [(one.leads, one.replicas, one.in_sync) for one in found] == [(1, 1, 1), (3, 3, 3)]
        assert not any(one.is_controller for one in found)
        assert client.health().ok
        assert client.cluster_id == ""


@pytest.mark.zookeeper
def test_brokers_when_asked_at_zookeeper_or_a_broker_then_the_same_and_one_is_controller(
    cluster: Cluster,
) -> None:
    with cluster.connect() as at_brokers, pylogctl.connect(zookeeper=cluster.zookeeper) as client:
        wait_until(lambda: client.brokers() == at_brokers.brokers(), "the same on both brokers")
        found = client.brokers()
        assert [one.address for one in found] == [one.address for one in cluster.brokers]
        assert [one.is_controller for one in found].count(True) == 1
        assert {one.rack for one in found} == {"here"}
        assert client.cluster_id == at_brokers.cluster_id == cluster.zookeeper


def test_brokers_when_of_kafka_07_then_are_named_and_health_says_why_it_cannot_be_told(
    broker_of_07: str,
) -> None:
    with pylogctl.connect(broker_of_07) as client:
        (one,) = client.brokers()

        assert (one.address, one.is_live, one.leads) == (broker_of_07, True, None)
        assert client.cluster_id == ""
        assert client.broker(one.id).phase == "running (0.7)"
        assert client.broker(one.id).size_bytes is None
        for call in (client.health, lambda: client.decommission(0)):
            with pytest.raises(pylogctl.NotSupported, match="knows only"):
                call()
        with pytest.raises(pylogctl.NotSupported, match="cannot be asked to stop") as caught:
            client.stop_broker(one.id)
        assert caught.value.hints == ("send its process SIGTERM",)


def test_broker_when_asked_then_tells_its_logs_directories_and_requests(
    pylog: pylogctl.Client, pylog_topic: str, pylog_broker: Broker
) -> None:
    pylog.send(pylog_topic, "x" * 1000)
    status = pylog.broker(0)

    assert (status.address, status.phase) == (pylog_broker.address, "running")
    assert status.started is not None
    assert timedelta() < datetime.now(UTC) - status.started < timedelta(hours=1)
    assert status.size_bytes is not None
    assert status.size_bytes > 1000
    assert status.directories is not None
    assert [one.path for one in status.directories] == [str(pylog_broker.data_dir)]
    assert status.failures == ()
    assert (status.zookeeper, status.session) == (None, None)
    assert status.metrics is not None
    assert status.metrics["KafkaServer"]["BrokerState"] == 3


def test_broker_when_a_partition_is_offline_then_it_is_named_and_health_fails(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "events_0"
    directory.mkdir()
    for base in (0, 5):
        (directory / segment_name(base)).write_bytes(b"x")
    with Broker(data_dir=tmp_path) as broker, broker.connect() as client:
        (failure,) = client.broker(0).failures or ()
        health = client.health()

    assert (failure.partition, failure.state) == (TopicPartition("events", 0, 0), "offline")
    assert "a gap" in failure.error
    assert not health.ok
    assert [one.name for one in health.failed] == ["storage"]
    assert health.failed[0].found == (f"broker 0 offline: {failure.error}",)


@pytest.mark.zookeeper
def test_health_when_a_broker_that_has_a_topic_is_gone_then_fails_and_names_it() -> None:
    with ephemeral_cluster(2) as cluster, cluster.connect() as client:
        client.send("t", "x", partition="1-0")
        assert client.health().ok
        cluster.brokers[1].close()
        wait_until(lambda: not client.brokers()[1].is_live, "its deregistration")

        assert {one.name for one in client.health().failed} == {"brokers not there", "offline"}
        assert (client.brokers()[1].address, client.brokers()[1].leads) == (None, 0)
        with pytest.raises(pylogctl.Unreachable, match="broker 1 is down"):
            client.broker(1, timeout=1)


@pytest.fixture
def hanging_broker(cluster: Cluster) -> Iterator[str]:
    """The address of broker 5, which is registered and says nothing."""
    peer = Peer(stay_silent)
    address = f"127.0.0.1:{peer.port}"
    with Session(cluster.zookeeper) as session, cluster.connect() as client:
        session.create("/brokers/ids/5", f"host-1:{address}".encode(), ephemeral=True)
        wait_until(lambda: 5 in [one.id for one in client.brokers()], "its registration")
        yield address
        session.delete("/brokers/ids/5")
        wait_until(lambda: 5 not in [one.id for one in client.brokers()], "its end")
    peer.stop()


@pytest.mark.zookeeper
def test_calls_when_a_broker_hangs_then_tell_of_it_and_of_the_others(
    cluster: Cluster, hanging_broker: str
) -> None:
    with cluster.connect() as client:
        health = client.health(timeout=1)
        changes = client.changes(timeout=1)

        assert [one.name for one in health.failed] == ["storage", "lost by ZooKeeper"]
        assert all(f"broker 5 at {hanging_broker}" in one.found[0] for one in health.failed)
        assert [one.id for one in health.brokers if not one.is_live] == [5]
        assert list(changes.missing) == [5]
        assert "elected" in {one.kind for one in changes}
        for call in (client.broker, client.stop_broker):
            with pytest.raises(pylogctl.TimedOut, match="broker 5"):
                call(5, timeout=1)
    with pylogctl.connect(zookeeper=cluster.zookeeper) as client:
        assert client.health(timeout=3).failed[0].name == "storage"


def test_stop_when_done_then_tells_the_steps_and_the_client_can_be_closed(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        address = f"127.0.0.1:{server.port}"
        with pylogctl.connect(address, timeout=20) as client:
            client.send("t", "x")
            report = client.stop_broker(0)

            assert (report.broker, report.failed) == (0, ())
            assert [one.name for one in report.steps][-1] == "marker"
            assert {"flush", "refuse appends"} <= {one.name for one in report.steps}
            with pytest.raises(pylogctl.Unreachable):
                client.brokers(timeout=1)
        with pytest.raises(pylogctl.Unreachable):
            pylogctl.connect(address)
    assert (tmp_path / ".pylog_clean_shutdown").exists()


@pytest.mark.zookeeper
def test_stop_when_done_then_the_other_brokers_do_not_name_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    with (
        serving(tmp_path, broker_id=7, zookeeper=cluster.zookeeper),
        cluster.connect() as client,
    ):
        wait_until(lambda: 7 in [one.id for one in client.brokers()], "the new broker")
        client.stop_broker(7)

        assert 7 not in [one.id for one in client.brokers() if one.is_live]
        with pytest.raises(pylogctl.UnknownBroker, match="broker '7' not found") as caught:
            client.broker(7)
        assert "known brokers: 0, 1" in caught.value.hints


@pytest.mark.zookeeper
def test_stop_when_the_broker_runs_the_zookeeper_of_others_then_is_refused_unless_told(
    tmp_path: Path,
) -> None:
    with (
        EmbeddedZooKeeper(tmp_path / "zookeeper", is_durable=False) as zookeeper,
        serving(tmp_path / "0", zookeeper, zookeeper=zookeeper.connect) as first,
        pylogctl.connect(f"127.0.0.1:{first.port}") as client,
    ):
        with serving(tmp_path / "1", broker_id=1, zookeeper=zookeeper.connect):
            used = f"runs the ZooKeeper of the cluster, {zookeeper.connect}, used by broker 1"
            with pytest.raises(pylogctl.Conflict, match=re.escape(used)) as caught:
                client.stop_broker(0)
            assert caught.value.reason == "ZOOKEEPER_IN_USE"
            assert client.broker(0).phase == "running"
        assert client.stop_broker(0).failed == ()


def test_stop_when_it_takes_too_long_then_says_that_it_may_still_be_stopping(
    tmp_path: Path,
) -> None:
    # nobody stops it: the request waits
    with Broker(data_dir=tmp_path) as broker, broker.connect() as client:
        with pytest.raises(pylogctl.TimedOut, match=r"did not stop within 0\.300s") as caught:
            client.stop_broker(0, timeout=0.3)
        assert "may still be stopping" in caught.value.hints[0]


@pytest.mark.zookeeper
def test_changes_when_a_broker_is_gone_then_those_of_the_others_come_in_order() -> None:
    with ephemeral_cluster(2) as cluster, cluster.connect() as client:
        (controller,) = [one.id for one in client.brokers() if one.is_controller]
        gone = 1 - controller
        before = datetime.now(UTC)
        client.send("t", "x", partition=f"{gone}-0")
        cluster.brokers[gone].close()
        wait_until(lambda: not client.brokers()[gone].is_live, "its deregistration")
        changes = client.changes()
        found = list(changes)

        assert found[0].kind == "elected"
        assert {one.broker for one in found} == {controller}
        assert found[0].time < before
        assert str(changes.missing[gone]) == f"broker {gone} is not there: its changes are missing"
        assert isinstance(changes.missing[gone], pylogctl.Unreachable)
        assert list(client.changes(since=datetime.now(UTC) + timedelta(minutes=1))) == []


@pytest.mark.zookeeper
def test_changes_when_followed_then_come_until_closed_or_the_client_is(cluster: Cluster) -> None:
    with cluster.connect() as client:
        changes = client.changes(follow=True)
        assert next(changes).kind == "elected"  # what was logged before
        changes.close()
        list(changes)  # ends
        changes = client.changes(follow=True)
        got: list[pylogctl.LoggedChange] = []
        thread = threading.Thread(target=lambda: got.extend(changes))
        thread.start()
        wait_until(lambda: got, "a change")
        assert changes.missing == {}
    thread.join(60)
    assert not thread.is_alive()


def test_changes_when_no_broker_keeps_them_then_not_supported(broker_of_07: str) -> None:
    for follow in (False, True):
        with (
            pylogctl.connect(broker_of_07) as client,
            pytest.raises(pylogctl.NotSupported, match="keeps no state-change log"),
        ):
            client.changes(follow=follow)


def test_move_log_when_the_broker_has_two_directories_then_the_log_is_in_the_other(
    tmp_path: Path, start_broker: BrokerFactory
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    server = start_broker(data_dirs=(old, new))
    with pylogctl.connect(f"127.0.0.1:{server.port}") as client:
        receipt = client.send("t", "x" * 1000)
        moved = client.move_log("t[0-0]", str(new))

        assert (moved.partition, moved.broker) == (receipt.partition, 0)
        assert (moved.directory, moved.copied_bytes) == (str(new), receipt.next_offset)
        assert [one.text() for one in client.read("t")] == ["x" * 1000]
        assert (new / "t_0").exists()
        with pytest.raises(pylogctl.Refused, match="is in"):
            client.move_log(receipt.partition, str(new), 0)
        with pytest.raises(pylogctl.Refused, match="elsewhere"):
            client.move_log(receipt.partition, "/elsewhere")


def test_move_log_when_the_broker_is_of_kafka_07_then_not_supported(broker_of_07: str) -> None:
    with (
        pylogctl.connect(broker_of_07) as client,
        pytest.raises(pylogctl.NotSupported, match="which cannot move a log"),
    ):
        client.move_log("t[0-0]", "/disk2")


BAD: list[tuple[Call, type[Exception], str]] = [
    (lambda c: c.broker("0"), TypeError, "the broker as its id, an int, not str"),  # type: ignore[arg-type]
    (lambda c: c.stop_broker(True), TypeError, "not bool"),
    (lambda c: c.broker(9), pylogctl.UnknownBroker, "broker '9' not found"),
    (lambda c: c.broker(9), LookupError, "broker '9' not found"),
    (lambda c: c.stop_broker(-1), pylogctl.UnknownBroker, "broker '-1' not found"),
    (lambda c: c.changes(since=5), TypeError, "since as a datetime, not int"),  # type: ignore[arg-type]
    (lambda c: c.changes(topic=5), TypeError, "the topic as str, not int"),  # type: ignore[arg-type]
    (lambda c: c.changes(partition=1.5), TypeError, "not float"),  # type: ignore[arg-type]
    (lambda c: c.move_log("t", "/d"), ValueError, "not a partition: 't'"),
    (lambda c: c.move_log(0, "/d"), TypeError, "or as a TopicPartition, not int"),  # type: ignore[arg-type]
    (lambda c: c.move_log("t[0-0]", 5), TypeError, "the directory as str, not int"),  # type: ignore[arg-type]
    (lambda c: c.move_log("t[0-0]", "/d", "0"), TypeError, "as its id, an int, not str"),  # type: ignore[arg-type]
    (lambda c: c.move_log("t[5-0]", "/d"), pylogctl.UnknownBroker, "broker '5' not found"),
    (lambda c: c.brokers(timeout="1"), TypeError, "timeout as a number, not str"),  # type: ignore[arg-type]
    (lambda c: c.health(timeout=-1), ValueError, "timeout is at least 0"),
]


@pytest.mark.parametrize(("call", "kind", "text"), BAD, ids=[text for _, _, text in BAD])
def test_call_when_given_bad_input_then_says_what_is_wrong(
    call: Call, kind: type[Exception], text: str, pylog: pylogctl.Client
) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call(pylog)


CALLS: list[Call] = [
    lambda c: c.cluster_id,
    lambda c: c.brokers(),
    lambda c: c.broker(0),
    lambda c: c.health(),
    lambda c: c.stop_broker(0),
    lambda c: c.move_log("t[0-0]", "/d"),
    lambda c: c.decommission(0),
    lambda c: c.changes(),
    lambda c: c.changes(follow=True),
]


@pytest.mark.parametrize("call", CALLS)
def test_call_when_the_client_is_closed_then_raises_closed(
    call: Call, pylog_broker: Broker
) -> None:
    client = pylog_broker.connect()
    client.close()
    with pytest.raises(pylogctl.Closed):
        call(client)


@pytest.mark.parametrize("call", CALLS)
def test_call_when_no_broker_is_there_any_more_then_raises_unreachable(call: Call) -> None:
    with Broker() as broker:
        client = broker.connect(timeout=1)
        broker.stop()  # the port stays its own: another program could answer there
        with client, pytest.raises(pylogctl.Unreachable):
            call(client)
