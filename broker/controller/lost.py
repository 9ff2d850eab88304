"""Partitions that brokers have logs of and the registry does not know: it has lost its data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from broker.cluster_state import LAST_EPOCH, TopicAssignment
from broker.controller.election import elect_offline
from broker.errors import InvalidRequestError, TopicExistsError
from broker.ids import NO_LEADER
from broker.properties import INT32_MAX
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.topic import TopicPartition


class LostPartitions:
    """The partitions that the live brokers have reported as unknown to the registry."""

    def __init__(self) -> None:
        self._found: dict[int, dict[TopicPartition, UnknownReplica]] = {}

    def told(self, broker_id: int, found: Iterable[UnknownReplica]) -> None:
        """Note all lost partitions that a broker reports."""
        self._found[broker_id] = {one.record.partition: one for one in found}

    def forget_brokers(self, broker_ids: Iterable[int]) -> None:
        """Forget the reports of brokers that are gone or have restarted."""
        for broker_id in broker_ids:
            self._found.pop(broker_id, None)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that the registry knows again."""
        for found in self._found.values():
            for partition in partitions:
                found.pop(partition, None)

    def take(self, topic: str) -> list[tuple[int, ReplicaRecord]]:
        """Forget the partitions of a topic; return the brokers with their records."""
        taken = [
            (broker_id, one.record)
            for broker_id, found in self._found.items()
            for partition, one in found.items()
            if partition.topic == topic
        ]
        for broker_id, record in taken:
            del self._found[broker_id][record.partition]
        return taken

    def has_topic(self, topic: str) -> bool:
        """Return whether a live broker has a log of a lost topic."""
        return any(one.topic == topic for found in self._found.values() for one in found)

    def homes(self, topic: str) -> set[int]:
        """Return the homes of the partitions of such a topic."""
        return {one.home for found in self._found.values() for one in found if one.topic == topic}

    def holders(self, partition: TopicPartition, creation_id: str) -> set[int]:
        """Return the live brokers with a log of a lost partition of that creation of its topic."""
        return {
            broker_id
            for broker_id, found in self._found.items()
            if (one := found.get(partition)) and one.record.creation_id == creation_id
        }

    def certain(self, eligible: Collection[int]) -> list[list[ReplicaRecord]]:
        """Return the partitions of each topic that are certainly lost, in their next states.

        A deleted topic is deleted on all its live brokers first. So a partition is lost, not
        deleted, if each of its last replicas is on a broker that has the log and has run since a
        controller told it of the partition. A broker that was started since may have missed a
        deletion.
        """
        copies: dict[TopicPartition, dict[int, UnknownReplica]] = {}
        for broker_id, found in self._found.items():
            for partition, one in found.items():
                copies.setdefault(partition, {})[broker_id] = one
        topics: dict[tuple[str, str], list[ReplicaRecord]] = {}
        for by_broker in copies.values():
            last = max((one.record for one in by_broker.values()), key=lambda one: one.age)
            live = {
                id
                for id, one in by_broker.items()
                if one.is_live and one.record.creation_id == last.creation_id
            }
            if last.replicas and live >= set(last.replicas):
                epoch = max(one.last_epoch for one in by_broker.values())
                topics.setdefault((last.partition.topic, last.creation_id), []).append(
                    _in_next_epoch(last, epoch, eligible)
                )
        return list(topics.values())


def _in_next_epoch(last: ReplicaRecord, epoch: int, eligible: Collection[int]) -> ReplicaRecord:
    """Return the state after a partition's last one, with the same leader if that is possible."""
    leader, leader_epoch, isr, _ = last.state
    if leader not in eligible or leader not in isr:
        election = elect_offline(last.replicas, isr, eligible, is_unclean=False)
        leader = NO_LEADER if election is None else election.leader
    state = last.state._replace(leader=leader, leader_epoch=max(epoch, leader_epoch) + 1)
    return last._replace(state=state)


def validate_records(records: Sequence[ReplicaRecord], known: TopicAssignment) -> None:
    """Raise unless partitions, one or more, can be put back into the registry.

    `known` is the topic with the partitions that the registry has of it.
    """
    formats = {one.format for one in (*known.replicas, *(one.partition for one in records))}
    if len(formats) > 1:
        raise InvalidRequestError(
            f"the partitions to restore of topic '{known.topic}' are of both formats, or of "
            "another than the topic"
        )
    for partition, creation_id, replicas, state, *_ in records:
        if partition.topic != known.topic:
            raise InvalidRequestError("the partitions to restore are of several topics")
        if creation_id != known.creation_id or partition in known.replicas:
            raise TopicExistsError(
                f"{partition} cannot be restored: it exists, or there is another topic "
                f"'{known.topic}' by now"
            )
        leader, leader_epoch, isr, _ = state
        if (
            len({*replicas}) != len(replicas)
            or len({*isr}) != len(isr)
            or not (isr and {*isr} <= {*replicas})
            or not all(0 <= one <= INT32_MAX for one in replicas)
            or leader not in {*isr, NO_LEADER}
            or not 0 <= leader_epoch < LAST_EPOCH
        ):
            raise InvalidRequestError(
                f"{partition} cannot have leader {leader} in epoch {leader_epoch} with replicas "
                f"{list(replicas)}, in sync {list(isr)}"
            )
