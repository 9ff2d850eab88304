"""A disk that is full, and then is not: a limit on file sizes stands for it."""

from __future__ import annotations

import resource
import subprocess
from contextlib import closing

import pytest

from broker.client.connection import Connection
from broker.errors import BrokerError, StorageError
from broker.producer.dispatcher import Waiting
from broker.producer.producer import Producer
from broker.protocol.codec import decode, encode
from broker.protocol.responses import decode_publish_response
from pylogctl.cli.environment import ExitStatus
from tests.integration.broker.server.peer import Peer, publish_request
from tests.integration.process.broker_process import BrokerProcess
from tests.integration.process.conftest import ProcessFactory
from tests.support.command_line import Spawn
from tests.support.command_line import spawn as spawn
from tests.support.log_formats import EXAMPLES, messages_in
from tests.support.waiting import wait_until

SET = encode([bytes([n]) * 990 for n in range(10)])
LIMIT_BYTES = 5 * len(SET) + 500


@pytest.mark.parametrize("name", EXAMPLES)
def test_publish_when_disk_is_full_then_storage_error_and_good_again_with_room(
    start_process: ProcessFactory, name: str
) -> None:
    values = [bytes([n]) * 990 for n in range(10)]
    example = EXAMPLES[name]
    message_set = example.set_of(*values)
    process = start_process("-X", f"log.format={name}")

    def stored_values(peer: Peer) -> list[bytes]:
        data = peer.read("events", 0).message_set
        return [one.value for one in messages_in(example.format, data)]

    with process.peer() as peer:
        peer.publish("events", b"")
        process.limit_file_size(5 * len(message_set) + 500)
        results = [peer.publish("events", message_set) for _ in range(8)]
        assert [one.error for one in results] == [0] * 5 + [StorageError.code] * 3
        assert f"cannot append {example.partition} at offset" in results[-1].text
        assert "File too large" in results[-1].text
        assert stored_values(peer) == values * 5
        process.limit_file_size(resource.RLIM_INFINITY)
    with process.peer() as peer:
        again = peer.publish("events", message_set).base_offset
        assert again == (50 if name == "kafka" else 5 * len(message_set))
        assert stored_values(peer) == values * 6


def test_publish_when_an_earlier_set_of_the_pipe_was_refused_then_no_later_one_is_stored(
    start_process: ProcessFactory,
) -> None:
    small = encode([b"small"])
    process = start_process()
    with process.peer() as peer, process.peer() as pipe:
        peer.publish("events", SET * 5)
        peer.make_topics(["others"])
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


def stored(process: BrokerProcess) -> list[bytes]:
    with process.peer() as peer:
        _, data = peer.fetch("events", 0)
    return [bytes(payload) for _, _, payload in decode(data, 0).messages]


def test_producer_when_the_disk_has_room_again_then_goes_on_without_a_hole(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    waits: list[BrokerError] = []

    def on_wait(waiting: Waiting) -> bool:
        waits.append(waiting.error)
        process.limit_file_size(resource.RLIM_INFINITY)
        return True

    with closing(process.cluster()) as cluster, Producer(cluster, Connection) as producer:
        producer.watch(on_wait)
        producer.send("events", [b"x" * 900])
        producer.flush()
        process.limit_file_size(1000)
        for payload in (b"y" * 900, b"z", b"z"):
            producer.send("events", [payload])
    assert isinstance(waits[0], StorageError)
    assert stored(process) == [b"x" * 900, b"y" * 900, b"z", b"z"]


@pytest.mark.parametrize("args", [(), ("--sync",), ("--partitioner", "round-robin")])
def test_pipe_when_the_disk_stays_full_then_nothing_is_stored_behind_the_first_refused_message(
    start_process: ProcessFactory, spawn: Spawn, args: tuple[str, ...]
) -> None:
    process = start_process()
    process.limit_file_size(10_000)
    where = ("-b", f"127.0.0.1:{process.port}", "--timeout", "6s", "--batch-messages", "3")
    lines = [b"%d " % number + b"x" * (4000 if number == 5 else 900) for number in range(40)]
    with spawn("produce", "events", *where, *args, stdin=subprocess.PIPE) as command:
        _, stderr = command.communicate(b"".join(line + b"\n" for line in lines), timeout=60)
    assert command.returncode == ExitStatus.REMOTE, stderr
    assert b"sent and not confirmed" in stderr
    found = stored(process)
    assert found == lines[: len(found)]


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
