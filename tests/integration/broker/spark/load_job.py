"""A program that loads a topic, to be killed while it does."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

from broker.spark.load import LoadRequest, run_load
from broker.spark.local import LocalProcesses
from broker.spark.options import parse_read_options
from broker.spark.session import open_session
from tests.integration.broker.spark.flaky import stalling_load_range
from tests.support.spark_session import SETTINGS


def main(engine: str, output: str, brokers: str) -> None:
    """Load the topic `events` in small pieces."""
    options = {"brokers": brokers, "subscribe": "events", "maxBytesPerPartition": "400"}
    request = LoadRequest(Path(output), parse_read_options(options))
    with (
        open_session(SETTINGS) if engine == "spark" else LocalProcesses(2) as opened,
        # so that it does not end before it is killed
        patch("broker.spark.load.load_range", stalling_load_range),
    ):
        run_load(opened, request)


if __name__ == "__main__":
    main(*sys.argv[1:])
