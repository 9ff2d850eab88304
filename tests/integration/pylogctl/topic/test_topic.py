"""`pylogctl topic` against real brokers."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker import Broker, BrokerConfig, Codec, Connection, Producer, StaticCluster, TopicPartition
from broker.client.connection import parse_broker_list
from broker.protocol.message_set import build_set
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.proxies import BrokerOf07
from tests.support.command_line import Invoke, Result


def fill(
    broker: Broker,
    topic: str,
    payloads: list[bytes],
    *,
    codec: Codec = Codec.NONE,
    index: int = 0,
) -> None:
    """Publish payloads as one set, readable when this returns."""
    cluster = StaticCluster(parse_broker_list(at(broker)), Connection)
    with Producer(cluster, Connection) as producer:
        partition = TopicPartition(topic, broker.config.broker_id, index)
        delivery = producer.send_set(partition, build_set(payloads, codec))
    delivery.result()
    cluster.close()


def at(*brokers: Broker) -> str:
    return ",".join(f"127.0.0.1:{broker.port}" for broker in brokers)


def rows(result: Result) -> list[dict[str, Any]]:
    """The records of a result written with `--output json`."""
    assert result.text, result.stderr
    data: list[dict[str, Any]] = json.loads(result.text)["data"]
    return data


@pytest.fixture
def topic(running_broker: Broker, invoke: Invoke) -> Invoke:
    """Run `topic` on `running_broker`."""

    def run(command: str, *args: str) -> Result:
        result: Result = invoke("topic", command, "-b", at(running_broker), *args)
        return result

    return run


@pytest.fixture
def two_brokers(start_broker: Callable[..., Broker], tmp_path: Path) -> tuple[Broker, Broker]:
    """Brokers 1 and 2."""
    return (
        start_broker(broker_id=1, data_dir=tmp_path / "one"),
        start_broker(broker_id=2, data_dir=tmp_path / "two"),
    )


# list


def test_list_when_there_are_topics_shows_size_and_offsets(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "b", [b"12345"])
    fill(running_broker, "a", [b"1", b"2"])
    same = {"brokers": [0], "partitions": 1, "replicas": None, "offline": 0,
            "under_replicated": 0, "format": "0.7", "state": "ok", "messages": None}  # fmt: skip
    assert rows(topic("list", "--output", "json")) == [
        {"name": "a", **same, "size_bytes": 22},
        {"name": "b", **same, "size_bytes": 15},
    ]


def test_list_when_there_are_no_topics_says_so_on_stderr_only(topic: Invoke) -> None:
    result = topic("list")
    assert (result.status, result.stdout, result.stderr) == (0, b"", "no topics\n")
    assert rows(topic("list", "--output", "json")) == []


def test_list_when_counting_unfolds_compressed_sets(running_broker: Broker, topic: Invoke) -> None:
    fill(running_broker, "t", [b"x"] * 7, codec=Codec.GZIP)
    fill(running_broker, "t", [b"x"] * 3)
    result = topic("list", "--count", "--columns", "name,messages", "--no-header")
    assert result.text.split() == ["t", "10"]


def test_list_when_counting_a_corrupt_message_ends_as_corrupt(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", [b"hello"])
    (segment,) = running_broker.config.data_dir.glob("t*/*.pylog")
    with segment.open("r+b") as file:
        file.seek(12)
        file.write(b"X")
    assert topic("list", "--count").status == ExitStatus.CORRUPT


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--include", "a.*"], ["aa", "ab"]),
        (["--include", "a"], []),
        (["--include", "aa", "--include", "b.*"], ["aa", "bb"]),
        (["--exclude", "aa|bb"], ["ab"]),
        (["--include", "a.*", "--exclude", ".*b"], ["aa"]),
        (["--whitelist", "bb"], ["bb"]),
        (["--blacklist", "a."], ["bb"]),
    ],
)
def test_list_takes_topics_whose_whole_name_matches(
    running_broker: Broker, topic: Invoke, options: list[str], names: list[str]
) -> None:
    for name in ("aa", "ab", "bb"):
        fill(running_broker, name, [b"x"])
    assert topic("list", "--output", "name", *options).text.split() == names


def test_list_when_a_pattern_is_malformed_is_a_usage_error(topic: Invoke) -> None:
    result = topic("list", "--include", "(")
    assert result.status == ExitStatus.USAGE
    assert "--include: '(' is no regular expression" in result.stderr


def test_list_writes_the_same_record_in_every_format(running_broker: Broker, topic: Invoke) -> None:
    fill(running_broker, "t", [b"12345"])
    for form in ("table", "plain", "tsv", "csv", "jsonl", "markdown"):
        text = topic("list", "--output", form, "--columns", "name,size_bytes", "--raw-numbers").text
        assert "t" in text
        assert "15" in text


def test_list_when_topics_are_on_several_brokers_sums_them_up(
    two_brokers: tuple[Broker, Broker], invoke: Invoke
) -> None:
    for broker in two_brokers:
        fill(broker, "t", [b"12345"])
    (record,) = rows(invoke("topic", "list", "-b", at(*two_brokers), "--output", "json"))
    assert (record["brokers"], record["partitions"], record["size_bytes"]) == ([1, 2], 2, 30)


def test_list_asks_a_broker_once_for_the_ends_of_all_partitions(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(num_partitions=8)
    for index in range(8):
        fill(broker, "t", [b"x" * index], index=index)
    fill(broker, "u", [b"one"])
    result = invoke("topic", "list", "-b", at(broker), "-vv", "--output", "json")
    assert [row["size_bytes"] for row in rows(result)] == [8 * 10 + sum(range(8)), 13]
    assert result.stderr.count(": list offsets, ") == 1


def test_list_when_no_broker_answers_is_unreachable(invoke: Invoke) -> None:
    result = invoke("topic", "list", "-b", "127.0.0.1:1", "--timeout", "10s")
    assert result.status == ExitStatus.UNREACHABLE
    assert "cannot reach 127.0.0.1:1" in result.stderr


def test_list_when_the_broker_knows_only_07_says_that_it_cannot_tell(
    broker_of_07: BrokerOf07, invoke: Invoke
) -> None:
    result = invoke("topic", "list", "-b", broker_of_07.address)
    assert result.status == ExitStatus.UNSUPPORTED
    assert "speaks only Kafka 0.7" in result.stderr


# describe


def test_describe_shows_offsets_segments_and_age_of_each_partition(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(num_partitions=2, segment_bytes=20)
    for _ in range(3):
        fill(broker, "t", [b"12345"], index=1)
    result = invoke("topic", "describe", "t", "-b", at(broker), "--output", "json")
    empty, filled = rows(result)
    assert (empty["partition"], empty["size_bytes"], empty["last_append"]) == ("0-0", 0, None)
    assert (filled["partition"], filled["start"], filled["end"]) == ("0-1", 0, 45)
    assert filled["segments"] == 2
    assert filled["address"] == at(broker)


def test_describe_shows_the_last_append_to_the_millisecond(
    start_broker: Callable[..., Broker], invoke: Invoke, tmp_path: Path
) -> None:
    earlier = Broker(BrokerConfig(port=0, data_dirs=(tmp_path / "data",), num_threads=1))
    earlier.start()
    fill(earlier, "t", [b"12345"])
    earlier.stop()
    (segment,) = earlier.config.data_dir.glob("t*/*.pylog")
    os.utime(segment, ns=(0, 1_700_000_000_123_000_000))
    result = invoke("topic", "describe", "t", "-b", at(start_broker()), "--output", "json")
    assert rows(result)[0]["last_append"] == "2023-11-14T22:13:20.123Z"


def test_describe_when_one_of_several_topics_is_unknown_does_the_rest(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "orders", [b"x"])
    result = topic("describe", "nope", "orders", "--columns", "topic", "--no-header")
    assert result.status == ExitStatus.PARTIAL
    assert result.text.split() == ["orders"]
    assert "error: topic 'nope' not found" in result.stderr
    assert result.failure is not None
    assert result.failure.details == {"failures": ["topic 'nope' not found"]}


def test_describe_when_a_topic_is_unknown_names_those_that_come_near(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "orders", [b"x"])
    result = topic("describe", "ordres")
    assert result.status == ExitStatus.NOT_FOUND
    assert "topic 'ordres' not found" in result.stderr
    assert "similar name: orders" in result.stderr


def test_describe_when_every_topic_is_unknown_is_not_found(topic: Invoke) -> None:
    result = topic("describe", "a", "b")
    assert (result.status, result.stdout) == (ExitStatus.NOT_FOUND, b"")


def test_describe_when_the_broker_knows_only_07_counts_segments_by_their_starts(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(segment_bytes=20)
    for _ in range(3):
        fill(broker, "t", [b"12345"])
    proxy = BrokerOf07(broker)
    try:
        (record,) = rows(invoke("topic", "describe", "t", "-b", proxy.address, "--output", "json"))
    finally:
        proxy.stop()
    assert (record["segments"], record["end"]) == (2, 45)


# create


def test_create_gives_the_topic_its_number_of_partitions(topic: Invoke) -> None:
    result = topic("create", "t", "--partitions", "3", "--output", "json")
    assert rows(result) == [
        {"topic": "t", "broker": 0, "before": 0, "partitions": 3, "action": "created"}
    ]
    assert len(rows(topic("describe", "t", "--output", "json"))) == 3


def test_create_when_the_format_is_kafka_then_partitions_are_numbers_until_it_is_deleted(
    topic: Invoke,
) -> None:
    create = ("create", "t", "--format", "kafka", "--partitions", "2", "--output", "json")
    assert rows(topic(*create)) == [
        {"topic": "t", "broker": 0, "before": 0, "partitions": 2, "action": "created"}
    ]
    assert rows(topic(*create, "--if-not-exists"))[0]["action"] == "exists"
    described = rows(topic("describe", "t", "--output", "json"))
    assert [(one["partition"], one["format"], one["size_bytes"]) for one in described] == [
        ("0", "kafka", 0),
        ("1", "kafka", 0),
    ]
    (found,) = rows(topic("offsets", "t", "-p", "t[1]", "--output", "json"))
    assert (found["partition"], found["end"], found["size_bytes"]) == ("1", 0, None)

    deleted = topic("delete", "t", "--data", "--yes", "--confirm", "t")
    assert deleted.status == ExitStatus.OK, deleted.stderr
    assert rows(topic("list", "--output", "json")) == []


def test_create_when_the_format_is_kafka_and_there_is_no_zookeeper_then_one_broker_is_chosen(
    two_brokers: tuple[Broker, Broker], invoke: Invoke
) -> None:
    create = ("topic", "create", "t", "--format", "kafka", "-b", at(*two_brokers))
    refused = invoke(*create)
    assert refused.status == ExitStatus.CONFLICT
    assert "without ZooKeeper: choose it" in refused.stderr
    assert "brokers: 1, 2" in refused.stderr

    assert rows(invoke(*create, "-b", "2", "--output", "json"))[0]["broker"] == 2
    (described,) = rows(
        invoke("topic", "describe", "t", "-b", at(*two_brokers), "--output", "json")
    )
    assert (described["partition"], described["leader"]) == ("0", 2)


@pytest.mark.parametrize("words", [("alter",), ("delete", "-b", "127.0.0.1:1")])
def test_change_when_the_name_is_bad_and_an_option_is_missing_names_the_bad_name(
    invoke: Invoke, words: tuple[str, ...]
) -> None:
    result = invoke("topic", *words, "a/b")
    assert (result.status, result.stderr) == (
        2,
        "error: invalid topic name 'a/b': '/' is not allowed\n",
    )


def test_create_when_the_topic_exists_is_a_conflict(topic: Invoke) -> None:
    topic("create", "t", "--partitions", "2")
    result = topic("create", "t", "--partitions", "3")
    assert result.status == ExitStatus.CONFLICT
    assert "topic 't' exists on broker 0 with 2 partitions" in result.stderr
    assert len(rows(topic("describe", "t", "--output", "json"))) == 2


def test_create_if_not_exists_when_it_exists_changes_nothing_and_is_fine(topic: Invoke) -> None:
    topic("create", "t", "--partitions", "2")
    result = topic("create", "t", "--partitions", "3", "--if-not-exists", "--output", "json")
    assert result.status == ExitStatus.OK
    assert rows(result)[0]["action"] == "exists"
    assert "warning: topic 't' exists; it does not have 3, but 2 partitions on broker 0" in (
        result.stderr
    )


def test_create_when_it_is_a_dry_run_changes_nothing(topic: Invoke) -> None:
    result = topic("create", "t", "--partitions", "3", "--dry-run", "--output", "json")
    assert rows(result)[0]["action"] == "create"
    assert "nothing changed" in result.stderr
    assert rows(topic("list", "--output", "json")) == []


def test_create_when_it_is_a_dry_run_fails_as_the_real_run_would(topic: Invoke) -> None:
    topic("create", "t", "--partitions", "3")
    result = topic("create", "t", "--partitions", "3", "--dry-run")
    assert result.status == ExitStatus.CONFLICT


def test_create_spreads_its_partitions_over_the_brokers_and_says_where_they_are(
    two_brokers: tuple[Broker, Broker], invoke: Invoke
) -> None:
    addresses = ["-b", at(*two_brokers)]
    two = invoke("topic", "create", "t", "--partitions", "2", *addresses)
    assert "topic t: 2 partitions, 1 on each of brokers 1, 2\n" in two.stderr
    planned = invoke("topic", "create", "u", "--partitions", "5", "--dry-run", *addresses)
    three = invoke("topic", "create", "u", "--partitions", "5", *addresses)
    assert "topic u: 5 partitions, 3 on broker " in three.stderr
    assert planned.stderr.partition(";")[0] == three.stderr.strip()
    each = invoke("topic", "create", "v", "--partitions-per-broker", "3", *addresses)
    assert "topic v: 6 partitions, 3 on each of brokers 1, 2\n" in each.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--partitions", "1", "--partitions-per-broker", "1"), "not both"),
        (("--replication-factor", "2", "--partitions-per-broker", "1"), "give --partitions"),
    ],
)
def test_create_when_the_numbers_do_not_go_together_is_a_usage_error(
    topic: Invoke, options: tuple[str, ...], problem: str
) -> None:
    result = topic("create", "t", *options)
    assert (result.status, problem in result.stderr) == (ExitStatus.USAGE, True)


@pytest.mark.parametrize("command", ["create", "alter", "delete"])
def test_change_when_the_name_is_illegal_says_so_before_a_missing_option(
    invoke: Invoke, command: str
) -> None:
    result = invoke("topic", command, "a/b", "-b", "127.0.0.1:1")
    assert result.status == ExitStatus.USAGE
    assert "invalid topic name 'a/b': '/' is not allowed" in result.stderr


def test_create_when_brokers_are_named_by_id_creates_it_there_only(
    two_brokers: tuple[Broker, Broker], invoke: Invoke
) -> None:
    addresses = ["-b", at(*two_brokers)]
    result = invoke("topic", "create", "t", "--partitions", "2", *addresses, "--broker", "2")
    assert result.status == 0
    described = rows(invoke("topic", "describe", "t", *addresses, "--output", "json"))
    assert [record["partition"] for record in described] == ["2-0", "2-1"]


def test_create_when_brokers_come_from_the_environment_takes_ids_as_well(
    two_brokers: tuple[Broker, Broker], invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLOGCTL_BROKER", at(*two_brokers))
    result = invoke("topic", "create", "t", "--partitions", "1", "-b", "1", "--output", "json")
    assert [record["broker"] for record in rows(result)] == [1]


def test_create_when_one_broker_has_it_creates_it_nowhere(
    two_brokers: tuple[Broker, Broker], invoke: Invoke
) -> None:
    fill(two_brokers[1], "t", [b"x"])
    addresses = ["-b", at(*two_brokers)]
    assert invoke("topic", "create", "t", "--partitions", "2", *addresses).status == 4
    (record,) = rows(invoke("topic", "list", *addresses, "--output", "json"))
    assert record["brokers"] == [2]


def test_create_when_a_broker_id_is_unknown_is_not_found(topic: Invoke) -> None:
    result = topic("create", "t", "--partitions", "1", "--broker", "7")
    assert result.status == ExitStatus.NOT_FOUND
    assert "broker '7' not found" in result.stderr
    assert "live brokers: 0" in result.stderr


def test_create_without_a_number_of_partitions_makes_one(topic: Invoke) -> None:
    result = topic("create", "t", "--output", "json")
    assert [record["partitions"] for record in rows(result)] == [1]


def test_create_when_a_broker_knows_only_07_is_unsupported_and_changes_nothing(
    two_brokers: tuple[Broker, Broker], invoke: Invoke
) -> None:
    new, old = two_brokers
    proxy = BrokerOf07(old)
    try:
        result = invoke(
            "topic", "create", "t", "--partitions", "1", "-b", f"{at(new)},2:{proxy.address}"
        )
    finally:
        proxy.stop()
    assert result.status == ExitStatus.UNSUPPORTED
    assert "knows only the requests of Kafka 0.7" in result.stderr
    assert rows(invoke("topic", "list", "-b", at(new), "--output", "json")) == []


# delete


def test_delete_with_data_removes_the_topic_and_nothing_else(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", [b"x"])
    fill(running_broker, "other", [b"x"])
    result = topic("delete", "t", "--data", "--yes", "--confirm", "t", "--output", "json")
    assert rows(result) == [
        {"topic": "t", "broker": 0, "partitions": 1, "group": None, "action": "deleted"}
    ]
    assert [record["name"] for record in rows(topic("list", "--output", "json"))] == ["other"]


@pytest.mark.parametrize("options", [(), ("--yes",), ("--yes", "--confirm", "u")])
def test_delete_when_not_confirmed_by_name_changes_nothing(
    running_broker: Broker, topic: Invoke, options: tuple[str, ...]
) -> None:
    fill(running_broker, "t", [b"x"])
    assert topic("delete", "t", "--data", *options).status == ExitStatus.DECLINED
    assert len(rows(topic("list", "--output", "json"))) == 1


def test_delete_when_it_is_a_dry_run_asks_nothing_and_changes_nothing(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", [b"x"])
    result = topic("delete", "t", "--data", "--dry-run", "--output", "json")
    assert (result.status, rows(result)[0]["action"]) == (0, "delete")
    assert "nothing changed" in result.stderr
    assert len(rows(topic("list", "--output", "json"))) == 1


def test_delete_when_one_of_several_topics_is_unknown_does_the_rest(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "a", [b"x"])
    fill(running_broker, "b", [b"x"])
    confirmed = ("--data", "--yes", "--confirm", "a", "--confirm", "b")
    result = topic("delete", "a", "nothing", "b", *confirmed)
    assert result.status == ExitStatus.PARTIAL
    assert "topic 'nothing' not found" in result.stderr
    assert rows(topic("list", "--output", "json")) == []


def test_delete_when_one_of_several_is_not_confirmed_deletes_none(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "a", [b"x"])
    fill(running_broker, "b", [b"x"])
    result = topic("delete", "a", "b", "--data", "--yes", "--confirm", "a")
    assert result.status == ExitStatus.DECLINED
    assert len(rows(topic("list", "--output", "json"))) == 2


def test_delete_when_the_topic_is_unknown_is_not_found_unless_that_is_fine(topic: Invoke) -> None:
    assert topic("delete", "t", "--data").status == ExitStatus.NOT_FOUND
    assert topic("delete", "t", "--data", "--if-exists").status == ExitStatus.OK


def test_delete_without_data_and_without_a_registry_is_a_usage_error(topic: Invoke) -> None:
    result = topic("delete", "t")
    assert result.status == ExitStatus.USAGE
    assert "without --data only ZooKeeper is changed" in result.stderr


def test_delete_when_a_broker_knows_only_07_is_unsupported_and_changes_nothing(
    two_brokers: tuple[Broker, Broker], invoke: Invoke
) -> None:
    new, old = two_brokers
    fill(new, "t", [b"x"])
    proxy = BrokerOf07(old)
    try:
        result = invoke(
            "topic", "delete", "t", "--data", "--yes", "--confirm", "t",
            "-b", f"{at(new)},2:{proxy.address}",
        )  # fmt: skip
    finally:
        proxy.stop()
    assert result.status == ExitStatus.UNSUPPORTED
    assert "cannot delete a topic" in result.stderr
    assert len(rows(invoke("topic", "list", "-b", at(new), "--output", "json"))) == 1


# offsets


@pytest.mark.parametrize(
    ("spec", "start", "end"),
    [
        ([], 0, 33),
        (["--at", "start"], 0, 33),
        (["--at", "end"], 33, 33),
        (["--at", "-1"], 22, 33),
        (["--at", "+1:-1"], 11, 22),
        (["--at", "~5"], 11, 33),
        (["--at", "11:22"], 11, 22),
        (["--at", "0-0=11,1=22"], 11, 33),
        (["--at", "@-1h"], 0, 33),
    ],
)
def test_offsets_turns_an_expression_into_numbers(
    running_broker: Broker, topic: Invoke, spec: list[str], start: int, end: int
) -> None:
    fill(running_broker, "t", [b"1", b"2", b"3"])
    (record,) = rows(topic("offsets", "t", *spec, "--output", "json"))
    assert (record["start"], record["end"], record["size_bytes"]) == (start, end, end - start)


def test_offsets_when_verbose_logs_the_time_of_the_request(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", [b"1"])
    result = topic("offsets", "t", "--at", "@1700000000", "-v")
    assert "t[0-0]: listed offsets at 2023-11-14T22:13:20.000Z\n" in result.stderr


def test_offsets_when_the_message_is_inside_a_compressed_set_shows_how_many_to_skip(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", [b"1", b"2", b"3"], codec=Codec.GZIP)
    (record,) = rows(topic("offsets", "t", "--at", "-1", "--output", "json"))
    assert (record["start"], record["inner"]) == (0, 2)


def test_offsets_when_not_a_boundary_names_the_nearest(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", [b"1", b"2"])
    result = topic("offsets", "t", "--at", "5")
    assert result.status == ExitStatus.USAGE
    assert "5 is not a message boundary in t[0-0]; nearest are 0 and 11" in result.stderr


def test_offsets_when_out_of_range_warns_or_fails_if_strict(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", [b"1"])
    result = topic("offsets", "t", "--at", "4096")
    assert result.status == ExitStatus.OK
    assert "warning: t[0-0]: 4096 is after the last offset 11; starting at 11" in result.stderr
    assert topic("offsets", "t", "--at", "4096", "--strict-offset").status == ExitStatus.NOT_FOUND


def test_offsets_when_partitions_are_chosen_shows_those_only(topic: Invoke) -> None:
    topic("create", "t", "--partitions", "3")
    result = topic("offsets", "t", "-p", "1..2", "--columns", "partition", "--no-header")
    assert result.text.split() == ["0-1", "0-2"]


def test_offsets_from_a_file_takes_the_lines_of_the_topic(
    running_broker: Broker, topic: Invoke, tmp_path: Path
) -> None:
    fill(running_broker, "t", [b"1", b"2"])
    path = tmp_path / "offsets"
    path.write_text("other 0 5\nt 0 11\n")
    (record,) = rows(topic("offsets", "t", "--at", f"file:{path}", "--output", "json"))
    assert record["start"] == 11


def test_offsets_in_csv_has_a_header_and_raw_numbers(running_broker: Broker, topic: Invoke) -> None:
    fill(running_broker, "t", [b"1"])
    result = topic("offsets", "t", "--output", "csv")
    assert list(csv.reader(result.text.splitlines())) == [
        ["topic", "partition", "start", "end", "size_bytes"],
        ["t", "0-0", "0", "11", "11"],
    ]
