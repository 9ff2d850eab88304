"""What a table in a file may have: see `test_pipeline_window` for what the command refuses."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from broker.errors import QueryError
from pylogctl.pipeline.table_file import check_file


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (
            "users.csv",
            b'\xef\xbb\xbfid,"full name"\r\n1,Zo\xc3\xab\r\n\r\n2,"two\r\nlines, ""quoted"""\r\n',
        ),
        ("users.csv", b'id,size\r1,5" nail\r2,\r'),
        ("users.csv", b"id\n1\n\n2"),
        ("users.csv", b"id,text\n1," + b"x" * 200_000 + b"\n"),
        ("users.json", b'\xef\xbb\xbf{"id":1}\r\n\r\n{"id":2,"name":"Zo\xc3\xab"}'),
        ("users.parquet", b"PAR1\xff"),
    ],
)
def test_check_when_the_file_is_right_then_takes_it(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)

    check_file(path)


def test_check_when_given_a_directory_then_looks_at_the_files_that_spark_reads(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "users.csv"
    (directory / "_temporary").mkdir(parents=True)
    (directory / "_temporary" / "part-0.csv").write_bytes(b"\xff")
    (directory / "batch-0.csv").write_bytes(b"id\n1\n")
    check_file(directory)

    (directory / "batch-1.csv").write_bytes(b"id\n\xff\n")

    with pytest.raises(QueryError, match=r"batch-1\.csv' line 2: byte 0xff is not UTF-8"):
        check_file(directory)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("users.csv", b"", "is empty"),
        ("users.csv", "id\n1\n".encode("utf-16"), "iconv -f UTF-16 -t UTF-8"),
        (
            "users.csv",
            gzip.compress(b"id\n1\n", mtime=0),
            r"compressed by gzip: name the file \.gz",
        ),
        ("users.json", b'[{"id": 1}]\n', r"one a line, as jq -c '\.\[\]' makes of a list"),
    ],
    ids=["empty", "utf-16", "gzip", "list"],  # the same in each process of tests
)
def test_check_when_the_file_is_of_another_kind_then_says_what_to_do(
    tmp_path: Path, name: str, data: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(data)

    with pytest.raises(QueryError, match=reason):
        check_file(tmp_path / name)


def test_check_when_given_a_directory_then_takes_partitions_and_archives_and_one_header(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "users.csv"
    (directory / "day=1").mkdir(parents=True)
    (directory / "day=1" / "part-0").write_bytes(b"id,name\n1,ann\n")
    (directory / "old").mkdir()
    (directory / "old" / "bad.csv").write_bytes(b"\xff")
    (directory / "part-1.csv.gz").write_bytes(gzip.compress(b"id,name\n2,bob\n"))
    check_file(directory)

    (directory / "part-2.csv.gz").write_bytes(gzip.compress(b"id,name\n2,bob,bad\n"))
    with pytest.raises(QueryError, match=r"part-2\.csv\.gz' line 2: fields: 3, columns: 2"):
        check_file(directory)
    (directory / "part-2.csv.gz").write_bytes(gzip.compress(b"name,id\nbob,2\n"))
    with pytest.raises(QueryError, match=r"line 1: its columns are not those of '.*part-0'"):
        check_file(directory)
