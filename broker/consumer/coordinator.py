"""The coordinator: a thread that rebalances a member's share of its group's partitions.

Watches in ZooKeeper only set a flag; this thread alone assigns and revokes. A partition that stays
with its consumer thread in a rebalance keeps its queue, its position and its fetcher.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import InitVar, dataclass

from broker.client.counts import ConsumerCounts
from broker.consumer.assignment import assign_topics
from broker.consumer.committer import AssignedPartition, Committer
from broker.consumer.fetcher_thread import Feed, FetcherPool
from broker.consumer.membership import (
    GroupView,
    Lease,
    LeaseKeeper,
    Membership,
    MemberView,
    Ownership,
)
from broker.consumer.offset_store import OffsetStore
from broker.consumer.stream import ConsumerStream
from broker.errors import BrokerError, RegistryUnreachableError
from broker.threads import StoppableThread
from broker.topic import MessagePosition, TopicPartition
from broker.zk.creations import Creations

logger = logging.getLogger(__name__)

_QUIET_S = 0.1
_MAX_DEBOUNCE_S = 1.0
# Members of Kafka 0.7 give up after four attempts, 2 s apart, to get a partition.
_TELLING_S = 5.0

# by partition, its thread id, and the number of partitions of each stream
ChooseStream = Callable[[TopicPartition, str, Mapping[ConsumerStream, int]], ConsumerStream]


@dataclass(eq=False, repr=False, kw_only=True)
class Coordinator(StoppableThread):
    """Assigns partitions to the streams of one member, and revokes them.

    Args:
        lease: renewed when the member is registered again, and by `lease_keeper`.
        attempts: how many may fail in a row before all partitions are revoked for a while.
        backoff_s: the wait between attempts.
        commits_on_revoke: false for applications that commit for themselves.
        counts: of this thread.
        commit_counts: of the committer.
    """

    membership: Membership
    store: OffsetStore
    pool: FetcherPool
    lease: Lease
    choose_stream: ChooseStream
    attempts: int
    backoff_s: float
    commits_on_revoke: bool
    counts: ConsumerCounts
    commit_counts: InitVar[ConsumerCounts]

    def __post_init__(self, commit_counts: ConsumerCounts) -> None:
        super().__init__("group-rebalance")
        self.session = self.membership.session
        self.ownership = Ownership(self.membership)
        self.committer = Committer(self.store, self.ownership, self.notify, commit_counts)
        self.lease_keeper = LeaseKeeper(self.lease, self.membership, self.notify)
        member = self.membership
        self._view = GroupView(self.session, member.group, member.subscription, self.notify)
        # replaced, never changed in place: readers need no lock
        self._feeds: dict[TopicPartition, Feed] = {}
        self._claimed: set[TopicPartition] = set()  # may have an owner node of this member
        self._finished_here: dict[TopicPartition, MessagePosition] = {}
        # deleted and created again while this process read them, and not assigned since
        self._recreated: set[TopicPartition] = set()
        # revoked as their owner nodes are gone, and not salvaged yet
        self._lost: list[AssignedPartition] = []
        self._changed = threading.Event()
        self._balanced = threading.Event()

    @property
    def assigned(self) -> list[AssignedPartition]:
        """Return the partitions assigned now."""
        return [feed.assigned for feed in self._feeds.values()]

    def register(self) -> None:
        """Register the member; before `start`, and again after an expired session."""
        asked_s = time.monotonic()
        self.membership.register()
        self.lease.renew(asked_s + self.session.session_timeout_s)

    def start(self) -> None:
        """Start the thread, which rebalances at once."""
        self._changed.set()
        super().start()

    def notify(self) -> None:
        """Request a rebalance after a possible change; from any thread."""
        self._balanced.clear()
        self._changed.set()

    def await_balanced(self, timeout_s: float | None) -> bool:
        """Wait until a rebalance has succeeded after the last change; return False on a timeout."""
        return self._balanced.wait(timeout_s)

    def stop(self) -> None:
        """Ask the thread to stop; partitions stay assigned."""
        super().stop()
        self._changed.set()

    def drop_all(self) -> list[AssignedPartition]:
        """Stop handing out all partitions, and return them; after `join`."""
        return self._drop(self._feeds.keys())

    def release_all(self) -> None:
        """Delete the owner nodes of all partitions; after `drop_all`."""
        self.ownership.release(self._claimed)

    def _loop(self) -> None:
        """Rebalance after each change until the thread is stopped."""
        again_s: float | None = None
        while not self._stopping.is_set():
            self._changed.wait(again_s)
            self._debounce()
            if self._stopping.is_set():
                return
            try:
                again_s = self._rebalance()
            except Exception:  # a bug must not end the membership: the next rebalance may succeed
                logger.exception("failure in the rebalance")
                again_s = self.backoff_s

    def _debounce(self) -> None:
        """Wait until a burst of changes is over, so that it causes one rebalance."""
        give_up_s = time.monotonic() + _MAX_DEBOUNCE_S
        while self._changed.is_set() and time.monotonic() < give_up_s:
            self._changed.clear()
            self._stopping.wait(_QUIET_S)

    def _rebalance(self) -> float | None:
        """Make attempts until one succeeds; else revoke all and return the wait for the next."""
        attempts = self.attempts
        began_s = time.monotonic()
        while attempts:
            started_s = time.monotonic()
            failure, counts = self._try()
            if failure is None:
                self.counts.rebalances += 1
                self.counts.rebalance_times.record(time.monotonic() - began_s)
                logger.info(
                    "%s owns %d partitions after %.2fs",
                    self.membership.consumer_id,
                    len(self._feeds),
                    time.monotonic() - started_s,
                )
                if not self._changed.is_set():
                    self._balanced.set()
                return None
            attempts -= counts
            if not attempts:
                break
            logger.info("rebalance of %s: %s", self.membership.consumer_id, failure)
            if self._changed.wait(self.backoff_s):
                attempts += counts  # the group has changed, which may be why the attempt failed
                self._debounce()
            if self._stopping.is_set():
                return None
        self.counts.failed_rebalances += 1
        logger.error(
            "rebalance of %s failed %d times: everything is released, and tried again in %gs",
            self.membership.consumer_id,
            self.attempts,
            self.backoff_s,
        )
        self._log_failure(lambda: self._revoke(self._claimed | self._feeds.keys()))
        return self.backoff_s

    def _try(self) -> tuple[str | None, bool]:
        """Make one attempt; return the reason of a failure, else None, and whether it counts."""
        try:
            missing = self._attempt()
        except RegistryUnreachableError as error:
            # Does not count: without ZooKeeper no owner node can be deleted, and no message is
            # handed out as the lease is not renewed. The only remedy is to wait.
            return str(error), False
        except BrokerError as error:
            return str(error), True
        if missing:
            return f"{missing} partitions are still owned by others", True
        return None, False

    def _attempt(self) -> int:
        """Assign and revoke partitions; return how many are still assigned to other members."""
        self._ensure_member()
        self._salvage()  # what an attempt without ZooKeeper has left
        view = self._view.read()
        assigned = assign_topics(view.partitions, view.threads)
        wanted = {
            partition: thread
            for partition, thread in assigned.items()
            if thread.rpartition("-")[0] == self.membership.consumer_id
        }
        kept = {
            partition
            for partition, feed in self._feeds.items()
            if wanted.get(partition) == feed.assigned.thread_id
        }
        kept -= self._drop_recreated(kept, view.creations)
        kept -= self._drop_lost(kept)
        self._revoke(self._claimed - kept)
        gained = {one: thread for one, thread in wanted.items() if one not in kept}
        missing_count = self._claim(gained, view) if gained else 0
        if self.session.session_id != self.membership.session_id:
            raise RegistryUnreachableError("the registry session expired meanwhile")
        return missing_count

    def _drop_lost(self, kept: Collection[TopicPartition]) -> set[TopicPartition]:
        """Revoke the partitions whose owner nodes were deleted by another process; return them."""
        # without an owner node no position is committed, so a new node must be created
        lost = set(kept) - self.ownership.owned(kept)
        if lost:
            logger.warning("owner nodes are gone: %s", ", ".join(map(str, sorted(lost))))
            self._lost += self._drop(lost)
            self._salvage()
        return lost

    def _drop_recreated(
        self, kept: Collection[TopicPartition], creations: Creations
    ) -> set[TopicPartition]:
        """Revoke partitions of topics that were deleted and created again; return them."""
        recreated = set()
        for partition in kept:
            former, present = self._feeds[partition].assigned.creation, creations.of(partition)
            if former and present and former.id != present.id:
                recreated.add(partition)
        if recreated:
            logger.warning(
                "topics were deleted and created again: reading %s from the start",
                ", ".join(map(str, sorted(recreated))),
            )
            # their positions, and offsets committed here since, are of the former topic
            self._recreated |= recreated
            self._drop(recreated)
            for partition in recreated:
                self._finished_here.pop(partition, None)
        return recreated

    def _salvage(self) -> None:
        """Commit the positions of lost partitions; those that ZooKeeper is away for stay lost."""
        if self._lost and self.commits_on_revoke:
            try:
                self.committer.salvage(self._lost)
            except RegistryUnreachableError:
                raise  # the attempt is repeated
            except BrokerError as error:
                logger.error("while releasing partitions: %s", error)
        self._lost = []

    def _ensure_member(self) -> None:
        """Register this process if it is not; revoke the partitions of an expired session."""
        if self.membership.is_registered():  # waits for the connection
            return
        session_id = self.session.session_id
        if session_id is None:
            raise RegistryUnreachableError("the connection to ZooKeeper was lost again")
        if session_id != self.membership.session_id:
            logger.warning("session of %s expired", self.membership.consumer_id)
            self._lost += self._drop(self._feeds.keys())
            self._salvage()
        self.register()

    def _revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Stop handing out and fetching, commit, then delete the owner nodes.

        An application that watches its stream is told first, and may commit meanwhile.
        """
        if not partitions:
            return
        feeds = [self._feeds[one] for one in partitions if one in self._feeds]
        for assigned, stream in feeds:
            stream.revoke(assigned, self.backoff_s)
        give_up_s = time.monotonic() + _TELLING_S
        for assigned, stream in feeds:
            stream.await_told(assigned, max(0.0, give_up_s - time.monotonic()))
        revoked = self._drop(partitions)
        if self.commits_on_revoke:
            self._log_failure(lambda: self.committer.commit(revoked))
        self.ownership.release(partitions)
        self._claimed = self._claimed - set(partitions)

    def _drop(self, partitions: Collection[TopicPartition]) -> list[AssignedPartition]:
        """Stop handing out and fetching partitions; return those that were assigned."""
        dropped = [self._feeds[one] for one in partitions if one in self._feeds]
        for assigned, stream in dropped:
            assigned.is_released = True
            stream.revoke(assigned)
            position = assigned.position
            if position is not None and self.commits_on_revoke:
                self._finished_here[assigned.partition] = position
        gone = {assigned.partition for assigned, _ in dropped}
        self._feeds = {one: feed for one, feed in self._feeds.items() if one not in gone}
        if gone:
            self.pool.set_feeds(self._feeds.values())
        return [assigned for assigned, _ in dropped]

    def _claim(self, threads: Mapping[TopicPartition, str], view: MemberView) -> int:
        """Create owner nodes and assign their partitions; return how many got no node."""
        self._claimed = self._claimed | threads.keys()
        claimed = self.ownership.claim(threads, on_release=self.notify)
        self._claimed = self._claimed - (threads.keys() - claimed)
        known = {one: view.creations.of(one) for one in claimed}
        self.store.void_former({one: found for one, found in known.items() if found is not None})
        # loaded only now, as the previous member commits before it deletes its owner node
        positions = self.store.load(claimed)
        feeds = dict(self._feeds)
        loads: dict[ConsumerStream, int] = {}
        for feed in feeds.values():
            loads[feed.stream] = loads.get(feed.stream, 0) + 1
        for partition in sorted(claimed):
            stream = self.choose_stream(partition, threads[partition], loads)
            loads[stream] = loads.get(stream, 0) + 1
            is_recreated = partition in self._recreated
            stored = None if is_recreated else positions.get(partition)
            start = stored or MessagePosition(-1)
            finished = self._finished_here.pop(partition, start)  # in an earlier assignment
            assigned = AssignedPartition(
                partition,
                max(start, finished) if finished.offset == start.offset else start,
                thread_id=threads[partition],
                committed=stored,
                creation=known[partition],
                starts_at_beginning=is_recreated or partition in view.new,
            )
            stream.assign(assigned)
            feeds[partition] = Feed(assigned, stream)
        self._recreated -= claimed
        self._feeds = feeds
        self.pool.set_feeds(feeds.values())
        return len(threads) - len(claimed)

    def _log_failure(self, action: Callable[[], object]) -> None:
        """Run a commit or release; its failure only means that messages are delivered again."""
        try:
            action()
        except BrokerError as error:
            logger.error("while releasing partitions: %s", error)
