"""The documents of `pylogctl group`: columns, and the records that fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from broker.topic import TopicPartition
from pylogctl.cli.columns import Column, ColumnKind, Document
from pylogctl.cli.render import Record
from pylogctl.group.lag import GroupLag, PartitionLag, consumer_of, total, worst
from pylogctl.group.plan import Change
from pylogctl.group.rebalance import GroupProblem
from pylogctl.group.snapshot import GroupSnapshot, Member, StoredOffset

_GROUP = Column("group", "name of the group")
_HIDDEN_GROUP = _GROUP._replace(shown=False)
_TOPIC = Column("topic", "name of the topic")
_PARTITION = Column("partition", "partition as home broker and index")
_MEMBER_COUNT = Column("members", "number of members", ColumnKind.INTEGER)
_OFFSET = (
    Column("offset", "committed offset, if it is a number", ColumnKind.INTEGER),
    Column("stored", "value of the offset's node", shown=False),
    Column("end", "offset after the last readable message", ColumnKind.INTEGER),
)
_LAG = (
    Column("lag_bytes", "bytes not yet consumed", ColumnKind.BYTES),
    Column("lag_msgs", "messages not yet consumed, with --count", ColumnKind.INTEGER),
)
_PACE = (
    Column("rate", "bytes consumed a second over the window", ColumnKind.BYTES),
    Column("eta", "seconds until the lag is consumed at this rate", ColumnKind.SECONDS),
    Column("status", "status; see the manual"),
)
_COMMIT_AGE = Column("commit_age", "seconds since the offset was committed", ColumnKind.SECONDS)

LIST = Document(
    "group.list/1",
    (
        _GROUP,
        Column("state", "active, empty (offsets, no members) or dead (neither)"),
        _MEMBER_COUNT,
        Column("topics", "topics of its members, offsets and owners"),
        Column("lag_bytes", "bytes not yet consumed, where that is known", ColumnKind.BYTES),
        Column("oldest_commit", "when the oldest of its offsets was committed", ColumnKind.TIME),
    ),
    empty="no groups",
)
DESCRIBE = Document(
    "group.describe/1",
    (
        _HIDDEN_GROUP,
        _TOPIC,
        _PARTITION,
        Column("owner", "consumer thread it is assigned to; or an idle member"),
        *_OFFSET,
        *_LAG,
        _COMMIT_AGE,
        *_PACE,
    ),
    empty="the group has no partitions",
)
_SUMMED = (
    Column("partitions", "number of partitions", ColumnKind.INTEGER),
    *_LAG,
    _COMMIT_AGE._replace(doc="seconds since the oldest of its offsets was committed"),
    *_PACE,
)
BY_TOPIC = Document("group.describe-topic/1", (_HIDDEN_GROUP, _TOPIC, *_SUMMED), empty="no topics")
BY_MEMBER = Document(
    "group.describe-member/1",
    (_HIDDEN_GROUP, Column("member", "consumer id; - for partitions without owner"), *_SUMMED),
    empty="no members",
)
BY_GROUP = Document(
    "group.describe-group/1",
    (
        _GROUP,
        Column("state", "active, empty or dead"),
        _MEMBER_COUNT,
        Column("topics", "number of topics", ColumnKind.INTEGER),
        *_SUMMED,
    ),
    empty="no group",
)
LAG = Document(
    "group.lag/1",
    (
        _HIDDEN_GROUP,
        _TOPIC,
        _PARTITION,
        *_OFFSET,
        *_LAG,
        Column("age", "seconds since the end passed the committed offset", ColumnKind.SECONDS),
        *_PACE,
    ),
    empty="no partitions",
)
MEMBERS = Document(
    "group.members/1",
    (
        _HIDDEN_GROUP,
        Column("member", "consumer id"),
        Column("subscription", "subscription as it registered it"),
        Column("topics", "topics it consumes"),
        Column("streams", "number of its consumer threads", ColumnKind.INTEGER),
        Column("partitions", "partitions assigned to it", ColumnKind.INTEGER),
        Column("since", "when it joined", ColumnKind.TIME),
        Column("session", "its ZooKeeper session", shown=False),
    ),
    empty="no members",
)
RESET = Document(
    "group.reset/1",
    (
        _HIDDEN_GROUP,
        _TOPIC,
        _PARTITION,
        Column("current", "committed offset", ColumnKind.INTEGER),
        Column("new", "new offset; none if it is removed", ColumnKind.INTEGER),
        Column("delta_bytes", "by how many bytes it moves", ColumnKind.INTEGER),
        Column("direction", "forward, back, same, new or removed"),
        Column("note", "what was adjusted, or why it is not changed"),
    ),
    empty="no partitions",
)
RESET_OF_GROUPS = RESET.showing("group")
EXPORT = Document(
    "group.export/1",
    (
        _GROUP,
        _TOPIC,
        _PARTITION,
        Column("offset", "committed offset", ColumnKind.INTEGER),
        Column("committed", "when it was committed", ColumnKind.TIME, shown=False),
    ),
    empty="no offsets",
)
NODES = Document(
    "group.delete/1",
    (
        _HIDDEN_GROUP,
        Column("path", "path of the ZooKeeper node"),
        Column("action", "delete or deleted"),
    ),
    empty="no nodes",
)
REBALANCE = Document(
    "group.rebalance/1",
    (
        _HIDDEN_GROUP,
        _TOPIC,
        _PARTITION,
        Column("old_owner", "consumer thread it was assigned to before"),
        Column("new_owner", "consumer thread it is assigned to now"),
        Column("changed", "whether they differ", ColumnKind.BOOLEAN),
    ),
    empty="no partitions",
)
VERIFY = Document(
    "group.verify/1",
    (
        _HIDDEN_GROUP,
        Column("kind", "kind of problem"),
        _TOPIC,
        _PARTITION,
        Column("owner", "consumer thread in the owner node, or member"),
        Column("detail", "what is wrong"),
    ),
    empty="",
)


def _names(group: str, partition: TopicPartition) -> dict[str, Any]:
    return {"group": group, "topic": partition.topic, "partition": partition.name}


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


def partition_record(lag: PartitionLag, group: GroupLag, *, allowed_lag: int = 0) -> dict[str, Any]:
    """Return a row of `DESCRIBE` and of `LAG`; `allowed_lag` bytes of lag count as none."""
    stored = lag.stored
    return {
        **_names(group.snapshot.name, lag.partition),
        "owner": None if lag.owner is None else lag.owner.thread_id,
        "offset": None if stored is None else stored.offset,
        "stored": None if stored is None else stored.text,
        "end": None if lag.ends is None else lag.ends.end,
        "lag_bytes": lag.lag_bytes,
        "lag_msgs": lag.lag_messages,
        "commit_age": _seconds_since(None if stored is None else stored.commit_ms, group.time_ms),
        "age": _rounded(lag.age_s),
        "rate": _whole(lag.rate),
        "eta": _rounded(lag.eta_s) if lag.rate is not None else None,
        "status": lag.status(allowed_lag=allowed_lag).value,
    }


def idle_record(member: Member, group: GroupLag) -> Record:
    """Return a row of `DESCRIBE` for a member without an assigned partition."""
    return {"group": group.snapshot.name, "owner": member.consumer_id, "status": "IDLE"}


def _sum_record(
    lags: Sequence[PartitionLag], group: GroupLag, *, allowed_lag: int = 0
) -> dict[str, Any]:
    commits = [one.stored.commit_ms for one in lags if one.stored is not None]
    rates = [one.rate for one in lags if one.rate is not None]
    etas = [one.eta_s for one in lags if one.lag_bytes]
    # The slowest partition decides; unknown if the ETA of one partition is.
    eta = None if None in etas else max((one for one in etas if one is not None), default=0.0)
    ages = [one.age_s for one in lags if one.lag_bytes is not None]
    age = None if None in ages else max((one for one in ages if one is not None), default=None)
    return {
        "group": group.snapshot.name,
        "partitions": len(lags),
        "lag_bytes": total(one.lag_bytes for one in lags),
        "lag_msgs": total(one.lag_messages for one in lags),
        "commit_age": _seconds_since(min(commits, default=None), group.time_ms),
        "age": _rounded(age),
        "rate": _whole(sum(rates)) if rates else None,
        "eta": _rounded(eta) if rates else None,
        "status": worst(one.status(allowed_lag=allowed_lag) for one in lags).value,
    }


def total_record(group: GroupLag, *, allowed_lag: int = 0) -> Record:
    """Return the last row of `DESCRIBE` and of `LAG`."""
    return {"topic": "total", **_sum_record(group.partitions, group, allowed_lag=allowed_lag)}


def topic_records(group: GroupLag) -> list[Record]:
    """Return the rows of `BY_TOPIC`."""
    return _sums(group, "topic", lambda one: one.partition.topic)


def member_records(group: GroupLag) -> list[Record]:
    """Return the rows of `BY_MEMBER`; partitions without an owner come last."""
    idle = {member.consumer_id for member in group.idle_members}
    records = _sums(
        group,
        "member",
        lambda one: None if one.owner is None else consumer_of(one.owner.thread_id),
        idle,
    )
    return [{**one, "status": "IDLE"} if one["member"] in idle else one for one in records]


def _sums(
    group: GroupLag,
    name: str,
    key: Callable[[PartitionLag], str | None],
    empty: Iterable[str] = (),
) -> list[Record]:
    parts: dict[str | None, list[PartitionLag]] = {one: [] for one in empty}
    for lag in group.partitions:
        parts.setdefault(key(lag), []).append(lag)
    order = sorted(parts, key=lambda one: (one is None, one or ""))
    return [{name: one, **_sum_record(parts[one], group)} for one in order]


def group_record(group: GroupLag) -> Record:
    """Return the row of `BY_GROUP`."""
    snapshot = group.snapshot
    return {
        "state": snapshot.state,
        "members": len(snapshot.members),
        "topics": len(snapshot.topics),
        **_sum_record(group.partitions, group),
    }


def member_record(member: Member, snapshot: GroupSnapshot) -> Record:
    """Return a row of `MEMBERS`."""
    consumers = [consumer_of(one.thread_id) for one in snapshot.owners.values()]
    return {
        "group": snapshot.name,
        "member": member.consumer_id,
        "subscription": member.text,
        "topics": sorted(member.stream_counts),
        "streams": member.thread_count,
        "partitions": consumers.count(member.consumer_id),
        "since": member.since_ms,
        "session": f"0x{member.session_id & (1 << 64) - 1:x}",
    }


def change_record(change: Change) -> Record:
    """Return a row of `RESET`."""
    return {
        **_names(change.group, change.partition),
        "current": change.current_offset,
        "new": change.new,
        "delta_bytes": change.delta_bytes,
        "direction": change.direction,
        "note": "; ".join(change.notes) or None,
    }


def export_record(group: str, partition: TopicPartition, stored: StoredOffset) -> Record:
    """Return a row of `EXPORT`."""
    return {
        **_names(group, partition),
        "offset": stored.offset,
        "committed": stored.commit_ms,
    }


def rebalance_record(
    group: str, partition: TopicPartition, old: str | None, new: str | None
) -> Record:
    """Return a row of `REBALANCE`."""
    return {
        **_names(group, partition),
        "old_owner": old,
        "new_owner": new,
        "changed": old != new,
    }


def problem_record(group: str, problem: GroupProblem) -> Record:
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
    # ZooKeeper's clock sets the commit time, and may be ahead of ours.
    return None if then_ms is None else max(0, now_ms - then_ms) / 1000


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)
