"""What clients saw of a cluster, and whether a log that loses nothing can explain it.

The invariants are those of a replicated log seen from outside: no acknowledged message is lost, an
offset has one payload for ever, nothing is invented, duplicates come only of unknown outcomes, and
messages of one producer, and those sent after another was acknowledged, keep their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from broker.state_changes import ChangeKind, LoggedChange


class Outcome(StrEnum):
    """How a send ended."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    """The message is surely not in the log."""
    UNKNOWN = "unknown"


class Sent(NamedTuple):
    """One message of a producer that has one in flight.

    Attributes:
        partition: its name.
        payload: unique among all messages.
        producer: who sent it.
        invoked_s: when, on the clock that all share.
        completed_s: when the outcome was known.
        outcome: how it ended.
        offset: where an acknowledged one is, else -1.
    """

    partition: str
    payload: str
    producer: str
    invoked_s: float
    completed_s: float
    outcome: Outcome
    offset: int


class Seen(NamedTuple):
    """One message as a reader got it."""

    partition: str
    offset: int
    payload: str
    reader: str


def violations(
    sent: Sequence[Sent], seen: Sequence[Seen], final: Sequence[Seen], *, log_starts: dict[str, int]
) -> list[str]:
    """Return what no log that keeps its promises explains; empty if all is well.

    Args:
        sent: everything that was sent.
        seen: what readers got while the cluster was disturbed, in their order.
        final: a full read after it was healed.
        log_starts: the smallest offset of each partition; what is older was removed by retention.
    """
    return [
        *_lost(sent, final, log_starts),
        *_rebound_offsets(sent, [*seen, *final]),
        *_invented(sent, [*seen, *final]),
        *_duplicates(sent, final),
        *_reordered_by_producer(sent),
        *_reordered_in_time(sent),
        *_out_of_order(seen),
        *_vanished(seen, final, log_starts),
    ]


def _lost(sent: Iterable[Sent], final: Iterable[Seen], log_starts: dict[str, int]) -> list[str]:
    found = {(one.partition, one.offset): one.payload for one in final}
    return [
        f"I1: {one.partition} has not {one.payload} at {one.offset}, which was acknowledged"
        for one in sent
        if one.outcome is Outcome.ACKNOWLEDGED
        and one.offset >= log_starts.get(one.partition, 0)
        and found.get((one.partition, one.offset)) != one.payload
    ]


def _rebound_offsets(sent: Iterable[Sent], seen: Iterable[Seen]) -> list[str]:
    payloads: dict[tuple[str, int], set[str]] = defaultdict(set)
    for one in sent:
        if one.outcome is Outcome.ACKNOWLEDGED:
            payloads[one.partition, one.offset].add(one.payload)
    for read in seen:
        payloads[read.partition, read.offset].add(read.payload)
    return [
        f"I2: offset {offset} of {partition} had {sorted(several)}"
        for (partition, offset), several in payloads.items()
        if len(several) > 1
    ]


def _invented(sent: Iterable[Sent], seen: Iterable[Seen]) -> list[str]:
    possible = {(one.partition, one.payload) for one in sent if one.outcome is not Outcome.REFUSED}
    return [
        f"I3: {one.partition} has {one.payload} at {one.offset}, never sent, or refused"
        for one in dict.fromkeys(seen)
        if (one.partition, one.payload) not in possible
    ]


def _duplicates(sent: Iterable[Sent], final: Iterable[Seen]) -> list[str]:
    unknown = {one.payload for one in sent if one.outcome is Outcome.UNKNOWN}
    offsets: dict[str, list[int]] = defaultdict(list)
    for one in final:
        offsets[one.payload].append(one.offset)
    return [
        f"I4: {payload} is at {several}, though its outcome was known"
        for payload, several in offsets.items()
        if len(several) > 1 and payload not in unknown
    ]


def _reordered_by_producer(sent: Iterable[Sent]) -> list[str]:
    last: dict[tuple[str, str], Sent] = {}
    found = []
    for one in sorted(sent, key=lambda one: one.invoked_s):
        if one.outcome is not Outcome.ACKNOWLEDGED:
            continue
        before = last.get((one.producer, one.partition))
        if before is not None and before.offset >= one.offset:
            found.append(f"I5: {one.payload} at {one.offset} follows {before} of one producer")
        last[one.producer, one.partition] = one
    return found


def _reordered_in_time(sent: Iterable[Sent]) -> list[str]:
    """A message sent after another was acknowledged has a higher offset."""
    by_partition: dict[str, list[Sent]] = defaultdict(list)
    for one in sent:
        if one.outcome is Outcome.ACKNOWLEDGED:
            by_partition[one.partition].append(one)
    found = []
    for partition, several in by_partition.items():
        completed = sorted(several, key=lambda one: one.completed_s)
        highest, position = -1, 0
        for one in sorted(several, key=lambda one: one.invoked_s):
            while position < len(completed) and completed[position].completed_s < one.invoked_s:
                highest = max(highest, completed[position].offset)
                position += 1
            if one.offset <= highest:
                found.append(
                    f"I6: {one.payload} of {partition} is at {one.offset}, and {highest} was "
                    "acknowledged before it was sent"
                )
    return found


def _out_of_order(seen: Iterable[Seen]) -> list[str]:
    last: dict[tuple[str, str], int] = {}
    found = []
    for one in seen:
        before = last.get((one.reader, one.partition), -1)
        if one.offset <= before:
            found.append(f"I7: {one.reader} read {one.partition} at {one.offset} after {before}")
        last[one.reader, one.partition] = one.offset
    return found


def _vanished(seen: Iterable[Seen], final: Iterable[Seen], log_starts: dict[str, int]) -> list[str]:
    """What a reader has seen stays, and nothing lies between what it saw that it did not see."""
    kept = {(one.partition, one.offset): one.payload for one in final}
    found = [
        f"I8: {one.reader} saw {one.payload} at {one.offset} of {one.partition}, now gone"
        for one in dict.fromkeys(seen)
        if one.offset >= log_starts.get(one.partition, 0)
        and kept.get((one.partition, one.offset)) != one.payload
    ]
    ranges: dict[tuple[str, str], list[int]] = defaultdict(list)
    for one in seen:
        ranges[one.reader, one.partition].append(one.offset)
    for (reader, partition), offsets in ranges.items():
        read = set(offsets)
        missed = [
            offset
            for name, offset in kept
            if name == partition and offsets[0] < offset < offsets[-1] and offset not in read
        ]
        found += [f"I7: {reader} skipped {missed} of {partition}"] if missed else []
    return found


def acknowledged_within(sent: Iterable[Sent], begin_s: float, end_s: float) -> list[str]:
    """Return what was acknowledged although too few replicas were in sync all the time (I11).

    Args:
        sent: with acks -1.
        begin_s: the shrink of the in-sync replicas was known, on the clock that all share.
        end_s: when they had not grown yet.
    """
    return [
        f"I11: {one.payload} was acknowledged while too few replicas were in sync"
        for one in sent
        if one.outcome is Outcome.ACKNOWLEDGED
        and begin_s <= one.invoked_s
        and one.completed_s <= end_s
    ]


def contradictions(changes: Iterable[LoggedChange]) -> list[str]:
    """Return which changes, as brokers have written them down, cannot all be true.

    One broker leads a partition in a leader epoch (I14), one state has a version (I15), its leader
    is in sync (I17), and one broker is the controller of an epoch (I20).
    """
    leaders: dict[object, set[int]] = defaultdict(set)
    states: dict[object, set[object]] = defaultdict(set)
    controllers: dict[int | None, set[int]] = defaultdict(set)
    found = []
    for one in changes:
        if one.kind == ChangeKind.LEADS:
            leaders[one.partition, one.leader_epoch].add(one.broker)
        elif one.kind in (ChangeKind.DECIDED, ChangeKind.ELECTED):
            controllers[one.controller_epoch].add(one.broker)
        if one.kind == ChangeKind.DECIDED:
            states[one.partition, one.version].add((one.leader, one.leader_epoch, one.isr))
            if one.leader != -1 and one.leader not in (one.isr or ()):
                found.append(f"I17: the leader is not in sync: {one}")
    for which, several in leaders.items():
        if len(several) > 1:
            found.append(f"I14: {which} was led by brokers {sorted(several)}")
    for which, decided in states.items():
        if len(decided) > 1:
            found.append(f"I15: {which} had the states {decided}")
    for epoch, brokers in controllers.items():
        if len(brokers) > 1:
            found.append(f"I20: brokers {sorted(brokers)} were the controller of epoch {epoch}")
    return found
