"""A mirror on streams that the test fills, and real brokers as its target."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker import Broker, BrokerError, Codec, Connection, Producer, StaticCluster, TopicPartition
from broker.client.cluster import Cluster, locked
from broker.consumer.chunk import Chunk
from broker.consumer.committer import AssignedPartition
from broker.consumer.membership import Lease
from broker.consumer.stream import ConsumerStream
from broker.errors import (
    BrokerUnreachableError,
    ConfigError,
    InvalidMessageError,
    RegistryUnreachableError,
    RequestTimeoutError,
)
from broker.producer.settings import ProducerSettings
from broker.protocol.checksum import crc32
from broker.protocol.codec import decode
from broker.protocol.message_set import build_set
from broker.protocol.responses import BrokerAddress
from broker.tools.mirror import Mirror, Route
from broker.topic import NO_HOME, MessagePosition
from tests.integration.broker.factories import BrokerFactory, address_of
from tests.support.waiting import wait_until


class SourceCluster(Cluster):
    """A cluster with two partitions of every topic on broker 3."""

    def brokers(self) -> list[BrokerAddress]:
        return [BrokerAddress(3, "nowhere", 1)]

    def topics(self) -> list[str]:
        return ["t"]

    def partitions(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, 3, index) for index in range(2)]

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        return self.brokers()[0]


class Group:
    """Streams with a partition each, and the connector they would be from."""

    def __init__(self, stream_count: int) -> None:
        lease = Lease()
        lease.renew(time.monotonic() + 600)
        self.streams = [
            ConsumerStream(
                str(n),
                lease,
                max_chunks=99,
                timeout_s=0.05,
                on_room=lambda: None,
                on_restart=lambda partition, offset: None,
                next_good_message=lambda _partition, _offset: None,
            )
            for n in range(stream_count)
        ]
        self.owned = [
            AssignedPartition(
                TopicPartition("t", 3, index), MessagePosition(-1), thread_id="thread"
            )
            for index in range(stream_count)
        ]
        for stream, owned in zip(self.streams, self.owned, strict=True):
            owned.restart_at(0)
            stream.assign(owned)
        self._ends = [0] * stream_count
        self.is_shut_down = False

    def shutdown(self) -> None:
        self.is_shut_down = True

    def fill(self, place: int, data: bytes, piece_bytes: int = 1 << 20) -> None:
        for start in range(0, len(data), piece_bytes):
            piece = data[start : start + piece_bytes]
            end = self._ends[place] + len(data) - start
            owned = self.owned[place]
            chunk = Chunk(owned.partition, self._ends[place], piece, high_watermark=end)
            self.streams[place].put(owned, chunk)
            self._ends[place] += len(piece)


class Running:
    """A mirror in a thread of its own."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror
        self.error: BrokerError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mirror")
        self._thread.start()

    def _run(self) -> None:
        try:
            self.mirror.run(self._stop.wait)
        except BrokerError as error:
            self.error = error

    def stop(self) -> None:
        self._stop.set()
        self.join()

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()


def connect(address: BrokerAddress) -> Connection:
    return Connection(address, timeout_s=60, connect_timeout_s=0.2)


StartMirror = Callable[..., Running]


def await_finished(group: Group, offset: int) -> None:
    wait_until(lambda: group.owned[0].finished == offset, "the set mirrored")


@pytest.fixture
def start_mirror() -> Iterator[StartMirror]:
    """Mirror a group's streams into a broker; stopped at the end."""
    started: list[Running] = []
    clusters: list[StaticCluster] = []

    def start(group: Group, broker: Broker, **options: object) -> Running:
        brokers = StaticCluster([address_of(broker)], connect)
        clusters.append(brokers)
        target = locked(brokers)
        route = Route(SourceCluster(), target, connect, lambda topic: f"m.{topic}")
        mirror = Mirror(
            group,
            group.streams,
            route,
            lambda: Producer(
                target, connect, ProducerSettings(delivery_timeout_s=math.inf, timeout_s=60)
            ),
            **options,  # type: ignore[arg-type]  # options by name
        )
        started.append(Running(mirror))
        return started[-1]

    yield start
    for one in started:
        one.stop()
    for cluster in clusters:
        cluster.close()


def payloads(broker: Broker, topic: str, index: int) -> list[bytes]:
    files = sorted((broker.config.data_dir / f"{topic}_{index}").glob("*.pylog"))
    data = b"".join(file.read_bytes() for file in files)
    return [payload for _, _, payload in decode(data, 0).messages]


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def test_mirror_when_stopped_then_all_that_was_read_is_sent_in_order_and_finished(
    running_broker: Broker, start_mirror: StartMirror
) -> None:
    group = Group(2)
    data = build_set(numbers(0, 500))
    running = start_mirror(group, running_broker, producer_count=2)
    group.fill(0, data, piece_bytes=333)
    group.fill(1, build_set(numbers(500, 900)), piece_bytes=100)
    wait_until(lambda: running.mirror.message_count == 900, "all of it mirrored")

    running.stop()

    assert running.error is None
    assert payloads(running_broker, "m.t", 0) == numbers(0, 500)
    assert payloads(running_broker, "m.t", 1) == numbers(500, 900)
    assert group.owned[0].finished == len(data)
    assert group.is_shut_down


def test_mirror_when_the_target_is_away_twice_then_finishes_nothing_until_it_is_back(
    start_broker: BrokerFactory, start_mirror: StartMirror
) -> None:
    broker = start_broker()
    group = Group(1)
    sets = [build_set(numbers(first, first + 10)) for first in (0, 10, 20)]
    running = start_mirror(group, broker)
    group.fill(0, sets[0])
    wait_until(lambda: running.mirror.message_count == 10, "the first messages mirrored")
    finished = len(sets[0])
    for message_set in sets[1:]:
        broker.stop()
        group.fill(0, message_set)
        wait_until(lambda: not group.streams[0].is_full, "the set taken")
        wait_until(lambda: running.mirror.log.routes()[0].is_failing, "the failure being noted")
        assert group.owned[0].finished == finished

        broker = start_broker(port=broker.port)
        finished += len(message_set)
        await_finished(group, finished)
    running.stop()

    assert running.error is None
    (route,) = running.mirror.log.routes()
    assert (route.is_failing, route.next_offset) == (False, finished)
    assert route.error_count
    assert list(dict.fromkeys(payloads(broker, "m.t", 0))) == numbers(0, 30)


def test_mirror_when_stopped_while_the_target_is_away_then_gives_up_and_says_why(
    start_broker: BrokerFactory, start_mirror: StartMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.tools.mirror._GRACE_S", 60.0)  # its threads end by themselves
    broker = start_broker()
    group = Group(1)
    running = start_mirror(group, broker, drain_s=0.2)
    group.fill(0, build_set(numbers(0, 10)))
    wait_until(lambda: running.mirror.message_count == 10, "the first messages mirrored")
    done = group.owned[0].finished
    broker.stop()
    group.fill(0, build_set(numbers(10, 20)))
    wait_until(lambda: group.owned[0].offset > done, "the second set taken")

    running.stop()

    assert isinstance(running.error, BrokerUnreachableError)
    assert group.owned[0].finished == done
    assert group.is_shut_down


class AwayCluster(SourceCluster):
    """A cluster whose registry is away."""

    def __init__(self) -> None:
        self.is_asked = threading.Event()

    def partitions(self, topic: str) -> list[TopicPartition]:
        self.is_asked.set()
        raise RegistryUnreachableError("it is away")


def test_mirror_when_stopped_while_it_has_found_no_place_for_what_it_read_then_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.tools.mirror._GRACE_S", 60.0)  # its threads end by themselves
    group, target = Group(1), AwayCluster()
    route = Route(SourceCluster(), target, connect, lambda topic: topic)
    running = Running(
        Mirror(group, group.streams, route, lambda: Producer(target, connect), drain_s=0.2)
    )
    group.fill(0, build_set([b"1"]))
    assert target.is_asked.wait(60)

    running.stop()

    assert isinstance(running.error, RegistryUnreachableError)
    assert group.is_shut_down
    assert group.owned[0].finished == 0


class SilentCluster(SourceCluster):
    """A cluster whose registry answers nothing until the test is over."""

    def __init__(self) -> None:
        self.is_asked = threading.Event()
        self.is_over = threading.Event()

    def partitions(self, topic: str) -> list[TopicPartition]:
        self.is_asked.set()
        self.is_over.wait(60)
        raise RegistryUnreachableError("it answers nothing")


def test_mirror_when_stopped_while_the_registry_of_the_target_is_silent_then_waits_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.tools.mirror._GRACE_S", 0.1)
    group, target = Group(1), SilentCluster()
    route = Route(SourceCluster(), target, connect, lambda topic: topic)
    mirror = Mirror(group, group.streams, route, lambda: Producer(target, connect), drain_s=0.1)
    running = Running(mirror)
    group.fill(0, build_set([b"1"]))
    assert target.is_asked.wait(60)

    running.stop()

    assert isinstance(running.error, RequestTimeoutError)
    assert group.is_shut_down
    assert group.owned[0].finished == 0
    target.is_over.set()
    for thread in (*mirror._readers, *mirror._senders):
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize(("place", "bits"), [(-1, 1), (0, 0x70)], ids=["payload", "length"])
def test_mirror_when_a_message_is_corrupt_then_mirrors_all_before_it_and_ends(
    running_broker: Broker, start_mirror: StartMirror, place: int, bits: int
) -> None:
    group = Group(1)
    good, bad = build_set(numbers(0, 10)), bytearray(build_set([b"bad"]))
    bad[place] ^= bits
    running = start_mirror(group, running_broker)

    group.fill(0, good + bytes(bad))
    running.join()

    assert isinstance(running.error, InvalidMessageError)
    assert str(running.error).startswith(f"t[3-0]: the message at {len(good)} is invalid")
    assert payloads(running_broker, "m.t", 0) == numbers(0, 10)
    assert group.owned[0].finished == len(good)
    (route,) = running.mirror.log.routes()
    assert (route.next_offset, route.error) == (len(good), str(running.error))
    assert route.is_failing  # though what came before was acknowledged later


def test_mirror_when_corrupt_messages_are_skipped_then_mirrors_all_others_and_counts_them(
    running_broker: Broker, start_mirror: StartMirror
) -> None:
    group = Group(1)
    bad = bytearray(build_set([b"bad"]))
    bad[-1] ^= 1
    unreadable = bytearray(build_set([b"bad"], Codec.GZIP))
    unreadable[10:] = bytes(len(unreadable) - 10)
    unreadable[6:10] = crc32(unreadable[10:]).to_bytes(4, "big")
    parts = [build_set(numbers(0, 10)), bytes(bad), build_set(numbers(10, 20)), bytes(unreadable)]
    last = build_set(numbers(20, 30), Codec.GZIP)
    running = start_mirror(group, running_broker, skips_corrupt=True)

    # a fetcher that is told to go on elsewhere reads again from there
    group.fill(0, parts[0] + parts[1])
    wait_until(lambda: group.owned[0].finished == len(parts[0] + parts[1]), "the first skip")
    group.fill(0, parts[2] + parts[3])
    wait_until(lambda: group.owned[0].finished == len(b"".join(parts)), "the second skip")
    group.fill(0, last)
    wait_until(lambda: running.mirror.message_count == 30, "all that is good mirrored")
    running.stop()

    assert running.error is None
    assert payloads(running_broker, "m.t", 0) == numbers(0, 30)
    (route,) = running.mirror.log.routes()
    assert (route.corrupt_count, route.is_failing) == (2, False)
    assert f"t[3-0]: the message at {len(parts[0] + parts[1] + parts[2])}" in route.error
    assert group.owned[0].finished == len(b"".join(parts)) + len(last)


def test_mirror_when_the_target_is_away_then_skips_nothing_before_all_in_front_is_acknowledged(
    start_broker: BrokerFactory, start_mirror: StartMirror
) -> None:
    broker = start_broker()
    group = Group(1)
    first, second, bad = build_set([b"1"]), build_set([b"2"]), bytearray(build_set([b"bad"]))
    bad[-1] ^= 1
    running = start_mirror(group, broker, skips_corrupt=True)
    group.fill(0, first)
    wait_until(lambda: running.mirror.message_count == 1, "the first message mirrored")
    broker.stop()
    group.fill(0, second + bytes(bad))
    wait_until(lambda: running.mirror.log.routes()[0].is_failing, "the failure being noted")
    assert (running.mirror.corrupt_count, group.owned[0].finished) == (0, len(first))

    start_broker(port=broker.port)
    wait_until(lambda: running.mirror.corrupt_count == 1, "the skip")
    assert group.owned[0].finished == len(first + second + bad)


def test_route_when_the_topic_is_missing_then_creates_as_many_partitions(
    start_broker: BrokerFactory, tmp_path: Path
) -> None:
    brokers = [start_broker(broker_id=n, data_dir=tmp_path / str(n)) for n in (5, 6)]
    target = StaticCluster([address_of(one) for one in brokers], connect)
    route = Route(SourceCluster(), target, connect, lambda topic: f"m.{topic}")

    placed = [route.place(one).name for one in SourceCluster().partitions("t")]

    assert placed == ["5-0", "6-0"]
    assert [one.name for one in target.partitions("m.t")] == ["5-0", "6-0"]
    target.close()


def test_route_when_a_target_has_no_leader_then_the_places_stay_the_same() -> None:
    class Target(SourceCluster):
        """Partition 0 waits for a leader."""

        def partitions(self, topic: str) -> list[TopicPartition]:
            return [TopicPartition(topic, 3, 1)]

        def assigned(self, topic: str) -> list[TopicPartition]:
            return super().partitions(topic)

    route = Route(SourceCluster(), Target(), connect, lambda topic: topic)
    placed = [route.place(TopicPartition("t", 3, index)).name for index in range(2)]
    assert placed == ["3-0", "3-1"]


def test_route_when_a_topic_is_of_the_format_kafka_then_is_refused(running_broker: Broker) -> None:
    target = StaticCluster([address_of(running_broker)], connect)
    route = Route(SourceCluster(), target, connect, lambda topic: topic)

    with pytest.raises(ConfigError, match="'t' is of the format kafka"):
        route.place(TopicPartition("t", NO_HOME, 0))
    target.close()


def test_route_when_a_topic_would_be_read_again_then_is_refused(running_broker: Broker) -> None:
    target = StaticCluster([address_of(running_broker)], connect)
    route = Route(SourceCluster(), target, connect, lambda topic: topic, is_read=lambda _: True)

    with pytest.raises(ConfigError, match="'t' would go to 't' of the same cluster"):
        route.place(TopicPartition("t", 3, 0))
    target.close()
