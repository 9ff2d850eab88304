"""Topics of Kafka's format: record batches in requests, and in copies between brokers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.cluster_state import creation_key
from broker.errors import (
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
    WrongFormatError,
    WrongPartitionError,
)
from broker.protocol.client_requests import (
    Acks,
    AnyReplicaReadRequest,
    DigestLogRequest,
    ListOffsetsRequest,
    OffsetKind,
    OffsetQuery,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
    SessionReadRequest,
)
from broker.protocol.codec import (
    NEW_BATCH,
    Record,
    decode_records,
    encode,
    encode_batch,
    scan_batches,
)
from broker.protocol.primitives import INT64
from broker.protocol.replica_requests import ReplicaFetchRequest, ReplicaPosition
from broker.protocol.requests import (
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
)
from broker.protocol.responses import (
    LISTED_OFFSETS,
    LOG_DIGEST,
    LogDigest,
    decode_publish_response,
    decode_read_response,
)
from broker.server.broker import Broker
from broker.server.requests.validation import Validator, ValidMessages
from broker.topic import TopicPartition
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import (
    Peer,
    extension_frame,
    publish_request,
    read_request,
)
from tests.integration.broker.server.scripted_cluster import TOPIC_ID, ScriptedCluster
from tests.support.broker_proof import prove_to
from tests.support.replica_parts import read_replica_parts
from tests.support.waiting import wait_until

PARTITION = TopicPartition("events", -1, 0)
OLD = encode([b"a message of 0.7"])


def batch_of(
    count: int,
    *,
    first: int = 0,
    time_ms: int = 1000,
    sequence: int = -1,
    epoch: int = 0,
    codec: int = 0,
    value_bytes: int = 5,
) -> bytes:
    """Return a batch whose records have numbers; one with a sequence is of producer 7."""
    head = NEW_BATCH._replace(attributes=codec)
    if sequence >= 0:
        head = head._replace(producer_id=7, producer_epoch=epoch, base_sequence=sequence)
    return encode_batch(
        [
            Record(n, time_ms + n, b"key", b"%0*d" % (value_bytes, first + n), (("h", b"x"),))
            for n in range(count)
        ],
        head,
    )


def values_of(data: object) -> list[int]:
    assert isinstance(data, bytes | memoryview)
    return [int((one.value or b"")[-9:]) for one in decode_records(data).records]


@pytest.fixture
def kafka_broker(start_broker: BrokerFactory) -> Broker:
    return start_broker(log_format="kafka")


@pytest.fixture
def peer(kafka_broker: Broker, connect: PeerFactory) -> Peer:
    return connect(kafka_broker)


def list_offset(peer: Peer, kind: OffsetKind, argument: int = 0) -> int:
    query = OffsetQuery(PARTITION, kind, argument)
    (found,) = LISTED_OFFSETS.decode(peer.call(ListOffsetsRequest((query,))))
    return found.offset if not found.error else -found.error


def test_publish_when_a_topic_is_of_kafka_then_offsets_count_records(peer: Peer) -> None:
    first = peer.publish("events", batch_of(3))
    assert (first.error, first.base_offset, first.partition) == (0, 0, PARTITION)
    assert peer.publish("events", batch_of(2, first=3) + batch_of(1, first=5)).base_offset == 3
    assert peer.publish("events", batch_of(400, first=6, codec=4)).base_offset == 6
    assert peer.publish("events", b"").base_offset == 406

    part = peer.read("events", 0)
    assert (part.error, part.high_watermark, part.log_start_offset) == (0, 406, 0)
    assert values_of(part.message_set) == [*range(406)]
    assert [one.base_offset for one in scan_batches(part.message_set).batches] == [0, 3, 5, 6]
    assert (peer.read("events", 406).error, peer.read("events", 407).error) == (0, 1)


def test_read_when_an_offset_is_inside_a_batch_then_begins_with_that_batch(peer: Peer) -> None:
    peer.publish("events", batch_of(3))
    peer.publish("events", batch_of(3, first=3))
    assert values_of(peer.read("events", 4).message_set) == [3, 4, 5]
    assert len(peer.read("events", 4, max_bytes=10).message_set) == 10


def test_offsets_when_a_topic_is_of_kafka_then_they_are_found_by_record_and_its_time(
    peer: Peer,
) -> None:
    peer.publish("events", batch_of(3, time_ms=1000))
    peer.publish("events", batch_of(3, time_ms=2000))
    assert list_offset(peer, OffsetKind.EARLIEST) == 0
    assert list_offset(peer, OffsetKind.LATEST) == 6
    assert list_offset(peer, OffsetKind.LOG_END) == 6
    times = {0: 0, 1001: 1, 1500: 3, 2002: 5, 9000: 6}
    assert {one: list_offset(peer, OffsetKind.BEFORE_TIME, one) for one in times} == times
    assert list_offset(peer, OffsetKind.BOUNDARY_BEFORE, 4) == 4
    assert list_offset(peer, OffsetKind.BOUNDARY_AFTER, 4) == 4
    assert list_offset(peer, OffsetKind.BOUNDARY_AFTER, 7) == -1


def test_read_when_it_waits_then_min_bytes_are_bytes(peer: Peer, kafka_broker: Broker) -> None:
    peer.publish("events", batch_of(3))
    one = batch_of(1)
    peer.send_extension(read_request("events", 3, max_wait_ms=60_000, min_bytes=2 * len(one)))
    with Peer(kafka_broker.port) as other:
        assert other.publish("events", one).error == 0
        assert not peer.has_answer(0.1)
        assert other.publish("events", one).error == 0
    (part,) = decode_read_response(peer.receive_extension())
    assert len(part.message_set) == 2 * len(one)


def test_read_when_it_is_in_a_session_then_gets_the_batches_that_are_new(
    peer: Peer, kafka_broker: Broker
) -> None:
    position = PartitionPosition(PARTITION, 0, 1 << 20)
    peer.publish("events", batch_of(2))
    request = SessionReadRequest(ReadRequest(0, 1, 1 << 20, (position,)), 0, 0, False, ())
    body = peer.call(request)
    (session_id,) = body.fields(INT64)
    (part,) = decode_read_response(body)
    assert values_of(part.message_set) == [0, 1]

    moved = ReadRequest(60_000, 1, 1 << 20, (position._replace(offset=2),))
    peer.send_extension(SessionReadRequest(moved, session_id, 1, False, ()))
    with Peer(kafka_broker.port) as other:
        assert other.publish("events", batch_of(2, first=2)).error == 0
    body = peer.receive_extension()
    body.fields(INT64)
    (part,) = decode_read_response(body)
    assert values_of(part.message_set) == [2, 3]


def test_publish_when_a_set_is_of_the_other_format_then_refused_and_the_next_one_taken(
    peer: Peer,
) -> None:
    refused = peer.publish("events", OLD)
    assert refused.error == WrongFormatError.code
    assert refused.text == "topic 'events' has format kafka, and takes no messages of 0.7"
    assert peer.publish("events", batch_of(1)).error == 0


def test_publish_when_a_topic_is_of_07_then_batches_are_refused(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker())
    refused = peer.publish("events", batch_of(1))
    assert refused.error == WrongFormatError.code
    assert "takes no Kafka's record batches" in refused.text
    assert peer.publish("events", OLD).error == 0


@pytest.mark.parametrize(
    ("former", "present", "message_set"),
    [("kafka", "0.7", batch_of(1)), ("0.7", "kafka", OLD)],
    ids=["kafka", "0.7"],
)
def test_produce_when_its_topic_is_made_in_the_other_format_meanwhile_then_nothing_is_written(
    start_broker: BrokerFactory,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
    former: str,
    present: str,
    message_set: bytes,
) -> None:
    broker = start_broker(log_format=former)
    validate = Validator.validate

    def make_meanwhile(validator: Validator, *arguments: Any) -> ValidMessages:
        found = validate(validator, *arguments)
        broker.logs.creation.create_topic("events", 1, format=present)
        return found

    monkeypatch.setattr(Validator, "validate", make_meanwhile)
    peer = connect(broker)
    peer.send(ProduceRequest("events", 0, message_set))
    assert peer.is_closed()
    assert broker.status()["bytes"] == 0


def test_requests_when_they_name_a_home_of_a_topic_without_homes_then_refused(
    peer: Peer,
) -> None:
    peer.publish("events", batch_of(1))
    at_home = PARTITION._replace(home=0)
    request = PublishRequest(Acks.COMMITTED, 1000, (PartitionSet(at_home, batch_of(1)),))
    (published,) = decode_publish_response(peer.call(request))
    assert published.error == WrongPartitionError.code
    read = ReadRequest(0, 1, 1000, (PartitionPosition(at_home, 0, 1000),))
    (part,) = decode_read_response(peer.call(read))
    assert part.error == WrongPartitionError.code
    assert peer.publish("events", b"").base_offset == 1


@pytest.mark.parametrize(
    "request_of_07",
    [
        ProduceRequest("events", 0, OLD),
        ProduceRequest("events", 0, batch_of(1)),
        MultiProduceRequest((ProduceRequest("events", 0, OLD),)),
        FetchRequest("events", 0, 0, 1000),
        MultiFetchRequest((FetchRequest("events", 0, 0, 1000),)),
        OffsetsRequest("events", 0, -1, 1),
    ],
    ids=lambda one: type(one).__name__,
)
def test_request_of_07_when_a_topic_is_of_kafka_then_its_connection_is_closed(
    peer: Peer, kafka_broker: Broker, caplog: pytest.LogCaptureFixture, request_of_07: object
) -> None:
    assert peer.publish("events", batch_of(1)).error == 0
    with Peer(kafka_broker.port) as old:
        old.send(request_of_07)  # type: ignore[arg-type]
        assert old.is_closed()
    wait_until(lambda: "topic 'events' has format kafka" in caplog.text, "the reason")
    assert peer.publish("events", b"").base_offset == 1


def test_publish_when_requests_arrive_together_then_each_batch_has_its_own_outcome(
    peer: Peer,
) -> None:
    peer.publish("events", b"")
    sent = [
        batch_of(2, sequence=0),
        batch_of(3, first=2, sequence=2),
        batch_of(2, sequence=0),
        batch_of(1, sequence=9),
        OLD,
        batch_of(1, first=5, sequence=5, codec=4),
        b"",
    ]
    for count in (3, 7):  # the first ones again
        frames = [extension_frame(publish_request("events", one)) for one in sent[:count]]
        peer.send_bytes(b"".join(frames))
        found = [decode_publish_response(peer.receive_extension())[0] for _ in range(count)]
        offsets = [-one.error if one.error else one.base_offset for one in found]
        assert offsets == [0, 2, 0, -45, -43, 5, 6][:count]
    assert values_of(peer.read("events", 0).message_set) == [*range(6)]


def test_publish_when_a_batch_comes_again_then_its_first_offset_is_told_and_gaps_are_refused(
    peer: Peer,
) -> None:
    assert peer.publish("events", batch_of(3, sequence=0)).base_offset == 0
    assert peer.publish("events", batch_of(2, first=3, sequence=3)).base_offset == 3
    again = peer.publish("events", batch_of(3, sequence=0))
    assert (again.error, again.base_offset) == (0, 0)

    assert peer.publish("events", batch_of(1, sequence=9)).error == OutOfOrderSequenceError.code
    assert peer.publish("events", batch_of(1, first=5, sequence=5)).base_offset == 5
    assert peer.publish("events", batch_of(1, first=6, sequence=0, epoch=1)).base_offset == 6
    older = peer.publish("events", batch_of(1, sequence=6))
    assert older.error == InvalidProducerEpochError.code
    assert values_of(peer.read("events", 0).message_set) == [*range(7)]


def test_publish_when_a_batch_comes_again_before_it_is_flushed_then_waits_for_that(
    peer: Peer, kafka_broker: Broker, held_flushes: threading.Event
) -> None:
    first = peer.publish("events", batch_of(3, sequence=0), acks=Acks.WRITTEN)
    assert first.base_offset == 0
    peer.send_extension(publish_request("events", batch_of(3, sequence=0)))
    assert not peer.has_answer(0.1)
    held_flushes.set()
    (again,) = decode_publish_response(peer.receive_extension())
    assert (again.error, again.base_offset) == (0, 0)
    assert kafka_broker.status()["bytes"] == len(batch_of(3, sequence=0))


def test_filter_when_a_topic_is_of_kafka_then_refused_with_the_reason(peer: Peer) -> None:
    peer.publish("events", batch_of(3))
    part = peer.read_filtered("events", 0, b"1")
    assert part.error == WrongFormatError.code
    assert part.text == "topic 'events' has format kafka: no filter searches it"


def digest(peer: Peer, offset: int, length: int) -> LogDigest:
    found: LogDigest = LOG_DIGEST.decode(peer.call(DigestLogRequest(PARTITION, offset, length)))
    return found


def test_digest_when_a_range_ends_inside_a_batch_then_takes_the_whole_batch(peer: Peer) -> None:
    for count in range(1, 4):
        peer.publish("events", batch_of(count))
    assert digest(peer, 0, 100).length == 6
    assert (digest(peer, 0, 1).length, digest(peer, 1, 1).length) == (1, 2)
    assert digest(peer, 2, 1).digest == digest(peer, 1, 2).digest
    assert digest(peer, 2, 1).length == 1
    assert digest(peer, 6, 5).length == 0


@pytest.fixture
def cluster(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> Iterator[ScriptedCluster]:
    yield ScriptedCluster(start_broker, connect, tmp_path, PARTITION)


def test_followers_when_a_topic_is_of_kafka_then_they_have_the_bytes_that_the_leader_stamped(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(0, (0, 1, 2))
    for number in range(20):
        published = cluster.publish(0, batch_of(3, first=3 * number))
        assert (published.error, published.base_offset) == (0, 3 * number)
    (large,) = [cluster.publish(0, batch_of(2, first=60, value_bytes=400_000))]
    assert large.base_offset == 60

    data = cluster.bytes_of(0)
    cluster.await_bytes(data)
    assert [one.leader_epoch for one in scan_batches(data).batches] == [0] * 21
    assert values_of(data) == [*range(62)]
    assert cluster.read(0, 61).high_watermark == 62


def test_read_when_a_follower_is_in_sync_then_it_answers_up_to_its_own_high_watermark(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(0, (0, 1, 2))
    assert cluster.publish(0, batch_of(3)).error == 0
    request = AnyReplicaReadRequest(10_000, 1, 1 << 20, (PartitionPosition(PARTITION, 1, 1 << 20),))
    (part,) = decode_read_response(cluster.peer(1).call(request))
    assert (part.error, values_of(part.message_set)) == (0, [0, 1, 2])


def test_follower_when_it_was_away_then_catches_up_over_several_epochs(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(0, (0, 1, 2))
    assert cluster.publish(0, batch_of(3)).error == 0
    cluster.stop(2)
    for leader in (1, 0, 1):
        cluster.decide(leader, (0, 1))
        for _ in range(8):
            assert cluster.publish(leader, batch_of(3, value_bytes=100_000)).error == 0
    cluster.start(2)
    cluster.decide(1, (0, 1))
    cluster.await_bytes(cluster.bytes_of(1))
    epochs = [one.leader_epoch for one in scan_batches(cluster.bytes_of(2)).batches]
    assert epochs == [0] + [1] * 8 + [2] * 8 + [3] * 8


def test_fetch_when_compaction_has_left_nothing_up_to_the_next_segment_then_has_its_epoch(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> None:
    def start_small(**settings: object) -> Broker:
        return start_broker(segment_bytes=150, **settings)

    cluster = ScriptedCluster(start_small, connect, tmp_path, PARTITION)
    for first in (0, 2, 4):  # each in a term of its own, the first two in one segment
        cluster.decide(0, (0,))
        for number in (first, first + 1):
            assert cluster.publish(0, batch_of(1, first=number)).error == 0
    log = cluster.brokers[0].replicas.hosted(PARTITION).log
    former = log.segments.all[0]
    swap = former.path.with_name(f"{former.path.name}.swap")
    swap.write_bytes(former.path.read_bytes()[: len(batch_of(1))])
    log.replace_segments([former], swap)

    peer = cluster.connect(0)
    prove_to(cluster.brokers[0], peer.call, 1)
    position = ReplicaPosition(PARTITION, 2, 1, 0, 1, creation_key(TOPIC_ID), 1 << 20)
    request = ReplicaFetchRequest(1, 1, 0, 0, 1 << 20, (position,))
    (part,) = read_replica_parts(peer.call(request))
    heads = scan_batches(bytes(part.data)).batches
    assert former.next_offset <= heads[0].base_offset
    assert {one.leader_epoch for one in heads} <= {one.epoch for one in part.epoch_starts}


def test_failover_when_the_old_leader_has_more_then_it_takes_the_batches_of_the_new_one(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(0, (0, 1, 2))
    assert cluster.publish(0, batch_of(3, sequence=0)).error == 0
    cluster.stop(1)
    cluster.stop(2)
    assert cluster.publish(0, batch_of(2, first=90), acks=Acks.WRITTEN).base_offset == 3
    cluster.stop(0)
    cluster.start(1)
    cluster.start(2)
    cluster.decide(1, (1, 2))
    again = cluster.publish(1, batch_of(3, sequence=0))
    assert (again.error, again.base_offset) == (0, 0)
    assert cluster.publish(1, batch_of(3, first=3, sequence=3)).base_offset == 3
    cluster.start(0)
    cluster.decide(1, (1, 2))
    cluster.await_bytes(cluster.bytes_of(1))
    assert values_of(cluster.bytes_of(0)) == [*range(6)]


def test_start_when_a_topic_is_of_kafka_then_its_batches_are_there_again(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> None:
    broker = start_broker(log_format="kafka", data_dir=tmp_path / "kept")
    peer = connect(broker)
    for number in range(5):
        assert peer.publish("events", batch_of(3, first=3 * number, sequence=3 * number)).error == 0
    broker.stop()
    peer = connect(start_broker(data_dir=tmp_path / "kept"))
    assert values_of(peer.read("events", 0).message_set) == [*range(15)]
    assert peer.publish("events", batch_of(3, first=12, sequence=12)).base_offset == 12
    assert peer.publish("events", batch_of(1, first=15, sequence=15)).base_offset == 15
