"""What went wrong on a mirror's routes, in a real registry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker.tools.mirror import RouteStatus
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.mirror.errors import ErrorBoard, RouteError, load_errors, published_errors

pytestmark = pytest.mark.zookeeper

ONE, TWO = TopicPartition("t", 0, 0), TopicPartition("t", 0, 1)
FAILING = RouteStatus(ONE, error="away", error_ms=5, error_count=1, is_failing=True)
RUNNING = RouteStatus(TWO, next_offset=11)


@pytest.fixture
def board(session: Session) -> ErrorBoard:
    return ErrorBoard(session, "g")


def version(session: Session, partition: TopicPartition) -> int:
    return session.get(paths.mirror_error("g", partition))[1].version


def test_errors_that_are_published_are_there_for_others(
    board: ErrorBoard, session: Session
) -> None:
    board.publish([FAILING, RUNNING])
    assert load_errors(session, "g", [ONE, TWO]) == {ONE: RouteError("away", 5, True)}
    assert load_errors(session, "other", [ONE, TWO]) == {}


def test_errors_that_stay_the_same_are_not_written_again(
    board: ErrorBoard, session: Session
) -> None:
    for _ in range(3):
        board.publish([replace(FAILING, message_count=7), RUNNING])
    assert version(session, ONE) == 0
    board.publish([replace(FAILING, is_failing=False)])
    assert load_errors(session, "g", [ONE])[ONE].is_failing is False


def test_errors_of_an_earlier_mirror_hold_until_messages_come_through(
    board: ErrorBoard, session: Session
) -> None:
    board.publish([FAILING])
    later = ErrorBoard(session, "g")
    later.publish([RouteStatus(ONE)])
    assert load_errors(session, "g", [ONE]) == {ONE: RouteError("away", 5, True)}
    later.publish([RouteStatus(ONE, next_offset=11)])
    assert load_errors(session, "g", [ONE]) == {ONE: RouteError("away", 5, False)}


def test_errors_count_what_all_mirrors_of_a_partition_have_left_out(
    board: ErrorBoard, session: Session
) -> None:
    left_out = replace(FAILING, is_failing=False, corrupt_count=2)
    board.publish([left_out])
    ErrorBoard(session, "g").publish([left_out])
    board.publish([replace(left_out, corrupt_count=3, error_ms=9)])
    assert load_errors(session, "g", [ONE]) == {ONE: RouteError("away", 9, False, 5)}


@pytest.mark.parametrize("value", [b"", b"nonsense", b"{}", b"[1]", b'{"text":1,"time_ms":"x"}'])
def test_errors_that_cannot_be_read_are_none(session: Session, value: bytes) -> None:
    session.create(paths.mirror_error("g", ONE), value)
    assert load_errors(session, "g", [ONE]) == {}


def test_errors_at_the_end_are_published_too(session: Session) -> None:
    routes = [RUNNING]
    with published_errors(session, "g", lambda: routes, lambda: None):
        routes.append(FAILING)
    assert list(load_errors(session, "g", [ONE, TWO])) == [ONE]
