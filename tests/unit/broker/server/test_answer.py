from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.log.segment import FileSlice, SegmentFile
from broker.server.purgatory import Answer, Parked, Part, join_bytes


class Notified:
    """Stands in for a log and for a processor: remembers who waits, and who was woken."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []
        self.woken: list[Parked] = []

    def add_listener(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def remove_listener(self, callback: Callable[[], None]) -> None:
        self.callbacks.remove(callback)

    def wake(self, parked: Parked) -> None:
        self.woken.append(parked)


@pytest.fixture
def file_slice(tmp_path: Path) -> FileSlice:
    path = tmp_path / "segment"
    path.write_bytes(bytes(100))
    return FileSlice(SegmentFile(path), 10, 50)


def test_answer_when_complete_then_counts_bytes_in_memory_only(file_slice: FileSlice) -> None:
    assert Answer(b"abc", file_slice, memoryview(b"de")).bytes_in_memory == 5
    assert Answer().bytes_in_memory == 0
    assert Answer().parts is None


def test_join_bytes_when_neighbours_are_bytes_then_one_part(file_slice: FileSlice) -> None:
    parts: list[Part] = [b"a", b"b", file_slice, file_slice, b"", memoryview(b"c"), bytearray(b"d")]
    assert join_bytes(parts) == [b"ab", file_slice, file_slice, b"cd"]
    assert join_bytes([]) == []
    assert join_bytes([file_slice]) == [file_slice]


def parked_on(log: Notified, answers: list[list[Part] | None]) -> Parked:
    return Parked(Answer(), lambda is_last: answers.pop(0), 0.0, [log, log])  # type: ignore[list-item]  # a stand-in


def test_parked_when_log_moves_then_wakes_its_processor() -> None:
    log = Notified()
    parked = parked_on(log, [None])
    parked.watch(log)
    for callback in log.callbacks:
        callback()
    assert log.woken == [parked, parked]


def test_parked_when_answered_then_watches_no_longer() -> None:
    log = Notified()
    parked = parked_on(log, [None, [b"x"]])
    parked.watch(log)
    assert not parked.attempt(is_last=False)
    assert len(log.callbacks) == 2
    assert parked.attempt(is_last=False)
    assert log.callbacks == []
    assert parked.answer.parts == [b"x"]


def test_parked_when_attempted_after_its_answer_then_keeps_it() -> None:
    parked = parked_on(Notified(), [[b"first"]])
    assert parked.attempt(is_last=False)
    assert parked.attempt(is_last=True)
    assert parked.answer.parts == [b"first"]


def test_parked_when_forgotten_twice_then_no_harm() -> None:
    log = Notified()
    parked = parked_on(log, [])
    parked.watch(log)
    parked.forget()
    parked.forget()
    assert log.callbacks == []
