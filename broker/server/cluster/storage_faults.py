"""Replicas whose disk fails reads or writes, or damages messages: another leads, they are mended.

While a log is faulty its replica does not fetch: so it cannot be in sync again, and lead, before
the disk works again. A segment that is damaged, or cannot be read, is copied from the leader; its
file is replaced once the copy is complete and valid.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from broker import errors
from broker.clock import Clock
from broker.cluster_state import IsrChange
from broker.log.damage import find_damage, mend, uncommitted_loss
from broker.log.log import Log
from broker.log.log_segments import segment_of
from broker.log.segment import Segment
from broker.protocol import responses
from broker.protocol.client_requests import DigestLogRequest, PartitionPosition, ReadRequest
from broker.protocol.primitives import Buffer
from broker.replication.follower import Follower
from broker.replication.leader import Leader
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.replica_table import HostedReplica, ReplicaTable
from broker.threads import logged
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_THREADS = 4
_MEND_RETRY_S = 5.0


def unreadable(
    replicas: ReplicaTable, partition: TopicPartition, error: errors.ServerError
) -> errors.ServerError:
    """Return the error for a failed read of a disk; `NotLeaderError` if another can lead."""
    hosted = replicas.find(partition)
    if hosted is None or _must_lead(hosted):
        return error
    replicas.isr_due.set()
    return errors.NotLeaderError(f"another broker is to lead {partition}: {error}")


def damage_in(replicas: ReplicaTable, log: Log, offset: int, length: int) -> responses.LogDamage:
    """Look for damaged messages in a range of a log, and note the first one."""
    damaged = find_damage(log, offset, length)
    if damaged is None:
        return responses.LogDamage()
    state = responses.DamageState.LASTING
    hosted = replicas.find(log.partition)
    if hosted is not None:
        log.segments.note_damage(damaged)
        if not (_must_lead(hosted) or segment_of(log.segments.all, damaged).is_given_up):
            state = responses.DamageState.MENDABLE
    replicas.isr_due.set()
    return responses.LogDamage(state, damaged)


def _must_lead(hosted: HostedReplica) -> bool:
    """Return whether a replica leads, and no other one is in sync that could."""
    with hosted:
        role = hosted.replica.role
        return isinstance(role, Leader) and role.resignation() is None


class StorageFaults:
    """Resigns for replicas with faulty logs, and mends the logs."""

    def __init__(self, me: int, brokers: LiveBrokers, clock: Clock) -> None:
        self._me = me
        # as a disk that fails can take minutes, and its logs are many
        self._workers = ThreadPoolExecutor(_THREADS, thread_name_prefix="replica-mender")
        self._brokers = brokers
        self._clock = clock
        self._is_stopping = False
        self._reported: dict[TopicPartition, tuple[int, bool]] = {}
        self._retried: set[TopicPartition] = set()
        self._mend_due_s: dict[TopicPartition, float] = {}

    def stop(self) -> None:
        """End the threads; a copy under way is given up."""
        self._is_stopping = True
        self._workers.shutdown(cancel_futures=True)

    def resignation(self, hosted: HostedReplica, role: Leader) -> IsrChange | None:
        """Return the proposal that makes another in-sync replica lead; this one is locked."""
        log = hosted.log
        proposal = role.resignation()
        partition = log.partition
        key = role.info.state.leader_epoch, proposal is not None
        if self._reported.get(partition) != key and (failures := log.failures()):
            self._reported[partition] = key
            end = (
                "another in-sync replica is to lead"
                if proposal is not None
                else "it is led here nevertheless, as no other replica is in sync"
            )
            logger.error("%s has a faulty log: %s; %s", partition, failures[0], end)
        return proposal

    def retry(self, replicas: Iterable[HostedReplica]) -> None:
        """Begin to retry the operations that disks have refused, and to mend logs."""
        for hosted in replicas:
            partition = hosted.log.partition
            if hosted.log.is_faulty and partition not in self._retried:
                self._retried.add(partition)
                self._workers.submit(logged(partial(self._retry, hosted)))

    def _retry(self, hosted: HostedReplica) -> None:
        log, now_s = hosted.log, self._clock.monotonic_s()
        partition = log.partition
        try:
            log.retry_refused()
            role = hosted.replica.role
            is_due = self._mend_due_s.get(partition, now_s) <= now_s
            if isinstance(role, Follower) and role.leader >= 0 and is_due:
                self._mend_due_s[partition] = now_s + _MEND_RETRY_S
                for segment in log.segments.bad():
                    self._mend(hosted, role, segment)
        except errors.BrokerError as error:
            logger.info("%s cannot be mended yet: %s", partition, error)
        finally:
            self._retried.discard(partition)

    def _mend(self, hosted: HostedReplica, role: Follower, segment: Segment) -> None:
        """Copy a segment from the leader; after a `BrokerError` it is to be tried again."""
        log = hosted.log
        if (offset := uncommitted_loss(log, segment)) is not None:
            with hosted:
                # in sync it would lack messages that its leader counts as replicated here
                is_out = hosted.replica.role is role and self._me not in role.info.state.isr
                if is_out:
                    log.truncate(offset)
            return
        connection = self._brokers.connect(role.leader)
        if connection is None:
            return

        def read(offset: int, max_bytes: int) -> Buffer:
            if self._is_stopping:
                raise errors.ShuttingDownError("the broker is shutting down")
            position = PartitionPosition(log.partition, offset, max_bytes)
            request = ReadRequest(0, 1, max_bytes, (position,))
            (part,) = responses.decode_read_response(connection.call(request))
            text = f"broker {role.leader} does not give {log.partition} at offset {offset}"
            if part.error != errors.NO_ERROR:
                raise errors.error_for_code(part.error, text, part.high_watermark)
            if not part.message_set:
                raise errors.OffsetNotAvailableError(text)
            return part.message_set

        try:
            damaged = mend(log, segment, read)
            if damaged is not None:
                request = DigestLogRequest(log.partition, damaged, 1)
                found = responses.LOG_DIGEST.decode(connection.call(request))
                if found.damage.state is responses.DamageState.LASTING:
                    self._give_up(log, segment, f"broker {role.leader} has it damaged, too")
        except errors.OffsetOutOfRangeError as error:
            self._give_up(log, segment, str(error))
        finally:
            connection.close()

    def _give_up(self, log: Log, segment: Segment, reason: str) -> None:
        segment.is_given_up = True
        logger.error("%s: %s stays as it is: %s", log.partition, segment.path, reason)
