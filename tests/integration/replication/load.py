"""Producers and readers that know nothing but the requests, and write down what they saw.

A producer has one message in flight and sends no message twice: a payload is in the log once or
not at all, so each oddity counts. Both find leaders in ZooKeeper, not by the clients under test.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise

from broker.client.connection import Connection
from broker.errors import (
    NO_ERROR,
    BrokerError,
    BrokerUnreachableError,
    CoordinationError,
    NotEnoughReplicasError,
    OffsetOutOfRangeError,
    error_for_code,
)
from broker.protocol.client_requests import (
    Acks,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.message_set import build_set, iter_messages
from broker.protocol.responses import decode_publish_response, decode_read_response
from broker.topic import TopicPartition
from tests.integration.replication.history import Outcome, Seen, Sent
from tests.integration.replication.replicated_cluster import ReplicatedCluster

_PUBLISH_TIMEOUT_MS = 5000
_PAUSE_S = 0.05
_BETWEEN_MESSAGES_S = 0.01  # about as long as one takes, so that what is on its way meets failures


class Connections:
    """One connection to each leader, made anew after a failure."""

    def __init__(self, cluster: ReplicatedCluster) -> None:
        self._cluster = cluster
        self._leaders: dict[TopicPartition, int] = {}
        self._connections: dict[int, Connection] = {}

    def to_leader(self, partition: TopicPartition) -> Connection:
        """Return a connection to the leader.

        Raises:
            BrokerUnreachableError: there is none.
        """
        leader = self._leaders.get(partition, -1)
        if leader < 0:
            try:
                leader = self._cluster.leader(partition)
            except CoordinationError as error:
                raise BrokerUnreachableError(str(error)) from error
            if leader < 0:
                raise BrokerUnreachableError(f"{partition} has no leader")
            self._leaders[partition] = leader
        if leader not in self._connections:
            # a leader that is frozen is left soon
            self._connections[leader] = self._cluster.connect(leader, timeout_s=5)
        connection = self._connections[leader]
        connection.connect()
        return connection

    def forget(self, partition: TopicPartition) -> None:
        """Look for the leader again, on a new connection."""
        leader = self._leaders.pop(partition, -1)
        if connection := self._connections.pop(leader, None):
            connection.close()

    def close(self) -> None:
        """Close all."""
        for connection in self._connections.values():
            connection.close()


class LoadThread:
    """Something that goes on until it is stopped.

    Args:
        name: of the thread.
        step: done again and again.
    """

    def __init__(self, name: str, step: Callable[[], None]) -> None:
        self._step = step
        self._stopped = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                self._step()
        except BaseException as error:
            self.failure = error
            raise

    def stop(self) -> None:
        """End it, and fail if it had failed."""
        self._stopped.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        assert self.failure is None, self.failure


class LoggedProducer:
    """Publishes one message after another, to partitions in turn.

    Args:
        cluster: where to.
        partitions: in turn.
        name: unique among all producers.
        acks: of each publish.
        reads_back: whether each acknowledged message is read at once from the leader.
        padding_bytes: at the end of each payload.

    Attributes:
        sent: what was sent, and how it ended.
        acknowledged_count: how many messages were acknowledged.
        errors: by name of their class: refusals for too few in-sync replicas, and all that tell a
            client not to send again.
        misread: where something else than the acknowledged message was read back (I9).
    """

    def __init__(
        self,
        cluster: ReplicatedCluster,
        partitions: Iterable[TopicPartition],
        name: str,
        *,
        acks: Acks = Acks.COMMITTED,
        reads_back: bool = False,
        padding_bytes: int = 0,
    ) -> None:
        self._padding = "x" * padding_bytes
        self.sent: list[Sent] = []
        self.acknowledged_count = 0
        self.errors: Counter[str] = Counter()
        self.misread: list[str] = []
        self.read_back_count = 0
        self._reads_back = reads_back
        self._partitions = list(partitions)
        self._name = name
        self._acks = acks
        self._connections = Connections(cluster)
        self._thread = LoadThread(name, self._send)

    def stop(self) -> None:
        """End it."""
        self._thread.stop()
        self._connections.close()

    def longest_gap_s(self) -> float:
        """Return the longest time between two acknowledgements."""
        times = [one.completed_s for one in self.sent if one.outcome is Outcome.ACKNOWLEDGED]
        return max((b - a for a, b in pairwise(times)), default=0.0)

    def _send(self) -> None:
        number = len(self.sent)
        partition = self._partitions[number % len(self._partitions)]
        payload = f"{partition.name}:{self._name}:{number}{self._padding}"
        invoked_s = time.monotonic()
        offset = -1
        try:
            offset = self._publish(partition, payload)
            outcome = Outcome.ACKNOWLEDGED
        except NotEnoughReplicasError as error:
            self.errors[type(error).__name__] += 1
            outcome = Outcome.REFUSED
            self._connections.forget(partition)
            time.sleep(_PAUSE_S)
        except BrokerError as error:
            if not error.is_retriable:
                self.errors[type(error).__name__] += 1
            was_sent = not isinstance(error, _NotSentError)
            outcome = Outcome.UNKNOWN if was_sent else Outcome.REFUSED
            self._connections.forget(partition)
            time.sleep(_PAUSE_S)
        completed_s = time.monotonic()
        self.sent.append(
            Sent(partition.name, payload, self._name, invoked_s, completed_s, outcome, offset)
        )
        if outcome is Outcome.ACKNOWLEDGED:
            self.acknowledged_count += 1
            if self._reads_back:
                self._read_back(partition, payload, offset)
        time.sleep(_BETWEEN_MESSAGES_S)

    def _read_back(self, partition: TopicPartition, payload: str, offset: int) -> None:
        """Read an acknowledged message; a new leader may not know yet that it is committed."""
        request = ReadRequest(0, 1, 1 << 20, (PartitionPosition(partition, offset, 1 << 20),))
        try:
            connection = self._connections.to_leader(partition)
            (part,) = decode_read_response(connection.call(request))
        except BrokerError:
            self._connections.forget(partition)
            return
        if part.error == OffsetOutOfRangeError.code:
            self.misread.append(f"I9: {partition} has no {offset}, where {payload} is")
        if part.error != NO_ERROR or not part.message_set:
            return
        first = next(iter_messages(part.message_set, offset))
        self.read_back_count += 1
        if bytes(first.payload).decode() != payload:
            self.misread.append(f"I9: {partition} has {first} at {offset}, where {payload} is")

    def _publish(self, partition: TopicPartition, payload: str) -> int:
        try:
            connection = self._connections.to_leader(partition)
        except BrokerError as error:
            raise _NotSentError(str(error)) from error
        message_set = build_set([payload.encode()])
        request = PublishRequest(
            self._acks, _PUBLISH_TIMEOUT_MS, (PartitionSet(partition, message_set),)
        )
        (published,) = decode_publish_response(connection.call(request))
        if published.error != NO_ERROR:
            raise error_for_code(published.error, published.text)
        return published.base_offset


class _NotSentError(BrokerError):
    """The message has not left this process."""

    is_retriable = True


class LoggedReader:
    """Reads partitions from their start, and goes on with the leader.

    Args:
        cluster: where from.
        partitions: which ones.
        name: unique among all readers.
    """

    def __init__(
        self, cluster: ReplicatedCluster, partitions: Iterable[TopicPartition], name: str
    ) -> None:
        self.seen: list[Seen] = []
        self.lowered: list[str] = []
        """High watermarks that were lower than before at one broker (I10)."""
        self._offsets = dict.fromkeys(partitions, 0)
        self._latest: dict[TopicPartition, int] = {}
        self._name = name
        self._connections = Connections(cluster)
        self._thread = LoadThread(name, self._read_all)

    def stop(self) -> None:
        """End it."""
        self._thread.stop()
        self._connections.close()

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """Return where it is in each partition."""
        return dict(self._offsets)

    def _read_all(self) -> None:
        for partition in self._offsets:
            try:
                self._read(partition)
            except OffsetOutOfRangeError:
                raise  # the log has lost what was read
            except BrokerError:
                self._connections.forget(partition)
                self._latest.pop(partition, None)
                time.sleep(_PAUSE_S)
        time.sleep(_PAUSE_S)

    def _read(self, partition: TopicPartition) -> None:
        offset = self._offsets[partition]
        request = ReadRequest(0, 1, 1 << 20, (PartitionPosition(partition, offset, 1 << 20),))
        connection = self._connections.to_leader(partition)
        (part,) = decode_read_response(connection.call(request))
        if part.error != NO_ERROR:
            raise error_for_code(part.error, f"{partition} at {offset}, read by {self._name}")
        before = self._latest.get(partition, 0)
        if part.high_watermark < before:
            self.lowered.append(f"I10: {partition} went from {before} to {part.high_watermark}")
        self._latest[partition] = part.high_watermark
        for message in iter_messages(part.message_set, offset):
            self.seen.append(
                Seen(partition.name, message.offset, bytes(message.payload).decode(), self._name)
            )
            self._offsets[partition] = message.next_offset
