"""Sends batches through a producer, and counts the messages that are acknowledged.

The producer has the window of unacknowledged sets and sends them again after the loss of a
broker. This module knows which messages a set holds, so that an error says which are confirmed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import NamedTuple

from broker import errors
from broker.producer.dispatcher import Moved
from broker.producer.producer import Delivery, Producer
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES, Record
from broker.protocol.message_set import iter_messages
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition
from broker.units import Pacer, count_text, format_count, format_duration
from pylogctl.cli.environment import CliError
from pylogctl.cli.report import failure_of


class MessageBatch(NamedTuple):
    """Messages for one partition as one set; `numbers` are theirs in the whole run, from 1.

    For a topic of format `kafka` they are `records`, and there is no set yet.
    """

    partition: TopicPartition
    message_set: Buffer
    numbers: Sequence[int]
    records: Sequence[Record] = ()

    @property
    def payload_bytes(self) -> int:
        """Return the size of all payloads."""
        if self.records:
            return sum(len(one.value or b"") for one in self.records)
        return len(self.message_set) - ENTRY_OVERHEAD_BYTES * len(self.numbers)


def numbers_text(numbers: Sequence[int]) -> str:
    """Return for example `messages 3 to 7`."""
    first, last = numbers[0], numbers[-1]
    return f"message {first}" if first == last else f"messages {first} to {last}"


def pace_text(message_count: int, seconds: float) -> str:
    """Return for example `in 1m3s (120k msg/s)`."""
    rate = format_count(message_count / max(seconds, 1e-9))
    return f"in {format_duration(seconds)} ({rate} msg/s)"


def explained(
    error: errors.BrokerError, text: str, hints: Sequence[str] = (), /, **details: object
) -> CliError:
    """Return an error with more text, hints before its own, and details."""
    failure = failure_of(error)
    assert failure is not None
    return CliError(
        failure.status,
        f"{failure.message}; {text}",
        *hints,
        *failure.hints,
        code=failure.code,
        details=details,
    )


class Confirmed(NamedTuple):
    """A batch that a broker has acknowledged, its offset, and the set as it was sent."""

    batch: MessageBatch
    base_offset: int
    message_set: Buffer

    def messages(self) -> list[tuple[int, bytes]]:
        """Return offset and payload of each message."""
        if self.batch.records:
            found = enumerate(self.batch.records, self.base_offset)
            return [(offset, one.value or b"") for offset, one in found]
        return [
            (one.offset, one.payload) for one in iter_messages(self.message_set, self.base_offset)
        ]


@dataclass(eq=False)
class Sender:
    """Sends batches and counts acknowledged messages.

    If a broker is lost or refuses a batch, methods raise `CliError` that says how much was
    confirmed.

    Attributes:
        producer: takes the sets; None in a dry run, in which every batch counts as acknowledged.
        sync: wait for each acknowledgement before the next batch.
        pacer: limits the rate; None for no limit.
        before_send: called before each batch.
        observers: called with each acknowledged batch.
        refused: called with batches that the broker refuses for their content; raises to end the
            run.
        can_move: whether batches may go to another partition when their broker is lost.
        partitions: the acknowledged messages of each.
        payload_bytes: of acknowledged messages.
        last_number: the greatest of an acknowledged message.
        has_failed: a broker is lost, or refused a batch not for its content.
    """

    producer: Producer | None
    _: KW_ONLY
    sync: bool = False
    pacer: Pacer | None = None
    before_send: Callable[[], None] | None = None
    observers: Sequence[Callable[[Confirmed], None]] = ()
    refused: Callable[[MessageBatch, errors.BrokerError], None]
    can_move: bool = False
    partitions: dict[TopicPartition, int] = field(default_factory=dict, init=False)
    payload_bytes: int = field(default=0, init=False)
    last_number: int = field(default=0, init=False)
    has_failed: bool = field(default=False, init=False)
    _replaced: dict[TopicPartition, TopicPartition] = field(default_factory=dict, init=False)
    _unconfirmed: dict[int, MessageBatch] = field(
        default_factory=dict, init=False
    )  # by first number
    _refused: list[tuple[MessageBatch, errors.BrokerError]] = field(
        default_factory=list, init=False
    )
    _error: errors.BrokerError | None = field(default=None, init=False)

    @property
    def message_count(self) -> int:
        """Return how many messages were acknowledged."""
        return sum(self.partitions.values())

    def send(self, batch: MessageBatch) -> None:
        """Send a batch, waiting for the rate and for room in the window."""
        if self.pacer is not None:
            self.pacer.wait_for(len(batch.numbers), batch.payload_bytes)
        if self.before_send is not None:
            self.before_send()
        self._take_step(partial(self._hand_over, batch))
        if self.sync:
            self.flush()

    def message_limit(self, partition: TopicPartition) -> int:
        """Return the largest payload that the broker of a partition is known to take."""
        if self.producer is None:
            return sys.maxsize
        return self.producer.message_limit(self._target(partition))

    def poll(self) -> None:
        """Process the acknowledgements that have arrived, without waiting."""
        if self.producer is not None and self._unconfirmed:
            self._take_step(self.producer.poll)

    def flush(self) -> None:
        """Wait until all batches are acknowledged."""
        while self.producer is not None and self._unconfirmed:
            self._take_step(self.producer.flush)

    def wait_until_readable(self) -> None:
        """Wait until consumers can read everything that was sent."""
        if self.producer is None:
            return
        try:
            self.producer.wait_until_readable()
        except errors.BrokerError as error:
            is_lost = isinstance(error, errors.AcknowledgedLossError)
            known = "not all readable" if is_lost else "not known to be readable yet"
            text = f"{count_text(self.message_count)} confirmed, and {known}"
            raise explained(error, text, confirmed=self.message_count) from error

    def note_move(self, moved: Moved) -> None:
        """Send later batches of a partition to the one that replaces it."""
        self._replaced[moved.source] = moved.target
        self._replaced.pop(moved.target, None)

    def _hand_over(self, batch: MessageBatch) -> None:
        partition = self._target(batch.partition)
        self._unconfirmed[batch.numbers[0]] = batch
        complete = partial(self._complete, batch)
        if self.producer is None:
            Delivery(partition, batch.message_set, None, complete).complete(-1, None)
        elif batch.records:
            self.producer.send_records(partition, batch.records, complete)
        else:
            self.producer.send_set(partition, batch.message_set, complete, can_move=self.can_move)

    def _target(self, partition: TopicPartition) -> TopicPartition:
        while self.can_move and partition in self._replaced:
            partition = self._replaced[partition]
        return partition

    def _take_step(self, step: Callable[[], None]) -> None:
        try:
            step()
        except errors.BrokerError as error:
            raise self._failure(error) from error
        self._raise_failures()

    def _complete(self, batch: MessageBatch, delivery: Delivery) -> None:
        """Record the end of a batch; an exception here would interrupt the producer."""
        error = delivery.error
        if error is None:
            del self._unconfirmed[batch.numbers[0]]
            self._confirm(batch._replace(partition=delivery.partition), delivery)
        elif isinstance(error, errors.InvalidMessageError | errors.MessageSizeTooLargeError):
            self._refused.append((batch, error))
        else:
            self._error = self._error or error

    def _confirm(self, batch: MessageBatch, delivery: Delivery) -> None:
        count = len(batch.numbers)
        self.partitions[batch.partition] = self.partitions.get(batch.partition, 0) + count
        self.payload_bytes += batch.payload_bytes
        self.last_number = max(self.last_number, batch.numbers[-1])
        confirmed = Confirmed(batch, delivery.base_offset, delivery.message_set)
        for observe in self.observers:
            observe(confirmed)

    def _raise_failures(self) -> None:
        """Raise the error of a batch that completed meanwhile, or have the batch refused."""
        refused, self._refused = self._refused, []
        for batch, reason in refused:
            del self._unconfirmed[batch.numbers[0]]
            self.refused(batch, reason)
        if self._error is not None:
            raise self._failure(self._error) from self._error

    def _failure(self, error: errors.BrokerError) -> errors.BrokerError | CliError:
        """Return an error that says how much is confirmed."""
        self.has_failed = True
        if self.producer is not None:
            with suppress(errors.BrokerError):  # other brokers may still acknowledge their sets
                self.producer.flush()
        lost, self._unconfirmed = list(self._unconfirmed.values()), {}
        if not lost:
            return error
        count = sum(len(one.numbers) for one in lost)
        first = min(one.numbers[0] for one in lost)
        text = (
            f"{count_text(self.message_count)} confirmed, {count} sent and not confirmed, from "
            f"message {first} on"
        )
        return explained(error, text, confirmed=self.message_count, first_unconfirmed=first)
