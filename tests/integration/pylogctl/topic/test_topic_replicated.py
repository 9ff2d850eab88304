"""`pylogctl topic` on topics with replicas, with three brokers and a ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker, Connection
from broker.errors import InvalidRequestError, TopicExistsError
from broker.protocol.extension_requests import CreateTopicRequest, DeleteTopicRequest
from broker.topic import TopicPartition
from broker.zk.session import Session
from pylogctl.cli.errors import ExitStatus
from tests.integration.pylogctl.topic.test_topic import rows
from tests.support.command_line import Invoke, Result
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def brokers(
    start_broker: Callable[..., Broker], zookeeper: str, tmp_path: Path
) -> dict[int, Broker]:
    """Three brokers of one cluster."""
    return {
        broker_id: start_broker(
            broker_id=broker_id,
            data_dir=tmp_path / str(broker_id),
            zookeeper=zookeeper,
            zk_session_timeout_ms=30_000,
        )
        for broker_id in range(3)
    }


@pytest.fixture
def topic(brokers: dict[int, Broker], zookeeper: str, invoke: Invoke) -> Invoke:
    """Run `topic` on the cluster."""

    def run(command: str, *args: str) -> Result:
        result: Result = invoke("topic", command, "-Z", zookeeper, "--timeout", "60s", *args)
        return result

    return run


def create(topic: Invoke, name: str = "t", *, factor: int = 3, min_isr: int = 1) -> TopicPartition:
    """Create a topic with one partition, and return that."""
    result = topic(
        *("create", name, "--partitions", "1", "--replication-factor", str(factor)),
        *("--set", f"min.insync.replicas={min_isr}", "--output", "json"),
    )
    assert result.status == ExitStatus.OK, result.stderr
    home, index = map(int, rows(result)[0]["partition"].split("-"))
    return TopicPartition(name, home, index)


def nodes(session: Session) -> dict[str, bytes]:
    """What ZooKeeper has of topics with replicas and jobs of the controller."""
    found = {}
    for root in ("/replicated/topics", "/admin"):
        if session.exists(root):
            found.update({path: session.get(path)[0] for _, path in session.walk(root)})
    return found


def plan_file(tmp_path: Path, partition: TopicPartition, *target: int) -> str:
    """Write a plan, and return its path."""
    path = tmp_path / "plan.json"
    step = {"topic": partition.topic, "partition": partition.name}
    step["target"] = ",".join(map(str, target))
    path.write_text(json.dumps({"data": [step]}))
    return str(path)


def log_names(data_dir: Path) -> list[str]:
    """The logs, of any home, in a data directory."""
    found = [*data_dir.glob("*_*/replica-creation-id"), *data_dir.glob("replicas/*/*_*")]
    return sorted(one.parent.name if one.is_file() else one.name for one in found)


def listed(topic: Invoke) -> list[str]:
    return [one["name"] for one in rows(topic("list", "--output", "json"))]


DELETE = ("delete", "t", "--data", "--yes", "--confirm", "t")


def test_delete_when_a_broker_is_away_then_topic_is_gone_and_so_are_its_logs_later(
    topic: Invoke,
    session: Session,
    brokers: dict[int, Broker],
    tmp_path: Path,
    start_broker: Callable[..., Broker],
    zookeeper: str,
) -> None:
    partition = create(topic)
    create(topic, "other")
    away = partition.home  # its log is one of those that are not below `replicas`
    both = ["other_0", "t_0"]
    wait_until(
        lambda: all(log_names(tmp_path / str(one)) == both for one in brokers),
        "all replicas",
        deadline_s=60,
    )
    brokers[away].stop()

    result = topic(*DELETE, "--output", "json")

    assert result.status == ExitStatus.OK, result.stderr
    assert session.exists("/replicated/topics/t") is None
    live = [one for one in brokers if one != away]
    for one in live:
        assert log_names(tmp_path / str(one)) == ["other_0"]
    assert log_names(tmp_path / str(away)) == both
    create(topic, factor=2)

    start_broker(
        broker_id=away,
        data_dir=tmp_path / str(away),
        zookeeper=zookeeper,
        zk_session_timeout_ms=30_000,
    )

    wait_until(
        lambda: log_names(tmp_path / str(away)) == ["other_0"], "its deletion", deadline_s=60
    )
    wait_until(lambda: not session.children("/admin/deleted_topics"), "its end", deadline_s=60)
    assert sorted(listed(topic)) == ["other", "t"]
    assert topic(*DELETE).status == ExitStatus.OK
    wait_until(lambda: listed(topic) == ["other"], "the news", deadline_s=60)


def test_delete_when_there_is_no_registry_for_the_command_then_brokers_are_asked(
    topic: Invoke, invoke: Invoke, brokers: dict[int, Broker], session: Session
) -> None:
    create(topic)
    address = f"127.0.0.1:{brokers[0].port}"

    result = invoke("topic", *DELETE, "-b", address, "--timeout", "60s")

    assert result.status == ExitStatus.OK, result.stderr
    wait_until(lambda: not session.exists("/replicated/topics/t"), "the end", deadline_s=60)
    assert create(topic).topic == "t"


def test_delete_without_data_when_it_has_replicas_then_conflict(
    topic: Invoke, session: Session
) -> None:
    create(topic)
    before = nodes(session)

    result = topic("delete", "t", "--yes", "--confirm", "t")

    assert result.status == ExitStatus.CONFLICT
    assert "topic 't' has replicas" in result.stderr
    assert nodes(session) == before


def test_broker_when_asked_alone_about_a_topic_with_replicas_then_names_the_controller(
    topic: Invoke, brokers: dict[int, Broker]
) -> None:
    partition = create(topic)
    connection = Connection(brokers[partition.home].address())
    with pytest.raises(InvalidRequestError, match="pylogctl topic delete t --data"):
        connection.call(DeleteTopicRequest("t"))
    with pytest.raises(TopicExistsError, match="exists with replicas"):
        connection.call(CreateTopicRequest("t", 1))
    connection.close()


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ((0,), "t[{}] cannot go down to 1 replicas: its min.insync.replicas is 2"),
        ((0, 9), "t[{}] cannot get a replica on broker 9, which is not live"),
        ((0, 0), "replicas [0, 0] of t[{}] are none, or name a broker twice"),
    ],
)
def test_reassign_when_a_target_makes_no_sense_then_conflict_and_nothing_changed(
    topic: Invoke,
    session: Session,
    tmp_path: Path,
    target: tuple[int, ...],
    reason: str,
    dry_run: tuple[str, ...],
) -> None:
    partition = create(topic, min_isr=2)
    before = nodes(session)

    result = topic(
        "reassign", "execute", "--plan", plan_file(tmp_path, partition, *target), *dry_run
    )

    assert result.status == ExitStatus.CONFLICT
    assert reason.format(partition.name) in result.stderr
    assert nodes(session) == before


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("alter", "t", "--replication-factor", "4"), "4 replicas of a partition need as many"),
        (("alter", "t", "--replication-factor", "1"), "its min.insync.replicas is 2"),
        (("reassign", "plan", "--replication-factor", "4"), "4 replicas of a partition need as"),
        (
            ("reassign", "plan", "t", "--to", "0,1"),
            "3 replicas of a partition need as many brokers",
        ),
        (("reassign", "plan", "t", "--to", "0,1,9"), "broker 9 is not live"),
        (("create", "u", "--partitions", "1", "--replication-factor", "4"), "4 replicas"),
        (
            ("elect", "t", "--unclean", "--yes", "--confirm", "t"),
            "every partition of topic 't' has",
        ),
    ],
)
def test_change_when_it_makes_no_sense_then_conflict_and_nothing_changed(
    topic: Invoke, session: Session, command: tuple[str, ...], reason: str
) -> None:
    create(topic, min_isr=2)
    before = nodes(session)

    result = topic(*command)

    assert result.status == ExitStatus.CONFLICT
    assert reason in result.stderr
    assert nodes(session) == before


def test_plan_when_a_topic_with_one_replica_has_to_move_then_it_is_planned(
    topic: Invoke,
) -> None:
    partition = create(topic, factor=1)
    others = {0, 1, 2} - {partition.home}

    result = topic("reassign", "plan", "--to", ",".join(map(str, others)), "--output", "json")

    (step,) = rows(result)
    assert (step["partition"], step["replicas"]) == (partition.name, str(partition.home))
    assert int(step["target"]) in others
