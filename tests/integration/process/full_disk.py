"""What `test_full_disk` runs on a file system of its own: `python -m ... SCENARIO DIRECTORY`."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from pathlib import Path

from broker.config import BrokerConfig
from broker.errors import NO_ERROR, StorageError
from broker.protocol.client_requests import MetadataRequest
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    DeleteTopicRequest,
)
from broker.protocol.responses import MetadataResponse
from broker.server.broker import Broker
from tests.integration.broker.server.peer import Peer
from tests.integration.process.broker_process import BrokerProcess
from tests.support.waiting import wait_until

SET = encode([b"x" * 60_000])
SMALL_SEGMENTS = ("-X", "log.file.size=100000", "-X", "log.checkpoint.interval.ms=20")


def fill(directory: Path) -> None:
    """Write until nothing at all can be written."""
    for size in (1 << 16, 1):
        fd = os.open(directory / f"filler-{size}", os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(fd, bytes(size))
        except OSError:
            continue
        finally:
            os.close(fd)


def run_full(data: Path) -> BrokerProcess:
    """Start a broker and publish to `kept`, then to `events` until the disk is full."""
    process = BrokerProcess(data, *SMALL_SEGMENTS)
    atexit.register(process.kill)
    with process.peer() as peer:
        assert peer.publish("kept", SET).error == NO_ERROR
        while peer.publish("events", SET).error == NO_ERROR:
            pass
        fill(data)
    with process.peer() as peer:
        refused = peer.publish("events", SET)
        assert refused.error == StorageError.code
        assert "No space left on device" in refused.text
    return process


def is_stored(port: int, topic: str) -> bool:
    """Publish on a connection of its own, as one that was refused stays refused."""
    with Peer(port) as peer:
        return peer.publish(topic, SET).error == NO_ERROR


def topics(peer: Peer) -> list[str]:
    found = MetadataResponse.decode(peer.call(MetadataRequest(None)))
    return sorted(one.topic for one in found.topics)


def retention(data: Path) -> None:
    """Kill a broker, start it again, and let retention make room."""
    run_full(data).kill()
    config = BrokerConfig(
        data_dirs=(data,),
        port=0,
        segment_bytes=100_000,
        retention_bytes=100_000,
        cleanup_interval_ms=20,
    )
    again = Broker(config)
    again.start()
    try:
        wait_until(lambda: is_stored(again.port, "events"), "room")
    finally:
        again.stop()


def deletion(data: Path) -> None:
    """Delete a topic, and see that it stays deleted."""
    process = run_full(data)
    with process.peer() as peer:
        peer.call(DeleteTopicRequest("events"))
        assert topics(peer) == ["kept"]
        wait_until(lambda: is_stored(process.port, "kept"), "room")
        assert peer.status()["failures"] == []
        process.signal(signal.SIGTERM)
    assert process.wait() == 0
    again = BrokerProcess(data)
    atexit.register(again.kill)
    with again.peer() as peer:
        assert topics(peer) == ["kept"]
        assert peer.fetch("kept", 0) == (NO_ERROR, SET * 2)
    again.kill()


def log(data: Path) -> None:
    """See that the broker's log and its status say what is refused."""
    process = run_full(data)
    with process.peer() as peer:
        (failure,) = peer.status()["failures"]
    assert (failure["topic"], failure["partition"]) == ("events", "0-0")
    text = process.log.read_text()
    for words in (failure["error"], text):
        assert "cannot append events[0-0] at offset" in words, words
        assert "No space left on device" in words
    assert text.count("cannot append events[0-0]") == 1
    process.kill()


if __name__ == "__main__":
    {"retention": retention, "deletion": deletion, "log": log}[sys.argv[1]](Path(sys.argv[2]))
