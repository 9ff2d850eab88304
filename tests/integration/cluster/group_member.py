"""A consumer in a process of its own.

Call it as `python -m tests.integration.cluster.group_member OUT TOPICS NAME=VALUE ..`. TOPICS is
`TOPIC:STREAMS,..`, or `*STREAMS*REGEX` for a filter. Each message becomes a line of OUT, written
before the next one is asked for: TOPIC PARTITION OFFSET NEXT_OFFSET PAYLOAD. SIGTERM makes it
leave the group.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading

from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.consumer.membership import Whitelist
from broker.consumer.stream import ConsumerStream


def main() -> None:
    faulthandler.register(signal.SIGUSR1)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(threadName)s %(message)s")
    path, topics, *properties = sys.argv[1:]
    config = ConsumerConfig.from_properties(dict(one.split("=", 1) for one in properties))
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    asked_to_stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked_to_stop.set())
    with ConsumerConnector(config) as connector:
        threads = [
            threading.Thread(target=copy, args=(stream, output))
            for stream in create_streams(connector, topics)
        ]
        for thread in threads:
            thread.start()
        while not asked_to_stop.wait(1.0):
            continue  # looks again: a signal that another thread was given does not wake this one
    for thread in threads:
        thread.join()
    os.close(output)


def create_streams(connector: ConsumerConnector, topics: str) -> list[ConsumerStream]:
    if topics.startswith("*"):
        _, count, regex = topics.split("*", 2)
        return connector.create_message_streams_by_filter(Whitelist(regex), int(count))
    counts = {topic: int(count) for topic, count in (t.split(":") for t in topics.split(","))}
    return [one for streams in connector.create_message_streams(counts).values() for one in streams]


def copy(stream: ConsumerStream, output: int) -> None:
    for topic, partition, offset, next_offset, payload in stream:
        line = f"{topic} {partition.name} {offset} {next_offset} {payload.decode()}\n"
        os.write(output, line.encode())


if __name__ == "__main__":
    main()
