"""Sends message sets to one broker: connection, window of unacknowledged sets, retries, 0.7.

The synchronous producer calls a `BrokerSender` in the caller's thread, the asynchronous one in a
sender thread; one thread at a time. Acknowledgements are read in `_receive_response` alone, and
`_may_send_again` alone decides after a failure whether the sets in flight are sent again, to the
address that the broker has by then, or completed with the error.

A broker that knows only 0.7's requests acknowledges nothing: there a set is completed once it
is written to the connection, and `barrier` waits until the log has grown by it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.errors import (
    NO_ERROR,
    BrokerError,
    BrokerUnreachableError,
    LogCorruptError,
    ProducerClosedError,
    ProtocolError,
    RequestTimedOutError,
    ServerError,
    ShuttingDownError,
    error_for_code,
)
from broker.protocol.codec import scan
from broker.protocol.extension_requests import (
    Acks,
    HelloRequest,
    PartitionSet,
    PublishRequest,
    SinglePublish,
    SinglePublishResponse,
    single_publish_response,
)
from broker.protocol.primitives import Buffer
from broker.protocol.requests import (
    LATEST_TIME,
    FetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
)
from broker.protocol.responses import (
    BrokerAddress,
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
_FIRST_CONNECT_PAUSE_S = 0.02
_MAX_CONNECT_PAUSE_S = 0.5
_BROKER_SHARE_OF_TIMEOUT = 0.9


@dataclass(frozen=True, slots=True)
class ReconnectRule:
    """When a connection is replaced by a new one, so that load balancers get their turn.

    Args:
        requests: after so many requests; 0 for never.
        interval_s: after so many seconds; negative for never. The first time comes at random
            within it, so that producers started together do not reconnect together.

    Source: Kafka 0.7 `reconnect.interval` and `reconnect.time.interval.ms` of `SyncProducer`.
    """

    requests: int = 0
    interval_s: float = -1.0


NO_RECONNECT = ReconnectRule()


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
    """

    acks: Acks = Acks.COMMITTED
    retries: int = 3
    backoff_s: float = 0.1
    timeout_s: float = 30.0
    connect_timeout_s: float = 0.0
    reconnect: ReconnectRule = NO_RECONNECT


def retry_wait_s(backoff_s: float, failures: int) -> float:
    """Return how long to wait after so many failures in a row: the backoff, then 4 and 16 times it.

    Args:
        backoff_s: the first wait.
        failures: at least 1.
    """
    return backoff_s * 4.0 ** min(failures - 1, 2)


class SentSet(Protocol):
    """A message set for one partition, and who is told of its end."""

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


class BrokerConnection:
    """The connection to one broker, at whichever address it is.

    A broker is known by its id. Its address is looked up for every attempt to connect, so that a
    broker that comes back at another address is found there.

    Args:
        find_address: raises `BrokerUnreachableError` if the broker is absent.
        connect: makes connections.
        broker_id: -1 if any broker will do.
        rule: when to reconnect.
    """

    def __init__(
        self,
        find_address: Callable[[], BrokerAddress],
        connect: Connect,
        *,
        broker_id: int = -1,
        rule: ReconnectRule = NO_RECONNECT,
    ) -> None:
        self._find_address = find_address
        self._connect = connect
        self._broker_id = broker_id
        self._rule = rule
        self._connection: Connection | None = None
        self._is_07 = False
        self._request_count = 0
        self._marked_s = time.monotonic() - random.random() * max(0.0, rule.interval_s)
        self._wake = threading.Event()  # ends a pause between attempts to connect
        self._is_aborted = False

    def open(self, patience_s: float = 0.0) -> Connection:
        """Return an open connection to the broker.

        Args:
            patience_s: for how long a broker that is absent, or refuses, is tried again, on top
                of what a `Connection` does.

        Raises:
            BrokerUnreachableError: it is not there, or another broker is.
            ProducerClosedError: `abort` was called.
            BrokerError: see `Connection.hello`; or ZooKeeper cannot say where the broker is.
        """
        connection = self._connection
        if connection is None or not connection.is_open:
            give_up_s = time.monotonic() + patience_s
            pause_s = _FIRST_CONNECT_PAUSE_S
            while True:
                is_last = self._is_aborted or time.monotonic() + pause_s >= give_up_s
                try:
                    connection = self._connect_anew()
                    break
                except BrokerUnreachableError:
                    if is_last:
                        raise
                self._wake.wait(pause_s)
                self._wake.clear()
                pause_s = min(2 * pause_s, _MAX_CONNECT_PAUSE_S)
        if self._is_aborted:
            raise ProducerClosedError("the producer was closed")
        return connection

    def _connect_anew(self) -> Connection:
        former, address = self._connection, self._find_address()
        # `hello` costs a broker of 0.7 a connection, so a `Connection` that knows is used again
        is_same = former is not None and self._is_07 and former.address == address
        connection = former if former is not None and is_same else self._connect(address)
        self._connection = connection
        hello = connection.hello()
        self._is_07 = hello is None
        if hello is not None and self._broker_id not in (-1, hello.broker_id):
            # the address of a broker that went away can become that of another one
            connection.close()
            raise BrokerUnreachableError(
                f"{connection.name} calls itself broker {hello.broker_id}: "
                f"broker {self._broker_id} is elsewhere"
            )
        return connection

    @property
    def current(self) -> Connection:
        """Return the connection that requests were sent on, to receive their responses.

        Raises:
            BrokerUnreachableError: there never was one.
        """
        if self._connection is None:
            raise BrokerUnreachableError(f"there is no connection to broker {self._broker_id}")
        return self._connection

    def count_request(self) -> None:
        """Count a request for the rule."""
        self._request_count += 1

    @property
    def is_reconnect_due(self) -> bool:
        """Return whether the rule asks for a new connection."""
        rule = self._rule
        if rule.requests and self._request_count >= rule.requests:
            return True
        return rule.interval_s >= 0 and time.monotonic() - self._marked_s >= rule.interval_s

    def reconnect(self) -> None:
        """Close the connection as the rule asks for, with no response outstanding.

        First the broker must have read all that was sent there: requests without acknowledgements
        could be overtaken by those on the next connection.
        """
        self._request_count = 0
        self._marked_s = time.monotonic()
        connection = self._connection
        if connection is not None and connection.is_open:
            with suppress(BrokerError):  # a broken connection has nothing to wait for
                if self._is_07:
                    connection.send_request(FetchRequest("hello", 0, 0, 0))
                    connection.receive()
                else:
                    connection.call(HelloRequest())
            connection.close()

    def close(self) -> None:
        """Close the connection; the next `open` makes another one."""
        if self._connection is not None:
            self._connection.close()

    def retry_now(self) -> None:
        """Look the broker up again at once, as the cluster has changed; from any thread.

        A request under way to an address where the broker is no more fails.
        """
        connection = self._connection
        with suppress(BrokerError):  # an absent broker has no other address
            if connection is not None and self._find_address() != connection.address:
                connection.interrupt()
        self._wake.set()

    def abort(self) -> None:
        """Make a request under way, and every later one, fail at once; from any thread."""
        self._is_aborted = True
        connection = self._connection
        if connection is not None:
            connection.interrupt()
        self._wake.set()


def connection_to(
    cluster: Cluster, connect: Connect, partition: TopicPartition, rules: SendRules
) -> BrokerConnection:
    """Return the connection to the broker that has a partition, and all others of its home."""
    return BrokerConnection(
        lambda: cluster.leader(partition),
        connect,
        broker_id=partition.home,
        rule=rules.reconnect,
    )


class _InFlight:
    """A request whose response is outstanding; `response` decodes that of a single set."""

    __slots__ = ("correlation_id", "response", "sets", "size_bytes")

    def __init__(self, sets: Sequence[SentSet]) -> None:
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
    """

    def __init__(
        self,
        connection: BrokerConnection,
        rules: SendRules,
        *,
        max_in_flight: int = 1,
        max_in_flight_bytes: int = _MAX_IN_FLIGHT_BYTES,
        retries: int | None = None,
    ) -> None:
        self.connection = connection
        self._rules = rules
        self._max_in_flight = max_in_flight
        self._max_in_flight_bytes = max_in_flight_bytes
        self._retries = rules.retries if retries is None else retries
        # the broker gets less time than the client waits, so that it can say that time is up
        self._commit_timeout_ms = int(rules.timeout_s * 1000 * _BROKER_SHARE_OF_TIMEOUT)
        self._window: deque[_InFlight] = deque()
        self._window_bytes = 0
        self._single: dict[TopicPartition, tuple[SinglePublish, SinglePublishResponse]] = {}
        self.ends: dict[TopicPartition, int] = {}
        """End offset of what was sent to each partition; 0 where it is unknown."""

    def send(self, sets: Sequence[SentSet]) -> None:
        """Send sets in one request; wait for the oldest response while the window is full.

        Args:
            sets: at least one, and at most one of each partition.

        Raises:
            BrokerError: the connection failed, also after retries; all sets of the window are
                completed with that error.
        """
        request = _InFlight(sets)
        while self._window and (
            len(self._window) >= self._max_in_flight
            or self._window_bytes + request.size_bytes > self._max_in_flight_bytes
        ):
            self._retrying(self._receive_response)
        if self.connection.is_reconnect_due:
            self.drain()
            self.connection.reconnect()
        self._window.append(request)
        self._window_bytes += request.size_bytes
        try:
            self._send_at(len(self._window) - 1)
        except BrokerError as error:
            self._retry(error)

    def drain(self) -> None:
        """Wait for all responses; see `send` for errors."""
        while self._window:
            self._retrying(self._receive_response)

    def close(self) -> None:
        """Close the connection; sets in flight are not completed."""
        self.connection.close()

    def fail_all(self, error: BrokerError) -> None:
        """Complete all sets of the window with an error that is raised to the caller."""
        window, self._window, self._window_bytes = self._window, deque(), 0
        for request in window:
            for one in request.sets:
                one.complete(-1, error, is_raised=True)

    def _retrying(self, step: Callable[[], None]) -> None:
        """Do one step; after a failure that may pass, see `_retry`."""
        try:
            step()
        except BrokerError as error:
            self._retry(error, step)

    def _retry(self, error: BrokerError, step: Callable[[], None] | None = None) -> None:
        """Send the whole window again after a failure, then repeat the step that failed.

        Raises:
            BrokerError: it may not be sent again; all sets of the window are completed with it.
        """
        failures = 0
        while True:
            failures += 1
            self.connection.close()
            if not self._may_send_again(error, failures):
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

    def _may_send_again(self, error: BrokerError, failures: int) -> bool:
        """Decide what happens to the window after a failure: wait and send it again, or give up.

        A broker that has moved is found when the window is sent: `BrokerConnection.open` looks up
        its address.
        """
        # a ServerError is a response: the request arrived, and must not be sent twice
        is_lost = error.is_retriable and not isinstance(error, ServerError)
        if not is_lost or failures > self._retries:
            return False
        time.sleep(retry_wait_s(self._rules.backoff_s, failures))
        return True

    def _send_at(self, index: int) -> bool:
        """Send a request of the window; return False if it left the window."""
        request = self._window[index]
        sets = request.sets
        connection = self.connection.open(self._rules.connect_timeout_s)
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

    def _produce_07(self, connection: Connection, sets: Sequence[SentSet]) -> None:
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
        """Read the response to the oldest request, and complete its sets."""
        if not self._window:
            return
        request = self._window[0]
        connection = self.connection.current
        frame = connection.receive()
        if request.response is not None:
            base_offset = request.response.decode(frame, request.correlation_id)
            if base_offset is not None:
                one = request.sets[0]
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
        for one, (partition, code, base_offset, text) in zip(request.sets, results, strict=True):
            if code == NO_ERROR:
                self.ends[partition] = base_offset + len(one.message_set)
                one.complete(base_offset, None)
            elif code != ShuttingDownError.code:
                # Sets behind this one may be in the log: sent again, it would change the order.
                one.complete(-1, error_for_code(code, text))
        if refused:
            raise BrokerUnreachableError(
                next(one.text for one in results if one.error == ShuttingDownError.code)
            )

    def _pop(self, request: _InFlight) -> None:
        self._window.popleft()
        self._window_bytes -= request.size_bytes

    def expect(self, ends: Mapping[TopicPartition, int]) -> None:
        """Have `barrier` wait for sets that another `BrokerSender` sent."""
        self.ends.update(ends)

    def barrier(self) -> None:
        """Wait until consumers can read all that was sent.

        Raises:
            RequestTimedOutError: it takes longer than the timeout; the text says what is missing.
            LogCorruptError: the broker no longer has what it acknowledged.
            BrokerError: the broker fails.
        """
        for partition, end in self.ends.items():
            # the connection may have been closed as idle since the last acknowledgement
            self._retrying(partial(self._await_readable, partition, end))

    def _await_readable(self, partition: TopicPartition, end: int) -> None:
        connection = self.connection.open()
        if connection.hello() is None:
            give_up_s = time.monotonic() + self._rules.timeout_s
            while (latest := _latest_07(connection, partition)) < end:
                if time.monotonic() >= give_up_s:
                    raise self._not_readable(partition, end, latest)
                time.sleep(POLL_S)
        elif self._rules.acks is not Acks.COMMITTED:  # committed sets can be read already
            self._commit(connection, partition, end)

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


def _latest_07(connection: Connection, partition: TopicPartition) -> int:
    """Return the latest offset of a partition, asked for as 0.7's clients do."""
    connection.send_request(OffsetsRequest(partition.topic, partition.index, LATEST_TIME, 1))
    return next(iter(decode_offsets_response(connection.receive())), 0)
