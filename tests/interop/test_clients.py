"""Clients of other makes on one of our brokers: produce, fetch, offsets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.broker_process import BrokerProcess
from broker.client.connection import Connection
from broker.consumer.simple_consumer import SimpleConsumer
from broker.log.offline.verify import verify_paths
from broker.protocol.compression import Codec, compress, decompress
from broker.protocol.message_set import build_set
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME, FetchRequest, ProduceRequest
from tests.interop.peers import PeerError, find_peer, require_peers
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

require_peers()

HOST = "127.0.0.1"
TOPIC = "interop"
LINES = ["one", "two", "three with blanks", "4", "five" * 50]
MAX_BYTES = 1 << 20


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker whose segments are so short that a few sets fill some of them."""
    process = BrokerProcess(
        tmp_path,
        **{
            "num.partitions": "3",
            "log.default.flush.interval.ms": "20",
            "log.file.size": "600",
        },
    )
    yield process
    process.stop()


@pytest.fixture
def consumer(broker: BrokerProcess) -> Iterator[SimpleConsumer]:
    with SimpleConsumer(HOST, broker.port) as started:
        yield started


def produce(broker: BrokerProcess, partition: int, message_set: bytes) -> None:
    """Send a set as 0.7's clients do, and wait until it can be read."""
    with SimpleConsumer(HOST, broker.port) as consumer:

        def end() -> int:
            return consumer.get_offsets_before(TOPIC, partition, LATEST_TIME, 1)[0]

        before = end()
        connection = Connection(broker.address)
        connection.send_request(ProduceRequest(TOPIC, partition, message_set))
        wait_until(lambda: end() == before + len(message_set), "the flush of a set")
        connection.close()


def read_all(consumer: SimpleConsumer, partition: int) -> list[tuple[int, str]]:
    """Return next offset and text of all messages of a partition."""
    found: list[tuple[int, str]] = []
    offset = 0
    while fetched := consumer.fetch(TOPIC, partition, offset, MAX_BYTES):
        found += [(next_offset, payload.decode()) for _, next_offset, payload in fetched]
        offset = fetched.next_offset
    return found


@pytest.mark.parametrize(
    ("peer", "action"),
    [
        ("jafka", "produce"),
        ("jafka", "produce-gzip"),
        ("samsa", "produce"),
        ("samsa", "produce-magic0"),
        ("pykafka", "produce"),
        ("brod", "produce"),
        ("prozess", "produce"),
        ("node-kafka", "produce"),
        ("franz", "produce"),
        ("franz", "produce-gzip"),
        ("franz", "produce-snappy"),
    ],
)
def test_broker_when_a_client_of_another_make_produces_then_all_is_there(
    broker: BrokerProcess, consumer: SimpleConsumer, peer: str, action: str
) -> None:
    find_peer(peer).run(action, HOST, broker.port, TOPIC, 2, lines=LINES)

    def payloads() -> list[str]:
        return [text for index in range(3) for _, text in read_all(consumer, index)]

    wait_until(lambda: len(payloads()) >= len(LINES), "the flush of what was produced")
    assert payloads() == LINES
    assert not verify_paths([broker.data]).problems


def test_broker_when_jafka_leaves_the_partition_to_it_then_the_set_is_in_one(
    broker: BrokerProcess, consumer: SimpleConsumer
) -> None:
    find_peer("jafka").run("produce", HOST, broker.port, TOPIC, -1, lines=LINES)

    def sets() -> list[list[str]]:
        found = [[text for _, text in read_all(consumer, index)] for index in range(3)]
        return [one for one in found if one]

    wait_until(sets, "the flush of what was produced")
    assert sets() == [LINES]


@pytest.mark.parametrize("peer", ["jafka", "samsa"])
def test_broker_when_a_client_of_another_make_multiproduces_then_each_partition_has_it(
    broker: BrokerProcess, consumer: SimpleConsumer, peer: str
) -> None:
    find_peer(peer).run("multiproduce", HOST, broker.port, TOPIC, 0, 2, lines=LINES)

    wait_until(lambda: read_all(consumer, 0) and read_all(consumer, 2), "the flush of both sets")
    for partition in (0, 2):
        assert [text for _, text in read_all(consumer, partition)] == LINES


@pytest.mark.parametrize(
    ("peer", "codec"),
    [
        ("jafka", Codec.NONE),
        ("jafka", Codec.GZIP),
        ("samsa", Codec.NONE),
        ("prozess", Codec.NONE),
    ],
)
def test_broker_when_a_client_of_another_make_fetches_then_it_sees_what_we_see(
    broker: BrokerProcess, consumer: SimpleConsumer, peer: str, codec: Codec
) -> None:
    produce(broker, 1, build_set([line.encode() for line in LINES], codec))

    found = find_peer(peer).run("fetch", HOST, broker.port, TOPIC, 1, 0)

    assert found == [f"{next_offset} {text}" for next_offset, text in read_all(consumer, 1)]
    assert len(found) == len(LINES)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_broker_when_franz_streams_then_it_gets_the_messages(
    broker: BrokerProcess, codec: Codec
) -> None:
    produce(broker, 1, build_set([line.encode() for line in LINES], codec))

    assert find_peer("franz").run("fetch", HOST, broker.port, TOPIC, 1, 0, len(LINES)) == LINES


@pytest.mark.parametrize("peer", ["pykafka", "brod", "node-kafka"])
def test_broker_when_a_client_of_06_fetches_its_own_messages_then_they_are_unchanged(
    broker: BrokerProcess, consumer: SimpleConsumer, peer: str
) -> None:
    client = find_peer(peer)
    client.run("produce", HOST, broker.port, TOPIC, 0, lines=LINES)
    wait_until(lambda: read_all(consumer, 0), "the flush of what was produced")

    found = client.run("fetch", HOST, broker.port, TOPIC, 0, 0)

    assert [line.partition(" ")[2] if peer == "brod" else line for line in found] == LINES


@pytest.mark.parametrize("peer", ["jafka", "samsa"])
def test_broker_when_a_client_of_another_make_multifetches_then_it_sees_what_we_see(
    broker: BrokerProcess, consumer: SimpleConsumer, peer: str
) -> None:
    for partition in (0, 2):
        produce(broker, partition, build_set([line.encode() for line in LINES[partition:]]))
    fetches = [FetchRequest(TOPIC, partition, 0, MAX_BYTES) for partition in range(3)]
    expected: list[str] = []
    for fetched in consumer.multifetch(fetches):
        expected += [f"{after} {payload.decode()}" for _, after, payload in fetched] + ["--"]

    found = find_peer(peer).run("multifetch", HOST, broker.port, TOPIC, 0, 0, 1, 0, 2, 0)

    assert found == expected
    assert len(found) == len(LINES) + len(LINES) - 2 + 3


@pytest.mark.parametrize("peer", ["jafka", "samsa", "brod"])
@pytest.mark.parametrize("time", [LATEST_TIME, EARLIEST_TIME])
def test_broker_when_a_client_of_another_make_asks_for_offsets_then_it_gets_the_segments(
    broker: BrokerProcess, consumer: SimpleConsumer, peer: str, time: int
) -> None:
    for _ in range(8):
        produce(broker, 1, build_set([line.encode() for line in LINES]))

    found = find_peer(peer).run("offsets", HOST, broker.port, TOPIC, 1, time, 100)

    assert found == [str(one) for one in consumer.get_offsets_before(TOPIC, 1, time, 100)]
    assert len(found) == (1 if time == EARLIEST_TIME else 4)


def test_broker_when_prozess_asks_for_offsets_then_it_gets_both_ends(
    broker: BrokerProcess,
) -> None:
    message_set = build_set([line.encode() for line in LINES])
    produce(broker, 1, message_set)
    prozess = find_peer("prozess")

    assert prozess.run("offsets", HOST, broker.port, TOPIC, 1, LATEST_TIME) == [
        str(len(message_set))
    ]
    assert prozess.run("offsets", HOST, broker.port, TOPIC, 1, EARLIEST_TIME) == ["0"]


@pytest.mark.parametrize(
    ("peer", "error"),
    [
        ("jafka", "OffsetOutOfRange"),
        ("samsa", "OffsetOutOfRange"),
        ("prozess", "OffsetOutOfRange"),
    ],
)
def test_broker_when_a_client_of_another_make_asks_past_the_end_then_it_knows_the_error(
    broker: BrokerProcess, peer: str, error: str
) -> None:
    produce(broker, 1, build_set([b"one"]))

    with pytest.raises(PeerError, match=error):
        find_peer(peer).run("fetch", HOST, broker.port, TOPIC, 1, 4711)


SNAPPY_DATA = b"".join(b"%d of many\n" % number for number in range(9000))  # several blocks


def test_snappy_when_the_library_of_07_reads_our_container_then_it_has_the_data() -> None:
    ours = compress(Codec.SNAPPY, SNAPPY_DATA)

    (found,) = find_peer("jafka").run("unsnappy", lines=[ours.hex()])

    assert bytes.fromhex(found) == SNAPPY_DATA


def test_snappy_when_the_library_of_07_writes_a_container_then_we_read_it() -> None:
    (theirs,) = find_peer("jafka").run("snappy", lines=[SNAPPY_DATA.hex()])

    assert decompress(Codec.SNAPPY, bytes.fromhex(theirs)) == SNAPPY_DATA
