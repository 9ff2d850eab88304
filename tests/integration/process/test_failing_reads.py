"""A disk that fails all reads: the broker's status, and health, name it after any read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from broker.errors import StorageError
from broker.protocol.client_requests import (
    DigestLogRequest,
    ListOffsetsRequest,
    OffsetKind,
    OffsetQuery,
)
from broker.protocol.codec import encode
from tests.integration.broker.server.peer import Peer, partition
from tests.integration.process.conftest import ProcessFactory
from tests.support.failing_reads import FailingReads

ONE = encode([b"x" * 990])


def list_boundary(peer: Peer) -> None:
    query = OffsetQuery(partition("events"), OffsetKind.BOUNDARY_BEFORE, len(ONE) + 5)
    peer.send_extension(ListOffsetsRequest((query,)))
    peer.receive()


READS: dict[str, Callable[[Peer], object]] = {
    "fetch at the start": lambda peer: peer.read("events", 0),
    "fetch inside": lambda peer: peer.read("events", len(ONE)),
    "0.7's fetch": lambda peer: peer.fetch("events", 0),
    "filtered": lambda peer: peer.read_filtered("events", 0, b"x"),
    "boundary": list_boundary,
    "digest": lambda peer: peer.call(DigestLogRequest(partition("events", home=0), 0, 100)),
}


@pytest.mark.parametrize("read", READS)
def test_disk_when_it_fails_all_reads_then_any_read_makes_it_known(
    start_process: ProcessFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    failing = FailingReads(tmp_path, monkeypatch)
    process = start_process()
    with process.peer() as peer:
        for _ in range(3):
            peer.publish("events", ONE)
    with process.peer() as peer:
        failing.begin(process.data)
        with suppress(StorageError, OSError, EOFError):  # a response under way is broken off
            READS[read](peer)
    with process.peer() as peer:
        (failure,) = peer.status()["failures"]
    assert (failure["topic"], failure["state"]) == ("events", "unreadable")
    assert "Input/output error" in failure["error"]
