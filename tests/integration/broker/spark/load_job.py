"""A program that loads a topic, to be killed while it does."""

from __future__ import annotations

import sys
from pathlib import Path

from broker.spark.load import LoadRequest, run_load
from broker.spark.options import parse_read_options
from broker.spark.session import open_session
from tests.support.spark_session import SETTINGS


def main(output: str, brokers: str) -> None:
    """Load the topic `events` in small pieces."""
    options = {"brokers": brokers, "subscribe": "events", "maxBytesPerPartition": "400"}
    with open_session(SETTINGS) as spark:
        run_load(spark, LoadRequest(Path(output), parse_read_options(options)))


if __name__ == "__main__":
    main(*sys.argv[1:])
