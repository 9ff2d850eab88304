from __future__ import annotations

import threading
from typing import Any

import pytest

from broker.errors import (
    InvalidMessageError,
    InvalidTopicError,
    MessageSizeTooLargeError,
    RequestTimedOutError,
    StorageError,
    WrongPartitionError,
)
from broker.log.log import Log
from broker.log.segment import Disk
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.primitives import INT16, INT32
from broker.protocol.requests import RequestType
from broker.protocol.responses import decode_publish_response
from broker.server.broker import Broker
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, extension_frame, partition, publish_request
from tests.support.waiting import wait_until

ONE = encode([b"one message"])
NEVER_MS = 3_600_000


def test_publish_when_acks_are_0_then_no_response(peer: Peer) -> None:
    peer.make_topics(["events"])
    peer.send_extension(publish_request("events", ONE, acks=Acks.NONE))
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, ONE)
    assert not peer.has_answer()


def test_publish_when_acks_are_1_then_completed_before_it_is_flushed(
    peer: Peer, held_flushes: threading.Event
) -> None:
    published = peer.publish("events", ONE, acks=Acks.WRITTEN)
    assert (published.error, published.base_offset) == (0, 0)
    assert peer.publish("events", ONE, acks=Acks.WRITTEN).base_offset == len(ONE)
    assert peer.fetch("events", 0) == (0, b"")
    held_flushes.set()


def test_publish_when_acks_are_minus_1_then_completed_only_after_the_flush(
    peer: Peer, running_broker: Broker, held_flushes: threading.Event
) -> None:
    peer.make_topics(["events"])
    peer.send_extension(publish_request("events", ONE))
    wait_until(lambda: running_broker.status()["bytes"] == len(ONE), "the append")
    assert not peer.has_answer(0.1)
    held_flushes.set()
    (published,) = decode_publish_response(peer.receive_extension())
    assert (published.error, published.base_offset) == (0, 0)
    assert peer.fetch("events", 0) == (0, ONE)


def test_publish_when_reads_come_before_flushes_then_acks_minus_1_still_waits_for_the_flush(
    start_broker: BrokerFactory, connect: PeerFactory, held_flushes: threading.Event
) -> None:
    broker = start_broker(flush_before_read=False)
    peer, reader = connect(broker), connect(broker)
    peer.make_topics(["events"])
    peer.send_extension(publish_request("events", ONE))
    wait_until(lambda: reader.fetch("events", 0) == (0, ONE), "the message to be readable")
    assert not peer.has_answer(0.1)
    held_flushes.set()
    (published,) = decode_publish_response(peer.receive_extension())
    assert published.error == 0


def test_publish_when_acks_are_minus_1_then_does_not_wait_for_the_interval(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(flush_interval_ms=NEVER_MS))
    assert peer.publish("events", ONE).error == 0


def test_publish_when_many_clients_wait_then_one_flush_completes_all(
    running_broker: Broker, connect: PeerFactory, held_flushes: threading.Event
) -> None:
    peers = [connect(running_broker) for _ in range(20)]
    for peer in peers:
        peer.make_topics(["events"])
        peer.send_extension(publish_request("events", ONE))
    wait_until(lambda: running_broker.status()["bytes"] == 20 * len(ONE), "all appends")
    held_flushes.set()
    offsets = [decode_publish_response(one.receive_extension())[0].base_offset for one in peers]
    assert sorted(offsets) == [n * len(ONE) for n in range(20)]
    assert running_broker.status()["metrics"]["LogFlushStats"]["NumFlushes"] <= 2


def test_publish_when_flush_takes_longer_than_the_timeout_then_says_so(
    peer: Peer, held_flushes: threading.Event
) -> None:
    published = peer.publish("events", ONE, timeout_ms=50)
    assert published.error == RequestTimedOutError.code
    assert published.base_offset == -1
    assert published.text == (f"events[0-0] is written up to {len(ONE)}, but not flushed in time")
    held_flushes.set()


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_publish_when_timeout_is_not_positive_then_completed_without_waiting(
    timeout_ms: int, peer: Peer, held_flushes: threading.Event
) -> None:
    assert peer.publish("events", ONE, timeout_ms=timeout_ms).error == RequestTimedOutError.code
    held_flushes.set()


def test_publish_when_one_of_its_partitions_is_late_then_the_other_is_good(
    start_broker: BrokerFactory, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = connect(start_broker(num_partitions=2))
    may_flush = threading.Event()
    flush = Log.flush

    def flush_first_only(log: Log) -> None:
        if log.partition.index:
            may_flush.wait(60)
        flush(log)

    monkeypatch.setattr(Log, "flush", flush_first_only)
    sets = tuple(PartitionSet(partition("events", index), ONE) for index in (0, 1))
    request = PublishRequest(Acks.COMMITTED, 4000, sets)
    errors = [one.error for one in decode_publish_response(peer.call(request))]
    may_flush.set()
    assert errors == [0, RequestTimedOutError.code]


def test_publish_when_set_is_empty_then_waits_for_what_was_written_before(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(flush_interval_ms=NEVER_MS))
    peer.produce("events", ONE)
    published = peer.publish("events", b"")
    assert (published.error, published.base_offset) == (0, len(ONE))
    assert peer.fetch("events", 0) == (0, ONE)


def test_publish_when_set_is_empty_and_all_is_flushed_then_completed_at_once(peer: Peer) -> None:
    peer.publish("events", ONE)
    assert peer.publish("events", b"").error == 0


def test_publish_when_there_are_no_sets_then_completed_with_none(peer: Peer) -> None:
    body = peer.call(PublishRequest(Acks.COMMITTED, 10_000, ()))
    assert decode_publish_response(body) == []


def test_publish_when_answered_then_names_home_and_index(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(broker_id=7, topic_partition_counts={"events": 3}))
    request = PublishRequest(Acks.WRITTEN, 10_000, (PartitionSet(partition("events", -1), ONE),))
    (published,) = decode_publish_response(peer.call(request))
    assert published.error == 0
    assert published.partition.home == 7
    assert published.partition.index in (0, 1, 2)


@pytest.mark.parametrize(
    ("topic", "index", "home", "message_set", "error"),
    [
        ("a/b", 0, -1, ONE, InvalidTopicError),
        ("", 0, -1, ONE, InvalidTopicError),
        ("x" * 300, 0, -1, ONE, InvalidTopicError),
        ("events", 1, -1, ONE, WrongPartitionError),
        ("events", -2, -1, ONE, WrongPartitionError),
        ("events", 0, 5, ONE, WrongPartitionError),
        ("events", 0, -2, ONE, WrongPartitionError),
        ("events", 0, 0, ONE[:-1], InvalidMessageError),
        ("events", 0, 0, ONE[:-1] + b"?", InvalidMessageError),
        ("events", 0, 0, encode([b"x" * 1_000_001]), MessageSizeTooLargeError),
    ],
)
@pytest.mark.parametrize("acks", [Acks.WRITTEN, Acks.COMMITTED])
def test_publish_when_refused_then_says_why_and_connection_goes_on(
    topic: str,
    index: int,
    home: int,
    message_set: bytes,
    error: type[InvalidTopicError],
    acks: Acks,
    peer: Peer,
    running_broker: Broker,
) -> None:
    sets = (PartitionSet(partition(topic, index, home), message_set),)
    (published,) = decode_publish_response(peer.call(PublishRequest(acks, 10_000, sets)))
    detail = 1_000_000 if error.code == MessageSizeTooLargeError.code else -1  # the limit
    assert (published.error, published.base_offset) == (error.code, detail)
    assert published.partition == partition(topic, index, home)
    assert published.text
    assert peer.status()["bytes"] == 0


def test_publish_when_refused_with_acks_0_then_dropped_in_silence(peer: Peer) -> None:
    peer.send_extension(publish_request("a/b", ONE, acks=Acks.NONE))
    assert peer.publish("events", ONE).error == 0


def test_publish_when_tail_is_partial_then_whole_messages_are_taken(peer: Peer) -> None:
    assert peer.publish("events", ONE + ONE[:5]).error == 0
    assert peer.fetch("events", 0) == (0, ONE)


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
def test_publish_when_codec_is_one_of_ours_then_taken(codec: Codec, peer: Peer) -> None:
    wrapper = build_set([b"one", b"two"], codec)
    assert peer.publish("events", wrapper).error == 0
    assert peer.fetch("events", 0) == (0, wrapper)


@pytest.mark.parametrize("acks", [-3, 2, 100])
def test_publish_when_acks_are_unknown_then_closes(acks: int, peer: Peer) -> None:
    peer.make_topics(["events"])
    good = extension_frame(publish_request("events", ONE))
    header = good[6 : 6 + 2 + 4 + 2 + 4]
    body = header + INT16.pack(acks) + INT32.pack(1000) + INT32.pack(0)
    peer.send_bytes(INT32.pack(2 + len(body)) + INT16.pack(RequestType.PUBLISH) + body)
    assert peer.is_closed()


def test_publish_when_client_leaves_while_parked_then_no_waiter_stays(
    running_broker: Broker,
    connect: PeerFactory,
    held_flushes: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiters, was_parked = 0, False
    add, remove = Log.add_listener, Log.remove_listener

    def counting_add(log: Log, *args: Any) -> None:
        nonlocal waiters, was_parked
        waiters += 1
        was_parked = True
        add(log, *args)

    def counting_remove(log: Log, *args: Any) -> None:
        nonlocal waiters
        waiters -= 1
        remove(log, *args)

    monkeypatch.setattr(Log, "add_listener", counting_add)
    monkeypatch.setattr(Log, "remove_listener", counting_remove)
    peer = connect(running_broker)
    request = publish_request("events", ONE, timeout_ms=60_000)
    peer.make_topics(["events"])
    # so many that the broker goes on receiving, and sees the end, before they are flushed
    peer.send_bytes(b"".join(extension_frame(request, number) for number in range(100)))
    wait_until(lambda: was_parked, "the parked requests")
    peer.close()
    wait_until(lambda: waiters == 0, "the end of the waiters")
    held_flushes.set()


def test_publish_when_counted_then_among_the_produce_requests(
    peer: Peer, running_broker: Broker
) -> None:
    peer.publish("events", ONE)
    peer.publish("events", ONE, acks=Acks.WRITTEN)
    assert running_broker.status()["metrics"]["SocketServerStats"]["NumProduceRequests"] == 2
    counters = running_broker.status()["metrics"]["BrokerTopicStat.events"]
    assert (counters["MessagesIn"], counters["BytesIn"]) == (2, 2 * len(ONE))


def test_read_when_counted_then_among_the_fetch_requests(
    peer: Peer, running_broker: Broker
) -> None:
    peer.publish("events", ONE)
    peer.read("events", 0)
    peer.read("events", 999)
    assert running_broker.status()["metrics"]["SocketServerStats"]["NumFetchRequests"] == 2
    counters = running_broker.status()["metrics"]["BrokerTopicStat.events"]
    assert (counters["BytesOut"], counters["FailedFetchRequest"]) == (len(ONE), 1)


def test_publish_when_the_flush_fails_then_says_why_and_reads_go_on(
    running_broker: Broker, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int) -> None:
        raise OSError(5, "Input/output error")

    peer.publish("events", ONE)
    (log,) = running_broker.logs.table.all()
    monkeypatch.setattr(log, "_disk", Disk(sync=refuse))
    for _ in range(2):
        published = peer.publish("events", ONE)
        assert published.error == StorageError.code
        assert "cannot flush events[0-0] at offset" in published.text
        assert "Input/output error" in published.text
    assert peer.fetch("events", 0) == (0, ONE)
    assert peer.publish("others", ONE).error == 0
