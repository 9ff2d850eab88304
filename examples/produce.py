"""Send the lines of a text to a topic, keyed by their first word, and report each delivery.

    python examples/produce.py syslog localhost:9092 < /var/log/syslog

The lines are queued and sent in batches. While a broker is down its lines are retried, also at its
new address; lines that cannot be delivered are written to stderr.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial

import pylogctl

delivered: Counter[pylogctl.TopicPartition] = Counter()


def note(line: bytes, delivery: pylogctl.Delivery) -> None:
    """Count a line that was delivered, and print any other; called by a thread of the producer."""
    if delivery.exception() is None:
        delivered[delivery.result().partition] += 1
    else:
        sys.stderr.buffer.write(line + b"\n")


def main() -> None:
    """Send standard input to the topic and the brokers that the command line names."""
    if len(sys.argv) != 3:
        print("usage: produce.py TOPIC BROKER[,BROKER...]", file=sys.stderr)
        sys.exit(2)
    topic, brokers = sys.argv[1:]

    with pylogctl.connect(brokers) as client, client.producer(linger=0.1) as producer:
        for text in sys.stdin.buffer:
            line = text.rstrip(b"\n")
            delivery = producer.send(topic, line, key=line.partition(b" ")[0])
            delivery.add_done_callback(partial(note, line))

    for partition, count in sorted(delivered.items()):
        print(f"{partition}: {count} messages")


if __name__ == "__main__":
    main()
