"""Plans which brokers are to have the replicas of partitions; no I/O.

A plan moves as little as it can: a replica stays where it may stay, and others go to the brokers
with the fewest, in racks that the partition is not in yet. Its first replica, the preferred leader,
stays first if it stays; the others take turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from broker.errors import InvalidReplicationFactorError
from broker.topic import TopicPartition

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
    for partition, replicas in sorted(present.items()):
        kept = [one for one in replicas if one in racks]
        targets[partition] = kept[: replication_factor or len(replicas)]
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
