"""One broker's share of a producer's work: requests in flight on one connection, and 0.7.

No retries here: each set gets a response, or is returned by `take_back`; the `Dispatcher` decides
what follows. For one thread at a time.

A broker that knows only 0.7's requests acknowledges nothing: there a set is acknowledged once it is
written to the connection, and `await_grown` waits until the log has grown by it.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from broker import errors
from broker.client.connection import Connection
from broker.client.counts import ProducerCounts
from broker.producer.broker_connection import BrokerConnection
from broker.producer.partitioner import POLL_S
from broker.protocol import requests, responses
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
    SinglePublish,
    SinglePublishResponse,
    StampedPublishRequest,
    single_publish_response,
)
from broker.protocol.codec import scan
from broker.protocol.message import ProducerStamp
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition

# With fewer sets in flight their memory, and that of the socket buffers, is reused while it is in
# the processor's cache: sending 200 MB in sets of 256 KiB takes 5 to 15 % less CPU time than with
# 64 sets in flight.
MAX_IN_FLIGHT_BYTES = 4 << 20
# Where acknowledgements wait for flushes: with less, the broker would run out of sets in each.
_MAX_UNCOMMITTED_BYTES = 16 << 20
_BROKER_SHARE_OF_TIMEOUT = 0.9
_IDLE_S = 1.0  # after this time a connection is looked at before it is used


class PendingSet(Protocol):
    """A message set for one partition that is not acknowledged yet, and its completion."""

    partition: TopicPartition
    message_set: Buffer
    """The bytes to send."""
    is_numbered: bool
    """Whether they have the numbers of their producer; always but in record batches."""
    stamp: ProducerStamp | None
    """Those of a set of 0.7's messages."""

    @property
    def message_count(self) -> int:
        """Return the number of its messages, 0 if it is not known."""

    @property
    def offset_span(self) -> int:
        """Return by how much it moves the end of the log: its bytes, or its records."""

    @property
    def can_move(self) -> bool:
        """Return whether it may go to another partition: its messages have no key."""

    def complete(
        self, base_offset: int, error: errors.BrokerError | None, *, is_raised: bool = False
    ) -> None:
        """Complete it with the acknowledgement, or the failure; called exactly once.

        `base_offset` -1: the broker sends none; `is_raised`: the error is also raised to the
        program.
        """


class Results(Protocol):
    """Receives the outcome of sets."""

    def acknowledged(self, one: PendingSet, acks: Acks, base_offset: int, term: int) -> None:
        """Handle a set that a broker has appended; `acks` are the requested ones.

        Without a value from the broker, `base_offset` is -1 and `term` `NO_TERM`.
        """

    def refused(self, one: PendingSet, error: errors.ServerError) -> None:
        """Handle a set that a broker did not append, or not safely."""


@dataclass(eq=False, slots=True)
class _InFlight:
    """A request whose response is outstanding."""

    sets: Sequence[PendingSet]
    acks: Acks
    size_bytes: int
    sent_s: float
    correlation_id: int = 0  # until the request is sent
    response: SinglePublishResponse | None = None  # decodes that of a single set


class BrokerSender:
    """Sends message sets to one broker, in order, and reads its responses."""

    notes_ends_07 = True
    """Whether `await_grown` will be called."""

    def __init__(
        self, connection: BrokerConnection, results: Results, counts: ProducerCounts
    ) -> None:
        self.connection = connection
        self._results = results
        self._counts = counts
        self._settings = settings = connection.parts.settings
        self.max_in_flight_bytes = (  # unacknowledged; a larger set is alone
            _MAX_UNCOMMITTED_BYTES if settings.acks is Acks.COMMITTED else MAX_IN_FLIGHT_BYTES
        )
        self._commit_timeout_ms = int(settings.timeout_s * 1000 * _BROKER_SHARE_OF_TIMEOUT)
        self._window: deque[_InFlight] = deque()
        self._window_bytes = 0
        self.heard_s = 0.0  # when the window was empty, or a response came (`time.monotonic`)
        self._single: dict[TopicPartition, tuple[SinglePublish, SinglePublishResponse]] = {}
        # a set was refused, and the broker refuses those behind it on this connection
        self.must_reconnect = False
        self._is_ending = False  # the broker, which shuts down, responds a last time
        self._greeted: Connection | None = None  # the connection that `_message_limit` is of
        self._message_limit = 0
        self._was_asked = False
        # the ends of the logs of a broker of 0.7 once it has appended all sets
        self.ends_07: dict[TopicPartition, int] = {}

    @property
    def is_idle(self) -> bool:
        """Return whether no response is outstanding."""
        return not self._window

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions of the sets that have no response."""
        return list(dict.fromkeys(one.partition for each in self._window for one in each.sets))

    def is_silent(self, seconds: float) -> bool:
        """Return whether requests have had no response for this time."""
        return bool(self._window) and time.monotonic() >= self.heard_s + seconds

    def has_room(self, size_bytes: int) -> bool:
        """Return whether a set may be sent now; an idle sender has room for any."""
        window = self._window
        if not window:
            return True
        return (
            not self.must_reconnect
            and len(window) < self._settings.max_in_flight
            and self._window_bytes + size_bytes <= self.max_in_flight_bytes
            and not self.connection.is_reconnect_due
        )

    def send(self, sets: Sequence[PendingSet], acks: Acks) -> None:
        """Send sets, at most one of each partition, in one request, when there is room."""
        # if the connection fails, `take_back` returns these sets too
        window = self._window
        request = _in_flight(sets, acks)
        if not window:
            was_idle = 0 < self.heard_s < request.sent_s - _IDLE_S
            self.heard_s = request.sent_s
            # what comes on an idle connection is its end
            if self.must_reconnect or (was_idle and self.has_response(0.0)):
                self.connection.close()
                self.must_reconnect = False
            elif self.connection.is_reconnect_due:
                self.connection.reconnect()
        window.append(request)
        self._window_bytes += request.size_bytes
        self._counts.in_flight += 1
        for one in sets:
            if one.message_set:
                self._counts.set_bytes.record(len(one.message_set))
        connection = self._open()
        self.connection.request_count += 1
        proof = acks
        if connection.hello() is None:
            self._produce_07(connection, sets)
            proof = Acks.COMMITTED  # for the `Results`; `await_grown` waits until it is true
        elif len(sets) > 1 or acks is not self._settings.acks or sets[0].stamp is not None:
            has_stamps = any(one.stamp is not None for one in sets)
            publish = (StampedPublishRequest if has_stamps else PublishRequest)(
                acks,
                self._commit_timeout_ms,
                tuple(PartitionSet(one.partition, one.message_set, one.stamp) for one in sets),
            )
            request.correlation_id = connection.send_extension(publish)
            if acks is not Acks.NONE:
                return
        else:
            self._send_single(connection, request)
            if acks is not Acks.NONE:
                return
        self._pop(request)
        for one in sets:
            self._results.acknowledged(one, proof, -1, responses.NO_TERM)

    def message_limit(self) -> int:
        """Return the largest payload that the broker takes, as it told when it was connected to.

        0 if it could not be; that is tried once.
        """
        if not self._was_asked and self._greeted is None:
            self._was_asked = True
            with suppress(errors.BrokerError):  # so will what is sent fail, or wait
                self._open()
        return self._message_limit

    def _open(self) -> Connection:
        """Return the open connection to the broker."""
        connection = self.connection.open()
        if connection is not self._greeted:
            self._greeted, hello = connection, connection.hello()
            self._message_limit = sys.maxsize if hello is None else hello.max_message_bytes
        return connection

    def _send_single(self, connection: Connection, request: _InFlight) -> None:
        one = request.sets[0]
        single = self._single.get(one.partition)
        if single is None:
            single = self._single[one.partition] = (
                SinglePublish(
                    connection.client_id,
                    self._settings.acks,
                    self._commit_timeout_ms,
                    one.partition,
                ),
                single_publish_response(one.partition),
            )
        publish, request.response = single
        request.correlation_id = connection.next_correlation_id()
        connection.send(*publish.encode_parts(request.correlation_id, one.message_set))

    def _produce_07(self, connection: Connection, sets: Sequence[PendingSet]) -> None:
        if not any(one.message_set for one in sets):
            return
        for one in sets:
            if self.notes_ends_07 and one.partition not in self.ends_07:
                self.ends_07[one.partition] = _latest_07(connection, one.partition)
        produces = tuple(
            requests.ProduceRequest(one.partition.topic, one.partition.index, one.message_set)
            for one in sets
        )
        connection.send_request(
            produces[0] if len(produces) == 1 else requests.MultiProduceRequest(produces)
        )
        if self.notes_ends_07:
            for one in sets:
                self.ends_07[one.partition] += scan(one.message_set).valid_bytes

    def receive_ready(self) -> None:
        """Handle the responses that have come, without waiting; see `receive` for errors."""
        while self._window and self.connection.current.has_received():
            self.receive()

    def has_response(self, within_s: float) -> bool:
        """Return whether a response has come, or the end of the connection."""
        connection = self.connection.current
        return not connection.is_open or connection.has_received(within_s)

    def receive(self) -> None:
        """Wait for the response to the oldest request, and pass the outcome of its sets on.

        After `BrokerStoppedError` the broker has appended none of the sets in flight.
        """
        request = self._window[0]
        connection = self.connection.current
        if self._is_ending:
            connection.drop_response()
            return
        frame = connection.receive()
        self.heard_s = time.monotonic()
        if request.response is not None:
            found = request.response.decode(frame, request.correlation_id)
            if found is not None:
                self._pop(request)
                self._results.acknowledged(request.sets[0], request.acks, *found)
                return
        try:
            results = responses.decode_publish_response(
                connection.open_extension(frame, request.correlation_id)
            )
        except errors.ServerError as error:  # the broker refuses the request as a whole
            self._pop(request)
            for one in request.sets:
                self._results.refused(one, error)
            return
        if len(results) != len(request.sets):
            raise errors.ProtocolError(
                f"{len(results)} results came for the {len(request.sets)} sets of a publish"
            )
        self._take_results(connection, request, results)

    def _take_results(
        self, connection: Connection, request: _InFlight, results: Sequence[responses.Published]
    ) -> None:
        self._pop(request)
        pairs = list(zip(request.sets, results, strict=True))
        if not_stored := [
            one for one, found in pairs if found.error == errors.ShuttingDownError.code
        ]:
            # the broker appends nothing any more: `take_back` returns them, then the other sets
            rest = _in_flight(not_stored, request.acks)
            self._window.appendleft(rest)
            self._window_bytes += rest.size_bytes
            self._counts.in_flight += 1
        for one, found in pairs:
            if found.error == errors.NO_ERROR:
                self._results.acknowledged(one, request.acks, found.base_offset, found.term)
            elif found.error != errors.ShuttingDownError.code:
                error = errors.error_for_code(found.error, found.text, found.base_offset)
                self.must_reconnect |= error.is_retriable
                if isinstance(error, errors.MessageSizeTooLargeError):
                    self._message_limit = error.limit  # it can have been lowered since
                self._results.refused(one, error)
        if not_stored:  # the broker's last response follows: all that it acknowledged is flushed
            self._is_ending = self.must_reconnect = True

    def take_back(
        self, error: errors.BrokerError
    ) -> tuple[dict[PendingSet, bool], errors.BrokerError]:
        """Close the connection after a failure; return the sets without a response, and the reason.

        The value of each set tells whether the broker may have stored it. Responses that came
        before the failure are read first, as the last one of a broker that has shut down can follow
        them.
        """
        try:
            while self._window and self._has_rest():
                self.receive()
        except errors.BrokerStoppedError as stopped:
            error = stopped
        except errors.BrokerError:  # there was only a part of a response
            pass
        self.connection.close()
        self.heard_s = 0.0  # the next send finds no idle connection to look at, perhaps none
        self.must_reconnect = self._is_ending = False
        window, self._window, self._window_bytes = self._window, deque(), 0
        self._counts.in_flight -= len(window)
        is_known = isinstance(error, errors.BrokerStoppedError)
        return {
            one: request.correlation_id > 0 and not is_known
            for request in window
            for one in request.sets
        }, error

    def _has_rest(self) -> bool:
        # responses had come before the connection was lost
        connection = self.connection.current
        return not connection.is_open and connection.has_received()

    def await_grown(self) -> None:
        """Wait until all sets sent to a broker of 0.7 can be read; forget them after an error."""
        give_up_s = time.monotonic() + self._settings.timeout_s
        ends, self.ends_07 = self.ends_07, {}
        for partition, end in ends.items():
            connection = self.connection.open()
            ask = partial(_latest_07, connection, partition)
            while (latest := connection.repeat_if_lost(ask)) < end:
                if time.monotonic() >= give_up_s:
                    raise errors.RequestTimedOutError(
                        f"{end - latest} bytes of {partition} cannot be read yet, "
                        f"{self._settings.timeout_s:g}s after they were sent"
                    )
                time.sleep(POLL_S)
        self.ends_07 = ends

    def silence(self, seconds: float) -> errors.RequestTimeoutError:
        """Return the error of a broker that has been silent for this time."""
        return errors.RequestTimeoutError(
            f"{self.connection.current.name} has not answered for {seconds:g}s"
        )

    def close(self) -> None:
        """Close the connection; sets in flight stay without a response."""
        self.connection.close()

    def _pop(self, request: _InFlight) -> None:
        self._window.popleft()
        self._window_bytes -= request.size_bytes
        counts = self._counts
        counts.in_flight -= 1
        counts.request_times.record(time.monotonic() - request.sent_s)


class BrokerSenders(dict[int, BrokerSender]):
    """The senders of a producer by broker id, made at first use."""

    def __init__(self, make: Callable[[int], BrokerSender]) -> None:
        super().__init__()
        self._make = make
        self.is_aborted = False

    def __missing__(self, broker_id: int) -> BrokerSender:
        sender = self[broker_id] = self._make(broker_id)
        if self.is_aborted:
            sender.connection.abort()
        return sender

    @property
    def busy(self) -> list[BrokerSender]:
        """Return the senders with outstanding responses."""
        return [one for one in self.values() if not one.is_idle]

    def retry_now(self) -> None:
        """Make requests to former addresses of brokers fail; from any thread."""
        for sender in list(self.values()):
            sender.connection.retry_now()

    def abort(self) -> None:
        """Make requests under way, and all later ones, fail at once; from any thread."""
        self.is_aborted = True
        for sender in list(self.values()):
            sender.connection.abort()


def _in_flight(sets: Sequence[PendingSet], acks: Acks) -> _InFlight:
    size_bytes = sum([len(one.message_set) for one in sets])
    return _InFlight(sets, acks, size_bytes, time.monotonic())


def _latest_07(connection: Connection, partition: TopicPartition) -> int:
    # as 0.7's clients request it
    connection.send_request(
        requests.OffsetsRequest(partition.topic, partition.index, requests.LATEST_TIME, 1)
    )
    return next(iter(responses.decode_offsets_response(connection.receive())), 0)
