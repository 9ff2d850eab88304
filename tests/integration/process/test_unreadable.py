"""Segments that cannot be read, or are missing: their partition has the error, the others go on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from broker.errors import NO_ERROR, StorageError
from broker.log.format import segment_name
from broker.protocol.client_requests import (
    ListOffsetsRequest,
    OffsetKind,
    OffsetQuery,
    ReadRequest,
)
from broker.protocol.client_requests import PartitionPosition as Position
from broker.protocol.codec import encode
from broker.protocol.requests import FetchRequest
from broker.protocol.responses import LISTED_OFFSETS, decode_read_response
from tests.integration.broker.server.peer import Peer, partition
from tests.integration.process.broker_process import BrokerProcess
from tests.integration.process.conftest import ProcessFactory
from tests.support.waiting import wait_until

ONE = encode([b"x" * 990])
SIZE = len(ONE)
SMALL_SEGMENTS = ("-X", f"log.file.size={SIZE - 1}")


def read_both(peer: Peer, offset: int) -> list[tuple[int, bytes]]:
    """Read `events` from an offset, and `others` from its start, in one request."""
    positions = tuple(
        Position(partition(topic), at, 1 << 20) for topic, at in (("events", offset), ("others", 0))
    )
    parts = decode_read_response(peer.call(ReadRequest(0, 1, 1 << 20, positions)))
    return [(one.error, bytes(one.message_set)) for one in parts]


def publish_events_and_others(process: BrokerProcess) -> None:
    with process.peer() as peer:
        for _ in range(3):
            assert peer.publish("events", ONE).error == NO_ERROR
        assert peer.publish("others", ONE).error == NO_ERROR


def test_read_when_a_segment_became_shorter_then_only_its_partition_has_an_error(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    publish_events_and_others(process)
    path = process.data / "events_0" / segment_name(0)
    os.truncate(path, 2 * SIZE - 5)
    with process.peer() as peer:  # the first response is under way when the file ends
        peer.send(FetchRequest("events", 0, 0, 1 << 20))
        peer.send_bytes(b"")
        assert peer.has_answer(60)
        with process.peer() as other:  # the broker notes the end only if this peer still reads
            wait_until(lambda: other.status()["failures"], "the end of the file")
    with process.peer() as peer:
        assert read_both(peer, 0) == [(NO_ERROR, ONE), (NO_ERROR, ONE)]
        assert read_both(peer, SIZE) == [(StorageError.code, b""), (NO_ERROR, ONE)]
        fetches = [FetchRequest("events", 0, SIZE, 1 << 20), FetchRequest("others", 0, 0, 1 << 20)]
        assert peer.multifetch(*fetches) == [(NO_ERROR, b""), (NO_ERROR, ONE)]
        assert peer.fetch("events", SIZE) == (-1, b"")
        (failure,) = peer.status()["failures"]
    assert (failure["topic"], failure["partition"]) == ("events", "0-0")
    for text in (failure["error"], process.log.read_text()):
        assert f"cannot read events[0-0] at offset {2 * SIZE - 5}: {path}: the file ends" in text


def test_start_when_a_segment_is_missing_then_its_partition_is_offline_and_the_others_serve(
    start_process: ProcessFactory, tmp_path: Path
) -> None:
    process = start_process(*SMALL_SEGMENTS)
    publish_events_and_others(process)
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    path, kept = process.data / "events_0" / segment_name(SIZE), tmp_path / "kept"
    path.rename(kept)
    again = start_process(*SMALL_SEGMENTS)
    with again.peer() as peer:
        assert read_both(peer, 0) == [(StorageError.code, b""), (NO_ERROR, ONE)]
        refused = peer.publish("events", ONE)
        assert refused.error == StorageError.code
        assert "events[0-0] is offline: a gap in events[0-0]" in refused.text
        query = OffsetQuery(partition("events"), OffsetKind.LATEST, 0)
        body = peer.call(ListOffsetsRequest((query,)))
        assert [one.error for one in LISTED_OFFSETS.decode(body)] == [StorageError.code]
        assert peer.publish("others", ONE).error == NO_ERROR
        (failure,) = peer.status()["failures"]
        assert "events[0-0] is offline" in failure["error"]
    assert "events[0-0] is offline" in again.log.read_text()
    again.signal(signal.SIGTERM)
    assert again.wait() == 0
    kept.rename(path)
    with start_process(*SMALL_SEGMENTS).peer() as peer:
        assert peer.status()["failures"] == []
        assert [peer.fetch("events", n * SIZE)[1] for n in range(3)] == [ONE] * 3
