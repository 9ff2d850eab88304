"""Count messages when they are sent and when they are handled, and compare with `pylogctl audit`.

    python examples/audit.py send localhost:2181 orders < orders.jsonl
    python examples/audit.py handle localhost:2181 orders
    pylogctl audit check audit --tier billing --fail-above 0

Messages are counted by the time in their field `ts`, so that both sides count them in
the same window. A message that was not handled, or handled twice, shows in its window.
"""

from __future__ import annotations

import sys

from broker import (
    AuditCounter,
    AuditedProducer,
    Auditor,
    Connection,
    ConsumerConfig,
    ConsumerConnector,
    ConsumerTimeoutError,
    Producer,
    Registry,
    RegistryCluster,
    audited,
    json_time,
)

AUDIT_TOPIC = "audit"
IDLE_MS = 2000
TIME_OF = json_time(".ts")


def send(producer: Producer, topic: str) -> None:
    """Send the lines of standard input, and count those that are acknowledged."""
    auditor = Auditor(AuditCounter("producer"), producer, AUDIT_TOPIC)
    with AuditedProducer(producer, auditor, time_of=TIME_OF) as counting:
        for line in sys.stdin.buffer:
            counting.send(topic, [line.rstrip(b"\n")])


def handle(producer: Producer, zookeeper: str, topic: str) -> None:
    """Handle messages until none has arrived for a while, and count them."""
    auditor = Auditor(AuditCounter("billing"), producer, AUDIT_TOPIC)
    config = ConsumerConfig(group="billing", zookeeper=zookeeper, consumer_timeout_ms=IDLE_MS)
    with ConsumerConnector(config) as connector:
        (stream,) = connector.create_message_streams({topic: 1})[topic]
        try:
            for *_, payload in audited(stream, auditor, time_of=TIME_OF):
                print(payload.decode())
        except ConsumerTimeoutError:
            auditor.publish(with_open=True)


def main() -> None:
    """Run the command in the first argument."""
    if len(sys.argv) != 4 or sys.argv[1] not in ("send", "handle"):
        print("usage: audit.py send|handle ZOOKEEPER TOPIC", file=sys.stderr)
        sys.exit(2)
    command, zookeeper, topic = sys.argv[1:]
    with (
        Registry(zookeeper) as registry,
        Producer(RegistryCluster(registry), Connection) as producer,
    ):
        if command == "send":
            send(producer, topic)
        else:
            handle(producer, zookeeper, topic)


if __name__ == "__main__":
    main()
