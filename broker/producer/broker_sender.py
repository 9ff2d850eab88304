"""Sends message sets to one broker: window of unacknowledged sets, retries, 0.7.

A set that the broker refuses, as it does not lead the partition, and one whose broker is gone while
it may go to another partition, is handed to a `Router`, which sends it elsewhere; nothing of its
partition goes before it.

The synchronous producer calls a `BrokerSender` in the caller's thread, the asynchronous one in a
sender thread; one thread at a time. Acknowledgements are read in `_receive_response` alone, as they
come. After a failure those that had come are read first: what they acknowledge is not sent again.
Then `_may_send_again` alone decides whether the sets without one are sent again, to the address
that the broker has by then, or completed with the error.

A broker that knows only 0.7's requests acknowledges nothing: there a set is completed once it
is written to the connection, and `wait_until_readable` waits until the log has grown by it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from broker.client.cluster import Cluster
from broker.client.connection import Connection
from broker.errors import (
    NO_ERROR,
    BrokerError,
    BrokerStoppedError,
    BrokerUnreachableError,
    LeaderNotAvailableError,
    LogCorruptError,
    NotEnoughReplicasError,
    NotLeaderError,
    ProtocolError,
    RequestTimedOutError,
    ServerError,
    ShuttingDownError,
    StorageError,
    error_for_code,
)
from broker.producer.broker_connection import NO_RECONNECT, BrokerConnection, ReconnectRule
from broker.protocol.codec import scan
from broker.protocol.extension_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
    SinglePublish,
    SinglePublishResponse,
    single_publish_response,
)
from broker.protocol.primitives import Buffer
from broker.protocol.requests import (
    LATEST_TIME,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
)
from broker.protocol.responses import (
    decode_offsets_response,
    decode_publish_response,
)
from broker.topic import TopicPartition

POLL_S = 0.02
"""Between two requests that ask whether sets, or a topic, are visible yet."""
_MAX_IN_FLIGHT_BYTES = 4 << 20
"""With fewer sets in flight their memory, and that of the socket buffers, is reused while it is in
the processor's cache: sending 200 MB in sets of 256 KiB takes 5 to 15 % less CPU time than with 64
sets in flight. It is still more than a broker writes between two flushes."""
_RECEIVE_INTERVAL_S = 0.01
"""While sets are sent, responses that have come are read so often: once for each set would cost a
system call each."""
_BROKER_SHARE_OF_TIMEOUT = 0.9
_LED_ELSEWHERE = (NotLeaderError.code, LeaderNotAvailableError.code)
_REFUSES_ALL_BEHIND = (StorageError.code, NotEnoughReplicasError.code)
"""With one of these the broker refuses later sets of the partition on the connection, too."""


@dataclass(frozen=True, slots=True)
class SendRules:
    """How a producer sends, in whichever thread.

    Args:
        acks: when a broker acknowledges.
        retries: how often a set is sent again.
        backoff_s: the wait before the first retry; see `retry_wait_s`.
        timeout_s: how long a broker may take to commit a set.
        connect_timeout_s: how long a broker may be absent, or refuse connections, until an
            attempt to send to it has failed, on top of what one `Connection` takes.
        reconnect: when connections are replaced.
        returns_lost: complete the sets that a lost broker has not acknowledged with the error at
            once, as the caller sends them again, there or elsewhere. After `BrokerStoppedError`
            that makes no duplicate.
    """

    acks: Acks = Acks.COMMITTED
    retries: int = 3
    backoff_s: float = 0.1
    timeout_s: float = 30.0
    connect_timeout_s: float = 0.0
    reconnect: ReconnectRule = NO_RECONNECT
    returns_lost: bool = False


def retry_wait_s(backoff_s: float, failures: int) -> float:
    """Return how long to wait after so many failures in a row: the backoff, then 4 and 16 times it.

    Args:
        backoff_s: the first wait.
        failures: at least 1.
    """
    return backoff_s * 4.0 ** min(failures - 1, 2)


def is_lost(error: BrokerError) -> bool:
    """Return whether an error means that a request or its response was lost on the way.

    A `ServerError` is a response: the request arrived, and must not be sent twice.
    """
    return error.is_retriable and not isinstance(error, ServerError)


class PendingSet(Protocol):
    """A message set for one partition that is not acknowledged yet, and who is told of its end.

    Attributes:
        failures: how often it was sent in vain.
    """

    failures: int

    @property
    def partition(self) -> TopicPartition:
        """Return the target."""

    @property
    def message_set(self) -> Buffer:
        """Return the bytes to send."""

    def complete(
        self, base_offset: int, error: BrokerError | None, *, is_raised: bool = False
    ) -> None:
        """Take note of the acknowledgement, or of the failure; called exactly once.

        Args:
            base_offset: -1 where the broker tells none.
            error: why the set was not delivered.
            is_raised: the error is also raised to the caller of the `BrokerSender`.
        """


class Router(Protocol):
    """Knows which sets of a `BrokerSender` go to another broker, and sends them there."""

    def goes_elsewhere(self, one: PendingSet, broker_id: int, *, is_gone: bool) -> bool:
        """Return whether a set goes to another broker than this one from now on.

        Args:
            one: may be given another partition, if it has been sent to this broker in vain.
            broker_id: of the broker.
            is_gone: it cannot be connected to.
        """

    def note_leader(self, partition: TopicPartition, broker_id: int) -> None:
        """Note which broker leads a partition, as one says that does not; -1 for an unknown one."""

    def send_elsewhere(self, sets: Sequence[PendingSet], error: BrokerError | None) -> None:
        """Send sets to the brokers they go to now, in order.

        Args:
            sets: in the order they were given to the producer.
            error: why they leave their broker; None if they were not sent to it.

        Raises:
            BrokerError: some could not be sent, and are completed with it.
        """


def leader_id(cluster: Cluster, partition: TopicPartition) -> int:
    """Return the id of the broker that sets for a partition go to.

    That is the home broker if the leader is unknown: it may come back.
    """
    try:
        found = cluster.leader(partition).id
    except BrokerError as error:
        if not error.is_retriable:
            raise
        return partition.home
    return found if found >= 0 else partition.home


class _InFlight:
    """A request whose response is outstanding; `response` decodes that of a single set."""

    __slots__ = ("correlation_id", "response", "sets", "size_bytes")

    def __init__(self, sets: Sequence[PendingSet]) -> None:
        self.sets = sets
        self.size_bytes = (
            len(sets[0].message_set)
            if len(sets) == 1
            else sum([len(one.message_set) for one in sets])
        )
        self.correlation_id = 0
        self.response: SinglePublishResponse | None = None


class BrokerSender:
    """Sends message sets to one broker, in order, and completes them.

    Args:
        connection: to the broker; closed by `close`.
        rules: how to send.
        max_in_flight: how many requests may be unacknowledged.
        max_in_flight_bytes: how many bytes of sets; a larger set is sent alone.
        retries: how often the window is sent again after a lost connection; None for as often as
            the rules say. 0 if the caller sends sets that failed again itself.
        ends: the ends of what another `BrokerSender` has sent, for `wait_until_readable`.
        router: sends sets elsewhere; without one they are completed with the error.
    """

    def __init__(
        self,
        connection: BrokerConnection,
        rules: SendRules,
        *,
        max_in_flight: int = 1,
        max_in_flight_bytes: int = _MAX_IN_FLIGHT_BYTES,
        retries: int | None = None,
        ends: Mapping[TopicPartition, int] | None = None,
        router: Router | None = None,
    ) -> None:
        self._router = router
        self._refused: list[PendingSet] = []
        """What the broker does not take, as it does not lead the partitions."""
        self._refusal: BrokerError | None = None
        self._move_count = 0  # how often sets were handed over
        self.connection = connection
        self._rules = rules
        self._max_in_flight = max_in_flight
        self._max_in_flight_bytes = max_in_flight_bytes
        self._retries = rules.retries if retries is None else retries
        self._connect_patience_s = rules.connect_timeout_s
        if rules.returns_lost:
            self._retries, self._connect_patience_s = 0, 0.0
        # the broker gets less time than the client waits, so that it can say that time is up
        self._commit_timeout_ms = int(rules.timeout_s * 1000 * _BROKER_SHARE_OF_TIMEOUT)
        self._window: deque[_InFlight] = deque()
        self._window_bytes = 0
        self._receive_due_s = 0.0
        self._single: dict[TopicPartition, tuple[SinglePublish, SinglePublishResponse]] = {}
        self._must_reconnect = False
        """The broker refused a set, and refuses those behind it on this connection."""
        self.ends: dict[TopicPartition, int] = dict(ends or {})
        """End offset of what was sent to each partition; 0 where it is unknown."""
        self._committed_ends: dict[TopicPartition, int] = {}
        """The ends of what a broker that stopped has acknowledged, and flushed."""

    def send(self, sets: Sequence[PendingSet]) -> None:
        """Send sets in one request; wait for the oldest response while the window is full.

        Args:
            sets: at least one, and at most one of each partition.

        Raises:
            BrokerError: the connection failed, also after retries; all sets of the window, and
                these, are completed with that error.
        """
        request = _InFlight(sets)
        move_count = self._move_count
        try:
            self._make_room(request)
        except BrokerError as error:
            _fail(request, error)
            raise
        if self._router is not None and self._move_count != move_count:
            # sets of the same partition, that come before these, may have gone elsewhere
            self._router.send_elsewhere(sets, None)
            return
        self._append(request)
        is_first = len(self._window) == 1 and not self.connection.is_open
        if is_first and self._router is not None and not self._rules.returns_lost:
            # it goes elsewhere at once, if it may, rather than wait for this broker
            self._move_from_gone(self._router, None)
            if not self._window:
                return
        try:
            self._send_at(len(self._window) - 1)
        except BrokerError as error:
            self._retry(error)

    def _append(self, request: _InFlight) -> None:
        self._window.append(request)
        self._window_bytes += request.size_bytes

    @property
    def is_idle(self) -> bool:
        """Return whether all that was sent is completed, or sent elsewhere."""
        return not self._window and not self._refused

    def _make_room(self, request: _InFlight) -> None:
        """Take responses, at least until the window has room for a request."""
        if self._window and time.monotonic() >= self._receive_due_s:
            self.receive_ready()
        while self._window and (
            len(self._window) >= self._max_in_flight
            or self._window_bytes + request.size_bytes > self._max_in_flight_bytes
        ):
            self._retrying(self._receive_response)
        if self._must_reconnect:
            self.drain()
            self.connection.close()
            self._must_reconnect = False
        if self.connection.is_reconnect_due:
            self.drain()
            self.connection.reconnect()

    def receive_ready(self) -> None:
        """Take the responses that have come, without waiting; see `send` for errors."""
        self._receive_due_s = time.monotonic() + _RECEIVE_INTERVAL_S
        while self._window and self.connection.current.has_received:
            try:
                self._receive_response()
            except BrokerError as error:
                self._retry(error)
        if self._refused:
            self.drain()

    def drain(self) -> None:
        """Wait for all responses; see `send` for errors."""
        while self._window:
            self._retrying(self._receive_response)
        if self._refused:
            assert self._router is not None
            self._send_elsewhere(self._router, [])

    def _send_elsewhere(self, router: Router, sets: Sequence[PendingSet]) -> None:
        """Hand sets over, those that the broker has refused first."""
        refused, self._refused = self._refused, []
        error = self._refusal
        assert error is not None
        self._move_count += 1
        router.send_elsewhere([*refused, *sets], error)

    def _move_from_gone(self, router: Router, error: BrokerError | None) -> bool:
        """Hand over the sets of the window that go elsewhere; return whether there are any.

        Args:
            router: takes them.
            error: how the connection was lost; None if there was none.

        Raises:
            BrokerError: some could not be sent there; those that stay are still in the window.
        """
        is_gone = not self.connection.can_open()
        if error is None and not is_gone:
            return False
        leaving: list[PendingSet] = []
        partitions = {one.partition for one in self._refused}
        staying = []
        for request in self._window:
            kept = []
            for one in request.sets:
                if one.partition in partitions or router.goes_elsewhere(
                    one, self.connection.broker_id, is_gone=is_gone
                ):
                    leaving.append(one)
                else:
                    kept.append(one)
            if kept:
                staying.append(_InFlight(kept))
        if not leaving and not self._refused:
            return False
        self._window, self._window_bytes = deque(), 0
        for request in staying:
            self._append(request)
        self._refusal = (
            self._refusal
            or error
            or BrokerUnreachableError(f"broker {self.connection.broker_id} is gone")
        )
        self._send_elsewhere(router, leaving)
        return True

    def close(self) -> None:
        """Close the connection; sets in flight are not completed."""
        self.connection.close()

    def fail_all(self, error: BrokerError) -> None:
        """Complete all sets of the window with an error that is raised to the caller."""
        window, self._window, self._window_bytes = self._window, deque(), 0
        for request in window:
            _fail(request, error)

    def _retrying(self, step: Callable[[], None], retries: int | None = None) -> None:
        """Do one step; after a failure that may pass, see `_retry`."""
        try:
            step()
        except BrokerError as error:
            self._retry(error, step, retries)

    def _retry(
        self,
        error: BrokerError,
        step: Callable[[], None] | None = None,
        retries: int | None = None,
    ) -> None:
        """Send the whole window again after a failure, then repeat the step that failed.

        What was acknowledged before the failure leaves the window first.

        Args:
            error: the failure.
            step: what failed, if not the sending of the window.
            retries: how often; None for as often as sets are sent again.

        Raises:
            BrokerError: it may not be sent again; all sets of the window are completed with it.
        """
        failures = 0
        if retries is None:
            retries = self._retries
        while True:
            failures += 1
            error = self._receive_rest(error)
            self.connection.close()
            if self._router is not None and self._window and self._is_lost(error):
                has_moved = self._move_from_gone(self._router, error)
                if has_moved and not self._window:
                    return
            if not self._may_send_again(error, failures, retries):
                self.fail_all(error)
                raise error
            try:
                index = 0
                while index < len(self._window):
                    index += self._send_at(index)
                if step is not None:
                    step()
                return
            except BrokerError as latest:
                error = latest

    def _receive_rest(self, error: BrokerError) -> BrokerError:
        """Take the responses that came before a failure; return why there are no more.

        A connection that the broker has closed is known to be so when it is written to; behind
        its responses there can be the broker's word that it has stopped.
        """
        try:
            connection = self.connection.current
            while self._window and not connection.is_open and connection.has_received:
                self._receive_response()
        except BrokerStoppedError as stopped:
            return stopped
        except BrokerError:  # there was but part of a response
            return error
        return error

    def _is_lost(self, error: BrokerError) -> bool:
        """Return whether sets may be sent elsewhere after a failure, as the caller does not."""
        return is_lost(error) and self._retries > 0

    def _may_send_again(self, error: BrokerError, failures: int, retries: int) -> bool:
        """Decide what happens to the window after a failure: wait and send it again, or give up.

        A broker that has moved is found when the window is sent: `BrokerConnection.open` looks up
        its address.
        """
        if not is_lost(error) or failures > retries:
            return False
        time.sleep(retry_wait_s(self._rules.backoff_s, failures))
        return True

    def _send_at(self, index: int) -> bool:
        """Send a request of the window; return False if it left the window."""
        request = self._window[index]
        sets = request.sets
        connection = self.connection.open(self._connect_patience_s)
        self.connection.count_request()
        is_07 = connection.hello() is None
        if is_07:
            self._produce_07(connection, sets)
        elif len(sets) > 1:
            publish = PublishRequest(
                self._rules.acks,
                self._commit_timeout_ms,
                tuple(PartitionSet(one.partition, one.message_set) for one in sets),
            )
            request.correlation_id = connection.send_extension(publish)
        else:
            one = sets[0]
            single = self._single.get(one.partition)
            if single is None:
                single = self._single[one.partition] = (
                    SinglePublish(
                        connection.client_id,
                        self._rules.acks,
                        self._commit_timeout_ms,
                        one.partition,
                    ),
                    single_publish_response(one.partition),
                )
            publish_one, request.response = single
            request.correlation_id = connection.next_correlation_id()
            connection.send_parts(publish_one.encode_parts(request.correlation_id, one.message_set))
        if not is_07 and self._rules.acks is not Acks.NONE:
            return True
        del self._window[index]
        self._window_bytes -= request.size_bytes
        for one in sets:
            self.ends.setdefault(one.partition, 0)
            one.complete(-1, None)
        return False

    def _produce_07(self, connection: Connection, sets: Sequence[PendingSet]) -> None:
        for one in sets:
            if one.partition not in self.ends:
                self.ends[one.partition] = _latest_07(connection, one.partition)
        produces = tuple(
            ProduceRequest(one.partition.topic, one.partition.index, one.message_set)
            for one in sets
        )
        connection.send_request(
            produces[0] if len(produces) == 1 else MultiProduceRequest(produces)
        )
        for one in sets:
            self.ends[one.partition] += scan(one.message_set).valid_bytes

    def _receive_response(self) -> None:
        """Read the response to the oldest request, and complete its sets.

        Raises:
            BrokerStoppedError: it has taken none of the sets that are left in the window.
            BrokerError: the connection failed.
        """
        if not self._window:
            return
        try:
            self._receive_one()
        except BrokerStoppedError:
            self._committed_ends.update(self.ends)
            raise

    def _receive_one(self) -> None:
        request = self._window[0]
        connection = self.connection.current
        frame = connection.receive()
        if request.response is not None:
            decoded = request.response.decode(frame, request.correlation_id)
            if decoded is not None:
                base_offset, one = decoded[0], request.sets[0]
                self._pop(request)
                self.ends[one.partition] = base_offset + len(one.message_set)
                one.complete(base_offset, None)
                return
        try:
            results = decode_publish_response(
                connection.open_extension(frame, request.correlation_id)
            )
        except ServerError as error:  # the broker refuses the request as a whole
            self._pop(request)
            for one in request.sets:
                one.complete(-1, error)
            return
        if len(results) != len(request.sets):
            raise ProtocolError(
                f"{len(results)} results came for the {len(request.sets)} sets of a publish"
            )
        refused = [
            one
            for one, result in zip(request.sets, results, strict=True)
            if result.error == ShuttingDownError.code
        ]
        self._pop(request)
        if refused:
            # the broker appends nothing any more: they go again, before the rest of the window
            rest = _InFlight(refused)
            self._window.appendleft(rest)
            self._window_bytes += rest.size_bytes
        for one, (partition, code, base_offset, text, _) in zip(request.sets, results, strict=True):
            if code == NO_ERROR:
                self.ends[partition] = base_offset + len(one.message_set)
                one.complete(base_offset, None)
            elif code in _LED_ELSEWHERE:
                # so does the broker with all sets of the partition behind it on this connection
                self._must_reconnect = True
                self._note_refusal(one, error_for_code(code, text, base_offset))
            elif code != ShuttingDownError.code:
                # Sets behind this one may be in the log: sent again, it would change the order.
                self._must_reconnect |= code in _REFUSES_ALL_BEHIND
                one.complete(-1, error_for_code(code, text))
        if refused:  # so is all behind it; then the broker says whether what it has is safe
            connection.await_end()

    def _note_refusal(self, one: PendingSet, error: ServerError) -> None:
        """Keep a set that is for another broker, until the window is empty."""
        if self._router is None:
            one.complete(-1, error)
            return
        leader = error.leader if isinstance(error, NotLeaderError) else -1
        self._router.note_leader(one.partition, leader)
        self._refusal = error
        self._refused.append(one)

    def _pop(self, request: _InFlight) -> None:
        self._window.popleft()
        self._window_bytes -= request.size_bytes

    def unsafe_ends(self) -> dict[TopicPartition, int]:
        """Return the ends that are not known to be flushed, and have to be waited for."""
        return {
            partition: end
            for partition, end in self.ends.items()
            if not 0 < end <= self._committed_ends.get(partition, -1)
        }

    def wait_until_readable(self) -> None:
        """Wait until consumers can read all that was sent.

        What a broker has acknowledged that was stopped since is flushed, and not waited for:
        consumers can read it as soon as the broker is back.

        Raises:
            RequestTimedOutError: it takes longer than the timeout; the text says what is missing.
            LogCorruptError: the broker no longer has what it acknowledged.
            BrokerError: the broker fails.
        """
        if self._rules.acks is Acks.COMMITTED and self.connection.has_extensions:
            return  # committed sets can be read already
        for partition, end in self.unsafe_ends().items():
            # the connection may have been closed as idle since the last acknowledgement
            self._retrying(partial(self._await_readable, partition, end), self._rules.retries)

    def _await_readable(self, partition: TopicPartition, end: int) -> None:
        if partition not in self.unsafe_ends():
            return  # the broker has been stopped meanwhile
        connection = self.connection.open(self._rules.connect_timeout_s)
        if connection.hello() is None:
            give_up_s = time.monotonic() + self._rules.timeout_s
            while (latest := _latest_07(connection, partition)) < end:
                if time.monotonic() >= give_up_s:
                    raise self._not_readable(partition, end, latest)
                time.sleep(POLL_S)
        elif self._rules.acks is not Acks.COMMITTED:  # committed sets can be read already
            try:
                self._commit(connection, partition, end)
            except BrokerStoppedError:
                self._committed_ends.update(self.ends)
                if partition in self.unsafe_ends():
                    raise

    def _commit(self, connection: Connection, partition: TopicPartition, end: int) -> None:
        """Commit all that was written before, by a committed publish of an empty set."""
        request = PublishRequest(
            Acks.COMMITTED, self._commit_timeout_ms, (PartitionSet(partition, b""),)
        )
        results = decode_publish_response(connection.call(request))
        if len(results) != 1:
            raise ProtocolError(f"{len(results)} results came for the one set of a publish")
        (published,) = results
        if published.error == RequestTimedOutError.code:
            raise self._not_readable(partition, end, _latest_07(connection, partition))
        if published.error == ShuttingDownError.code:
            connection.await_end()
        if published.error != NO_ERROR:
            raise error_for_code(published.error, published.text)
        if published.base_offset < end:
            raise LogCorruptError(
                f"{partition} ends at {published.base_offset} and not at {end}: the broker "
                "has lost what it acknowledged as written"
            )

    def _not_readable(
        self, partition: TopicPartition, end: int, latest: int
    ) -> RequestTimedOutError:
        missing = f"{end - latest} bytes" if end > latest else "some"
        return RequestTimedOutError(
            f"{missing} of {partition} cannot be read yet, "
            f"{self._rules.timeout_s:g}s after they were sent"
        )


def _fail(request: _InFlight, error: BrokerError) -> None:
    """Complete the sets of a request with an error that is raised to the caller."""
    for one in request.sets:
        one.complete(-1, error, is_raised=True)


def _latest_07(connection: Connection, partition: TopicPartition) -> int:
    """Return the latest offset of a partition, asked for as 0.7's clients do."""
    connection.send_request(OffsetsRequest(partition.topic, partition.index, LATEST_TIME, 1))
    return next(iter(decode_offsets_response(connection.receive())), 0)
