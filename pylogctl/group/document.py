"""The rows of `pylogctl group`, and the documents that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

from pylogctl.cli.columns import (
    HIDDEN,
    Bytes,
    Column,
    ColumnKind,
    Document,
    Flag,
    Integer,
    Millis,
    Row,
    Text,
)
from pylogctl.cli.render import Record
from pylogctl.group.lag import GroupLag, PartitionLag, consumer_of, total, worst
from pylogctl.group.plan import Change
from pylogctl.group.rebalance import GroupProblem
from pylogctl.group.snapshot import GroupSnapshot, Member

_Group = Annotated[str, "name of the group"]
_HiddenGroup = Annotated[str, "name of the group", HIDDEN]
_Topic = Annotated[Text, "name of the topic"]
_Partition = Annotated[Text, "partition as home broker and index"]
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


class GroupRow(Row):
    """A group."""

    group: _Group
    state: Annotated[Text, "active, empty (offsets, no members) or dead (neither)"] = None
    members: Annotated[Integer, "number of members"] = None
    topics: Annotated[Sequence[str] | None, "topics of its members, offsets and owners"] = None
    lag_bytes: Annotated[Bytes, "bytes not yet consumed, where that is known"] = None
    oldest_commit: Annotated[Millis, "when the oldest of its offsets was committed"] = None


class MemberRow(Row):
    """A member of a group."""

    group: _HiddenGroup
    member: Annotated[str, "consumer id"]
    subscription: Annotated[str, "subscription as it registered it"]
    topics: Annotated[list[str], "topics it consumes"]
    streams: Annotated[Integer, "number of its consumer threads"]
    partitions: Annotated[Integer, "partitions assigned to it"]
    since: Annotated[Millis, "when it joined"]
    session: Annotated[str, "its ZooKeeper session", HIDDEN]


class OffsetChangeRow(Row):
    """An offset that is, or would be, changed."""

    group: _HiddenGroup
    topic: _Topic
    partition: _Partition
    current: Annotated[Integer, "committed offset"]
    new: Annotated[Integer, "new offset; none if it is removed"]
    delta_bytes: Annotated[Integer, "by how many bytes it moves"]
    direction: Annotated[str, "forward, back, same, new or removed"]
    note: Annotated[Text, "what was adjusted, or why it is not changed"]


class OffsetRow(Row):
    """A committed offset."""

    group: _Group
    topic: _Topic
    partition: _Partition
    offset: Annotated[Integer, "committed offset"]
    committed: Annotated[Millis, "when it was committed", HIDDEN]


class NodeRow(Row):
    """A node of a group in ZooKeeper."""

    group: _HiddenGroup
    path: Annotated[str, "path of the ZooKeeper node"]
    action: Annotated[str, "delete or deleted"]


class RebalanceRow(Row):
    """A partition before and after a rebalance."""

    group: _HiddenGroup
    topic: _Topic
    partition: _Partition
    old_owner: Annotated[Text, "consumer thread it was assigned to before"]
    new_owner: Annotated[Text, "consumer thread it is assigned to now"]
    changed: Annotated[Flag, "whether they differ"]


class ProblemRow(Row):
    """A problem of a group."""

    group: _HiddenGroup
    kind: Annotated[str, "kind of problem"]
    topic: _Topic
    partition: _Partition
    owner: Annotated[Text, "consumer thread in the owner node, or member"]
    detail: Annotated[str, "what is wrong"]


LIST = Document("group.list/1", GroupRow, empty="no groups")
MEMBERS = Document("group.members/1", MemberRow, empty="no members")
RESET = Document("group.reset/1", OffsetChangeRow, empty="no partitions")
RESET_OF_GROUPS = RESET.showing("group")
EXPORT = Document("group.export/1", OffsetRow, empty="no offsets")
NODES = Document("group.delete/1", NodeRow, empty="no nodes")
REBALANCE = Document("group.rebalance/1", RebalanceRow, empty="no partitions")
VERIFY = Document("group.verify/1", ProblemRow, empty="")


def group_row(snapshot: GroupSnapshot, lag_bytes: int | None) -> GroupRow:
    """Return a row of `LIST`."""
    return GroupRow(
        snapshot.name,
        snapshot.state,
        len(snapshot.members),
        snapshot.topics,
        lag_bytes,
        snapshot.oldest_commit_ms,
    )


def partition_record(lag: PartitionLag, group: GroupLag, *, allowed_lag: int = 0) -> dict[str, Any]:
    """Return a row of `DESCRIBE` and of `LAG`; `allowed_lag` bytes of lag count as none."""
    stored = lag.stored
    return {
        "group": group.snapshot.name,
        "topic": lag.partition.topic,
        "partition": lag.partition.name,
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


def member_row(member: Member, snapshot: GroupSnapshot) -> MemberRow:
    """Return a row of `MEMBERS`."""
    consumers = [consumer_of(one.thread_id) for one in snapshot.owners.values()]
    return MemberRow(
        snapshot.name,
        member.consumer_id,
        member.text,
        sorted(member.stream_counts),
        member.thread_count,
        consumers.count(member.consumer_id),
        member.since_ms,
        f"0x{member.session_id & (1 << 64) - 1:x}",
    )


def change_row(change: Change) -> OffsetChangeRow:
    """Return a row of `RESET`."""
    return OffsetChangeRow(
        change.group,
        change.partition.topic,
        change.partition.name,
        change.current_offset,
        change.new,
        change.delta_bytes,
        change.direction,
        "; ".join(change.notes) or None,
    )


def problem_row(group: str, problem: GroupProblem) -> ProblemRow:
    """Return a row of `VERIFY`."""
    partition = problem.partition
    topic, name = (None, None) if partition is None else (partition.topic, partition.name)
    return ProblemRow(group, problem.kind.value, topic, name, problem.owner, problem.detail)


def _seconds_since(then_ms: int | None, now_ms: int) -> float | None:
    # ZooKeeper's clock sets the commit time, and may be ahead of ours.
    return None if then_ms is None else max(0, now_ms - then_ms) / 1000


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)
