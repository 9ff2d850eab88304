"""`pylogctl mirror`: what needs no registry. The service itself is tested with processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker import Broker, Codec, Connection, Producer, StaticCluster, TopicPartition
from broker.client.connection import parse_broker_list
from broker.protocol.message_set import build_set
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from pylogctl.mirror.errors import RouteError
from pylogctl.mirror.plan import Mirrored, MirrorSample, make_selection, status_rows
from tests.support.command_line import Invoke, Result
from tests.support.zookeeper import await_registered

FORMATS = ("table", "json", "jsonl", "csv", "tsv", "plain", "markdown", "name")


def at(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


def fill(broker: Broker, topic: str, payloads: list[bytes], codec: Codec = Codec.NONE) -> None:
    cluster = StaticCluster(parse_broker_list(at(broker)), Connection)
    with Producer(cluster, Connection) as producer:
        partition = TopicPartition(topic, broker.config.broker_id, 0)
        producer.send_set(partition, build_set(payloads, codec))
    cluster.close()


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


@pytest.fixture
def pair(start_broker: Callable[..., Broker], tmp_path: Path) -> tuple[Broker, Broker]:
    """A source, broker 0, and a target, broker 7."""
    return (
        start_broker(data_dir=tmp_path / "source"),
        start_broker(broker_id=7, data_dir=tmp_path / "target"),
    )


@pytest.fixture
def mirror(pair: tuple[Broker, Broker], invoke: Invoke) -> Invoke:
    """Run `mirror` from the source to the target."""

    def run(command: str, *args: str) -> Result:
        sides = ("--from", f"brokers={at(pair[0])}", "--to", f"brokers={at(pair[1])}")
        result: Result = invoke("mirror", command, *sides, *args)
        return result

    return run


def rows(result: Result) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(result.text)["data"]
    return data


@pytest.mark.zookeeper
def test_plan_when_topics_are_chosen_and_renamed_then_shows_what_would_be_done(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    invoke: Invoke,
    tmp_path: Path,
) -> None:
    source = start_broker(zookeeper=zookeeper, data_dir=tmp_path / "source")
    target = start_broker(broker_id=7, data_dir=tmp_path / "target")
    for topic in ("app.a", "app.b", "tmp"):
        fill(source, topic, [b"12345"])
        await_registered(session, topic)
    fill(target, "m.app.a", [b"x"])
    choice = ("--exclude", "tmp", "--topic-map", "s/^/m./")

    def plan(output: str) -> Result:
        sides = ("--from", zookeeper, "--to", f"brokers={at(target)}")
        result: Result = invoke("mirror", "run", "--dry-run", *sides, *choice, "--output", output)
        return result

    assert [(r["topic"], r["target"], r["bytes"], r["action"]) for r in rows(plan("json"))] == [
        ("app.a", "m.app.a", 15, "exists"),
        ("app.b", "m.app.b", 15, "create"),
    ]
    for output in FORMATS:
        assert "app.b" in plan(output).text, output


@pytest.mark.parametrize("output", FORMATS)
def test_document_when_asked_for_in_any_format_then_has_the_topic(
    pair: tuple[Broker, Broker], mirror: Invoke, output: str
) -> None:
    for broker in pair:
        fill(broker, "orders", [b"x"])

    result = mirror("verify", "--output", output)

    assert result.status == ExitStatus.OK
    assert "orders" in result.text


@pytest.mark.zookeeper
def test_plan_when_both_sides_are_one_then_refuses_to_mirror_a_mirror(
    start_broker: Callable[..., Broker], zookeeper: str, session: Session, invoke: Invoke
) -> None:
    fill(start_broker(zookeeper=zookeeper), "t", [b"x"])
    await_registered(session, "t")
    args = ("mirror", "run", "--dry-run", "-Z", zookeeper, "--topic-map", "s/^/m./")

    loop = invoke(*args)
    fine = invoke(*args, "--include", "t")

    assert loop.status == ExitStatus.USAGE
    assert "'t' would go to 'm.t' of the same cluster" in loop.stderr
    assert "--to" in loop.stderr
    assert fine.status == ExitStatus.OK


@pytest.mark.zookeeper
@pytest.mark.parametrize("patterns", [("a,c",), ("a, c",), ("a", "c"), ("a|c",)], ids=str)
def test_patterns_with_a_comma_mean_the_same_in_every_command(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    invoke: Invoke,
    patterns: tuple[str, ...],
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    for topic in ("a", "b", "c"):
        fill(broker, topic, [topic.encode()])
        await_registered(session, topic)
    given = [word for pattern in patterns for word in ("--include", pattern)]
    at = ("-Z", zookeeper)
    read = ("--from-beginning", "-e", *given, *at)
    for options in ((), ("--group", "g")):
        assert sorted(invoke("consume", *options, *read).text.split()) == ["a", "c"]
    table = ("--no-header", "--columns")
    listed = invoke("topic", "list", *given, *table, "name", *at)
    assert listed.text.split() == ["a", "c"], listed.stderr
    planned = invoke("mirror", "run", "--dry-run", "--topic-map", "s/^/m./", *given,
                     *table, "topic", *at)  # fmt: skip
    assert planned.text.split() == ["a", "c"], planned.stderr


def test_verify_when_order_and_compression_differ_then_agrees(
    pair: tuple[Broker, Broker], mirror: Invoke
) -> None:
    source, target = pair
    fill(source, "t", numbers(0, 1000), Codec.GZIP)
    fill(target, "t", numbers(500, 1000))
    fill(target, "t", numbers(0, 500))

    result = mirror("verify", "--exact", "--output", "json")

    (row,) = rows(result)
    assert result.status == ExitStatus.OK
    assert (row["messages"], row["target_messages"], row["status"]) == (1000, 1000, "ok")
    assert row["digest"] == row["target_digest"]


def test_verify_when_messages_come_twice_then_only_exactly_fails(
    pair: tuple[Broker, Broker], mirror: Invoke
) -> None:
    source, target = pair
    fill(source, "t", numbers(0, 10))
    fill(target, "t", numbers(0, 10) + numbers(3, 5))

    loose, exact = mirror("verify", "--output", "json"), mirror("verify", "--exact")

    assert (loose.status, exact.status) == (ExitStatus.OK, ExitStatus.CORRUPT)
    assert (rows(loose)[0]["surplus"], rows(loose)[0]["status"]) == (2, "surplus")


def test_verify_when_messages_are_missing_then_fails_though_counts_agree(
    pair: tuple[Broker, Broker], mirror: Invoke
) -> None:
    source, target = pair
    fill(source, "t", numbers(0, 10))
    fill(target, "t", [*numbers(0, 9), b"8"])

    result = mirror("verify", "--output", "json")

    assert result.status == ExitStatus.CORRUPT
    assert (rows(result)[0]["missing"], rows(result)[0]["surplus"]) == (1, 1)
    assert "the target lacks 1 message and has 1 more" in result.stderr


def test_verify_when_ranges_are_given_then_compares_only_those(
    pair: tuple[Broker, Broker], mirror: Invoke
) -> None:
    source, target = pair
    fill(source, "t", numbers(0, 10))
    fill(target, "t", [b"other", *numbers(5, 10)])

    result = mirror("verify", "--exact", "-o", "+5", "--target-offset", "+1:end")

    assert result.status == ExitStatus.OK


def test_verify_when_the_target_lacks_the_topic_then_all_is_missing(
    pair: tuple[Broker, Broker], mirror: Invoke
) -> None:
    fill(pair[0], "t", numbers(0, 10))

    result = mirror("verify", "--output", "json")

    assert result.status == ExitStatus.CORRUPT
    assert rows(result)[0]["missing"] == 10


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--topic-map", "a.b"), "not a substitution: 'a.b'"),
        (("--include", "("), "--include: '(' is no regular"),
        (("--include", "a", "--exclude", "("), "--exclude: '(' is no regular"),
    ],
)
def test_run_when_an_expression_is_wrong_then_shows_it(
    invoke: Invoke, args: tuple[str, ...], text: str
) -> None:
    result = invoke("mirror", "run", *args)

    assert result.status == ExitStatus.USAGE
    assert text in result.stderr


@pytest.mark.parametrize(
    ("include", "exclude", "topic", "is_chosen"),
    [
        ([], [], "any", True),
        (["a.*"], [], "ab", True),
        (["a.*"], [], "ba", False),
        ([], ["a.*"], "ab", False),
        ([], ["a", "b"], "c", True),
        (["a.*", "b"], ["ab"], "ab", False),
        (["a.*", "b"], ["ab"], "abc", True),
        (["a.*", "b"], ["ab"], "b", True),
    ],
)
def test_selection_when_included_and_excluded_then_whole_names_match(
    include: list[str], exclude: list[str], topic: str, is_chosen: bool
) -> None:
    assert make_selection(include, exclude, []).chosen.allows(topic) is is_chosen


def test_status_when_looked_at_twice_then_tells_lag_and_rate() -> None:
    one, two = TopicPartition("t", 0, 0), TopicPartition("t", 0, 1)
    before = MirrorSample(10.0, [Mirrored(one, 0, 100, 40), Mirrored(two, 50, 90, None)])
    after = MirrorSample(12.0, [Mirrored(one, 0, 120, 100), Mirrored(two, 50, 90, None)])

    (topic,) = status_rows([before, after], 1, {})

    assert (topic.end, topic.mirrored, topic.lag_bytes, topic.rate) == (
        210,
        100,
        60,
        30,
    )


def test_status_when_something_went_wrong_then_tells_the_last_error_that_still_holds() -> None:
    one, two = TopicPartition("t", 0, 0), TopicPartition("t", 0, 1)
    sample = MirrorSample(0.0, [Mirrored(one, 0, 100, 40), Mirrored(two, 0, 90, 90)])
    errors = {one: RouteError("holds", 5, True), two: RouteError("is over", 9, False)}

    (topic,) = status_rows([sample], 1, errors)

    assert topic.errors.by_column() == {
        "failing": True, "error_time": 5, "last_error": "holds", "corrupt": 0
    }  # fmt: skip


@pytest.mark.zookeeper
def test_status_when_nothing_was_mirrored_then_says_how_to_name_the_mirror(
    zookeeper: str, session: Session, invoke: Invoke
) -> None:
    session.create("/consumers", b"")
    result = invoke("mirror", "status", "--from", zookeeper)
    assert result.status == ExitStatus.NOT_FOUND
    assert "group 'mirror' not found: nothing was mirrored with it" in result.stderr
    assert "--group GROUP" in result.stderr


@pytest.mark.zookeeper
@pytest.mark.parametrize(
    ("more", "topics", "status"),
    [
        ((), ["mirrored"], ExitStatus.OK),
        (("--include", ".*"), ["mirrored", "other"], ExitStatus.THRESHOLD),
        (("--exclude", "mirrored"), [], ExitStatus.OK),
    ],
)
def test_status_when_the_source_has_other_topics_then_their_bytes_are_no_lag_unless_included(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    invoke: Invoke,
    more: tuple[str, ...],
    topics: list[str],
    status: ExitStatus,
) -> None:
    source = start_broker(zookeeper=zookeeper)
    fill(source, "mirrored", [b"1234567890"])
    fill(source, "other", [bytes(5000)])
    for topic in ("mirrored", "other"):
        await_registered(session, topic)
    session.create(paths.offset("mirror", TopicPartition("mirrored", 0, 0)), b"20")

    where = ("--from", zookeeper, "--output", "json", "--fail-above", "1kB")
    result = invoke("mirror", "status", *where, *more)

    assert result.status == status, result.stderr
    assert [row["topic"] for row in rows(result)] == topics
