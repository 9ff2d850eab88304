"""The leader of a partition: followers' progress, the high watermark, the in-sync replicas.

A message is committed once every replica has it that the controller may make the leader. While the
leader and the controller may differ about which those are, the leader counts each replica that
either of them may consider in sync: a joining follower from its proposal on, a leaving one until
its removal is confirmed.

Times are seconds of a monotonic clock.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from broker import cluster_state, errors
from broker.leader_epochs import term_of
from broker.replication.replica_log import NO_DIVERGENCE, FetchAnswer, FetchPosition, ReplicaLog

_UNKNOWN_END = -1
_RETRY_S = 1.0
"""Wait before a refused or unanswered change of the in-sync replicas is proposed again."""


@dataclass(slots=True, eq=False)
class _Progress:
    caught_up_s: float
    log_end_offset: int
    broker_epoch: int = cluster_state.UNKNOWN_BROKER_EPOCH
    end_offset: int = _UNKNOWN_END
    fetched_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.fetched_s = self.caught_up_s

    def note(self, end_offset: int, log_end_offset: int, now_s: float) -> None:
        """Note a fetch."""
        if end_offset >= log_end_offset:
            self.caught_up_s = now_s
        # one that is always one fetch behind a busy leader keeps up: it has what the leader had
        # then
        elif end_offset >= self.log_end_offset:
            self.caught_up_s = max(self.caught_up_s, self.fetched_s)
        self.end_offset = end_offset
        self.fetched_s = now_s
        self.log_end_offset = log_end_offset


def resignation(info: cluster_state.ReplicatedPartition, me: int) -> cluster_state.IsrChange | None:
    """Return the proposal that makes another in-sync replica lead; None if there is no other."""
    others = [id for id in info.state.isr if id != me]
    if not others:
        return None
    return cluster_state.IsrChange(
        info.partition,
        info.state.leader_epoch,
        info.version,
        tuple(cluster_state.IsrMember(id, cluster_state.UNKNOWN_BROKER_EPOCH) for id in others),
        cluster_state.creation_key(info.creation_id),
    )


@dataclass(eq=False)
class Leader:
    """One term of a replica as the leader of its partition.

    Args:
        log: the epoch has begun in it. Its high watermark may be behind: nothing is truncated then.
        epoch_start_offset: the log's end when the term began. A follower with less may lack
            messages committed in an earlier term, whatever the high watermark says.
        lag_time_s: how long an in-sync replica may be behind the end of the log.
        counts_flushed: whether only flushed messages count as being on a replica.
    """

    me: int
    info: cluster_state.ReplicatedPartition
    log: ReplicaLog
    epoch_start_offset: int
    began_s: float
    _: KW_ONLY
    lag_time_s: float
    counts_flushed: bool

    def __post_init__(self) -> None:
        info, log, now_s = self.info, self.log, self.began_s
        self.is_stopped = False
        self._creation = cluster_state.creation_key(info.creation_id)
        self.term = term_of(self._creation, info.state.leader_epoch)  # of the messages it appends
        self._followers: dict[int, _Progress] = {}
        self._add_followers(info.replicas)
        self._counted = frozenset(info.state.isr)
        self._joining: set[int] = set()
        self._leaving: set[int] = set()
        self._in_flight: cluster_state.IsrChange | None = None
        self._is_uncertain = False
        self._retry_s = now_s
        self._remote_end: int | None = None
        self._seen_high_watermark = log.high_watermark
        self._progress_s = now_s
        self._recount()

    @property
    def counted_isr(self) -> frozenset[int]:
        """Return the replicas that the high watermark waits for."""
        return self._counted

    @property
    def has_joining(self) -> bool:
        """Return whether a follower has caught up that `tick` can propose as in sync."""
        return bool(self._joining) and self._in_flight is None

    def lag_of(self, replica_id: int) -> int | None:
        """Return by how much a follower is behind the log's end; None before its first fetch."""
        end = self._followers[replica_id].end_offset
        return None if end == _UNKNOWN_END else max(0, self.log.log_end_offset - end)

    def stalled_s(self, now_s: float) -> float:
        """Return how long messages have waited without an advance of the high watermark.

        It is as exact as `tick` is frequent: that alone compares, so that appends cost nothing.
        """
        return 0.0 if self._has_progress else max(0.0, now_s - self._progress_s)

    @property
    def _has_progress(self) -> bool:
        high_watermark = self.log.high_watermark
        is_new = high_watermark != self._seen_high_watermark
        return is_new or high_watermark >= self.log.log_end_offset

    @property
    def _is_at_rest(self) -> bool:
        """Return whether all counted replicas have all, and no change of them is open."""
        end = self._remote_end
        return (
            (end is None or end >= self.log.log_end_offset)
            and not (self._joining or self._is_uncertain or self._in_flight is not None)
            and self._leaving.isdisjoint(self.info.state.isr)
        )

    def count_flushed(self, counts_flushed: bool) -> None:
        """Change whether only flushed messages count as being on a replica.

        For followers this holds from their next fetch on; what is committed stays committed.
        """
        if counts_flushed != self.counts_flushed:
            self.counts_flushed = counts_flushed
            self._recount()

    def check_append(self, *, needs_commit: bool) -> None:
        """Raise if messages may not be appended: the term is over, or too few replicas are in sync.

        The latter only with `needs_commit`: the producer waits for the commit (acks -1).
        """
        self._raise_if_not_leading()
        count, least = len(self.info.state.isr), self.info.min_isr
        if needs_commit and count < least:
            raise errors.NotEnoughReplicasError(
                f"{self.info.partition}: {count} replicas are in sync, {least} are required; "
                f"this request has appended nothing"
            )

    def check_latest(self) -> None:
        """Raise `OffsetNotAvailableError` while the high watermark is below the start of the term.

        Consumers of an earlier leader may have read above it (KIP-207). It is right once all
        in-sync replicas have fetched.
        """
        if self.log.high_watermark < self.epoch_start_offset:
            raise errors.OffsetNotAvailableError(
                f"{self.info.partition}: the high watermark of its new leader, broker {self.me}, "
                f"has not reached the start of leader epoch {self.info.state.leader_epoch}"
            )

    def is_committed(self, end_offset: int) -> bool:
        """Return whether all messages before an offset are committed.

        Raises `NotLeaderError` if the term is over, so that the outcome is unknown.
        """
        if self.log.high_watermark >= end_offset and not self.is_stopped:
            return True
        self._raise_if_not_leading()
        count, least = len(self.info.state.isr), self.info.min_isr
        if count < least:
            raise errors.NotEnoughReplicasAfterAppendError(
                f"{self.info.partition}: {count} replicas are in sync, {least} are required; "
                f"messages before offset {end_offset} are in the leader's log only"
            )
        return False

    def appended(self) -> None:
        """Advance the high watermark after an append, if the leader has no in-sync followers."""
        if self._remote_end is None:
            self._advance()

    def flushed(self) -> None:
        """Advance the high watermark after a flush."""
        self._advance()

    def fetched(
        self, replica_id: int, broker_epoch: int, position: FetchPosition, now_s: float
    ) -> FetchAnswer:
        """Note the progress of a follower; return and raise like `answer`.

        `broker_epoch` is that of the follower's registration, as the controller announced it. A
        replica that this broker has yet to hear of raises `UnknownEpochError` too.
        """
        answer = self.answer(position)
        follower = self._followers.get(replica_id)
        if follower is None:
            raise errors.UnknownEpochError(
                f"broker {replica_id} is not known here as a follower of {self.info.partition}"
            )
        self._leaving.discard(replica_id)
        if answer.diverging is NO_DIVERGENCE:
            follower.broker_epoch = broker_epoch
            end = position.flushed_offset if self.counts_flushed else position.offset
            follower.note(min(end, position.offset), self.log.log_end_offset, now_s)
            if replica_id in self._counted:
                self._recount()
            if replica_id not in self.info.state.isr and self._may_join(follower):
                self._joining.add(replica_id)
        return answer

    def left(self, replica_id: int, position: FetchPosition) -> None:
        """Note that a follower's disk refuses more, until its next fetch; raise like `answer`."""
        self.answer(position)
        self._joining.discard(replica_id)
        self._leaving.add(replica_id)

    def fetched_again(self, replica_id: int, position: FetchPosition, now_s: float) -> bool:
        """Note that a follower fetches once more from where it is up to date.

        Returns False if it is not: then its fetch is to be noted with `fetched`, as any other.
        """
        end = self.log.log_end_offset
        follower = self._followers.get(replica_id)
        if (
            follower is None
            or self.is_stopped
            or not end == position.offset == follower.end_offset
            or (self.counts_flushed and position.flushed_offset < end)
            or replica_id not in self.info.state.isr
            or replica_id in self._leaving
        ):
            return False
        follower.caught_up_s = follower.fetched_s = now_s
        return True

    def end_of_term(self, term: int) -> int:
        """Return where a term ends in the log; -1 if the log has no messages of it."""
        return self.log.epochs.end_of_term(term, self._creation, self.log.log_end_offset)

    def answer(self, position: FetchPosition) -> FetchAnswer:
        """Compare a follower's log with the leader's, without noting progress.

        Raises an error if the term is over, or the follower means another leader epoch, another
        creation of the topic, or an offset that retention has removed.
        """
        if self.is_stopped:
            self._raise_if_not_leading()
        if position.creation != self._creation:
            raise errors.UnknownEpochError(
                f"a follower means another creation of {self.info.partition} than the one led here"
            )
        epoch = self.info.state.leader_epoch
        if position.leader_epoch < epoch:
            raise errors.FencedEpochError(f"{self.info.partition} is in a later leader epoch")
        if position.leader_epoch > epoch:
            raise errors.UnknownEpochError(
                f"{self.info.partition}: a later leader epoch is not known here"
            )
        log = self.log
        start, end = log.log_start_offset, log.log_end_offset
        epochs = log.epochs
        shared = epochs.end_of(position.last_epoch, end)
        if position.last_epoch < epochs.entries[0].epoch:  # removed by retention: unknown
            shared = cluster_state.EpochEnd(position.last_epoch, 0)
        if position.last_epoch >= 0 and (
            shared.epoch != position.last_epoch or shared.end_offset < position.offset
        ):
            return FetchAnswer(log.high_watermark, start, shared)
        if not start <= position.offset <= end:
            raise errors.OffsetOutOfRangeError(
                f"{self.info.partition}: a follower continues at offset {position.offset}, the "
                f"leader has {start} to {end}"
            )
        return FetchAnswer(log.high_watermark, start, NO_DIVERGENCE)

    def rests(self, now_s: float, *, counts_flushed: bool) -> bool:
        """Return whether `count_flushed` and `tick` would do nothing but note the time, noted here.

        The one method that needs no lock, if its thread is the one that calls `tick`.
        """
        high_watermark = self.log.high_watermark
        if not (
            self._is_at_rest
            and high_watermark >= self.log.log_end_offset
            and counts_flushed == self.counts_flushed
        ):
            return False
        self._seen_high_watermark = high_watermark
        self._progress_s = now_s
        return True

    def tick(self, now_s: float) -> cluster_state.IsrChange | None:
        """Return the change of the in-sync replicas to propose to the controller, if there is one.

        Call it regularly, and whenever `has_joining`. One proposal is in flight at a time; its
        outcome goes to `isr_decided` or `isr_failed`. In it the leader, and a member that stays and
        has not fetched yet, have `UNKNOWN_BROKER_EPOCH`.
        """
        if self._has_progress:
            self._seen_high_watermark = self.log.high_watermark
            self._progress_s = now_s
        if self._is_at_rest:
            return None
        if self.is_stopped or self._in_flight is not None or now_s < self._retry_s:
            return None
        isr = self.info.state.isr
        joining = [id for id in sorted(self._joining) if self._may_join(self._followers[id])]
        self._joining.clear()
        for id in joining:
            self._followers[id].caught_up_s = now_s
        kept = [id for id in isr if id not in self._leaving and not self._lags(id, now_s)]
        wanted = (*kept, *joining)
        if wanted == isr and not self._is_uncertain:
            return None
        epochs = {id: one.broker_epoch for id, one in self._followers.items()}
        self._in_flight = cluster_state.IsrChange(
            self.info.partition,
            self.info.state.leader_epoch,
            self.info.version,
            tuple(
                cluster_state.IsrMember(id, epochs.get(id, cluster_state.UNKNOWN_BROKER_EPOCH))
                for id in wanted
            ),
            self._creation,
        )
        self._count(self._counted.union(wanted))
        return self._in_flight

    def resignation(self) -> cluster_state.IsrChange | None:
        """Return the proposal that makes another replica lead, to send in place of `tick`'s.

        The log of this one has failed. None if no other replica is in sync.
        """
        return None if self.is_stopped else resignation(self.info, self.me)

    def isr_decided(self, info: cluster_state.ReplicatedPartition) -> None:
        """Take over the state as the controller has it, of this leader epoch.

        An older version, such as that of a late push, changes nothing. A later one ends all
        proposals made before it. Replicas can be added within an epoch; they are removed at the
        start of another one.
        """
        if info.version >= self.info.version:
            self._add_followers(info.replicas)
        if info.version > self.info.version:
            self.info = info
            self._in_flight = None
            self._is_uncertain = False
            self._count(frozenset(info.state.isr))
        elif info.version == self.info.version:
            known = self.info.replicas
            added = tuple(id for id in info.replicas if id not in known)
            self.info = self.info._replace(min_isr=info.min_isr, replicas=(*known, *added))
            self._advance()

    def isr_failed(self, proposal: cluster_state.IsrChange, now_s: float) -> None:
        """Note that a proposal was refused or got no response; another one is made after a while.

        Even a refused one may still be carried out, by a slow controller that an earlier attempt
        reached: its replicas stay counted until the controller names a later version.
        """
        if proposal is self._in_flight:
            self._in_flight = None
            self._is_uncertain = True
            self._retry_s = now_s + _RETRY_S

    def stop(self) -> None:
        """End the term: from now on no message is acknowledged."""
        self.is_stopped = True

    def _raise_if_not_leading(self) -> None:
        if self.is_stopped:
            raise errors.NotLeaderError(
                f"broker {self.me} does not lead {self.info.partition} any more"
            )

    def _may_join(self, follower: _Progress) -> bool:
        least = max(self.log.high_watermark, self.epoch_start_offset)
        return follower.end_offset >= least

    def _lags(self, replica_id: int, now_s: float) -> bool:
        if replica_id == self.me:
            return False
        follower = self._followers[replica_id]
        return (
            follower.end_offset < self.log.log_end_offset
            and now_s - follower.caught_up_s > self.lag_time_s
        )

    def _add_followers(self, replicas: tuple[int, ...]) -> None:
        for id in replicas:
            if id != self.me and id not in self._followers:
                began_s = self.began_s
                caught_up_s = began_s if id in self.info.state.isr else began_s - self.lag_time_s
                self._followers[id] = _Progress(caught_up_s, self.log.log_end_offset)

    def _count(self, replicas: frozenset[int]) -> None:
        self._counted = replicas
        self._recount()

    def _recount(self) -> None:
        ends = [self._followers[id].end_offset for id in self._counted if id != self.me]
        self._remote_end = min(ends, default=None)
        self._advance()

    def _advance(self) -> None:
        """Move the high watermark as far as the counted replicas allow; it never moves back."""
        info = self.info
        if self.is_stopped or len(info.state.isr) < info.min_isr:
            return
        log = self.log
        end = log.flushed_offset if self.counts_flushed else log.log_end_offset
        if self._remote_end is not None:
            end = min(end, self._remote_end)
        if end > log.high_watermark:
            log.advance_high_watermark(end)
