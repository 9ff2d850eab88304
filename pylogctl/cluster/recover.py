"""Topics that ZooKeeper has lost: found by the logs that brokers have of them, and restored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple

from broker.admin.cluster import find_unknown
from broker.client.cluster import Connect
from broker.client.controller_client import ask_controller, cluster_metadata
from broker.cluster_state import PartitionState
from broker.protocol.cluster_requests import (
    DeleteReplicatedTopicRequest,
    RestorePartitionsRequest,
)
from broker.protocol.responses import BrokerAddress, TopicMetadata
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.topic import TopicPartition
from pylogctl.cli.columns import HIDDEN, Document, Flag, Integer, Row, Text
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, Absence, connector, open_cluster
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.failures import for_each, raise_failures
from pylogctl.cli.render import render

_BATCH = 500
"""Partitions restored by one request: a request to ZooKeeper has at most 1 MB."""


class RecoverRow(Row):
    """A partition that ZooKeeper has lost."""

    partition: Annotated[Text, "topic and partition"]
    leader: Annotated[Integer, "the broker whose copy the others follow"]
    copies: Annotated[Text, "broker: last leader epoch @ log end offset, the longest first"]
    replicas: Annotated[tuple[int, ...], "the brokers that had it last", HIDDEN]
    restored: Annotated[Flag, "whether --execute restores it"]
    loss: Annotated[Text, "what would be lost, or may be wrong"]
    topic: Annotated[Text, "name of the topic", HIDDEN]
    creation_id: Annotated[Text, "of the topic", HIDDEN]
    settings: Annotated[dict[str, str], "of the topic", HIDDEN]


RECOVER = Document(
    "cluster.recover/1",
    RecoverRow,
    empty="brokers have no logs of topics that ZooKeeper does not know",
)


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


def recover(
    env: Environment, topics: Collection[str], *, executes: bool, discards: bool = False
) -> None:
    """Show the topics that ZooKeeper has lost; with `executes`, restore them over their logs.

    Named `topics` are restored even if some of their data would be lost; without names, topics with
    all replicas are. `discards` deletes the logs of named topics instead, if all of each is lost.
    """
    if discards and not topics:
        raise UsageError("--discard needs --topic")
    connect = connector(env)
    with open_cluster(env, absence=Absence.WARN) as cluster:
        metadata = cluster_metadata(cluster.brokers(), connect, tuple(topics))
    brokers = metadata.brokers
    found, done = for_each(env, "brokers", brokers, lambda one: find_unknown(connect, one))
    lost = plan(dict(found))
    if discards and (known := [one.topic for one in metadata.topics if _has_replicas(one)]):
        raise CliError(
            ExitStatus.CONFLICT,
            f"topic '{known[0]}' is not lost, only partitions of it: all would be deleted",
            hints=[f"restore them; or delete all: pylogctl topic delete {known[0]} --data"],
        )
    if missing := sorted(set(topics) - {one.record.partition.topic for one in lost}):
        raise CliError(
            ExitStatus.NOT_FOUND, f"no live broker has logs of a lost topic '{missing[0]}'"
        )
    doubtful = {one.record.partition.topic for one in lost if one.doubts and not one.is_former}
    wanted = topics or {one.record.partition.topic for one in lost} - doubtful
    chosen = [one for one in lost if one.record.partition.topic in wanted and not one.is_former]
    render(env, RECOVER, [_row(one, is_chosen=one in chosen) for one in lost])
    env.flush()
    names = sorted({one.record.partition.topic for one in chosen})
    left = [] if topics else sorted(doubtful)
    if left:
        env.warn(
            f"left alone, as something would be lost: {', '.join(left)}; start the brokers that "
            "are not there, or name the topics with --topic"
        )
    if executes and discards:
        confirm(env, "cluster recover", f"delete all logs of {', '.join(names)}?")
        for name in names:
            request = DeleteReplicatedTopicRequest(name)
            ask_controller(brokers, connect, request, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S))
        env.note("the brokers that are there delete the logs")
    elif executes and names:
        confirm(env, "cluster recover", f"restore {', '.join(names)}?")
        _, restored = for_each(
            env,
            "topics",
            names,
            lambda name: _restore(
                env,
                connect,
                brokers,
                [one.record for one in chosen if one.record.partition.topic == name],
            ),
        )
        raise_failures(env, done, restored)
        env.note("restored; the other replicas copy what they lack: pylogctl cluster health")
    elif names:
        verb = "deletes their logs" if discards else "restores them"
        env.note(f"nothing changed; --execute {verb}")
    raise_failures(env, done)
    if executes and left:
        raise CliError(ExitStatus.PARTIAL, f"{len(left)} topics are not restored")


def _has_replicas(topic: TopicMetadata) -> bool:
    return any(one.is_replicated for one in topic.partitions)


def _restore(
    env: Environment,
    connect: Connect,
    brokers: Sequence[BrokerAddress],
    records: Sequence[ReplicaRecord],
) -> None:
    timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)
    for at in range(0, len(records), _BATCH):
        request = RestorePartitionsRequest(tuple(records[at : at + _BATCH]))
        ask_controller(brokers, connect, request, timeout_s=timeout_s)


def _row(one: Lost, *, is_chosen: bool) -> RecoverRow:
    record = one.record
    return RecoverRow(
        str(record.partition),
        record.state.leader,
        ", ".join(
            f"{id}: {copy.last_epoch}@{copy.log_end_offset}" for id, copy in one.copies.items()
        ),
        record.replicas,
        is_chosen,
        "; ".join(one.doubts) or None,
        record.partition.topic,
        record.creation_id,
        dict(record.settings),
    )
