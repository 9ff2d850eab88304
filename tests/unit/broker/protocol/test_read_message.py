"""The messages that programs get have one face, whichever codec has made them."""

from __future__ import annotations

import copy
import gc
import pickle
import sys

import pytest

from broker.protocol.codec import Message, encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import wrap
from broker.topic import TopicPartition
from tests.support.codec_engines import Engine

PARTITION = TopicPartition("t", 2, 1)


def messages_of(engine: Engine, data: bytes) -> list[Message]:
    return engine.decode_messages(data, 100, "t", PARTITION)[0]


def test_message_when_read_then_has_its_fields_and_those_that_the_format_lacks(
    engine: Engine,
) -> None:
    first, second = messages_of(engine, encode([b'{"a": 1}', b"\xff" * 50]))

    assert (first.topic, first.partition, first.offset, first.next_offset) == (
        *("t", PARTITION),
        *(100, second.offset),
    )
    assert (first.text(), first.json()) == ('{"a": 1}', {"a": 1})
    assert (first.key, first.timestamp, first.headers, first.inner) == (None, None, (), 0)
    assert repr(first) == "Message(t[2-1] at 100: b'{\"a\": 1}')"
    assert repr(second).endswith("..')")
    with pytest.raises(UnicodeDecodeError):
        second.text()
    with pytest.raises(ValueError, match="decode"):
        second.json()
    match first:
        case engine.Message("t", partition, offset):
            assert (partition, offset) == (PARTITION, 100)
        case _:
            pytest.fail("it does not match")


def test_message_when_in_a_wrapper_then_inner_is_its_place(engine: Engine) -> None:
    data = bytes(wrap(encode([b"a", b"b"]), Codec.GZIP)) + encode([b"c"])
    assert [one.inner for one in messages_of(engine, data)] == [0, 1, 0]


def test_message_when_copied_or_pickled_then_is_the_same(engine: Engine) -> None:
    (message,) = messages_of(engine, encode([b"x"]))
    for other in (copy.copy(message), pickle.loads(pickle.dumps(message))):
        assert other == message


def test_message_when_all_fields_are_equal_then_is_equal_and_has_the_same_hash(
    engine: Engine,
) -> None:
    data = bytes(wrap(encode([b"a", b"a"]), Codec.GZIP))
    messages, again = messages_of(engine, data), messages_of(engine, data)

    assert messages == again
    assert {*messages, *again} == set(messages)
    assert len({*messages, *again}) == 2  # the place in the set is a field, too


@pytest.mark.parametrize(
    "other",
    [
        ("u", PARTITION, 0, 11, b"x", 0),
        ("t", TopicPartition("t", 2, 2), 0, 11, b"x", 0),
        ("t", PARTITION, 1, 11, b"x", 0),
        ("t", PARTITION, 0, 12, b"x", 0),
        ("t", PARTITION, 0, 11, b"y", 0),
        ("t", PARTITION, 0, 11, b"x", 1),
    ],
)
def test_message_when_one_field_differs_then_is_not_equal(
    engine: Engine, other: tuple[str, TopicPartition, int, int, bytes, int]
) -> None:
    message = engine.Message("t", PARTITION, 0, 11, b"x")

    assert message != engine.Message(*other)
    assert message != ("t", PARTITION, 0, 11, b"x", 0)  # type: ignore[comparison-overlap]


def test_message_when_made_by_hand_then_needs_its_fields(engine: Engine) -> None:
    made = engine.Message("t", PARTITION, 0, 11, value=b"x")
    assert (made.value, made.inner) == (b"x", 0)
    with pytest.raises(TypeError):
        engine.Message("t", PARTITION, 0)  # type: ignore[call-arg]


def test_messages_when_many_are_read_then_all_of_them_are_freed(engine: Engine) -> None:
    data = encode([b"x" * 100] * 1000)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(20):
        messages_of(engine, data)
    gc.collect()
    assert len(gc.get_objects()) - before < 100
    topic = "".join(["t", "opic"])
    count = sys.getrefcount(topic)
    engine.decode_messages(data, 0, topic, PARTITION)
    assert sys.getrefcount(topic) == count
