from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from broker.log.log_parts import Listeners
from broker.server.requests.read_sessions import ReadSession, SessionPart
from broker.topic import TopicPartition


def test_part_when_its_log_advances_often_then_wakes_a_read_once_until_that_has_looked() -> None:
    session, wake = ReadSession[Any](1, "owner"), Mock()
    session.listeners.add_listener(wake)
    part = session.parts[TopicPartition("t", 0, 0)] = SessionPart(
        TopicPartition("t", 0, 0), session
    )
    appends, high_watermark = Listeners(), Listeners()
    part.watch(appends, high_watermark)
    high_watermark.notify()
    assert (wake.call_count, session.moved) == (0, {part})
    for expected in (1, 2):
        appends.notify()
        appends.notify()
        assert wake.call_count == expected
        session.take_moved()
        assert list(session.due) == [part]
