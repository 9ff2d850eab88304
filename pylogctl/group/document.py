"""The rows of `pylogctl group`, and the documents that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any

from broker.admin.group_plans import Change
from broker.admin.groups import GroupSnapshot, Member
from broker.admin.lag import GroupLag, LagStatus, ObservedPartition, consumer_of, total, worst
from broker.admin.rebalance import GroupProblem
from broker.records import HIDDEN, ByteRate, Bytes, Fit, Integer, Millis, Rank, Seconds, Text, Title
from pylogctl.cli.columns import UNKNOWN, Document, Row, if_known

_Group = Annotated[str, "name of the group"]
_HiddenGroup = Annotated[str, "name of the group", HIDDEN]
_Topic = Annotated[Text, "name of the topic"]
_Partition = Annotated[
    Text, "partition: home broker and index; a number in the format kafka", Fit.WHOLE
]


class _Lag(Row):
    lag_bytes: Annotated[Bytes, "bytes not yet consumed"] = None
    lag_messages: Annotated[Integer, "messages not yet consumed, if they were counted"] = None


class _Pace(Row):
    age_s: Annotated[
        Seconds, "seconds since the next message was written", Title("AGE"), Rank(2), HIDDEN
    ] = None
    bytes_per_s: Annotated[
        ByteRate, "bytes consumed a second over the window", Title("RATE"), Rank(4), HIDDEN
    ] = None
    eta_s: Annotated[
        Seconds, "seconds until the lag is consumed at this rate", Title("ETA"), Rank(3), HIDDEN
    ] = None
    status: Annotated[Text, "status; see the manual", Fit.STATE] = None


PACE = ("age_s", "bytes_per_s", "eta_s")  # shown where a group is observed for a while
_IDLE = _Pace(status="IDLE")


class LagRow(Row):
    """A partition, a member without one, or the total of a group."""

    group: _HiddenGroup
    topic: _Topic = None
    partition: _Partition = None
    owner: Annotated[Text, "consumer thread it is assigned to; or an idle member", Rank(2)] = None
    offset: Annotated[Integer, "committed offset, if it is a number"] = None
    stored: Annotated[Text, "value of the offset's node", HIDDEN] = None
    end: Annotated[Integer, "offset after the last readable message", Rank(3)] = None
    lag: _Lag = _Lag()
    commit_age_s: Annotated[
        Seconds, "seconds since the offset was committed", Title("COMMIT-AGE"), Rank(4)
    ] = None
    pace: _Pace = _Pace()


class Sums(Row):
    """Partitions of a group together."""

    partitions: Annotated[Integer, "number of partitions", Rank(1)]
    lag: _Lag = _Lag()
    commit_age_s: Annotated[
        Seconds,
        "seconds since the oldest of its offsets was committed",
        Title("COMMIT-AGE"),
        Rank(4),
    ] = None
    pace: _Pace = _Pace()


class TopicLagRow(Row):
    """The partitions of a topic."""

    group: _HiddenGroup
    topic: _Topic
    sums: Sums


class MemberLagRow(Row):
    """The partitions assigned to a member."""

    group: _HiddenGroup
    member: Annotated[Text, "consumer id; - for partitions without owner"]
    sums: Sums


class GroupLagRow(Row):
    """All partitions of a group."""

    group: _Group
    state: Annotated[str, "active, empty or dead", Fit.STATE]
    members: Annotated[Integer, "number of members", Rank(2)]
    topics: Annotated[Integer, "number of topics", Rank(2)]
    sums: Sums


class GroupRow(Row):
    """A group."""

    group: _Group
    state: Annotated[Text, "active, empty (offsets, no members) or dead (neither)", Fit.STATE] = (
        None
    )
    members: Annotated[Integer, "number of members"] = None
    topics: Annotated[
        Sequence[str] | None, "topics of its members, offsets and owners", Fit.WRAP, Rank(1)
    ] = None
    lag_bytes: Annotated[Bytes, "bytes not yet consumed, where that is known"] = None
    oldest_commit: Annotated[Millis, "when the oldest of its offsets was committed", Rank(2)] = None


class MemberRow(Row):
    """A member of a group."""

    group: _HiddenGroup
    member: Annotated[str, "consumer id"]
    subscription: Annotated[str, "subscription as it registered it", Fit.WRAP, HIDDEN]
    topics: Annotated[list[str], "topics it consumes", Fit.WRAP, Rank(1)]
    streams: Annotated[Integer, "number of its consumer threads"]
    partitions: Annotated[Integer, "partitions assigned to it"]
    since: Annotated[Millis, "when it joined", Rank(2)]
    session: Annotated[str, "its ZooKeeper session", HIDDEN]


class OffsetChangeRow(Row):
    """An offset that is, or would be, changed."""

    group: _HiddenGroup
    topic: _Topic
    partition: _Partition
    current: Annotated[Integer, "committed offset"]
    new: Annotated[Integer, "new offset; none if it is removed"]
    delta_bytes: Annotated[Bytes, "by how many bytes it moves", Rank(3)]
    direction: Annotated[str, "forward, back, same, new or removed", Fit.STATE, Rank(2)]
    note: Annotated[Text, "what was adjusted, or why it is not changed", Fit.WRAP]


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
    action: Annotated[str, "delete or deleted", Fit.STATE]


class RebalanceRow(Row):
    """A partition that a rebalance moved."""

    group: _HiddenGroup
    topic: _Topic
    partition: _Partition
    old_owner: Annotated[Text, "consumer thread it was assigned to before"]
    new_owner: Annotated[Text, "consumer thread it is assigned to now"]


class ProblemRow(Row):
    """A problem of a group."""

    group: _HiddenGroup
    kind: Annotated[str, "kind of problem", Fit.STATE]
    topic: _Topic
    partition: _Partition
    owner: Annotated[Text, "consumer thread in the owner node, or member", Rank(1)]
    detail: Annotated[str, "what is wrong", Fit.WRAP]


DESCRIBE = Document("group.describe/2", LagRow, empty="the group has no partitions").without(
    "age_s"
)
BY_TOPIC = Document("group.describe-topic/2", TopicLagRow, empty="no topics").without("age_s")
BY_MEMBER = Document("group.describe-member/2", MemberLagRow, empty="no members").without("age_s")
BY_GROUP = Document("group.describe-group/2", GroupLagRow, empty="no group").without("age_s")
LAG = Document("group.lag/2", LagRow, empty="no partitions").without("owner", "commit_age_s")
LIST = Document("group.list/1", GroupRow, empty="no groups")
MEMBERS = Document("group.members/1", MemberRow, empty="no members")
RESET = Document("group.reset/1", OffsetChangeRow, empty="")
RESET_OF_GROUPS = RESET.showing("group")
EXPORT = Document("group.export/1", OffsetRow, empty="no offsets")
NODES = Document("group.delete/1", NodeRow, empty="no nodes")
REBALANCE = Document("group.rebalance/1", RebalanceRow, empty="no partition moved")
VERIFY = Document("group.verify/1", ProblemRow, empty="")


def group_row(found: GroupLag) -> GroupRow:
    """Return a row of `LIST`."""
    snapshot = found.snapshot
    return GroupRow(
        snapshot.name,
        snapshot.state,
        len(snapshot.members),
        snapshot.topics,
        _lag_bytes(found.lag_bytes, found.partitions),
        snapshot.oldest_commit_ms,
    )


def partition_row(lag: ObservedPartition, group: GroupLag, *, allowed_lag: int = 0) -> LagRow:
    """Return a row of `DESCRIBE` and of `LAG`; `allowed_lag` bytes of lag count as none."""
    stored = lag.stored
    return LagRow(
        group.snapshot.name,
        lag.partition.topic,
        lag.partition.name,
        None if lag.owner is None else lag.owner.thread_id,
        None if stored is None else stored.offset,
        None if stored is None else stored.text,
        UNKNOWN if lag.ends is None else lag.ends.end,
        _Lag(_lag_bytes(lag.lag_bytes, [lag]), _lag_messages([lag])),
        _seconds_since(None if stored is None else stored.commit_ms, group.time_ms),
        _Pace(
            None if lag.lag_bytes is None else if_known(_rounded(lag.age_s)),
            _whole(lag.rate),
            if_known(_rounded(lag.eta_s)) if lag.rate is not None else None,
            lag.status(allowed_lag=allowed_lag).value,
        ),
    )


def idle_row(member: Member, group: GroupLag) -> LagRow:
    """Return a row of `DESCRIBE` for a member without an assigned partition."""
    return LagRow(group.snapshot.name, owner=member.consumer_id, pace=_IDLE)


def sums_of(lags: Sequence[ObservedPartition], group: GroupLag, *, allowed_lag: int = 0) -> Sums:
    """Return partitions of a group together."""
    commits = [one.stored.commit_ms for one in lags if one.stored is not None]
    rates = [one.rate for one in lags if one.rate is not None]
    etas = [one.eta_s for one in lags if one.lag_bytes]
    # The slowest partition decides; unknown if the ETA of one partition is.
    eta = None if None in etas else max((one for one in etas if one is not None), default=0.0)
    ages = [one.age_s for one in lags if one.lag_bytes is not None]
    age = None if None in ages else max((one for one in ages if one is not None), default=None)
    return Sums(
        len(lags),
        _Lag(_lag_bytes(total(one.lag_bytes for one in lags), lags), _lag_messages(lags)),
        _seconds_since(min(commits, default=None), group.time_ms),
        _Pace(
            if_known(_rounded(age)) if ages else None,
            _whole(sum(rates)) if rates else None,
            if_known(_rounded(eta)) if rates else None,
            worst(one.status(allowed_lag=allowed_lag) for one in lags).value,
        ),
    )


def total_row(group: GroupLag, *, allowed_lag: int = 0) -> LagRow:
    """Return the last row of `DESCRIBE` and of `LAG`."""
    sums = sums_of(group.partitions, group, allowed_lag=allowed_lag)
    return LagRow(
        group.snapshot.name, "total", lag=sums.lag, commit_age_s=sums.commit_age_s, pace=sums.pace
    )


def topic_rows(group: GroupLag) -> Iterator[TopicLagRow]:
    """Yield the rows of `BY_TOPIC`."""
    for topic, lags in _parts(group, lambda one: one.partition.topic):
        yield TopicLagRow(group.snapshot.name, topic, sums_of(lags, group))


def member_rows(group: GroupLag) -> Iterator[MemberLagRow]:
    """Yield the rows of `BY_MEMBER`; partitions without an owner come last."""
    idle = {member.consumer_id for member in group.idle_members}
    for member, lags in _parts(
        group, lambda one: None if one.owner is None else consumer_of(one.owner.thread_id), idle
    ):
        sums = Sums(0, pace=_IDLE) if member in idle else sums_of(lags, group)
        yield MemberLagRow(group.snapshot.name, member, sums)


def _parts(
    group: GroupLag, key: Callable[[ObservedPartition], str | None], empty: Iterable[str] = ()
) -> list[tuple[str | None, list[ObservedPartition]]]:
    parts: dict[str | None, list[ObservedPartition]] = {one: [] for one in empty}
    for lag in group.partitions:
        parts.setdefault(key(lag), []).append(lag)
    return sorted(parts.items(), key=lambda one: (one[0] is None, one[0] or ""))


def group_lag_row(group: GroupLag) -> GroupLagRow:
    """Return the row of `BY_GROUP`."""
    snapshot = group.snapshot
    return GroupLagRow(
        snapshot.name,
        snapshot.state,
        len(snapshot.members),
        len(snapshot.topics),
        sums_of(group.partitions, group),
    )


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


def _lag_bytes(known: int | None, lags: Sequence[ObservedPartition]) -> Any:
    """Return the lag of partitions, `UNKNOWN` if none is known and there may be some."""
    is_unknown = any(one.status() is LagStatus.UNKNOWN for one in lags)
    return UNKNOWN if known is None and is_unknown else known


def _seconds_since(then_ms: int | None, now_ms: int) -> float | None:
    # ZooKeeper's clock sets the commit time, and may be ahead of ours.
    return None if then_ms is None else max(0, now_ms - then_ms) / 1000


def _lag_messages(lags: Sequence[ObservedPartition]) -> int | None:
    """Return the messages of partitions whose lag is known; unknown if some were not counted."""
    counts = [one.lag_messages for one in lags if one.lag_bytes is not None]
    return if_known(None if None in counts else total(counts)) if counts else None


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)
