"""Moving partitions to other brokers: plans, their execution, progress and end.

The controller validates all of a plan before it begins. If no controller responds, or it refuses,
that is a BrokerError. `throttle` is in bytes per second that each broker may copy, 0 for no limit.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from broker import deadlines, errors
from broker.admin import replicas
from broker.admin.topics import PartitionInfo, TopicFacts
from broker.client.side import Side
from broker.controller.assignment import validate_target
from broker.errors import InvalidReplicationFactorError
from broker.protocol import cluster_requests
from broker.protocol.responses import PartitionMetadata
from broker.records import UNTOLD, ByteRate, Bytes, Fit, Integer, Rank, Title
from broker.topic import TopicPartition

_SHOWN_WITHIN_S = 5.0
"""How long brokers may show the former replicas after a change has ended."""
_SAMPLE_S = 1.0
"""The time over which the rate of arriving messages is measured."""


_BEFORE = "ids of the brokers it had, the preferred leader first"
_TARGET = "ids of the brokers it gets"


class Move(NamedTuple):
    """A partition that gets other replicas: broker ids, the preferred leader first."""

    partition: TopicPartition
    before: Annotated[tuple[int, ...], _BEFORE, Fit.WRAP]
    target: Annotated[tuple[int, ...], _TARGET, Fit.WRAP]


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """How far a partition is that gets other replicas: broker ids, the preferred leader first."""

    partition: TopicPartition
    before: Annotated[tuple[int, ...], _BEFORE, Fit.WRAP, Rank(2)]
    target: Annotated[tuple[int, ...], _TARGET, Fit.WRAP]
    missing: Annotated[tuple[int, ...], "those of the target that are not in sync yet", Fit.WRAP]
    # None if the leader does not tell
    left_bytes: Annotated[Bytes, "what the last of these still has to copy", Title("LEFT"), UNTOLD]
    percent: Annotated[Integer, "how much of the partition that one has", UNTOLD]
    throttle_bytes_per_s: Annotated[
        ByteRate,
        "bytes per second that a broker may copy; none without a limit",
        Title("THROTTLE"),
        Rank(1),
    ]


class ReassignmentProgress(NamedTuple):
    """The reassignments that are under way; `failures` are leaders that do not respond."""

    moves: list[MoveProgress]
    failures: list[errors.BrokerError]
    throttle_bytes_per_s: int
    # for `arriving`
    known: replicas.Replicas
    ends: Mapping[TopicPartition, int | None]
    began_s: float  # on the monotonic clock


def make_plan(
    side: Side,
    topics: Sequence[str],
    *,
    broker_ids: Collection[int] = (),
    without: Collection[int] = (),
    replication_factor: int | None = None,
) -> Plan:
    """Return the replicas that partitions would get, where these change.

    Brokers in `broker_ids` may have replicas (all live ones if empty), those in `without` none. A
    `replication_factor` of None keeps that of each partition.
    """
    known = {one: found.replicas for one, found in replicas.replicas_of(side, topics).items()}
    for partition, change in list_reassignments(side).changes:
        if partition in known:  # until the change ends, it has the original replicas, too
            known[partition] = change.target
    metadata = side.metadata(())
    live = {one.id for one in metadata.brokers}
    for broker_id in broker_ids:
        if broker_id not in live:
            raise errors.ConflictError(
                f"broker {broker_id} is not live: it cannot get replicas",
                "BROKER_NOT_LIVE",
                hints=[f"live brokers: {_ids(live)}"],
            )
    allowed = (set(broker_ids) or live) - set(without)
    racks = {one: metadata.racks.get(one, "") for one in sorted(allowed)}
    others = sorted(live - allowed - set(without))
    more = f"more with --to: live are {_ids(live)}" if others else "start another broker"
    one = topics[0] if len(topics) == 1 else "TOPIC"
    to = f" --to {_ids(allowed, ',')}" if others else ""
    hints = [
        more,
        f"or fewer replicas: pylogctl topic reassign execute {one}{to} "
        f"--replication-factor {len(racks)}",
    ]
    plan = plan_replicas(
        known, racks, replication_factor=replication_factor, hints=hints if racks else hints[:1]
    )
    return {partition: target for partition, target in plan.items() if target != known[partition]}


def _ids(broker_ids: Collection[int], separator: str = ", ") -> str:
    return separator.join(map(str, sorted(broker_ids)))


def moves_of(plan: Plan, known: replicas.Replicas) -> tuple[Move, ...]:
    """Return what a plan moves, by partition."""
    return tuple(Move(one, known[one].replicas, plan[one]) for one in sorted(plan))


def cancel(side: Side, topic: str) -> list[TopicPartition]:
    """Cancel the changes of a topic's replicas, and return the partitions that had one."""
    give_up_s = side.give_up_s
    replicas.replicas_of(side, [topic])  # raises if there are none
    changes = list_reassignments(side).changes
    plan = plan_cancellation(changes, [topic])
    if plan:
        outcomes = request_reassignment(side.until(give_up_s), plan)
        done = [one.partition for one in outcomes if one.error == errors.NO_ERROR]
        former = {p: change.original for p, change in changes if p in done}
        if waiting := _await_shown(side, former, give_up_s):
            raise errors.RequestTimeoutError(
                f"the change of {waiting[0]} is cancelled, and brokers do not show it yet"
            )
        replicas.raise_refused(outcomes, done)
    return sorted(plan)


def _await_shown(side: Side, targets: Plan, give_up_s: float) -> list[TopicPartition]:
    """Wait until brokers show the replicas of partitions, and return those that they do not.

    The controller tells brokers after it has responded. `give_up_s` is on the monotonic clock.
    """
    topics = sorted({one.topic for one in targets})

    def waiting() -> list[TopicPartition]:
        known = replicas.replicas_of(side, topics) if topics else {}
        return sorted(
            one
            for one, target in targets.items()
            if one not in known or known[one].replicas != target
        )

    return deadlines.remaining(waiting, give_up_s, replicas.ASK_AGAIN_S)


def validate_plan(side: Side, plan: Plan) -> None:
    """Validate a plan as the controller would: `WrongPartitionError` or `ConflictError`."""
    metadata = side.metadata(())
    live = {one.id for one in metadata.brokers}
    known = replicas.replicas_of(side, sorted({one.topic for one in plan}))
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
    side: Side, plan: Plan, *, throttle: int | None = None
) -> list[cluster_requests.PartitionOutcome]:
    """Have the controller begin to move partitions; return the outcome for each.

    An empty target cancels the change of a partition. After a lost response, what has been carried
    out is not requested again: the next controller would refuse a broker that was lost as well.
    A `throttle` of None leaves that as it is.
    """
    limit = cluster_requests.THROTTLE_STAYS if throttle is None else throttle

    def request_of(left: Iterable[TopicPartition]) -> cluster_requests.ReassignRequest:
        targets = tuple(cluster_requests.ReplicaTarget(one, plan[one]) for one in left)
        return cluster_requests.ReassignRequest(targets, throttle_bytes_per_s=limit)

    if not plan or throttle is not None:  # by itself: a lost response leaves none of the plan
        replicas.ask_until_answered(side, request_of(()))
    return replicas.request_outcomes(
        side, plan, request_of, lambda left, side: _not_begun(side, {p: plan[p] for p in left})
    )


def _not_begun(side: Side, plan: Plan) -> list[TopicPartition]:
    """Return what of a plan is neither under way nor done."""
    changes = list_reassignments(side).changes
    known = replicas.replicas_of(side, sorted({one.topic for one in plan}))
    # those of before the request, unless it was carried out
    present = {one: found.replicas for one, found in known.items()}
    present |= {one: change.target for one, change in changes}
    cancellable = {one for one, _ in changes}
    return [
        one
        for one, target in plan.items()
        if (present.get(one) != target if target else one in cancellable)
    ]


def list_reassignments(side: Side) -> cluster_requests.ListedReassignments:
    """Return the reassignments that are under way, and their throttle."""
    return cluster_requests.REASSIGNMENTS.decode(
        replicas.ask_until_answered(side, cluster_requests.ListReassignmentsRequest())
    )


def plan_cancellation(
    changes: Sequence[cluster_requests.PartitionReassignment], topics: Collection[str]
) -> Plan:
    """Return a plan that cancels the changes of some topics, or all that are under way."""
    return {one.partition: () for one in changes if not topics or one.partition.topic in topics}


def wait_for_moves(side: Side, moves: Sequence[Move]) -> None:
    """Wait until partitions have their target replicas, all of them in sync.

    `RequestTimeoutError` if they are still being copied, which goes on; `ConflictError` if a change
    was cancelled or replaced. An election of a controller or leader is waited for.
    """
    targets = {one.partition: one.target for one in moves}
    _await_ended(side, targets)
    stayed = _await_shown(side, targets, time.monotonic() + _SHOWN_WITHIN_S)
    if stayed:
        raise errors.ConflictError(
            f"{len(stayed)} of {len(targets)} partitions have other replicas than they were to "
            f"have, such as {stayed[0]}: their change was cancelled, or replaced by another one",
            "REASSIGNMENT_ENDED",
        )


def _await_ended(side: Side, targets: Plan) -> None:
    """Wait until no change to these targets is under way."""
    give_up_s = side.give_up_s
    while True:
        try:
            changes = list_reassignments(side.until(give_up_s)).changes
        except errors.UNANSWERED:
            if time.monotonic() > give_up_s:
                raise
        else:
            under_way = [p for p, change in changes if targets.get(p) == change.target]
            if not under_way:
                return
            if time.monotonic() > give_up_s:
                raise errors.RequestTimeoutError(
                    f"{len(under_way)} of {len(targets)} partitions are still being copied after "
                    f"{side.timeout_s:g}s; that goes on"
                )
        time.sleep(replicas.ASK_AGAIN_S)


def progress(side: Side, topics: Sequence[str]) -> ReassignmentProgress:
    """Return how far the reassignments under way are, of `topics` or all."""
    throttle, changes = list_reassignments(side)
    known = replicas.replicas_of(side, topics or sorted({one.partition.topic for one in changes}))
    changes = tuple(sorted(one for one in changes if one.partition in known))
    known = {one.partition: known[one.partition] for one in changes}
    began_s = time.monotonic()
    with TopicFacts(side) as source:
        facts = {one: source.describe_replicated(found) for one, found in known.items()}
        failures = [*source.failures, *source.unreadable]
    moves = [
        _move_progress(one, known[one.partition], facts[one.partition], throttle) for one in changes
    ]
    ends = {one: found.end for one, found in facts.items()}
    return ReassignmentProgress(moves, failures, throttle, known, ends, began_s)


def arriving(side: Side, found: ReassignmentProgress) -> dict[int, float]:
    """Return the bytes per second that arrive in what each broker copies under the throttle."""
    copied = {
        one.partition: added
        for one in found.moves
        if (added := [id for id in one.missing if id not in one.before])
    }
    if not copied:
        return {}
    time.sleep(_SAMPLE_S)
    with TopicFacts(side) as source:
        later = {one: source.describe_replicated(found.known[one]).end for one in copied}
    elapsed_s = time.monotonic() - found.began_s
    counts: Counter[int] = Counter()
    for partition, broker_ids in copied.items():
        before, after = found.ends[partition], later[partition]
        if before is not None and after is not None:
            for broker_id in broker_ids:
                counts[broker_id] += max(0, after - before)
    return {broker_id: count / elapsed_s for broker_id, count in sorted(counts.items())}


def _move_progress(
    change: cluster_requests.PartitionReassignment,
    known: PartitionMetadata,
    facts: PartitionInfo,
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


def _left(missing: Sequence[int], facts: PartitionInfo) -> tuple[int | None, int]:
    """Return the bytes that the replica furthest behind lacks (None if unknown), of how many."""
    if facts.size_bytes is None or facts.leader_epoch is None:
        return None, 0
    size = facts.size_bytes
    lags = [facts.lags.get(one) for one in missing]
    # The leader knows no lag of a replica that has not fetched yet: it counts as empty.
    left = max((size if lag is None else lag for lag in lags), default=0)
    return left, max(size, left)


Plan = dict[TopicPartition, tuple[int, ...]]
"""The target replicas of each partition, the preferred leader first."""


def plan_replicas(
    present: Mapping[TopicPartition, tuple[int, ...]],
    racks: Mapping[int, str],
    *,
    replication_factor: int | None = None,
    hints: Iterable[str] = (),
) -> Plan:
    """Return the target replicas of all partitions of `present`, also of unchanged ones.

    `racks` has the brokers that may have replicas; their rack is empty if not set. None as
    replication factor keeps that of each partition. `hints` are those of the error for too few
    brokers.
    """
    most = replication_factor or max(map(len, present.values()), default=0)
    if most > len(racks):
        raise InvalidReplicationFactorError(
            f"{most} replicas of a partition need as many brokers; there are {len(racks)} to "
            f"choose from: {', '.join(map(str, racks)) or 'none'}",
            hints=hints,
        )
    loads: Counter[int] = Counter()
    targets: dict[TopicPartition, list[int]] = {}
    for partition, former in sorted(present.items()):
        kept = [one for one in former if one in racks]
        targets[partition] = kept[: replication_factor or len(former)]
        loads.update(targets[partition])
    for partition, target in targets.items():
        wanted = replication_factor or len(present[partition])
        while len(target) < wanted:
            target.append(_best_broker(target, racks, loads))
            loads[target[-1]] += 1
    _even_out(targets, racks, loads)
    return {
        partition: tuple(target) for partition, target in _lead_evenly(present, targets).items()
    }


def _best_broker(target: list[int], racks: Mapping[int, str], loads: Counter[int]) -> int:
    """Return the broker for one more replica: in a new rack if possible, with few replicas."""
    used = Counter(racks[one] for one in target)
    candidates = (one for one in racks if one not in target)
    return min(candidates, key=lambda one: (used[racks[one]], loads[one], one))


def _even_out(
    targets: dict[TopicPartition, list[int]], racks: Mapping[int, str], loads: Counter[int]
) -> None:
    """Move replicas from brokers with many to brokers with few, until they differ by one."""
    moved = True
    while moved:
        moved = False
        for target in targets.values():
            for place, one in enumerate(target):
                others = [*target[:place], *target[place + 1 :]]
                used = Counter(racks[other] for other in others)
                better = [
                    candidate
                    for candidate in racks
                    if candidate not in target
                    and loads[candidate] + 1 < loads[one]
                    and used[racks[candidate]] <= used[racks[one]]
                ]
                if better:
                    best = min(better, key=lambda candidate: (loads[candidate], candidate))
                    target[place] = best
                    loads[one] -= 1
                    loads[best] += 1
                    moved = True


def _lead_evenly(
    present: Mapping[TopicPartition, tuple[int, ...]], targets: dict[TopicPartition, list[int]]
) -> dict[TopicPartition, list[int]]:
    """Give each partition a preferred leader: the present one if it stays, else one with few."""
    leads: Counter[int] = Counter(
        target[0]
        for partition, target in targets.items()
        if target and target[0] == present[partition][0]
    )
    for partition, target in targets.items():
        if target and target[0] != present[partition][0]:
            first = min(target, key=lambda one: (leads[one], target.index(one)))
            target.remove(first)
            target.insert(0, first)
            leads[first] += 1
    return targets
