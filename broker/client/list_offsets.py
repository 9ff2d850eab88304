"""Lists offsets of partitions: log start, ends, segment starts, and message boundaries.

A broker that knows only 0.7's requests cannot find message boundaries;
`broker.consumer.boundaries` finds them by reading.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from broker import deadlines, errors
from broker.client import backoff
from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.client.damage import DamagedReads
from broker.closing import SelfClosing
from broker.protocol import responses
from broker.protocol.client_requests import (
    ClusterMetadataRequest,
    DigestLogRequest,
    ListOffsetsRequest,
    ListSegmentsRequest,
    OffsetKind,
    OffsetQuery,
)
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import Reader
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME, OffsetsRequest
from broker.topic import TopicPartition

_T = TypeVar("_T")

# longer than the session of a killed broker and the election that follows
DEFAULT_LEADER_WAIT_S = 15.0
_ALL_SEGMENTS = 1 << 20
# how long brokers may refuse a request in turn, as they do not lead the partition
_WITHOUT_LEADER_S = 2.0


class Watermarks(NamedTuple):
    """The three offsets that bound a partition's log."""

    log_start: int  # of the first message
    high_watermark: int  # after the last message that can be read
    log_end: int | None  # after the last message written; None for a 0.7 broker


@dataclass(eq=False, repr=False)
class OffsetLister(SelfClosing):
    """Lists offsets; keeps a connection to each broker until it is closed.

    A query moves to the new leader if the broker asked is lost or does not lead the partition.

    Args:
        cluster: knows the leaders.
        connect: makes connections.
        leader_wait_s: for a new leader of a partition with replicas, after the former one was lost
            or has restarted and was not told yet that it leads.
        latest_wait_s: for new leaders that do not know yet what is committed, in a row for all
            partitions together.
        damaged_reads: shared with other readers of the same partitions.
    """

    cluster: Cluster
    connect: Connect
    _: KW_ONLY
    leader_wait_s: float = 0.0
    latest_wait_s: float = DEFAULT_LEADER_WAIT_S
    damaged_reads: InitVar[DamagedReads | None] = None

    def __post_init__(self, damaged_reads: DamagedReads | None) -> None:
        self._give_up_s: float | None = None  # end of the wait for new leaders; None without one
        self._damaged_reads = damaged_reads or DamagedReads(DEFAULT_LEADER_WAIT_S)
        self._connections: dict[int, Connection] = {}

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def earliest(self, partition: TopicPartition) -> int:
        """Return the log start offset."""
        return self._end(partition, OffsetKind.EARLIEST, EARLIEST_TIME)

    def latest(self, partition: TopicPartition) -> int:
        """Return the offset after the last message that can be read."""
        return self._end(partition, OffsetKind.LATEST, LATEST_TIME)

    def log_end(self, partition: TopicPartition) -> int:
        """Return the offset after the last message written; `latest` on a 0.7 broker."""
        if not self.finds_boundaries(partition):
            return self.latest(partition)
        return self.query(partition, OffsetKind.LOG_END).offset

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        """Return the log start, high watermark and log end, all of the same moment."""
        # an error of a 0.7 broker is a lost connection: it closes it
        if not self.finds_boundaries(partition):
            return Watermarks(self.earliest(partition), self.latest(partition), None)
        found = self.query(partition, OffsetKind.LOG_END)
        return Watermarks(found.log_start_offset, found.high_watermark, found.offset)

    def readable(self, led: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Return the ends of what can be read of partitions with one leader, by one request.

        A partition is left out that the broker cannot tell so: `earliest` and `latest` may.
        """
        queries = tuple(OffsetQuery(one, OffsetKind.LATEST, 0) for one in led)

        def ask(connection: Connection) -> Iterable[responses.ListedOffset]:
            if not connection.understands(ListOffsetsRequest):
                return ()
            return responses.LISTED_OFFSETS.decode(_call(connection, ListOffsetsRequest(queries)))

        # a broker that has no log yet of a partition does not know its topic
        known = (errors.NO_ERROR, errors.UnknownTopicError.code)
        return {
            one.partition: (one.log_start_offset, max(one.log_start_offset, one.high_watermark))
            for one in self._at_leader(led[0], ask)
            if one.error in known
        }

    def finds_boundaries(self, partition: TopicPartition) -> bool:
        """Return whether the broker can find message boundaries; a 0.7 broker cannot."""
        return self._at_leader(partition, Connection.hello) is not None

    def segment_starts(self, partition: TopicPartition) -> list[int]:
        """Return the start offsets of the segments, oldest first, and the end of the log."""
        return self._offsets(partition, LATEST_TIME, _ALL_SEGMENTS)[::-1]

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        """Return the start of the last segment written before `time_ms` (milliseconds since 1970).

        If `rounded_up`, that of the segment after it. None if there is no such segment. Of a topic
        of format `kafka` it is the first record of this time or later, else the end.
        """
        if partition.has_records:
            offset = self.query(partition, OffsetKind.BEFORE_TIME, time_ms).offset
            return offset if offset >= 0 else self.latest(partition)
        found = self._offsets(partition, time_ms, 1)
        if not rounded_up:
            return found[0] if found else None
        starts = self.segment_starts(partition)
        index = bisect_right(starts, found[0]) if found else 0
        return starts[index] if index < len(starts) else None

    def next_good_message(self, partition: TopicPartition, offset: int) -> int | None:
        """Return the offset of the next good message behind a corrupt one; None on a 0.7 broker.

        Reports the damage to the broker. If another replica now serves the message, or the broker
        has mended it, the result is its own offset: it is to be read again.
        """
        if not self.finds_boundaries(partition):
            return None
        if self._is_mended(partition, offset):
            return offset
        return self.query(partition, OffsetKind.BOUNDARY_AFTER, offset + 1).offset

    def creation_ids(self, partitions: Iterable[TopicPartition]) -> dict[tuple[str, int], str]:
        """Return the creation ids of the topics of partitions, by topic and home broker.

        They come from the broker that lists the partition's offsets, so that both belong together;
        Kafka 0.7 brokers have none.
        """
        by_leader: dict[int, list[TopicPartition]] = {}
        for one in partitions:
            by_leader.setdefault(self.cluster.leader_id(one), []).append(one)
        found: dict[tuple[str, int], str] = {}
        for led in by_leader.values():
            request = ClusterMetadataRequest(tuple(sorted({one.topic for one in led})))
            told = self._at_leader(led[0], partial(_creation_ids, request=request))
            keys = {(one.topic, one.home) for one in led}
            found.update((key, told[key]) for key in keys & told.keys())
        return found

    def _is_mended(self, partition: TopicPartition, offset: int) -> bool:
        def ask(connection: Connection) -> responses.DamageState:
            if not connection.understands(DigestLogRequest):
                return responses.DamageState.LASTING
            request = DigestLogRequest(partition, offset, 1)
            return responses.LOG_DIGEST.decode(_call(connection, request)).damage.state

        try:
            state = self._at_leader(partition, ask)
        except errors.BrokerError as error:
            if not error.is_retriable:
                return False
            state = responses.DamageState.MENDABLE  # the failure may be due to a change of leader
        return self._damaged_reads.is_read_again(partition, offset, state)

    def query(
        self, partition: TopicPartition, kind: OffsetKind, argument: int = 0
    ) -> responses.ListedOffset:
        """Send a query for one offset to a broker with the extensions; return its response."""
        request = ListOffsetsRequest((OffsetQuery(partition, kind, argument),))

        def found_in(body: Reader) -> responses.ListedOffset:
            (found,) = responses.LISTED_OFFSETS.decode(body)
            if found.error != errors.NO_ERROR:
                text = _refusal(found, kind, argument)
                raise errors.error_for_code(found.error, text, found.offset)
            return found

        return self._call_leader(partition, request, found_in)

    def _call_leader(
        self, partition: TopicPartition, request: ExtensionRequest, decode: Callable[[Reader], _T]
    ) -> _T:
        """Send a request, twice if need be, to the leader; to its successor if it does not lead."""
        # `decode` raises the error in a response; a new leader that does not know yet what is
        # committed is asked again until it does
        started_s = time.monotonic()
        waits_s = backoff.waits_s()
        while True:
            try:
                found = decode(self._at_leader(partition, partial(_call, request=request)))
            except errors.NotLeaderError as error:
                if time.monotonic() - started_s >= _WITHOUT_LEADER_S:
                    raise
                self.cluster.note_leader(partition, error.leader)
                deadlines.sleep(next(waits_s))
                self.cluster.leader(partition)  # requests it, if the broker named none
            except errors.LeaderNotAvailableError:
                if time.monotonic() - started_s >= self.leader_wait_s:
                    raise
                deadlines.sleep(next(waits_s))
                self.cluster.find_leaders([partition.topic])
            except errors.OffsetNotAvailableError:
                now_s = time.monotonic()
                self._give_up_s = self._give_up_s or now_s + self.latest_wait_s
                if now_s >= self._give_up_s:
                    raise
                deadlines.sleep(next(waits_s))
            else:
                if self._give_up_s is not None and time.monotonic() < self._give_up_s:
                    self._give_up_s = None
                return found

    def _end(self, partition: TopicPartition, kind: OffsetKind, time_ms: int) -> int:
        """Return one end of a log; 0 for a topic that does not exist yet, as 0.7 does."""
        if not self.finds_boundaries(partition):
            return self._offsets(partition, time_ms, 1)[0]
        try:
            return self.query(partition, kind).offset
        except errors.UnknownTopicError:
            return 0

    def _offsets(self, partition: TopicPartition, time_ms: int, max_offsets: int) -> list[int]:
        """List segment starts; 0.7's request knows partitions of the broker asked only."""
        # a 0.7 broker that refuses it closes the connection without a response
        if self.finds_boundaries(partition):
            segments = ListSegmentsRequest(partition, time_ms, max_offsets)
            return self._call_leader(partition, segments, responses.SEGMENT_STARTS.decode)
        connection = self._connection(partition)
        request = OffsetsRequest(partition.topic, partition.index, time_ms, max_offsets)
        response = connection.repeat_if_lost(lambda: connection.ask(request))
        return responses.decode_offsets_response(response)

    def _at_leader(self, partition: TopicPartition, action: Callable[[Connection], _T]) -> _T:
        """Run an action with a connection to the leader; if that is lost, with one to the next."""
        started_s = time.monotonic()
        waits_s = backoff.waits_s()
        while True:
            former = self.cluster.leader_id(partition)
            try:
                return action(self._connection(partition))
            except (errors.BrokerUnreachableError, errors.RequestTimeoutError):
                found = self.cluster.find_leaders([partition.topic])
                if found.get(partition, former) == former:
                    is_late = time.monotonic() - started_s >= self.leader_wait_s
                    if is_late or not self.cluster.has_replicas(partition):
                        raise
            deadlines.sleep(next(waits_s))

    def _connection(self, partition: TopicPartition) -> Connection:
        connection = self._connections.get(self.cluster.leader_id(partition))
        if connection is None:
            address = self.cluster.leader(partition)
            connection = self._connections.get(address.id) or self.connect(address)
            self._connections[address.id] = connection
        return connection


def _call(connection: Connection, request: ExtensionRequest) -> Reader:
    return connection.repeat_if_lost(lambda: connection.call(request))


def _creation_ids(
    connection: Connection, request: ClusterMetadataRequest
) -> dict[tuple[str, int], str]:
    if not connection.understands(ClusterMetadataRequest):
        return {}
    response = responses.ClusterMetadataResponse.decode(_call(connection, request))
    return {
        (topic.topic, home): creation_id
        for topic in response.topics
        for home, creation_id in topic.creation_ids.items()
    }


def _refusal(found: responses.ListedOffset, kind: OffsetKind, argument: int) -> str:
    if found.error == errors.StorageError.code:
        return (
            f"{found.partition}: its broker cannot read its log; "
            "`pylogctl broker status` and the broker's log say why"
        )
    if found.error == errors.LeaderNotAvailableError.code:
        return f"{found.partition} has no leader, or one that has just started"
    if found.error == errors.OffsetNotAvailableError.code:
        return (
            f"{found.partition}: its new leader does not know yet what is committed: not all "
            "replicas that are in sync have fetched from it, or too few are in sync"
        )
    return f"{found.partition}: cannot find {kind.name.lower().replace('_', ' ')} {argument}"
