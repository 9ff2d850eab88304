"""The documents of `pylogctl group`: columns, and the records that fill them.

Knows what is known of groups; asks nobody and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from broker.topic import TopicPartition
from pylogctl.cli.render import Column, Document, Kind, Record
from pylogctl.group.lag import GroupStanding, Standing, consumer_of, total, worst
from pylogctl.group.plan import Change
from pylogctl.group.rebalance import Problem
from pylogctl.group.snapshot import GroupSnapshot, Member, StoredOffset

TOPIC = Column("topic", "name of the topic")
PARTITION = Column("partition", "partition as home broker and index")
_GROUP = Column("group", "name of the group")
_HIDDEN_GROUP = _GROUP._replace(shown=False)
_LAG = (
    Column("lag_bytes", "bytes still to be read", Kind.BYTES),
    Column("lag_msgs", "messages still to be read, with --count", Kind.INTEGER),
)
_PACE = (
    Column("rate", "bytes consumed a second over the window", Kind.BYTES),
    Column("eta", "seconds until the lag is gone at this rate", Kind.SECONDS),
    Column("status", "how it does; see the manual"),
)
_COMMIT_AGE = Column("commit_age", "seconds since the offset was last written", Kind.SECONDS)

LIST = Document(
    "group.list/1",
    (
        _GROUP,
        Column("state", "active, empty (offsets, no members) or dead (neither)"),
        Column("members", "number of members", Kind.INTEGER),
        Column("topics", "topics it reads or has read"),
        Column("lag_bytes", "bytes still to be read, where that is known", Kind.BYTES),
        Column("oldest_commit", "when the oldest of its offsets was written", Kind.TIME),
    ),
    empty="no groups",
)
DESCRIBE = Document(
    "group.describe/1",
    (
        _HIDDEN_GROUP,
        TOPIC,
        PARTITION,
        Column("owner", "consumer thread that owns it; a member that owns nothing"),
        Column("offset", "committed offset, if it is a number", Kind.INTEGER),
        Column("stored", "the committed offset as its node has it", shown=False),
        Column("end", "offset after the last message that can be read", Kind.INTEGER),
        *_LAG,
        _COMMIT_AGE,
        *_PACE,
    ),
    empty="nothing is known of this group",
)
_SUMMED = (
    Column("partitions", "number of partitions", Kind.INTEGER),
    *_LAG,
    _COMMIT_AGE._replace(doc="seconds since the oldest of its offsets was written"),
    *_PACE,
)
BY_TOPIC = Document("group.describe-topic/1", (_HIDDEN_GROUP, TOPIC, *_SUMMED), empty="no topics")
BY_MEMBER = Document(
    "group.describe-member/1",
    (_HIDDEN_GROUP, Column("member", "consumer id; - for nobody's partitions"), *_SUMMED),
    empty="no members",
)
BY_GROUP = Document(
    "group.describe-group/1",
    (
        _GROUP,
        Column("state", "active, empty or dead"),
        Column("members", "number of members", Kind.INTEGER),
        Column("topics", "number of topics", Kind.INTEGER),
        *_SUMMED,
    ),
    empty="no group",
)
LAG = Document(
    "group.lag/1",
    (
        _HIDDEN_GROUP,
        TOPIC,
        PARTITION,
        Column("offset", "committed offset, if it is a number", Kind.INTEGER),
        Column("stored", "the committed offset as its node has it", shown=False),
        Column("end", "offset after the last message that can be read", Kind.INTEGER),
        *_LAG,
        Column("age", "seconds since the end passed the committed offset", Kind.SECONDS),
        *_PACE,
    ),
    empty="no partitions",
)
MEMBERS = Document(
    "group.members/1",
    (
        _HIDDEN_GROUP,
        Column("member", "consumer id"),
        Column("subscription", "what it reads, as it registered it"),
        Column("topics", "topics it reads now"),
        Column("streams", "number of its consumer threads", Kind.INTEGER),
        Column("partitions", "partitions it owns", Kind.INTEGER),
        Column("since", "when it joined", Kind.TIME),
        Column("session", "its session with the registry", shown=False),
    ),
    empty="no members",
)
RESET = Document(
    "group.reset/1",
    (
        _HIDDEN_GROUP,
        TOPIC,
        PARTITION,
        Column("current", "committed offset as it is", Kind.INTEGER),
        Column("new", "offset as it will be; none if it is removed", Kind.INTEGER),
        Column("delta_bytes", "by how many bytes it moves", Kind.INTEGER),
        Column("direction", "forward, back, same, new or removed"),
        Column("note", "what was adjusted, or why it stays"),
    ),
    empty="no partitions",
)
RESET_OF_GROUPS = RESET._replace(columns=(_GROUP, *RESET.columns[1:]))
EXPORT = Document(
    "group.export/1",
    (
        _GROUP,
        TOPIC,
        PARTITION,
        Column("offset", "committed offset", Kind.INTEGER),
        Column("committed", "when it was written", Kind.TIME, shown=False),
    ),
    empty="no offsets",
)
NODES = Document(
    "group.delete/1",
    (_HIDDEN_GROUP, Column("path", "node of the registry"), Column("action", "delete or deleted")),
    empty="no nodes",
)
REBALANCE = Document(
    "group.rebalance/1",
    (
        _HIDDEN_GROUP,
        TOPIC,
        PARTITION,
        Column("old_owner", "consumer thread that owned it before"),
        Column("new_owner", "consumer thread that owns it now"),
        Column("changed", "whether they differ", Kind.BOOLEAN),
    ),
    empty="no partitions",
)
VERIFY = Document(
    "group.verify/1",
    (
        _HIDDEN_GROUP,
        Column("kind", "kind of problem"),
        TOPIC,
        PARTITION,
        Column("owner", "consumer thread that is named as owner, or member"),
        Column("detail", "what is wrong"),
    ),
    empty="",
)


def list_record(snapshot: GroupSnapshot, lag_bytes: int | None) -> Record:
    """Return a row of `LIST`."""
    return {
        "group": snapshot.name,
        "state": snapshot.state,
        "members": len(snapshot.members),
        "topics": snapshot.topics,
        "lag_bytes": lag_bytes,
        "oldest_commit": snapshot.oldest_commit_ms,
    }


def partition_record(
    standing: Standing, group: GroupStanding, *, allowed_lag: int = 0
) -> dict[str, Any]:
    """Return a row of `DESCRIBE` and of `LAG`.

    Args:
        standing: the partition.
        group: which it is of.
        allowed_lag: bytes of lag that do not count.
    """
    stored = standing.stored
    return {
        "group": group.snapshot.name,
        "topic": standing.partition.topic,
        "partition": standing.partition.name,
        "owner": None if standing.owner is None else standing.owner.thread_id,
        "offset": None if stored is None else stored.offset,
        "stored": None if stored is None else stored.text,
        "end": None if standing.ends is None else standing.ends.end,
        "lag_bytes": standing.lag_bytes,
        "lag_msgs": standing.lag_messages,
        "commit_age": _seconds_since(None if stored is None else stored.commit_ms, group.time_ms),
        "age": _rounded(standing.age_s),
        "rate": _whole(standing.rate),
        "eta": _rounded(standing.eta_s) if standing.rate is not None else None,
        "status": standing.status(allowed_lag=allowed_lag).value,
    }


def idle_record(member: Member, group: GroupStanding) -> Record:
    """Return a row of `DESCRIBE` for a member that owns nothing."""
    return {"group": group.snapshot.name, "owner": member.consumer_id, "status": "IDLE"}


def sum_record(
    standings: Sequence[Standing], group: GroupStanding, *, allowed_lag: int = 0
) -> dict[str, Any]:
    """Return what several partitions come to together.

    Args:
        standings: the partitions.
        group: which they are of.
        allowed_lag: bytes of lag that do not count, for each partition.
    """
    commits = [one.stored.commit_ms for one in standings if one.stored is not None]
    lag_bytes = total(one.lag_bytes for one in standings)
    rates = [one.rate for one in standings if one.rate is not None]
    etas = [one.eta_s for one in standings if one.lag_bytes]
    # Done when the slowest partition is; never known if one of them is not.
    eta = None if None in etas else max((one for one in etas if one is not None), default=0.0)
    ages = [one.age_s for one in standings if one.lag_bytes is not None]
    return {
        "group": group.snapshot.name,
        "partitions": len(standings),
        "lag_bytes": lag_bytes,
        "lag_msgs": total(one.lag_messages for one in standings),
        "commit_age": _seconds_since(min(commits, default=None), group.time_ms),
        "age": None
        if None in ages
        else _rounded(max((one for one in ages if one is not None), default=None)),
        "rate": _whole(sum(rates)) if rates else None,
        "eta": _rounded(eta) if rates else None,
        "status": worst(one.status(allowed_lag=allowed_lag) for one in standings).value,
    }


def total_record(group: GroupStanding, *, allowed_lag: int = 0) -> Record:
    """Return the last row of `DESCRIBE` and of `LAG`."""
    return {"topic": "total", **sum_record(group.partitions, group, allowed_lag=allowed_lag)}


def topic_records(group: GroupStanding) -> list[Record]:
    """Return the rows of `BY_TOPIC`."""
    return _sums(group, "topic", lambda one: one.partition.topic)


def member_records(group: GroupStanding) -> list[Record]:
    """Return the rows of `BY_MEMBER`; nobody's partitions come last."""
    records = _sums(
        group,
        "member",
        lambda one: None if one.owner is None else consumer_of(one.owner.thread_id),
        [member.consumer_id for member in group.idle_members],
    )
    idle = {member.consumer_id for member in group.idle_members}
    return [{**one, "status": "IDLE"} if one["member"] in idle else one for one in records]


def _sums(
    group: GroupStanding,
    name: str,
    key: Callable[[Standing], str | None],
    empty: Iterable[str] = (),
) -> list[Record]:
    parts: dict[str | None, list[Standing]] = {one: [] for one in empty}
    for standing in group.partitions:
        parts.setdefault(key(standing), []).append(standing)
    order = sorted(parts, key=lambda one: (one is None, one or ""))
    return [{name: one, **sum_record(parts[one], group)} for one in order]


def group_record(group: GroupStanding) -> Record:
    """Return the row of `BY_GROUP`."""
    snapshot = group.snapshot
    return {
        "state": snapshot.state,
        "members": len(snapshot.members),
        "topics": len(snapshot.topics),
        **sum_record(group.partitions, group),
    }


def member_record(member: Member, snapshot: GroupSnapshot) -> Record:
    """Return a row of `MEMBERS`."""
    owned = [
        one for one in snapshot.owners.values() if consumer_of(one.thread_id) == member.consumer_id
    ]
    return {
        "group": snapshot.name,
        "member": member.consumer_id,
        "subscription": member.text,
        "topics": sorted(member.stream_counts),
        "streams": member.thread_count,
        "partitions": len(owned),
        "since": member.since_ms,
        "session": f"0x{member.session_id & (1 << 64) - 1:x}",
    }


def change_record(change: Change) -> Record:
    """Return a row of `RESET`."""
    return {
        "group": change.group,
        "topic": change.partition.topic,
        "partition": change.partition.name,
        "current": change.current_offset,
        "new": change.new,
        "delta_bytes": change.delta_bytes,
        "direction": change.direction.value,
        "note": "; ".join(change.notes) or None,
    }


def export_record(group: str, partition: TopicPartition, stored: StoredOffset) -> Record:
    """Return a row of `EXPORT`."""
    return {
        "group": group,
        "topic": partition.topic,
        "partition": partition.name,
        "offset": stored.offset,
        "committed": stored.commit_ms,
    }


def rebalance_record(
    group: str, partition: TopicPartition, old: str | None, new: str | None
) -> Record:
    """Return a row of `REBALANCE`."""
    return {
        "group": group,
        "topic": partition.topic,
        "partition": partition.name,
        "old_owner": old,
        "new_owner": new,
        "changed": old != new,
    }


def problem_record(group: str, problem: Problem) -> Record:
    """Return a row of `VERIFY`."""
    partition = problem.partition
    return {
        "group": group,
        "kind": problem.kind.value,
        "topic": None if partition is None else partition.topic,
        "partition": None if partition is None else partition.name,
        "owner": problem.owner,
        "detail": problem.detail,
    }


def _seconds_since(then_ms: int | None, now_ms: int) -> float | None:
    # The registry's clock, which sets the time of a commit, may be ahead of ours.
    return None if then_ms is None else max(0, now_ms - then_ms) / 1000


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)
