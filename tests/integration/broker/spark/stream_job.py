"""A streaming query as a program of its own, to be killed: topic to parquet files, for ever."""

from __future__ import annotations

import sys
from pathlib import Path

from broker.spark.session import open_session
from tests.integration.broker.spark.flaky import StallingSource
from tests.support.spark_session import SETTINGS


def main(port: str, directory: str) -> None:
    """Run the query."""
    with open_session(SETTINGS) as spark:
        spark.dataSource.register(StallingSource)
        table = (
            spark.readStream.format("pylog")
            .option("brokers", f"127.0.0.1:{port}")
            .option("subscribe", "events")
            .option("startingOffsets", "earliest")
            .option("maxBytesPerTrigger", "20000")
            .option("fetchSize", "2000")
            .option("reportPath", str(Path(directory, "report")))
            .load()
        )
        table.writeStream.format("parquet").option(
            "checkpointLocation", str(Path(directory, "checkpoint"))
        ).start(str(Path(directory, "output"))).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
