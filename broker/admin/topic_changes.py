"""Creates topics and adds partitions to them: on brokers, by the controller, by a setting.

What can be refused is refused by the plan, before anything is changed. `create` and `alter` do all
of it, and return once brokers show the change.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from broker import deadlines, errors
from broker.admin import topics
from broker.admin.brokers import request_status
from broker.admin.replicas import replicas_of
from broker.client.selection import find_partitions
from broker.client.side import Side
from broker.client.topic_creation import create_on
from broker.cluster_state import ReplicatedPartition
from broker.protocol.cluster_requests import (
    AddPartitionsRequest,
    CreateReplicatedTopicRequest,
    ReplicateTopicRequest,
    SettingText,
)
from broker.protocol.extension_requests import StatusParts
from broker.protocol.replica_requests import PARTITIONS
from broker.protocol.responses import BrokerAddress, PartitionMetadata
from broker.topic import (
    FORMAT_07,
    FORMAT_KAFKA,
    NO_HOME,
    TopicPartition,
    validate_new_topic_name,
)
from broker.topic_settings import PARTITION_COUNT, normalize, validate_for_format
from broker.units import counted

if TYPE_CHECKING:
    from broker.zk.session import Session

_T = TypeVar("_T")
_POLL_S = 0.05

PartitionsRequest = CreateReplicatedTopicRequest | AddPartitionsRequest | ReplicateTopicRequest
"""A request to the controller that makes partitions with replicas."""


class TopicCreation(NamedTuple):
    """Partitions of a topic to have on one broker; `before` is how many it has there now."""

    broker: BrokerAddress
    before: int
    partition_count: int

    @property
    def is_needed(self) -> bool:
        """Return whether the topic is missing on the broker."""
        return not self.before


class NewTopic(NamedTuple):
    """A topic to create; without a number of partitions it has one, or what its setting says."""

    name: str
    partitions: int | None = None
    is_per_broker: bool = False  # without replicas
    replicas: int | None = None
    brokers: Collection[int] = ()  # empty for all live ones
    settings: Mapping[str, str] = MappingProxyType({})
    format: str = ""  # for life; empty: `log.format` of the brokers


def with_format(side: Side, wanted: NewTopic) -> NewTopic:
    """Return what to create, with a format; in a cluster a topic of the format kafka has replicas.

    What is not given is as the settings of the first broker say that responds.
    `TopicExistsError` if the topic exists with another format than the one given.
    """
    name, format = wanted.name, wanted.format
    validate_new_topic_name(name, format=format)
    present = topics.metadata_of(side, (name,)).get(name, ())
    if format and present and (found := present[0].partition.format) != format:
        raise errors.TopicExistsError(
            f"topic '{name}' exists with the format {found}, which it has for life"
        )
    if format == FORMAT_07:
        return wanted
    if present:
        format = present[0].partition.format
    settings = _broker_settings(side)
    wanted = wanted._replace(format=format or settings.get("log.format", FORMAT_07))
    if wanted.format != FORMAT_KAFKA:
        return wanted
    validate_new_topic_name(name, format=FORMAT_KAFKA)
    if not side.metadata(()).cluster_id:
        if wanted.settings:
            raise errors.ArgumentError(
                "settings of topics are kept in ZooKeeper, of which these brokers have none"
            )
        return wanted._replace(replicas=None) if wanted.replicas == 1 else wanted
    if wanted.brokers or wanted.is_per_broker:
        raise errors.ArgumentError(
            f"topic '{name}' of the format kafka has no home brokers, as the controller places its "
            "replicas: give the total of its partitions, and no brokers"
        )
    factor = wanted.replicas or int(settings.get("default.replication.factor", 1))
    return wanted._replace(replicas=factor)


def _broker_settings(side: Side) -> dict[str, str]:
    """Return the settings of the first broker that tells them; none if only 0.7's respond."""
    for broker in side.brokers():
        document = request_status(side.connect, broker, StatusParts.SETTINGS).document
        if document is not None:
            return {name: one["value"] for name, one in document.get("settings", {}).items()}
    return {}


def plan_creation(side: Side, wanted: NewTopic) -> list[TopicCreation]:
    """Return a step for each broker that has a topic without replicas, or gets it.

    The number of partitions is the total, spread evenly, or that for each broker. None is what the
    topic's setting `partition.count` says, or a total of one.
    """
    topic, partition_count, is_per_broker, _, broker_ids, _, format = wanted
    live = {broker.id: broker for broker in side.brokers()}
    if not live:
        raise errors.BrokerNotFoundError("no live broker to create a topic on")
    for broker_id in broker_ids:
        if broker_id not in live:
            raise errors.BrokerNotFoundError(
                f"broker '{broker_id}' not found",
                hints=[f"live brokers: {', '.join(map(str, live))}"],
            )
    ids = sorted(set(broker_ids) or live)
    if format == FORMAT_KAFKA and len(ids) > 1:
        raise errors.ConflictError(
            f"topic '{topic}' of the format kafka is on one broker, without ZooKeeper: choose it",
            hints=[f"brokers: {', '.join(map(str, ids))}"],
        )
    homes = Counter(map(side.cluster.leader_id, side.cluster.partitions(topic)))
    settings = {one: _preset_count(side, live[one], topic) for one in ids}
    preset = {one: count for one, count in settings.items() if not homes[one]}
    if partition_count is None and any(preset.values()):
        counts = {one: preset.get(one) or 1 for one in ids}
    elif is_per_broker and partition_count is not None:
        counts = dict.fromkeys(ids, partition_count)
    elif sum(homes[one] for one in ids) < (total := partition_count or 1):
        counts = _spread(topic, total, ids)
    else:
        counts = {}  # it has them already
    for one, count in preset.items():
        if 0 < counts.get(one, 0) < count:
            raise errors.ConflictError(
                f"topic '{topic}' would have {count} partitions on broker {one}, not "
                f"{counts[one]}: its setting {PARTITION_COUNT} was made before the topic",
                hints=[
                    f"--partitions-per-broker {count}, or no number, is what the setting says",
                    f"try: pylogctl config unset --topic {topic} {PARTITION_COUNT}",
                ],
            )
    return [
        TopicCreation(live[one], homes[one], counts.get(one, 0))
        for one in ids
        if homes[one] or counts.get(one)
    ]


def _preset_count(side: Side, broker: BrokerAddress, topic: str) -> int:
    """Return what a topic's setting is on a broker that can create topics, 0 if it has none."""
    response = request_status(side.connect, broker, StatusParts.SETTINGS)
    if response.error is not None:
        raise response.error
    if response.document is None:
        raise errors.UnsupportedVersionError(
            f"{broker.text} knows only the requests of Kafka 0.7, which cannot create a topic",
            hints=["such a broker creates a topic with the first message sent to it"],
        )
    return int(response.document.get("topic_settings", {}).get(topic, {}).get(PARTITION_COUNT, 0))


def _spread(topic: str, total: int, broker_ids: Sequence[int]) -> dict[int, int]:
    """Spread partitions over brokers, beginning at one that depends on the topic's name.

    Otherwise the broker with the lowest id would have all topics of one partition.
    """
    first = zlib.crc32(topic.encode()) % len(broker_ids)
    each, rest = divmod(total, len(broker_ids))
    return {
        one: each + (position < rest)
        for position, one in enumerate([*broker_ids[first:], *broker_ids[:first]])
    }


def placement_text(counts: Mapping[int, int]) -> str:
    """Return how many partitions brokers have, from the number by broker id.

    Such as "3 partitions, 1 on each of brokers 0, 1, 2".
    """
    ids_by_count: dict[int, list[int]] = {}
    for broker_id, count in sorted(counts.items()):
        ids_by_count.setdefault(count, []).append(broker_id)
    total = counted(sum(counts.values()), "partition")
    if len(counts) == 1:
        return f"{total} on broker {next(iter(counts))}"
    parts = [
        f"{count} on each of brokers {', '.join(map(str, ids))}"
        if len(ids) > 1
        else f"{count} on broker {ids[0]}"
        for count, ids in sorted(ids_by_count.items(), reverse=True)
    ]
    return ", ".join([total, *parts])


def check_absent(topic: str, plan: Sequence[TopicCreation]) -> None:
    """Raise `TopicExistsError` if the topic exists on a broker of the plan."""
    for one in plan:
        if not one.is_needed:
            raise errors.TopicExistsError(
                f"topic '{topic}' exists on broker {one.broker.id} with "
                f"{counted(one.before, 'partition')}",
                hints=["--if-not-exists leaves it as it is"],
            )


def plan_replicated(side: Side, wanted: NewTopic) -> CreateReplicatedTopicRequest:
    """Return the request that creates a topic with replicas."""
    assert wanted.replicas is not None
    live_count = len(side.brokers())
    if wanted.replicas > live_count:
        raise errors.ConflictError(
            f"{wanted.replicas} replicas need as many live brokers, not {live_count}",
            hints=["try: pylogctl broker list"],
        )
    try:
        settings = normalize(wanted.settings)
        validate_for_format(wanted.name, wanted.format, settings)
    except errors.ConfigError as error:
        raise errors.ArgumentError(str(error)) from error
    given = tuple(SettingText(name, value) for name, value in settings.items())
    count = wanted.partitions or 1
    return CreateReplicatedTopicRequest(wanted.name, count, wanted.replicas, given, wanted.format)


def plan_partitions(side: Side, topic: str, partition_count: int) -> AddPartitionsRequest:
    """Return the request that adds partitions to a topic with replicas.

    `NotReplicatedError` for a topic without them, `TopicNotFoundError` for no topic.
    """
    present = len(replicas_of(side, [topic]))
    if present >= partition_count:
        raise errors.ConflictError(
            f"topic '{topic}' has {present} partitions; they cannot become fewer or be replaced"
        )
    return AddPartitionsRequest(topic, partition_count - present)


def ask_for_partitions(side: Side, request: PartitionsRequest) -> tuple[ReplicatedPartition, ...]:
    """Have the controller make partitions with replicas, and return these."""
    return PARTITIONS.decode(side.ask_controller(request))


def plan_partition_count(
    side: Side, topic: str, partition_count: int, *, is_per_broker: bool
) -> list[TopicCreation]:
    """Return how many partitions each live broker of a topic without replicas has and gets.

    One setting holds for all of them: brokers with fewer than it says get as many, others keep
    theirs; those that are away count, and follow when they are back. A total that no number for
    each broker gives is an error.
    """
    found = find_partitions(side.cluster, [topic])
    counts = Counter(one.home for one in found.led + found.away)
    present = sum(counts.values())
    each = partition_count
    if is_per_broker:
        is_more = max(counts.values()) <= each and min(counts.values()) < each
    else:
        is_more = present < partition_count
        each = min(counts.values())
        while _total(counts, each) < partition_count:
            each += 1
    if not is_more:
        raise errors.ConflictError(
            f"topic '{topic}' has {placement_text(counts)}; they cannot become fewer or be replaced"
        )
    if not is_per_broker and _total(counts, each) != partition_count:
        raise _wrong_total(side, topic, partition_count, counts, each)
    return [
        TopicCreation(one, counts[one.id], max(counts[one.id], each))
        for one in side.brokers()
        if one.id in counts
    ]


def _total(counts: Mapping[int, int], each: int) -> int:
    return sum(max(count, each) for count in counts.values())


def _wrong_total(
    side: Side, topic: str, partition_count: int, counts: Mapping[int, int], each: int
) -> errors.ConflictError:
    """Return the error for a total below the one that `each` gives, with what is possible."""
    options = [
        f"--partitions {_total(counts, n)} (--partitions-per-broker {n})"
        for n in (each - 1, each)
        if _total(counts, n) > sum(counts.values())
    ]
    hints = [f"it can have {' or '.join(options)}"]
    others = [one.id for one in sorted(side.brokers()) if one.id not in counts]
    if others:
        missing = partition_count - sum(counts.values())
        hints.append(
            f"on another broker: pylogctl topic create {topic} --broker {others[0]} "
            f"--partitions {missing}"
        )
    return errors.ConflictError(
        f"topic '{topic}' cannot have {partition_count} partitions: it has "
        f"{placement_text(counts)}, and without replicas one number holds for each of its brokers",
        hints=hints,
    )


def set_partition_count(
    side: Side, session: Session, topic: str, plan: Sequence[TopicCreation]
) -> None:
    """Have each broker of a plan add partitions to a topic, and wait until they have."""
    from broker.zk.settings import SettingsRegistry, node_of_topic  # late: kazoo

    count = min(one.partition_count for one in plan)  # brokers with more keep theirs
    # A setting of the topic: a broker that is down, or gets the topic later, applies it too.
    SettingsRegistry(session).change(
        node_of_topic(topic), lambda before: {**before, PARTITION_COUNT: str(count)}
    )

    def some_lack_them() -> bool:
        counts = Counter(one.home for one in side.cluster.partitions(topic))
        return any(counts[one.broker.id] < count for one in plan)

    if deadlines.remaining(some_lack_them, side.give_up_s):
        raise errors.RequestTimeoutError(
            f"topic '{topic}' is to have {counted(count, 'partition')} on each broker, and "
            f"some broker does not have them after {side.timeout_s:g}s",
            hints=[f"try: pylogctl topic describe {topic}"],
        )


def create(side: Side, wanted: NewTopic, *, exist_ok: bool, is_plan: bool) -> topics.TopicInfo:
    """Create a topic, and return it once brokers show it; with `is_plan`, what it would be.

    After a lost response, a topic of the same shape is the one that was to be created.
    """
    give_up_s = side.give_up_s
    wanted = with_format(side, wanted)
    present = topics.metadata_of(side, (wanted.name,)).get(wanted.name, ())
    is_whole = wanted.replicas or wanted.format == FORMAT_KAFKA
    if present and (is_whole or any(one.is_replicated for one in present)):
        found = topics.shape_of(wanted.name, present, None)
        if not exist_ok:
            raise errors.TopicExistsError(_shape_text(found))
        return topics.topic_info(side, wanted.name)
    if wanted.replicas is None:
        planned, make = _planned_on_brokers(side, wanted, present, exist_ok=exist_ok)
    else:
        planned, make = _planned_replicated(side, wanted, give_up_s, exist_ok=exist_ok)
    if is_plan:
        return planned
    topics.until_answered(make, give_up_s)
    homes = set(planned.brokers) - {one.partition.home for one in present}
    if wanted.format == FORMAT_KAFKA:
        homes = {NO_HOME}

    def is_shown(found: Collection[TopicPartition]) -> bool:
        # brokers learn all partitions of a home, or of a topic with replicas, at once
        return bool(found) and {one.home for one in found} >= homes

    topics.await_shown(side, wanted.name, is_shown, give_up_s=give_up_s)
    made = topics.topic_info(side, wanted.name)
    if not exist_ok and (made.partitions, made.replicas) != (planned.partitions, planned.replicas):
        raise errors.TopicExistsError(_shape_text(made))  # another program has created it
    return made


def _shape_text(found: topics.TopicInfo) -> str:
    replicas = "without replicas" if found.replicas is None else f"with {found.replicas} replicas"
    return f"topic '{found.name}' exists with {found.partitions} partitions, {replicas}"


_Make = Callable[[bool], None]
"""Creates a topic; its argument is whether an earlier response was lost."""


def _planned_on_brokers(
    side: Side, wanted: NewTopic, present: Sequence[PartitionMetadata], *, exist_ok: bool
) -> tuple[topics.TopicInfo, _Make]:
    """Return the shape of a topic without replicas, and what creates it on brokers."""
    plan = plan_creation(side, wanted)
    if not exist_ok:
        check_absent(wanted.name, plan)
    brokers = [one.broker for one in plan if one.is_needed]
    counts = {one.broker.id: one.partition_count for one in plan if one.is_needed}

    def make(is_repeated: bool) -> None:
        made = create_on(
            *(side.connect, wanted.name, counts, brokers),
            format=wanted.format,
            is_repeated=is_repeated,
        )
        if (late := counts.keys() - made) and not exist_ok:
            where = ", ".join(map(str, sorted(late)))
            raise errors.TopicExistsError(
                f"topic '{wanted.name}' was created on broker {where} meanwhile"
            )

    homes = {one.partition.home for one in present} | {one.broker.id for one in plan}
    total = len(present) + sum(counts.values())
    planned = topics.TopicInfo(
        wanted.name, total, None, tuple(sorted(homes)), 0, format=wanted.format
    )
    return planned, make


def _planned_replicated(
    side: Side, wanted: NewTopic, give_up_s: float, *, exist_ok: bool
) -> tuple[topics.TopicInfo, _Make]:
    """Return the shape of a topic with replicas, and what has the controller create it."""
    request = plan_replicated(side, wanted)

    def make(is_repeated: bool) -> None:
        try:
            ask_for_partitions(side.until(give_up_s), request)
        except errors.TopicExistsError:
            if not (is_repeated or exist_ok):
                raise

    planned = topics.TopicInfo(
        *(wanted.name, request.partition_count, wanted.replicas, (), 0), format=wanted.format
    )
    return planned, make


def alter(
    side: Side,
    open_session: Callable[[], Session],
    topic: str,
    *,
    partitions: int,
    is_per_broker: bool,
    is_plan: bool,
) -> topics.TopicInfo:
    """Add partitions to a topic until it, or each of its brokers, has so many.

    Returns the topic once brokers show them; with `is_plan`, what it would be. `open_session` opens
    the one with ZooKeeper, which a topic without replicas needs.
    """
    give_up_s = side.give_up_s
    before = topics.topic_info(side, topic)
    if before.replicas is None:
        plan = plan_partition_count(side, topic, partitions, is_per_broker=is_per_broker)
        session = open_session()
        added = sum(one.partition_count - one.before for one in plan)
        if not is_plan:
            set_partition_count(side, session, topic, plan)
        new = {
            TopicPartition(topic, one.broker.id, index)
            for one in plan
            for index in range(one.before, one.partition_count)
        }
    elif is_per_broker:
        raise per_broker_of_replicated(topic)
    else:
        request = plan_partitions(side, topic, partitions)
        added = request.partition_count
        new = set() if is_plan else _add_partitions(side, request, give_up_s)
    if is_plan:
        return replace(before, partitions=before.partitions + added)
    topics.await_shown(side, topic, new.issubset, give_up_s=give_up_s)
    return topics.topic_info(side, topic)


def per_broker_of_replicated(topic: str) -> errors.ArgumentError:
    """Return the error for a number on each broker, of a topic with replicas."""
    return errors.ArgumentError(
        f"topic '{topic}' has replicas, which the controller places: give the total, --partitions"
    )


def _add_partitions(
    side: Side, request: AddPartitionsRequest, give_up_s: float
) -> set[TopicPartition]:
    """Have the controller add partitions, and return them.

    After a lost response, look whether they are there: repeated, the request, which names how many
    to add, might add them twice.
    """
    before = replicas_of(side, [request.topic]).keys()
    try:
        made = ask_for_partitions(side.until(give_up_s), request)
        return {one.partition for one in made}
    except (errors.BrokerUnreachableError, errors.RequestTimeoutError):
        while True:
            added = replicas_of(side, [request.topic]).keys() - before
            if len(added) >= request.partition_count:
                return added
            if time.monotonic() >= give_up_s:
                raise
            time.sleep(_POLL_S)
