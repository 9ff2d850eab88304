"""Changes of leaders and replicas, as each broker logs them and tools read them.

One change is one line of JSON. Fields that a change does not have are left out; readers ignore
unknown fields and accept unknown kinds, of later versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from broker.topic import TopicPartition


class ChangeKind(StrEnum):
    """The kind of a change."""

    ELECTED = "elected"  # the broker is the controller now
    RESIGNED = "resigned"  # the broker is no longer the controller
    DECIDED = "decided"  # the controller has written a new state of a partition
    LEADS = "leads"
    FOLLOWS = "follows"
    STOPPED = "stopped"  # the broker has no replica of the partition any more, or is to stop it
    ISR = "isr"  # the leader uses other in-sync replicas
    TRUNCATED = "truncated"  # a follower has cut off entries that its leader does not have
    DIRECTORY_FAILED = "directory-failed"  # a data directory cannot be used any more


class LoggedChange(NamedTuple):
    """One change; None for fields that it does not have."""

    kind: str  # a `ChangeKind`, or a word of a later version
    time_ms: int = 0  # since 1970, by the clock of the broker
    broker: int = -1  # the one that logged it
    controller_epoch: int | None = None  # of the deciding controller, or the latest known
    partition: TopicPartition | None = None  # None for changes of the whole broker
    leader_epoch: int | None = None
    leader: int | None = None  # -1 for none
    isr: tuple[int, ...] | None = None
    version: int | None = None  # of the partition's node in ZooKeeper
    offset: int | None = None  # the log's end, after a truncation if there was one
    text: str = ""  # the reason, for people

    @property
    def time(self) -> datetime:
        """Return when it happened, by the clock of the broker."""
        return datetime.fromtimestamp(self.time_ms / 1000, UTC)

    @property
    def what(self) -> str:
        """Return the change in words, without the epochs."""
        in_sync = "" if self.isr is None else f", in sync {','.join(map(str, self.isr))}"
        reason = f": {self.text}" if self.text else ""
        if self.kind == ChangeKind.DECIDED:
            leader = "no leader" if self.leader in (None, -1) else f"leader {self.leader}"
            return f"decided {leader}{in_sync}{reason}"
        if self.kind == ChangeKind.ISR:
            return f"goes on{in_sync}"
        words: dict[str, str] = {
            ChangeKind.ELECTED: "is the controller",
            ChangeKind.RESIGNED: "is the controller no more",
            ChangeKind.FOLLOWS: "follows "
            + ("no leader" if self.leader in (None, -1) else f"broker {self.leader}"),
            ChangeKind.DIRECTORY_FAILED: "data directory failed",
        }
        offset = "" if self.offset is None else f" at offset {self.offset}"
        return f"{words.get(self.kind, self.kind)}{offset}{in_sync}{reason}"

    def __str__(self) -> str:
        """Return a line for the log of the broker."""
        controller = (
            "" if self.controller_epoch is None else f"controller epoch {self.controller_epoch}: "
        )
        if self.partition is None:
            return f"{controller}broker {self.broker} {self.what}"
        epoch = "" if self.leader_epoch is None else f"leader epoch {self.leader_epoch}: "
        return f"{controller}{self.partition}: {epoch}broker {self.broker} {self.what}"

    def fields(self) -> dict[str, Any]:
        """Return the fields that it has."""
        fields: dict[str, Any] = {"kind": self.kind, "ms": self.time_ms, "broker": self.broker}
        if self.controller_epoch is not None:
            fields["controller_epoch"] = self.controller_epoch
        if self.partition is not None:
            fields |= {"topic": self.partition.topic, "partition": self.partition.name}
        others = ("leader_epoch", "leader", "isr", "version", "offset")
        fields |= {name: one for name in others if (one := getattr(self, name)) is not None}
        if self.text:
            fields["text"] = self.text
        return fields

    def encode(self) -> bytes:
        """Return the line, with its end."""
        return json.dumps(self.fields(), separators=(",", ":")).encode() + b"\n"


def decode_changes(lines: Iterable[bytes]) -> tuple[list[LoggedChange], int]:
    """Read lines; return the changes, and the number of invalid lines, such as a torn last one."""
    found, damaged_count = [], 0
    for line in lines:
        try:
            found.append(_decode(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError):
            damaged_count += 1
    return found, damaged_count


def _decode(fields: dict[str, Any]) -> LoggedChange:
    partition = None
    if "topic" in fields:
        partition = TopicPartition.named(str(fields["topic"]), fields["partition"])
    isr = fields.get("isr")
    return LoggedChange(
        str(fields["kind"]),
        int(fields["ms"]),
        int(fields["broker"]),
        _number(fields, "controller_epoch"),
        partition,
        _number(fields, "leader_epoch"),
        _number(fields, "leader"),
        None if isr is None else tuple(map(int, isr)),
        _number(fields, "version"),
        _number(fields, "offset"),
        str(fields.get("text", "")),
    )


def _number(fields: dict[str, Any], name: str) -> int | None:
    found = fields.get(name)
    return None if found is None else int(found)


def merged(changes: Iterable[LoggedChange]) -> list[LoggedChange]:
    """Return the changes of several brokers in the order in which they happened.

    Epochs count before clocks, as those of brokers differ: a later controller epoch comes later; in
    one partition, so does a later leader epoch, and a decision comes before its effects on brokers.
    All else is ordered by time. `changes` has those of each broker in the order it logged them.
    """
    by_partition: dict[tuple[int, TopicPartition | None, int], list[LoggedChange]] = {}
    latest_epoch: dict[int, int] = {}
    for one in changes:
        epoch = one.controller_epoch
        if epoch is None:  # unknown: the epoch of the broker's previous change
            epoch = latest_epoch.get(one.broker, -1)
        latest_epoch[one.broker] = epoch
        place = one.broker if one.partition is None else -1
        by_partition.setdefault((epoch, one.partition, place), []).append(one)
    placed: list[tuple[int, bool, int, int, LoggedChange]] = []
    for (epoch, _, _), some in by_partition.items():
        latest_ms = 0
        for one in _in_order(some):
            latest_ms = max(latest_ms, one.time_ms)
            begins = one.kind == ChangeKind.ELECTED
            placed.append((epoch, not begins, latest_ms, len(placed), one))
    return [place[-1] for place in sorted(placed)]


def _in_order(of_partition: list[LoggedChange]) -> list[LoggedChange]:
    """Return changes of one partition: a decision, then its effects."""
    return sorted(
        of_partition,
        key=lambda one: (
            -1 if one.leader_epoch is None else one.leader_epoch,
            -1 if one.version is None else one.version,
            one.kind != ChangeKind.DECIDED,
            one.time_ms,
        ),
    )
