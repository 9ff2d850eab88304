from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path

import pytest

from broker.errors import (
    InvalidTopicError,
    OffsetOutOfRangeError,
    ResponseTooLargeError,
    TopicExistsError,
    UnknownTopicError,
    UnsupportedVersionError,
    WrongPartitionError,
)
from broker.log.log import Log
from broker.protocol.client_connection import encode_extension_parts
from broker.protocol.client_requests import (
    ClusterMetadataRequest,
    HelloRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetKind,
    OffsetQuery,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
    StatusParts,
    StatusRequest,
)
from broker.protocol.layouts import DATA, EXTENSION_REQUESTS
from broker.protocol.primitives import INT16, INT32, encode_short_string
from broker.protocol.requests import RequestHeader
from broker.protocol.responses import (
    HELLO,
    LISTED_OFFSETS,
    ClusterMetadataResponse,
    ListedOffset,
    MetadataResponse,
    TopicMetadata,
    decode_read_response,
)
from broker.server.broker import Broker
from broker.topic import FORMAT_KAFKA, FORMATS, TopicPartition
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, partition, read_request
from tests.support.waiting import wait_until

ONE = encode([b"one message"])
NEVER_MS = 3_600_000


def list_offsets(peer: Peer, *queries: OffsetQuery) -> list[ListedOffset]:
    return LISTED_OFFSETS.decode(peer.call(ListOffsetsRequest(queries)))


def find(peer: Peer, kind: OffsetKind, argument: int = 0, topic: str = "events") -> tuple[int, int]:
    """Return error and offset of one query."""
    (found,) = list_offsets(peer, OffsetQuery(partition(topic), kind, argument))
    return found.error, found.offset


def frame_of(request_type: int, version: int = 0, body: bytes = b"") -> bytes:
    content = INT16.pack(request_type) + RequestHeader(version, 77, "test").encode() + body
    return INT32.pack(len(content)) + content


def test_hello_when_asked_then_tells_who_and_what(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(broker_id=5, max_message_bytes=1234, max_request_bytes=56789))
    hello = HELLO.decode(peer.call(HelloRequest()))
    assert hello.broker_id == 5
    assert hello.software.startswith("pylogctl ")
    assert (hello.max_message_bytes, hello.max_request_bytes) == (1234, 56789)
    assert hello.versions == {
        number: (0, max(version for other, version in EXTENSION_REQUESTS if other == number))
        for number, _ in EXTENSION_REQUESTS
    }


@pytest.mark.parametrize("correlation_id", [0, -1, 2**31 - 1, -(2**31)])
def test_extension_when_answered_then_repeats_the_correlation_id(
    correlation_id: int, peer: Peer
) -> None:
    peer.call(HelloRequest(), correlation_id)


@pytest.mark.parametrize("request_type", [100, 32767])
def test_extension_when_type_is_unknown_then_refused_and_connection_goes_on(
    request_type: int, peer: Peer
) -> None:
    peer.send_bytes(frame_of(request_type, body=b"whatever"))
    with pytest.raises(UnsupportedVersionError, match=f"type {request_type} version 0"):
        peer.receive_extension(77)
    assert peer.status()["broker"] == 0


@pytest.mark.parametrize("version", [1, -1, 32767])
def test_extension_when_version_is_unknown_then_refused_and_connection_goes_on(
    version: int, peer: Peer
) -> None:
    peer.send_bytes(frame_of(64, version))
    with pytest.raises(UnsupportedVersionError, match=f"hello version {version} is unknown"):
        peer.receive_extension(77)
    assert peer.status()["broker"] == 0


@pytest.mark.parametrize("request_type", [65, 66, 67, 68, 70, 71])
def test_extension_when_body_is_too_short_then_closes(request_type: int, peer: Peer) -> None:
    peer.send_bytes(frame_of(request_type, body=b""))
    assert peer.is_closed()


@pytest.mark.parametrize("request_type", [65, 66, 67, 68])
def test_extension_when_count_promises_more_than_is_there_then_closes(
    request_type: int, peer: Peer
) -> None:
    peer.send_bytes(frame_of(request_type, body=b"\x00\x01" + b"\x7f\xff\xff\xff" * 4))
    assert peer.is_closed()


def test_extension_when_bytes_follow_the_body_then_ignored(peer: Peer) -> None:
    body = encode_short_string("events") + INT32.pack(3) + INT32.pack(0)
    body += encode_short_string("") + b"left over"
    peer.send_bytes(frame_of(71, body=body))
    peer.receive_extension(77)
    assert peer.status()["topics"] == 1


def test_list_offsets_when_of_the_ends_then_start_end_and_written_end(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(flush_interval_ms=NEVER_MS))
    peer.publish("events", ONE * 2)
    peer.produce("events", ONE)
    assert find(peer, OffsetKind.EARLIEST) == (0, 0)
    assert find(peer, OffsetKind.LATEST) == (0, 2 * len(ONE))
    assert find(peer, OffsetKind.LOG_END) == (0, 3 * len(ONE))


@pytest.mark.parametrize(
    ("position", "before", "after"),
    [
        (0, 0, 0),
        (1, 0, len(ONE)),
        (len(ONE) - 1, 0, len(ONE)),
        (len(ONE), len(ONE), len(ONE)),
        (len(ONE) + 1, len(ONE), 2 * len(ONE)),
        (2 * len(ONE), 2 * len(ONE), 2 * len(ONE)),
    ],
)
def test_list_offsets_when_of_a_boundary_then_that_before_and_after(
    position: int, before: int, after: int, peer: Peer
) -> None:
    peer.publish("events", ONE * 2)
    assert find(peer, OffsetKind.BOUNDARY_BEFORE, position) == (0, before)
    assert find(peer, OffsetKind.BOUNDARY_AFTER, position) == (0, after)


@pytest.mark.parametrize("kind", [OffsetKind.BOUNDARY_BEFORE, OffsetKind.BOUNDARY_AFTER])
@pytest.mark.parametrize("position", [-1, 2 * len(ONE) + 1, 2**63 - 1])
def test_list_offsets_when_boundary_is_out_of_range_then_error(
    kind: OffsetKind, position: int, peer: Peer
) -> None:
    peer.publish("events", ONE * 2)
    assert find(peer, kind, position) == (OffsetOutOfRangeError.code, -1)


def test_list_offsets_when_by_time_then_start_of_the_last_segment_written_by_then(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(segment_bytes=5))
    for _ in range(3):
        peer.publish("events", ONE)
    assert find(peer, OffsetKind.BEFORE_TIME, 2**62) == (0, 3 * len(ONE))
    assert find(peer, OffsetKind.BEFORE_TIME, 1) == (0, -1)
    assert find(peer, OffsetKind.BEFORE_TIME, -2) == (0, -1)


def test_list_offsets_when_topic_is_there_but_partition_empty_then_0(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker())
    peer.call(CreateTopicRequest("events", 2))
    for kind in (OffsetKind.EARLIEST, OffsetKind.LATEST, OffsetKind.LOG_END):
        assert find(peer, kind) == (0, 0)


def test_list_offsets_when_refused_then_each_has_its_own_error(peer: Peer) -> None:
    peer.publish("events", ONE)
    found = list_offsets(
        peer,
        OffsetQuery(partition("nothing"), OffsetKind.LATEST, 0),
        OffsetQuery(partition("events", 1), OffsetKind.LATEST, 0),
        OffsetQuery(partition("events", 0, home=9), OffsetKind.LATEST, 0),
        OffsetQuery(partition("a/b"), OffsetKind.LATEST, 0),
        OffsetQuery(partition("events"), OffsetKind.LATEST, 0),
    )
    assert [(one.error, one.offset) for one in found] == [
        (UnknownTopicError.code, -1),
        (WrongPartitionError.code, -1),
        (WrongPartitionError.code, -1),
        (InvalidTopicError.code, -1),
        (0, len(ONE)),
    ]


def test_list_offsets_when_the_log_is_damaged_there_then_tells_where_the_next_good_message_is(
    peer: Peer, running_broker: Broker
) -> None:
    peer.publish("events", ONE * 3)
    path = running_broker.config.data_dir / "events_0" / "00000000000000000000.pylog"
    with path.open("r+b") as file:
        file.seek(len(ONE))
        file.write(b"\x7f")

    inside = len(ONE) + 1
    assert find(peer, OffsetKind.BOUNDARY_BEFORE, inside) == (0, len(ONE))
    assert find(peer, OffsetKind.BOUNDARY_AFTER, inside) == (0, 2 * len(ONE))


def test_list_offsets_when_it_fails_by_a_bug_then_costs_the_connection_only(
    peer: Peer,
    running_broker: Broker,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
    expects_bugs: None,
) -> None:
    def broken(log: Log, position: int) -> int:
        raise ZeroDivisionError

    peer.publish("events", ONE)
    monkeypatch.setattr(Log, "boundary_at_or_before", broken)
    other = connect(running_broker)
    other.send_extension(
        ListOffsetsRequest((OffsetQuery(partition("events"), OffsetKind.BOUNDARY_BEFORE, 3),))
    )
    assert other.is_closed()
    assert peer.fetch("events", 0) == (0, ONE)


def test_list_offsets_when_slow_then_other_connections_are_served(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()

    def slow(log: Log, position: int) -> int:
        may_go_on.wait(60)
        return position

    monkeypatch.setattr(Log, "boundary_at_or_before", slow)
    waiting, other = connect(running_broker), connect(running_broker)
    other.publish("events", ONE)
    waiting.send_extension(
        ListOffsetsRequest((OffsetQuery(partition("events"), OffsetKind.BOUNDARY_BEFORE, 3),))
    )
    assert other.fetch("events", 0) == (0, ONE)
    assert not waiting.has_answer()
    may_go_on.set()
    assert LISTED_OFFSETS.decode(waiting.receive_extension())[0].offset == 3


def test_list_offsets_when_others_ask_for_very_many_then_a_small_request_need_not_wait_for_them(
    running_broker: Broker, connect: PeerFactory
) -> None:
    query = OffsetQuery(partition("events"), OffsetKind.BOUNDARY_BEFORE, len(ONE) * 999)
    asking, *greedy = [connect(running_broker) for _ in range(5)]
    asking.publish("events", ONE * 1000)
    for peer in greedy:
        peer.send_extension(ListOffsetsRequest((query,) * 3000))
    (listed,) = LISTED_OFFSETS.decode(asking.call(ListOffsetsRequest((query,))))
    assert listed.offset == len(ONE) * 999
    assert not all(peer.has_answer() for peer in greedy)
    for peer in greedy:
        assert set(LISTED_OFFSETS.decode(peer.receive_extension())) == {listed}


def test_list_offsets_when_asked_for_in_a_pipeline_then_completed_in_order(peer: Peer) -> None:
    peer.publish("events", ONE * 10)
    for number in range(10):
        peer.send_extension(
            ListOffsetsRequest(
                (
                    OffsetQuery(
                        partition("events"), OffsetKind.BOUNDARY_BEFORE, len(ONE) * number + 1
                    ),
                )
            ),
            number,
        )
    for number in range(10):
        (listed,) = LISTED_OFFSETS.decode(peer.receive_extension(number))
        assert listed.offset == len(ONE) * number


def metadata(peer: Peer, *topics: str, all_topics: bool = False) -> MetadataResponse:
    return MetadataResponse.decode(peer.call(MetadataRequest(None if all_topics else topics)))


def test_metadata_when_of_all_topics_then_each_with_its_partitions(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(broker_id=4, topic_partition_counts={"events": 2})
    peer = connect(broker)
    peer.publish("events", ONE)
    peer.publish("audit", ONE)
    response = metadata(peer, all_topics=True)
    assert response.brokers == ((4, "127.0.0.1", broker.port),)
    assert [one.topic for one in response.topics] == ["audit", "events"]
    (_, events) = response.topics
    assert [one.partition for one in events.partitions] == [
        TopicPartition("events", 4, 0),
        TopicPartition("events", 4, 1),
    ]
    assert {(one.leader, one.replicas, one.isr) for one in events.partitions} == {(4, (4,), (4,))}


def test_metadata_when_topics_are_named_then_those_and_errors_for_unknown_ones(peer: Peer) -> None:
    peer.publish("events", ONE)
    peer.publish("audit", ONE)
    response = metadata(peer, "nothing", "events", "a/b")
    assert [(one.topic, one.error, len(one.partitions)) for one in response.topics] == [
        ("nothing", UnknownTopicError.code, 0),
        ("events", 0, 1),
        ("a/b", UnknownTopicError.code, 0),
    ]


def test_metadata_when_a_topic_is_named_many_times_then_is_listed_once(peer: Peer) -> None:
    peer.call(CreateTopicRequest("events", 10_000))
    response = metadata(peer, *["events", "nothing"] * 200)
    assert [(one.topic, one.error, len(one.partitions)) for one in response.topics] == [
        ("events", 0, 10_000),
        ("nothing", UnknownTopicError.code, 0),
    ]


def test_metadata_when_there_are_too_many_partitions_for_one_response_then_is_refused(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.requests.admin.MAX_METADATA_BYTES", 1000)
    peer.call(CreateTopicRequest("few", 2))
    peer.call(CreateTopicRequest("many", 100))
    with pytest.raises(ResponseTooLargeError, match="ask for fewer topics, by name"):
        metadata(peer, all_topics=True)
    assert [one.topic for one in metadata(peer, "few").topics] == ["few"]


def test_metadata_when_topics_are_large_and_small_then_all_are_listed(peer: Peer) -> None:
    counts = {"a": 1, "b": 5000, "c": 2, "d": 700, "e": 600, "f": 3}
    for topic, count in counts.items():
        peer.call(CreateTopicRequest(topic, count))
    for _ in range(2):
        topics = metadata(peer, all_topics=True).topics
        assert {one.topic: len(one.partitions) for one in topics} == counts
        assert all(
            [partition.partition for partition in one.partitions]
            == [TopicPartition(one.topic, 0, index) for index in range(counts[one.topic])]
            for one in topics
        )


def test_metadata_when_it_ends_with_a_large_topic_then_its_end_is_not_held_back(
    peer: Peer,
) -> None:
    """The system keeps the end of a response for 0.2 s if it is told that more follows."""
    peer.call(CreateTopicRequest("large", 1500))

    def seconds() -> float:
        began_s = time.perf_counter()
        metadata(peer, "large")
        return time.perf_counter() - began_s

    metadata(peer, "large")  # the first response of a connection is not held
    assert any(seconds() < 0.1 for _ in range(50))  # a busy machine may take longer at times


def test_metadata_when_no_topic_is_named_then_brokers_only(peer: Peer) -> None:
    peer.publish("events", ONE)
    assert metadata(peer).topics == ()


def test_metadata_when_asked_for_then_creates_no_topic(peer: Peer) -> None:
    metadata(peer, "nothing")
    assert peer.status()["topics"] == 0


def test_create_topic_when_new_then_has_its_partitions(peer: Peer) -> None:
    peer.call(CreateTopicRequest("events", 3))
    assert len(metadata(peer, "events").topics[0].partitions) == 3
    peer.produce("events", ONE, index=2)
    assert peer.offsets("events", -2, index=2) == [0]


def test_create_topic_when_it_exists_then_refused(peer: Peer) -> None:
    peer.publish("events", ONE)
    with pytest.raises(TopicExistsError, match="topic 'events' exists on broker 0"):
        peer.call(CreateTopicRequest("events", 3))


@pytest.mark.parametrize("topic", ["", "a/b", "..", "../x", "x" * 255])
def test_create_topic_when_name_is_illegal_then_refused(topic: str, peer: Peer) -> None:
    with pytest.raises(InvalidTopicError):
        peer.call(CreateTopicRequest(topic, 1))
    assert peer.status()["topics"] == 0


@pytest.mark.parametrize("count", [-1, 10_001, 2**31 - 1])
def test_create_topic_when_number_of_partitions_is_impossible_then_refused(
    count: int, peer: Peer
) -> None:
    with pytest.raises(WrongPartitionError):
        peer.call(CreateTopicRequest("events", count))
    assert peer.status()["topics"] == 0


def test_create_topic_when_broker_restarts_then_still_there(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    first = start_broker()
    connect(first).call(CreateTopicRequest("events", 3))
    first.stop()
    peer = connect(start_broker())
    assert len(metadata(peer, "events").topics[0].partitions) == 3


def whole_topic(peer: Peer, topic: str) -> TopicMetadata:
    """Return a topic with the partitions of all brokers."""
    response = peer.call(ClusterMetadataRequest((topic,)))
    return ClusterMetadataResponse.decode(response).topics[0]


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("format", FORMATS)
def test_create_topic_when_a_format_is_named_then_it_has_that_for_life(
    start_broker: BrokerFactory, connect: PeerFactory, format: str, count: int
) -> None:
    (other,) = set(FORMATS) - {format}
    first = start_broker(log_format=other, num_partitions=2)
    peer = connect(first)
    peer.call(CreateTopicRequest("events", count, (), format))
    peer.call(CreateTopicRequest("events"))  # as a client does that is about to send
    for again in (0, 3):
        with pytest.raises(TopicExistsError, match=f"the format {re.escape(format)}"):
            peer.call(CreateTopicRequest("events", again, (), other))
    first.stop()
    peer = connect(start_broker(log_format=other))
    found = whole_topic(peer, "events")
    home = "" if format == FORMAT_KAFKA else "0-"
    assert found.format == format
    assert [one.partition.name for one in found.partitions] == [f"{home}{n}" for n in range(2)]
    assert {one.leader for one in found.partitions} == {0}


@pytest.mark.parametrize("format", FORMATS)
def test_create_topic_when_no_format_is_named_then_it_has_that_of_the_settings(
    start_broker: BrokerFactory, connect: PeerFactory, format: str
) -> None:
    peer = connect(start_broker(log_format=format))
    for topic, count in {"a": 0, "b": 1}.items():
        peer.call(CreateTopicRequest(topic, count))
        assert whole_topic(peer, topic).format == format


def test_create_topic_when_kafka_has_no_such_name_then_refused(peer: Peer) -> None:
    for count in (0, 1):
        with pytest.raises(InvalidTopicError, match="in the format kafka"):
            peer.call(CreateTopicRequest("größe", count, (), FORMAT_KAFKA))
    assert peer.status()["topics"] == 0


def test_delete_topic_when_created_again_in_the_other_format_then_served_in_that(
    peer: Peer, running_broker: Broker
) -> None:
    peer.publish("events", ONE * 3)
    peer.call(DeleteTopicRequest("events"))
    peer.call(CreateTopicRequest("events", 1, (), FORMAT_KAFKA))
    assert whole_topic(peer, "events").format == FORMAT_KAFKA
    peer.call(DeleteTopicRequest("events"))
    peer.publish("events", ONE)
    assert peer.offsets("events", -1)[0] == len(ONE)


def test_delete_topic_when_there_then_gone_with_its_files_and_starts_anew(
    peer: Peer, running_broker: Broker
) -> None:
    peer.publish("events", ONE * 3)
    peer.call(DeleteTopicRequest("events"))
    assert metadata(peer, "events").topics[0].error == UnknownTopicError.code
    assert not (running_broker.config.data_dir / "events_0").exists()
    peer.publish("events", ONE)
    assert peer.offsets("events", -1)[0] == len(ONE)


def test_delete_topic_when_unknown_then_refused(peer: Peer) -> None:
    with pytest.raises(UnknownTopicError, match="no topic 'events' on broker 0"):
        peer.call(DeleteTopicRequest("events"))


def test_delete_topic_when_a_producer_of_07_goes_on_then_its_connection_makes_the_topic_anew(
    running_broker: Broker, connect: PeerFactory
) -> None:
    producer, other = connect(running_broker), connect(running_broker)
    for _ in range(2):  # the second one finds the log by the head of the first
        producer.produce("events", ONE)
        wait_until(lambda: other.offsets("events", -1)[0] == len(ONE), "the message")
        other.call(DeleteTopicRequest("events"))
    producer.produce("events", ONE)
    wait_until(lambda: other.offsets("events", -1)[0] == len(ONE), "the message")


def test_delete_topic_when_a_reader_waits_then_it_hears_of_it(
    running_broker: Broker, connect: PeerFactory
) -> None:
    reader, other = connect(running_broker), connect(running_broker)
    other.publish("events", ONE)
    reader.send_extension(read_request("events", len(ONE), max_wait_ms=NEVER_MS))
    assert not reader.has_answer(0.05)
    other.call(DeleteTopicRequest("events"))
    (part,) = decode_read_response(reader.receive_extension())
    assert part.error == UnknownTopicError.code


def test_status_when_asked_for_then_tells_state_and_counters(
    running_broker: Broker, peer: Peer, tmp_path: Path
) -> None:
    peer.publish("events", ONE * 2)
    status = peer.status()
    assert json.loads(json.dumps(running_broker.status())).keys() == status.keys()
    assert (status["broker"], status["port"]) == (0, running_broker.port)
    assert (status["phase"], status["clean_start"]) == ("running", True)
    assert (status["topics"], status["partitions"], status["connections"]) == (1, 1, 1)
    assert status["bytes"] == 2 * len(ONE)
    assert status["data"] == str(tmp_path / "data")
    assert status["zookeeper"] is None


def test_status_when_asked_for_then_has_the_managed_objects_of_0_7(peer: Peer) -> None:
    peer.publish("events", ONE * 2)
    peer.fetch("events", 0)
    metrics = peer.status()["metrics"]
    assert metrics["BrokerAllTopicStat"] == {
        "MessagesIn": 2,
        "BytesIn": 2 * len(ONE),
        "BytesOut": 2 * len(ONE),
        "FailedProduceRequest": 0,
        "FailedFetchRequest": 0,
        "MessagesFilteredOut": 0,
    }
    assert metrics["BrokerTopicStat.events"] == metrics["BrokerAllTopicStat"]
    assert metrics["logs.events-0"] == {
        "Name": "0-0",
        "Size": 2 * len(ONE),
        "NumberOfSegments": 1,
        "CurrentOffset": 2 * len(ONE),
        "LogStartOffset": 0,
        "LogEndOffset": 2 * len(ONE),
        "NumAppendedMessages": 2,
    }
    assert metrics["LogFlushStats"]["NumFlushes"] >= 1
    sockets = metrics["SocketServerStats"]
    assert (sockets["NumProduceRequests"], sockets["NumFetchRequests"]) == (1, 1)
    assert sockets["TotalBytesRead"] > 0
    assert sockets["TotalBytesWritten"] > 0


def test_request_when_counted_then_bytes_read_are_all_bytes_of_frames(
    running_broker: Broker, peer: Peer
) -> None:
    frame = b"".join(encode_extension_parts(HelloRequest(), RequestHeader(0, 1, "test")))
    peer.send_bytes(frame * 10)
    for _ in range(10):
        peer.receive()
    sockets = running_broker.status()["metrics"]["SocketServerStats"]
    assert sockets["TotalBytesRead"] == 10 * len(frame)


def test_status_when_parts_of_a_topic_are_asked_for_then_holds_these_only(peer: Peer) -> None:
    for topic in ("orders", "orders-2"):
        peer.publish(topic, ONE)
    request = StatusRequest(StatusParts.TOPICS | StatusParts.LOGS, "orders")
    found = json.loads(DATA.decode(peer.call(request)))
    topic_objects = {"BrokerTopicStat.orders", "LogRetention.orders"}
    assert set(found["metrics"]) == topic_objects | {"logs.orders-0"}
    assert found["topics"] == 2
    assert not {"settings", "replicas"} & found.keys()
