"""A broker that may open fewer files than it has partitions."""

from __future__ import annotations

from contextlib import ExitStack

from broker.errors import NO_ERROR
from broker.protocol.client_requests import (
    Acks,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    CreateTopicRequest,
)
from broker.protocol.responses import decode_publish_response, decode_read_response
from tests.integration.broker.server.peer import Peer, partition
from tests.integration.process.conftest import ProcessFactory
from tests.support.waiting import wait_until

PARTITIONS = 700
LIMITED = ("prlimit", "--nofile=256:512")
ONE = encode([b"x" * 50])


def publish_to_all(peer: Peer) -> None:
    for index in range(PARTITIONS):
        sets = (PartitionSet(partition("events", index), ONE),)
        (result,) = decode_publish_response(peer.call(PublishRequest(Acks.WRITTEN, 10_000, sets)))
        assert (result.error, result.text) == (NO_ERROR, "")


def read_all(peer: Peer, offset: int) -> int:
    """Read all partitions from an offset on, with as many requests as it takes."""
    left = set(range(PARTITIONS))
    request_count = 0
    while left:
        request_count += 1
        positions = tuple(
            PartitionPosition(partition("events", index), offset, 1 << 20) for index in sorted(left)
        )
        parts = decode_read_response(peer.call(ReadRequest(10_000, 1, 1 << 20, positions)))
        assert {part.error for part in parts} == {NO_ERROR}
        found = {part.partition.index for part in parts if bytes(part.message_set).endswith(ONE)}
        assert found, "no progress"
        left -= found
    return request_count


def test_partitions_when_more_than_descriptors_then_all_are_written_and_read_and_clients_get_in(
    start_process: ProcessFactory,
) -> None:
    process = start_process(prefix=LIMITED)
    with ExitStack() as peers:
        peer = peers.enter_context(process.peer())
        peer.call(CreateTopicRequest("events", PARTITIONS))
        for _ in range(2):
            publish_to_all(peer)
        for _ in range(100):
            other = peers.enter_context(process.peer())
            assert other.status()["failures"] == []
        for offset in (0, len(ONE)):
            wait_until(lambda: peer.publish("events", b"").error == NO_ERROR, "a flush")
            assert read_all(peer, offset) < 10
        assert process.descriptor_count() < 512
    lines = process.log.read_text().splitlines()
    assert [one for one in lines if "Too many open files" in one] == []


def test_connections_when_they_take_all_descriptors_then_the_reason_is_named_and_appends_recover(
    start_process: ProcessFactory,
) -> None:
    process = start_process(prefix=LIMITED)
    with process.peer() as peer, ExitStack() as crowd:
        assert peer.publish("events", ONE).error == NO_ERROR
        for _ in range(600):
            crowd.enter_context(process.peer())
        reason = "Too many open files; raise the limit on open files"
        shortage = f"cannot accept connections: {reason}"
        wait_until(lambda: shortage in process.log.read_text(), "the shortage")
        published = peer.publish("events", ONE)  # one may have become free
        assert published.error == NO_ERROR or reason in published.text
        crowd.close()
        wait_until(lambda: process.descriptor_count() < 100, "the end of the crowd")
    with process.peer() as peer:
        assert peer.publish("events", ONE).error == NO_ERROR
