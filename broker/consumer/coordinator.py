"""The coordinator: a thread that rebalances a member's share of its group's partitions.

Changes in ZooKeeper only set a flag; this thread alone assigns and revokes. A rebalance moves as
little as possible: a partition that stays with its consumer thread keeps its queue, its position
and its fetcher.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from broker.consumer.assignment import assign_topics
from broker.consumer.committer import AssignedPartition, Committer
from broker.consumer.fetcher_thread import Feed, FetcherPool
from broker.consumer.membership import GroupView, Lease, Membership, Ownership
from broker.consumer.offset_store import OffsetStore
from broker.consumer.stream import ConsumerStream
from broker.errors import BrokerError, RegistryUnreachableError
from broker.topic import MessagePosition, TopicPartition
from broker.zk.session import Session

logger = logging.getLogger(__name__)

_QUIET_S = 0.1
_MAX_DEBOUNCE_S = 1.0

PlaceStream = Callable[[TopicPartition, str, Mapping[ConsumerStream, int]], ConsumerStream]
"""Picks the stream for a partition, given the thread that owns it and what each stream has."""


@dataclass(frozen=True, slots=True)
class RebalanceSettings:
    """How the balancer works.

    `attempts` fail in a row, `backoff_s` apart, before everything is released for a while;
    `commits_on_release` is false for applications that commit for themselves.
    """

    attempts: int
    backoff_s: float
    commits_on_release: bool


class Coordinator:
    """Claims and releases partitions for the streams of one member.

    Args:
        session: the registry session that everything is owned in.
        membership: this process's own node.
        view: the group as it is.
        ownership: the owner nodes.
        store: where positions come from.
        committer: commits what is finished before it is released.
        pool: reads what is owned.
        lease: renewed when the member is registered anew.
        place: picks the stream for a partition.
        settings: how to go about it.
    """

    def __init__(
        self,
        *,
        session: Session,
        membership: Membership,
        view: GroupView,
        ownership: Ownership,
        store: OffsetStore,
        committer: Committer,
        pool: FetcherPool,
        lease: Lease,
        place: PlaceStream,
        settings: RebalanceSettings,
    ) -> None:
        self._session = session
        self._membership = membership
        self._view = view
        self._ownership = ownership
        self._store = store
        self._committer = committer
        self._pool = pool
        self._lease = lease
        self._place = place
        self._settings = settings
        self._feeds: dict[TopicPartition, Feed] = {}  # rebound, never changed: read without a lock
        self._held: set[TopicPartition] = set()  # may have an owner node of ours
        self._finished_here: dict[TopicPartition, MessagePosition] = {}
        self._stop = threading.Event()
        self._changed = threading.Event()
        self._settled = threading.Event()
        self._thread = threading.Thread(target=self._run, name="group-rebalance", daemon=True)

    @property
    def owned(self) -> list[AssignedPartition]:
        """Return what this process owns now."""
        return [feed.assigned for feed in self._feeds.values()]

    def register(self) -> None:
        """Become a member of the group; before `start`, and again after an expired session.

        Raises:
            RegistryConflictError: another process is a member under this id.
            RegistryUnreachableError: no answer came in time.
        """
        asked_s = time.monotonic()
        self._membership.register()
        self._lease.renew(asked_s + self._session.session_timeout_s)

    def start(self) -> None:
        """Start the thread, which rebalances at once."""
        self._changed.set()
        self._thread.start()

    def notify(self) -> None:
        """Have a rebalance soon, as something may have changed; from any thread."""
        self._settled.clear()
        self._changed.set()

    def await_settled(self, timeout_s: float | None) -> bool:
        """Wait until the last change that was noticed is dealt with; return whether it is."""
        return self._settled.wait(timeout_s)

    def stop(self) -> None:
        """Tell the thread to stop; what is owned stays so."""
        self._stop.set()
        self._changed.set()

    def join(self) -> None:
        """Wait for the thread's end."""
        if self._thread.is_alive():
            self._thread.join()

    def release_all(self) -> None:
        """Give everything up, without committing; after `join`.

        Raises:
            CoordinationError: nodes may be left; they go with the session.
        """
        self._drop(self._feeds.keys())
        self._ownership.release(self._held)

    def _run(self) -> None:
        again_s: float | None = None
        while not self._stop.is_set():
            self._changed.wait(again_s)
            self._debounce()
            if self._stop.is_set():
                return
            try:
                again_s = self._rebalance()
            except Exception:
                logger.exception("failure in the rebalance")
                again_s = self._settings.backoff_s

    def _debounce(self) -> None:
        """Let a burst of changes pass, so that it takes one rebalance."""
        give_up_s = time.monotonic() + _MAX_DEBOUNCE_S
        while self._changed.is_set() and time.monotonic() < give_up_s:
            self._changed.clear()
            self._stop.wait(_QUIET_S)

    def _rebalance(self) -> float | None:
        """Try until it works; return after how long to start over if it does not."""
        attempts = self._settings.attempts
        while attempts:
            started_s = time.monotonic()
            failure, counts = self._try()
            if failure is None:
                self._note_success(time.monotonic() - started_s)
                return None
            attempts -= counts
            if not attempts:
                break
            logger.info("rebalance of %s: %s", self._membership.consumer_id, failure)
            if self._changed.wait(self._settings.backoff_s):
                attempts += counts  # somebody moved, so it is no failure of ours
                self._debounce()
            if self._stop.is_set():
                return None
        logger.error(
            "rebalance of %s failed %d times: everything is released, and tried again in %gs",
            self._membership.consumer_id,
            self._settings.attempts,
            self._settings.backoff_s,
        )
        self._give_up()
        return self._settings.backoff_s

    def _try(self) -> tuple[str | None, bool]:
        """Make one attempt; return why it failed, None if not, and whether it counts.

        While the registry is away nothing can be released, and as no lease is renewed nothing is
        handed out either: waiting for it is all there is to do.
        """
        try:
            missing = self._attempt()
        except RegistryUnreachableError as error:
            return str(error), False
        except BrokerError as error:
            return str(error), True
        if missing:
            return f"{missing} partitions are still owned by others", True
        return None, False

    def _attempt(self) -> int:
        """Make what is owned what should be; return how many partitions are missing."""
        self._ensure_member()
        view = self._view.read()
        assigned = assign_topics(view.partitions, view.threads)
        wanted = {
            partition: thread
            for partition, thread in assigned.items()
            if thread.rpartition("-")[0] == self._membership.consumer_id
        }
        kept = {
            partition
            for partition, feed in self._feeds.items()
            if wanted.get(partition) == feed.assigned.thread_id
        }
        kept -= self._drop_lost(kept)
        self._release(self._held - kept)
        gained = {one: thread for one, thread in wanted.items() if one not in kept}
        missing_count = self._claim(gained) if gained else 0
        if self._session.session_id != self._membership.session_id:
            raise RegistryUnreachableError("the registry session expired meanwhile")
        return missing_count

    def _drop_lost(self, kept: Collection[TopicPartition]) -> set[TopicPartition]:
        """Drop the partitions that we believe to own without a node that says so; return them.

        Somebody has taken the node away. Without one nothing of the partition is committed, so it
        must be claimed anew.
        """
        lost = set(kept) - self._ownership.held(kept)
        if lost:
            logger.warning("owner nodes are gone: %s", ", ".join(map(str, sorted(lost))))
            self._salvage(self._drop(lost))
        return lost

    def _salvage(self, lost: list[AssignedPartition]) -> None:
        """Commit what was finished of partitions that are not ours any more, if it still holds."""
        if self._settings.commits_on_release:
            self._log_failure(lambda: self._committer.salvage(lost))

    def _ensure_member(self) -> None:
        """Register this process, if it is not; what it owned in a former session is lost."""
        if self._membership.stands():  # waits for the connection
            return
        session_id = self._session.session_id
        if session_id is None:
            raise RegistryUnreachableError("the connection to ZooKeeper was lost again")
        if session_id != self._membership.session_id:
            logger.warning("session of %s expired", self._membership.consumer_id)
            self._salvage(self._drop(self._feeds.keys()))
        self.register()

    def _release(self, partitions: Collection[TopicPartition]) -> None:
        """Give up partitions: stop handing out, commit, then let others have them."""
        if not partitions:
            return
        released = self._drop(partitions)
        if self._settings.commits_on_release:
            self._log_failure(lambda: self._committer.commit(released))
        self._ownership.release(partitions)
        self._held = self._held - set(partitions)

    def _drop(self, partitions: Collection[TopicPartition]) -> list[AssignedPartition]:
        """Hand out and fetch no more of partitions; return those that were being read."""
        dropped = [self._feeds[one] for one in partitions if one in self._feeds]
        for owned, stream in dropped:
            stream.revoke(owned)
            position = owned.position
            if position is not None and self._settings.commits_on_release:
                self._finished_here[owned.partition] = position
        gone = {owned.partition for owned, _ in dropped}
        self._feeds = {one: feed for one, feed in self._feeds.items() if one not in gone}
        if gone:
            self._pool.set_feeds(self._feeds.values())
        return [owned for owned, _ in dropped]

    def _claim(self, threads: Mapping[TopicPartition, str]) -> int:
        """Claim partitions and start to read them; return how many others have not released yet.

        Offsets are read once the partition is ours, when its former owner has committed.
        """
        self._held = self._held | threads.keys()
        claimed = self._ownership.claim(threads, on_release=self.notify)
        self._held = self._held - (threads.keys() - claimed)
        positions = self._store.load(claimed)
        feeds = dict(self._feeds)
        loads: dict[ConsumerStream, int] = {}
        for feed in feeds.values():
            loads[feed.stream] = loads.get(feed.stream, 0) + 1
        for partition in sorted(claimed):
            stream = self._place(partition, threads[partition], loads)
            loads[stream] = loads.get(stream, 0) + 1
            owned = AssignedPartition(
                partition,
                threads[partition],
                positions.get(partition),
                self._finished_here.pop(partition, None),
            )
            stream.assign(owned)
            feeds[partition] = Feed(owned, stream)
        self._feeds = feeds
        self._pool.set_feeds(feeds.values())
        return len(threads) - len(claimed)

    def _give_up(self) -> None:
        self._log_failure(lambda: self._release(self._held | self._feeds.keys()))

    def _log_failure(self, action: Callable[[], None]) -> None:
        """Do something that the rebalance goes on without, as it only saves work twice."""
        try:
            action()
        except BrokerError as error:
            logger.error("while releasing partitions: %s", error)

    def _note_success(self, elapsed_s: float) -> None:
        logger.info(
            "%s owns %d partitions after %.2fs",
            self._membership.consumer_id,
            len(self._feeds),
            elapsed_s,
        )
        if not self._changed.is_set():
            self._settled.set()
