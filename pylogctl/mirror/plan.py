"""The topics that a mirror selects, their names in the target, and how much of them is mirrored."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from broker.admin.groups import read_group
from broker.client.cluster import are_same
from broker.client.list_offsets import OffsetLister
from broker.client.registry_cluster import RegistryCluster
from broker.client.side import Side
from broker.consumer.membership import TopicFilter, Whitelist
from broker.consumer.offset_store import RegistryOffsets
from broker.errors import ConfigError
from broker.tools.mirror_routes import TopicMap, counts_like
from broker.topic import TopicPartition
from broker.units import format_size
from broker.zk.session import Session
from pylogctl.cli.connections import connector, open_registry, open_side
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.cli.selection import TopicPatterns, group_pattern
from pylogctl.mirror.document import PLAN, STATUS, Errors, PlanRow, StatusRow
from pylogctl.mirror.errors import RouteError, load_errors
from pylogctl.mirror.options import StatusChoice


class MirrorSelection(NamedTuple):
    """The topics that are mirrored, and their names in the target."""

    chosen: TopicFilter
    rename: TopicMap
    options: tuple[Sequence[str], ...]  # of `make_selection`, which makes the same again

    def topics(self, side: Side) -> list[str]:
        """Return the selected topics that the source has now."""
        return [topic for topic in side.cluster.topics() if self.chosen.allows(topic)]


def make_selection(
    include: Sequence[str], exclude: Sequence[str], substitutions: Sequence[str]
) -> MirrorSelection:
    """Return the selection of the options; all topics without any."""
    options = (include, exclude, substitutions)
    pattern = group_pattern(TopicPatterns(tuple(include), tuple(exclude)))
    try:
        return MirrorSelection(Whitelist(pattern), TopicMap(substitutions), options)
    except ConfigError as error:
        raise UsageError(str(error)) from error


def check_no_loop(selection: MirrorSelection, source: Side, target: Side) -> bool:
    """Refuse to mirror a mirrored topic again; return whether both clusters are one."""
    if not are_same(source.cluster, target.cluster):
        return False
    for topic in selection.topics(source):
        renamed = selection.rename(topic)
        if selection.chosen.allows(renamed):
            raise UsageError(
                f"topic '{topic}' would go to '{renamed}' of the same cluster, which is mirrored "
                "as well",
                "another cluster as the target: --to",
                "within one: --include or --exclude, and --topic-map 's/^/copy./'",
            )
    return True


def show_plan(
    env: Environment, source_env: Environment, target_env: Environment, selection: MirrorSelection
) -> None:
    """Render the topics that would be mirrored."""
    with open_side(source_env) as source, open_side(target_env) as target:
        check_no_loop(selection, source, target)
        render(env, PLAN, _plan_rows(selection, source, target))


def _plan_rows(selection: MirrorSelection, source: Side, target: Side) -> Iterator[PlanRow]:
    with OffsetLister(source.cluster, source.connect) as offsets:
        for topic in selection.topics(source):
            renamed = selection.rename(topic)
            sources = source.cluster.partitions(topic)
            targets = target.cluster.partitions(renamed)
            brokers = target.cluster.brokers()
            count = len(targets)
            if not targets and brokers and sources:
                count = sum(counts_like(sources, [one.id for one in brokers]).values())
            size = sum(offsets.latest(p) - offsets.earliest(p) for p in sources)
            action = "exists" if targets else "create"
            yield PlanRow(topic, renamed, len(sources), count, size, action)


class Mirrored(NamedTuple):
    """The offset that a partition is mirrored up to at some moment; None if nothing is mirrored."""

    partition: TopicPartition
    start: int
    end: int
    offset: int | None

    @property
    def lag_bytes(self) -> int:
        """Return how many bytes are not mirrored yet."""
        return max(0, self.end - max(self.start, self.offset or 0))


class MirrorSample(NamedTuple):
    """The state of all mirrored partitions at a moment of the monotonic clock."""

    at_s: float
    partitions: list[Mirrored]


def take_sample(session: Session, group: str, side: Side, topics: Iterable[str]) -> MirrorSample:
    """Return the mirrored offsets of some topics' partitions."""
    wanted = [one for topic in topics for one in side.cluster.partitions(topic)]
    committed = RegistryOffsets(session, group).load(wanted)
    with OffsetLister(side.cluster, side.connect) as offsets:
        ends = {one: (offsets.earliest(one), offsets.latest(one)) for one in wanted}
    mirrored = {one: position.offset for one, position in committed.items()}
    found = [Mirrored(one, *ends[one], mirrored.get(one)) for one in wanted]
    return MirrorSample(time.monotonic(), found)


def show_status(env: Environment, source_env: Environment, choice: StatusChoice) -> None:
    """Sample once, or twice with an interval, and render how far each topic is mirrored."""
    patterns, group, fail_above = choice.patterns, choice.group, choice.fail_above
    selection = make_selection(patterns.include, patterns.exclude, [])
    with open_registry(source_env) as registry:
        source = Side(RegistryCluster(registry), connector(source_env))
        topics = selection.topics(source)
        snapshot = read_group(registry.session, group, all_topics=topics)
        if snapshot.state == "dead":
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"group '{group}' not found: nothing was mirrored with it",
                "name the mirror's: --group GROUP",
                "try: pylogctl group list",
                code="GROUP_NOT_FOUND",
            )
        if not patterns.include:
            topics = [topic for topic in topics if topic in snapshot.topics]
        samples = [take_sample(registry.session, group, source, topics)]
        if choice.interval is not None:
            time.sleep(choice.interval)
            samples.append(take_sample(registry.session, group, source, topics))
        partitions = [one.partition for one in samples[-1].partitions]
        errors = load_errors(registry.session, group, partitions)
    rows = status_rows(samples, len(snapshot.members), errors)
    render(env, STATUS, rows)
    lag = sum(row.lag_bytes for row in rows)
    if fail_above is not None and lag > fail_above:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"the lag is {format_size(lag)}; the limit is {format_size(fail_above)}",
            details={"lag_bytes": lag, "limit": fail_above},
        )


def status_rows(
    samples: Sequence[MirrorSample], mirror_count: int, errors: Mapping[TopicPartition, RouteError]
) -> list[StatusRow]:
    """Return a row for each topic of the last of one or two samples.

    Args:
        samples: of the same topics; the rate comes from the first and the last.
        mirror_count: how many mirrors run.
        errors: the last error of each route that had one.
    """
    before = {one.partition: one for one in samples[0].partitions}
    elapsed_s = samples[-1].at_s - samples[0].at_s
    rows: dict[str, list[Mirrored]] = {}
    for one in samples[-1].partitions:
        rows.setdefault(one.partition.topic, []).append(one)
    return [
        StatusRow(
            topic,
            sum(one.end for one in found),
            _sum_offsets(found),
            sum(one.lag_bytes for one in found),
            _rate([before.get(one.partition) for one in found], found, elapsed_s),
            mirror_count,
            _errors([errors[one.partition] for one in found if one.partition in errors]),
        )
        for topic, found in rows.items()
    ]


def _errors(errors: Sequence[RouteError]) -> Errors:
    """Return the error to report: the latest unresolved one if there are any, else the latest."""
    last = max(errors, key=lambda one: (one.is_failing, one.time_ms), default=None)
    if last is None:
        return Errors(failing=False)
    corrupt_count = sum(one.corrupt_count for one in errors)
    return Errors(last.is_failing, last.time_ms, last.text, corrupt_count)


def _sum_offsets(found: Sequence[Mirrored]) -> int | None:
    known = [one.offset for one in found if one.offset is not None]
    return sum(known) if known else None


def _rate(
    before: Sequence[Mirrored | None], after: Sequence[Mirrored], elapsed_s: float
) -> int | None:
    if elapsed_s <= 0:
        return None
    moved = sum(
        max(0, new.offset - (old.offset or 0))
        for old, new in zip(before, after, strict=True)
        if old is not None and new.offset is not None
    )
    return round(moved / elapsed_s)
