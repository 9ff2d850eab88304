"""Progress of replica reassignments, and whether their throttle lets them finish."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

from broker.admin.topic_facts import PartitionFacts, TopicFacts
from broker.client.cluster import Cluster
from broker.protocol.cluster_requests import PartitionReassignment
from broker.protocol.responses import PartitionMetadata
from broker.topic import TopicPartition
from broker.units import format_size
from pylogctl.cli.connections import connector
from pylogctl.cli.context import Environment
from pylogctl.cli.render import render
from pylogctl.topic.document import REASSIGN_STATUS, ReassignStatusRow, name_of
from pylogctl.topic.reassign import format_throttle, list_reassignments
from pylogctl.topic.replication import replicas_of

_SAMPLE_S = 1.0
"""The time over which the rate of arriving messages is measured."""

_Facts = Mapping[TopicPartition, PartitionFacts]


def show_status(env: Environment, cluster: Cluster, topics: Sequence[str]) -> None:
    """Render the reassignments under way, of `topics` or all, with the bytes left to copy."""
    throttle, changes = list_reassignments(env, cluster)
    known = replicas_of(env, cluster, topics or sorted({one.partition.topic for one in changes}))
    changes = tuple(sorted(one for one in changes if one.partition in known))
    began_s = time.monotonic()
    facts = _facts(env, cluster, [known[one.partition] for one in changes], reports=True)
    rows = [_row(one, known[one.partition], facts[one.partition], throttle) for one in changes]
    render(env, REASSIGN_STATUS, rows)
    copied = {one.partition: ids for one in changes if (ids := _added(one, known[one.partition]))}
    if not throttle or not copied:
        return
    # Warn of brokers that may copy no faster than messages arrive.
    env.flush()
    time.sleep(_SAMPLE_S)
    later = _facts(env, cluster, [known[one] for one in copied], reports=False)
    elapsed_s = time.monotonic() - began_s
    arriving: Counter[int] = Counter()
    for partition, broker_ids in copied.items():
        before, after = (one[partition].ends for one in (facts, later))
        if before is not None and after is not None:
            for broker_id in broker_ids:
                arriving[broker_id] += max(0, after.end - before.end)
    for broker_id, count in sorted(arriving.items()):
        if count / elapsed_s >= throttle:
            env.warn(
                f"broker {broker_id} cannot catch up: {format_size(count / elapsed_s)}/s arrive in "
                f"the partitions that it copies with {format_throttle(throttle)}; raise that: "
                "pylogctl topic reassign throttle --throttle RATE"
            )


def _facts(
    env: Environment, cluster: Cluster, known: Sequence[PartitionMetadata], *, reports: bool
) -> _Facts:
    """Return what leaders report; with `reports`, leaders that do not respond are errors."""
    with TopicFacts(cluster, connector(env)) as source:
        found = {one.partition: source.describe_replicated(one) for one in known}
        if reports:
            for error in (*source.failures, *source.unreadable):
                env.leave_out(str(error))
    return found


def _added(change: PartitionReassignment, known: PartitionMetadata) -> list[int]:
    """Return the brokers whose copies the throttle limits."""
    original, target = change.reassignment
    return [one for one in target if one not in original and one not in known.isr]


def _row(
    change: PartitionReassignment,
    known: PartitionMetadata,
    facts: PartitionFacts,
    throttle: int,
) -> ReassignStatusRow:
    original, target = change.reassignment
    missing = [one for one in target if one not in known.isr]
    left, size = _left(missing, facts)
    return ReassignStatusRow(
        name_of(change.partition),
        ",".join(map(str, original)),
        ",".join(map(str, target)),
        ",".join(map(str, missing)),
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
