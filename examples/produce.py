"""Send the lines of a text to a topic, keyed by their first word, and report each delivery.

    python examples/produce.py syslog zk.connect=localhost:2181 < /var/log/syslog

Settings are 0.7's producer properties; `broker.list=localhost:9092` works without ZooKeeper. The
lines are queued and sent in batches by sender threads. While a broker is down its lines are
retried, also at its new address; lines that cannot be delivered are written to stderr.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from broker import Producer, ProducerConfig, Report, TopicPartition

delivered: Counter[TopicPartition] = Counter()


def note(reports: Sequence[Report]) -> None:
    """Count delivered messages, and print the others; called by sender threads."""
    for report in reports:
        if report.error is None:
            delivered[report.partition] += 1
        else:
            sys.stderr.buffer.write(bytes(report.message) + b"\n")


def main() -> None:
    """Send standard input, with settings from the command line."""
    if len(sys.argv) < 3:
        print("usage: produce.py TOPIC PROPERTY=VALUE ...", file=sys.stderr)
        sys.exit(2)
    topic, *settings = sys.argv[1:]
    properties = {"producer.type": "async", "queue.time": "100"}
    properties |= dict(setting.split("=", 1) for setting in settings)
    config = ProducerConfig.from_properties(properties)

    with Producer.from_config(config, on_delivery=note) as producer:
        for line in sys.stdin.buffer:
            message = line.rstrip(b"\n")
            producer.send(topic, [message], key=message.partition(b" ")[0])

    for partition, count in sorted(delivered.items()):
        print(f"{partition}: {count} messages")


if __name__ == "__main__":
    main()
