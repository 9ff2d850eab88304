"""A program that loads and reads topics on executors with a Python of their own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from broker.spark.load import LoadRequest, run_load
from broker.spark.options import parse_read_options
from broker.spark.session import SessionSettings, open_session
from broker.spark.source import read_messages
from tests.support.spark_session import SETTINGS


def main(python: str, output: str, brokers: str) -> None:
    """Load the topic `events`, and say how many messages a load and a query have found."""
    os.environ["PYSPARK_PYTHON"] = python
    options = {"brokers": brokers, "subscribe": "events"}
    settings = SessionSettings("local-cluster[1,1,1024]", java_options=SETTINGS.java_options)
    with open_session(settings) as spark:
        made = run_load(spark, LoadRequest(Path(output), parse_read_options(options)))
        count = read_messages(spark, options).count()
    print(json.dumps([made and made.message_count, count]))


if __name__ == "__main__":
    main(*sys.argv[1:])
