"""A command that uses Spark: says on stdout what it found, and ends."""

from __future__ import annotations

import json
import socket
import sys
from typing import cast

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
        address = spark.sparkContext._accumulatorServer.server_address
        with socket.create_connection(cast("tuple[str, int]", address)) as cut_off:
            cut_off.sendall(b"the half of a tok")  # as a JVM that is killed
            cut_off.shutdown(socket.SHUT_WR)
            cut_off.recv(1)  # the server has closed it
    print(json.dumps({"count": count, "java": java, "pid": pid}))


if __name__ == "__main__":
    main(*sys.argv[1:])
