"""A disk that is full, and then is not: a limit on file sizes stands for it."""

from __future__ import annotations

import resource
from contextlib import closing

from broker.client.connection import Connection
from broker.errors import StorageError
from broker.producer.producer import Producer
from broker.protocol.codec import encode
from broker.protocol.responses import decode_publish_response
from tests.integration.broker.server.peer import publish_request
from tests.integration.process.conftest import ProcessFactory
from tests.support.waiting import wait_until

SET = encode([bytes([n]) * 990 for n in range(10)])
LIMIT_BYTES = 5 * len(SET) + 500


def test_publish_when_disk_is_full_then_storage_error_and_good_again_with_room(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    with process.peer() as peer:
        peer.publish("events", b"")
        process.limit_file_size(LIMIT_BYTES)
        results = [peer.publish("events", SET) for _ in range(8)]
        assert [one.error for one in results] == [0] * 5 + [StorageError.code] * 3
        assert "cannot append events[0-0] at offset" in results[-1].text
        assert "File too large" in results[-1].text
        assert peer.fetch("events", 0) == (0, SET * 5)
        process.limit_file_size(resource.RLIM_INFINITY)
    with process.peer() as peer:
        assert peer.publish("events", SET).base_offset == 5 * len(SET)
        assert peer.fetch("events", 0) == (0, SET * 6)


def test_publish_when_an_earlier_set_of_the_pipe_was_refused_then_no_later_one_is_stored(
    start_process: ProcessFactory,
) -> None:
    small = encode([b"small"])
    process = start_process()
    with process.peer() as peer, process.peer() as pipe:
        peer.publish("events", SET * 5)
        process.limit_file_size(LIMIT_BYTES)
        pipe.send_extension(publish_request("events", SET), 1)
        metrics = "BrokerTopicStat.events"
        wait_until(lambda: peer.status()["metrics"][metrics]["FailedProduceRequest"], "the refusal")
        for correlation_id, topic in ((2, "events"), (3, "others"), (4, "events")):
            pipe.send_extension(publish_request(topic, small), correlation_id)
        results = [decode_publish_response(pipe.receive_extension(n))[0] for n in (1, 2, 3, 4)]
        assert [one.error for one in results] == [StorageError.code] * 2 + [0, StorageError.code]
        assert "an earlier set of this connection" in results[1].text
        assert peer.fetch("events", 0) == (0, SET * 5)


def test_producer_when_the_disk_has_room_again_then_goes_on(start_process: ProcessFactory) -> None:
    process = start_process()
    with (
        closing(process.cluster()) as cluster,
        Producer(cluster, Connection, max_in_flight=1) as producer,
    ):
        producer.send("events", [b"x" * 900])
        process.limit_file_size(1000)
        refused = producer.send("events", [b"y" * 900])
        producer.flush()
        assert isinstance(refused.error, StorageError)
        process.limit_file_size(resource.RLIM_INFINITY)
        producer.send("events", [b"z"])
    with process.peer() as peer:
        assert peer.fetch("events", 0) == (0, encode([b"x" * 900, b"z"]))


def test_produce_when_disk_is_full_then_closes_and_broker_serves_on(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    with process.peer() as peer, process.peer() as producer:
        peer.publish("events", SET * 5)
        process.limit_file_size(LIMIT_BYTES)
        producer.produce("events", SET)
        assert producer.is_closed()
        assert peer.fetch("events", 0) == (0, SET * 5)
        assert peer.status()["metrics"]["BrokerTopicStat.events"]["FailedProduceRequest"] == 1
        process.limit_file_size(resource.RLIM_INFINITY)
    with process.peer() as producer:
        producer.produce("events", SET)
        producer.flush("events")
        assert producer.fetch("events", 0) == (0, SET * 6)


def test_publish_when_disk_is_full_then_small_sets_still_fit(
    start_process: ProcessFactory,
) -> None:
    """A set that did not fit must leave nothing behind that the next one would follow."""
    small = encode([b"small"])
    process = start_process()
    with process.peer() as peer:
        peer.publish("events", SET * 5)
        process.limit_file_size(LIMIT_BYTES)
        assert peer.publish("events", SET).error == StorageError.code
    with process.peer() as peer:
        assert peer.publish("events", small).base_offset == 5 * len(SET)
        assert peer.fetch("events", 0) == (0, SET * 5 + small)


def test_topic_when_disk_is_full_then_others_in_smaller_files_go_on(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    with process.peer() as peer:
        peer.publish("events", SET * 5)
        process.limit_file_size(LIMIT_BYTES)
        assert peer.publish("events", SET).error == StorageError.code
        assert peer.publish("others", SET).error == 0


def test_restart_when_disk_was_full_then_all_acknowledged_is_there(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    with process.peer() as peer:
        peer.publish("events", b"")
        process.limit_file_size(LIMIT_BYTES)
        taken = sum(peer.publish("events", SET).error == 0 for _ in range(8))
    process.kill()
    again = start_process()
    with again.peer() as peer:
        wait_until(lambda: peer.fetch("events", 0) == (0, SET * taken), "the data")
