"""Replicas of partitions: where they are, and elections of their leaders.

Requests go to the controller. If none responds, or it refuses, that is a BrokerError.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from broker import deadlines, errors
from broker.client.side import Side
from broker.ids import NO_LEADER
from broker.protocol.cluster_requests import (
    OUTCOMES,
    ElectionKind,
    ElectLeadersRequest,
    PartitionOutcome,
)
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import Reader
from broker.protocol.responses import PartitionMetadata
from broker.topic import TopicPartition

ASK_AGAIN_S = 0.2

Replicas = Mapping[TopicPartition, PartitionMetadata]


class Outcome(NamedTuple):
    """A partition that got another leader: broker ids; None for one that had no leader."""

    partition: TopicPartition
    before: int | None
    leader: int


def replicas_of(side: Side, topics: Sequence[str]) -> dict[TopicPartition, PartitionMetadata]:
    """Return the partitions of topics with replicas, of all such topics if none is named.

    `TopicNotFoundError` or `NotReplicatedError` if a topic that is named is none of these.
    """
    metadata = side.metadata(tuple(topics) or None)
    found = {one.partition: one for one in metadata.partitions if one.is_replicated}
    for topic in metadata.topics:
        if not topics or any(one.partition.topic == topic.topic for one in found.values()):
            continue
        if topic.partitions:
            hint = f"give it replicas: pylogctl topic alter {topic.topic} --replication-factor N"
            raise errors.NotReplicatedError(
                f"topic '{topic.topic}' was created without replicas", hints=[hint]
            )
        raise errors.TopicNotFoundError(
            f"topic '{topic.topic}' not found",
            hints=["topics with replicas: pylogctl topic create --replication-factor N"],
        )
    return found


def plan_election(known: Replicas, kind: ElectionKind) -> list[TopicPartition]:
    """Return the partitions that would get another leader; of one topic if the kind is unclean.

    `ConflictError` if that is unclean, and every partition has a leader.
    """
    wanted = sorted(one for one, found in known.items() if not _is_led(found, kind))
    if kind is ElectionKind.UNCLEAN and not wanted:
        topic = next(iter(known)).topic
        raise errors.ConflictError(
            f"every partition of topic '{topic}' has a leader: nothing needs to be given up",
            "NOT_OFFLINE",
            hints=[f"try: pylogctl topic describe {topic}"],
        )
    return wanted


def _is_led(found: PartitionMetadata, kind: ElectionKind) -> bool:
    """Whether a partition has the leader that an election is to give it."""
    if kind is ElectionKind.UNCLEAN:
        return found.leader != NO_LEADER
    return found.leader == found.replicas[0]


def ask_unless_lost(side: Side, request: ExtensionRequest, give_up_s: float) -> Reader | None:
    """Return the body of the controller's response; None if that is lost, and time is left.

    It may have carried the request out: look before it is sent again. `give_up_s` is on the
    monotonic clock.
    """
    try:
        return side.until(give_up_s).ask_controller(request)
    except errors.BrokerUnreachableError:
        if time.monotonic() > give_up_s:
            raise
    time.sleep(ASK_AGAIN_S)
    return None


def ask_until_answered(side: Side, request: ExtensionRequest) -> Reader:
    """Return the body of the controller's response; repeat the request if that is lost."""
    give_up_s = side.give_up_s
    while (body := ask_unless_lost(side, request, give_up_s)) is None:
        pass
    return body


def request_outcomes(
    side: Side,
    partitions: Iterable[TopicPartition],
    request_of: Callable[[Sequence[TopicPartition]], ExtensionRequest],
    left_of: Callable[[Sequence[TopicPartition], Side], list[TopicPartition]],
) -> list[PartitionOutcome]:
    """Have the controller change partitions, and return the outcome for each.

    After a lost response, only what is not carried out as `left_of` finds is requested again.
    """
    give_up_s = side.give_up_s
    wanted = sorted(partitions)
    left, body = wanted, None
    while left and (body := ask_unless_lost(side, request_of(left), give_up_s)) is None:
        left = left_of(left, side.until(give_up_s))
    asked = {} if body is None else {one.partition: one for one in OUTCOMES.decode(body)}
    return [asked.get(one, PartitionOutcome(one, errors.NO_ERROR, "")) for one in wanted]


def request_election(
    side: Side, partitions: Iterable[TopicPartition], kind: ElectionKind
) -> list[PartitionOutcome]:
    """Have the controller elect leaders; return the outcome for each partition."""

    def left_of(left: Sequence[TopicPartition], side: Side) -> list[TopicPartition]:
        # an unclean election that was carried out would be refused
        known = replicas_of(side, sorted({one.topic for one in left}))
        return [one for one in left if one not in known or not _is_led(known[one], kind)]

    return request_outcomes(
        side, partitions, lambda left: ElectLeadersRequest(kind, tuple(left)), left_of
    )


def elect(side: Side, topics: Sequence[str], kind: ElectionKind) -> list[Outcome]:
    """Elect leaders, and return once brokers name them; one topic if the kind is unclean."""
    give_up_s = side.give_up_s
    known = replicas_of(side, topics)
    outcomes = request_election(side, plan_election(known, kind), kind)
    elected = [one.partition for one in outcomes if one.error == errors.NO_ERROR]
    now: Replicas = {}

    def waiting() -> list[TopicPartition]:
        nonlocal now
        now = replicas_of(side, topics) if elected else {}
        return [one for one in elected if one in now and not _is_led(now[one], kind)]

    if left := deadlines.remaining(waiting, give_up_s, ASK_AGAIN_S):
        raise errors.RequestTimeoutError(
            f"a leader of {left[0]} is elected, and brokers do not name it yet"
        )
    done = [
        Outcome(one, None if known[one].leader == NO_LEADER else known[one].leader, now[one].leader)
        for one in elected
        if one in now
    ]
    raise_refused(outcomes, done)
    return done


def raise_refused(outcomes: Collection[PartitionOutcome], done: Iterable[object] = ()) -> None:
    """Raise if the controller refused partitions: PartialError, or ConflictError if all of them.

    `done` is what the call has to return for the others.
    """
    refused = [one for one in outcomes if one.error != errors.NO_ERROR]
    if not refused:
        return
    text = f"{len(refused)} of {len(outcomes)} partitions were refused: {refused[0].text}"
    if len(refused) == len(outcomes):
        raise errors.ConflictError(text)
    failed = {str(one.partition): errors.error_for_code(one.error, one.text) for one in refused}
    raise errors.PartialError(text, done, failed)
