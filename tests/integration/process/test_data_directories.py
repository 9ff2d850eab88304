"""A broker process on several data directories: killed in a move, and when disks go away."""

from __future__ import annotations

import json
import shutil
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from broker.errors import NO_ERROR, BrokerError, StorageError
from broker.protocol.codec import encode
from broker.protocol.extension_requests import MoveLogRequest, StatusRequest
from broker.protocol.layouts import DATA
from broker.topic import TopicPartition
from tests.integration.broker.server.peer import Peer
from tests.integration.process.conftest import ProcessFactory
from tests.support.waiting import wait_until

ONE = encode([b"x" * 1000])
LARGE = ONE * 500
EVENTS = TopicPartition("events", 0, 0)
QUICK = ("-X", "log.checkpoint.interval.ms=100")


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "a", tmp_path / "b"


def on(*dirs: Path) -> tuple[str, str]:
    return "--data", ",".join(map(str, dirs))


def publish_until(peer: Peer, end: threading.Event, acknowledged: list[int]) -> None:
    """Publish one message after the other, and note the end of each that is acknowledged."""
    try:
        while not end.is_set():
            published = peer.publish("events", ONE)
            assert published.error == NO_ERROR, published.text
            acknowledged.append(published.base_offset + len(ONE))
    except (EOFError, OSError):
        pass  # the broker was killed


def test_move_when_killed_at_any_time_then_all_that_was_acknowledged_is_in_one_directory(
    start_process: ProcessFactory, dirs: tuple[Path, Path]
) -> None:
    process = start_process(*on(*dirs), "-X", "log.file.size=3000000")
    with process.peer() as peer:
        for _ in range(30):
            assert peer.publish("events", LARGE).error == NO_ERROR
    for attempt in range(10):
        is_last = attempt == 9
        acknowledged = [0]
        end = threading.Event()
        (place,) = (one for one in dirs if (one / "events_0").exists())
        target = dirs[1 - dirs.index(place)]
        with process.peer() as writing, process.peer() as peer:
            writer = threading.Thread(target=publish_until, args=(writing, end, acknowledged))
            writer.start()
            peer.call(MoveLogRequest(EVENTS, str(target)))
            if is_last:
                wait_until(partial(has_left, place), "the move")
            else:
                time.sleep(attempt * 0.012)  # what is tested: a kill at any time
            process.kill()
            end.set()
            writer.join()
        process = start_process(*on(*dirs), "-X", "log.file.size=3000000")
        places = [one for one in dirs if (one / "events_0").exists()]
        assert len(places) == 1
        assert not is_last or places == [target]
        assert not [path for one in dirs for path in one.glob(".moving/*")]
        assert not [path for one in dirs for path in one.glob("*/moved-from")]
        with process.peer() as peer:
            log_end = peer.publish("events", ONE).base_offset
            assert log_end >= acknowledged[-1]
            assert log_end % len(ONE) == 0
            assert peer.fetch("events", log_end) == (NO_ERROR, ONE)


def lose(directory: Path) -> None:
    """Take a directory away at once, however often its broker writes to it."""
    gone = directory.with_name(f"{directory.name}-gone")
    directory.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def has_left(place: Path) -> bool:
    return not (place / "events_0").exists()


def directories_of(peer: Peer) -> list[str | None]:
    document = json.loads(DATA.decode(peer.call(StatusRequest())))
    return [one["error"] for one in document["directories"]]


def test_directory_when_gone_then_others_are_served_and_the_broker_ends_with_the_last(
    start_process: ProcessFactory, dirs: tuple[Path, Path]
) -> None:
    process = start_process(*on(*dirs), *QUICK)
    with process.peer() as peer:
        for topic in ("events", "orders"):
            assert peer.publish(topic, ONE).error == NO_ERROR
        lose(dirs[0])
        wait_until(lambda: directories_of(peer)[0], "the failure")
        refused = peer.publish("events", ONE)
        assert refused.error == StorageError.code
        assert "events[0-0] is offline" in refused.text
        assert peer.publish("orders", ONE).base_offset == len(ONE)
        assert directories_of(peer)[1] is None
        lose(dirs[1])
        with pytest.raises((BrokerError, EOFError, OSError)):
            wait_until(lambda: peer.call(StatusRequest()) is None, "the end of the broker")
    assert process.wait() != 0
    assert "no data directory is left" in process.log.read_text()
