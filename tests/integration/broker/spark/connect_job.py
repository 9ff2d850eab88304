"""A program that reads and loads topics through Spark Connect, with a server of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from broker.errors import BrokerError
from broker.spark.jobs import cause_of
from broker.spark.load import LoadRequest, run_load
from broker.spark.options import parse_read_options
from broker.spark.source import read_messages


def main(good: str, damaged: str, output: str) -> None:
    """Read and load segment files, and say what was found."""
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    options = {"path": good, "maxBytesPerPartition": "500"}
    parts: list[float] = []
    try:
        count = read_messages(spark, options).where("value > X'30303039'").count()
        request = LoadRequest(Path(output), parse_read_options(options))
        made = run_load(spark, request, parts.append)
        cause = ""
        try:
            run_load(spark, LoadRequest(Path(output, "2"), parse_read_options({"path": damaged})))
        except Exception as error:  # noqa: BLE001 - of Spark
            found: BrokerError = cause_of(error)
            cause = f"{type(found).__name__}: {found}"
    finally:
        spark.stop()
    print(json.dumps([count, made and made.message_count, parts[-1], cause]))


if __name__ == "__main__":
    main(*sys.argv[1:])
