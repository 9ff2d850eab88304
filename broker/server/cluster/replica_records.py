"""The records beside the logs of replicas, and replicas that the registry does not know."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from threading import Lock, Timer

from broker import errors
from broker.cluster_state import ReplicatedPartition
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.log.replica_files import read_record, write_record
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.server.cluster.replica_table import ReplicaTable
from broker.threads import logged
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_NAMED_MAX = 5
_DELAY_S = 3.0
"""Records are written this long after a change, to include the changes and settings after it.

A failover changes all of them at once: it is over by then.
"""


class ReplicaRecords:
    """The records of one broker."""

    def __init__(self, logs: LogManager, table: ReplicaTable) -> None:
        self._logs = logs
        self._table = table
        self.settings_of: Callable[[str], Mapping[str, str]] = lambda _topic: {}
        """Returns the settings of a topic that differ from the broker's."""
        self._reported: set[str] = set()
        self._lock = Lock()  # guards the fields below
        self._waiting: dict[TopicPartition, ReplicatedPartition] = {}
        self._timer: Timer | None = None
        self._is_stopped = False

    def note(self, partitions: Iterable[ReplicatedPartition]) -> None:
        """Have the records of partitions that have a log here written soon."""
        with self._lock:
            self._waiting.update((one.partition, one) for one in partitions)
            if self._waiting and self._timer is None and not self._is_stopped:
                self._timer = Timer(_DELAY_S, logged(self._write))
                self._timer.name, self._timer.daemon = "replica-records", True
                self._timer.start()

    def stop(self) -> None:
        """Write the records still due, and end all threads of this object."""
        with self._lock:
            self._is_stopped = True
            timer = self._timer
        if timer is not None:
            timer.cancel()
            timer.join()
        self._write()

    def _write(self) -> None:
        with self._lock:
            waiting, self._waiting, self._timer = self._waiting, {}, None
        for info in waiting.values():
            log = self._logs.table.find(info.partition)
            if (
                log is None
                or self._logs.table.replica_creation_id(info.partition) != info.creation_id
            ):
                continue
            try:
                write_record(log.directory, self._record(info))
            except FileNotFoundError:
                logger.debug("%s was moved or deleted", log.directory)
            except OSError as error:
                logger.warning("cannot write the record of %s: %s", info.partition, error)

    def _record(self, info: ReplicatedPartition) -> ReplicaRecord:
        settings = self.settings_of(info.partition.topic)
        return ReplicaRecord(
            *(info.partition, info.creation_id, info.replicas, info.state, info.version),
            settings,
            info.kept_id,
        )

    def find_unknown(self) -> list[UnknownReplica]:
        """Return the replicas that have logs here and that the controller does not know."""
        if not self._table.has_full_orders and self._logs.table.has_replicas:
            raise errors.LeaderNotAvailableError(
                f"the controller has not yet told broker {self._logs.table.home} of all "
                "partitions; try again"
            )
        known, unnamed = self._table.states.known, self._table.states.unnamed
        found = []
        for log in self._logs.table.all():
            creation_id = self._logs.table.replica_creation_id(log.partition)
            if creation_id is not None and log.partition not in known:
                # the last state told to this run, if the registry has lost the partition since
                info = unnamed.get(log.partition)
                if info is not None and info.creation_id != creation_id:
                    info = None
                found.append(_described(log, creation_id, info))
        return found

    def report(self, unknown: Iterable[UnknownReplica]) -> None:
        """Log the topics of replicas that the registry does not know, each topic once."""
        topics: dict[str, list[str]] = {}
        for one in unknown:
            topics.setdefault(one.record.partition.topic, []).append(one.record.partition.name)
        for topic in topics.keys() - self._reported:
            logger.error(
                "ZooKeeper does not have topic '%(topic)s' (or not all of it), of which "
                "%(count)d logs are here, of partitions %(partitions)s: they are kept, and nobody "
                "can use them. If ZooKeeper has lost its data: pylogctl cluster recover",
                {
                    "topic": topic,
                    "count": len(topics[topic]),
                    "partitions": ", ".join(sorted(topics[topic])[:_NAMED_MAX]),
                },
            )
        self._reported = set(topics)


def _described(log: Log, creation_id: str, info: ReplicatedPartition | None) -> UnknownReplica:
    record = read_record(log.directory)
    if record is None or (record.partition, record.creation_id) != (log.partition, creation_id):
        record = ReplicaRecord.of_bare_log(log.partition, creation_id)
    if info is not None:  # later than the record on the disk
        record = record._replace(
            replicas=info.replicas, state=info.state, version=info.version, kept_id=info.kept_id
        )
    return UnknownReplica(
        record, info is not None, log.epochs.last_epoch, log.log_start_offset, log.log_end_offset
    )
