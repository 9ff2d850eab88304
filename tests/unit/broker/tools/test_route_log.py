from __future__ import annotations

import pytest

from broker.protocol.codec import encode
from broker.tools.mirror import RouteLog, RouteStatus
from broker.tools.mirror_producer import MirroredSet
from broker.topic import TopicPartition
from tests.doubles import FakeClock

SOURCE, OTHER = TopicPartition("t", 3, 0), TopicPartition("s", 3, 1)
TARGET = TopicPartition("m.t", 7, 0)
SET = encode([b"one", b"two"])


def mirrored(next_offset: int) -> MirroredSet:
    return MirroredSet(SOURCE, TARGET, SET, 2, 1, next_offset, lambda *_: None)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_000)


@pytest.fixture
def log(clock: FakeClock) -> RouteLog:
    return RouteLog(clock)


def test_routes_when_sets_are_acknowledged_then_counted_up_to_the_last(log: RouteLog) -> None:
    log.placed(SOURCE, TARGET)
    log.acknowledged(mirrored(26))
    log.acknowledged(mirrored(52))
    assert log.routes() == [RouteStatus(SOURCE, TARGET, 4, 2 * len(SET), 52)]


def test_routes_when_something_fails_then_told_until_messages_come_through_again(
    log: RouteLog, clock: FakeClock
) -> None:
    log.failed([SOURCE, OTHER], "first")
    clock.advance(5)
    log.failed([SOURCE], "second")
    other, route = log.routes()
    assert (other.source, other.error, other.error_ms) == (OTHER, "first", 1_000)
    assert (route.error, route.error_ms, route.error_count) == ("second", 6_000, 2)
    assert route.is_failing

    log.acknowledged(mirrored(26))
    other, route = log.routes()
    assert other.is_failing
    assert (route.is_failing, route.error, route.error_count) == (False, "second", 2)
