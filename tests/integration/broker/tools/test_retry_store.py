from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.errors import RetryStoreBusyError, RetryStoreError
from broker.tools.retry import (
    DATABASE_NAME,
    RetryEntry,
    RetryMessage,
    RetryPolicy,
    RetryStore,
    read_entries,
)
from broker.topic import TopicPartition

REPOSITORY = Path(__file__).parents[4]
PARTITION = TopicPartition("t", 2, 1)


def message(offset: int = 0, payload: bytes = b"x", *, inner: int = 0) -> RetryMessage:
    return RetryMessage(PARTITION, offset, offset + 11, inner, payload)


def put(store: RetryStore, one: RetryMessage, due_ms: int | None = 0) -> bool:
    return store.add(one, attempts=1, next_attempt_ms=due_ms, error="why")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RetryStore]:
    with RetryStore(tmp_path / "retry") as store:
        yield store


def test_store_when_reopened_then_has_what_was_added(tmp_path: Path) -> None:
    one = message(7, b"\x00\xff", inner=3)
    with RetryStore(tmp_path / "a" / "b") as store:
        store.add(one, attempts=4, next_attempt_ms=99, error="no luck")

    with RetryStore(tmp_path / "a" / "b") as store:
        assert list(store.entries()) == [RetryEntry(1, one, 4, 99, "no luck")]


def test_add_when_the_same_message_comes_again_then_keeps_the_entry(store: RetryStore) -> None:
    assert put(store, message(), 5)
    assert not put(store, message(), 7)

    assert [one.next_attempt_ms for one in store.entries()] == [5]


def test_add_when_another_payload_has_the_offset_then_keeps_both(store: RetryStore) -> None:
    put(store, message(0, b"before the topic was made anew"))
    put(store, message(0, b"after"))

    assert len(store) == 2


def test_add_when_messages_of_a_set_are_equal_then_keeps_each(store: RetryStore) -> None:
    for inner in (0, 1, 1):
        put(store, message(inner=inner))

    assert len(store) == 2


def test_due_when_asked_gives_those_whose_time_has_come_longest_wait_first(
    store: RetryStore,
) -> None:
    for offset, due_ms in ((0, 30), (1, 10), (2, 20), (3, None), (4, 31)):
        put(store, message(offset), due_ms)

    assert [one.message.offset for one in store.due(30, 10)] == [1, 2, 0]
    assert [one.message.offset for one in store.due(30)] == [1]


def test_reschedule_when_failed_again_then_counts_the_attempt(store: RetryStore) -> None:
    put(store, message())
    (entry,) = store.entries()

    store.reschedule(entry, None, "worse")

    (entry,) = store.entries()
    assert (entry.attempts, entry.last_error, entry.is_dead) == (2, "worse", True)
    assert store.due(1 << 60) == []


def test_done_when_handled_then_drops_the_entry(store: RetryStore) -> None:
    put(store, message(0))
    put(store, message(1))

    store.done(next(store.entries()))

    assert [one.message.offset for one in store.entries()] == [1]


def test_store_when_another_process_has_it_then_names_that_process(
    store: RetryStore, tmp_path: Path
) -> None:
    with pytest.raises(RetryStoreBusyError, match=f"process {os.getpid()}"):
        RetryStore(tmp_path / "retry")


def test_entries_when_another_process_has_the_store_can_be_read(
    store: RetryStore, tmp_path: Path
) -> None:
    put(store, message(5))

    assert [one.message.offset for one in read_entries(tmp_path / "retry")] == [5]


def test_entries_when_there_is_no_store_then_makes_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(read_entries(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_store_when_the_file_is_no_database_then_says_so_and_lets_go(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).write_bytes(b"not a database" * 100)
    for _ in range(2):
        with pytest.raises(
            RetryStoreError, match=r"damaged: .*not a database; once retry\.db is moved"
        ):
            RetryStore(tmp_path)


def test_store_when_the_directory_cannot_be_made_then_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RetryStoreError, match="file"):
        RetryStore(tmp_path / "file" / "retry")


def test_store_when_killed_behind_an_add_then_has_the_message(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.integration.broker.tools.test_retry_store import message, put\n"
        "from broker.tools.retry import RetryStore\n"
        "store = RetryStore(Path(sys.argv[1]))\n"
        "for offset in range(3): put(store, message(offset))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=REPOSITORY, timeout=60, check=False
    )

    assert done.returncode == -signal.SIGKILL
    with RetryStore(tmp_path) as store:
        assert [one.message.offset for one in store.entries()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("stored_attempts", "wait_ms"), [(0, 1000), (1, 2000), (3, 8000), (9, 300_000), (999, 300_000)]
)
def test_policy_when_attempts_fail_doubles_the_wait_up_to_a_limit(
    stored_attempts: int, wait_ms: int
) -> None:
    assert RetryPolicy().next_attempt_ms(50, 5, stored_attempts) == 50 + wait_ms


def test_policy_when_tried_often_enough_gives_up() -> None:
    policy = RetryPolicy(max_attempts=3)
    assert policy.next_attempt_ms(0, 2, 0) == 1000
    assert policy.next_attempt_ms(0, 3, 1) is None
