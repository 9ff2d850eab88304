"""Validation of message sets before they are appended, within a budget for each turn.

A few kilobytes can hold millions of compressed messages, and a large request as many plain ones: to
scan them all takes seconds. A processor therefore validates at most `TURN_BYTES` in one turn with a
connection, and offloads a request that alone exceeds this to a worker. Meanwhile it serves its
other connections.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from broker.errors import InvalidMessageError, MessageSizeTooLargeError
from broker.protocol import codec, compression, message, primitives
from broker.protocol.message_set import count_messages, describe_fault

RECEIVE_BYTES = 1 << 20
"""The most bytes of a receive: the next receive overwrites a body up to this length."""
TURN_BYTES = 2 << 20
"""The validation budget of a turn; compressed sets count with their decompressed size.

One read from a socket brings less. This many bytes of the smallest messages take 0.1 s.
"""
_SMALL_WRAPPER_BYTES = 4096
REFUSAL_REASONS = {
    "size": "a message is above `max.message.size`",
    "crc": "a payload does not match its CRC",
    "schema": "a message breaks the contract of its topic (`schema.validation`)",
    "other": "they are invalid otherwise",
}


class ValidationBudgetExceededError(Exception):
    """A request needs more validation than a turn allows; a worker without a budget must do it."""


ValidMessages = tuple[primitives.Buffer, int]
"""Whole, valid entries, and how many messages they hold, wrapped ones counted singly."""


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

    def validate(self, topic: str, message_set: primitives.Buffer) -> ValidMessages:
        """Validate one set; a partial message at its end is left out, unless it is the first."""
        self._spend(len(message_set))
        found = codec.scan(message_set)
        is_cut = found.fault is message.Fault.PARTIAL and found.valid_bytes
        if found.fault and not is_cut:
            self.refused["crc" if found.fault is message.Fault.CRC else "other"] += 1
            raise InvalidMessageError(describe_fault(found.fault, found.valid_bytes))
        if found.max_payload_bytes > self.max_message_bytes:
            self.refused["size"] += 1
            raise MessageSizeTooLargeError(
                f"a message of {found.max_payload_bytes} bytes for topic '{topic}' is above "
                f"max.message.size={self.max_message_bytes}",
                self.max_message_bytes,
            )
        try:
            count = (
                self._count_messages(message_set, found) if found.wrappers else found.entry_count
            )
        except InvalidMessageError:
            self.refused["other"] += 1
            raise
        return memoryview(message_set)[: found.valid_bytes], count

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
