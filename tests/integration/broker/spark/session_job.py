"""A command that uses Spark: says on stdout what it found, and ends."""

from __future__ import annotations

import json
import sys

from broker.spark.session import SessionSettings, open_session
from tests.support.spark_session import SETTINGS


def main(path: str) -> None:
    """Count the messages in segment files, with a data source that Spark finds by itself."""
    settings = SessionSettings(SETTINGS.master, java_options=SETTINGS.java_options)
    with open_session(settings) as spark:
        other = spark.newSession()  # where nothing is registered
        count = other.read.format("pylog").load(path).count()
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        java = jvm.System.getProperty("java.version")
        pid = jvm.ProcessHandle.current().pid()
    print(json.dumps({"count": count, "java": java, "pid": pid}))


if __name__ == "__main__":
    main(*sys.argv[1:])
