"""The validation budget: how much is validated before other connections have their turn."""

from __future__ import annotations

import pytest

from broker.errors import InvalidMessageError, MessageSizeTooLargeError
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set, wrap
from broker.server.requests.validation import TURN_BYTES, ValidationBudgetExceededError, Validator

SMALL = encode([b"hello"])
LARGE_COUNT = TURN_BYTES // 1000 + 1
LARGE = build_set([b"x" * 1000] * LARGE_COUNT, Codec.GZIP)
BOMB = wrap(bytes(65 << 20), Codec.ZSTD)


def test_validator_when_a_request_is_used_up_then_refuses_until_the_next() -> None:
    validator = Validator(1000, turn_bytes=2 * len(SMALL))
    for _ in range(2):
        validator.begin_request()
        validator.validate("events", SMALL)
        validator.validate("events", SMALL)
        with pytest.raises(ValidationBudgetExceededError):
            validator.validate("events", SMALL)


def test_validator_when_requests_use_up_a_turn_together_then_it_is_over_until_the_next() -> None:
    validator = Validator(1000, turn_bytes=2 * len(SMALL))
    for _ in range(2):
        validator.begin_turn()
        seen = []
        for _ in range(2):
            validator.begin_request()
            validator.validate("events", SMALL)
            seen.append(validator.is_turn_used_up)
        assert seen == [False, True]


def test_validator_when_sets_decompress_together_to_more_than_a_turn_then_refuses() -> None:
    wrapper = build_set([bytes(400)], Codec.GZIP)
    validator = Validator(1000, turn_bytes=900 + 2 * len(wrapper))

    assert validator.validate("events", wrapper)[1] == 1
    assert validator.validate("events", wrapper)[1] == 1
    with pytest.raises(ValidationBudgetExceededError):
        validator.validate("events", wrapper)


def test_validator_when_it_has_no_limit_then_only_that_of_compression_counts() -> None:
    validator = Validator(len(LARGE) + len(BOMB), turn_bytes=None)

    assert validator.validate("events", LARGE)[1] == LARGE_COUNT
    with pytest.raises(InvalidMessageError, match="unfolds to more than"):
        validator.validate("events", BOMB)


def test_validate_when_the_last_message_is_partial_then_leaves_it_out() -> None:
    validator = Validator(1000, turn_bytes=None)
    assert validator.validate("events", SMALL + SMALL[:-1]) == (SMALL, 1)
    with pytest.raises(InvalidMessageError):
        validator.validate("events", SMALL[:-1])


def test_validate_when_a_message_is_too_large_then_raises() -> None:
    with pytest.raises(MessageSizeTooLargeError, match="for topic 'events' is above"):
        Validator(4, turn_bytes=None).validate("events", SMALL)


def test_validate_together_when_all_are_valid_then_counts_their_messages() -> None:
    validator = Validator(1000, turn_bytes=None)
    assert validator.validate_together(SMALL + encode([b"a", b"b"]), 3) == 3
    assert validator.validate_together(b"", 1) == 0


def test_validate_together_when_one_is_invalid_or_too_large_then_returns_none() -> None:
    bad = SMALL[:-1] + b"x"
    assert Validator(1000, turn_bytes=None).validate_together(SMALL + bad, 2) is None
    assert Validator(4, turn_bytes=None).validate_together(SMALL, 1) is None
