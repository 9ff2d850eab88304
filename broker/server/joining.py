"""Message sets that arrived together made one, so that one write appends them all."""

from __future__ import annotations

from typing import NamedTuple

from broker.errors import InvalidMessageError
from broker.protocol.message import are_single_entries
from broker.protocol.primitives import Buffer
from broker.server.checking import SetChecker, TooMuchToCheckError

_SMALL_WRAPPER_BYTES = 4096


class JoinedSets(NamedTuple):
    """Sets one behind the other, and how many messages they hold."""

    message_set: Buffer
    message_count: int


def join_sets(sets: list[memoryview], checker: SetChecker) -> JoinedSets | None:
    """Join sets for one partition, or return None if they have to be looked at one by one.

    Args:
        sets: of at least one request each, as they came.
        checker: looks at them.

    Returns:
        All of them, if every message is whole, good and not too large.
    """
    message_set = sets[0] if len(sets) == 1 else b"".join(sets)
    count = 0
    # only where each set is one message do their ends show in a scan of all: a message cut
    # off at the end of one set must not be completed by the next
    for one in [message_set] if are_single_entries(sets) else sets:
        try:
            found = checker.scan(one)
            if found.fault or found.max_payload_bytes > checker.max_message_bytes:
                return None
            if found.wrappers and len(message_set) > _SMALL_WRAPPER_BYTES * len(sets):
                return None  # one write for all saves little, and a turn may end in between
            count += checker.count_messages(one, found)
        except (InvalidMessageError, TooMuchToCheckError):
            return None
    return JoinedSets(message_set, count)
