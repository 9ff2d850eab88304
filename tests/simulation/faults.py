"""Deliberate defects: the checker must find each of them, or it proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from broker.cluster_state import IsrChange, PartitionState, ReplicatedPartition
from broker.controller.leadership import Leadership
from broker.controller.suspicion import Suspicion, Witness
from broker.errors import UnknownFetchSessionError
from broker.ids import NO_EPOCH
from broker.leader_epochs import LeaderEpochs
from broker.log import batch_index, producers
from broker.log.format import BATCHES
from broker.log.log import Log
from broker.log.producers import BatchSegment, Producers
from broker.log.segment import CopiedEntries, Segment, SegmentFile
from broker.log.side_files import INDEX_SUFFIX, find_indexed
from broker.protocol.fetch_sessions import FetchSessions
from broker.replica_records import UnknownReplica
from broker.replication.follower import FetchResult, Follower
from broker.replication.leader import Leader
from broker.replication.replica_log import FetchAnswer, FetchPosition
from broker.replication.replicas import Applied, Replica, Replicas, RoleChange
from broker.topic import TopicPartition
from tests.simulation.broker import Broker, Options
from tests.simulation.registry import Registry

Prepare = Callable[[Options, Registry], Options]
Patch = tuple[object, str, Callable[..., Any] | property]


def _as_they_are(options: Options, registry: Registry) -> Options:
    return options


@dataclass(frozen=True)
class Fault:
    """A defect.

    Attributes:
        text: what is wrong.
        patches: methods and functions that are replaced while a simulation runs.
        prepare: changes the options of a run.
        is_unclean: whether runs allow unclean elections; None for as it comes.
        loses_power: whether brokers lose what is not flushed; None for as it comes.
        frequent: name of what happens far more often than without it.
    """

    text: str
    patches: tuple[Patch, ...] = ()
    prepare: Prepare = _as_they_are
    is_unclean: bool | None = False
    loses_power: bool | None = None
    frequent: str = ""


_answer, _cut, _position = Leader.answer, Follower._cut, Follower._position
_follow, _tick, _push, _apply = Replica._follow, Leader.tick, Replicas.push, Replica.apply
_fetched = Leader.fetched


def _without_comparison(self: Leader, position: FetchPosition) -> FetchAnswer:
    return _answer(self, position._replace(last_epoch=NO_EPOCH))


def _cut_to_high_watermark(self: Replica, info: ReplicatedPartition) -> None:
    self.log.truncate(self.log.high_watermark)
    _follow(self, info)


def _cut_once(self: Follower, answer: FetchAnswer) -> FetchResult:
    self.log.truncate(
        max(self.log.log_start_offset, min(answer.diverging.end_offset, self.log.log_end_offset))
    )
    self.__dict__["has_cut"] = True
    return FetchResult.TRUNCATED


def _position_after_one_cut(self: Follower) -> FetchPosition:
    position = _position(self)
    return position._replace(last_epoch=NO_EPOCH) if "has_cut" in self.__dict__ else position


def _any_epoch(self: Leader, position: FetchPosition) -> FetchAnswer:
    return _answer(self, position._replace(leader_epoch=self.info.state.leader_epoch))


def _any_creation(self: Leader, position: FetchPosition) -> FetchAnswer:
    return _answer(self, position._replace(creation=self._creation))


def _any_term(self: Follower, position: FetchPosition) -> bool:
    self.is_stopped = False
    return position.offset == self.log.log_end_offset


def _orders_of_any_epoch(self: Replica, info: ReplicatedPartition, now_s: float) -> RoleChange:
    if info.state.leader_epoch < self.leader_epoch:
        self.leader_epoch = -1
    return _apply(self, info, now_s)


def _orders_of_any_controller(
    self: Replicas, controller_epoch: int, *arguments: Any, is_full: bool
) -> Applied:
    self.controller_epoch = -1
    return _push(self, controller_epoch, *arguments, is_full=is_full)


def _joins_at_high_watermark(self: Leader, follower: Any) -> bool:
    return bool(follower.end_offset >= self.log.high_watermark)


def _gives_any_latest(self: Leader) -> None:
    pass


def _counts_what_it_wants(self: Leader, now_s: float) -> IsrChange | None:
    change = _tick(self, now_s)
    if change is not None:
        self._count(frozenset(member.broker_id for member in change.isr))
    return change


def _counts_any_fetch(
    self: Leader, replica_id: int, broker_epoch: int, position: FetchPosition, now_s: float
) -> FetchAnswer:
    answer = _fetched(self, replica_id, broker_epoch, position, now_s)
    follower = self._followers.get(replica_id)
    if follower is not None:
        follower.end_offset = position.flushed_offset
        self._recount()
    return answer


def _any_session(self: FetchSessions[Any], session_id: int, epoch: int, owner: object) -> Any:
    session = self._by_id.get(session_id)
    if session is None:
        raise UnknownFetchSessionError("no such session")
    return session


def _forgets_deletions(self: Replicas, *arguments: Any) -> None:
    pass


def _notes_anything(self: Replicas, info: ReplicatedPartition) -> bool:
    self.known[info.partition] = info
    return True


def _creation_of_the_home_disk(self: Broker, info: ReplicatedPartition) -> str:
    home = self.peers.get(info.partition.home, self)
    return f"{info.creation_id} on disk {home.disk_count}"


def _allow_unclean(options: Options, registry: Registry) -> Options:
    return replace(options, controller=options.controller._replace(allows_unclean=True))


def _count_unflushed(options: Options, registry: Registry) -> Options:
    return replace(options, counts_flushed=False)


def _without_fencing(options: Options, registry: Registry) -> Options:
    registry.is_fencing = False
    return options


def _always_clean(self: Broker) -> None:
    self.is_clean = True
    _start(self)


_start = Broker.start


def _position_backwards(self: UnknownReplica) -> tuple[int, int]:
    return -self.last_epoch, -self.log_end_offset


_shortest = property(_position_backwards)


def _is_enough_alone(self: Suspicion, witness: Witness | None, has_others: bool) -> bool:
    return True


def _settled_in_the_same_epoch(
    self: Leadership, partition: TopicPartition, state: PartitionState
) -> PartitionState:
    settled = _settled(self, partition, state)
    if state.leader in self.context.suspected:
        return settled._replace(leader_epoch=state.leader_epoch)
    return settled


_settled = Leadership._settled


def _start_where_the_leader_does(self: Follower, answer: FetchAnswer) -> FetchResult:
    self.log.restart_at(answer.log_start_offset)
    return FetchResult.RESTARTED


def _without_the_epoch_before(self: LeaderEpochs, log_start_offset: int) -> LeaderEpochs:
    kept = _trimmed(self, log_start_offset).entries
    return LeaderEpochs(
        tuple(
            one._replace(start_offset=max(one.start_offset, log_start_offset))
            for one, after in zip_longest(kept, kept[1:])
            if after is None or after.start_offset > log_start_offset
        )
    )


_trimmed = LeaderEpochs.trimmed


def _stamped(
    self: Log, entries: CopiedEntries, offset: int, appended_ms: int | None = None
) -> None:
    if self.format is BATCHES:
        data, next_offset, heads = BATCHES.place(entries.data, offset, self.epochs.last_epoch)
        entries = CopiedEntries(memoryview(data), entries.entry_count, next_offset, heads)
    _append_copied(self, entries, offset, appended_ms)


_append_copied = Log.append_copied


def _unconfirmed(segment: Segment, file: SegmentFile, offset: int) -> int:
    if segment.index is not None:
        return segment.index.floor(offset)[1]
    path = segment.path.with_suffix(INDEX_SUFFIX)
    try:
        return find_indexed(path, segment.base_offset, offset).position
    except OSError:
        return 0


def _of_a_snapshot_only(
    partition: TopicPartition, segments: Sequence[BatchSegment], *arguments: Any, **settings: Any
) -> Producers:
    if any(segments[0].path.parent.glob("*.snapshot")):
        return _rebuild(partition, segments, *arguments, **settings)
    return Producers(partition)


_rebuild = producers.rebuild


def _trust_any_clock(self: Broker) -> bool:
    return False


FAULTS = {
    "truncation-to-high-watermark": Fault(
        "a follower cuts its log to its high watermark, and compares no epochs (0.8)",
        (
            (Replica, "_follow", _cut_to_high_watermark),
            (Leader, "answer", _without_comparison),
        ),
    ),
    "one-cut": Fault(
        "a follower cuts its log once and does not ask again (KIP-101 without KIP-279)",
        ((Follower, "_cut", _cut_once), (Follower, "_position", _position_after_one_cut)),
        is_unclean=True,
    ),
    "no-fencing": Fault(
        "fetches, their answers and orders of earlier leader epochs are taken",
        (
            (Leader, "answer", _any_epoch),
            (Follower, "is_awaiting", _any_term),
            (Replica, "apply", _orders_of_any_epoch),
        ),
    ),
    "join-without-epoch-start": Fault(
        "a follower joins the in-sync replicas at the high watermark of a new leader (KAFKA-7128)",
        ((Leader, "_may_join", _joins_at_high_watermark),),
    ),
    "acknowledge-before-flush": Fault(
        "what is not flushed counts as being on a replica, and brokers lose power",
        prepare=_count_unflushed,
        loses_power=True,
    ),
    "controller-without-fencing": Fault(
        "a former controller goes on writing states and giving orders",
        ((Replicas, "push", _orders_of_any_controller),),
        _without_fencing,
    ),
    "unclean-election": Fault(
        "a replica that is not in sync may become the leader", prepare=_allow_unclean
    ),
    "changes-of-isr-at-once": Fault(
        "a leader waits only for the in-sync replicas it wants, before they are confirmed",
        ((Leader, "tick", _counts_what_it_wants),),
    ),
    "diverging-fetch-is-progress": Fault(
        "a fetch from beyond where the logs part counts as progress (KAFKA-13141)",
        ((Leader, "fetched", _counts_any_fetch),),
    ),
    "unclean-start-is-trusted": Fault(
        "a broker that may have lost messages says that it has not",
        ((Broker, "start", _always_clean),),
        loses_power=True,
    ),
    "deletions-are-forgotten": Fault(
        "late orders for a replica that was removed, or a topic that was deleted, are taken",
        ((Replicas, "_note_deleted", _forgets_deletions),),
    ),
    "late-news-are-news": Fault(
        "what a controller told first replaces what it told later, if it comes later",
        ((Replicas, "note", _notes_anything),),
    ),
    "stale-latest-offset": Fault(
        "a new leader gives its stale high watermark as the latest offset (KIP-207)",
        ((Leader, "check_latest", _gives_any_latest),),
    ),
    "identity-on-a-disk": Fault(
        "what a topic is depends on the disk of its home broker",
        ((Broker, "creation_id_of", _creation_of_the_home_disk),),
    ),
    "creations-are-not-told-apart": Fault(
        "fetches that mean a former topic of the name count as progress",
        ((Leader, "answer", _any_creation),),
        frequent="_delete_or_create",
    ),
    "elects-on-one-witness": Fault(
        "a broker that one other misses is taken for dead, although others reach it",
        ((Suspicion, "_is_enough", _is_enough_alone),),
        frequent="_isolate_controller",
    ),
    "silent-leader-is-not-fenced": Fault(
        "the next leader of a broker that is taken for dead leads in the same epoch",
        ((Leadership, "_settled", _settled_in_the_same_epoch),),
        frequent="_refuse",
    ),
    "session-mixed-up": Fault(
        "a fetch goes on with the session of its number, whosever that is and whatever it lacks",
        ((FetchSessions, "take", _any_session),),
    ),
    "shortest-copy-is-restored": Fault(
        "a topic that the registry has lost is made again over the shortest copy",
        ((UnknownReplica, "last_position", _shortest),),
    ),
    "log-start-is-taken-over": Fault(
        "a follower gives up what its leader has removed, whatever its own retention keeps",
        (
            (Follower, "_start_at", _start_where_the_leader_does),
            (LeaderEpochs, "trimmed", _without_the_epoch_before),
        ),
    ),
    "clocks-are-not-compared": Fault(
        "retention deletes by a clock that differs from those of the other brokers",
        ((Broker, "is_held", _trust_any_clock),),
    ),
    "follower-stamps": Fault(
        "a follower stamps the batches that it copies with the leader epoch in which it does so",
        ((Log, "append_copied", _stamped),),
    ),
    "index-is-trusted": Fault(
        "rows of an index are believed, whatever is in the segment",
        ((batch_index, "_floor", _unconfirmed),),
    ),
    "snapshot-is-not-rebuilt": Fault(
        "a log that has lost its snapshots of producers knows none of them",
        ((producers, "rebuild", _of_a_snapshot_only),),
    ),
}
