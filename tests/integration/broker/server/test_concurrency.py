"""Many clients of several processors at once, on the same partitions."""

from __future__ import annotations

import threading
from collections.abc import Callable

from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import decode, encode
from broker.protocol.responses import decode_publish_response
from broker.server.broker import Broker
from tests.integration.broker.factories import BrokerFactory
from tests.integration.broker.server.peer import Peer, extension_frame, partition
from tests.support.waiting import wait_until

CLIENTS = 8
SETS = 150
PARTITIONS = 2


def run_all(actions: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=action) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def publisher(broker: Broker, client: int, offsets: dict[int, list[int]]) -> Callable[[], None]:
    """Return what publishes numbered messages, a window of them at a time."""

    def publish() -> None:
        found: list[int] = []
        with Peer(broker.port) as peer:
            peer.make_topics(["events"])
            for first in range(0, SETS, 30):
                numbers = range(first, first + 30)
                requests = [
                    PublishRequest(
                        Acks.COMMITTED,
                        10_000,
                        (
                            PartitionSet(
                                partition("events", client % PARTITIONS),
                                encode([b"%d %d" % (client, number)]),
                            ),
                        ),
                    )
                    for number in numbers
                ]
                frames = zip(requests, numbers, strict=True)
                peer.send_bytes(b"".join(extension_frame(one, n) for one, n in frames))
                for number in numbers:
                    (one,) = decode_publish_response(peer.receive_extension(number))
                    assert one.error == 0
                    found.append(one.base_offset)
        offsets[client] = found

    return publish


def reader(broker: Broker, index: int, size: int, found: dict[int, bytes]) -> Callable[[], None]:
    """Return what reads a partition from its start while it grows."""

    def read() -> None:
        data = bytearray()
        with Peer(broker.port) as peer:

            def is_read() -> bool:
                code, more = peer.fetch("events", len(data), index=index)
                assert code == 0
                data.extend(more)
                return len(data) >= size

            wait_until(is_read, "all data")
        found[index] = bytes(data)

    return read


def test_broker_when_many_clients_use_it_at_once_then_each_keeps_its_order(
    start_broker: BrokerFactory,
) -> None:
    broker = start_broker(num_threads=4, num_partitions=PARTITIONS, segment_bytes=5000)
    with Peer(broker.port) as peer:
        for index in range(PARTITIONS):
            peer.produce("events", b"", index=index)
        peer.status()
    size = sum(len(encode([b"%d %d" % (0, number)])) for number in range(SETS))
    offsets: dict[int, list[int]] = {}
    found: dict[int, bytes] = {}
    run_all(
        [publisher(broker, client, offsets) for client in range(CLIENTS)]
        + [
            reader(broker, index, CLIENTS // PARTITIONS * size, found)
            for index in range(PARTITIONS)
        ]
    )
    for index, data in found.items():
        messages = decode(data, 0).messages
        at_offset = {offset: payload for offset, _, payload in messages}
        assert len(messages) == CLIENTS // PARTITIONS * SETS
        for client in range(index, CLIENTS, PARTITIONS):
            expected = [b"%d %d" % (client, number) for number in range(SETS)]
            assert [at_offset[offset] for offset in offsets[client]] == expected
            assert offsets[client] == sorted(offsets[client])
