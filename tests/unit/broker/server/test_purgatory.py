from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from broker.errors import StorageError
from broker.log.segment import FileSlice, SegmentFile
from broker.server.requests.purgatory import (
    DelayedResponse,
    DelayKind,
    Part,
    Purgatory,
    Response,
    join_bytes,
)


class Notified:
    """Stands in for a log and for a processor: keeps the listeners, and what was woken."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []
        self.woken: list[DelayedResponse] = []

    def add_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        self.callbacks.append(callback)

    def remove_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        self.callbacks.remove(callback)

    def note_unreadable(self, found: FileSlice, position: int) -> StorageError | None:
        raise AssertionError(f"{found} could not be read at {position}")

    def wake(self, delayed: DelayedResponse) -> None:
        self.woken.append(delayed)


@pytest.fixture
def file_slice(tmp_path: Path) -> FileSlice:
    path = tmp_path / "segment"
    path.write_bytes(bytes(100))
    return FileSlice(SegmentFile(path), 10, 50, Notified())


def test_response_when_complete_then_counts_bytes_in_memory_only(file_slice: FileSlice) -> None:
    assert Response(b"abc", file_slice, memoryview(b"de")).bytes_in_memory == 5
    assert Response().bytes_in_memory == 0
    assert Response().parts is None


def test_join_bytes_when_neighbours_are_bytes_then_one_part(file_slice: FileSlice) -> None:
    parts: list[Part] = [b"a", b"b", file_slice, file_slice, b"", memoryview(b"c"), bytearray(b"d")]
    assert join_bytes(parts) == [b"ab", file_slice, file_slice, b"cd"]
    assert join_bytes([]) == []
    assert join_bytes([file_slice]) == [file_slice]


def delayed_by(log: Notified, attempts: list[list[Part] | None]) -> DelayedResponse:
    return DelayedResponse(lambda is_last: attempts.pop(0), 0.0, [log, log])


def test_delayed_response_when_a_log_is_named_twice_then_wakes_its_processor_once() -> None:
    log = Notified()
    delayed = delayed_by(log, [None])
    delayed.watch(log.wake)
    for callback in log.callbacks:
        callback()
    assert log.woken == [delayed]


def test_delayed_response_when_complete_then_watches_no_longer() -> None:
    log = Notified()
    delayed = delayed_by(log, [None, [b"x"]])
    delayed.watch(log.wake)
    assert not delayed.attempt(is_last=False)
    assert len(log.callbacks) == 1
    assert delayed.attempt(is_last=False)
    assert log.callbacks == []
    assert delayed.parts == [b"x"]


def test_delayed_response_when_attempted_after_completion_then_keeps_its_parts() -> None:
    delayed = delayed_by(Notified(), [[b"first"]])
    assert delayed.attempt(is_last=False)
    assert delayed.attempt(is_last=True)
    assert delayed.parts == [b"first"]


def test_delayed_response_when_it_watches_other_logs_instead_then_only_these_wake_it() -> None:
    former, other = Notified(), Notified()
    delayed = delayed_by(former, [])
    delayed.watch_instead([former])
    delayed.watch(other.wake)
    delayed.watch_instead([other, other])
    assert former.callbacks == []
    (callback,) = other.callbacks
    callback()
    assert other.woken == [delayed]
    delayed.forget()
    assert other.callbacks == []


def test_delayed_response_when_forgotten_twice_then_no_harm() -> None:
    log = Notified()
    delayed = delayed_by(log, [])
    delayed.watch(log.wake)
    delayed.forget()
    delayed.forget()
    assert log.callbacks == []


def attempt_for(request: Notified, is_last: bool) -> list[Part] | None:
    return None


def never(is_last: bool) -> list[Part] | None:
    return None


def test_purgatory_when_a_response_is_complete_at_once_then_does_not_keep_it() -> None:
    log = Notified()
    purgatory: Purgatory[str] = Purgatory()
    assert not purgatory.add(delayed_by(log, [[b"x"]]), "owner", log.wake)
    assert purgatory.all() == []
    assert log.callbacks == []


def test_purgatory_when_the_first_attempt_fails_then_watches_no_longer() -> None:
    log = Notified()
    purgatory: Purgatory[str] = Purgatory()
    with pytest.raises(IndexError):
        purgatory.add(delayed_by(log, []), "owner", log.wake)
    assert log.callbacks == []


def test_purgatory_when_deadlines_pass_then_returns_those_due_in_their_order() -> None:
    purgatory: Purgatory[str] = Purgatory()
    for deadline_s in (3.0, 1.0, 2.0):
        assert purgatory.add(DelayedResponse(never, deadline_s, []), "owner", lambda _: None)
    assert purgatory.next_deadline_s == 1.0
    assert [one.deadline_s for one in purgatory.take_due(2.5)] == [1.0, 2.0]
    assert purgatory.next_deadline_s == 3.0


def test_purgatory_when_removed_before_the_deadline_then_does_not_keep_it() -> None:
    purgatory: Purgatory[str] = Purgatory()
    request = Notified()
    delayed = DelayedResponse(partial(attempt_for, request), 1e9, [])
    freed = weakref.ref(request)
    assert purgatory.add(delayed, "owner", lambda _: None)

    delayed.forget()
    purgatory.remove(delayed)
    del request

    assert freed() is None
    kept = weakref.ref(delayed)
    del delayed
    assert kept() is None
    assert purgatory.take_due(2e9) == []


def test_purgatory_when_removed_then_has_no_owner() -> None:
    purgatory: Purgatory[str] = Purgatory()
    delayed = DelayedResponse(never, 1.0, [])
    assert purgatory.add(delayed, "owner", lambda _: None)
    assert purgatory.owner_of(delayed) == "owner"
    purgatory.remove(delayed)
    purgatory.remove(delayed)
    assert purgatory.owner_of(delayed) is None


def test_purgatory_when_a_response_has_waited_then_counts_it_once_by_its_kind() -> None:
    purgatory: Purgatory[str] = Purgatory()
    answers: list[list[Part] | None] = [None, [b"x"]]
    complete = DelayedResponse(lambda _: answers.pop(0), 1.0, [], kind=DelayKind.READ)
    deserted = DelayedResponse(never, 1.0, [], kind=DelayKind.READ)
    at_once = DelayedResponse(lambda _: [b"x"], 1.0, [], kind=DelayKind.READ)
    assert purgatory.add(complete, "owner", lambda _: None)
    assert purgatory.add(deserted, "owner", lambda _: None)
    assert not purgatory.add(at_once, "owner", lambda _: None)
    assert purgatory.deadline_count == 2

    assert complete.attempt(is_last=False)
    for one in (complete, complete, deserted, at_once):
        purgatory.remove(one)

    counts = purgatory.counts
    assert [one.waits.count for one in counts] == [0, 1, 0, 0]
    assert counts[DelayKind.READ].waits.total_s > 0


def test_purgatory_when_woken_twice_then_taken_once() -> None:
    purgatory: Purgatory[str] = Purgatory()
    delayed = DelayedResponse(never, 1.0, [])
    purgatory.note_woken(delayed)
    purgatory.note_woken(delayed)
    assert purgatory.take_woken() == [delayed]
    assert not purgatory.woken


def test_purgatory_when_very_many_reads_are_woken_then_taken_in_parts_behind_all_others() -> None:
    purgatory: Purgatory[str] = Purgatory()
    reads = [DelayedResponse(never, 1.0, [], kind=DelayKind.READ) for _ in range(1000)]
    publish = DelayedResponse(never, 1.0, [], kind=DelayKind.PUBLISH)
    for one in (*reads, publish, *reads):
        purgatory.note_woken(one)
    first = purgatory.take_woken()
    purgatory.note_woken(publish)
    assert len(first) < 500
    assert first == [publish, *reads[: len(first) - 1]]
    purgatory.note_woken(reads[0])
    rest = purgatory.take_woken()
    while purgatory.woken:
        rest += purgatory.take_woken()
    assert rest == [publish, *reads[len(first) - 1 :], reads[0]]


def test_purgatory_when_very_many_are_due_then_taken_in_parts() -> None:
    purgatory: Purgatory[str] = Purgatory()
    waiting = [DelayedResponse(never, 1.0, []) for _ in range(1000)]
    for one in waiting:
        assert purgatory.add(one, "owner", lambda _: None)
    due = purgatory.take_due(2.0)
    assert len(due) < 500
    for one in due:
        purgatory.remove(one)
    purgatory.note_expired(due)
    rest = []
    while more := purgatory.take_due(2.0):
        rest += more
    assert due + rest == waiting
