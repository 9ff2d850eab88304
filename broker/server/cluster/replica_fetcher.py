"""A thread that copies from one leader the partitions that it leads and this broker follows.

With `num.replica.fetchers` above 1 there are several for each leader, and each partition belongs to
one of them. A request names all of a thread's; the leader responds when there are messages or news.
The messages are appended, then flushed if only flushed messages count: the next request
acknowledges them.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from threading import Event
from typing import NamedTuple

from broker import errors
from broker.client.connection import Connection
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.log.log import Log, whole_entries
from broker.protocol.client_requests import DigestLogRequest
from broker.protocol.message import MIN_ENTRY_BYTES, entry_bytes
from broker.protocol.primitives import Buffer
from broker.protocol.replica_requests import (
    ReplicaFetchRequest,
    ReplicaPart,
    ReplicaPosition,
    decode_replica_fetch_response,
)
from broker.replication.follower import FetchResult, Follower
from broker.replication.positions import FetchAnswer, FetchPosition
from broker.server.cluster.disk_threads import DiskThreads
from broker.server.cluster.hosted_replica import HostedReplica
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.replica_table import ReplicaTable
from broker.server.cluster.throttle import Throttle
from broker.state_changes import ChangeKind, LoggedChange
from broker.threads import StoppableThread
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_RETRY_S = 0.2
_IDLE_S = 0.2
"""How often to check whether there is a partition to fetch."""
_MAX_RESPONSE_BYTES = 16 << 20


class _Asked(NamedTuple):
    """The position asked for in one partition, by which term of which replica."""

    hosted: HostedReplica
    role: Follower
    position: FetchPosition
    is_throttled: bool  # the replica is being added


class ReplicaFetcher(StoppableThread):
    """Copies from one leader all partitions, or a share of them: one of `num.replica.fetchers`."""

    def __init__(
        self,
        leader_id: int,
        share: int,
        *,
        table: ReplicaTable,
        brokers: LiveBrokers,
        disks: DiskThreads,
        throttle: Throttle,
        config: BrokerConfig,
        clock: Clock,
    ) -> None:
        super().__init__(f"replica-fetcher-{leader_id}-{share}")
        self._leader_id = leader_id
        self._table = table
        self._brokers = brokers
        self._disks = disks
        self._throttle = throttle  # of copies to replicas that are being added
        self._config = config
        self._clock = clock
        self._followers: list[HostedReplica] = []  # or former ones
        self._connection: Connection | None = None
        self._woken = Event()
        self._turn = 0
        self._retry_s: float | None = None
        """When the first of the partitions that had an error, or are throttled, is due again."""
        self._reserved: dict[TopicPartition, int] = {}  # by the throttle, for this request
        self._failure = ""
        # ranges received damaged: the leader is asked to look for damage on its disk
        self._damaged: list[DigestLogRequest] = []
        self._refusals: dict[TopicPartition, str] = {}
        """Why partitions cannot be copied now, as logged: a full disk is logged once."""
        self.request_count = 0  # fetches that got a response
        self.fetched_bytes = 0
        self.added_bytes = 0  # of them, for replicas that are being added

    def follow(self, followers: list[HostedReplica]) -> None:
        """Copy from now on these replicas, which follow the leader, and no others."""
        self._followers = followers
        self._woken.set()

    def stop(self) -> None:
        """Stop soon: a response under way is discarded or appended, as its replica decides."""
        super().stop()
        self._woken.set()
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    @property
    def is_failing(self) -> bool:
        """Return whether its last request got no response, or its thread has ended."""
        return bool(self._failure) or not self.is_alive()

    def run(self) -> None:
        """Fetch until the thread is to end."""
        while not self._stopping.is_set():
            try:
                self._fetch()
            except Exception:  # a bug must not end the copying of all partitions
                logger.exception("copying from broker %d failed", self._leader_id)
                self._stopping.wait(1.0)
        if self._connection is not None:
            self._connection.close()

    def _fetch(self) -> None:
        asked = self._collect()
        connection = self._brokers.connect(
            *(self._leader_id, self._connection),
            receive_bytes=self._config.replica_socket_receive_bytes,
        )
        if not asked or connection is None:
            self._woken.wait(self._wait_s(_IDLE_S))
            self._woken.clear()
            return
        self._connection = connection
        if self._stopping.is_set():  # set later, the connection is found and interrupted
            return
        try:
            parts = decode_replica_fetch_response(connection.call(self._request(asked)))
        except errors.BrokerError as error:
            connection.close()
            self._settle([])
            self._note_failure(str(error))
            self._stopping.wait(_RETRY_S)
            return
        self._settle(parts)
        self._note_failure("")
        self.request_count += 1
        self.fetched_bytes += sum(len(part.data) for part in parts)
        self._take(parts, asked)

    def _collect(self) -> dict[TopicPartition, _Asked]:
        """Return where to continue in each partition, and set when the next retry is due."""
        now_s = self._clock.monotonic_s()
        found = {}
        self._retry_s = None
        for hosted in self._followers:
            if hosted.log.is_faulty:
                continue  # else it could be in sync, and lead
            with hosted:
                role = hosted.replica.role
                if isinstance(role, Follower) and role.leader == self._leader_id:
                    position = role.next_fetch(now_s)
                    if position is not None:
                        is_throttled = role.info.is_throttled(self._config.broker_id)
                        found[hosted.log.partition] = _Asked(hosted, role, position, is_throttled)
                    elif (retry_s := role.retry_s) is not None:
                        self._retry_s = min(retry_s, self._retry_s or retry_s)
        return found

    def _wait_s(self, longest_s: float) -> float:
        """Return how long to wait: `longest_s`, or less until partitions are to be tried again."""
        if self._retry_s is None:
            return longest_s
        return min(longest_s, max(0.0, self._retry_s - self._clock.monotonic_s()))

    def _request(self, asked: dict[TopicPartition, _Asked]) -> ReplicaFetchRequest:
        self._turn = (self._turn + 1) % len(asked)
        # another partition comes first each time
        turned = [*asked.items()]
        turned = turned[self._turn :] + turned[: self._turn]
        positions = [
            ReplicaPosition(partition, *one.position, self._most_bytes(partition, one))
            for partition, one in turned
        ]
        return ReplicaFetchRequest(
            self._config.broker_id,
            self._table.broker_epoch,
            int(self._wait_s(self._config.replica_fetch_wait_ms / 1000) * 1000),
            self._config.replica_fetch_min_bytes,
            max(_MAX_RESPONSE_BYTES, max(one.max_bytes for one in positions)),
            tuple(positions),
        )

    def _most_bytes(self, partition: TopicPartition, asked: _Asked) -> int:
        """Return how many bytes of a partition to ask for.

        A partition that has to wait for the throttle is named nevertheless, as its leader must
        learn the replica's progress; the request then ends when the throttle grants more.
        """
        wanted_bytes = max(asked.hosted.wanted_bytes, self._config.replica_fetch_bytes)
        if not asked.is_throttled:
            return wanted_bytes
        throttle, now_s = self._throttle, self._clock.monotonic_s()
        granted = throttle.reserve(wanted_bytes, asked.hosted.wanted_bytes, now_s)
        self._reserved[partition] = granted
        if not granted:
            due_s = throttle.due_s(now_s)
            self._retry_s = due_s if self._retry_s is None else min(due_s, self._retry_s)
        return granted

    def _settle(self, parts: list[ReplicaPart]) -> None:
        """Tell the throttle how much was received of the partitions that it limits."""
        sizes = {part.partition: len(part.data) for part in parts}
        for partition, granted in self._reserved.items():
            received = sizes.get(partition, 0)
            self._throttle.settle(granted, received)
            self.added_bytes += received
        self._reserved.clear()

    def _note_failure(self, text: str) -> None:
        if text and not self._failure:
            values = {"leader": self._leader_id, "reason": text}
            logger.warning("cannot copy from broker %(leader)d: %(reason)s", values)
        elif not text and self._failure:
            logger.info("broker %(leader)d can be copied from again", {"leader": self._leader_id})
        self._failure = text

    def _take(self, parts: list[ReplicaPart], asked: dict[TopicPartition, _Asked]) -> None:
        pairs = [(part, one) for part in parts if (one := asked.get(part.partition)) is not None]
        # the start of an epoch is synced first
        slow = [pair for pair in pairs if _begins_epoch(*pair)]
        if len(slow) > 1:
            taken = self._disks.run(self._take_or_refuse, pairs)
        else:
            taken = [self._take_or_refuse(pair) for pair in pairs]
        self._disks.run(_flush, [log for log in taken if log is not None])
        while self._damaged and self._connection is not None:
            with suppress(errors.BrokerError):  # sent again if the data is received damaged again
                self._connection.call(self._damaged.pop())

    def _take_or_refuse(self, pair: tuple[ReplicaPart, _Asked]) -> Log | None:
        """Handle the part of one partition; return its log if that needs a flush."""
        part, one = pair
        try:
            has_unflushed = self._take_one(part, one)
        except errors.ServerError as error:
            if isinstance(error, errors.InvalidMessageError):
                size = len(part.data)
                damaged = DigestLogRequest(part.partition, one.position.offset, size)
                self._damaged.append(damaged)
            if self._refusals.get(part.partition) != str(error):
                self._refusals[part.partition] = str(error)
                logger.error("cannot copy %s: %s", part.partition, error)
            with one.hosted:
                one.role.refused(one.position, error, self._clock.monotonic_s())
            return None
        self._refusals.pop(part.partition, None)
        return one.hosted.log if has_unflushed else None

    def _take_one(self, part: ReplicaPart, asked: _Asked) -> bool:
        """Handle the part of one partition; return whether its log needs a flush."""
        hosted, role, position, _ = asked
        log = hosted.log
        entries = whole_entries(part.data, part.partition, position.offset)
        if part.data and not entries.data:
            hosted.wanted_bytes = _size_of_first(part.data)
            return False
        with hosted:
            if hosted.replica.role is not role:
                return False
            now_s = self._clock.monotonic_s()
            if part.error == errors.OffsetOutOfRangeError.code:
                result = role.out_of_range(position, part.log_start_offset, now_s)
                if result is FetchResult.RESTARTED:
                    self._note_truncated(hosted, position.offset)
                return False
            if part.error != errors.NO_ERROR:
                error = errors.error_for_code(
                    part.error, f"broker {self._leader_id} has refused it"
                )
                logger.info("%s cannot be copied now: %s", part.partition, type(error).__name__)
                role.refused(position, error, now_s)
                return False
            answer = FetchAnswer(part.high_watermark, part.log_start_offset, part.diverging)
            result = role.fetched(position, answer, part.epoch_starts, len(entries.data))
            if result in (FetchResult.TRUNCATED, FetchResult.RESTARTED):
                self._note_truncated(hosted, position.offset)
            if result is FetchResult.UP_TO_DATE:
                role.answered_s = now_s
            if result is not FetchResult.APPEND:
                return False
            log.append_copied(entries, position.offset)
            role.appended(answer)
            role.answered_s = now_s
            hosted.wanted_bytes = 0
        return self._table.counts_flushed(part.partition.topic)

    def _note_truncated(self, hosted: HostedReplica, from_offset: int) -> None:
        """Log that a replica's log, which ended at an offset, was truncated; it is locked."""
        role = hosted.replica.role
        self._table.note_change(
            LoggedChange(
                ChangeKind.TRUNCATED,
                controller_epoch=self._table.states.controller_epoch,
                partition=hosted.log.partition,
                leader_epoch=hosted.replica.leader_epoch,
                version=None if role is None else role.info.version,
                offset=hosted.log.log_end_offset,
                text=f"the log ended at {from_offset}",
            )
        )


def _flush(log: Log) -> None:
    """Flush a log; an error is logged, as the log refuses appends then."""
    try:
        log.flush()
    except errors.StorageError as error:
        logger.error("%s", error)


def _begins_epoch(part: ReplicaPart, asked: _Asked) -> bool:
    """Return whether a part has entries of a leader epoch that the log has none of yet."""
    starts = part.epoch_starts
    return bool(starts) and starts[-1].epoch > asked.position.last_epoch


def _size_of_first(data: Buffer) -> int:
    """Return the size of the entry at the start of data that holds only a part of it."""
    if len(data) < MIN_ENTRY_BYTES:
        return 2 * MIN_ENTRY_BYTES
    return entry_bytes(data)
