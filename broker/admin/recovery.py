"""Topics that ZooKeeper has lost: found by the logs that brokers have of them, and restored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from broker.client.cluster import Connect
from broker.client.side import Side
from broker.cluster_state import PartitionState
from broker.protocol.cluster_requests import ListUnknownReplicasRequest, RestorePartitionsRequest
from broker.protocol.replica_requests import UNKNOWN_REPLICAS
from broker.protocol.responses import BrokerAddress
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.topic import TopicPartition

_BATCH = 500
"""Partitions restored by one request: a request to ZooKeeper has at most 1 MB."""


class Lost(NamedTuple):
    """A partition that ZooKeeper has lost."""

    record: ReplicaRecord  # its state after it is restored
    copies: Mapping[int, UnknownReplica]  # its logs by broker id, the longest first
    doubts: tuple[str, ...]  # what would be lost, or why the topic may have been deleted
    is_former: bool  # among the lost topics there is a later one of this name


def plan(found: Mapping[int, Iterable[UnknownReplica]]) -> list[Lost]:
    """Return the lost partitions, and how each is to be led; `found` is by live broker."""
    copies: dict[tuple[TopicPartition, str], dict[int, UnknownReplica]] = {}
    for broker_id, unknown in found.items():
        for one in unknown:
            key = one.record.partition, one.record.creation_id
            copies.setdefault(key, {})[broker_id] = one
    newest: dict[str, tuple[int, str]] = {}  # creation of each topic, and its controller epoch
    for (partition, creation_id), by_broker in copies.items():
        epoch = max(one.record.state.controller_epoch for one in by_broker.values())
        newest[partition.topic] = max(newest.get(partition.topic, (-1, "")), (epoch, creation_id))
    return [
        _planned(by_broker, found.keys(), is_former=newest[partition.topic][1] != creation_id)
        for (partition, creation_id), by_broker in sorted(copies.items())
    ]


def _planned(
    by_broker: Mapping[int, UnknownReplica], live: Collection[int], *, is_former: bool
) -> Lost:
    last = max((one.record for one in by_broker.values()), key=lambda one: one.age)
    assigned = {id: one for id, one in by_broker.items() if id in last.replicas} or by_broker
    replicas = last.replicas if assigned is not by_broker else tuple(sorted(by_broker))
    # The copy with the latest last leader epoch, and among those the longest, has all that was
    # committed if an in-sync replica is among the copies: the others follow it.
    ordered = dict(
        sorted(
            assigned.items(),
            key=lambda item: (item[1].last_position, item[0] == last.state.leader, -item[0]),
            reverse=True,
        )
    )
    leader, longest = next(iter(ordered.items()))
    epoch = max(last.state.leader_epoch, longest.last_epoch) + 1
    state = PartitionState(leader, epoch, (leader,), last.state.controller_epoch)
    record = last._replace(replicas=replicas, state=state)
    doubts = ["there is a later topic of this name"] if is_former else []
    doubts += _doubts(last, assigned, live)
    return Lost(record, ordered, tuple(doubts), is_former)


def _doubts(
    last: ReplicaRecord, copies: Mapping[int, UnknownReplica], live: Collection[int]
) -> Iterable[str]:
    if not last.replicas:
        yield "which brokers had it is not known"
    if last.state.isr and not copies.keys() & set(last.state.isr):
        yield f"committed messages: no copy of brokers {_ids(last.state.isr)}, which were in sync"
    if away := [id for id in last.replicas if id not in live]:
        yield f"what only brokers {_ids(away)} have, which are not there"
    if without := [id for id in last.replicas if id in live and id not in copies]:
        yield f"brokers {_ids(without)} have no log of it: the topic may have been deleted"


def _ids(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))


def find_unknown(connect: Connect, broker: BrokerAddress) -> tuple[int, list[UnknownReplica]]:
    """Return the replicas of a broker that ZooKeeper does not know, with the broker's id."""
    with closing(connect(broker)) as connection:
        if not connection.understands(ListUnknownReplicasRequest):
            return broker.id, []
        return broker.id, UNKNOWN_REPLICAS.decode(connection.call(ListUnknownReplicasRequest()))


def restore(side: Side, records: Sequence[ReplicaRecord]) -> None:
    """Have the controller make partitions again, over the logs that brokers have of them."""
    for at in range(0, len(records), _BATCH):
        side.ask_controller(RestorePartitionsRequest(tuple(records[at : at + _BATCH])))
