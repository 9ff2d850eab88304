"""Load on brokers for some seconds: requests encoded beforehand, responses not decoded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle

from bench.broker_process import BrokerProcess
from bench.workload import payloads
from broker.client.connection import Connection
from broker.consumer.fetcher import Fetcher
from broker.protocol import codec
from broker.protocol.client_requests import (
    ListOffsetsRequest,
    OffsetKind,
    OffsetQuery,
)
from broker.protocol.extension_requests import (
    CreateTopicRequest,
)
from broker.protocol.requests import ProduceRequest, encode_request
from broker.protocol.responses import LISTED_OFFSETS
from broker.topic import TopicPartition

BATCH = 50
FETCH_BYTES = 200_000
_WRITE_BYTES = 64 << 10
_MAX_QUERIES = 1000


def create(broker: BrokerProcess, topic: str, partition_count: int) -> list[TopicPartition]:
    """Create a topic and return its partitions on one broker."""
    connection = broker.connect()
    connection.call(CreateTopicRequest(topic, partition_count))
    connection.close()
    return [TopicPartition(topic, broker.id, index) for index in range(partition_count)]


def requests(
    partitions: Sequence[TopicPartition], messages: Sequence[bytes] | None = None
) -> list[bytes]:
    """Return a produce request for each partition, of 50 messages of 200 bytes unless others."""
    message_set = codec.encode(payloads()[:BATCH] if messages is None else messages)
    return [encode_request(ProduceRequest(one.topic, one.index, message_set)) for one in partitions]


def send_for(connections: Sequence[Connection], frames: Sequence[bytes], seconds: float) -> int:
    """Send requests and use connections in turn, for some seconds; return the number sent.

    The caller then waits until the brokers have them all: see `log_ends`.
    """
    writes = _joined(frames)
    connection_at = cycle(connections)
    end_s = time.perf_counter() + seconds
    sent = 0
    while time.perf_counter() < end_s:
        for data, count in writes:
            next(connection_at).send(data)
            sent += count
    return sent


def _joined(frames: Sequence[bytes]) -> list[tuple[bytes, int]]:
    """Join requests into writes of about 64 KB; return each with its number of requests."""
    per_write = max(1, _WRITE_BYTES // len(frames[0]))
    if len(frames) < per_write:
        frames = [*frames] * per_write
    parts = [frames[at : at + per_write] for at in range(0, len(frames), per_write)]
    return [(b"".join(part), len(part)) for part in parts]


def log_ends(connection: Connection, partitions: Sequence[TopicPartition]) -> list[int]:
    """Return the ends of logs, listed after all requests sent on this connection."""
    return _list_offsets(connection, partitions, OffsetKind.LOG_END)


def wait_until_readable(connection: Connection, partitions: Sequence[TopicPartition]) -> list[int]:
    """Wait until all messages sent on this connection are readable; return the ends."""
    ends = log_ends(connection, partitions)
    while _list_offsets(connection, partitions, OffsetKind.LATEST) != ends:
        time.sleep(0.01)
    return ends


def _list_offsets(
    connection: Connection, partitions: Sequence[TopicPartition], kind: OffsetKind
) -> list[int]:
    found: list[int] = []
    for at in range(0, len(partitions), _MAX_QUERIES):
        asked = tuple(OffsetQuery(one, kind, 0) for one in partitions[at : at + _MAX_QUERIES])
        body = connection.call(ListOffsetsRequest(asked))
        found += [found.offset for found in LISTED_OFFSETS.decode(body)]
    return found


def fetch_all(
    broker: BrokerProcess, partitions: Sequence[TopicPartition], ends: Sequence[int]
) -> int:
    """Fetch partitions from 0 to their ends without decoding; return the number of bytes."""
    total = sum(ends)
    fetcher = Fetcher(
        dict.fromkeys(partitions, 0),
        broker.connect(),
        fetch_bytes=FETCH_BYTES,
    )
    received = 0
    while received < total:
        received += sum(len(piece.data) for piece in fetcher.poll())
    fetcher.close()
    return received


@contextmanager
def threads(work: Sequence[Callable[[], object]]) -> Iterator[None]:
    """Run each function in a thread; they have returned at the end of the block.

    Raises:
        Exception: raised by one of them.
    """
    with ThreadPoolExecutor(max(1, len(work))) as pool:
        running = [pool.submit(one) for one in work]
        yield
        for one in running:
            one.result()
