"""From what the user asked for to a plan for a whole group: which partitions, and where to.

Asks registry and brokers; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from broker.client.cluster import RegistryCluster
from broker.topic import TopicPartition
from pylogctl.context import Environment
from pylogctl.errors import CliError, UsageError
from pylogctl.exit_status import ExitStatus
from pylogctl.groups.exchange import Entry, parse_entries
from pylogctl.groups.reset import (
    Change,
    Planner,
    Target,
    ToEntries,
    ToGroup,
    parse_shift,
    parse_shift_time,
    parse_spec,
)
from pylogctl.groups.snapshot import GroupSnapshot, require_group
from pylogctl.groups.standing import GroupObserver
from pylogctl.partition_list import PartitionList
from pylogctl.selection import select_partitions, select_topics
from pylogctl.topic_facts import TopicFacts

_GONE = "the partition is on no live broker"


def read_entries(env: Environment, file: str) -> list[Entry]:
    """Return the offsets of a file, `-` for standard input.

    Raises:
        UsageError: lines are broken, or it is no text.
        OSError: it cannot be read.
    """
    try:
        if file == "-":
            stdin = env.streams.stdin
            return parse_entries("" if stdin is None else stdin.read().decode(), "stdin")
        return parse_entries(Path(file).read_text(encoding="utf-8"), file)
    except UnicodeDecodeError as error:
        raise UsageError(f"'{file}' is not UTF-8 text") from error


def find_target(env: Environment, observer: GroupObserver, text: str) -> Target:
    """Return the meaning of `--to`.

    Args:
        env: tells the time, and has standard input.
        observer: reads other groups.
        text: an offset expression, or `shift:`, `by:`, `group:` or `file:` and more.

    Raises:
        UsageError: it is none of these.
        CliError: the other group does not exist.
    """
    kind, colon, rest = text.partition(":")
    if colon and kind == "shift":
        return parse_shift(rest)
    if colon and kind == "by":
        return parse_shift_time(rest)
    if colon and kind == "file":
        return ToEntries(read_entries(env, rest))
    if colon and kind == "group":
        require_group(observer.registry, rest)
        return ToGroup(rest, observer.snapshot(rest).offsets)
    return parse_spec(text, now_ms=env.clock.time_ms())


def plan_reset(
    observer: GroupObserver,
    snapshot: GroupSnapshot,
    target: Target,
    *,
    topics: Sequence[str],
    wanted: PartitionList | None,
) -> list[Change]:
    """Return what becomes of a group's offsets.

    Args:
        observer: the way to brokers.
        snapshot: the group.
        target: where they go.
        topics: which must exist; all of the group's if empty.
        wanted: only these partitions of them.

    Raises:
        CliError: a topic or partition does not exist, or the group has no topics.
        BrokerError: a broker does not answer.
    """
    cluster = RegistryCluster(observer.registry)
    with TopicFacts(cluster, observer.connect) as facts:
        planner = Planner(snapshot.name, snapshot.offsets, facts, facts.positions)
        if topics:
            there = select_partitions(cluster, select_topics(cluster, topics), wanted)
            return [planner.plan(one, target) for one in there]
        if not snapshot.topics:
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"group '{snapshot.name}' has no topics",
                hints=["name one with --topic"],
            )
        there = [one for topic in snapshot.topics for one in cluster.partitions(topic)]
        gone = sorted(snapshot.offsets.keys() - set(there))
        plans = [planner.plan(one, target) for one in there]
        return sorted(
            [*plans, *(planner.keep(one, _GONE, fails=True) for one in gone)],
            key=lambda change: change.partition,
        )


def plan_import(
    observer: GroupObserver, snapshot: GroupSnapshot, entries: Sequence[Entry]
) -> list[Change]:
    """Return what the offsets of a file make of a group.

    Args:
        observer: the way to brokers.
        snapshot: the group; it need not exist.
        entries: the offsets for this group, later ones going first.

    Raises:
        CliError: a plan of which the current offsets are not the group's any more.
        BrokerError: a broker does not answer.
    """
    cluster = RegistryCluster(observer.registry)
    there: dict[TopicPartition, bool] = dict.fromkeys(snapshot.offsets, False)
    for topic in dict.fromkeys(entry.topic for entry in entries):
        there |= dict.fromkeys(cluster.partitions(topic), True)
    changes: dict[TopicPartition, Change] = {}
    with TopicFacts(cluster, observer.connect) as facts:
        planner = Planner(snapshot.name, snapshot.offsets, facts, facts.positions)
        for entry in entries:
            matching = [one for one in there if entry.matches(one)]
            if not matching:
                changes |= _missing(snapshot, entry)
            for one in matching:
                _check_current(snapshot, one, entry)
                if entry.checks_current and entry.offset is None and entry.current is None:
                    changes[one] = planner.keep(one)  # the plan, too, was to leave it alone
                elif there[one] or entry.offset is None:
                    changes[one] = planner.plan(one, ToEntries([entry]))
                else:
                    changes[one] = planner.keep(one, _GONE, fails=True)
    return sorted(changes.values(), key=lambda change: change.partition)


def _missing(snapshot: GroupSnapshot, entry: Entry) -> dict[TopicPartition, Change]:
    """Return the plan for an offset of a partition that is nowhere; nothing is to be removed."""
    if entry.offset is None:
        return {}
    one = TopicPartition(entry.topic, entry.pattern.home or 0, entry.pattern.first)
    return {one: Change(snapshot.name, one, None, None, (_GONE,), keeps=True, fails=True)}


def _check_current(snapshot: GroupSnapshot, partition: TopicPartition, entry: Entry) -> None:
    stored = snapshot.offsets.get(partition)
    current = None if stored is None else stored.offset
    if entry.checks_current and entry.current != current:
        raise CliError(
            ExitStatus.CONFLICT,
            f"group '{snapshot.name}': the offset of {partition} is {_text(current)}, "
            f"but the plan was made when it was {_text(entry.current)}",
            hints=["make the plan again"],
            code="OFFSET_CHANGED",
        )


def _text(offset: int | None) -> str:
    return "none" if offset is None else str(offset)


def by_group(entries: Iterable[Entry], group: str | None) -> dict[str, list[Entry]]:
    """Return the offsets of a file by the group they are for.

    Args:
        entries: the offsets.
        group: the one they are all for, whatever the file says; None to go by the file.

    Raises:
        UsageError: a line names no group, and the user named none.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        name = group or entry.group
        if name is None:
            raise UsageError(
                f"line {entry.line} names no group", hints=["name it: pylogctl group import GROUP"]
            )
        groups.setdefault(name, []).append(entry)
    return groups
