"""The validation budget: how much is validated before other connections have their turn."""

from __future__ import annotations

import re
import struct
import zlib

import pytest

from broker.errors import (
    InvalidMessageError,
    InvalidRequestError,
    MessageSizeTooLargeError,
    WrongFormatError,
)
from broker.protocol.codec import NEW_BATCH, Record, encode, encode_batch
from broker.protocol.compression import Codec, compress_batch
from broker.protocol.message_set import build_set, wrap
from broker.server.requests.validation import (
    MAX_BATCHES,
    TURN_BYTES,
    ValidationBudgetExceededError,
    Validator,
)
from broker.topic import FORMAT_07, FORMAT_KAFKA
from tests.support.batch_headers import with_header

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


RECORD = Record(0, 1, b"key", b"value")
BATCH = encode_batch([RECORD, RECORD._replace(offset=1)])
_OLD_CONTENT = struct.pack(">bbqii3s", 1, 0, 5, -1, 3, b"old")
OLD_MESSAGE = struct.pack(">qiI", 0, 4 + len(_OLD_CONTENT), zlib.crc32(_OLD_CONTENT)) + _OLD_CONTENT
SQUEEZED = encode_batch(
    [RECORD._replace(offset=n, value=bytes(400)) for n in range(2)],
    NEW_BATCH._replace(attributes=1),
)


def test_validate_when_a_topic_is_of_kafka_then_takes_batches_and_counts_their_records() -> None:
    validator = Validator(1000, turn_bytes=None)
    several = BATCH + SQUEEZED
    assert validator.validate("events", several, FORMAT_KAFKA) == (several, 4)
    assert validator.validate("events", b"", FORMAT_KAFKA) == (b"", 0)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (BATCH + BATCH[:-1], "the message at 91 is invalid: it is incomplete"),
        (BATCH[:-1] + b"x", "does not match its CRC"),
        (with_header(BATCH, 21, "h", 1 << 5), "at 0 is a control batch"),
        (with_header(BATCH, 21, "h", 1 << 3), "attributes that brokers alone set: 0x8"),
        (with_header(BATCH, 21, "h", 1 << 6), "attributes that brokers alone set: 0x40"),
        (with_header(BATCH, 23, "i", 2), "has 2 records for 3 offsets"),
        (with_header(BATCH, 43, "q", 7), "of producer 7, with epoch -1 and sequence -1"),
        (with_header(SQUEEZED, 21, "h", 2), "its compressed content cannot be read"),
        (
            with_header(with_header(SQUEEZED, 23, "i", 2), 57, "i", 3),
            "its records do not fill it exactly",
        ),
        (
            with_header(with_header(BATCH, 23, "i", 2**31 - 2), 57, "i", 2**31 - 1),
            "its records do not fill it exactly",
        ),
        (with_header(BATCH, 35, "q", 2**62), "its max timestamp is not that of its records"),
        (with_header(SQUEEZED, 35, "q", 2**62), "its max timestamp is not that of its records"),
        (BATCH * (MAX_BATCHES + 1), "a set has more than 1000 record batches"),
    ],
)
def test_validate_when_a_batch_is_none_of_a_producer_then_raises(batch: bytes, reason: str) -> None:
    with pytest.raises(InvalidMessageError, match=re.escape(reason)):
        Validator(1000, turn_bytes=None).validate("events", batch, FORMAT_KAFKA)


def test_validate_when_a_batch_is_transactional_then_says_that_they_are_not_supported() -> None:
    batch = with_header(BATCH, 21, "h", 1 << 4)
    with pytest.raises(InvalidRequestError, match="'events': transactions are not supported"):
        Validator(1000, turn_bytes=None).validate("events", batch, FORMAT_KAFKA)


def test_validate_when_a_batch_is_above_the_limit_then_names_it() -> None:
    with pytest.raises(MessageSizeTooLargeError, match="a record batch of 91 bytes for topic"):
        Validator(90, turn_bytes=None).validate("events", BATCH, FORMAT_KAFKA)


@pytest.mark.parametrize(
    ("topic_format", "message_set", "reason"),
    [
        (FORMAT_KAFKA, SMALL, "'events' has format kafka, and takes no messages of 0.7"),
        (FORMAT_KAFKA, OLD_MESSAGE, "takes no messages of Kafka's old format 1"),
        (FORMAT_07, BATCH, "'events' has format 0.7, and takes no Kafka's record batches"),
    ],
)
def test_validate_when_a_set_is_of_another_format_then_names_both(
    topic_format: str, message_set: bytes, reason: str
) -> None:
    with pytest.raises(WrongFormatError, match=re.escape(reason)):
        Validator(1000, turn_bytes=None).validate("events", message_set, topic_format)


def test_validator_when_batches_decompress_to_more_than_a_turn_then_refuses() -> None:
    validator = Validator(1000, turn_bytes=1000 + 2 * len(SQUEEZED))
    assert validator.validate("events", SQUEEZED, FORMAT_KAFKA)[1] == 2
    with pytest.raises(ValidationBudgetExceededError):
        validator.validate("events", SQUEEZED, FORMAT_KAFKA)
    bomb = with_header(BATCH[:61] + compress_batch(Codec.ZSTD, bytes(65 << 20)), 21, "h", 4)
    bomb = with_header(bomb, 8, "i", len(bomb) - 12)
    with pytest.raises(InvalidMessageError, match="unfolds to more than"):
        Validator(1 << 20, turn_bytes=None).validate("events", bomb, FORMAT_KAFKA)


def test_validator_when_a_set_has_many_small_batches_then_they_cost_more_than_their_bytes() -> None:
    Validator(1000, turn_bytes=4000).validate("events", BATCH * 7, FORMAT_KAFKA)
    with pytest.raises(ValidationBudgetExceededError):
        Validator(1000, turn_bytes=4000).validate("events", BATCH * 9, FORMAT_KAFKA)
    assert Validator(1000, turn_bytes=4000).count_plain(BATCH * 9) is None
    assert Validator(1000, turn_bytes=4000).count_plain(BATCH * 7) == 14


def test_count_plain_when_a_set_has_too_many_batches_then_returns_none() -> None:
    validator = Validator(1000, turn_bytes=None)
    assert validator.count_plain(BATCH * MAX_BATCHES) == 2 * MAX_BATCHES
    assert validator.count_plain(BATCH * (MAX_BATCHES + 1)) is None
