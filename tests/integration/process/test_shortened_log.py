"""A log that lost its end while its broker was down: no offset is given out twice."""

from __future__ import annotations

import os
import signal

import pytest

from broker.errors import NO_ERROR
from broker.log.format import segment_name
from broker.protocol.client_requests import (
    ListOffsetsRequest,
    OffsetKind,
    OffsetQuery,
)
from broker.protocol.codec import encode
from broker.protocol.responses import LISTED_OFFSETS
from tests.integration.broker.server.peer import Peer, partition
from tests.integration.process.broker_process import BrokerProcess
from tests.integration.process.conftest import ProcessFactory

ONE = encode([b"x" * 90])
NEW = encode([b"new"])
SIZE = len(ONE)
REUSE = ("-X", "log.lost.offsets.reuse=true")


def shorten(process: BrokerProcess, size: int | None) -> None:
    """Write four messages, stop the broker cleanly, and cut its log; None takes the file away."""
    with process.peer() as peer:
        for _ in range(4):
            assert peer.publish("events", ONE).error == NO_ERROR
        process.signal(signal.SIGTERM)
    assert process.wait() == 0
    path = process.data / "events_0" / segment_name(0)
    if size is None:
        path.unlink()
    else:
        os.truncate(path, size)


def boundary_after(peer: Peer, offset: int) -> int:
    query = OffsetQuery(partition("events"), OffsetKind.BOUNDARY_AFTER, offset)
    (found,) = LISTED_OFFSETS.decode(peer.call(ListOffsetsRequest((query,))))
    return found.offset


@pytest.mark.parametrize("is_clean", [True, False])
def test_start_when_a_log_lost_its_end_then_goes_on_behind_it_and_names_what_is_lost(
    start_process: ProcessFactory, is_clean: bool
) -> None:
    process = start_process()
    shorten(process, SIZE + 5)
    if not is_clean:
        (process.data / ".pylog_clean_shutdown").unlink()
    texts = []
    for starts in range(3):
        again = start_process()
        with again.peer() as peer:
            expected = 4 * SIZE + starts * len(NEW)
            assert peer.publish("events", NEW).base_offset == expected
            assert peer.fetch("events", 0, max_bytes=SIZE) == (NO_ERROR, ONE)
            assert peer.fetch("events", expected) == (NO_ERROR, NEW)
            for offset in (SIZE + 1, 2 * SIZE, 4 * SIZE - 1):
                assert boundary_after(peer, offset) == 4 * SIZE
        again.kill()
        texts.append(again.log.read_text())
    lost = f"events[0-0] has lost its messages from offset {SIZE} to {4 * SIZE}"
    assert [text.count(lost) for text in texts] == [1, 1, 1]


def test_start_when_all_segments_are_gone_then_goes_on_behind_them(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    shorten(process, None)
    again = start_process()
    with again.peer() as peer:
        assert peer.publish("events", NEW).base_offset == 4 * SIZE
    assert f"has lost its messages up to offset {4 * SIZE}" in again.log.read_text()


def test_start_when_told_to_reuse_lost_offsets_then_goes_on_at_the_end(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    shorten(process, SIZE)
    again = start_process(*REUSE)
    with again.peer() as peer:
        assert peer.publish("events", NEW).base_offset == SIZE
    assert f"has lost its messages from offset {SIZE} to {4 * SIZE}" in again.log.read_text()


def test_start_when_a_whole_directory_is_gone_then_taken_as_deleted_and_said_so(
    start_process: ProcessFactory,
) -> None:
    process = start_process()
    shorten(process, None)
    (process.data / "events_0").rmdir()
    again = start_process()
    with again.peer() as peer:
        assert peer.publish("events", NEW).base_offset == 0
    assert "the log of events[0-0] is gone" in again.log.read_text()
