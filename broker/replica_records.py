"""Records of replicas, which their broker keeps beside the log: they outlive ZooKeeper's data.

A record is a JSON document; readers ignore unknown fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from broker.cluster_state import PartitionState
from broker.ids import NO_LEADER
from broker.topic import TopicPartition

_VERSION = 1
_NOT_A_RECORD = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading a document raises that is none."""


class ReplicaRecord(NamedTuple):
    """The state of a partition in the registry when a broker last received it."""

    partition: TopicPartition
    creation_id: str
    # broker ids, the preferred leader first; none if only the log and its creation id are known
    replicas: tuple[int, ...]
    state: PartitionState
    version: int  # of the node in ZooKeeper that held the state
    settings: Mapping[str, str]  # of the topic, those that differ from the brokers'
    kept_id: str = ""  # the creation id that clients know it by, if another; `TopicAssignment.kept`

    def encode(self) -> bytes:
        """Return the document."""
        import json  # late: clients import this module for its types, and make no records

        return json.dumps(
            {
                "version": _VERSION,
                "topic": self.partition.topic,
                "partition": self.partition.name,
                "creation_id": self.creation_id,
                "replicas": self.replicas,
                **self.state._asdict(),
                "state_version": self.version,
                "settings": dict(self.settings),
                "kept_id": self.kept_id,
            },
            separators=(",", ":"),
        ).encode()

    @classmethod
    def decode(cls, document: bytes) -> ReplicaRecord:
        """Parse a document; `ValueError` if it is no record."""
        import json  # late: as above

        try:
            fields = json.loads(document)
            return cls(
                TopicPartition.named(str(fields["topic"]), fields["partition"]),
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
                str(fields.get("kept_id", "")),
            )
        except _NOT_A_RECORD as error:
            raise ValueError(f"no record of a replica: {document[:80]!r}") from error

    @classmethod
    def of_bare_log(cls, partition: TopicPartition, creation_id: str) -> ReplicaRecord:
        """Return the record of a log of which only the creation id is known."""
        return cls(partition, creation_id, (), PartitionState(NO_LEADER, 0, (), 0), 0, {})

    @property
    def age(self) -> tuple[bool, int, int]:
        """Return a key that sorts the records of one partition by age, the newest last."""
        return bool(self.replicas), self.state.leader_epoch, self.version


class UnknownReplica(NamedTuple):
    """A replica whose log a broker has, and which the registry does not know."""

    record: ReplicaRecord
    # a controller sent it to this run of the broker, before the registry lost it; if not, the
    # broker was started since, and may have missed a deletion
    is_live: bool
    last_epoch: int  # the leader epoch in which the log ends
    log_start_offset: int
    log_end_offset: int

    @property
    def last_position(self) -> tuple[int, int]:
        """Return a sort key for copies of one partition: the last has all that the others have."""
        return self.last_epoch, self.log_end_offset
