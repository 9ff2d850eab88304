"""What a table in a file may have: see `test_pipeline_window` for what the command refuses."""

from __future__ import annotations

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
        ("users.csv", b""),
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
