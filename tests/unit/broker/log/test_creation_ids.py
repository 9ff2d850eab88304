from __future__ import annotations

import errno
import os
from collections.abc import Collection
from pathlib import Path

import pytest

from broker.errors import StorageError
from broker.log.table import CreationIds
from tests.support.log_fixtures import directories_at


def creation_ids(data_dir: Path, topics: Collection[str] = ()) -> CreationIds:
    """The ids of a broker that has just started, and has these topics."""
    ids = CreationIds(directories_at(data_dir))
    ids.load(topics)
    return ids


def test_creation_ids_when_a_topic_is_created_again_then_the_last_one_counts(
    tmp_path: Path,
) -> None:
    ids = creation_ids(tmp_path)
    ids.add("a b")
    first = ids.of("a b")
    ids.add("a b")

    loaded = creation_ids(tmp_path, {"a b"})

    assert first != ids.of("a b") == loaded.of("a b")
    assert len((tmp_path / "topic-creation-ids").read_text().splitlines()) == 1


def test_creation_ids_when_topics_are_gone_or_never_had_one_then_they_have_none(
    tmp_path: Path,
) -> None:
    ids = creation_ids(tmp_path)
    ids.add("gone")

    loaded = creation_ids(tmp_path, {"old"})

    assert (loaded.of("gone"), loaded.of("old")) == (None, None)


def test_creation_ids_when_a_crash_cut_the_last_line_then_it_is_dropped(tmp_path: Path) -> None:
    ids = creation_ids(tmp_path)
    ids.add("a")
    with (tmp_path / "topic-creation-ids").open("ab") as file:
        file.write(b"0123456789abcdef b")

    loaded = creation_ids(tmp_path, {"a", "b"})
    loaded.add("c")
    again = creation_ids(tmp_path, {"a", "b", "c"})

    assert (again.of("a"), again.of("b")) == (ids.of("a"), None)
    assert again.of("c") == loaded.of("c")


def test_creation_ids_when_the_file_cannot_be_written_then_storage_error(tmp_path: Path) -> None:
    ids = creation_ids(tmp_path)
    (tmp_path / "topic-creation-ids").mkdir()

    with pytest.raises(StorageError, match="cannot write"):
        ids.add("a")


def test_creation_ids_when_a_line_was_written_in_part_then_the_next_one_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = creation_ids(tmp_path)
    ids.add("a")

    def write_part(fd: int, content: bytes) -> None:
        os.write(fd, content[:5])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("broker.log.table.write_all", write_part)
        with pytest.raises(StorageError, match="No space left"):
            ids.add("b")
    ids.add("c")

    loaded = creation_ids(tmp_path, {"a", "c"})

    assert [loaded.of(topic) for topic in "abc"] == [ids.of("a"), None, ids.of("c")]
