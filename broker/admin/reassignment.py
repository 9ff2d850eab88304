"""Moving partitions to other brokers: plans, their execution, progress and end.

The controller validates all of a plan before it begins. If no controller responds, or it refuses,
that is a BrokerError. `throttle` is in bytes per second that each broker may copy, 0 for no limit.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from broker import errors
from broker.admin.reassignment_plan import Plan, plan_replicas
from broker.admin.replicas import ASK_AGAIN_S, Replicas, ask_unless_lost, replicas_of
from broker.admin.topic_facts import Ends, PartitionFacts, TopicFacts
from broker.client.cluster import Cluster, Connect
from broker.client.controller_client import ask_controller, cluster_metadata
from broker.controller.assignment import validate_target
from broker.protocol.cluster_requests import (
    OUTCOMES,
    REASSIGNMENTS,
    THROTTLE_STAYS,
    ListedReassignments,
    ListReassignmentsRequest,
    PartitionOutcome,
    PartitionReassignment,
    ReassignRequest,
    ReplicaTarget,
)
from broker.protocol.responses import PartitionMetadata
from broker.topic import TopicPartition

_SAMPLE_S = 1.0
"""The time over which the rate of arriving messages is measured."""


class Move(NamedTuple):
    """A partition that gets other replicas: broker ids, the preferred leader first."""

    partition: TopicPartition
    before: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """How far a partition is that gets other replicas: broker ids, the preferred leader first."""

    partition: TopicPartition
    before: tuple[int, ...]
    target: tuple[int, ...]
    missing: tuple[int, ...]  # those of the target that are not in sync yet
    # of the replica furthest behind; None if the leader does not tell
    left_bytes: int | None  # what it lacks
    percent: int | None  # how much of the partition it has
    throttle_bytes_per_s: int | None  # None without a limit


class Progress(NamedTuple):
    """The reassignments that are under way; `failures` are leaders that do not respond."""

    moves: list[MoveProgress]
    failures: list[errors.BrokerError]
    throttle_bytes_per_s: int
    # for `arriving`
    known: Replicas
    ends: Mapping[TopicPartition, Ends | None]
    began_s: float  # on the monotonic clock


def make_plan(
    cluster: Cluster,
    connect: Connect,
    topics: Sequence[str],
    *,
    timeout_s: float,
    broker_ids: Collection[int] = (),
    without: Collection[int] = (),
    replication_factor: int | None = None,
) -> Plan:
    """Return the replicas that partitions would get, where these change.

    Brokers in `broker_ids` may have replicas (all live ones if empty), those in `without` none. A
    `replication_factor` of None keeps that of each partition.
    """
    known = {one: found.replicas for one, found in replicas_of(cluster, connect, topics).items()}
    for partition, change in list_reassignments(cluster, connect, timeout_s=timeout_s).changes:
        if partition in known:  # until the change ends, it has the original replicas, too
            known[partition] = change.target
    metadata = cluster_metadata(cluster.brokers(), connect, ())
    live = {one.id for one in metadata.brokers}
    for broker_id in broker_ids:
        if broker_id not in live:
            raise errors.ConflictError(
                f"broker {broker_id} is not live: it cannot get replicas",
                "BROKER_NOT_LIVE",
                hints=[f"live brokers: {', '.join(map(str, sorted(live)))}"],
            )
    allowed = (set(broker_ids) or live) - set(without)
    racks = {one: metadata.racks.get(one, "") for one in sorted(allowed)}
    plan = plan_replicas(known, racks, replication_factor=replication_factor)
    return {partition: target for partition, target in plan.items() if target != known[partition]}


def validate_plan(cluster: Cluster, connect: Connect, plan: Plan) -> None:
    """Validate a plan as the controller would: `WrongPartitionError` or `ConflictError`."""
    metadata = cluster_metadata(cluster.brokers(), connect, ())
    live = {one.id for one in metadata.brokers}
    known = replicas_of(cluster, connect, sorted({one.topic for one in plan}))
    for partition, target in sorted(plan.items()):
        found = known.get(partition)
        if found is None:
            raise errors.WrongPartitionError(f"{partition} not found")
        if target:  # else it is a cancellation
            try:
                validate_target(partition, target, live, len(found.replicas), found.min_isr)
            except errors.InvalidRequestError as error:
                raise errors.ConflictError(str(error)) from error


def request_reassignment(
    cluster: Cluster,
    connect: Connect,
    plan: Plan,
    *,
    timeout_s: float,
    throttle: int = THROTTLE_STAYS,
) -> list[PartitionOutcome]:
    """Have the controller begin to move partitions; return the outcome for each.

    An empty target cancels the change of a partition. A request whose response is lost is sent
    again: the same target changes nothing, a change that was cancelled is left out.
    """
    give_up_s = time.monotonic() + timeout_s
    left = plan
    while True:
        targets = tuple(ReplicaTarget(one, left[one]) for one in sorted(left))
        body = ask_unless_lost(cluster, connect, ReassignRequest(targets, throttle), give_up_s)
        if body is not None:
            break
        left_s = max(0.0, give_up_s - time.monotonic())
        changes = list_reassignments(cluster, connect, timeout_s=left_s).changes
        under_way = {one.partition for one in changes}
        left = {one: target for one, target in left.items() if target or one in under_way}
    asked = {one.partition: one for one in OUTCOMES.decode(body)}
    return [asked.get(one, PartitionOutcome(one, errors.NO_ERROR, "")) for one in sorted(plan)]


def list_reassignments(
    cluster: Cluster, connect: Connect, *, timeout_s: float
) -> ListedReassignments:
    """Return the reassignments that are under way, and their throttle."""
    body = ask_controller(
        cluster.brokers(), connect, ListReassignmentsRequest(), timeout_s=timeout_s
    )
    return REASSIGNMENTS.decode(body)


def plan_cancellation(changes: Sequence[PartitionReassignment], topics: Collection[str]) -> Plan:
    """Return a plan that cancels the changes of some topics, or all that are under way."""
    return {one.partition: () for one in changes if not topics or one.partition.topic in topics}


def wait_for_moves(
    cluster: Cluster, connect: Connect, moves: Sequence[Move], *, timeout_s: float
) -> None:
    """Wait until partitions have their target replicas, all of them in sync.

    `RequestTimeoutError` if they are still being copied, which goes on; `ConflictError` if a change
    was cancelled or replaced. An election of a controller or leader is waited for.
    """
    give_up_s = time.monotonic() + timeout_s
    targets = {one.partition: one.target for one in moves}
    topics = sorted({one.topic for one in targets})
    while True:
        left_s = max(0.0, give_up_s - time.monotonic())
        try:
            changes = list_reassignments(cluster, connect, timeout_s=left_s).changes
            under_way = {
                one.partition
                for one in changes
                if targets.get(one.partition) == one.reassignment.target
            }
            # after the list: a change that is not on it has ended
            known = replicas_of(cluster, connect, topics)
        except errors.UNANSWERED:
            if time.monotonic() > give_up_s:
                raise
        else:
            if not under_way:
                _validate_moved(targets, known)
                return
            if time.monotonic() > give_up_s:
                raise errors.RequestTimeoutError(
                    f"{len(under_way)} of {len(targets)} partitions are still being copied after "
                    f"{timeout_s:g}s; that goes on"
                )
        time.sleep(ASK_AGAIN_S)


def _validate_moved(targets: Plan, known: Replicas) -> None:
    stayed = [
        one for one, target in targets.items() if one not in known or known[one].replicas != target
    ]
    if stayed:
        raise errors.ConflictError(
            f"{len(stayed)} of {len(targets)} partitions have other replicas than they were to "
            f"have, such as {min(stayed)}: their change was cancelled, or replaced by another one",
            "REASSIGNMENT_ENDED",
        )


def progress(
    cluster: Cluster, connect: Connect, topics: Sequence[str], *, timeout_s: float
) -> Progress:
    """Return how far the reassignments under way are, of `topics` or all."""
    throttle, changes = list_reassignments(cluster, connect, timeout_s=timeout_s)
    known = replicas_of(
        cluster, connect, topics or sorted({one.partition.topic for one in changes})
    )
    changes = tuple(sorted(one for one in changes if one.partition in known))
    known = {one.partition: known[one.partition] for one in changes}
    began_s = time.monotonic()
    with TopicFacts(cluster, connect) as source:
        facts = {one: source.describe_replicated(found) for one, found in known.items()}
        failures = [*source.failures, *source.unreadable]
    moves = [
        _move_progress(one, known[one.partition], facts[one.partition], throttle) for one in changes
    ]
    ends = {one: found.ends for one, found in facts.items()}
    return Progress(moves, failures, throttle, known, ends, began_s)


def arriving(cluster: Cluster, connect: Connect, found: Progress) -> dict[int, float]:
    """Return the bytes per second that arrive in what each broker copies under the throttle."""
    copied = {
        one.partition: added
        for one in found.moves
        if (added := [id for id in one.missing if id not in one.before])
    }
    if not copied:
        return {}
    time.sleep(_SAMPLE_S)
    with TopicFacts(cluster, connect) as source:
        later = {one: source.describe_replicated(found.known[one]).ends for one in copied}
    elapsed_s = time.monotonic() - found.began_s
    counts: Counter[int] = Counter()
    for partition, broker_ids in copied.items():
        before, after = found.ends[partition], later[partition]
        if before is not None and after is not None:
            for broker_id in broker_ids:
                counts[broker_id] += max(0, after.end - before.end)
    return {broker_id: count / elapsed_s for broker_id, count in sorted(counts.items())}


def _move_progress(
    change: PartitionReassignment,
    known: PartitionMetadata,
    facts: PartitionFacts,
    throttle: int,
) -> MoveProgress:
    original, target = change.reassignment
    missing = tuple(one for one in target if one not in known.isr)
    left, size = _left(missing, facts)
    return MoveProgress(
        change.partition,
        original,
        target,
        missing,
        left,
        None if left is None else 100 if not size else 100 * (size - left) // size,
        throttle or None,
    )


def _left(missing: Sequence[int], facts: PartitionFacts) -> tuple[int | None, int]:
    """Return the bytes that the replica furthest behind lacks (None if unknown), of how many."""
    if facts.ends is None or facts.replicas is None:
        return None, 0
    size = facts.ends.end - facts.ends.start
    lags = [facts.replicas.lags.get(one) for one in missing]
    # The leader knows no lag of a replica that has not fetched yet: it counts as empty.
    left = max((size if lag is None else lag for lag in lags), default=0)
    return left, max(size, left)
