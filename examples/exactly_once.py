#!/usr/bin/env python3
"""Counts the words of a topic in an SQLite database, each message exactly once.

    examples/exactly_once.py --zookeeper localhost:2181 --group words --topic lines words.db

Counts and offsets are written in one transaction, so no message is lost or counted twice, even if
the program is killed with kill -9 and started again. Several processes on one machine share the
partitions.
"""

from __future__ import annotations

import argparse
import sqlite3
from pathlib import Path

from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.consumer.offset_store import SqliteOffsets
from broker.errors import ConsumerTimeoutError


def main() -> None:
    """Count until no message has arrived for a while."""
    arguments = parse_arguments()
    config = ConsumerConfig(
        zookeeper=arguments.zookeeper,
        group=arguments.group,
        auto_commit=False,  # our own transactions commit
        consumer_timeout_ms=arguments.idle_ms,
        zk_session_timeout_ms=arguments.session_timeout_ms,
    )
    with (
        SqliteOffsets(arguments.database, arguments.group) as store,
        ConsumerConnector(config, offsets=store) as connector,
    ):
        with store.transaction() as database:
            database.execute("CREATE TABLE IF NOT EXISTS words (word TEXT PRIMARY KEY, count INT)")
        (stream,) = connector.create_message_streams({arguments.topic: 1})[arguments.topic]
        try:
            for message in stream:
                with store.transaction() as database:
                    if store.finish(message):
                        count_words(database, message[4])
        except ConsumerTimeoutError:
            print(f"no message for {arguments.idle_ms} ms: stopped")


def count_words(database: sqlite3.Connection, line: bytes) -> None:
    """Add the words of a line to the counts."""
    for word in line.decode(errors="replace").split():
        database.execute(
            "INSERT INTO words VALUES (?, 1) ON CONFLICT (word) DO UPDATE SET count = count + 1",
            (word,),
        )


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database", type=Path, help="SQLite file, created when missing")
    parser.add_argument("--zookeeper", default="localhost:2181", help="HOST:PORT[,..][/CHROOT]")
    parser.add_argument("--group", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument(
        "--idle-ms", type=int, default=10_000, help="stop after this time without a message"
    )
    parser.add_argument("--session-timeout-ms", type=int, default=6000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
