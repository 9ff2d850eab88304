"""`pylogctl cluster recover`: shows topics that ZooKeeper has lost, asks, and has them restored."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from broker.admin.recovery import Lost, find_unknown, plan, restore
from broker.client.side import Side
from broker.protocol.cluster_requests import DeleteReplicatedTopicRequest
from broker.protocol.responses import TopicMetadata
from pylogctl.cli.columns import HIDDEN, Document, Fit, Flag, Integer, Row, Text
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.failures import for_each, raise_failures
from pylogctl.cli.render import render


class RecoverRow(Row):
    """A partition that ZooKeeper has lost."""

    partition: Annotated[Text, "topic and partition"]
    leader: Annotated[Integer, "the broker whose copy the others follow"]
    copies: Annotated[
        Text, "broker: last leader epoch @ log end offset, the longest first", Fit.WRAP
    ]
    replicas: Annotated[tuple[int, ...], "the brokers that had it last", Fit.WRAP, HIDDEN]
    restored: Annotated[Flag, "whether --execute restores it"]
    loss: Annotated[Text, "what would be lost, or may be wrong", Fit.WRAP]
    topic: Annotated[Text, "name of the topic", HIDDEN]
    creation_id: Annotated[Text, "of the topic", HIDDEN]
    settings: Annotated[dict[str, str], "of the topic", Fit.WRAP, HIDDEN]


RECOVER = Document(
    "cluster.recover/1",
    RecoverRow,
    empty="brokers have no logs of topics that ZooKeeper does not know",
)


def recover(
    env: Environment, side: Side, topics: Collection[str], *, executes: bool, discards: bool
) -> None:
    """Show the topics that ZooKeeper has lost; with `executes`, restore them over their logs.

    Named `topics` are restored even if some of their data would be lost; without names, topics with
    all replicas are. `discards` deletes the logs of named topics instead, if all of each is lost.
    """
    metadata = side.metadata(topics)
    found, done = for_each(
        env, "brokers", metadata.brokers, lambda one: find_unknown(side.connect, one)
    )
    lost = plan(dict(found))
    if discards and (known := [one.topic for one in metadata.topics if _has_replicas(one)]):
        raise CliError(
            ExitStatus.CONFLICT,
            f"topic '{known[0]}' is not lost, only partitions of it: all would be deleted",
            f"restore them; or delete all: pylogctl topic delete {known[0]} --data",
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
            side.ask_controller(DeleteReplicatedTopicRequest(name))
        env.note("the brokers that are there delete the logs")
    elif executes and names:
        confirm(env, "cluster recover", f"restore {', '.join(names)}?")

        def restore_one(name: str) -> None:
            restore(side, [one.record for one in chosen if one.record.partition.topic == name])

        _, restored = for_each(env, "topics", names, restore_one)
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
