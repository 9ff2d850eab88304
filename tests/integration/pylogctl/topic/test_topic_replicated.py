"""`pylogctl topic` on topics with replicas, with three brokers and a ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from broker import Broker, Connection
from broker.errors import InvalidRequestError, NotLeaderError, TopicExistsError
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
)
from broker.protocol.message_set import build_set
from broker.protocol.responses import decode_publish_response
from broker.topic import TopicPartition
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.topic.test_topic import rows
from tests.integration.replication.load import LoadThread
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
    step = {"topic": partition.topic, "partition": partition.name, "target": target}
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
    wait_until(lambda: sorted(listed(topic)) == ["other", "t"], "the news", deadline_s=60)
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


def test_create_if_not_exists_when_it_has_replicas_then_it_stays_as_it_is(
    topic: Invoke, session: Session
) -> None:
    create(topic)
    before = nodes(session)

    result = topic("create", "t", "--partitions", "2", "--if-not-exists", "--timeout", "2s")

    assert result.status == ExitStatus.OK, result.stderr
    assert "topic 't' exists with replicas; it stays as it is" in result.stderr
    assert nodes(session) == before


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


def test_reassign_when_a_target_makes_no_sense_then_conflict_and_nothing_changed(
    topic: Invoke, session: Session, tmp_path: Path
) -> None:
    partition = create(topic, min_isr=2)
    before = nodes(session)
    targets = {
        (0,): "t[{}] cannot go down to 1 replicas: its min.insync.replicas is 2",
        (0, 9): "t[{}] cannot get a replica on broker 9, which is not live",
        (0, 0): "replicas [0, 0] of t[{}] are none, or name a broker twice",
    }

    for target, reason in targets.items():
        execute = ("reassign", "execute", "--plan", plan_file(tmp_path, partition, *target))
        for command in (execute, (*execute, "--dry-run")):
            result = topic(*command)
            assert result.status == ExitStatus.CONFLICT
            assert reason.format(partition.name) in result.stderr
            assert nodes(session) == before


def test_change_when_it_makes_no_sense_then_conflict_and_nothing_changed(
    topic: Invoke, session: Session
) -> None:
    create(topic, min_isr=2)
    before = nodes(session)
    commands = [
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
    ]

    for command, reason in commands:
        result = topic(*command)
        assert result.status == ExitStatus.CONFLICT, command
        assert reason in result.stderr
        assert nodes(session) == before


def test_plan_when_a_topic_with_one_replica_has_to_move_then_it_is_planned(
    topic: Invoke,
) -> None:
    partition = create(topic, factor=1)
    others = {0, 1, 2} - {partition.home}

    result = topic("reassign", "plan", "--to", ",".join(map(str, others)), "--output", "json")

    (step,) = rows(result)
    assert (step["partition"], step["before"]) == (partition.name, [partition.home])
    assert step["target"][0] in others


def publish_some(brokers: dict[int, Broker], partition: TopicPartition) -> None:
    """Publish more than a throttle grants at once, however low it is.

    While the leader's next term begins it refuses with an error that may be retried, on another
    connection: it takes no later set of the one whose set it has refused.
    """
    sets = (PartitionSet(partition, build_set([bytes(1000)] * 40)),)

    def is_published() -> bool:
        with closing(Connection(brokers[partition.home].address(), timeout_s=60)) as connection:
            body = connection.call(PublishRequest(Acks.COMMITTED, 60_000, sets))
            (published,) = decode_publish_response(body)
        assert published.error in (0, NotLeaderError.code), published.text
        return published.error == 0

    wait_until(is_published, "the next term")


def add_replica(topic: Invoke, partition: TopicPartition, *options: str) -> int:
    """Begin to add a replica to a partition that has one; return its broker."""
    added = min({0, 1, 2} - {partition.home})
    result = topic(
        *("reassign", "execute", "t", "--replication-factor", "2"),
        *("--to", f"{partition.home},{added}", *options),
    )
    assert result.status == ExitStatus.OK, result.stderr
    return added


def test_reassign_status_when_messages_come_faster_than_the_throttle_then_warns(
    topic: Invoke, brokers: dict[int, Broker]
) -> None:
    partition = create(topic, factor=1)
    publish_some(brokers, partition)
    added = add_replica(topic, partition, "--throttle", "1B/s")
    publish_some(brokers, partition)  # in the term of the change
    load = LoadThread("load", lambda: publish_some(brokers, partition))

    def warns() -> bool:
        result = topic("reassign", "status", "--output", "json")
        assert result.status == ExitStatus.OK, result.stderr
        (row,) = rows(result)
        assert (row["missing"], row["throttle_bytes_per_s"]) == ([added], 1)
        return (
            f"broker {added} cannot catch up:" in result.stderr
            and "copies with 1 B/s; raise that: pylogctl topic reassign throttle" in result.stderr
        )

    wait_until(warns, "the warning")
    load.stop()
    raised = topic("reassign", "throttle", "--throttle", "none", "--output", "json")
    assert [one["result"] for one in rows(raised)] == ["not throttled"]
    wait_until(
        lambda: not rows(topic("reassign", "status", "--output", "json")), "the end of the change"
    )
    again = topic("reassign", "throttle", "--throttle", "1MB/s")
    assert again.status == ExitStatus.OK
    assert "no change of replicas is under way" in again.stderr


def test_reassign_execute_when_same_plan_is_given_again_then_only_the_throttle_changes(
    topic: Invoke, session: Session, tmp_path: Path, brokers: dict[int, Broker]
) -> None:
    partition = create(topic, factor=1)
    publish_some(brokers, partition)
    added = min({0, 1, 2} - {partition.home})
    plan = plan_file(tmp_path, partition, partition.home, added)
    found = []

    for throttle in ("1B/s", "2B/s"):
        result = topic("reassign", "execute", "--plan", plan, "--throttle", throttle)
        assert result.status == ExitStatus.OK, result.stderr
        found.append(json.loads(nodes(session)["/admin/reassign_partitions"]))

    create(topic, "other", factor=1)
    shown = topic("reassign", "status", "other", "--output", "json")
    assert (shown.status, rows(shown)) == (ExitStatus.OK, [])
    unknown = topic("reassign", "status", "nosuch")
    assert (unknown.status, "topic 'nosuch' not found" in unknown.stderr) == (
        ExitStatus.NOT_FOUND,
        True,
    )
    assert [one["throttle"] for one in found] == [1, 2]
    assert found[0]["partitions"] == found[1]["partitions"]
    assert found[1]["partitions"][0]["original"] == [partition.home]


def test_plan_when_a_change_is_under_way_then_its_target_counts(
    topic: Invoke, brokers: dict[int, Broker]
) -> None:
    partition = create(topic, factor=1)
    publish_some(brokers, partition)
    added = add_replica(topic, partition, "--throttle", "1B/s")
    other = ({0, 1, 2} - {partition.home, added}).pop()

    same = topic(
        *("reassign", "plan", "--to", f"{partition.home},{added}", "--output", "json"),
    )
    moved = topic("reassign", "plan", "--to", f"{partition.home},{other}", "--output", "json")

    assert rows(same) == []
    assert [one["target"] for one in rows(moved)] == [[partition.home, other]]


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("execute", "--throttle", "1000/s"), "not a throttle: '1000/s'"),
        (("execute", "--throttle", "50MB"), "not a rate: '50MB'"),
        (("execute", "--throttle", "0kB/s"), "a rate must be above zero"),
        (("execute", "--throttle", "99999999999TiB/s"), "not a throttle: '99999999999TiB/s'"),
        (("status", "--throttle", "5kB/s"), "--throttle is for `topic reassign execute`"),
        (("throttle",), "--throttle RATE is missing"),
    ],
)
def test_reassign_when_throttle_makes_no_sense_then_usage_error(
    invoke: Invoke, args: tuple[str, ...], reason: str
) -> None:
    result = invoke("topic", "reassign", *args, "-Z", "127.0.0.1:1")

    assert (result.status, reason in result.stderr) == (ExitStatus.USAGE, True), result.stderr
