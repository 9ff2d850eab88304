"""The calls of a client on topics, at a broker and at a cluster."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import pylogctl
from broker.client.connection import Connection
from broker.errors import BrokerUnreachableError
from broker.protocol.client_requests import (
    ListOffsetsRequest,
    ListSegmentsRequest,
)
from broker.protocol.cluster_requests import AddPartitionsRequest, CreateReplicatedTopicRequest
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
)
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.testing import Broker, Cluster, Faults, ephemeral_cluster
from tests.integration.broker.peers import Server, as_true_07_broker


def sizes(client: pylogctl.Client) -> dict[str, int | None]:
    return {one.name: one.size_bytes for one in client.topics()}


# at one broker


@pytest.fixture
def broker_of_07() -> Iterator[str]:
    """The address of a broker that knows only 0.7's requests, with a message in topic t."""
    with Broker() as broker:
        with broker.connect() as client:
            client.send("t", "x")
        peer = Server(as_true_07_broker(broker.port))
        yield f"127.0.0.1:{peer.port}"
        peer.stop()


def test_topics_when_there_are_some_then_gives_each_with_its_shape_and_size(
    pylog_own_broker: Callable[..., Broker],
) -> None:
    with pylog_own_broker().connect() as client:
        assert client.topics() == []
        client.create_topic("b", partitions=2)
        client.send("b", "12345", partition=1)
        client.create_topic("a")

        assert client.topics() == [
            pylogctl.TopicInfo("a", partitions=1, replicas=None, brokers=(0,), size_bytes=0),
            pylogctl.TopicInfo("b", partitions=2, replicas=None, brokers=(0,), size_bytes=15),
        ]


def test_topics_when_there_are_many_then_the_broker_is_asked_a_few_times(
    pylog_own_broker: Callable[..., Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pylog_own_broker().connect() as client:
        for n in range(30):
            client.create_topic(f"t{n}")
        asked: list[object] = []
        call = Connection.call

        def calling(self: Connection, request: Any) -> Any:
            asked.append(request)
            return call(self, request)

        monkeypatch.setattr(Connection, "call", calling)

        assert len(client.topics()) == 30

    assert len(asked) == 3  # brokers, topics, offsets of all partitions


def test_topics_when_the_broker_knows_only_07_then_says_what_it_cannot_do(
    broker_of_07: str,
) -> None:
    with pylogctl.connect(broker_of_07) as client:
        with pytest.raises(pylogctl.NotSupported, match="cannot list their topics"):
            client.topics()
        for call in (client.create_topic, client.delete_topic):
            with pytest.raises(pylogctl.NotSupported):
                call("t")
        (found,) = client.describe("t")
        assert (found.size_bytes, found.segments, found.problem) == (11, 1, "")
        assert client.count("t") == 1


def test_create_when_planned_then_nothing_changes_and_when_done_it_is_there(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    shape = pylogctl.TopicInfo(pylog_topic, 3, None, (0,), 0)

    assert pylog.create_topic(pylog_topic, partitions=3, plan=True) == shape
    assert pylog_topic not in sizes(pylog)
    assert pylog.create_topic(pylog_topic, partitions=3) == shape

    assert len(pylog.describe(pylog_topic)) == 3


def test_create_when_the_format_is_kafka_then_partitions_are_numbers_of_one_broker(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    shape = pylogctl.TopicInfo(pylog_topic, 2, None, (0,), 0, format="kafka")

    assert pylog.create_topic(pylog_topic, partitions=2, format="kafka", plan=True) == shape
    assert pylog.create_topic(pylog_topic, partitions=2, replicas=1, format="kafka") == shape

    described = pylog.describe(pylog_topic)
    assert [(one.partition.name, one.format, one.leader) for one in described] == [
        ("0", "kafka", 0),
        ("1", "kafka", 0),
    ]
    assert {(one.replicas, one.state, one.size_bytes) for one in described} == {((0,), "ok", 0)}
    assert pylog.create_topic(pylog_topic, exist_ok=True) == shape
    with pytest.raises(pylogctl.TopicExists, match="exists with 2 partitions"):
        pylog.create_topic(pylog_topic)
    with pytest.raises(pylogctl.TopicExists, match=r"the format kafka, which it has for life"):
        pylog.create_topic(pylog_topic, format="0.7", exist_ok=True)
    with pytest.raises(ValueError, match="kept in ZooKeeper"):
        pylog.create_topic("other", format="kafka", settings={"min.insync.replicas": 1})
    with pytest.raises(ValueError, match=r"one of '0\.7', 'kafka', not 'avro'"):
        pylog.create_topic("other", format="avro")  # type: ignore[arg-type]
    with pytest.raises(pylogctl.InvalidName, match="in the format kafka"):
        pylog.create_topic("a b", format="kafka")
    assert pylog.delete_topic(pylog_topic).brokers == (0,)


def test_topic_when_of_the_format_kafka_then_records_are_counted_and_sampled_by_offset(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.create_topic(pylog_topic, format="kafka", partitions=2)
    with pylog.producer() as producer:
        for number in range(100):
            producer.send(pylog_topic, str(number), key=f"k{number}", partition=1)

    assert pylog.count(pylog_topic) == 100
    assert pylog.count(pylog_topic, start=90, stop=95, partition=1) == 5
    first, second = pylog.sample(pylog_topic, 2)
    assert [(one.offset, one.key, one.value) for one in (first, second)] == [
        (0, b"k0", b"0"),
        (50, b"k50", b"50"),
    ]
    assert len(pylog.sample(pylog_topic, 1000, partition=1)) == 100
    info = next(one for one in pylog.topics() if one.name == pylog_topic)
    assert (info.size_bytes or 0) > 100


def test_create_when_it_exists_then_is_an_error_unless_that_is_ok(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.create_topic(pylog_topic, partitions=2)
    pylog.send(pylog_topic, "12345")

    with pytest.raises(pylogctl.TopicExists, match="exists on broker 0 with 2 partitions"):
        pylog.create_topic(pylog_topic, partitions=2)
    found = pylog.create_topic(pylog_topic, partitions=7, exist_ok=True)

    assert (found.partitions, found.size_bytes) == (2, 15)


def test_describe_when_messages_are_there_then_gives_offsets_segments_and_age(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.create_topic(pylog_topic, partitions=2)
    receipt = pylog.send(pylog_topic, "12345", partition=1)

    empty, filled = pylog.describe(pylog_topic)

    assert (empty.partition.name, empty.size_bytes, empty.last_append) == ("0-0", 0, None)
    assert (filled.partition, filled.start, filled.end) == (receipt.partition, 0, 15)
    assert (filled.leader, filled.replicas, filled.in_sync) == (0, (0,), (0,))
    assert (filled.min_in_sync, filled.leader_epoch, filled.lags) == (1, None, {})
    assert (filled.segments, filled.problem) == (1, "")
    assert filled.last_append is not None
    assert timedelta(0) <= datetime.now(UTC) - filled.last_append < timedelta(hours=1)


def test_facts_when_one_of_two_brokers_falls_silent_then_lack_its_part_only(
    pylog_own_broker: Callable[..., Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = [pylog_own_broker({"brokerid": id}) for id in ("1", "2")]
    call = Connection.call

    def failing(self: Connection, request: Any) -> Any:
        if isinstance(request, ListOffsetsRequest | ListSegmentsRequest) and self.address.id == 2:
            raise BrokerUnreachableError("it is silent")
        return call(self, request)

    with pylogctl.connect([one.address for one in brokers], retries=0) as client:
        client.create_topic("t", partitions=2)
        client.create_topic("u", brokers=[1])
        monkeypatch.setattr(Connection, "call", failing)

        assert sizes(client) == {"t": None, "u": 0}
        heard, silent = client.describe("t")
        assert (heard.partition.name, heard.size_bytes, heard.problem) == ("1-0", 0, "")
        assert (silent.partition.name, silent.leader) == ("2-0", 2)
        assert (silent.size_bytes, silent.segments, silent.problem) == (None, None, "it is silent")
        with pytest.raises(pylogctl.Unreachable, match="it is silent"):
            client.count("t")
        client.create_topic("v", brokers=[2])
        with pytest.raises(pylogctl.Unreachable, match="it is silent"):
            client.describe("v")


def test_count_when_a_range_is_given_then_counts_the_messages_in_it(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    with pylog.producer(codec="gzip", linger=60) as producer:
        producer.send_many(pylog_topic, [str(n) for n in range(10)], partition=0)
    receipt = pylog.send(pylog_topic, "x", partition=0)

    assert pylog.count(pylog_topic) == 11
    assert pylog.count(pylog_topic, start="-4") == 4
    assert pylog.count(pylog_topic, stop="+3", partition="0-0") == 3
    assert pylog.count(pylog_topic, start=receipt.offset) == 1
    assert pylog.count(pylog_topic, start="end") == 0


def test_count_when_it_takes_longer_than_the_timeout_then_goes_on_while_the_broker_responds(
    pylog_faults: Faults,
) -> None:
    with pylog_faults.connect() as client:
        with client.producer() as producer:
            producer.send_many("t", [bytes(1000)] * 8000, partition=0)
        pylog_faults.delay(0.03)  # for each 64 KiB
        started_s = time.monotonic()

        # longer than a pause of the machine, which is no response either
        assert client.count("t", timeout=3) == 8000

        assert time.monotonic() - started_s > 3


def test_offsets_when_a_place_is_given_then_finds_it_in_each_partition(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.create_topic(pylog_topic, partitions=2)
    receipts = pylog.send_many(pylog_topic, ["a", "b"], partition=1)
    first, second = (one.partition for one in pylog.describe(pylog_topic))

    assert pylog.offsets(pylog_topic, "end") == {first: 0, second: receipts[1].next_offset}
    assert pylog.offsets(pylog_topic, "-1") == {first: 0, second: receipts[1].offset}
    assert pylog.offsets(pylog_topic, datetime.now(UTC) - timedelta(days=1), partition=1) == {
        second: 0
    }
    with pytest.raises(pylogctl.NotABoundary):
        pylog.offsets(pylog_topic, 3, partition=1)


def test_sample_when_there_are_more_messages_then_gives_some_evenly_spaced(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.create_topic(pylog_topic, partitions=2)
    pylog.send_many(pylog_topic, [str(n) for n in range(10)], partition=0)
    pylog.send(pylog_topic, "other", partition=1)
    read = {(one.partition, one.offset): one for one in pylog.read(pylog_topic)}

    found = pylog.sample(pylog_topic)

    assert [one.text() for one in found] == ["0", "2", "4", "6", "8", "other"]
    for one in found:
        assert repr(one) == repr(read[one.partition, one.offset])
    chosen = pylog.sample(pylog_topic, 3, partition=0, start="-4", at_random=True)
    assert len(chosen) == 3
    assert {one.text() for one in chosen} <= {"6", "7", "8", "9"}


def test_delete_when_done_then_the_topic_and_its_messages_are_gone(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.create_topic(pylog_topic, partitions=2)
    pylog.send(pylog_topic, "x")
    gone = pylogctl.Deletion(pylog_topic, 2, (0,), (), (), ())

    assert pylog.delete_topic(pylog_topic, plan=True) == gone
    assert pylog_topic in sizes(pylog)
    assert pylog.delete_topic(pylog_topic) == gone

    assert pylog_topic not in sizes(pylog)
    with pytest.raises(pylogctl.UnknownTopic):
        pylog.delete_topic(pylog_topic)
    assert pylog.delete_topic(pylog_topic, missing_ok=True).partitions == 0
    assert pylog.create_topic(pylog_topic).size_bytes == 0


@contextmanager
def before_the_first(
    kind: type[object], act: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[object]]:
    """Act before the first request of a kind is sent; gives all requests of this kind."""
    sent: list[object] = []
    call = Connection.call

    def calling(self: Connection, request: Any) -> Any:
        if isinstance(request, kind):
            sent.append(request)
            if len(sent) == 1:
                act()
        return call(self, request)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "call", calling)
        yield sent


def test_create_when_the_response_is_lost_then_it_finds_what_it_has_created(
    pylog_faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose() -> None:
        pylog_faults.cut_after(0)

    with pylog_faults.connect() as client:
        with before_the_first(CreateTopicRequest, lose, monkeypatch) as sent:
            assert client.create_topic("t", partitions=3).partitions == 3
        assert len(sent) == 2


def test_create_when_another_shape_is_there_after_a_lost_response_then_it_exists(
    pylog_faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pylog_faults.connect() as client, pylog_faults.broker.connect() as other:

        def lose() -> None:
            other.create_topic("t", partitions=5)
            pylog_faults.cut_after(0)

        with (
            before_the_first(CreateTopicRequest, lose, monkeypatch),
            pytest.raises(pylogctl.TopicExists, match="with 5 partitions"),
        ):
            client.create_topic("t", partitions=3)


def test_create_when_another_program_is_first_then_it_exists(
    pylog_broker: Broker, pylog_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pylog_broker.connect() as client, pylog_broker.connect() as other:

        def be_first() -> None:
            other.create_topic(pylog_topic)

        with (
            before_the_first(CreateTopicRequest, be_first, monkeypatch),
            pytest.raises(pylogctl.TopicExists, match="on broker 0 meanwhile"),
        ):
            client.create_topic(pylog_topic)


def test_delete_when_the_response_is_lost_then_it_is_deleted(
    pylog_faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose() -> None:
        pylog_faults.cut_after(0)

    with pylog_faults.connect() as client:
        client.create_topic("t")
        with before_the_first(DeleteTopicRequest, lose, monkeypatch) as sent:
            assert client.delete_topic("t").partitions == 1
        assert len(sent) == 2
        assert client.topics() == []


Call = Callable[[pylogctl.Client], object]

BAD: list[tuple[Call, type[Exception], str]] = [
    (lambda c: c.describe(5), TypeError, "the topic as str, not int"),  # type: ignore[arg-type]
    (lambda c: c.describe("a/b"), pylogctl.InvalidName, "'/' is not allowed"),
    (lambda c: c.describe("absent"), pylogctl.UnknownTopic, "topic 'absent' not found"),
    (lambda c: c.create_topic(5), TypeError, "the topic as str, not int"),  # type: ignore[arg-type]
    (lambda c: c.create_topic(""), pylogctl.InvalidName, "it is empty"),
    (lambda c: c.create_topic("u", partitions=0), ValueError, "partitions is at least 1"),
    (lambda c: c.create_topic("u", partitions=10_001), ValueError, "at most 10000, not 10001"),
    (lambda c: c.create_topic("u", partitions=1.0), TypeError, "partitions as an int, not float"),  # type: ignore[arg-type]
    (lambda c: c.create_topic("u", partitions=True), TypeError, "not bool"),
    (lambda c: c.create_topic("u", replicas=0), ValueError, "replicas is at least 1"),
    (lambda c: c.create_topic("u", replicas=1), pylogctl.NoZooKeeper, "which replicas need"),
    (lambda c: c.create_topic("u", replicas=1, brokers=[0]), ValueError, "leave out `brokers`"),
    (lambda c: c.create_topic("u", brokers=0), TypeError, "several ids, such as a list, not 0"),  # type: ignore[arg-type]
    (lambda c: c.create_topic("u", brokers=["0"]), TypeError, "its id, an int, not str"),  # type: ignore[list-item]
    (lambda c: c.create_topic("u", brokers=[]), ValueError, "no broker is given"),
    (lambda c: c.create_topic("u", brokers=[9]), pylogctl.UnknownBroker, "'9' not found"),
    (lambda c: c.create_topic("u", settings={"a": "1"}), ValueError, "topics with `replicas`"),
    (lambda c: c.create_topic("u", settings=[]), TypeError, "by name, not list"),  # type: ignore[arg-type]
    (
        lambda c: c.create_topic("u", replicas=1, settings={"a": None}),  # type: ignore[dict-item]
        TypeError,
        "a as an int, a bool or str, not NoneType",
    ),
    (lambda c: c.create_topic("u", timeout=-1), ValueError, "timeout is at least 0"),
    (lambda c: c.alter_topic("absent", partitions=2), pylogctl.UnknownTopic, "not found"),
    (lambda c: c.alter_topic("t", partitions="2"), TypeError, "not str"),  # type: ignore[arg-type]
    (lambda c: c.alter_topic("t", partitions=1), pylogctl.Conflict, "has 1 partition on broker 0"),
    (lambda c: c.alter_topic("t"), ValueError, "`partitions_per_broker` is needed"),
    (
        lambda c: c.create_topic("u", partitions=1, partitions_per_broker=1),
        ValueError,
        "not both",
    ),
    (lambda c: c.create_topic("u", partitions_per_broker=0), ValueError, "broker is at least 1"),
    (lambda c: c.alter_topic("t", partitions=2), pylogctl.NoZooKeeper, "have no ZooKeeper"),
    (lambda c: c.delete_topic(None), TypeError, "the topic as str, not NoneType"),  # type: ignore[arg-type]
    (lambda c: c.delete_topic("absent"), pylogctl.UnknownTopic, "not found"),
    (lambda c: c.delete_topic("t", with_offsets=True), pylogctl.NoZooKeeper, "no ZooKeeper"),
    (lambda c: c.count(re.compile("t")), TypeError, "the topic as str"),  # type: ignore[arg-type]
    (lambda c: c.count("absent"), pylogctl.UnknownTopic, "not found"),
    (lambda c: c.count("t", start="soon"), ValueError, "not an offset: 'soon'"),
    (lambda c: c.count("t", stop=None), TypeError, "not None: there is no end"),  # type: ignore[arg-type]
    (lambda c: c.count("t", partition=7), ValueError, "has no partition 7"),
    (lambda c: c.offsets("t", 1.5), TypeError, "not float"),  # type: ignore[arg-type]
    (lambda c: c.offsets("t", 999), pylogctl.OffsetOutOfRange, "after the last offset"),
    (lambda c: c.sample("t", 0), ValueError, "n is at least 1"),
    (lambda c: c.sample("t", "2"), TypeError, "n as a number, not str"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "kind", "text"), BAD, ids=[text for _, _, text in BAD])
def test_topic_calls_when_given_bad_input_then_say_what_is_wrong_and_change_nothing(
    call: Call, kind: type[Exception], text: str, pylog_broker: Broker
) -> None:
    with pylog_broker.connect() as client:
        client.create_topic("t", exist_ok=True)
        with pytest.raises(kind, match=re.escape(text)):
            call(client)
        names = sizes(client)
    assert "t" in names
    assert "u" not in names


CALLS: list[Call] = [
    lambda c: c.topics(),
    lambda c: c.describe("t"),
    lambda c: c.create_topic("v"),
    lambda c: c.alter_topic("t", partitions=2),
    lambda c: c.delete_topic("t"),
    lambda c: c.count("t"),
    lambda c: c.offsets("t", "end"),
    lambda c: c.sample("t"),
]


@pytest.mark.parametrize("call", CALLS)
def test_topic_calls_when_the_client_is_closed_then_raise_closed(
    call: Call, pylog_broker: Broker
) -> None:
    client = pylog_broker.connect()
    client.close()
    with pytest.raises(pylogctl.Closed):
        call(client)


@pytest.mark.parametrize("call", CALLS)
def test_topic_calls_when_the_broker_is_gone_then_end_in_time_with_unreachable(
    call: Call, pylog_own_broker: Callable[..., Broker]
) -> None:
    broker = pylog_own_broker()
    with broker.connect(timeout=2.0) as client:
        client.create_topic("t", timeout=60)
        broker.stop()
        started_s = time.monotonic()
        with pytest.raises((pylogctl.Unreachable, pylogctl.TimedOut)):
            call(client)
        assert time.monotonic() - started_s < 30


# at a cluster, reached by its brokers and by its ZooKeeper


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(3) as running:
        yield running


@pytest.fixture(params=["brokers", "zookeeper"])
def client(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[pylogctl.Client]:
    if request.param == "brokers":
        connected = cluster.connect()
    else:
        connected = pylogctl.connect(zookeeper=cluster.zookeeper)
    with connected:
        yield connected


@pytest.fixture
def session(cluster: Cluster) -> Iterator[Session]:
    opened = Session(cluster.zookeeper)
    opened.start(60)
    yield opened
    opened.stop()


def shown_by(cluster: Cluster, topic: str) -> list[int]:
    """How many partitions of a topic each broker shows at once; -1 where it is unknown."""
    counts = []
    for broker in cluster.brokers:
        with broker.connect() as one:
            found = {info.name: info.partitions for info in one.topics()}
            counts.append(found.get(topic, -1))
    return counts


@pytest.mark.zookeeper
def test_topic_with_replicas_when_changed_then_every_broker_shows_it_when_the_call_returns(
    client: pylogctl.Client, cluster: Cluster, pylog_topic: str
) -> None:
    with pytest.raises(pylogctl.UnknownTopic):
        client.describe(pylog_topic)
    settings = {"min.insync.replicas": 2, "unclean.leader.election.enable": True}
    planned = client.create_topic(pylog_topic, partitions=3, replicas=2, plan=True)
    assert (planned.partitions, planned.replicas) == (3, 2)
    assert shown_by(cluster, pylog_topic) == [-1, -1, -1]

    made = client.create_topic(pylog_topic, partitions=3, replicas=2, settings=settings)
    assert made == pylogctl.TopicInfo(pylog_topic, 3, 2, (0, 1, 2), 0)
    assert shown_by(cluster, pylog_topic) == [3, 3, 3]
    receipt = client.send(pylog_topic, "12345")
    assert [one.text() for one in client.read(pylog_topic)] == ["12345"]
    described = {one.partition: one for one in client.describe(pylog_topic)}
    filled = described[receipt.partition]
    assert (filled.size_bytes, filled.leader, filled.min_in_sync) == (15, filled.replicas[0], 2)
    assert sorted(filled.in_sync) == sorted(filled.replicas)
    assert set(filled.lags) == set(filled.replicas[1:])
    assert filled.leader_epoch == 0

    assert client.alter_topic(pylog_topic, partitions=5, plan=True).partitions == 5
    assert shown_by(cluster, pylog_topic) == [3, 3, 3]
    altered = client.alter_topic(pylog_topic, partitions=5)
    assert (altered.partitions, altered.size_bytes) == (5, 15)
    assert shown_by(cluster, pylog_topic) == [5, 5, 5]
    new = {one.partition for one in client.describe(pylog_topic)} - described.keys()
    for partition in new:
        client.send(pylog_topic, "new", partition=partition)
    assert client.count(pylog_topic) == 3

    gone = client.delete_topic(pylog_topic)
    assert (gone.partitions, gone.brokers) == (5, (0, 1, 2))
    assert shown_by(cluster, pylog_topic) == [-1, -1, -1]


@pytest.mark.zookeeper
def test_topic_without_replicas_when_changed_then_every_broker_shows_it_when_the_call_returns(
    client: pylogctl.Client, cluster: Cluster, pylog_topic: str, session: Session
) -> None:
    made = client.create_topic(pylog_topic, partitions=4, brokers=[0, 2])
    assert made == pylogctl.TopicInfo(pylog_topic, 4, None, (0, 2), 0)
    assert shown_by(cluster, pylog_topic) == [4, 4, 4]
    more = client.create_topic(pylog_topic, brokers=[1])
    assert (more.partitions, more.brokers) == (5, (0, 1, 2))
    client.send(pylog_topic, "12345", partition="1-0")

    with pytest.raises(pylogctl.Conflict, match="2 on each of brokers 0, 2, 1 on broker 1") as no:
        client.alter_topic(pylog_topic, partitions=7)
    assert "--partitions 6 (--partitions-per-broker 2) or --partitions 9" in str(no.value.hints)
    assert client.alter_topic(pylog_topic, partitions=6).partitions == 6
    assert client.alter_topic(pylog_topic, partitions=9, plan=True).partitions == 9
    assert client.alter_topic(pylog_topic, partitions_per_broker=3).partitions == 9
    assert shown_by(cluster, pylog_topic) == [9, 9, 9]

    gone = client.delete_topic(pylog_topic)
    assert (gone.partitions, gone.brokers, gone.notes) == (9, (0, 1, 2), ())
    assert shown_by(cluster, pylog_topic) == [-1, -1, -1]
    assert not session.exists(paths.topic(pylog_topic))


@pytest.mark.zookeeper
def test_create_when_the_partition_count_was_set_before_then_it_is_what_brokers_get(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    client.set_settings({"partition.count": 2}, topic=pylog_topic, may_be_absent=True)

    with pytest.raises(pylogctl.Conflict, match=r"its setting partition\.count was made before"):
        client.create_topic(pylog_topic, partitions=3)
    planned = client.create_topic(pylog_topic, plan=True)
    made = client.create_topic(pylog_topic)

    assert (made.partitions, made.brokers) == (6, (0, 1, 2))
    assert planned == made
    with pytest.raises(pylogctl.TopicExists):
        client.create_topic(pylog_topic)


@pytest.mark.zookeeper
def test_delete_when_groups_have_offsets_then_tells_them_and_deletes_them_if_told(
    client: pylogctl.Client, pylog_topic: str, session: Session
) -> None:
    client.create_topic(pylog_topic, brokers=[0])
    client.send(pylog_topic, "x")
    with client.group("billing", pylog_topic, start="earliest", commit="manual") as group:
        next(group)
        group.commit()
    stored = paths.offsets("billing", pylog_topic)
    assert session.exists(stored)

    kept = client.delete_topic(pylog_topic, plan=True)
    assert (kept.groups, kept.kept_groups) == ((), ("billing",))
    gone = client.delete_topic(pylog_topic, with_offsets=True)

    assert (gone.groups, gone.kept_groups) == (("billing",), ())
    assert not session.exists(stored)


@pytest.mark.zookeeper
def test_create_when_replicas_make_no_sense_then_nothing_is_created(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    with pytest.raises(pylogctl.Conflict, match="4 replicas need as many live brokers, not 3"):
        client.create_topic(pylog_topic, replicas=4)
    with pytest.raises(ValueError, match="no setting of topics 'nope'"):
        client.create_topic(pylog_topic, replicas=2, settings={"nope": 1})
    with pytest.raises(ValueError, match=r"min\.insync\.replicas"):
        client.create_topic(pylog_topic, replicas=2, settings={"min.insync.replicas": 0})
    assert pylog_topic not in sizes(client)


@pytest.mark.zookeeper
def test_create_when_it_exists_with_replicas_then_stays_as_it_is(
    client: pylogctl.Client, pylog_topic: str
) -> None:
    made = client.create_topic(pylog_topic, replicas=3)
    for replicas in (None, 3):
        with pytest.raises(pylogctl.TopicExists, match="with 1 partitions, with 3 replicas"):
            client.create_topic(pylog_topic, partitions=2, replicas=replicas)
        found = client.create_topic(pylog_topic, partitions=2, replicas=replicas, exist_ok=True)
        assert found == made
    client.delete_topic(pylog_topic)


@pytest.mark.zookeeper
@pytest.mark.parametrize("exist_ok", [False, True])
def test_create_with_replicas_when_another_program_is_first_then_its_topic_exists(
    cluster: Cluster, pylog_topic: str, monkeypatch: pytest.MonkeyPatch, exist_ok: bool
) -> None:
    with cluster.connect() as client, cluster.connect() as other:

        def be_first() -> None:
            other.create_topic(pylog_topic, replicas=2)

        with before_the_first(CreateReplicatedTopicRequest, be_first, monkeypatch):
            if exist_ok:
                found = client.create_topic(pylog_topic, partitions=4, replicas=3, exist_ok=True)
                assert (found.partitions, found.replicas) == (1, 2)
            else:
                with pytest.raises(pylogctl.TopicExists):
                    client.create_topic(pylog_topic, partitions=4, replicas=3)
        client.delete_topic(pylog_topic)


@pytest.mark.zookeeper
@pytest.mark.parametrize("kind", [CreateReplicatedTopicRequest, AddPartitionsRequest])
def test_change_of_replicas_when_the_response_is_lost_then_is_done_once(
    kind: type[object],
    cluster: Cluster,
    pylog_topic: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[object] = []
    call = Connection.call

    def losing(self: Connection, request: Any) -> Any:
        body = call(self, request)
        if isinstance(request, kind):
            sent.append(request)
            if len(sent) == 1:
                raise BrokerUnreachableError("the response is lost")
        return body

    with cluster.connect() as client:
        if kind is AddPartitionsRequest:
            client.create_topic(pylog_topic, partitions=1, replicas=2)
        monkeypatch.setattr(Connection, "call", losing)
        if kind is AddPartitionsRequest:
            made = client.alter_topic(pylog_topic, partitions=3)
        else:
            made = client.create_topic(pylog_topic, partitions=3, replicas=2)
        assert (made.partitions, made.replicas, len(sent)) == (3, 2, 1)
        client.delete_topic(pylog_topic)
