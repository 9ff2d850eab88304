"""The election of the controller in a real ZooKeeper."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from broker.errors import CoordinationError, RegistryConflictError
from broker.zk.controller_election import ControllerElection, Holder, Term
from broker.zk.paths import replicated_broker
from broker.zk.session import Session, Watch
from tests.support.waiting import wait_until
from tests.support.zookeeper_proxy import ZooKeeperProxy

pytestmark = pytest.mark.zookeeper


def no_watch() -> None:
    """Watch nothing."""


@pytest.fixture
def rival(zookeeper: str) -> Iterator[Session]:
    """The session of another broker."""
    with Session(zookeeper) as started:
        yield started


def win(session: Session, broker_id: int = 0) -> Term | Holder:
    return ControllerElection(session, broker_id).try_to_win(no_watch, now_ms=17)


def test_election_when_there_is_no_controller_then_first_has_epoch_1(session: Session) -> None:
    assert win(session) == Term(1, 1)

    value, stat = session.get("/controller")
    assert json.loads(value) == {"version": 1, "brokerid": 0, "timestamp": "17"}
    assert stat.ephemeral_owner == session.session_id
    assert session.get("/controller_epoch")[0] == b"1"


def test_election_when_there_is_a_controller_then_others_lose_and_hear_of_its_end(
    session: Session, rival: Session
) -> None:
    win(rival, 1)
    ended = threading.Event()

    assert ControllerElection(session, 0).try_to_win(ended.set, now_ms=0) == (
        1,
        rival.session_id,
        0,
    )

    ControllerElection(rival, 1).resign()
    assert ended.wait(60)
    assert win(session) == Term(2, 2)


def test_election_when_repeated_by_the_controller_then_term_is_the_same(session: Session) -> None:
    assert win(session) == win(session)


def test_election_when_many_try_at_once_then_one_wins(zookeeper: str) -> None:
    sessions = [Session(zookeeper) for _ in range(4)]
    outcomes: list[Term | Holder] = []
    try:
        for one in sessions:
            one.start()
        threads = [
            threading.Thread(target=lambda one=one, i=i: outcomes.append(win(one, i)))
            for i, one in enumerate(sessions)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for one in sessions:
            one.stop()

    assert [one for one in outcomes if isinstance(one, Term)] == [Term(1, 1)]
    assert len(outcomes) == 4


def test_election_when_node_is_of_an_earlier_session_of_this_broker_then_it_is_replaced(
    session: Session, rival: Session
) -> None:
    win(rival, 0)

    assert win(session, 0) == Term(2, 2)
    assert session.get("/controller")[1].ephemeral_owner == session.session_id


def test_election_when_answer_is_lost_then_it_is_recognised_as_won(
    zookeeper: str, session: Session
) -> None:
    proxy = ZooKeeperProxy(zookeeper)
    with Session(proxy.connect) as own:
        proxy.lose_next_answers()

        assert win(own) == Term(1, 1)

        assert proxy.lost_count == 1
        assert session.get("/controller_epoch")[0] == b"1"
    proxy.close()


def test_resign_when_another_is_the_controller_then_it_stays(
    session: Session, rival: Session
) -> None:
    win(rival, 1)

    ControllerElection(session, 0).resign()

    holder = ControllerElection(session, 0).holder()
    assert holder is not None
    assert holder.broker_id == 1


def test_holder_when_session_ends_then_there_is_none(zookeeper: str, session: Session) -> None:
    with Session(zookeeper) as other:
        win(other, 1)
    election = ControllerElection(session, 0)

    wait_until(lambda: election.holder() is None, "the end of the office")


def test_election_when_node_is_malformed_then_error_says_what_to_do(session: Session) -> None:
    session.create("/controller", b"x")

    with pytest.raises(CoordinationError, match="node /controller is malformed: b'x'; delete it"):
        win(session)


def test_office_when_its_broker_is_gone_then_is_taken_over_and_the_former_term_is_fenced(
    session: Session, rival: Session
) -> None:
    former = win(rival, 1)
    assert isinstance(former, Term)
    rival.create(replicated_broker(1), b"", ephemeral=True)
    stat = session.exists(replicated_broker(1))
    assert stat is not None
    election = ControllerElection(session, 0)

    election.take_over(1, stat.czxid - 1, now_ms=0)
    assert win(rival, 1) == former, "another registration was meant"

    election.take_over(1, stat.czxid, now_ms=0)
    assert win(session) == Term(2, 2)
    assert win(rival, 1) == (0, session.session_id, 0)
    with pytest.raises(RegistryConflictError):
        ControllerElection(rival, 1).raise_epoch(former, 7)

    election.take_over(1, stat.czxid, now_ms=0)
    assert win(session) == Term(2, 2), "the office is of nobody who is gone"


def test_term_when_taken_over_between_two_reads_then_is_not_that_of_the_next(
    session: Session, rival: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    win(rival, 1)
    rival.create(replicated_broker(1), b"", ephemeral=True)
    stat = session.exists(replicated_broker(1))
    assert stat is not None
    election, read = ControllerElection(rival, 1), ControllerElection.holder
    taken: list[bool] = []

    def holder(self: ControllerElection, watch: Watch | None = None) -> Holder | None:
        found = read(self, watch)
        if self is election and not taken:
            taken.append(True)
            ControllerElection(session, 0).take_over(1, stat.czxid, now_ms=0)
        return found

    monkeypatch.setattr(ControllerElection, "holder", holder)
    assert election.try_to_win(no_watch, now_ms=0) == (0, session.session_id, 0)
