"""Send the lines of a text to a topic, keyed by their first word, and say what became of them.

    python examples/produce.py syslog zk.connect=localhost:2181 < /var/log/syslog

Settings are 0.7's producer properties; `broker.list=localhost:9092` works without ZooKeeper. The
lines are queued and sent in batches by threads of the producer. When a broker goes away they wait
for it, wherever it comes back; what cannot be delivered is written to stderr, to be sent again.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from broker import Producer, ProducerConfig, Report, TopicPartition

delivered: Counter[TopicPartition] = Counter()


def note(reports: Sequence[Report]) -> None:
    """Count what was delivered, and keep what was not; called by the producer's threads."""
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
