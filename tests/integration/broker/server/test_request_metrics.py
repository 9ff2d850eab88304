"""Times and errors of requests, as STATUS has them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from broker import errors
from broker.protocol.client_requests import (
    Acks,
    ClusterMetadataRequest,
    DigestLogRequest,
    ListOffsetsRequest,
    ListSegmentsRequest,
    MetadataRequest,
    OffsetKind,
    OffsetQuery,
)
from broker.protocol.cluster_requests import CreateReplicatedTopicRequest
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest, DeleteTopicRequest
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.replica_requests import (
    PushStatesRequest,
    ReplicaFetchRequest,
    ReplicaPosition,
)
from broker.protocol.requests import FetchRequest, ProduceRequest
from broker.server.network.processor import Processor
from broker.server.status import StatusReport
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import (
    Peer,
    extension_frame,
    filtered_request,
    partition,
    publish_request,
    read_request,
)
from tests.support.broker_proof import give_key, prove_to
from tests.support.waiting import wait_until

ONE = encode([b"one message"])
DAMAGED = ONE[:-1] + b"?"
LARGE = encode([b"x" * 2000])
FAR = 1 << 40


def asks(request: ExtensionRequest) -> Callable[[Peer], object]:
    """Return what sends a request and takes the response, also a refusal."""

    def ask(peer: Peer) -> None:
        with suppress(errors.ServerError):
            peer.call(request)

    return ask


def closes(*requests: Any) -> Callable[[Peer], object]:
    """Return what sends requests of 0.7 that cost the connection."""

    def send(peer: Peer) -> None:
        peer.send(*requests)
        assert peer.is_closed()

    return send


def publishes_without_response(peer: Peer) -> None:
    peer.send_extension(publish_request("events", DAMAGED, acks=Acks.NONE))
    peer.status()  # handled by then


def drops_a_large_set(peer: Peer) -> None:
    peer.produce("events", LARGE)
    peer.status()


def publishes_together(peer: Peer) -> None:
    peer.send_bytes(extension_frame(publish_request("events", DAMAGED)) * 3)
    for _ in range(3):
        peer.receive_extension()


def follower_fetch(topic: str) -> ReplicaFetchRequest:
    position = ReplicaPosition(partition(topic, home=0), 0, 0, -1, 0, 0, 1000)
    return ReplicaFetchRequest(7, 1, 0, 0, 1000, (position,))


REFUSED: dict[str, tuple[Callable[[Peer], object], dict[str, int]]] = {
    "publish": (asks(publish_request("events", DAMAGED)), {"produce.invalid_message": 1}),
    "publish of a large message": (
        asks(publish_request("events", LARGE)),
        {"produce.message_size_too_large": 1},
    ),
    "publishes together": (publishes_together, {"produce.invalid_message": 3}),
    "publish without response": (publishes_without_response, {"produce.invalid_message": 1}),
    "produce": (
        closes(ProduceRequest("events", 0, DAMAGED)),
        {"produce.invalid_message": 1},
    ),
    "produce of a large message": (drops_a_large_set, {"produce.message_size_too_large": 1}),
    "fetch": (lambda peer: peer.fetch("events", FAR), {"fetch.offset_out_of_range": 1}),
    "multifetch": (
        lambda peer: peer.multifetch(
            FetchRequest("events", 0, 0, 100),
            FetchRequest("events", 9, 0, 100),
            FetchRequest("events", 0, FAR, 100),
        ),
        {"fetch.offset_out_of_range": 1, "fetch.wrong_partition": 1},
    ),
    "read": (asks(read_request("events", FAR)), {"fetch.offset_out_of_range": 1}),
    "read without log": (asks(read_request("mistyped", 0)), {"fetch.unknown_topic": 1}),
    "filtered read": (
        asks(filtered_request("events", FAR, b"x")),
        {"fetch.offset_out_of_range": 1},
    ),
    "filtered read without pattern": (
        asks(filtered_request("events", 0, b"(")),
        {"fetch.invalid_pattern": 1},
    ),
    "read of a follower": (
        asks(follower_fetch("events")),
        {"follower_fetch.unknown_epoch": 1},
    ),
    "list segments": (
        asks(ListSegmentsRequest(partition("events"), -1, -5)),
        {"other.invalid_request": 1},
    ),
    "list offsets": (
        asks(
            ListOffsetsRequest(
                (
                    OffsetQuery(partition("mistyped"), OffsetKind.LATEST, 0),
                    OffsetQuery(partition("events", 9), OffsetKind.LATEST, 0),
                    OffsetQuery(partition("events"), OffsetKind.LATEST, 0),
                )
            )
        ),
        {"other.unknown_topic": 1, "other.wrong_partition": 1},
    ),
    "metadata": (asks(MetadataRequest(("events", "mistyped"))), {"metadata.unknown_topic": 1}),
    "metadata of the cluster": (
        asks(ClusterMetadataRequest(("events", "mistyped"))),
        {"metadata.unknown_topic": 1},
    ),
    "create topic": (asks(CreateTopicRequest("events", 1)), {"other.topic_exists": 1}),
    "delete topic, by a worker": (
        asks(DeleteTopicRequest("mistyped")),
        {"other.unknown_topic": 1},
    ),
    "digest, by a worker": (
        asks(DigestLogRequest(partition("events", 9, home=0), 0, 10)),
        {"other.wrong_partition": 1},
    ),
    "request to the controller": (
        asks(CreateReplicatedTopicRequest("replicated", 1, 1, ())),
        {"other.not_controller": 1},
    ),
    "push, by another thread": (
        asks(PushStatesRequest(7, 1, 99, False, (), (), ())),
        {"push.stale_broker_epoch": 1},
    ),
}


def counts(document: dict[str, Any]) -> dict[str, int]:
    """Return the errors counted, by request and error."""
    return {
        name.removeprefix("RequestErrors."): found["Errors"]
        for name, found in document["metrics"].items()
        if name.startswith("RequestErrors.")
    }


def test_errors_when_requests_of_each_kind_are_refused_then_each_is_counted_by_code(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> None:
    broker = start_broker(max_message_bytes=1000, data_dir=give_key(tmp_path))
    with connect(broker) as peer:
        peer.publish("events", ONE)
    found = {}
    before: dict[str, int] = {}
    for name, (send, _) in REFUSED.items():
        with connect(broker) as peer:
            prove_to(broker, peer.call, 7)
            send(peer)
        after = counts(broker.status())
        found[name] = {
            one: count - before.get(one, 0)
            for one, count in after.items()
            if count != before.get(one, 0)
        }
        before = after
    assert found == {name: expected for name, (_, expected) in REFUSED.items()}
    refused = broker.status()["metrics"]["SocketServerStats"]
    # five requests with a damaged set, one of them thrice
    assert (refused["RefusedForCrc"], refused["RefusedForSize"]) == (6, 2)
    assert refused["RefusedForOther"] == 0


def test_times_when_a_publish_waits_for_its_flush_then_remote_and_total_have_it(
    start_broker: BrokerFactory, connect: PeerFactory, held_flushes: threading.Event
) -> None:
    broker = start_broker()
    peer = connect(broker)
    peer.make_topics(["events"])
    peer.send_extension(publish_request("events", ONE))
    wait_until(
        lambda: broker.status()["metrics"]["Purgatory"]["PublishWaiting"], "the delayed publish"
    )
    waiting = broker.status()["requests"]["times"]["produce"]
    assert (sum(waiting["local"]["counts"]), sum(waiting["total"]["counts"])) == (1, 0)
    held_flushes.set()
    peer.receive_extension()
    document = broker.status()["requests"]
    times = document["times"]["produce"]
    assert {part: sum(one["counts"]) for part, one in times.items()} == {
        "queue": 1,
        "local": 1,
        "remote": 1,
        "send": 0,
        "total": 1,
    }
    assert len(times["total"]["counts"]) == len(document["bounds_s"]) + 1
    parts_s = sum(times[part]["total_s"] for part in ("queue", "local", "remote"))
    assert 0 < times["remote"]["total_s"] < parts_s
    # between handling and waiting nobody looks at a clock
    assert times["total"]["total_s"] >= parts_s - 1e-9


def test_times_when_a_client_takes_nothing_then_the_time_to_send_is_observed(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(socket_send_bytes=4096)
    slow = connect(broker, receive_bytes=4096)
    slow.publish("events", encode([b"x" * 900_000]))
    slow.send_extension(read_request("events", 0, max_bytes=1 << 20))
    wait_until(
        lambda: broker.status()["metrics"]["SocketServerStats"]["ConnectionsWithUnsentResponses"],
        "a full socket",
    )
    assert not sum(broker.status()["requests"]["times"]["fetch"]["send"]["counts"])
    slow.receive_extension()
    wait_until(
        lambda: sum(broker.status()["requests"]["times"]["fetch"]["send"]["counts"]) == 1,
        "the time to send",
    )


def test_topics_when_deleted_or_mistyped_then_their_counters_are_dropped(
    start_broker: BrokerFactory, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.network.processor._SWEEP_INTERVAL_S", 0.01)
    broker = start_broker()
    peer = connect(broker)
    peer.publish("events", ONE)
    peer.publish("kept", ONE)
    peer.read("mistyped", 0)
    (processor,) = processors_of(broker)
    assert set(processor.metrics.topics) == {"events", "kept"}
    peer.call(DeleteTopicRequest("events"))
    wait_until(lambda: set(processor.metrics.topics) == {"kept"}, "the end of the counters")


def test_times_of_threads_when_a_request_is_offloaded_then_the_worker_was_busy(
    start_broker: BrokerFactory, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.network.socket_server.TURN_BYTES", 100)
    broker = start_broker()
    peer = connect(broker)
    assert peer.publish("events", encode([b"x" * 500])).error == 0
    found = broker.status()["metrics"]
    assert found["OffloadWorker"]["BusySeconds"] > 0
    assert found["OffloadWorker"]["QueuedRequests"] == 0
    assert found["RequestTimes.produce"]["NumLocalTimes"] == 1
    before = found["NetworkProcessor.0"]
    wait_until(
        lambda: (
            broker.status()["metrics"]["NetworkProcessor.0"]["IdleSeconds"] > before["IdleSeconds"]
        ),
        "the end of a wait",
    )
    assert before["BusySeconds"] > 0


def test_scrape_when_disks_hang_and_a_part_fails_then_has_all_else(
    start_broker: BrokerFactory,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
    expects_bugs: None,
) -> None:
    broker = start_broker()
    connect(broker).publish("events", ONE)
    monkeypatch.setattr("os.statvfs", lambda _path: pytest.fail("a disk was asked"))
    text = broker.exposition()
    assert "pylogctl_scrape_errors_total 0" in text
    without = broker.exposition(with_partitions=False).splitlines()
    # as docs/operations/metrics.md says: 640, beside 7 of a topic
    assert 650 <= sum(not line.startswith("#") for line in without) - 7 <= 690
    assert re.search(r"^pylogctl_log_directory_free_bytes{directory=.* \d", text, re.MULTILINE)

    def fail(_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(StatusReport, "_of_replication", fail)
    text = broker.exposition()
    assert "pylogctl_scrape_errors_total 1" in text
    assert "pylogctl_broker_partitions" not in text
    assert 'pylogctl_broker_messages_received_total{topic="events"} 1' in text
    assert "pylogctl_log_end_offset_bytes{" in text


def processors_of(broker: Any) -> list[Processor]:
    found: list[Processor] = broker.server.processors
    return found
