"""What makes a log a replica, as its broker keeps it beside the log: it outlives ZooKeeper's data.

A record is a document in JSON; a reader takes fields that it does not know as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from broker.cluster_state import NO_LEADER, PartitionState
from broker.topic import TopicPartition

_VERSION = 1


class ReplicaRecord(NamedTuple):
    """What the registry said of a partition when a broker heard of it last.

    Attributes:
        partition: which one.
        creation_id: of its topic.
        replicas: broker ids, the preferred leader first; none if only the log and its creation id
            are known.
        state: who led it.
        version: of the node in ZooKeeper that held the state.
        settings: of the topic, those that differ from the brokers'.
    """

    partition: TopicPartition
    creation_id: str
    replicas: tuple[int, ...]
    state: PartitionState
    version: int
    settings: Mapping[str, str]

    def encode(self) -> bytes:
        """Return the document."""
        import json  # late: clients know of the requests that carry records, and make none

        leader, leader_epoch, isr, controller_epoch = self.state
        return json.dumps(
            {
                "version": _VERSION,
                "topic": self.partition.topic,
                "partition": self.partition.name,
                "creation_id": self.creation_id,
                "replicas": self.replicas,
                "leader": leader,
                "leader_epoch": leader_epoch,
                "isr": isr,
                "controller_epoch": controller_epoch,
                "state_version": self.version,
                "settings": dict(self.settings),
            },
            separators=(",", ":"),
        ).encode()

    @classmethod
    def decode(cls, document: bytes) -> ReplicaRecord:
        """Parse a document.

        Raises:
            ValueError: it is none.
        """
        import json  # late: as above

        try:
            fields = json.loads(document)
            home, _, index = fields["partition"].partition("-")
            return cls(
                TopicPartition(str(fields["topic"]), int(home), int(index)),
                str(fields["creation_id"]),
                tuple(map(int, fields["replicas"])),
                PartitionState(
                    int(fields["leader"]),
                    int(fields["leader_epoch"]),
                    tuple(map(int, fields["isr"])),
                    int(fields["controller_epoch"]),
                ),
                int(fields["state_version"]),
                {str(name): str(value) for name, value in fields["settings"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no record of a replica: {document[:80]!r}") from error

    @classmethod
    def of_bare_log(cls, partition: TopicPartition, creation_id: str) -> ReplicaRecord:
        """Return the record of a log of which only the creation id is known."""
        return cls(partition, creation_id, (), PartitionState(NO_LEADER, 0, (), 0), 0, {})

    @property
    def age(self) -> tuple[bool, int, int]:
        """Return what orders the records of one partition by their age, the newest last."""
        return bool(self.replicas), self.state.leader_epoch, self.version


class UnknownReplica(NamedTuple):
    """A replica of which a broker has the log, and which the registry does not know.

    Attributes:
        record: what the broker knows of it.
        is_live: whether a controller told this run of the broker of it, before the registry lost
            it; if not, the broker was started since, and may have missed a deletion.
        last_epoch: the leader epoch in which the log ends.
        log_start_offset: of the log.
        log_end_offset: of the log.
    """

    record: ReplicaRecord
    is_live: bool
    last_epoch: int
    log_start_offset: int
    log_end_offset: int

    @property
    def last_position(self) -> tuple[int, int]:
        """Return what orders copies of one partition: the last has all that the others have."""
        return self.last_epoch, self.log_end_offset
