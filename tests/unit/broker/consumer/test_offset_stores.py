from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.cluster_state import Creation
from broker.consumer.chunk import InnerMessage
from broker.consumer.offset_store import (
    OFFSETS_NAME,
    RESULTS_NAME,
    FileOffsets,
    SqliteOffsets,
)
from broker.errors import OffsetStoreError
from broker.topic import MessagePosition, TopicPartition

Store = FileOffsets | SqliteOffsets
OpenStore = Callable[[], Store]

PARTITION = TopicPartition("t", 0, 0)
OTHER = TopicPartition("t", 10, 2)


def message(offset: int, next_offset: int) -> tuple[str, TopicPartition, int, int, bytes]:
    return ("t", PARTITION, offset, next_offset, b"x")


@pytest.fixture(params=["file", "sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Open the same store again and again; the one before is closed."""
    opened: list[Store] = []

    def reopen() -> Store:
        for store in opened:
            store.close()
        is_file = request.param == "file"
        path = tmp_path / "store"
        opened.append(FileOffsets(path) if is_file else SqliteOffsets(path, "g"))
        return opened[-1]

    yield reopen
    for store in opened:
        store.close()


def test_store_when_committed_and_reopened_then_has_the_positions(open_store: OpenStore) -> None:
    positions = {PARTITION: MessagePosition(100), OTHER: MessagePosition(7, 3)}

    assert open_store().commit(positions) == set()

    assert open_store().load([PARTITION, OTHER, TopicPartition("u", 0, 0)]) == positions


def test_store_when_empty_then_has_no_position(open_store: OpenStore) -> None:
    assert open_store().load([PARTITION]) == {}


def test_store_when_the_topic_was_created_again_meanwhile_then_starts_at_the_first_message(
    open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store()
    former, present = Creation("former", 7), Creation("present", 9)
    store.void_former({PARTITION: former, OTHER: former})
    store.commit({PARTITION: MessagePosition(100), OTHER: MessagePosition(7)})

    store = open_store()
    store.void_former({PARTITION: present, OTHER: former})
    assert store.load([PARTITION, OTHER]) == {
        PARTITION: MessagePosition(0),
        OTHER: MessagePosition(7),
    }
    assert "offset 100 of t[0-0] is void" in caplog.text
    store.commit({PARTITION: MessagePosition(11)})

    store = open_store()
    store.void_former({PARTITION: present})
    assert store.load([PARTITION]) == {PARTITION: MessagePosition(11)}


def test_sqlite_when_another_member_has_not_heard_of_the_last_creation_then_nothing_is_void(
    tmp_path: Path,
) -> None:
    with SqliteOffsets(tmp_path / "store", "g") as store:
        store.void_former({PARTITION: Creation("present", 9)})
        store.commit({PARTITION: MessagePosition(11)})
        store.void_former({PARTITION: Creation("former", 7)})
        store.void_former({PARTITION: Creation("present", 9)})

        assert store.load([PARTITION]) == {PARTITION: MessagePosition(11)}


def test_sqlite_when_zookeeper_has_lost_its_data_then_a_later_creation_counts(
    tmp_path: Path,
) -> None:
    with SqliteOffsets(tmp_path / "store", "g") as store:
        store.void_former({PARTITION: Creation("former", 7000)})
        store.commit({PARTITION: MessagePosition(11)})
        store.void_former({PARTITION: Creation("former", 0)})  # put back into another registry
        store.void_former({PARTITION: Creation("present", 9)})

        assert store.load([PARTITION]) == {PARTITION: MessagePosition(0)}


def test_store_when_restarted_at_a_lower_offset_then_counts_from_there(
    open_store: OpenStore,
) -> None:
    open_store().commit({PARTITION: MessagePosition(1000)})
    store = open_store()
    store.load([PARTITION])

    store.restart(PARTITION, 0)

    if isinstance(store, SqliteOffsets):
        with store.transaction():
            assert store.finish(message(0, 11))
    else:
        assert store.finish(message(0, 11))
        store.checkpoint()
    assert open_store().load([PARTITION]) == {PARTITION: MessagePosition(11)}


def test_sqlite_when_another_group_commits_then_positions_stay_apart(tmp_path: Path) -> None:
    with SqliteOffsets(tmp_path / "db", "g") as one, SqliteOffsets(tmp_path / "db", "h") as two:
        one.commit({PARTITION: MessagePosition(1)})
        two.commit({PARTITION: MessagePosition(2)})

        assert one.load([PARTITION]) == {PARTITION: MessagePosition(1)}


def test_sqlite_when_a_position_would_go_back_then_stays(tmp_path: Path) -> None:
    with SqliteOffsets(tmp_path / "db", "g") as store:
        store.commit({PARTITION: MessagePosition(100)})
        store.commit({PARTITION: MessagePosition(50)})

        assert store.load([PARTITION]) == {PARTITION: MessagePosition(100)}


def test_sqlite_when_a_transaction_ends_then_offset_and_results_are_there(tmp_path: Path) -> None:
    with SqliteOffsets(tmp_path / "db", "g") as store:
        with store.transaction() as database:
            database.execute("CREATE TABLE results (x)")
        with store.transaction() as database:
            assert store.finish(message(0, 11))
            database.execute("INSERT INTO results VALUES (1)")

        assert store.load([PARTITION]) == {PARTITION: MessagePosition(11)}
        with store.transaction() as database:
            assert database.execute("SELECT count(*) FROM results").fetchone() == (1,)


def test_sqlite_when_a_transaction_fails_then_neither_offset_nor_results_are_there(
    tmp_path: Path,
) -> None:
    with SqliteOffsets(tmp_path / "db", "g") as store:
        with store.transaction() as database:
            database.execute("CREATE TABLE results (x)")
        with pytest.raises(ZeroDivisionError), store.transaction() as database:
            store.finish(message(0, 11))
            database.execute("INSERT INTO results VALUES (1)")
            raise ZeroDivisionError

        assert store.load([PARTITION]) == {}
        with store.transaction() as database:
            assert database.execute("SELECT count(*) FROM results").fetchone() == (0,)
            assert store.finish(message(0, 11))


def test_sqlite_when_another_process_was_faster_then_the_message_is_done_already(
    tmp_path: Path,
) -> None:
    with SqliteOffsets(tmp_path / "db", "g") as one, SqliteOffsets(tmp_path / "db", "g") as two:
        one.load([PARTITION])
        inside = [InnerMessage(message(0, 0), inner) for inner in range(3)]
        with two.transaction():
            assert two.finish(inside[0])
            assert two.finish(inside[1])

        with one.transaction():
            assert [one.finish(each) for each in inside] == [False, False, True]
            assert one.finish(message(0, 50))


def test_sqlite_when_no_transaction_is_open_then_finish_is_an_error(tmp_path: Path) -> None:
    with (
        SqliteOffsets(tmp_path / "db", "g") as store,
        pytest.raises(OffsetStoreError, match="within a transaction"),
    ):
        store.finish(message(0, 11))


def test_sqlite_when_the_file_is_no_database_then_says_so(tmp_path: Path) -> None:
    (tmp_path / "db").write_bytes(b"no database at all, but long enough to look at" * 30)

    with pytest.raises(OffsetStoreError, match="not a database"):
        SqliteOffsets(tmp_path / "db", "g")


def test_file_when_results_follow_the_last_checkpoint_then_they_are_cut_off(
    tmp_path: Path,
) -> None:
    with FileOffsets(tmp_path) as store:
        store.finish(message(0, 11))
        store.results.write(b"one")
        store.checkpoint()
        store.finish(message(11, 22))
        store.results.write(b"two")

    with FileOffsets(tmp_path) as store:
        assert store.load([PARTITION]) == {PARTITION: MessagePosition(11)}
        assert (tmp_path / RESULTS_NAME).read_bytes() == b"one"
        assert store.finish(message(11, 22))


def test_file_when_a_message_comes_again_then_it_is_done_already(tmp_path: Path) -> None:
    with FileOffsets(tmp_path) as store:
        assert store.finish(message(0, 11))
        assert store.finish(message(11, 22))

        assert not store.finish(message(0, 11))


def test_file_when_another_has_it_open_then_is_refused(tmp_path: Path) -> None:
    with FileOffsets(tmp_path), pytest.raises(OffsetStoreError, match="in use"):
        FileOffsets(tmp_path)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"results_bytes": 0}', b"\xff"])
def test_file_when_offsets_are_damaged_then_names_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / OFFSETS_NAME).write_bytes(content)

    with pytest.raises(OffsetStoreError, match=OFFSETS_NAME):
        FileOffsets(tmp_path)


def test_file_when_results_are_shorter_than_committed_then_is_refused(tmp_path: Path) -> None:
    with FileOffsets(tmp_path) as store:
        store.results.write(b"one")
        store.checkpoint()
    (tmp_path / RESULTS_NAME).write_bytes(b"o")

    with pytest.raises(OffsetStoreError, match="shorter than the 3 bytes"):
        FileOffsets(tmp_path)
