"""Copies of a log in files, compared."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import BrokerError, StorageError
from pylogctl.cli.environment import ExitStatus
from pylogctl.log import compare as module
from pylogctl.log.compare import LogComparison, LogDifference, LogEnds, compare
from tests.support.command_line import Invoke
from tests.support.command_line import invoke as invoke


class BytesCopy:
    """A copy in memory; its bytes begin at an offset."""

    def __init__(self, name: str, start: int, data: bytes) -> None:
        self.name = name
        self.start = start
        self.data = data

    def ends(self) -> LogEnds:
        return LogEnds(self.start, self.start + len(self.data))

    def digest(self, offset: int, length: int) -> tuple[bytes, str] | None:
        part = self.data[offset - self.start :][:length]
        return (part, "segment") if offset >= self.start and len(part) == length else None


class FailingCopy(BytesCopy):
    """A copy that cannot be read from some request on."""

    def __init__(self, name: str, data: bytes, good_count: int) -> None:
        super().__init__(name, 0, data)
        self._good_count = good_count

    def digest(self, offset: int, length: int) -> tuple[bytes, str] | None:
        self._good_count -= 1
        if self._good_count < 0:
            raise StorageError(f"{self.name} has failed")
        return super().digest(offset, length)


def differs_at(found: LogComparison) -> int | None:
    return None if found.difference is None else found.difference.offset


@given(
    st.binary(min_size=1, max_size=200),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=2, max_size=4),
    st.integers(0, 199),
    st.integers(1, 255),
    st.integers(1, 50),
)
def test_compare_when_a_byte_is_flipped_then_it_is_found_where_two_copies_have_it(
    data: bytes, cuts: list[tuple[int, int]], place: int, bits: int, chunk_bytes: int
) -> None:
    place %= len(data)
    damaged = data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]
    copies = []
    covering = 0
    for number, (start, length) in enumerate(cuts):
        start %= len(data)
        source = damaged if number == 0 else data
        copies.append(BytesCopy(str(number), start, source[start : start + length]))
        covering += start <= place < start + length
    first = copies[0]
    expected = (
        place if covering > 1 and first.start <= place < first.start + len(first.data) else None
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK_BYTES", chunk_bytes)
        found = compare(copies)

    assert differs_at(found) == expected
    if found.difference is not None:
        assert ("0",) in found.difference.groups


def test_compare_when_copies_end_elsewhere_then_what_two_have_is_compared() -> None:
    copies = [BytesCopy("a", 0, b"0123456789"), BytesCopy("b", 4, b"456"), BytesCopy("c", 0, b"01")]

    found = compare(copies)
    assert (found.start, found.end, found.compared_bytes) == (0, 7, 5)
    assert found.difference is None


def test_compare_when_three_differ_then_groups_are_by_what_they_have() -> None:
    copies = [BytesCopy(name, 5, data) for name, data in (("a", b"xy"), ("b", b"xz"), ("c", b"xy"))]

    expected = LogDifference(6, (("a", "c"), ("b",)), dict.fromkeys("abc", "segment"))
    assert compare(copies).difference == expected


@pytest.mark.parametrize(
    ("contents", "result"), [([b"", b""], (0, 0)), ([b"", b"x"], (-1, -1)), ([b"x"], (-1, -1))]
)
def test_compare_when_nothing_is_in_common_then_only_empty_copies_are_the_same(
    contents: Sequence[bytes], result: tuple[int, int]
) -> None:
    found = compare([BytesCopy(str(n), 0, data) for n, data in enumerate(contents)])

    assert (found.start, found.end, found.difference) == (*result, None)


@pytest.mark.parametrize("good_count", range(6))
def test_compare_when_a_copy_fails_then_the_others_are_compared_to_the_end(
    good_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK_BYTES", 2)
    failing = FailingCopy("bad", b"0123456789", good_count)
    good = [BytesCopy(name, 0, b"0123456789") for name in "ab"]

    found = compare([failing, *good])

    assert (found.compared_bytes, found.difference) == (10, None)
    failures: list[BrokerError] = list(found.failures)
    assert [str(one) for one in failures] == ["bad has failed"] * (good_count < 5)


@pytest.mark.parametrize("good_count", range(1, 4))
def test_compare_when_a_copy_fails_while_a_difference_is_searched_then_the_others_tell(
    good_count: int,
) -> None:
    copies = [FailingCopy("bad", b"012345678", good_count)]
    others = [BytesCopy("a", 0, b"012345678"), BytesCopy("b", 0, b"012345X78")]

    found = compare([*copies, *others])

    assert (differs_at(found), len(found.failures)) == (6, 1)


def segments(directory: Path, *contents: bytes) -> Path:
    directory.mkdir()
    offset = 0
    for content in contents:
        (directory / f"{offset:020}.pylog").write_bytes(content)
        offset += len(content)
    return directory


def test_log_compare_when_segments_are_cut_elsewhere_then_bytes_count(
    invoke: Invoke, tmp_path: Path
) -> None:
    one = segments(tmp_path / "one", b"abc", b"def")
    other = segments(tmp_path / "other", b"a", b"bcdef")
    damaged = segments(tmp_path / "damaged", b"abc", b"dXf")

    def run(*paths: Path) -> tuple[int, str]:
        options = [word for path in paths for word in ("--path", str(path))]
        result = invoke("log", "compare", *options, "--columns", "result,offset", "--no-header")
        return result.status, f"{result.text}{result.stderr}"

    assert run(one, other)[0] == ExitStatus.OK
    status, text = run(one, other, damaged)
    assert status == ExitStatus.CORRUPT
    assert text.startswith("differ  4\n")
    assert f"differ at offset 4: {one}, {other} from {damaged}, in segment" in text


def test_log_compare_when_there_is_nothing_to_compare_then_says_so(
    invoke: Invoke, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    gone = tmp_path / "gone"

    assert invoke("log", "compare", "--path", str(empty)).status == ExitStatus.USAGE
    for path in (empty, gone):
        result = invoke("log", "compare", "--path", str(empty), "--path", str(path))
        assert result.status == ExitStatus.NOT_FOUND
        assert f"'{path}'" in result.stderr


def test_file_copy_when_its_file_is_shorter_than_when_opened_then_the_rest_is_not_there() -> None:
    with TemporaryDirectory() as directory:
        path = segments(Path(directory) / "log", b"abcdef") / f"{0:020}.pylog"
        copy = module.FileCopy("copy", [path])
        path.write_bytes(b"abc")

        assert copy.digest(0, 6) is None
        path.unlink()
        assert copy.digest(0, 1) is None


def test_log_compare_when_there_are_more_segments_than_descriptors_then_compares_all(
    invoke: Invoke, tmp_path: Path
) -> None:
    # every copy is there before the first is compared
    paths = [segments(tmp_path / name, *[b"abc"] * 40) for name in ("one", "other")]
    options = [word for path in paths for word in ("--path", str(path))]
    last = max(int(one.name) for one in Path("/proc/self/fd").iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (last + 40, hard))
    try:
        result = invoke("log", "compare", *options)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert result.status == ExitStatus.OK
