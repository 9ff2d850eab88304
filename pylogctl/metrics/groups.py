"""`pylogctl metrics serve`: groups as an observer outside sees them, for Prometheus."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from broker.admin.groups import list_groups
from broker.admin.lag import GroupLag, GroupObserver, LagStatus, ObservedPartition, total
from broker.errors import BrokerError
from broker.exposition import exposition_text
from broker.metrics import ManagedObject, Reading, counter, gauge
from broker.metrics_server import served_metrics
from broker.units import ListenAddress
from pylogctl.cli.connections import connector, open_registry
from pylogctl.cli.environment import Environment
from pylogctl.cli.logs import set_up_logging
from pylogctl.cli.process import graceful_stop

logger = logging.getLogger(__name__)


class _Topic(NamedTuple):
    """What a group has to read in a topic; an age is unknown until the lag was 0 in the window."""

    partitions: Sequence[ObservedPartition]

    @property
    def oldest_s(self) -> float | None:
        return max((one.age_s for one in self.partitions if one.age_s is not None), default=None)


@dataclass(slots=True)
class LookCounts:
    """How the looks at groups went."""

    lags: Sequence[GroupLag] = ()  # of the last one, none if that failed
    last_ms: int | None = None  # when the last one succeeded
    failure_count: int = 0
    is_failing: bool = False


LOOKS: ManagedObject[LookCounts] = ManagedObject(
    "GroupObserver",
    gauge("LastLookMs", lambda it: it.last_ms,
        "when all groups were looked at last", unit="ms",
        series="group_observation_timestamp_seconds"),
    counter("FailedLooks", lambda it: it.failure_count,
        "looks at the groups that failed: ZooKeeper, or each broker",
        series="group_observation_failures_total"),
)  # fmt: skip
GROUP: ManagedObject[GroupLag] = ManagedObject(
    "Group.{group}",
    gauge("Members", lambda it: len(it.snapshot.members), "members", series="group_members"),
    gauge("CommitAgeMs", lambda it: _commit_age_ms(it),
        "time since the group has committed an offset", unit="ms",
        series="group_commit_age_seconds"),
)  # fmt: skip
STATUS: ManagedObject[bool] = ManagedObject(
    "GroupStatus.{group}-{status}",
    gauge("Status", int, "1 for the worst status of its partitions, 0 for the others",
        series="group_status"),
)  # fmt: skip
TOPIC: ManagedObject[_Topic] = ManagedObject(
    "GroupTopic.{group}-{topic}",
    gauge("Lag", lambda it: total(one.lag_bytes for one in it.partitions),
        "bytes that are not consumed yet", unit="bytes", series="group_lag_bytes"),
    gauge("OldestUnread", lambda it: it.oldest_s,
        "age of the oldest message that is not consumed yet", unit="seconds",
        series="group_oldest_unread_seconds"),
)  # fmt: skip
PARTITION: ManagedObject[ObservedPartition] = ManagedObject(
    "GroupPartition.{group}-{topic}-{partition}",
    gauge("PartitionLag", lambda it: it.lag_bytes,
        "bytes of a partition that are not consumed yet", unit="bytes",
        series="group_partition_lag_bytes"),
)  # fmt: skip
_STATUSES = [one for one in LagStatus if one is not LagStatus.IDLE]  # which is of a member


def _commit_age_ms(lag: GroupLag) -> int | None:
    commits_ms = [one.commit_ms for one in lag.snapshot.offsets.values()]
    return max(0, lag.time_ms - max(commits_ms)) if commits_ms else None


def readings(looks: LookCounts, *, with_partitions: bool = True) -> Iterator[Reading]:
    """Yield the metrics of groups."""
    yield Reading(LOOKS, looks)
    for lag in looks.lags:
        group, found = lag.snapshot.name, lag.status()
        yield Reading(GROUP, lag, (group,))
        for status in _STATUSES:
            yield Reading(STATUS, status is found, (group, status))
        for topic, partitions in groupby(lag.partitions, lambda one: one.partition.topic):
            yield Reading(TOPIC, of_topic := _Topic(list(partitions)), (group, topic))
            if with_partitions:
                for one in of_topic.partitions:
                    yield Reading(PARTITION, one, (group, topic, one.partition.name))


def serve_groups(
    env: Environment,
    where: ListenAddress,
    *,
    interval_s: float,
    window_ms: int,
    with_partitions: bool,
) -> None:
    """Look at all groups each `interval_s` and serve what was seen, until a signal comes."""
    looks = LookCounts()

    def text() -> str:
        return exposition_text(readings(looks, with_partitions=with_partitions))

    with open_registry(env) as registry, served_metrics(text, where) as address:
        set_up_logging(env, None)
        observer = GroupObserver(registry, connector(env), env.clock, window_ms)
        _look(observer, looks)
        with graceful_stop() as stop:
            env.note(f"metrics at {address}")
            while not stop.wait(interval_s):
                _look(observer, looks)


def _look(observer: GroupObserver, looks: LookCounts) -> None:
    """Look at all groups; nothing is known of them after a failure."""
    try:
        groups = list_groups(observer.session)
        looks.lags = observer.lag(*groups, ages=True)
    except BrokerError as error:
        if not looks.is_failing:
            logger.warning("groups cannot be observed: %s", error)
        looks.failure_count += 1
        looks.lags = ()
        looks.is_failing = True
    else:
        looks.last_ms = observer.clock.time_ms()
        if looks.is_failing:
            logger.info("groups are observed again")
        looks.is_failing = False
