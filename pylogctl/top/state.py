"""What is known of a cluster by the last looks at it, and what has changed between them.

Pure: answers are taken as they come, times are passed in. Rates are differences of two looks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, NamedTuple

from broker.admin.cluster import merged
from broker.admin.groups import GroupSnapshot
from broker.admin.lag import GroupLag, LagSamples, total
from broker.admin.lag import partitions_of as partitions_of_group
from broker.admin.topics import Ends
from broker.ids import NO_CONTROLLER, NO_LEADER
from broker.protocol.extension_requests import StatusParts
from broker.protocol.responses import ClusterMetadataResponse, PartitionMetadata
from broker.topic import NO_HOME, TopicPartition

WINDOW_MS = 60_000
"""Of the samples that statuses of groups are judged by."""
_METADATA_EVERY_S = 5.0
_TREND_LOOKS = 120
_EVENTS = 50
_CHANGES = 5
_LIGHT_LOOK_S, _HEAVY_LOOK_S = 25e-6, 45e-6
"""What a look costs a broker for each of its partitions: without and with figures of each."""
_LOG = "logs."

Numbers = Mapping[str, Any]


class BrokerAnswer(NamedTuple):
    """What a broker answered to a look; `document` is None of a 0.7 broker, and with an error."""

    broker: int
    address: str  # for clients, `host:port`
    asked_s: float  # monotonic, as all times in seconds here
    time_s: float
    parts: StatusParts = StatusParts(0)
    topic: str = ""  # the only one it was asked for; empty: all
    document: Mapping[str, Any] | None = None
    metadata: ClusterMetadataResponse | None = None  # if it was asked for
    error: str = ""


class GroupsAnswer(NamedTuple):
    """The groups as ZooKeeper has them; `snapshots` is None with an error."""

    time_s: float
    snapshots: tuple[GroupSnapshot, ...] | None
    error: str = ""


class BrokerState(NamedTuple):
    """The last answer of a broker, and the one before it, of the same process."""

    last: BrokerAnswer  # of a broker that never answered: the failure
    before: BrokerAnswer | None = None
    silent_since_s: float | None = None
    error: str = ""  # why it is silent

    @property
    def is_silent(self) -> bool:
        """Whether it did not answer when it was last asked."""
        return self.silent_since_s is not None

    @property
    def document(self) -> Mapping[str, Any]:
        """The last status; empty if there is none."""
        return self.last.document or {}

    @property
    def metrics(self) -> Mapping[str, Numbers]:
        """The metrics of the last status, by object."""
        found: Mapping[str, Numbers] = self.document.get("metrics", {})
        return found

    def value(self, name: str, attribute: str) -> Any:
        """Return an attribute of an object; None if it is not known."""
        return self.metrics.get(name, {}).get(attribute)

    @property
    def elapsed_s(self) -> float | None:
        """The time between the last two looks; None if there were no two."""
        return None if self.before is None else self.last.time_s - self.before.time_s

    def rate(self, name: str, attribute: str, part: StatusParts) -> float | None:
        """Return by how much a counter grows a second; None if two looks with `part` lack."""
        before = self.before
        if before is None or self.is_silent or not part & before.parts & self.last.parts:
            return None
        new = self.value(name, attribute)
        old = (before.document or {}).get("metrics", {}).get(name, {}).get(attribute, 0)
        elapsed_s = self.elapsed_s
        return None if new is None or not elapsed_s else round((new - old) / elapsed_s, 3)

    def times(self, request: str, part: str) -> Times | None:
        """Return how long a part of requests took since the look before, None if not known."""
        before = (self.before.document or {}) if self.before is not None else {}
        looks = [one.get("requests") for one in (self.document, before)]
        if None in looks:
            return None
        new, old = (one["times"].get(request, {}).get(part) for one in looks if one is not None)
        if new is None or old is None:
            return None
        counts = [a - b for a, b in zip(new["counts"], old["counts"], strict=True)]
        bounds_s = self.document["requests"]["bounds_s"]
        return Times(bounds_s, counts, new["total_s"] - old["total_s"])

    def logs(self) -> Iterator[tuple[TopicPartition, Numbers]]:
        """Yield the figures of its logs, if the last status has them."""
        for name, figures in self.metrics.items():
            if name.startswith(_LOG):
                rest = name.removeprefix(_LOG)
                topic = rest.rpartition("[" if rest.endswith("]") else "-")[0]
                yield TopicPartition.named(topic, figures["Name"]), figures

    def log_rate(self, partition: TopicPartition, attribute: str) -> float | None:
        """Return by how much a figure of a log here grows a second, as `rate` does."""
        one, at = partition, self.document.get("broker")
        away = f"{_LOG}{one.topic}[{one.name}]"
        name = f"{_LOG}{one.topic}-{one.index}" if one.home in (NO_HOME, at) else away
        return self.rate(name, attribute, StatusParts.LOGS)

    def replicas(self) -> Mapping[TopicPartition, Numbers]:
        """Return the records of its replicas, if the last status has them."""
        return _replicas_of(self.last)

    def replicas_before(self) -> Mapping[TopicPartition, Numbers]:
        """Return the records of the look before."""
        return {} if self.before is None or self.is_silent else _replicas_of(self.before)


def _replicas_of(answer: BrokerAnswer) -> Mapping[TopicPartition, Numbers]:
    found = {}
    for one in (answer.document or {}).get("replicas", ()):
        found[TopicPartition.named(one["topic"], one["partition"])] = one
    return found


class Times(NamedTuple):
    """How long the requests of a group took since the look before, in buckets."""

    bounds_s: Sequence[float]  # inclusive upper ends
    counts: Sequence[int]  # one more, of those above the last bound
    total_s: float

    @property
    def event_count(self) -> int:
        """How many there were."""
        return sum(self.counts)

    def quantile_s(self, share: float) -> float | None:
        """Return below which time this share of them was, within its bucket; None without any."""
        left, lower_s = share * self.event_count, 0.0
        for bound_s, count in zip(self.bounds_s, self.counts, strict=False):
            if count and left <= count:
                return round(lower_s + (bound_s - lower_s) * left / count, 6)
            left, lower_s = left - count, bound_s
        return lower_s if self.event_count else None


def times_of(brokers: Iterable[BrokerState], request: str, part: str) -> Times | None:
    """Return the times of a part (queue, local, remote, send or total) at some brokers together."""
    found: Times | None = None
    for broker in brokers:
        one = None if broker.is_silent else broker.times(request, part)
        if found is None or one is None:
            found = found or one
            continue
        counts = [a + b for a, b in zip_longest(found.counts, one.counts, fillvalue=0)]
        found = Times(one.bounds_s, counts, found.total_s + one.total_s)
    return found


def sum_of_known(rates: Iterable[float | None]) -> float | None:
    """Return the sum of the rates that are known; None if none is."""
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 3) if known else None


class TopEvent(NamedTuple):
    """Something that changed."""

    time_ms: int
    text: str


@dataclass
class TopState:
    """All that is known; its parts are replaced, never changed, so that `copy` is cheap."""

    has_zookeeper: bool = False  # groups are read
    brokers: dict[int, BrokerState] = field(default_factory=dict)
    metadata: dict[int, ClusterMetadataResponse] = field(default_factory=dict)
    groups: tuple[GroupLag, ...] | None = None  # None until they are known
    groups_error: str = ""
    trends: dict[tuple[str, str], tuple[float | None, ...]] = field(default_factory=dict)
    events: tuple[TopEvent, ...] = ()
    changes: dict[TopicPartition, tuple[TopEvent, ...]] = field(default_factory=dict)
    """The last changes of each partition's leader and in-sync replicas."""
    _metadata_s: float = -_METADATA_EVERY_S
    _snapshots: GroupsAnswer | None = None  # whose partitions' ends are not known yet
    _samples: LagSamples = field(default_factory=lambda: LagSamples(WINDOW_MS))

    def copy(self) -> TopState:
        """Return what is known now, which further answers do not change."""
        return replace(
            self,
            brokers=dict(self.brokers),
            metadata=dict(self.metadata),
            trends=dict(self.trends),
            changes=dict(self.changes),
        )

    @property
    def cluster(self) -> ClusterMetadataResponse | None:
        """What the brokers know of the cluster; None if nothing is known."""
        return merged(list(self.metadata.values())) if self.metadata else None

    def partitions(self) -> list[PartitionMetadata]:
        """Return all partitions of all topics that are known."""
        return [] if self.cluster is None else self.cluster.partitions

    @property
    def wants_logs(self) -> bool:
        """Whether the figures of all logs are needed, for the ends of what groups read."""
        return self._snapshots is not None

    def least_interval_s(self, parts: StatusParts) -> float:
        """Return the interval by which looks cost no broker more than 1 % of a core."""
        count = max((one.document.get("partitions", 0) for one in self.brokers.values()), default=0)
        is_heavy = parts & (StatusParts.LOGS | StatusParts.REPLICAS)
        return float(count * 100 * (_HEAVY_LOOK_S if is_heavy else _LIGHT_LOOK_S))

    def metadata_sources(self, ids: Iterable[int], now_s: float) -> frozenset[int]:
        """Return which of the brokers with these ids to ask for metadata now."""
        silent = {id for id, one in self.brokers.items() if one.is_silent}
        live = sorted(set(ids) - silent)
        if now_s - self._metadata_s < _METADATA_EVERY_S:
            return frozenset()
        self._metadata_s = now_s
        cluster = self.cluster
        return frozenset(live[:1] if cluster is not None and cluster.cluster_id else live)

    def take(self, answer: BrokerAnswer | GroupsAnswer, now_ms: int) -> None:
        """Take an answer; `now_ms` since 1970 is the time of events."""
        if isinstance(answer, GroupsAnswer):
            self.groups_error = answer.error
            if answer.snapshots is not None:
                self._snapshots = answer
            return
        old = self.brokers.get(answer.broker)
        if answer.error:
            self._note_silence(answer, old, now_ms)
            return
        if old is not None and old.is_silent:
            self._note(now_ms, f"broker {answer.broker} is back")
            self._metadata_s = -_METADATA_EVERY_S
        is_same = old is not None and old.document.get("started_ms") == (answer.document or {}).get(
            "started_ms"
        )
        before = old.last if old is not None and is_same and not old.is_silent else None
        self.brokers[answer.broker] = BrokerState(answer, before)
        if answer.metadata is not None:
            self._take_metadata(answer.broker, answer.metadata, now_ms)

    def _note_silence(self, answer: BrokerAnswer, old: BrokerState | None, now_ms: int) -> None:
        if old is None or not old.is_silent:
            self._note(now_ms, f"broker {answer.broker} lost: {answer.error}")
            self._metadata_s = -_METADATA_EVERY_S
        if old is None:
            self.brokers[answer.broker] = BrokerState(answer, None, answer.asked_s, answer.error)
            return
        since_s = old.last.time_s if old.silent_since_s is None else old.silent_since_s
        self.brokers[answer.broker] = old._replace(silent_since_s=since_s, error=answer.error)

    def _take_metadata(self, broker: int, new: ClusterMetadataResponse, now_ms: int) -> None:
        old = self.cluster
        if new.cluster_id:
            self.metadata = {broker: new}
        else:
            self.metadata[broker] = new
        if old is None or not new.cluster_id:
            return
        if old.controller_id != new.controller_id:
            now = "none" if new.controller_id == NO_CONTROLLER else f"broker {new.controller_id}"
            self._note(now_ms, f"the controller is {now}, it was broker {old.controller_id}")
        self._note_changes(old.partitions, new.partitions, now_ms)
        leaders = {one.partition: one.leader for one in old.partitions}
        known = (one for one in new.partitions if one.partition in leaders)
        changed = [one for one in known if leaders[one.partition] != one.leader]
        for is_led, what in ((True, "new leaders"), (False, "no leader")):
            found = [str(one.partition) for one in changed if is_led is (one.leader != NO_LEADER)]
            if found:
                some = ", ".join(found[:2]) + ", ..." * (len(found) > 2)
                self._note(now_ms, f"{what}: {len(found)} partitions ({some})")
        before, after = ({one.topic for one in each.topics} for each in (old, new))
        for names, what in ((after - before, "new"), (before - after, "gone")):
            for name in sorted(names):
                self._note(now_ms, f"topic {name} is {what}")

    def _note_changes(
        self, before: Iterable[PartitionMetadata], after: Iterable[PartitionMetadata], now_ms: int
    ) -> None:
        known = {one.partition: one for one in before}
        for one in after:
            old = known.get(one.partition, one)
            texts = []
            if one.leader != old.leader:
                now = "no leader" if one.leader == NO_LEADER else f"led by {one.leader}"
                texts.append(f"{now}, before {old.leader}")
            if set(one.isr) != set(old.isr):
                texts.append(f"in sync {_ids(one.isr)}, before {_ids(old.isr)}")
            if texts:
                event = TopEvent(now_ms, "; ".join(texts))
                noted = (*self.changes.get(one.partition, ()), event)
                self.changes[one.partition] = noted[-_CHANGES:]

    def _note(self, now_ms: int, text: str) -> None:
        self.events = (*self.events, TopEvent(now_ms, text))[-_EVENTS:]

    def end_look(self, now_ms: int) -> None:
        """Add the rates of this look to the trends, and judge groups whose ends are known."""
        rates: dict[tuple[str, str], float | None] = {
            ("cluster", ""): self.total_rate("BrokerAllTopicStat", "BytesIn")
        }
        if self._snapshots is not None and self._has_ends_of(self._snapshots):
            self.groups = tuple(self._lags(self._snapshots, now_ms))
            self._snapshots = None
            rates |= {("group", one.snapshot.name): one.lag_bytes for one in self.groups}
        if any(one.last.parts & StatusParts.TOPICS for one in self.brokers.values()):
            for topic in self.topic_names():
                name = f"BrokerTopicStat.{topic}"
                rates["topic", topic] = self.total_rate(name, "BytesIn", StatusParts.TOPICS)
        for key, rate in rates.items():
            self.trends[key] = (*self.trends.get(key, ()), rate)[-_TREND_LOOKS:]

    def topic_names(self) -> list[str]:
        """Return the known topics, by name."""
        cluster = self.cluster
        return [] if cluster is None else sorted(one.topic for one in cluster.topics)

    def total_rate(
        self, name: str, attribute: str, part: StatusParts = StatusParts.METRICS
    ) -> float | None:
        """Return the rate of a counter over all brokers that tell; None if none does."""
        return sum_of_known(one.rate(name, attribute, part) for one in self.brokers.values())

    def total(self, name: str, attribute: str) -> int | None:
        """Return the sum of an attribute over all brokers that answer; None if none does."""
        live = (one for one in self.brokers.values() if not one.is_silent)
        return total(one.value(name, attribute) for one in live)

    def _has_ends_of(self, groups: GroupsAnswer) -> bool:
        answers = [one.last for one in self.brokers.values() if not one.is_silent]
        return bool(self.metadata) and all(
            one.asked_s >= groups.time_s and one.parts & StatusParts.LOGS and not one.topic
            for one in answers
        )

    def _lags(self, groups: GroupsAnswer, now_ms: int) -> Iterator[GroupLag]:
        live: dict[str, list[TopicPartition]] = {}
        leaders: dict[TopicPartition, int] = {}
        for one in self.partitions():
            if one.leader != NO_LEADER:
                live.setdefault(one.partition.topic, []).append(one.partition)
                leaders[one.partition] = one.leader
        answering = {id for id, one in self.brokers.items() if not one.is_silent}
        # one without messages has no log yet
        ends = {one: Ends(0, 0) for one, leader in leaders.items() if leader in answering}
        for id in answering:
            for partition, log in self.brokers[id].logs():
                if leaders.get(partition) == id:
                    ends[partition] = Ends(log["LogStartOffset"], log["CurrentOffset"])
        snapshots = groups.snapshots or ()
        self._samples.keep({one.name for one in snapshots})
        for snapshot in snapshots:
            lags = [
                self._samples.observe(
                    snapshot, one, ends.get(one), exists=one in leaders, time_ms=now_ms
                )
                for one in partitions_of_group(snapshot, live)
            ]
            yield GroupLag(snapshot, lags, now_ms)


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, sorted(brokers))) or "none"


def clock_text(time_ms: int) -> str:
    """Return a time of day in UTC, as all times that commands show."""
    return time.strftime("%H:%M:%SZ", time.gmtime(time_ms / 1000))
