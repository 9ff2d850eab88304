"""Requests of 0.7 on their way to the leader of a partition whose home this broker is.

Clients of 0.7 know a partition's home only. For their produces there is no response, as always; a
message set that no leader takes in time ends their connection, as one that the disk refuses does.
If the home has no replica any more, their reads are forwarded too. These do not wait for an
election, only until this broker has heard of the new leader: a client that gets no messages, or an
error, asks again.

Produces and reads have separate threads, as a produce may wait long for the next leader. The memory
of a read is limited; of many positions some get nothing, others each time.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from broker import errors
from broker.client.connection import Connection
from broker.clock import Clock
from broker.protocol import layouts, message, primitives, responses
from broker.protocol.client_requests import (
    Acks,
    ListSegmentsRequest,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
)
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.replica_table import ReplicaTable
from broker.server.requests.purgatory import Response
from broker.server.requests.topic_creations import TopicCreations
from broker.topic import TopicPartition

_T = TypeVar("_T")

_DEADLINE_S = 20.0
"""Longer than it takes to elect a leader after a crash."""
_NEW_LEADER_WAIT_S = 2.0
"""A broker learns of a new leader a little later than the new leader itself."""
_RETRY_S = 0.1
_TIMEOUT_S = 10.0
_WORKERS = 4
MAX_READ_BYTES = 512 << 10
"""Messages in one response to a read, and one message more if that is larger than its share."""
_LEAST_SHARE_BYTES = 4 << 10
_MAX_POSITIONS = 1000  # of one read


@dataclass(eq=False)
class Forwarder:
    """Sends message sets and reads to the leaders of partitions."""

    replicas: ReplicaTable
    brokers: LiveBrokers
    creations: TopicCreations
    clock: Clock
    max_message_bytes: int  # a damaged length may be larger

    def __post_init__(self) -> None:
        self._is_stopping = threading.Event()
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="forwarder")
        self._readers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="read-forwarder")
        # by thread, which alone uses it, and broker id
        self._connections: dict[tuple[int, int], Connection] = {}

    def stop(self) -> None:
        """Give up the requests under way, and end the threads."""
        self._is_stopping.set()
        for one in (self._workers, self._readers):
            one.shutdown(cancel_futures=True)
        for connection in self._connections.values():
            connection.close()

    def produce(
        self, sets: list[PartitionSet], refusal: errors.ServerError | None = None
    ) -> Future[Response | None]:
        """Have message sets, which own their bytes, appended by their leaders in order.

        Done, without a response, when all are appended; fails with a `BrokerError` if one is not,
        or with the `refusal` of a set behind them.
        """
        return self._workers.submit(self._produce, sets, refusal)

    def read(self, positions: Sequence[PartitionPosition]) -> Future[list[responses.ReadPart]]:
        """Read the messages that are readable now: a part for each position, in their order.

        A part's error is `LeaderNotAvailableError` if the leader is away. Done within the time that
        a broker has for a response.
        """
        return self._readers.submit(self._read, positions)

    def offsets(
        self, partition: TopicPartition, time_ms: int, max_offsets: int
    ) -> Future[Response | None]:
        """Have the leader handle an offsets request of 0.7."""
        return self._readers.submit(self._offsets, partition, time_ms, max_offsets)

    def _produce(self, sets: list[PartitionSet], refusal: errors.ServerError | None) -> None:
        for one in sets:
            self._append(one)
        if refusal is not None:
            raise refusal

    def _append(self, one: PartitionSet) -> None:
        """Have one set appended, with retries; after an error the outcome may be unknown."""
        self._retried(lambda: self._attempt(one), lambda error: error.is_retriable, _DEADLINE_S)

    def _retried(
        self,
        attempt: Callable[[], _T],
        may_help: Callable[[errors.BrokerError], bool],
        wait_s: float,
    ) -> _T:
        """Return the outcome of an attempt, retried for `wait_s` after errors that `may_help`."""
        give_up_s = self.clock.monotonic_s() + wait_s
        while True:
            try:
                return attempt()
            except errors.BrokerError as error:
                is_late = self.clock.monotonic_s() > give_up_s
                if is_late or not may_help(error) or self._is_stopping.wait(_RETRY_S):
                    raise

    def _attempt(self, one: PartitionSet) -> None:
        if self.creations.needs_cluster(one.partition.topic):
            self.creations.create(one.partition.topic)
        connection = self._connect(self._leader_of(one.partition))
        request = PublishRequest(Acks.WRITTEN, int(_TIMEOUT_S * 1000), (one,))
        (published,) = responses.decode_publish_response(_call(connection, request))
        if published.error != errors.NO_ERROR:
            connection.close()  # on this one the leader may refuse all later sets
            raise errors.error_for_code(published.error, published.text, published.base_offset)

    def _offsets(self, partition: TopicPartition, time_ms: int, max_offsets: int) -> Response:
        request = ListSegmentsRequest(partition, time_ms, max_offsets)
        body = self._retried(
            lambda: self._repeated(self._leader_of(partition), request),
            _has_new_leader,
            _NEW_LEADER_WAIT_S,
        )
        return Response(responses.encode_offsets_response(responses.SEGMENT_STARTS.decode(body)))

    def _read(self, positions: Sequence[PartitionPosition]) -> list[responses.ReadPart]:
        if len(positions) > 1:
            return self._read_once(positions)  # the client's next request reads the missing ones
        try:
            return self._retried(
                lambda: self._read_one(positions[0]), _has_new_leader, _NEW_LEADER_WAIT_S
            )
        except errors.NotLeaderError as error:
            return [responses.ReadPart(positions[0].partition, error.code)]

    def _read_one(self, position: PartitionPosition) -> list[responses.ReadPart]:
        (part,) = self._read_once([position])
        if part.error == errors.NotLeaderError.code:
            raise errors.NotLeaderError(f"another broker leads {part.partition} by now")
        return [part]

    def _read_once(self, positions: Sequence[PartitionPosition]) -> list[responses.ReadPart]:
        parts = [responses.ReadPart(one.partition, errors.NO_ERROR) for one in positions]
        # in random order, so that no position is always the last to get a share
        numbers = random.sample(range(len(positions)), min(len(positions), _MAX_POSITIONS))
        by_leader: dict[int, list[int]] = {}
        for number in numbers:
            partition = positions[number].partition
            try:
                by_leader.setdefault(self._leader_of(partition), []).append(number)
            except errors.LeaderNotAvailableError as error:
                parts[number] = responses.ReadPart(partition, error.code)
        share_bytes = max(MAX_READ_BYTES // max(1, len(numbers)), _LEAST_SHARE_BYTES)
        room_bytes = MAX_READ_BYTES
        for leader_id, led in by_leader.items():
            if room_bytes <= 0:
                break
            asked = [
                one._replace(max_bytes=min(one.max_bytes, share_bytes))
                for one in (positions[number] for number in led)
            ]
            for number, found in zip(led, self._read_at(leader_id, asked, room_bytes), strict=True):
                part = self._with_whole_message(leader_id, positions[number], found, room_bytes)
                room_bytes -= len(part.message_set)
                parts[number] = part
        return parts

    def _read_at(
        self, leader_id: int, positions: Sequence[PartitionPosition], room_bytes: int
    ) -> list[responses.ReadPart]:
        request = ReadRequest(0, 0, room_bytes, tuple(positions))
        try:
            return responses.decode_read_response(self._repeated(leader_id, request))
        except errors.BrokerError as error:
            code = (
                error.code
                if isinstance(error, errors.ServerError)
                else errors.LeaderNotAvailableError.code
            )
            return [responses.ReadPart(one.partition, code) for one in positions]

    def _with_whole_message(
        self, leader_id: int, position: PartitionPosition, part: responses.ReadPart, room_bytes: int
    ) -> responses.ReadPart:
        """Return a part with its first message whole, if the client asked for as much."""
        found = part.message_set
        if message.has_length(found) and message.entry_bytes(found) <= len(found):
            return part
        if len(found) in (0, position.max_bytes):
            return part
        # a part ending in its first message would tell the client that its fetch size is too small
        if room_bytes <= 0 or not message.has_length(found):
            return part._replace(message_set=b"")
        wanted_bytes = min(message.entry_bytes(found), position.max_bytes, self.max_message_bytes)
        asked = position._replace(max_bytes=wanted_bytes)
        (part,) = self._read_at(leader_id, [asked], wanted_bytes)
        return part

    def _leader_of(self, partition: TopicPartition) -> int:
        """Return the id of a partition's leader, or raise `LeaderNotAvailableError`."""
        leader_id = self.replicas.leader_id(partition)
        if leader_id < 0 and partition.topic not in self.replicas.topics:
            leader_id = partition.home
        if self.brokers.epoch_of(leader_id) is None:
            raise errors.LeaderNotAvailableError(f"no broker that is live leads {partition}")
        return leader_id

    def _repeated(self, leader_id: int, request: layouts.ExtensionRequest) -> primitives.Reader:
        """Return the body of a leader's response to a request that may be sent twice."""
        connection = self._connect(leader_id)
        return connection.repeat_if_lost(lambda: _call(connection, request))

    def _connect(self, broker_id: int) -> Connection:
        """Return this thread's connection to a broker, or raise `LeaderNotAvailableError`."""
        key = threading.get_ident(), broker_id
        former = self._connections.get(key)
        connection = self.brokers.connect(broker_id, former, timeout_s=_TIMEOUT_S)
        if connection is None:
            raise errors.LeaderNotAvailableError(f"broker {broker_id} is not live any more")
        self._connections[key] = connection
        return connection


def _has_new_leader(error: errors.BrokerError) -> bool:
    """Return whether there is a new leader, or the leader soon knows what is committed."""
    return isinstance(error, errors.NotLeaderError | errors.OffsetNotAvailableError)


def _call(connection: Connection, request: layouts.ExtensionRequest) -> primitives.Reader:
    """Return the body of the response; a connection that failed is closed."""
    try:
        return connection.call(request)
    except errors.BrokerError:
        connection.close()
        raise
