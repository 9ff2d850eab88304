"""`pylogctl config`, against real brokers and a real ZooKeeper."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from broker import Broker
from broker.client.connection import Connection
from broker.client.controller_client import cluster_metadata
from broker.cluster_state import TopicAssignment
from broker.properties import HOUR_MS
from broker.protocol.responses import BrokerAddress
from broker.topic import NO_HOME, TopicPartition
from broker.zk import paths
from broker.zk.replicated_values import encode_assignment
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke, Result
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartBroker = Callable[..., Broker]
Config = Callable[..., Result]
TOPIC_NODE = "/config/topics/t"


@pytest.fixture
def config(zookeeper: str, invoke: Invoke) -> Config:
    """Run a command of `pylogctl config`."""
    return lambda *args: invoke("config", *args, "-Z", zookeeper)


@pytest.fixture
def topic(session: Session) -> str:
    """A topic that is registered, on no live broker."""
    session.create(paths.topic("t"))
    return "t"


def rows(result: Result, *columns: str) -> list[tuple[Any, ...]]:
    records = json.loads(result.stdout)["data"]
    return [tuple(record[column] for column in columns) for record in records]


def stored(session: Session, path: str = TOPIC_NODE) -> Mapping[str, str] | None:
    if session.exists(path) is None:
        return None
    found: Mapping[str, str] = json.loads(session.get(path)[0])["config"]
    return found


def test_set_when_a_broker_runs_then_it_has_applied_it_when_the_command_ends(
    start_broker: StartBroker, zookeeper: str, session: Session, config: Config, topic: str
) -> None:
    broker = start_broker(zookeeper=zookeeper)

    result = config("set", "-t", topic, "log.retention.hours=1", "flush.ms=7", "--output", "json")

    assert result.status == ExitStatus.OK
    assert rows(result, "topic", "broker", "setting", "before", "after") == [
        ("t", None, "retention.ms", None, "3600000"),
        ("t", None, "flush.ms", None, "7"),
    ]
    applied = {"retention.ms": "3600000", "flush.ms": "7"}
    assert broker.status()["topic_settings"] == {"t": applied}
    assert stored(session) == applied

    result = config("set", "-b", "0", "log.segment.bytes=99", "--output", "json")

    assert rows(result, "broker", "setting", "after") == [(0, "log.file.size", "99")]
    assert broker.config.segment_bytes == 99
    assert stored(session, "/config/brokers/0") == {"log.file.size": "99"}

    assert config("unset", "-b", "0", "log.file.size").status == ExitStatus.OK
    assert broker.config.segment_bytes == 1 << 30
    assert config("unset", "-t", topic, "--all").status == ExitStatus.OK
    assert broker.status()["topic_settings"] == {}
    assert stored(session) is None


def test_set_when_the_unit_is_another_than_before_then_replaces_it(
    session: Session, config: Config, topic: str
) -> None:
    config("set", "-b", "3", "--absent", "log.retention.hours=2", "max.connections=5")

    result = config("set", "-b", "3", "--absent", "log.retention.ms=5")

    assert result.status == ExitStatus.OK
    assert stored(session, "/config/brokers/3") == {"max.connections": "5", "log.retention.ms": "5"}


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (
            ("-t", "t", "retention.m=1"),
            ExitStatus.USAGE,
            "no setting of topics 'retention.m'; did you mean 'retention.ms'?",
        ),
        (("-t", "t", "flush.ms=0"), ExitStatus.USAGE, "flush.ms is 0; it must be at least 1"),
        (("-t", "t", "flush.ms=x"), ExitStatus.USAGE, "flush.ms is 'x'; it must be a whole number"),
        (("-t", "t", "flush.ms"), ExitStatus.USAGE, "'flush.ms' is not NAME=VALUE"),
        (("-t", "t", "port=1"), ExitStatus.USAGE, "'port' is a setting of brokers"),
        (
            ("-t", "t", "flush.ms=1", "topic.flush.intervals.ms=2"),
            ExitStatus.USAGE,
            "'flush.ms' and 'topic.flush.intervals.ms' set the same",
        ),
        (("-t", "t", "flush.ms=1", "x=1"), ExitStatus.USAGE, "no setting of topics 'x'"),
        (("-t", "tt", "flush.ms=1"), ExitStatus.NOT_FOUND, "topic 'tt' not found"),
        (("-t", "../x", "flush.ms=1"), ExitStatus.USAGE, "invalid topic name"),
        (("flush.ms=1",), ExitStatus.USAGE, "name one: --topic TOPIC or --broker ID"),
        (("-t", "t", "-b", "0", "flush.ms=1"), ExitStatus.USAGE, "name one: --topic"),
        (("-b", "9", "max.connections=1"), ExitStatus.NOT_FOUND, "broker '9' not found"),
        (
            ("-b", "9", "--absent", "num.threads=1"),
            ExitStatus.USAGE,
            "num.threads changes at a start only: set it in the broker's properties file, and "
            "restart the broker",
        ),
        (
            ("-b", "9", "--absent", "max.conections=1"),
            ExitStatus.USAGE,
            "no property 'max.conections'; did you mean 'max.connections'?",
        ),
        (("-b", "x", "max.connections=1"), ExitStatus.USAGE, "'x' is neither a broker's id nor"),
    ],
)
def test_set_when_something_is_wrong_then_says_it_and_changes_nothing(
    session: Session,
    config: Config,
    topic: str,
    args: tuple[str, ...],
    status: ExitStatus,
    message: str,
) -> None:
    result = config("set", *args)

    assert result.status == status
    assert message in result.stderr
    assert session.exists("/config") is None


def test_set_when_dry_then_shows_it_and_changes_nothing(
    session: Session, config: Config, topic: str
) -> None:
    result = config("set", "-t", topic, "flush.ms=1", "--dry-run", "--output", "json")

    assert rows(result, "setting", "after") == [("flush.ms", "1")]
    assert "nothing changed; this was a dry run" in result.stderr
    assert session.exists("/config") is None


def test_absent_when_a_topic_or_broker_is_not_there_then_set_hints_at_it_and_list_does_not(
    start_broker: StartBroker, zookeeper: str, config: Config
) -> None:
    start_broker(zookeeper=zookeeper)

    for target in (("-t", "nosuch"), ("-b", "9")):
        refused, listed = config("set", *target, "x=1"), config("list", *target)

        assert (refused.status, "--absent" in listed.stderr) == (ExitStatus.USAGE, False)
        assert listed.status == ExitStatus.NOT_FOUND
    assert "--absent sets it for" in config("set", "-t", "nosuch", "flush.ms=1").stderr
    assert "--absent sets it for" in config("set", "-b", "9", "max.connections=1").stderr


def test_set_when_the_topic_is_not_created_yet_then_absent_sets_it_for_its_creation(
    start_broker: StartBroker, zookeeper: str, session: Session, config: Config, invoke: Invoke
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    assert config("set", "-t", "new", "--absent", "partition.count=3").status == ExitStatus.OK

    assert invoke("produce", "new", "-Z", zookeeper, stdin=b"a\n").status == ExitStatus.OK

    assert broker.logs.topics.partition_count("new") == 3


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("min.insync.replicas=3", "min.insync.replicas is 3, but topic 'r' has 2 replicas"),
        ("partition.count=3", "topic 'r' is replicated: partition.count does not say"),
        ("cleanup.policy=compact", "topic 'r' cannot have cleanup.policy=compact: messages of"),
    ],
)
def test_set_when_the_replicas_of_the_topic_forbid_it_then_is_refused(
    session: Session, config: Config, setting: str, message: str
) -> None:
    replicas = {TopicPartition("r", 0, 0): (0, 1)}
    value = encode_assignment(TopicAssignment("r", "id", replicas))
    session.create(paths.replicated_topic("r"), value)

    result = config("set", "-t", "r", setting)

    assert result.status == ExitStatus.USAGE
    assert message in result.stderr
    assert session.exists("/config/topics/r") is None
    assert config("set", "-t", "r", "min.insync.replicas=2").status == ExitStatus.OK


def test_set_when_a_policy_compacts_then_topics_of_07_are_refused(
    session: Session, config: Config, topic: str
) -> None:
    replicas = {TopicPartition("orders", NO_HOME, 0): (0, 1)}
    value = encode_assignment(TopicAssignment("orders", "id", replicas))
    session.create(paths.replicated_topic("orders"), value)

    refused = config("set", "-t", topic, "cleanup.policy=compact")

    assert refused.status == ExitStatus.USAGE
    assert "only topics of format kafka are compacted" in refused.stderr
    for policy in ("compact", "compact,delete"):
        done = config("set", "-t", "orders", f"cleanup.policy={policy}", "delete.retention.ms=9")
        assert done.status == ExitStatus.OK


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (b"{", ExitStatus.REMOTE),
        (b'{"version":1,"config":{"flush.m":"1","segment.bytes":"9"}}', ExitStatus.CONFLICT),
    ],
)
def test_set_when_the_node_was_damaged_by_hand_then_is_refused_until_it_is_repaired(
    session: Session, config: Config, topic: str, value: bytes, status: ExitStatus
) -> None:
    session.create(TOPIC_NODE, value)

    result = config("set", "-t", topic, "flush.ms=1")

    assert result.status == status
    assert TOPIC_NODE in result.stderr
    assert session.get(TOPIC_NODE)[0] == value

    if status is ExitStatus.CONFLICT:
        assert config("unset", "-t", topic, "flush.m").status == ExitStatus.OK
        assert stored(session) == {"segment.bytes": "9"}
    result = config("unset", "-t", topic, "--all")
    assert result.status == ExitStatus.OK
    assert "nothing changed" not in result.stderr
    assert session.exists(TOPIC_NODE) is None
    assert config("set", "-t", topic, "flush.ms=1").status == ExitStatus.OK
    assert stored(session) == {"flush.ms": "1"}


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (("flush.m",), ExitStatus.USAGE),
        (("segment.bytes",), ExitStatus.OK),
        ((), ExitStatus.USAGE),
        (("flush.ms", "--all"), ExitStatus.USAGE),
    ],
)
def test_unset_when_it_is_not_set_or_not_named_then_nothing_changes(
    session: Session, config: Config, topic: str, args: tuple[str, ...], status: ExitStatus
) -> None:
    config("set", "-t", topic, "flush.ms=1")

    assert config("unset", "-t", topic, *args).status == status

    assert stored(session) == {"flush.ms": "1"}


def test_unset_when_named_as_in_07_then_is_unset(
    session: Session, config: Config, topic: str
) -> None:
    config("set", "-t", topic, "retention.ms=1", "flush.ms=1")

    assert config("unset", "-t", topic, "topic.log.retention.hours").status == ExitStatus.OK

    assert stored(session) == {"flush.ms": "1"}


def test_list_when_nothing_is_named_then_shows_what_is_set_and_reports_damaged_nodes(
    session: Session, config: Config, topic: str
) -> None:
    config("set", "-t", topic, "flush.ms=1")
    config("set", "-b", "4", "--absent", "max.connections=5")

    result = config("list", "--output", "json")

    assert result.status == ExitStatus.OK
    assert rows(result, "topic", "broker", "setting", "value") == [
        ("t", None, "flush.ms", "1"),
        (None, 4, "max.connections", "5"),
    ]

    session.set(TOPIC_NODE, b"{")
    result = config("list", "--output", "json")

    assert result.status == ExitStatus.PARTIAL
    assert f"node {TOPIC_NODE} is not" in result.stderr
    assert rows(result, "broker") == [(4,)]


@pytest.fixture
def two_brokers(start_broker: StartBroker, zookeeper: str, tmp_path: Path) -> list[Broker]:
    settings: list[dict[str, Any]] = [
        {"segment_bytes": 100},
        {"topic_retention_ms": {"t": HOUR_MS}},
    ]
    return [
        start_broker(broker_id=number, data_dir=tmp_path / str(number), zookeeper=zookeeper, **one)
        for number, one in enumerate(settings)
    ]


def test_settings_of_a_topic_when_brokers_differ_then_each_value_has_its_origin(
    two_brokers: list[Broker], config: Config, topic: str
) -> None:
    config("set", "-t", topic, "flush.ms=1")
    columns = ("setting", "value", "origin", "brokers", "default")

    listed = rows(config("list", "-t", topic, "--output", "json"), *columns)
    differing = rows(config("diff", "-t", topic, "--output", "json"), *columns)

    assert differing == [
        ("segment.bytes", "100", "start", "0", "1073741824"),
        ("segment.bytes", "1073741824", "default", "1", "1073741824"),
        ("retention.ms", "604800000", "default", "0", "604800000"),
        ("retention.ms", "3600000", "start", "1", "604800000"),
        ("flush.ms", "1", "topic", "0,1", "100"),
    ]
    assert set(differing) < set(listed)
    assert ("flush.messages", "10000", "default", "0,1", "10000") in listed


def test_settings_of_a_broker_when_compared_then_start_default_and_other_brokers_are_shown(
    two_brokers: list[Broker], config: Config
) -> None:
    config("set", "-b", "0", "log.file.size=200", "log.retention.minutes=90")
    columns = ("setting", "value", "origin", "start", "default", "others")

    found = {
        row[0]: row[1:] for row in rows(config("diff", "-b", "0", "--output", "json"), *columns)
    }

    assert found["log.file.size"] == ("200", "broker", "100", "1073741824", "1: 1073741824")
    hours = "log.retention.hours=168"
    assert found["log.retention.minutes"] == ("90", "broker", hours, hours, f"1: {hours}")
    assert found["port"][1] == "start"
    assert "brokerid" not in found
    assert "flush.ms" not in found

    between = rows(config("diff", "--output", "json"), "setting", "value", "origin", "brokers")
    assert ("log.file.size", "200", "broker", "0") in between
    assert ("log.file.size", "1073741824", "default", "1") in between
    assert not {"port", "brokerid", "log.dir"} & {row[0] for row in between}

    listed = rows(config("list", "-b", "0", "--output", "json"), "setting", "origin", "change")
    assert ("log.file.size", "broker", "running") in listed
    assert ("log.flusher.threads", "default", "restart") in listed


def test_settings_when_a_broker_cannot_use_a_node_then_a_warning_names_it(
    two_brokers: list[Broker],
    session: Session,
    zookeeper: str,
    config: Config,
    topic: str,
    invoke: Invoke,
) -> None:
    config("set", "-t", topic, "flush.ms=1")
    session.set(TOPIC_NODE, b"{")
    config("set", "-t", "u", "--absent", "flush.ms=1")  # waits until both have read all again

    result = config("list", "-t", topic, "--output", "json")

    assert f"node {TOPIC_NODE} is not used by broker 0, 1" in result.stderr
    assert ("flush.ms", "1") in rows(result, "setting", "value")

    result = invoke("broker", "status", "0", "--output", "json", "-Z", zookeeper)

    assert f"broker 0: node {TOPIC_NODE} is not used: " in result.stderr
    assert [list(row[0]) for row in rows(result, "settings_problems")] == [[TOPIC_NODE]]


def test_commands_when_the_broker_has_no_zookeeper_then_say_so_and_show_its_file(
    running_broker: Broker, invoke: Invoke
) -> None:
    address = f"127.0.0.1:{running_broker.port}"

    for command in (("set", "max.connections=1"), ("unset", "max.connections")):
        result = invoke("config", *command, "-b", address)

        assert result.status == ExitStatus.UNSUPPORTED
        assert f"broker 0 at '{address}' runs without ZooKeeper" in result.stderr
        assert "properties file" in result.stderr
    listed = invoke("config", "list", "-b", address, "--output", "json")
    assert ("port", "start") in rows(listed, "setting", "origin")
    assert invoke("config", "diff", "-b", address).status == ExitStatus.OK


def test_set_when_the_broker_is_named_by_its_address_then_its_zookeeper_is_used(
    start_broker: StartBroker, zookeeper: str, invoke: Invoke
) -> None:
    broker = start_broker(zookeeper=zookeeper)

    result = invoke("config", "set", "-b", f"127.0.0.1:{broker.port}", "max.connections=77")

    assert result.status == ExitStatus.OK
    assert broker.config.max_connections == 77


def test_set_when_a_broker_does_not_apply_it_in_time_then_a_warning_says_so(
    two_brokers: list[Broker],
    session: Session,
    config: Config,
    topic: str,
) -> None:
    assert two_brokers[1].membership.settings is not None
    two_brokers[1].membership.settings.stop()

    result = config("set", "-t", topic, "flush.ms=1", "--timeout", "5s")

    assert result.status == ExitStatus.OK
    assert result.stderr.count("has not applied it yet") == 1
    assert "broker 1: it has not applied it yet" in result.stderr
    assert stored(session) == {"flush.ms": "1"}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("cleanup.policy=compact", "topic 'new' cannot have cleanup.policy=compact: messages of"),
        ("retention.m=1", "no setting of topics 'retention.m'; did you mean 'retention.ms'?"),
        ("flush.ms=0", "flush.ms is 0; it must be at least 1"),
    ],
)
def test_create_when_a_setting_is_wrong_then_is_refused(
    running_broker: Broker, invoke: Invoke, setting: str, message: str
) -> None:
    broker = f"127.0.0.1:{running_broker.port}"
    args = ("--partitions", "1", "--replication-factor", "1", "--set", setting, "-b", broker)

    result = invoke("topic", "create", "new", *args)

    assert result.status == ExitStatus.USAGE
    assert message in result.stderr


def test_min_isr_when_set_while_a_cluster_runs_then_its_leader_asks_for_so_many(
    two_brokers: list[Broker], session: Session, zookeeper: str, config: Config, invoke: Invoke
) -> None:
    args = ("--partitions", "1", "--replication-factor", "2", "--set", "min.insync.replicas=2")
    assert invoke("topic", "create", "r", *args, "-Z", zookeeper).status == ExitStatus.OK
    brokers = [BrokerAddress(one.config.broker_id, "127.0.0.1", one.port) for one in two_brokers]

    def min_isr() -> set[int]:
        found = [cluster_metadata([one], Connection, ("r",)) for one in brokers]
        return {one.min_isr for told in found for topic in told.topics for one in topic.partitions}

    wait_until(lambda: min_isr() == {2}, "the setting of the creation")

    assert config("set", "-t", "r", "min.insync.replicas=1").status == ExitStatus.OK
    wait_until(lambda: min_isr() == {1}, "the new setting")
    assert config("set", "-t", "r", "min.insync.replicas=2").status == ExitStatus.OK
    wait_until(lambda: min_isr() == {2}, "the new setting")

    session.set("/config/topics/r", b"{")
    config("set", "-t", "u", "--absent", "flush.ms=1")  # waits until both have read all again
    assert config("set", "-b", "0", "max.connections=99").status == ExitStatus.OK
    assert min_isr() == {2}


def test_policy_when_zookeeper_names_a_plugin_then_no_broker_loads_it(
    start_broker: StartBroker,
    zookeeper: str,
    session: Session,
    config: Config,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stranger = "policy_that_only_zookeeper_names"
    (tmp_path / f"{stranger}.py").write_text("def agree(segment): return True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    broker = start_broker(zookeeper=zookeeper)

    for words in (
        ("-t", topic, f"cleanup.policy={stranger}:agree"),
        ("-t", topic, f"topic.log.cleanup.policy={stranger}:agree"),
        ("-b", "0", f"log.cleanup.policy={stranger}:agree"),
        ("-b", "0", f"topic.log.cleanup.policy={topic}:{stranger}:agree"),
    ):
        assert config("set", *words).status == ExitStatus.USAGE

    written = {
        TOPIC_NODE: {"cleanup.policy": f"{stranger}:agree"},
        "/config/brokers/0": {"log.cleanup.policy": f"{stranger}:agree"},
    }
    for path, texts in written.items():
        session.create(path, json.dumps({"version": 1, "config": texts}).encode())
    config("set", "-b", "0", "--absent", "max.connections=99")  # the broker reads all again
    wait_until(lambda: TOPIC_NODE in broker.status()["settings_problems"], "the problem")
    broker.apply_retention()
    assert stranger not in sys.modules
