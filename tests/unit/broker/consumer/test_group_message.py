from __future__ import annotations

import pickle

import pytest

from broker.consumer.chunk import GroupMessage, InnerMessage, inner_index
from broker.consumer.offset_store import position_after
from broker.protocol.codec import Message
from broker.topic import MessagePosition, TopicPartition

PARTITION = TopicPartition("t", 0, 0)
INSIDE: GroupMessage = ("t", PARTITION, 7, 7, b"x")


def test_message_of_a_set_when_taken_apart_then_is_like_any_other() -> None:
    message = InnerMessage(INSIDE, 3)
    topic, partition, offset, next_offset, payload = message

    assert (topic, partition, offset, next_offset, payload) == INSIDE == message
    assert repr(message) == repr(INSIDE)


def test_message_of_a_set_when_sent_to_another_process_then_keeps_its_place() -> None:
    assert inner_index(pickle.loads(pickle.dumps(InnerMessage(INSIDE, 3)))) == 3


def test_position_when_a_message_is_done_then_is_behind_it() -> None:
    assert position_after(("t", PARTITION, 0, 11, b"x")) == MessagePosition(11)
    assert position_after(InnerMessage(INSIDE, 3)) == MessagePosition(7, 4)
    assert position_after(InnerMessage(("t", PARTITION, 7, 50, b"x"), 4)) == MessagePosition(50)
    assert position_after(Message("t", PARTITION, 7, 7, b"x", 3)) == MessagePosition(7, 4)
    assert position_after(Message("t", PARTITION, 7, 50, b"x", 4)) == MessagePosition(50)


def test_inner_index_when_the_message_is_not_the_one_given_then_says_so() -> None:
    with pytest.raises(TypeError, match=r"set at 7 of t\[0-0\].*the stream gave"):
        inner_index(INSIDE)
