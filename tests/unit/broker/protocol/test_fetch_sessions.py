from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import UnknownFetchSessionError
from broker.protocol import fetch_sessions
from broker.protocol.fetch_sessions import (
    NO_SESSION,
    FetchSessions,
    KeptSession,
    ReaderSession,
)
from broker.topic import TopicPartition

PARTITIONS = [TopicPartition("t", 0, index) for index in range(4)]


class Leader:
    """Keeps the positions of sessions, as a broker does."""

    def __init__(self) -> None:
        self.sessions: FetchSessions[Any] = FetchSessions(KeptSession, itertools.count(1).__next__)

    def fetch(
        self,
        session_id: int,
        epoch: int,
        changes: tuple[tuple[Any, ...], tuple[TopicPartition, ...]],
        owner: Hashable = "follower",
    ) -> tuple[int, dict[TopicPartition, int]]:
        """Return the id of the session, and what is fetched."""
        if session_id == NO_SESSION:
            session = self.sessions.begin(owner)
        else:
            session = self.sessions.take(session_id, epoch, owner)
        positions, forgotten = changes
        for one in forgotten:
            session.parts.pop(one, None)
        session.parts.update(positions)
        self.sessions.fit(session)
        return session.id, dict(session.parts)


STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 3)),
        st.sampled_from(["arrives", "arrives", "is lost", "loses its response", "comes twice"]),
        st.booleans(),
    ),
    max_size=20,
)


@given(STEPS)
def test_session_when_fetches_are_lost_or_come_twice_then_is_taken_as_full_fetches(
    steps: Any,
) -> None:
    leader, session = Leader(), ReaderSession[tuple[TopicPartition, int]]()
    for wanted, fate, is_evicted in steps:
        if is_evicted:
            with patch.object(fetch_sessions, "_MAX_SESSIONS", 0):
                leader.sessions.fit()
        while True:
            for partition in PARTITIONS:
                if partition in wanted:
                    session.name(partition, (partition, wanted[partition]))
                else:
                    session.forget(partition)
            request = session.id, session.epoch, session.take_changes()
            if fate == "is lost":
                session.end()
                break
            try:
                session_id, fetched = leader.fetch(*request)
            except UnknownFetchSessionError:
                session.end()
                continue
            assert fetched == wanted
            if fate == "comes twice" and request[0] != NO_SESSION:
                with pytest.raises(UnknownFetchSessionError):
                    leader.fetch(*request)
            if fate == "loses its response":
                session.end()
            else:
                session.answered(session_id)
            break


def test_session_when_position_stays_then_it_is_named_once() -> None:
    session = ReaderSession[int]()
    session.name(PARTITIONS[0], 5)
    session.name(PARTITIONS[1], 7)
    assert session.take_changes() == ((5, 7), ())

    session.name(PARTITIONS[0], 5)
    session.name(PARTITIONS[1], 8)
    assert session.take_changes() == ((8,), ())

    session.name(PARTITIONS[0], 5, is_again=True)
    assert session.take_changes() == ((5,), ())

    session.forget(PARTITIONS[0])
    session.forget(PARTITIONS[2])
    assert session.take_changes() == ((), (PARTITIONS[0],))


def test_session_when_of_another_owner_then_is_refused_and_goes_on_for_its_own() -> None:
    leader = Leader()
    session_id, _ = leader.fetch(NO_SESSION, 0, (((PARTITIONS[0], 5),), ()))

    with pytest.raises(UnknownFetchSessionError):
        leader.fetch(session_id, 1, (((PARTITIONS[0], 9),), ()), "another")
    with pytest.raises(UnknownFetchSessionError):
        leader.fetch(session_id, 2, (((PARTITIONS[0], 9),), ()))
    assert leader.fetch(session_id, 1, ((), ())) == (session_id, {PARTITIONS[0]: 5})


def test_sessions_when_too_many_or_too_large_then_those_used_least_recently_go() -> None:
    leader = Leader()
    first, second, third = (
        leader.fetch(NO_SESSION, 0, (((one, 0),), ()))[0] for one in PARTITIONS[:3]
    )
    leader.fetch(first, 1, ((), ()))
    with patch.object(fetch_sessions, "_MAX_SESSIONS", 2):
        leader.sessions.fit()
    with pytest.raises(UnknownFetchSessionError):
        leader.fetch(second, 1, ((), ()))
    assert leader.fetch(third, 1, ((), ()))[0] == third

    with patch.object(fetch_sessions, "_MAX_PARTS", 2):
        leader.fetch(first, 2, (((PARTITIONS[1], 0),), ()))
    with pytest.raises(UnknownFetchSessionError):
        leader.fetch(third, 2, ((), ()))
    assert leader.fetch(first, 3, ((), ()))[1].keys() == set(PARTITIONS[:2])

    fourth, _ = leader.fetch(NO_SESSION, 0, (((PARTITIONS[0], 0),), ()))
    with patch.object(fetch_sessions, "_MAX_PARTS", 2):
        leader.fetch(first, 4, ((), (PARTITIONS[0],)))
        assert leader.fetch(fourth, 1, ((), ()))[0] == fourth
        leader.sessions.end(leader.sessions.take(first, 5, "follower"))
        leader.fetch(fourth, 2, (((PARTITIONS[1], 0),), ()))
    assert leader.fetch(fourth, 3, ((), ()))[1].keys() == set(PARTITIONS[:2])


def test_sessions_when_too_many_then_those_of_consumers_go_first() -> None:
    sessions: FetchSessions[Any] = FetchSessions(KeptSession, itertools.count(1).__next__)
    follower = sessions.begin("follower")
    consumers = [sessions.begin(name, is_follower=False) for name in ("first", "second")]
    with patch.object(fetch_sessions, "_MAX_SESSIONS", 2):
        sessions.fit()
    assert (len(sessions), sessions.evicted_count) == (2, 1)
    with patch.object(fetch_sessions, "_MAX_SESSIONS", 1):
        sessions.fit()
    for one in consumers:
        with pytest.raises(UnknownFetchSessionError):
            sessions.take(one.id, 1, one.owner)
    assert sessions.take(follower.id, 1, "follower") is follower
