"""What streams do with missing offsets, damaged messages, compressed sets and slow readers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.consumer.membership import Whitelist
from broker.consumer.offset_store import RegistryOffsets
from broker.consumer.stream import ConsumerStream
from broker.errors import (
    ConsumerTimeoutError,
    InvalidMessageError,
    InvalidPatternError,
    OffsetOutOfRangeError,
)
from broker.producer.producer import Producer
from broker.protocol.client_requests import PayloadFilter
from broker.protocol.codec import decode_delimited, encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.requests import RequestType
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.server.requests import admin
from broker.server.requests.filtered_read import FilteredRead
from broker.topic import TopicPartition
from broker.zk.session import Session
from tests.support.waiting import wait_until
from tests.support.zookeeper import await_registered

pytestmark = pytest.mark.zookeeper

PARTITION = TopicPartition("t", 0, 0)
ENTRY_BYTES = 10

Join = Callable[..., ConsumerConnector]


@pytest.fixture
def broker(start_broker: Callable[..., Broker], zookeeper: str) -> Broker:
    return start_broker(zookeeper=zookeeper, flush_interval_ms=5)


@pytest.fixture
def producer(broker: Broker) -> Iterator[Producer]:
    cluster = StaticCluster([BrokerAddress(0, "127.0.0.1", broker.port)], Connection)
    with Producer(cluster, Connection) as producer:
        yield producer
    cluster.close()


@pytest.fixture
def join(broker: Broker, zookeeper: str) -> Iterator[Join]:
    """Make connectors of group g; shut down at the end."""
    connectors: list[ConsumerConnector] = []

    def make(payload_filter: PayloadFilter | None = None, **settings: object) -> ConsumerConnector:
        defaults: dict[str, object] = {
            "zookeeper": zookeeper,
            "group": "g",
            "zk_session_timeout_ms": 10_000,
            "max_wait_ms": 50,
            "consumer_timeout_ms": 60_000,
        }
        config = ConsumerConfig(**(defaults | settings))  # type: ignore[arg-type]  # settings by name
        connectors.append(ConsumerConnector(config, payload_filter=payload_filter))
        return connectors[-1]

    yield make
    for connector in connectors:
        connector.shutdown()


def only_stream(connector: ConsumerConnector) -> ConsumerStream:
    return connector.create_message_streams({"t": 1})["t"][0]


def send(producer: Producer, *payloads: bytes, codec: Codec = Codec.NONE) -> None:
    producer.send_set(PARTITION, build_set(payloads, codec) if codec else encode(payloads))
    producer.wait_until_readable()


def commit_for_group(session: Session, value: bytes) -> None:
    # an offset from before the creation of its topic is recorded belongs to a former topic
    await_registered(session)
    session.create("/consumers/g/offsets/t/0-0", value)


def take(stream: ConsumerStream, count: int) -> list[bytes]:
    return [next(stream)[4] for _ in range(count)]


def test_group_when_it_has_no_offset_then_starts_at_the_smallest(
    producer: Producer, join: Join
) -> None:
    send(producer, b"old")

    assert take(only_stream(join()), 1) == [b"old"]


def test_group_when_told_to_start_at_the_largest_then_commits_that_at_once(
    producer: Producer, join: Join, session: Session
) -> None:
    send(producer, b"old")
    await_registered(session)  # the messages of a topic that appears later are all read
    connector = join(offset_reset="largest", consumer_timeout_ms=100)
    stream = only_stream(connector)

    def is_there() -> bool:
        with pytest.raises(ConsumerTimeoutError):
            next(stream)
        return connector.positions.get(PARTITION) is not None

    wait_until(is_there, "the jump to the end")
    connector.shutdown()

    send(producer, b"new")

    assert session.get("/consumers/g/offsets/t/0-0")[0] == b"13"
    assert take(only_stream(join(offset_reset="largest")), 1) == [b"new"]


@pytest.mark.parametrize("stored", [b"1000000", b"-1", b"twelve", b"1" + b"0" * 20])
def test_group_when_its_offset_is_out_of_range_then_goes_to_the_smallest_and_says_so(
    producer: Producer,
    join: Join,
    session: Session,
    caplog: pytest.LogCaptureFixture,
    stored: bytes,
) -> None:
    send(producer, b"old")
    commit_for_group(session, stored)

    assert take(only_stream(join()), 1) == [b"old"]
    what = "is out of range" if stored == b"1000000" else "is no number that a log can have"
    assert f"t[0-0] {what}: 0 to 13 can be read; going on at the smallest, 0" in caplog.text


def test_group_when_told_so_then_treats_no_offset_and_one_out_of_range_differently(
    producer: Producer, join: Join, session: Session
) -> None:
    send(producer, b"old")
    settings = {"offset_reset": "smallest", "out_of_range_reset": "fail"}
    with join(**settings) as connector:
        assert take(only_stream(connector), 1) == [b"old"]

    session.set("/consumers/g/offsets/t/0-0", b"1000000")

    with pytest.raises(OffsetOutOfRangeError, match=r"offset 1000000 of t.*0 to 13 can be read"):
        next(only_stream(join(**settings)))


def test_group_when_its_offset_is_out_of_range_and_told_to_fail_then_raises(
    producer: Producer, join: Join, session: Session
) -> None:
    send(producer, b"old")
    commit_for_group(session, b"1000000")
    stream = only_stream(join(offset_reset="fail"))

    with pytest.raises(OffsetOutOfRangeError, match=r"1000000 of t\[0-0\]"):
        next(stream)
    assert stream.seek(PARTITION, 0)
    assert take(stream, 1) == [b"old"]


def test_group_when_it_has_no_offset_and_told_to_fail_then_raises(
    producer: Producer, join: Join, session: Session
) -> None:
    send(producer, b"old")
    await_registered(session)

    with pytest.raises(OffsetOutOfRangeError, match="no offset"):
        next(only_stream(join(offset_reset="fail")))


@pytest.mark.parametrize(
    ("place", "value"),
    [(ENTRY_BYTES, b"!"), (0, b"\x7f"), (3, b"\x08"), (4, b"\x07")],
    ids=["payload", "length too long", "length within the log", "magic byte"],
)
def test_group_when_a_message_is_corrupt_then_stays_there_until_told_to_skip_it(
    producer: Producer, join: Join, broker: Broker, tmp_path: Path, place: int, value: bytes
) -> None:
    send(producer, b"a", b"b", b"c")
    (segment,) = (tmp_path / "data").rglob("*.pylog")
    with segment.open("r+b") as file:
        file.seek(ENTRY_BYTES + 1 + place)
        file.write(value)
    connector = join()
    stream = only_stream(connector)

    assert take(stream, 1) == [b"a"]
    with pytest.raises(InvalidMessageError, match=r"t\[0-0\]"):
        next(stream)
    connector.shutdown()
    again = only_stream(join())  # it was not passed over in silence
    with pytest.raises(InvalidMessageError):
        next(again)
    again.skip_corrupt(PARTITION)
    assert take(again, 1) == [b"c"]


def test_group_when_restarted_inside_a_compressed_set_then_gives_the_set_again(
    producer: Producer, join: Join
) -> None:
    send(producer, b"before")
    send(producer, b"a", b"b", b"c", codec=Codec.GZIP)
    connector = join()
    assert take(only_stream(connector), 3) == [b"before", b"a", b"b"]
    connector.shutdown()

    assert take(only_stream(join()), 3) == [b"a", b"b", b"c"]


def test_group_when_a_set_is_taken_away_and_given_back_then_goes_on_inside_it(
    producer: Producer, join: Join, session: Session
) -> None:
    send(producer, b"a", b"b", b"c", codec=Codec.GZIP)
    connector = join(consumer_name="me")
    stream = only_stream(connector)
    stream.finish(next(stream))
    stream.finish(next(stream))

    session.create("/consumers/g/ids/a_rival", b'{ "t": 1 }', ephemeral=True)
    wait_until(lambda: not connector.positions, "the release")
    session.delete("/consumers/g/ids/a_rival")

    assert take(stream, 1) == [b"c"]


def test_group_when_a_message_is_larger_than_a_fetch_then_is_given_whole(
    producer: Producer, join: Join
) -> None:
    large = b"x" * 300_000
    send(producer, large, b"small")

    assert take(only_stream(join(fetch_bytes=10_000)), 2) == [large, b"small"]


def test_group_when_one_stream_is_not_read_then_others_of_the_broker_go_on(
    producer: Producer, join: Join
) -> None:
    for name in ("slow", "fast"):
        for _ in range(40):
            producer.send_set(TopicPartition(name, 0, 0), encode([b"x" * 1000] * 20))
    producer.wait_until_readable()
    connector = join(max_queued_chunks=1, fetch_bytes=20_000)
    streams = connector.create_message_streams({"slow": 1, "fast": 1})

    assert len(take(streams["fast"][0], 800)) == 800
    assert len(take(streams["slow"][0], 800)) == 800


def test_group_when_read_by_filter_then_topics_are_spread_over_the_streams(
    producer: Producer, join: Join
) -> None:
    for name in ("a", "b", "c", "d"):
        producer.send_set(TopicPartition(name, 0, 0), encode([name.encode()]))
    producer.wait_until_readable()
    connector = join()

    streams = connector.create_message_streams_by_filter(Whitelist("[a-d]"), 2)
    wait_until(lambda: len(connector.positions) == 4, "the claim of all topics")

    assert [len(stream.partitions) for stream in streams] == [2, 2]
    assert {payload for stream in streams for payload in take(stream, 2)} == {
        b"a",
        b"b",
        b"c",
        b"d",
    }


def test_group_when_read_in_chunks_then_commits_what_was_finished(
    producer: Producer, join: Join, session: Session
) -> None:
    send(producer, b"a", b"b", b"c")
    connector = join()
    assigned = next(only_stream(connector).chunks())

    decoded = decode_delimited(assigned.data, b"\n", 2)
    assigned.take(decoded.valid_bytes)
    assert assigned.finish(assigned.offset)
    connector.commit_offsets()

    assert decoded.text == b"a\nb\n"
    assert session.get("/consumers/g/offsets/t/0-0")[0] == b"22"


def test_group_when_auto_commit_is_on_then_commits_at_intervals(
    producer: Producer, join: Join, session: Session
) -> None:
    send(producer, b"a", b"b")
    stream = only_stream(join(auto_commit_interval_ms=20))
    take(stream, 2)

    path = "/consumers/g/offsets/t/0-0"
    wait_until(
        lambda: session.exists(path) is not None and session.get(path)[0] == b"11",
        "the commit of the first message",
    )


def test_group_when_it_begins_then_commits_where_long_before_the_first_interval_ends(
    producer: Producer, join: Join, session: Session
) -> None:
    send(producer, b"a")
    await_registered(session)
    stream = only_stream(join(offset_reset="largest", auto_commit_interval_ms=3_600_000))
    with ThreadPoolExecutor(1) as application:
        new = application.submit(take, stream, 1)
        path = "/consumers/g/offsets/t/0-0"
        wait_until(lambda: session.exists(path) is not None, "the commit of the start")
        assert session.get(path)[0] == b"11"
        send(producer, b"b")
        assert new.result(60) == [b"b"]


def test_group_when_auto_commit_is_off_then_a_release_commits_nothing(
    producer: Producer, join: Join, session: Session
) -> None:
    send(producer, b"a", b"b")
    connector = join(auto_commit=False)
    take(only_stream(connector), 2)

    session.create("/consumers/g/ids/a_rival", b'{ "t": 1 }', ephemeral=True)
    wait_until(lambda: not connector.positions, "the release")
    connector.shutdown()

    assert session.exists("/consumers/g/offsets/t/0-0") is None


def test_group_when_an_offset_was_set_by_somebody_else_then_is_replaced_with_a_warning(
    producer: Producer, join: Join, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    send(producer, b"a", b"b", b"c")
    commit_for_group(session, b"0")
    connector = join()
    stream = only_stream(connector)
    take(stream, 2)
    session.set("/consumers/g/offsets/t/0-0", b"5")

    connector.commit_offsets()

    assert session.get("/consumers/g/offsets/t/0-0")[0] == b"11"
    assert RegistryOffsets(session, "g").load([PARTITION])[PARTITION].offset == 11
    assert "offset 5 of t[0-0], written by another process, is replaced by 11" in caplog.text


def test_group_when_shut_down_then_no_thread_is_left_and_streams_end(
    producer: Producer, join: Join
) -> None:
    send(producer, b"a")
    connector = join()
    stream = only_stream(connector)
    take(stream, 1)

    connector.shutdown()

    assert list(stream) == []
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("group-")]


def stored_offset(session: Session) -> int:
    path = "/consumers/g/offsets/t/0-0"
    return int(session.get(path)[0]) if session.exists(path) is not None else -1


@pytest.fixture(params=["by the broker", "here"])
def filtering(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that filter what is read, and brokers that cannot."""
    if request.param == "here":
        versions = admin.supported_versions() | {int(RequestType.READ): (0, 0)}
        monkeypatch.setattr(admin, "supported_versions", lambda: versions)


def test_group_when_messages_are_filtered_then_commits_behind_those_left_out(
    filtering: None, broker: Broker, producer: Producer, join: Join, session: Session
) -> None:
    send(producer, b"no", b"yes 1", b"no", codec=Codec.GZIP)
    send(producer, *[b"no"] * 500, b"yes 2", *[b"no"] * 500)
    stream = only_stream(join(PayloadFilter(b"yes"), auto_commit_interval_ms=20))
    end = broker.status()["metrics"]["logs.t-0"]["CurrentOffset"]
    waiting = threading.Thread(target=lambda: take(stream, 1))

    assert take(stream, 2) == [b"yes 1", b"yes 2"]
    assert stored_offset(session) < end
    waiting.start()  # it asks for a third one, and so finishes the second
    wait_until(lambda: stored_offset(session) == end, "the commit of what was left out")
    send(producer, b"yes 3")
    waiting.join()


def test_group_when_it_goes_on_without_the_filter_then_starts_behind_what_was_left_out(
    filtering: None, producer: Producer, join: Join, session: Session
) -> None:
    send(producer, b"yes", b"no", b"no")
    end = len(encode([b"yes", b"no", b"no"]))
    connector = join(PayloadFilter(b"yes"), auto_commit_interval_ms=20)
    stream = only_stream(connector)
    assert take(stream, 1) == [b"yes"]
    waiting = threading.Thread(target=lambda: list(stream))
    waiting.start()  # it asks for a second one, and so finishes the first
    wait_until(lambda: stored_offset(session) == end, "the commit of what was left out")
    connector.shutdown()
    waiting.join()

    send(producer, b"no more")

    assert take(only_stream(join()), 1) == [b"no more"]


def test_group_when_a_broker_does_not_take_the_pattern_then_says_so(
    producer: Producer, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InvalidPatternError("not with us")

    monkeypatch.setattr(FilteredRead, "__init__", refuse)
    send(producer, b"a")

    with pytest.raises(InvalidPatternError, match="not with us"):
        next(only_stream(join(PayloadFilter(b"a"))))


def test_group_when_the_pattern_is_none_then_cannot_be_joined(join: Join) -> None:
    with pytest.raises(InvalidPatternError, match=r"missing \): \("):
        join(PayloadFilter(b"("))
