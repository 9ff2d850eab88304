"""Validation of message sets before they are appended, within a budget for each turn.

A few kilobytes can hold millions of compressed messages, and a large request as many plain ones: to
scan them all takes seconds. A processor therefore validates at most `TURN_BYTES` in one turn with a
connection, and offloads a request that alone exceeds this to a worker. Meanwhile it serves its
other connections.

Of record batches the records are looked at too: the next offset and the time index follow from
their count and their times, which would otherwise be the producer's claims.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from broker.errors import (
    InvalidMessageError,
    InvalidRequestError,
    MessageSizeTooLargeError,
    ServerError,
    WrongFormatError,
)
from broker.protocol import codec, compression, message, primitives, record_batch
from broker.protocol.message_set import count_messages, describe_fault
from broker.protocol.primitives import INT32, INT64
from broker.topic import FORMAT_07, FORMAT_KAFKA

RECEIVE_BYTES = 1 << 20
"""The most bytes of a receive: the next receive overwrites a body up to this length."""
TURN_BYTES = 2 << 20
"""The validation budget of a turn; compressed sets count with their decompressed size.

One read from a socket brings less. This many bytes of the smallest messages take 0.1 s.
"""
_SMALL_WRAPPER_BYTES = 4096
MAX_BATCHES = 1000
"""In one set: each has a head of its own in memory until the set is in the log."""
_BATCH_COST_BYTES = 512
"""A record batch takes as long, beside its content, from here to the log."""
_BATCH_SIZE_AT = INT64.size
_BATCH_FRONT_BYTES = INT64.size + INT32.size
REFUSAL_REASONS = {
    "size": "a message is above `max.message.size`",
    "crc": "a payload does not match its CRC",
    "schema": "a message breaks the contract of its topic (`schema.validation`)",
    "other": "they are invalid otherwise",
}


class ValidationBudgetExceededError(Exception):
    """A request needs more validation than a turn allows; a worker without a budget must do it."""


ValidMessages = tuple[primitives.Buffer, int]
"""Whole, valid entries or batches, and how many messages they hold, wrapped ones counted singly."""


@dataclass(eq=False)
class Validator:
    """Validates message sets within a budget."""

    max_message_bytes: int  # of an outer payload; any thread may change it
    turn_bytes: int | None  # of a turn, and of a request; None for no limit
    refused: Counter[str] = field(default_factory=Counter)  # sets, by `REFUSAL_REASONS`

    def __post_init__(self) -> None:
        self.begin_turn()

    def begin_turn(self) -> None:
        """Start a processor's turn with a connection."""
        self._turn_left_bytes = self._request_left_bytes = self.turn_bytes

    def begin_request(self) -> None:
        """Start one request, or several that are validated together."""
        self._request_left_bytes = self.turn_bytes

    @property
    def is_turn_used_up(self) -> bool:
        """Return whether other connections must be served before more is validated."""
        return self._turn_left_bytes is not None and self._turn_left_bytes <= 0

    def validate(
        self, topic: str, message_set: primitives.Buffer, topic_format: str = FORMAT_07
    ) -> ValidMessages:
        """Validate one set; a partial message at its end is left out, unless it is the first.

        `WrongFormatError` if it is of another format than the topic. Of Kafka's batches none may
        be partial.
        """
        self._spend(len(message_set))
        if topic_format == FORMAT_KAFKA:
            return self._validate_batches(topic, message_set)
        found = codec.scan(message_set)
        is_cut = found.fault is message.Fault.PARTIAL and found.valid_bytes
        if found.fault and not is_cut:
            first = memoryview(message_set)[: _end_of_batches(message_set, 1)]
            if not found.valid_bytes and codec.scan_batches(first).batches:
                raise self._refuse(_wrong_format(topic, topic_format, "Kafka's record batches"))
            raise self._refuse_fault(found.fault, found.valid_bytes)
        if found.max_payload_bytes > self.max_message_bytes:
            raise self._too_large("message", found.max_payload_bytes, topic)
        try:
            count = (
                self._count_messages(message_set, found) if found.wrappers else found.entry_count
            )
        except InvalidMessageError:
            self.refused["other"] += 1
            raise
        return memoryview(message_set)[: found.valid_bytes], count

    def _validate_batches(self, topic: str, message_set: primitives.Buffer) -> ValidMessages:
        """Validate a set of a Kafka topic as Kafka does what its producers send."""
        view = memoryview(message_set)
        found = self._scan_batches(view)
        if found is None:
            raise self._refuse(
                InvalidMessageError(f"a set has more than {MAX_BATCHES} record batches")
            )
        if found.fault:
            if not found.batches and codec.scan(view).entry_count:
                raise self._refuse(_wrong_format(topic, FORMAT_KAFKA, "messages of 0.7"))
            raise self._refuse_fault(found.fault, found.valid_bytes)
        for batch in found.batches:
            if batch.magic != record_batch.MAGIC:
                sent = f"messages of Kafka's old format {batch.magic}"
                raise self._refuse(_wrong_format(topic, FORMAT_KAFKA, sent))
            if batch.size > self.max_message_bytes:
                raise self._too_large("record batch", batch.size, topic)
            if problem := _unfit(batch):
                raise self._refuse(
                    InvalidMessageError(f"the record batch at {batch.position} {problem}")
                )
            if batch.is_transactional:
                raise self._refuse(
                    InvalidRequestError(f"topic '{topic}': transactions are not supported")
                )
            if batch.codec:
                content = view[batch.position : batch.end]
                fault = codec.verify_batches(content, opener=self._open_batch).fault
                if fault:
                    raise self._refuse_fault(fault, batch.position)
        return view, sum(batch.record_count for batch in found.batches)

    def _scan_batches(self, message_set: primitives.Buffer) -> codec.BatchScan | None:
        """Return the batches, with the records of plain ones validated; None for too many."""
        if _end_of_batches(message_set, MAX_BATCHES) < len(message_set):
            return None
        found = codec.verify_batches(message_set, deep=False)
        self._spend(_BATCH_COST_BYTES * max(0, len(found.batches) - 1))
        return found

    def count_plain(self, message_set: primitives.Buffer) -> int | None:
        """Return the records of a valid set without compression; None if `validate` is to judge."""
        try:
            self._spend(len(message_set))
            found = self._scan_batches(message_set)
        except ValidationBudgetExceededError:
            return None
        if found is None or found.fault:
            return None
        for batch in found.batches:
            if batch.magic != record_batch.MAGIC or batch.attributes or _unfit(batch):
                return None
            if batch.size > self.max_message_bytes:
                return None
        return sum(batch.record_count for batch in found.batches)

    def _open_batch(self, attributes: int, magic: int, data: primitives.Buffer) -> bytes | None:
        """Do as `record_batch.open_batch`, within the budget."""
        left_bytes = self._request_left_bytes
        most_bytes = compression.MAX_DECOMPRESSED_BYTES
        try:
            content = compression.decompress_batch(
                compression.BATCH_CODECS[attributes & 7],
                data,
                magic=magic,
                max_bytes=most_bytes if left_bytes is None else min(left_bytes, most_bytes),
            )
        except compression.UnfoldsTooFarError as error:
            if left_bytes is None:
                self.refused["other"] += 1
                raise
            raise ValidationBudgetExceededError from error
        except InvalidMessageError:
            return None
        self._spend(len(content))
        return content

    def _refuse(self, error: ServerError) -> ServerError:
        self.refused["other"] += 1
        return error

    def _refuse_fault(self, fault: message.Fault, position: int) -> InvalidMessageError:
        self.refused["crc" if fault is message.Fault.CRC else "other"] += 1
        return InvalidMessageError(describe_fault(fault, position))

    def _too_large(self, what: str, size: int, topic: str) -> MessageSizeTooLargeError:
        self.refused["size"] += 1
        return MessageSizeTooLargeError(
            f"a {what} of {size} bytes for topic '{topic}' is above "
            f"max.message.size={self.max_message_bytes}",
            self.max_message_bytes,
        )

    def validate_together(self, message_set: primitives.Buffer, set_count: int) -> int | None:
        """Validate joined sets, each of whole entries by their lengths; return their messages.

        None if not all are valid and small enough, or if each must be validated by itself for the
        budget.
        """
        try:
            self._spend(len(message_set))
            found = codec.scan(message_set)
            if found.fault or found.max_payload_bytes > self.max_message_bytes:
                return None
            if not found.wrappers:
                return found.entry_count
            if len(message_set) > _SMALL_WRAPPER_BYTES * set_count:
                return None  # one write for all saves little, and the turn may end in between
            return self._count_messages(message_set, found)
        except (InvalidMessageError, ValidationBudgetExceededError):
            return None

    def _count_messages(self, message_set: primitives.Buffer, found: message.Scan) -> int:
        """Count the messages of a set with wrappers, within the budget."""
        try:
            counted = count_messages(message_set, found, max_bytes=self._request_left_bytes)
        except compression.UnfoldsTooFarError as error:
            if self._request_left_bytes is None:
                raise
            raise ValidationBudgetExceededError from error
        self._spend(counted.unfolded_bytes)
        return counted.message_count

    def _spend(self, size: int) -> None:
        if self._request_left_bytes is None or self._turn_left_bytes is None:
            return
        if size > self._request_left_bytes:
            raise ValidationBudgetExceededError
        self._request_left_bytes -= size
        self._turn_left_bytes -= size


def _wrong_format(topic: str, topic_format: str, sent: str) -> WrongFormatError:
    return WrongFormatError(f"topic '{topic}' has format {topic_format}, and takes no {sent}")


def _end_of_batches(message_set: primitives.Buffer, most: int) -> int:
    """Return where the first batches of a set end by their sizes; a faulty one ends the set."""
    position, end = 0, len(message_set)
    for _ in range(most):
        if end - position < _BATCH_FRONT_BYTES:
            return end
        (size,) = INT32.unpack_from(message_set, position + _BATCH_SIZE_AT)
        if size < 0:
            return end
        position += _BATCH_FRONT_BYTES + size
    return min(position, end)


def _unfit(batch: record_batch.RecordBatch) -> str:
    """Return why a producer may not send a good batch; an empty text if it may."""
    if batch.is_control:
        return "is a control batch, which brokers alone write"
    if batch.has_append_time or batch.has_delete_horizon:
        return f"has attributes that brokers alone set: {batch.attributes:#x}"
    if batch.record_count != batch.last_offset_delta + 1:
        return f"has {batch.record_count} records for {batch.last_offset_delta + 1} offsets"
    if batch.producer_id >= 0 and min(batch.producer_epoch, batch.base_sequence) < 0:
        return (
            f"is of producer {batch.producer_id}, with epoch {batch.producer_epoch} and sequence "
            f"{batch.base_sequence}: both must be 0 or more"
        )
    return ""
