"""Moves all replicas away from a broker, which may be dead, and tells which partitions stay.

`throttle` is in bytes per second that each broker may copy, 0 for no limit.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from broker import errors
from broker.admin import reassignment
from broker.admin.reassignment import Move, Plan
from broker.client.side import Side
from broker.ids import NO_LEADER
from broker.protocol.responses import PartitionMetadata
from broker.topic import TopicPartition

_POLL_S = 0.5
_PATIENCE_S = 60.0
"""How long the cluster may fail to respond while replicas move, as during an election."""


@dataclass(frozen=True, slots=True)
class Decommission:
    """A broker that has no replicas any more, or a plan for that."""

    broker: int
    is_live: bool
    moves: tuple[Move, ...]  # its partitions, and the replicas that they get
    # of a plan: those of them that cannot be copied now, as they have no leader
    leaderless: tuple[TopicPartition, ...]
    # of a plan: how many partitions without replicas would stay on it, by topic
    staying: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class BrokerReplicas:
    """What is on a broker, and where it is to go."""

    broker_id: int
    is_live: bool
    known: Mapping[TopicPartition, PartitionMetadata]  # those with replicas
    plan: Plan  # without those that are moving away already
    plain: Mapping[str, int]  # number of partitions without replicas, by topic

    @property
    def moves(self) -> dict[TopicPartition, Move]:
        """Return what the plan moves."""
        return {one.partition: one for one in reassignment.moves_of(self.plan, self.known)}

    @property
    def leaderless(self) -> list[PartitionMetadata]:
        """Return the partitions that have no leader, which cannot be copied."""
        return [one for one in sorted(self.known.values()) if one.leader == NO_LEADER]


def find_replicas(side: Side, broker_id: int) -> BrokerReplicas:
    """Return what is on a broker, and a plan to move it.

    `BrokerNotFoundError` if it is not live and has nothing; `ConflictError` if there are too few
    other brokers.
    """
    metadata = side.metadata(None)
    partitions = metadata.partitions
    live = {one.id for one in metadata.brokers}
    if broker_id not in live and not any(
        broker_id in (*one.replicas, one.partition.home) for one in partitions
    ):
        raise errors.BrokerNotFoundError(
            f"broker {broker_id} not found: it is not live, and no partition is on it",
            hints=[f"live brokers: {', '.join(map(str, sorted(live)))}"],
        )
    known = {
        one.partition: one for one in partitions if one.is_replicated and broker_id in one.replicas
    }
    plain = Counter(
        one.partition.topic
        for one in partitions
        if not one.is_replicated and one.partition.home == broker_id
    )
    plan = _plan(side, broker_id, known)
    return BrokerReplicas(broker_id, broker_id in live, known, plan, plain)


def _plan(side: Side, broker_id: int, known: Collection[TopicPartition]) -> Plan:
    """Return the replicas that the partitions on a broker are to have."""
    if not known:
        return {}
    topics = sorted({one.topic for one in known})
    try:
        plan = reassignment.make_plan(side, topics, without=[broker_id])
    except errors.InvalidReplicationFactorError as error:
        raise errors.ConflictError(
            f"broker {broker_id} cannot be taken away: {error}",
            "TOO_FEW_BROKERS",
            hints=[
                "start another broker, or give topics fewer replicas: pylogctl topic alter TOPIC "
                "--replication-factor N"
            ],
        ) from error
    return {partition: target for partition, target in plan.items() if partition in known}


def _begin(side: Side, plan: Plan, throttle: int | None) -> None:
    """Have the controller begin to move partitions; `ConflictError` if it refuses one."""
    outcomes = reassignment.request_reassignment(side, plan, throttle=throttle)
    refused = [one for one in outcomes if one.error != errors.NO_ERROR]
    if refused:
        raise errors.ConflictError(f"{refused[0].partition}: {refused[0].text}")


def move_all(
    side: Side,
    found: BrokerReplicas,
    copying: Callable[[BrokerReplicas], AbstractContextManager[Callable[[int], None]]],
    *,
    throttle: int | None,
    timeout_s: float | None,
) -> BrokerReplicas:
    """Move all replicas away from a broker, and return what is on it then.

    The wait for them is inside a block of `copying`, which gives what gets the number of partitions
    that have moved since the last call. The timeout of `side` is for single requests.
    """
    began_s = time.monotonic()
    while found.known:
        if found.plan:  # otherwise the reassignments under way move all
            _begin(side, found.plan, throttle)
        with copying(found) as advance:
            _await_moved(side, found, advance, timeout_s, began_s)
        # a topic may have been created before the change began
        found = find_replicas(side, found.broker_id)
    return found


def _await_moved(
    side: Side,
    found: BrokerReplicas,
    advance: Callable[[int], None],
    timeout_s: float | None,
    began_s: float,  # from which `timeout_s` counts, on the monotonic clock
) -> None:
    """Wait until no partition has a replica on a broker, and their changes have ended."""
    moving = found.known.keys()
    started_s = answered_s = time.monotonic()
    moved = 0
    while True:
        now_s = time.monotonic()
        try:
            under_way = {one.partition for one in reassignment.list_reassignments(side).changes}
            left = _left(side, found.broker_id, moving)
            answered_s = now_s
        except errors.BrokerError as error:
            is_refusal = isinstance(error, errors.ServerError) and not isinstance(
                error, (errors.NotControllerError, errors.RequestTimedOutError)
            )
            if is_refusal or now_s - answered_s > _PATIENCE_S:
                raise
        else:
            waiting = (under_way & moving) | left
            advance(len(moving) - len(waiting) - moved)
            moved = len(moving) - len(waiting)
            if not waiting:
                return
            if not under_way & moving and now_s - started_s > _PATIENCE_S:
                raise errors.ConflictError(
                    f"{len(left)} partitions stay on broker {found.broker_id}: their change was "
                    "cancelled, or replaced by another one",
                    hints=["try: pylogctl topic reassign status"],
                )
        if timeout_s is not None and now_s - began_s > timeout_s:
            raise errors.RequestTimeoutError(
                f"{len(moving) - moved} of {len(moving)} partitions are still being copied "
                f"after {timeout_s:g}s; that goes on",
                hints=["try: pylogctl topic reassign status"],
            )
        time.sleep(_POLL_S)


def _left(side: Side, broker_id: int, moving: Set[TopicPartition]) -> set[TopicPartition]:
    """Return those of some partitions that have a replica on a broker."""
    metadata = side.metadata(sorted({one.topic for one in moving}))
    return {
        one.partition
        for one in metadata.partitions
        if one.partition in moving and broker_id in one.replicas
    }


def decommission(
    side: Side,
    broker_id: int,
    *,
    throttle: int | None = None,  # None leaves it as it is
    is_dry_run: bool = False,
    timeout_s: float | None,
) -> Decommission:
    """Move all replicas away from a broker, and return what has moved once that is done.

    `PartialError` if partitions without replicas stay. The timeout of `side` is for each request.
    """
    found = find_replicas(side, broker_id)
    moves = found.moves

    @contextmanager
    def copying(found: BrokerReplicas) -> Iterator[Callable[[int], None]]:
        moves.update(found.moves)
        yield lambda _: None

    if not is_dry_run:
        found = move_all(side, found, copying, throttle=throttle, timeout_s=timeout_s)
    done = tuple(moves[one] for one in sorted(moves))
    if found.plain and not is_dry_run:
        raise _staying(found, done)
    waiting = tuple(one.partition for one in found.leaderless)
    return Decommission(broker_id, found.is_live, done, waiting, found.plain)


def _staying(found: BrokerReplicas, done: tuple[Move, ...]) -> errors.PartialError:
    where = f"without replicas stay on broker {found.broker_id}"
    failed = {
        topic: errors.NotReplicatedError(
            f"{count} partitions of topic '{topic}' {where}",
            hints=["give it replicas, which the next decommission moves"],
        )
        for topic, count in sorted(found.plain.items())
    }
    return errors.PartialError(f"{sum(found.plain.values())} partitions {where}", done, failed)
