"""Topics and their partitions: sizes, leaders, replicas, offsets, segments, number of messages.

Each broker is asked a few times, over one connection, however many topics there are. After a broker
failed to respond it is not asked again.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Annotated, Any, NamedTuple, TypeVar

from broker import deadlines, errors
from broker.admin.sampling import Sampler
from broker.client.controller_client import cluster_metadata
from broker.client.selection import find_partitions, topic_without_partitions
from broker.client.side import Side
from broker.consumer.boundaries import BoundaryFinder
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import naming_partition
from broker.ids import NO_LEADER
from broker.protocol.codec import Message, make_message, scan
from broker.protocol.extension_requests import StatusParts, StatusRequest
from broker.protocol.layouts import DATA
from broker.protocol.message_set import slice_messages
from broker.protocol.read_message import messages_of_records
from broker.protocol.responses import BrokerAddress, PartitionMetadata
from broker.records import HIDDEN, UNTOLD, Bytes, Count, Fit, Integer, Moment, Rank, Text, Title
from broker.times import moment
from broker.topic import (
    FORMAT_07,
    FORMAT_KAFKA,
    NO_HOME,
    MessagePosition,
    ReadRange,
    TopicPartition,
    validate_topic_name,
)

_DAY_MS = 86_400_000
# Each a percent less than the one before, of a century to a second.
_AGES_MS = [round(1000 * 1.01**power) for power in reversed(range(2200))]
_T = TypeVar("_T")
Topics = Mapping[str, Sequence[PartitionMetadata]]
_STATUS = StatusRequest(StatusParts.SETTINGS | StatusParts.REPLICAS | StatusParts.LOGS)
_SILENCE = (errors.BrokerUnreachableError, errors.RequestTimeoutError)
_NO_FACTS = (*_SILENCE, errors.StorageError, errors.OffsetNotAvailableError)
_NEXT_TERM_S = 2.0
"""How long a broker is asked again that does not lead, though METADATA says so: orders come."""
_ASK_AGAIN_S = 0.05


class Ends(NamedTuple):
    """The first offset of a partition, and the offset after its last readable message."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic."""

    name: Annotated[str, "name of the topic"]
    partitions: Annotated[Count, "number of partitions, also of those without a leader"]
    replicas: Annotated[Integer, "copies of each partition; none if it has no replicas"]
    brokers: Annotated[
        tuple[int, ...], "ids of the brokers that have logs of it", Fit.WRAP, Rank(2)
    ]
    size_bytes: Annotated[
        Bytes, "readable bytes; unknown if a broker does not tell", Title("SIZE"), UNTOLD
    ]
    offline: Annotated[Count, "partitions without a leader", Rank(1)] = 0
    under_replicated: Annotated[Count, "partitions with a replica that is not in sync", Rank(1)] = 0
    format: Annotated[str, "for life: 0.7 or kafka", Fit.WHOLE, Rank(2)] = FORMAT_07

    @property
    def state(
        self,
    ) -> Annotated[str, "ok, under-replicated or offline: some of its partitions", Fit.ALARM]:
        """Return the worst state of its partitions: ok, under-replicated or offline."""
        return "offline" if self.offline else "under-replicated" if self.under_replicated else "ok"


_STATES = "ok, under-replicated, below min in-sync, offline: no leader; or unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionInfo:
    """A partition; what its broker tells is None if that does not respond, as `problem` says.

    One without replicas has a single one, on its broker.
    """

    partition: TopicPartition
    leader: Annotated[Integer, "id of the broker that leads it"]
    address: Annotated[Text, "address of that broker", Fit.WHOLE, HIDDEN] = None
    replicas: Annotated[tuple[int, ...], "ids of its brokers, the preferred leader first", Fit.WRAP]
    in_sync: Annotated[
        tuple[int, ...], "ids of those that have all committed messages", Fit.WRAP, Rank(1)
    ]
    min_in_sync: Annotated[Count, "fewest of these to commit a message", HIDDEN] = 1
    leader_epoch: Annotated[
        Integer, "one higher with each change of the leader; none without replicas", HIDDEN
    ] = None
    start: Annotated[Integer, "first offset", HIDDEN, UNTOLD] = None
    end: Annotated[Integer, "offset after the last readable message", UNTOLD] = None
    segments: Annotated[Integer, "number of the leader's segment files", HIDDEN, UNTOLD] = None
    last_append: Annotated[Moment, "when messages were last written", HIDDEN] = None
    lags: Annotated[
        Mapping[int, int | None],
        "bytes that each follower is behind, in the format kafka records, by broker id; null if "
        "unknown",
        Fit.WRAP,
        HIDDEN,
    ] = field(default_factory=dict)
    settings: Annotated[
        Mapping[str, str] | None, "of the topic, where not those of brokers", Fit.WRAP, HIDDEN
    ] = None
    problem: Annotated[str, "why something is unknown", Fit.WRAP, HIDDEN] = ""
    stored_bytes: Annotated[
        Bytes, "bytes of the leader's segment files", Title("STORED"), HIDDEN, UNTOLD
    ] = None

    @property
    def format(self) -> Annotated[str, "of the topic, for life: 0.7 or kafka", Fit.WHOLE, Rank(2)]:
        """Return the format of the topic."""
        return self.partition.format

    @property
    def state(self) -> Annotated[str, _STATES, Fit.ALARM]:
        """Return ok, under-replicated, below min in-sync, offline: without a leader, or unknown."""
        if self.leader is None:
            return "offline"
        if len(self.in_sync) < self.min_in_sync:
            return "below min in-sync"
        if len(self.in_sync) < len(self.replicas):
            return "under-replicated"
        return "unknown" if self.end is None else "ok"

    @property
    def size_bytes(
        self,
    ) -> Annotated[
        Bytes, "readable bytes; in the format kafka, those stored", Title("SIZE"), UNTOLD
    ]:
        """Readable bytes, or those stored where offsets count records; None if unknown."""
        if self.format == FORMAT_KAFKA:
            return self.stored_bytes
        return None if self.start is None or self.end is None else self.end - self.start

    @property
    def lag(
        self,
    ) -> Annotated[
        Integer,
        "bytes, in the format kafka records, that the follower furthest behind lacks",
        UNTOLD,
        Rank(1),
    ]:
        """Return what the follower furthest behind lacks; None if unknown, or none is."""
        known = [lag for lag in self.lags.values() if lag is not None]
        return max(known) if known and len(known) == len(self.lags) else None


class TopicFacts:
    """Asks brokers for facts about topics; a context manager that closes its connections."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._cluster = side.cluster
        self.positions = BoundaryFinder(side.cluster, side.connect)
        self._silence: errors.BrokerError | None = None  # of all brokers
        self._silent: dict[int, errors.BrokerError] = {}  # brokers that did not respond
        self._failures: dict[int, errors.BrokerError] = {}  # those of them whose facts are missing
        self._unreadable: dict[TopicPartition, errors.BrokerError] = {}
        self._statuses: dict[int, dict[str, Any] | None] = {}
        self._give_up_s: float | None = None  # asking those that do not lead, for all partitions

    def __enter__(self) -> TopicFacts:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.positions.close()

    @property
    def failures(self) -> list[errors.BrokerError]:
        """Return an error for each broker that did not respond."""
        return list(self._failures.values())

    @property
    def unreadable(self) -> list[errors.BrokerError]:
        """Return an error for each partition without a leader, or whose log cannot be read."""
        return list(self._unreadable.values())

    def problem_of(self, partition: TopicPartition) -> errors.BrokerError | None:
        """Return why facts about a partition are missing; None if none are."""
        failure = self._failures.get(self._cluster.leader_id(partition))
        return self._unreadable.get(partition, failure)

    def brokers_of(self, partitions: Iterable[TopicPartition]) -> set[int]:
        """Return the ids of the brokers that serve partitions."""
        return {self._cluster.leader_id(partition) for partition in partitions}

    def check_any_response(self, partitions: Iterable[TopicPartition]) -> None:
        """Raise BrokerError if none of the partitions' brokers has responded."""
        if self._silence is not None:
            raise self._silence
        brokers = self.brokers_of(partitions)
        if brokers and brokers <= set(self._failures):
            raise self._failures[min(brokers)]

    def metadata(self, topics: Iterable[str]) -> Topics:
        """Return what brokers know of topics; nothing if none responds."""
        self._cluster.brokers()  # outside `try`: without any, there is nothing to ask for more
        try:
            return metadata_of(self._side, tuple(topics), self._silent)
        except _SILENCE as error:
            self._silence = error
            return {}

    def describe_topic(self, topic: str, known: Topics, *, now_ms: int) -> list[PartitionInfo]:
        """Return all partitions of a topic, which `metadata` told of.

        `TopicNotFoundError` if there are no partitions. `now_ms` is since 1970.
        """
        found = [self._describe_known(one, now_ms) for one in sorted(known.get(topic, ()))] or [
            self.describe(one, now_ms=now_ms) for one in find_partitions(self._cluster, [topic]).led
        ]
        problems = [self.problem_of(one.partition) for one in found]
        return [
            one if problem is None else replace(one, problem=str(problem))
            for one, problem in zip(found, problems, strict=True)
        ]

    def _describe_known(self, known: PartitionMetadata, now_ms: int) -> PartitionInfo:
        if known.is_replicated:
            return self.describe_replicated(known)
        if self._is_led(known):
            return self.describe(known.partition, now_ms=now_ms)
        return PartitionInfo(
            partition=known.partition, leader=None, replicas=known.replicas, in_sync=known.isr
        )

    def _is_led(self, known: PartitionMetadata) -> bool:
        """Whether a partition has a leader; note why not."""
        if known.leader == NO_LEADER:
            self._unreadable[known.partition] = _without_leader(known.isr)
        return known.leader != NO_LEADER

    def describe_replicated(self, known: PartitionMetadata) -> PartitionInfo:
        """Return a partition with replicas, most of it from its leader.

        A leader between two of its terms, or not told yet that it leads, is asked again, for two
        seconds over all partitions.
        """
        partition = known.partition
        leader, record = None, None
        while record is None:
            self._cluster.note_leader(partition, known.leader)
            try:
                leader = self._leader_of(known)
                record = self._replica_record(leader, partition)
            except _NO_FACTS as error:
                self._failures[known.leader] = error
                break
            except errors.LeaderNotAvailableError as error:
                self._unreadable[partition] = error
                break
            except errors.NotLeaderError as error:
                now_s = time.monotonic()
                self._give_up_s = self._give_up_s or now_s + _NEXT_TERM_S
                if now_s >= self._give_up_s:
                    self._unreadable[partition] = error
                    break
                time.sleep(_ASK_AGAIN_S)
                self._statuses.pop(known.leader, None)
                now = self.metadata([partition.topic]).get(partition.topic, ())
                known = next((one for one in now if one.partition == partition), known)
        found = PartitionInfo(
            partition=partition,
            leader=None if leader is None else leader.id,
            address=None if leader is None else leader.text,
            replicas=known.replicas,
            in_sync=known.isr,
            min_in_sync=known.min_isr,
            leader_epoch=known.leader_epoch,
            lags={id: None for id in known.replicas if leader is None or id != leader.id},
            settings=self._settings_of(partition.topic),
        )
        if leader is None or record is None:
            return found
        return replace(
            found,
            start=record["log_start"],
            end=record["high_watermark"],
            segments=record["segments"],
            last_append=moment(record["last_append_ms"]),
            lags={**found.lags, **{int(id): lag for id, lag in record["lags"].items()}},
            stored_bytes=self._log_figure(partition, leader, "Size"),
        )

    def _leader_of(self, known: PartitionMetadata) -> BrokerAddress:
        """Return the address of the leader; raise if there is none, or it is not live."""
        if known.leader == NO_LEADER:
            raise _without_leader(known.isr)
        return self._cluster.address(known.leader)

    def _replica_record(self, leader: BrokerAddress, partition: TopicPartition) -> dict[str, Any]:
        """Return the record of a partition in the status of its leader."""
        for record in (self._status(leader) or {}).get("replicas", ()):
            if (record["topic"], record["partition"]) == (partition.topic, partition.name):
                if record["role"] == "leader":
                    return dict(record)
                break
        raise errors.NotLeaderError(
            f"broker {leader.id} does not lead {partition} any more, or not yet; try again", -1
        )

    def _settings_of(self, topic: str) -> dict[str, str] | None:
        """Return the settings of a topic in effect on the first broker that responds."""
        told = next(filter(None, self._statuses.values()), None)
        for broker in self._cluster.brokers() if told is None else ():
            with suppress(*_SILENCE):
                told = told or self._status(broker)
        return None if told is None else dict(told["topic_settings"].get(topic, {}))

    def _status(self, broker: BrokerAddress) -> dict[str, Any] | None:
        """Return the status of a broker, which is asked once; None for a 0.7 broker."""
        if broker.id in self._silent:
            raise self._silent[broker.id]
        if broker.id not in self._statuses:
            with closing(self._side.connect(broker)) as connection:
                try:
                    is_07 = connection.hello() is None
                    document = b"null" if is_07 else DATA.decode(connection.call(_STATUS))
                except _SILENCE as error:
                    self._silent[broker.id] = error
                    raise
            self._statuses[broker.id] = json.loads(document)
        return self._statuses[broker.id]

    def ends(self, partition: TopicPartition) -> Ends:
        """Return the first offset and the end of a partition."""

        def ask() -> Ends:
            return Ends(self.positions.earliest(partition), self.positions.latest(partition))

        return self._ask(partition, ask)

    def ends_of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Ends]:
        """Return the ends of those partitions whose brokers tell them."""
        led: dict[int, list[TopicPartition]] = {}
        for one in partitions:
            led.setdefault(self._cluster.leader_id(one), []).append(one)
        found: dict[TopicPartition, Ends] = {}
        for some in led.values():
            with suppress(*_NO_FACTS, errors.LeaderNotAvailableError):
                told = self._ask(some[0], partial(self.positions.readable, some))
                found |= {one: Ends(*ends) for one, ends in told.items()}
            for one in some:
                if one not in found:
                    with suppress(*_NO_FACTS, errors.LeaderNotAvailableError):
                        found[one] = self.ends(one)
        return found

    def summaries(self, topics: Topics) -> tuple[list[TopicInfo], dict[TopicPartition, Ends]]:
        """Return the topics, and the ends of those partitions whose brokers tell them."""
        led = [one for some in topics.values() for one in some if self._is_led(one)]
        for one in led:
            self._cluster.note_leader(one.partition, one.leader)
        ends = self.ends_of([one.partition for one in led])
        infos = []
        for topic, partitions in topics.items():
            known = [self._readable_bytes(one, ends.get(one.partition)) for one in partitions]
            size = sum(one for one in known if one is not None)
            infos.append(shape_of(topic, partitions, None if None in known else size))
        return infos, ends

    def _readable_bytes(self, known: PartitionMetadata, ends: Ends | None) -> int | None:
        """Return the bytes of a partition; None if its broker does not tell."""
        if ends is None or known.partition.format != FORMAT_KAFKA:
            return None if ends is None else ends.end - ends.start
        one = known.partition

        def ask() -> int | None:
            return self._log_figure(one, self._cluster.leader(one), "Size")

        with suppress(*_NO_FACTS):  # its offsets count records
            return self._ask(one, ask)
        return None

    def describe(self, partition: TopicPartition, *, now_ms: int) -> PartitionInfo:
        """Return an existing partition without replicas; `now_ms` is since 1970."""
        leader = self._cluster.leader(partition)
        alone = (leader.id,)
        silent = PartitionInfo(
            partition=partition,
            leader=leader.id,
            address=leader.text,
            replicas=alone,
            in_sync=alone,
        )

        def ask() -> PartitionInfo:
            starts = self.positions.segment_starts(partition)
            return replace(
                silent,
                start=starts[0],
                end=starts[-1],
                segments=self._segment_count(partition, starts),
                last_append=moment(self._last_append_ms(partition, starts, now_ms)),
                stored_bytes=self._log_figure(partition, leader, "Size"),
            )

        try:
            return self._ask(partition, ask)
        except _NO_FACTS:
            return silent

    def written_ms(self, partition: TopicPartition, offset: int, now_ms: int) -> int | None:
        """Return about when the message at an offset was written, by the times of its segment.

        None if unknown: in the first segment, which nothing tells the beginning of.
        """

        def ask() -> int | None:
            starts = self.positions.segment_starts(partition)
            index = bisect_right(starts, offset, hi=len(starts) - 1) - 1
            if index < 1:
                return None
            begun_ms, ended_ms = (
                self._modified_ms(partition, start, now_ms, is_rough=True)
                for start in starts[index - 1 : index + 1]
            )
            share = (offset - starts[index]) / (starts[index + 1] - starts[index])
            return round(begun_ms + share * (ended_ms - begun_ms))

        try:
            return self._ask(partition, ask)
        except _NO_FACTS:
            return None

    def count_messages(
        self, ends: Mapping[TopicPartition, Ends], advance: Callable[[int], None]
    ) -> int:
        """Count the messages between ends on message boundaries, as the function of this name."""
        ranges = {
            partition: ReadRange(MessagePosition(start), MessagePosition(end))
            for partition, (start, end) in ends.items()
        }
        return sum(count_messages(self._side, ranges, advance).values())

    def _ask(self, partition: TopicPartition, request: Callable[[], _T]) -> _T:
        """Ask the broker of a partition, unless it failed to respond earlier."""
        broker_id = self._cluster.leader_id(partition)
        if broker_id in self._silent:
            self._failures[broker_id] = self._silent[broker_id]
            raise self._silent[broker_id]
        try:
            return request()
        except _SILENCE as error:
            self._silent[broker_id] = self._failures[broker_id] = error
            raise
        except (errors.StorageError, errors.OffsetNotAvailableError) as error:
            self._unreadable[partition] = error
            raise

    def _segment_count(self, partition: TopicPartition, starts: Sequence[int]) -> int:
        """Return the number of segments."""
        count = self._log_figure(partition, self._cluster.leader(partition), "NumberOfSegments")
        # A 0.7 broker lists segment starts only, in which an empty last segment and the end of
        # the log look the same: an empty last segment is not counted.
        return max(1, len(starts) - 1) if count is None else count

    def _log_figure(
        self, partition: TopicPartition, leader: BrokerAddress, name: str
    ) -> int | None:
        """Return a figure of a log in the status of its leader, 0 without a log; None of 0.7's."""
        status = self._status(leader)
        if status is None:
            return None
        is_away = partition.home not in (NO_HOME, leader.id)
        end = f"[{partition.name}]" if is_away else f"-{partition.index}"
        return int(status["metrics"].get(f"logs.{partition.topic}{end}", {}).get(name, 0))

    def _last_append_ms(
        self, partition: TopicPartition, starts: Sequence[int], now_ms: int
    ) -> int | None:
        """Return the modification time of the last segment file."""
        if starts[0] == starts[-1]:
            return None
        time_ms = self._modified_ms(partition, starts[-2], now_ms)
        return time_ms if time_ms < now_ms else None

    def _modified_ms(
        self, partition: TopicPartition, start: int, now_ms: int, *, is_rough: bool = False
    ) -> int:
        """Return the modification time of the segment at an offset, at most `now_ms`.

        A rough one, at most 1 % of its age or a second too late, takes a dozen requests.
        """

        def is_written(time_ms: int) -> bool:
            found = self.positions.by_time(partition, time_ms, rounded_up=False)
            return found is not None and found >= start

        # No request returns the time. An offsets request for a time returns the segments modified
        # before it, so the time is found by bisection.
        times_ms: Sequence[int] = range(now_ms)
        if is_rough:
            times_ms = [now_ms - age_ms for age_ms in _AGES_MS if age_ms <= now_ms]
        index = bisect_left(times_ms, True, key=is_written)
        return times_ms[index] if index < len(times_ms) else now_ms


def metadata_of(
    side: Side, topics: tuple[str, ...] | None, silent: dict[int, errors.BrokerError] | None = None
) -> Topics:
    """Return the partitions of topics, of all for None; an unknown topic has none.

    One broker that knows the whole cluster is asked, where there is none all of them. The errors of
    those that do not respond are added to `silent`, by broker id.
    """
    found: dict[str, list[PartitionMetadata]] = {}
    failures: list[errors.BrokerError] = []
    for broker in (brokers := side.brokers()):
        try:
            metadata = cluster_metadata([broker], side.connect, topics)
        except (*_SILENCE, errors.UnsupportedVersionError) as error:
            failures.append(error)
            if silent is not None and isinstance(error, _SILENCE):
                silent[broker.id] = error
            continue
        if metadata.cluster_id:
            return {topic.topic: topic.partitions for topic in metadata.topics}
        for topic in metadata.topics:
            found.setdefault(topic.topic, []).extend(topic.partitions)
    if len(failures) < len(brokers):
        return found
    if all(isinstance(one, _SILENCE) for one in failures):
        raise next(iter(failures), errors.BrokerUnreachableError("there is no live broker"))
    return _metadata_of_07(side, topics)


def _metadata_of_07(side: Side, topics: tuple[str, ...] | None) -> Topics:
    """Return the partitions of topics on brokers of Kafka 0.7; a registry knows their names."""
    names = side.cluster.topics() if topics is None else topics
    if topics is None and not names:
        raise errors.UnsupportedVersionError(
            "brokers that speak only Kafka 0.7 cannot list their topics; their ZooKeeper can"
        )
    return {
        name: [
            PartitionMetadata(one, errors.NO_ERROR, one.home, (one.home,), (one.home,))
            for one in side.cluster.partitions(name)
        ]
        for name in names
    }


def _without_leader(candidates: Iterable[int]) -> errors.LeaderNotAvailableError:
    # the same text for all partitions with this cause: it is shown once
    which = " or ".join(map(str, candidates))
    return errors.LeaderNotAvailableError(f"no leader until broker {which} is back")


def brokers_of_07(side: Side) -> list[BrokerAddress]:
    """Return the brokers that know only 0.7's requests and so cannot list their topics."""
    found = []
    for broker in side.brokers():
        with closing(side.connect(broker)) as connection:
            if connection.hello() is None:
                found.append(broker)
    return found


def count_messages(
    side: Side,
    ranges: Mapping[TopicPartition, ReadRange],
    advance: Callable[[int], None],  # called with what each chunk is of the range, as offsets count
) -> dict[TopicPartition, int]:
    """Count messages by reading the ranges, which have ends; those in wrappers one by one."""
    counts = dict.fromkeys(ranges, 0)
    with ClusterReader(side.cluster, side.connect, ranges) as cluster_reader:
        for readers in cluster_reader.polls():
            for reader in readers:
                if reader.partition.has_records:
                    before = reader.offset
                    while reader.has_batches:
                        counts[reader.partition] += len(reader.take_records())
                    advance(reader.offset - before)
                    continue
                data = reader.data
                found = scan(data)
                with naming_partition(reader.partition):
                    wanted = slice_messages(
                        data, found, reader.offset, skip=reader.inner, end=reader.end
                    )
                counts[reader.partition] += wanted.message_count
                reader.take_valid(found.valid_bytes, found.fault)
                advance(found.valid_bytes)
    return counts


def list_topics(side: Side) -> list[TopicInfo]:
    """Return all topics, by name."""
    known = metadata_of(side, None)
    with TopicFacts(side) as facts:
        return facts.summaries(dict(sorted(known.items())))[0]


def topic_info(side: Side, topic: str) -> TopicInfo:
    """Return one topic; `TopicNotFoundError` if there is none of the name."""
    validate_topic_name(topic)
    found = metadata_of(side, (topic,))
    if not found.get(topic):
        raise topic_without_partitions(side.cluster, topic)
    with TopicFacts(side) as facts:
        (info,) = facts.summaries(found)[0]
        return info


def shape_of(
    topic: str, partitions: Sequence[PartitionMetadata], size_bytes: int | None
) -> TopicInfo:
    """Return what is known of a topic by its partitions."""
    replicated = [len(one.replicas) for one in partitions if one.is_replicated]
    brokers = {broker for one in partitions for broker in one.replicas}
    return TopicInfo(
        topic,
        len(partitions),
        max(replicated, default=None),
        tuple(sorted(brokers)),
        size_bytes,
        offline=sum(one.leader == NO_LEADER for one in partitions),
        under_replicated=sum(len(one.isr) < len(one.replicas) for one in partitions),
        format=partitions[0].partition.format if partitions else FORMAT_07,
    )


def until_answered(attempt: Callable[[bool], _T], give_up_s: float) -> _T:
    """Call `attempt` until a response comes; its argument is whether an earlier one was lost."""
    is_repeated = False
    while True:
        try:
            return attempt(is_repeated)
        except (errors.BrokerUnreachableError, errors.RequestTimeoutError):
            if time.monotonic() >= give_up_s:
                raise
        is_repeated = True
        time.sleep(_ASK_AGAIN_S)


def await_shown(
    side: Side,
    topic: str,
    is_shown: Callable[[Collection[TopicPartition]], bool],
    *,
    give_up_s: float,
) -> None:
    """Wait until brokers and the cluster show a change of a topic's partitions that have a leader.

    Brokers that do not respond, or know only themselves, are not waited for. `give_up_s` is on the
    monotonic clock.
    """

    def shows(broker: BrokerAddress) -> bool:
        try:
            metadata = cluster_metadata([broker], side.connect, (topic,))
        except (*_SILENCE, errors.UnsupportedVersionError):
            return True
        led = [one.partition for one in metadata.partitions if one.leader != NO_LEADER]
        return not metadata.cluster_id or is_shown(led)

    waiting = list(side.brokers())

    def look() -> str:
        waiting[:] = [broker for broker in waiting if not shows(broker)]
        if waiting:
            return ", ".join(str(broker.id) for broker in waiting)
        side.cluster.find_leaders([topic])  # it may know those of before
        return "" if is_shown(side.cluster.partitions(topic)) else "the registry"

    if where := deadlines.remaining(look, give_up_s):
        raise errors.RequestTimeoutError(
            f"the change of topic '{topic}' is made, but not shown in time by: {where}"
        )


def describe_topic(side: Side, topic: str) -> list[PartitionInfo]:
    """Return the partitions of a topic, by home and index; raise if no broker of it responds."""
    # a time that is behind the last append on the broker's clock too
    later_ms = time.time_ns() // 1_000_000 + _DAY_MS
    validate_topic_name(topic)
    with TopicFacts(side) as facts:
        found = facts.describe_topic(topic, facts.metadata([topic]), now_ms=later_ms)
        if all(one.leader_epoch is None for one in found):
            facts.check_any_response(one.partition for one in found)
        return found


def sample_of(
    side: Side, ranges: Mapping[TopicPartition, ReadRange], count: int, random: Random | None
) -> list[Message]:
    """Return up to `count` messages of each range, evenly spaced or chosen by `random`."""
    sampled = []
    with BoundaryFinder(side.cluster, side.connect) as positions:
        for one, wanted in ranges.items():
            sampler = Sampler(positions, one, random)
            if one.has_records:
                for record, _ in sampler.records(wanted, count):
                    sampled += messages_of_records(Message, one, [record], record.offset + 1)
                continue
            sampled += [
                make_message(one.topic, one, at.offset, at.next_offset, bytes(at.payload), at.inner)
                for at in sampler.sample(wanted, count)
            ]
    return sampled
