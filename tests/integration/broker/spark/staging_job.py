"""A program that writes to a topic with a staging directory, to be killed while it does."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator

import pyarrow as pa

from broker.spark.session import open_session
from tests.support.spark_session import SETTINGS


def _without_end(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"value": ["staged"]})
        threading.Event().wait()


def main(staging: str, brokers: str) -> None:
    """Write a row, and never the next one."""
    with open_session(SETTINGS) as spark:
        rows = spark.range(0, 1, 1, 1).mapInArrow(_without_end, "value string")
        options = {"brokers": brokers, "topic": "events", "stagingPath": staging}
        rows.write.format("pylog").options(**options).mode("append").save()


if __name__ == "__main__":
    main(*sys.argv[1:])
