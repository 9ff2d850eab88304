"""A thread that copies from one leader the partitions that it leads and this broker follows.

With `num.replica.fetchers` above 1 there are several for each leader, and each partition belongs to
one of them. A request is for all of a thread's, but in its session with the leader it names only
those whose position has changed; the leader responds when there are messages or news.
The messages are checked and appended as they arrive, then flushed if only flushed messages count:
the next request acknowledges them. While the leader has more of a partition than one response
holds, its flush runs beside the next request, and a later one acknowledges what it has reached.

Also the threads that wait for disks, which fetchers share.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from threading import Event, Lock
from typing import NamedTuple, TypeVar

from broker import errors
from broker.client.connection import Connection
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.log.log import Log
from broker.protocol import client_requests, message, primitives, record_batch, replica_requests
from broker.protocol.fetch_sessions import ReaderSession
from broker.replication.follower import FetchResult, Follower
from broker.replication.replica_log import FetchAnswer, FetchPosition
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.replica_table import HostedReplica, ReplicaTable
from broker.server.cluster.throttle import Throttle
from broker.state_changes import ChangeKind
from broker.threads import StoppableThread, logged
from broker.topic import NO_HOME, TopicPartition, share_of

_DISK_THREAD_COUNT = 16
BACKGROUND_COUNT = 8
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class DiskThreads:
    """Create or flush many logs side by side: a file system syncs many files in one go."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_DISK_THREAD_COUNT, thread_name_prefix="replica-disk")
        self._background = ThreadPoolExecutor(
            BACKGROUND_COUNT, thread_name_prefix="replica-disk-background"
        )

    def run(self, action: Callable[[_Item], _Result], items: list[_Item]) -> list[_Result]:
        """Call a function with each item; once all calls have ended, raise the first error."""
        if len(items) == 1:
            return [action(items[0])]
        futures = [self._threads.submit(action, one) for one in items]
        wait(futures)
        return [one.result() for one in futures]

    def start(self, action: Callable[[], object]) -> None:
        """Call a function soon, on a thread that `run` does not need; nothing waits for it."""
        self._background.submit(logged(action))

    def stop(self) -> None:
        """End the threads."""
        self._background.shutdown()
        self._threads.shutdown()


logger = logging.getLogger(__name__)

_RETRY_S = 0.2
_IDLE_S = 0.2
"""How often to check whether there is a partition to fetch."""
_MAX_RESPONSE_BYTES = 16 << 20
_FIRST_EPOCH = 0


class _Asked(NamedTuple):
    """The position asked for in one partition, by which term of which replica."""

    hosted: HostedReplica
    role: Follower
    position: FetchPosition
    is_throttled: bool  # the replica is being added
    is_leaving: bool = False  # the leader is told so, and the position is forgotten then

    @property
    def is_at_rest(self) -> bool:
        """Return whether the replica would go on from the same position, and all is committed."""
        hosted, log, position = self.hosted, self.hosted.log, self.position
        return (
            hosted.replica.role is self.role
            and log.high_watermark == log.log_end_offset == position.offset
            and log.flushed_offset == position.flushed_offset
            and not (log.is_faulty or self.is_throttled)
        )


@dataclass(eq=False)
class ReplicaFetcher(StoppableThread):
    """Copies from one leader all partitions, or a share of them: one of `num.replica.fetchers`."""

    leader_id: int
    share: int
    _: KW_ONLY
    table: ReplicaTable
    brokers: LiveBrokers
    disks: DiskThreads
    throttle: Throttle  # of copies to replicas that are being added
    config: BrokerConfig
    clock: Clock

    def __post_init__(self) -> None:
        super().__init__(f"replica-fetcher-{self.leader_id}-{self.share}")
        self._followers: list[HostedReplica] = []  # or former ones
        self._known: list[HostedReplica] = []  # those that were looked at
        self._session: ReaderSession[replica_requests.ReplicaPosition] = ReaderSession()
        self._asked: dict[TopicPartition, _Asked] = {}  # of all that are fetched
        self._moved: list[HostedReplica] = []  # by the last response, or throttled
        self._arriving = ArrivingParts()
        self._unflushed: dict[Log, bool] = {}
        """Those that the response has appended to, and whether the leader has more at once."""
        self._flushing: set[TopicPartition] = set()  # beside fetches, and not told yet
        self._answered_s: float | None = None
        self._scan_due_s = 0.0
        self._is_quiet = False  # nothing has moved since a look at all
        self._largest_bytes = 0  # that are asked for in one of the partitions looked at
        self._connection: Connection | None = None
        self._woken = Event()
        self._turn = 0
        self._retry_s: float | None = None
        """When the first of the partitions that had an error, or are throttled, is due again."""
        self._reserved: dict[TopicPartition, int] = {}  # by the throttle, for this request
        self._received: dict[TopicPartition, int] = {}  # bytes of it
        self._failure = ""
        self._is_given_up = False  # the request under way, or else the next one
        # ranges received damaged: the leader is asked to look for damage on its disk
        self._damaged: list[client_requests.DigestLogRequest] = []
        self._refusals: dict[TopicPartition, str] = {}
        """Why partitions cannot be copied now, as logged: a full disk is logged once."""
        self.request_count = 0  # fetches that got a response
        self.fetched_bytes = 0
        self.added_bytes = 0  # of them, for replicas that are being added

    def follow(self, followers: list[HostedReplica]) -> None:
        """Copy from now on these replicas, which follow the leader, and no others.

        Where another broker led before, publishers may wait for these copies: a request under way,
        which does not name them and with which the leader may wait, is given up; so is one that
        waits longer than others, as all was quiet.
        """
        before = {id(one) for one in self._followers}
        self._followers = followers
        self._woken.set()
        connection = self._connection
        if connection is not None and any(
            id(one) not in before and (self._is_quiet or one.replica.leader_epoch > _FIRST_EPOCH)
            for one in followers
        ):
            self._is_given_up = True
            connection.interrupt()

    def stop(self) -> None:
        """Stop soon: a response under way is discarded or appended, as its replica decides."""
        super().stop()
        self._woken.set()
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    @property
    def is_failing(self) -> bool:
        """Return whether its last request got no response, or its thread has ended."""
        return bool(self._failure) or not self.is_alive()

    def _loop(self) -> None:
        """Fetch until the thread is to end."""
        while not self._stopping.is_set():
            try:
                self._fetch()
            except Exception:  # a bug must not end the copying of all partitions
                logger.exception("copying from broker %d failed", self.leader_id)
                if self._connection is not None:
                    self._connection.close()  # the rest of a response may be under way
                self._begin_session()
                self._stopping.wait(1.0)
        if self._connection is not None:
            self._connection.close()

    def _fetch(self) -> None:
        self._look()
        connection = self.brokers.connect(
            *(self.leader_id, self._connection),
            receive_bytes=self.config.replica_socket_receive_bytes,
        )
        if not self._asked or connection is None:
            self._settle()
            self._woken.wait(self._wait_s(_IDLE_S))
            self._woken.clear()
            return
        self._connection = connection
        if self._stopping.is_set():  # set later, the connection is found and interrupted
            return
        failure = ""
        try:
            for pieces in self._call(connection):
                self._take(pieces)
        except errors.UnknownFetchSessionError:  # the leader has evicted it
            self._begin_session()
            return
        except errors.BrokerError as error:
            connection.close()
            self._begin_session()
            failure = "" if self._is_given_up else str(error)
            self._is_given_up = False
        else:
            self.request_count += 1
            self._answered_s = self.clock.monotonic_s()
            self._note_failure("")
        finally:
            self._settle()
            self._flush_appended()
        if failure:
            self._note_failure(failure)
            self._stopping.wait(_RETRY_S)
        self._report_damage(connection)

    def _call(self, connection: Connection) -> Iterator[list[replica_requests.ReplicaPiece]]:
        """Fetch; a leader of an older version is told all positions each time."""
        session = self._session
        epoch = self.table.broker_epoch
        if connection.understands(replica_requests.SessionFetchRequest):
            epochs = epoch, session.id, session.epoch
            request = replica_requests.SessionFetchRequest(
                self.config.broker_id, *epochs, *self._limits(), *session.take_changes()
            )
            correlation_id = connection.send_extension(request)
            start, left_bytes = self._arriving.open(connection, correlation_id)
            session.answered(start.int64())
            return self._arriving.receive(connection, start, left_bytes)
        self._turn = (self._turn + 1) % len(session.told)
        # another partition comes first each time
        positions = [*session.told.values()]
        positions = positions[self._turn :] + positions[: self._turn]
        older = replica_requests.ReplicaFetchRequest(
            self.config.broker_id, epoch, *self._limits(), tuple(positions)
        )
        self._moved = [*self._known]
        correlation_id = connection.send_extension(older)
        return self._arriving.receive(connection, *self._arriving.open(connection, correlation_id))

    def _begin_session(self) -> None:
        """Name all positions in the next fetch."""
        self._session.end()
        self._asked.clear()
        self._scan_due_s = 0.0

    def _look(self) -> None:
        """Find where to continue in the partitions that may have moved, and when to look again."""
        now_s = self.clock.monotonic_s()
        followers = self._followers
        if self._moved:  # the last response had news
            self._is_quiet = False
        if followers is not self._known:
            self._known = followers
            for partition in self._asked.keys() - {one.log.partition for one in followers}:
                self._leave(partition)
            self._moved = followers
            self._is_quiet = False
            self._retry_s = None
        elif now_s >= self._scan_due_s or (self._retry_s is not None and now_s >= self._retry_s):
            self._scan_due_s = now_s + self.table.scan_s
            found = self._find_moved()
            self._is_quiet = not (self._moved or found)
            self._moved += found
            self._retry_s = None
        moved, self._moved = dict.fromkeys([*self._moved, *self._find_flushed()]), []
        self._largest_bytes = 0
        for hosted in moved:
            self._look_at(hosted, now_s)

    def _find_moved(self) -> list[HostedReplica]:
        """Return the replicas that do not rest; the leader has nothing new for the others."""
        moved = []
        for asked in self._asked.values():
            if not asked.is_at_rest:
                moved.append(asked.hosted)
            elif asked.role.answered_s is not None:
                asked.role.answered_s = self._answered_s
        if len(self._asked) < len(self._known):
            moved += [one for one in self._known if one.log.partition not in self._asked]
        return moved

    def _find_flushed(self) -> list[HostedReplica]:
        """Return the replicas whose flush beside fetches has come further than was told."""
        moved = []
        for partition in [*self._flushing]:
            asked = self._asked.get(partition)
            if asked is None:  # all are looked at
                continue
            log = asked.hosted.log
            flushed_offset = log.flushed_offset
            if flushed_offset != asked.position.flushed_offset:
                moved.append(asked.hosted)
            if flushed_offset == log.log_end_offset:
                self._flushing.discard(partition)
        return moved

    def _look_at(self, hosted: HostedReplica, now_s: float) -> None:
        partition = hosted.log.partition
        asked = self._asked.get(partition)
        if asked is not None and asked.is_leaving:
            self._leave(partition)
            asked = None
        with hosted:
            role = hosted.replica.role
            position = None
            # if it is faulty, else it could be in sync, and lead
            if (
                isinstance(role, Follower)
                and role.leader == self.leader_id
                and not hosted.log.is_faulty
            ):
                position = role.next_fetch(now_s)
                if position is None and (retry_s := role.retry_s) is not None:
                    self._retry_s = min(retry_s, self._retry_s or retry_s)
            if not isinstance(role, Follower) or position is None:
                if asked is None or asked.role is not role or not hosted.log.is_faulty:
                    self._leave(partition)
                    return
                # else publishers would wait until it has lagged for long enough
                self._asked[partition] = asked._replace(is_leaving=True)
                left = replica_requests.ReplicaPosition(
                    partition, *asked.position, replica_requests.LEAVES_IN_SYNC
                )
                self._session.name(partition, left)
                self._moved.append(hosted)
                return
            is_throttled = role.info.is_throttled(self.config.broker_id)
        asked = self._asked[partition] = _Asked(hosted, role, position, is_throttled)
        most_bytes = self._most_bytes(partition, asked)
        self._largest_bytes = max(most_bytes, self._largest_bytes)
        self._session.name(
            partition, replica_requests.ReplicaPosition(partition, *position, most_bytes)
        )
        if is_throttled:
            self._moved.append(hosted)

    def _leave(self, partition: TopicPartition) -> None:
        self._asked.pop(partition, None)
        self._flushing.discard(partition)
        self._session.forget(partition)

    def _wait_s(self, longest_s: float) -> float:
        """Return how long to wait: `longest_s`, or less until partitions are to be tried again."""
        if self._retry_s is None:
            return longest_s
        return min(longest_s, max(0.0, self._retry_s - self.clock.monotonic_s()))

    def _limits(self) -> tuple[int, int, int]:
        """Return how long a fetch waits, and the least and most bytes of all partitions."""
        config = self.config
        longest_s, min_bytes = config.replica_fetch_wait_ms / 1000, config.replica_fetch_min_bytes
        if self._is_quiet:  # at most half as long as the connection waits for a response
            quiet_s = min(self.table.scan_s, config.replica_socket_timeout_ms / 2000)
            longest_s, min_bytes = max(longest_s, quiet_s), 1
        return (
            int(self._wait_s(longest_s) * 1000),
            min_bytes,
            max(_MAX_RESPONSE_BYTES, self._largest_bytes),
        )

    def _most_bytes(self, partition: TopicPartition, asked: _Asked) -> int:
        """Return how many bytes of a partition to ask for.

        A partition that has to wait for the throttle is named nevertheless, as its leader must
        learn the replica's progress; the request then ends when the throttle grants more.
        """
        wanted_bytes = max(asked.hosted.wanted_bytes, self.config.replica_fetch_bytes)
        if not asked.is_throttled:
            return wanted_bytes
        throttle, now_s = self.throttle, self.clock.monotonic_s()
        granted = throttle.reserve(wanted_bytes, asked.hosted.wanted_bytes, now_s)
        self._reserved[partition] = granted
        if not granted:
            due_s = throttle.due_s(now_s)
            self._retry_s = due_s if self._retry_s is None else min(due_s, self._retry_s)
        return granted

    def _settle(self) -> None:
        """Tell the throttle how much was received of the partitions that it limits."""
        for partition, granted in self._reserved.items():
            received = self._received.get(partition, 0)
            self.throttle.settle(granted, received)
            self.added_bytes += received
        self._reserved.clear()
        self._received.clear()

    def _note_failure(self, text: str) -> None:
        if text and not self._failure:
            values = {"leader": self.leader_id, "reason": text}
            logger.warning("cannot copy from broker %(leader)d: %(reason)s", values)
        elif not text and self._failure:
            logger.info("broker %(leader)d can be copied from again", {"leader": self.leader_id})
        self._failure = text

    def _take(self, pieces: list[replica_requests.ReplicaPiece]) -> None:
        pairs = []
        for piece in pieces:
            partition, size = piece.part.partition, len(piece.part.data)
            self.fetched_bytes += size
            self._received[partition] = self._received.get(partition, 0) + size
            one = self._asked.get(partition)
            if one is not None and not one.is_leaving:
                self._moved.append(one.hosted)
                pairs.append((piece, one))
        # the start of an epoch is synced first
        slow = [pair for pair in pairs if _begins_epoch(*pair)]
        if len(slow) > 1:
            self.disks.run(self._take_or_refuse, pairs)
        else:
            for pair in pairs:
                self._take_or_refuse(pair)

    def _flush_appended(self) -> None:
        flushed = []
        for log, has_more in self._unflushed.items():
            if not log.flushes_before_read:
                continue
            if has_more:
                log.append(b"", 0, flush_now=True)  # beside the next fetch
                self._flushing.add(log.partition)
            else:
                flushed.append(log)
        self._unflushed.clear()
        self.disks.run(_flush, flushed)

    def _report_damage(self, connection: Connection) -> None:
        while self._damaged and connection.is_open:
            with suppress(errors.BrokerError):  # sent again if the data is received damaged again
                connection.call(self._damaged.pop())

    def _take_or_refuse(self, pair: tuple[replica_requests.ReplicaPiece, _Asked]) -> None:
        """Handle a piece of one partition."""
        if self._stopping.is_set():
            return  # what comes behind it is discarded, as it begins elsewhere
        piece, one = pair
        part = piece.part
        try:
            self._take_one(piece, one)
        except errors.ServerError as error:
            if isinstance(error, errors.InvalidMessageError):
                offset, size = piece.offset(one.position.offset), len(part.data)
                self._damaged.append(client_requests.DigestLogRequest(part.partition, offset, size))
            if self._refusals.get(part.partition) != str(error):
                self._refusals[part.partition] = str(error)
                logger.error("cannot copy %s: %s", part.partition, error)
            with one.hosted:
                one.role.refused(one.position, error, self.clock.monotonic_s())
        else:
            if not piece.start:  # a later one is discarded without an error if this was refused
                self._refusals.pop(part.partition, None)

    def _take_one(self, piece: replica_requests.ReplicaPiece, asked: _Asked) -> None:
        """Handle a piece of one partition."""
        hosted, role, position, *_ = asked
        log, part = hosted.log, piece.part
        if piece.start:  # it goes on where the one before it was appended, if that was
            offset = piece.offset(position.offset)
            position = position._replace(offset=offset, last_epoch=log.epochs.last_epoch)
        entries = log.format.copied(part.data, part.partition, position.offset, piece.found)
        if part.data and not entries.data:
            if not piece.start:
                hosted.wanted_bytes = _size_of_first(part)
            elif piece.is_cut and log in self._unflushed:
                self._unflushed[log] = True
            return
        with hosted:
            if hosted.replica.role is not role:
                return
            now_s = self.clock.monotonic_s()
            answer = FetchAnswer(part.high_watermark, part.log_start_offset, part.diverging)
            if part.error == errors.OffsetOutOfRangeError.code:
                result = role.out_of_range(position, answer, now_s)
                if result is FetchResult.RESTARTED:
                    self._note_truncated(hosted, position.offset)
                return
            if part.error == errors.LostOffsetsError.code:
                if role.is_awaiting(position):
                    log.leave_out(part.high_watermark)
                return
            if part.error != errors.NO_ERROR:
                error = errors.error_for_code(part.error, f"broker {self.leader_id} has refused it")
                logger.info("%s cannot be copied now: %s", part.partition, type(error).__name__)
                role.refused(position, error, now_s)
                return
            before = role.told
            offset_count = entries.next_offset - position.offset
            result = role.fetched(position, answer, part.epoch_starts, offset_count)
            if before is None or part.log_start_offset > before.log_start_offset:
                self._note_start(hosted)
            if result in (FetchResult.TRUNCATED, FetchResult.RESTARTED):
                self._note_truncated(hosted, position.offset)
            if result is FetchResult.UP_TO_DATE:
                role.answered_s = now_s
            if result is not FetchResult.APPEND:
                return
            is_in_sync = self.config.broker_id in role.info.state.isr
            # what was written at the leader before now must not count as younger here
            appended_ms = None if is_in_sync else part.appended_ms
            log.append_copied(entries, position.offset, appended_ms, part.rows)
            role.appended(answer)
            role.answered_s = now_s
            hosted.wanted_bytes = 0
        self._unflushed[log] = piece.is_cut

    def _note_start(self, hosted: HostedReplica) -> None:
        """Log that the leader has removed what retention here keeps; the replica is locked."""
        if (error := self.table.kept_error(hosted)) is not None:
            logger.error("%s", error)

    def _note_truncated(self, hosted: HostedReplica, from_offset: int) -> None:
        """Log that a replica's log, which ended at an offset, was truncated; it is locked."""
        role = hosted.replica.role
        change = self.table.change_of(
            *(hosted, ChangeKind.TRUNCATED),
            version=None if role is None else role.info.version,
            offset=hosted.log.log_end_offset,
            text=f"the log ended at {from_offset}",
        )
        self.table.note_changes([change])


def _flush(log: Log) -> None:
    """Flush a log; an error is logged, as the log refuses appends then."""
    try:
        log.flush()
    except errors.StorageError as error:
        logger.error("%s", error)


def _begins_epoch(piece: replica_requests.ReplicaPiece, asked: _Asked) -> bool:
    """Return whether a part has entries of a leader epoch that the log has none of yet."""
    starts = piece.part.epoch_starts
    return bool(starts) and starts[-1].epoch > asked.position.last_epoch


def _size_of_first(part: replica_requests.ReplicaPart) -> int:
    """Return the size of the entry, or batch, at the start of data that holds only a part of it."""
    data = part.data
    if part.partition.home == NO_HOME:
        head = record_batch.parse_head(data, 0)
        return 2 * record_batch.HEADER_BYTES if head is None else head.size
    if len(data) < message.MIN_ENTRY_BYTES:
        return 2 * message.MIN_ENTRY_BYTES
    return message.entry_bytes(data)


_PIECE_BYTES = 1 << 20


class ArrivingParts:
    """The responses to the fetches of one thread; the buffer grows with the largest message."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(_PIECE_BYTES))

    def open(self, connection: Connection, correlation_id: int) -> tuple[primitives.Reader, int]:
        """Return the start of a response's body, and how many bytes are still to come.

        Errors are those of `Connection.receive_extension`.
        """
        size = connection.receive_size()
        start = self._buffer[:size]
        connection.receive_into(start)
        return connection.open_extension(start, correlation_id), size - len(start)

    def receive(
        self, connection: Connection, start: primitives.Reader, left_bytes: int
    ) -> Iterator[list[replica_requests.ReplicaPiece]]:
        """Yield the pieces of a body as they arrive, views on the buffer until the next ones do."""
        parts = replica_requests.ReplicaParts(start)
        body = start.rest
        while True:
            pieces, taken_bytes = parts.take(body, is_end=not left_bytes)
            yield pieces
            if not left_bytes:
                return
            rest = body[taken_bytes:]
            buffer = self._buffer
            if len(rest) > len(buffer) // 2:
                self._buffer = memoryview(bytearray(2 * len(buffer)))
            self._buffer[: len(rest)] = rest
            body = self._buffer[: len(rest) + left_bytes]
            connection.receive_into(body[len(rest) :])
            left_bytes -= len(body) - len(rest)


class ReplicaFetchers:
    """The fetchers of one broker.

    Args:
        make: returns the fetcher for a leader's broker, and a share of its partitions.
        count: in how many shares the partitions of a leader are divided.
    """

    def __init__(self, make: Callable[[int, int], ReplicaFetcher], count: int) -> None:
        self._make = make
        self._count = count
        self._lock = Lock()  # guards the fields below; no other lock is taken under it
        self._by_share: dict[tuple[int, int], ReplicaFetcher] = {}
        self._retired: list[ReplicaFetcher] = []  # without partitions; they end soon
        self._is_stopped = False

    def all(self) -> list[ReplicaFetcher]:
        """Return the fetchers that copy from other brokers."""
        return list(self._by_share.values())

    def direct(self, replicas: Iterable[HostedReplica]) -> None:
        """Have the followers of all replicas copied from their leaders; end the other fetchers."""
        shares: dict[tuple[int, int], list[HostedReplica]] = {}
        for hosted in replicas:
            role = hosted.replica.role
            if isinstance(role, Follower) and role.leader >= 0:
                share = role.leader, share_of(hosted.log.partition, self._count)
                shares.setdefault(share, []).append(hosted)
        with self._lock:
            if self._is_stopped:
                return
            self._retired = [one for one in self._retired if one.is_alive()]
            for share in self._by_share.keys() - shares.keys():
                retired = self._by_share.pop(share)
                retired.stop()
                self._retired.append(retired)
            for share, followers in shares.items():
                fetcher = self._by_share.get(share)
                if fetcher is None:
                    fetcher = self._by_share[share] = self._make(*share)
                    fetcher.start()
                fetcher.follow(followers)

    def stop(self) -> None:
        """Have all fetchers end soon, and start no others."""
        with self._lock:
            self._is_stopped = True
            for fetcher in self._by_share.values():
                fetcher.stop()

    def join(self) -> None:
        """Wait for the end of all fetchers."""
        for fetcher in (*self._by_share.values(), *self._retired):
            fetcher.join()
