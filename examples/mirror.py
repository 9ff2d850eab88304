"""Mirror topics into another cluster until SIGTERM or SIGINT.

    python examples/mirror.py zk1:2181 zk2:2181 'orders|payments' 's/^/dc1./'

The arguments are the ZooKeeper addresses of both clusters, a pattern of topics, and a substitution
for their names. Offsets are committed in the source after the target has acknowledged: a restarted
mirror continues there, and several mirrors share the partitions. `pylogctl mirror run` has more
options.
"""

from __future__ import annotations

import math
import signal
import sys
import threading

from broker import (
    Connection,
    ConsumerConfig,
    ConsumerConnector,
    Mirror,
    Producer,
    Registry,
    RegistryCluster,
    Route,
    TopicMap,
    Whitelist,
)
from broker.producer.settings import ProducerSettings


def main() -> None:
    """Mirror the topics that the arguments name."""
    if len(sys.argv) < 4:
        print("usage: mirror.py SOURCE TARGET TOPICS [S/RE/NEW/ ...]", file=sys.stderr)
        sys.exit(2)
    source, target, topics, *renames = sys.argv[1:]
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    # a stream that times out lets the mirror check for a stop request
    config = ConsumerConfig(group="mirror", zookeeper=source, consumer_timeout_ms=200)

    with Registry(source) as here, Registry(target) as there:
        brokers = RegistryCluster(there)
        route = Route(RegistryCluster(here), brokers, Connection, TopicMap(renames))
        consumer = ConsumerConnector(config)
        streams = consumer.create_message_streams_by_filter(Whitelist(topics), 1)
        mirror = Mirror(
            consumer,
            streams,
            route,
            lambda: Producer(brokers, Connection, ProducerSettings(delivery_timeout_s=math.inf)),
        )
        mirror.run(stopped.wait)
    print(f"{mirror.message_count} messages mirrored")


if __name__ == "__main__":
    main()
