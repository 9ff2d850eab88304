"""The sending process of `perf e2e`: an open loop that sends at a fixed rate.

Each message carries the time it was due, not the time it was sent: messages due during a pause of
broker or sender count as late (no coordinated omission). Times are of the monotonic clock, which
the processes of one machine share.

`main` receives a `LoopPlan` from a pipe, and ends when the parent process does.
"""

from __future__ import annotations

import signal
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.connection import Connection as Pipe
from typing import Any, NamedTuple

from broker.client.cluster import Cluster
from broker.client.connection import Connection
from broker.errors import BrokerError
from broker.producer.config import ProducerConfig
from broker.producer.producer import Delivery, Producer
from broker.protocol.responses import BrokerAddress
from broker.threads import start_once
from broker.topic import TopicPartition
from pylogctl.cli.process import freeze_garbage
from pylogctl.perf.measure import cpu_s
from pylogctl.perf.produce import SizeRange, make_batches, make_producer

# Start of each payload: run, number of the message in the run, nanoseconds when it was due.
STAMP = struct.Struct(">IIq")
GO, STOP = "go", "stop"  # commands to the process
_FIRST_DUE_NS = 5_000_000
_LONGEST_SLEEP_S = 0.1
_BURST_MESSAGES = 1000
_BURST_BYTES = 512 << 10


class TopicLeaders(Cluster):
    """The brokers of one topic's partitions: a `Cluster` that can be sent to another process."""

    def __init__(self, addresses: Mapping[TopicPartition, BrokerAddress]) -> None:
        self._addresses = addresses

    def brokers(self) -> list[BrokerAddress]:
        """Return the brokers by id."""
        return sorted(set(self._addresses.values()))

    def topics(self) -> list[str]:
        """Return the only topic."""
        return sorted({partition.topic for partition in self._addresses})

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions by home and index; none for an unknown topic."""
        return sorted(one for one in self._addresses if one.topic == topic)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker of a partition."""
        return self._addresses[partition]


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """The messages to send."""

    leaders: TopicLeaders
    run: int  # in the stamps of this run's messages
    rate: float  # messages a second
    message_count: int
    sizes: SizeRange  # of payloads, at least that of a stamp
    config: ProducerConfig
    timeout_s: float  # of a response
    connect_timeout_s: float

    def connect(self, address: BrokerAddress) -> Connection:
        """Return a connection to a broker."""
        return Connection(
            address,
            timeout_s=self.timeout_s,
            connect_timeout_s=self.connect_timeout_s,
            send_bytes=self.config.socket_send_bytes,
            security=self.config,
        )


class SentCount(NamedTuple):
    """Messages sent, and the longest delay between a message's due time and its sending."""

    message_count: int
    late_s: float
    cpu_s: float
    error: BrokerError | None = None


NOTHING_SENT = SentCount(0, 0.0, 0.0)


class Schedule(NamedTuple):
    """The times when messages are due: at even intervals from `first_ns` on."""

    first_ns: int
    rate: float

    def due_ns(self, number: int) -> int:
        """Return the time when a message is due."""
        return self.first_ns + int(number * 1e9 / self.rate)

    def due_by(self, now_ns: int) -> int:
        """Return the number of messages due at `now_ns`."""
        number = max(0, int((now_ns - self.first_ns) * self.rate / 1e9))
        # rounding must not make a message due too early, nor omit it
        while self.due_ns(number) <= now_ns:
            number += 1
        while number and self.due_ns(number - 1) > now_ns:
            number -= 1
        return number


def send_on_schedule(
    plan: LoopPlan,
    producer: Producer,
    *,
    is_stopped: Callable[[], bool],
    monotonic_ns: Callable[[], int] = time.monotonic_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> SentCount:
    """Send every message when it is due, or as soon afterwards as the producer accepts it.

    Messages due at the same time are sent as one batch. `is_stopped` returns True to end early.
    """
    (topic,) = plan.leaders.topics()
    fillers = cycle([batch[0][STAMP.size :] for batch in make_batches(plan.sizes, 1)])
    burst = max(1, min(_BURST_MESSAGES, _BURST_BYTES // plan.sizes.largest))
    schedule = Schedule(monotonic_ns() + _FIRST_DUE_NS, plan.rate)
    in_flight: deque[Delivery] = deque()
    number = late_ns = 0
    started_cpu_s = cpu_s()
    while number < plan.message_count and not is_stopped():
        now_ns = monotonic_ns()
        due = min(schedule.due_by(now_ns), plan.message_count, number + burst)
        if due == number:
            sleep(min((schedule.due_ns(number) - now_ns) / 1e9, _LONGEST_SLEEP_S))
            continue
        late_ns = max(late_ns, now_ns - schedule.due_ns(number))
        payloads = [
            STAMP.pack(plan.run, one, schedule.due_ns(one)) + next(fillers)
            for one in range(number, due)
        ]
        in_flight.append(producer.send(topic, payloads))
        number = due
        while in_flight and in_flight[0].is_done:
            in_flight.popleft().result()
    producer.flush()
    for delivery in in_flight:
        delivery.result()
    return SentCount(number, late_ns / 1e9, cpu_s() - started_cpu_s)


def main() -> None:
    """Receive a plan from the pipe with the given descriptor, report ready, wait for GO, send."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process sends STOP
    with Pipe(int(sys.argv[1])) as pipe, suppress(EOFError):
        plan: LoopPlan = pipe.recv()
        producer = make_producer(plan.leaders, plan.connect, plan.config)
        freeze_garbage()
        pipe.send(NOTHING_SENT)
        if pipe.recv() == GO:
            pipe.send(_send(plan, producer, pipe))


def _send(plan: LoopPlan, producer: Producer, pipe: Pipe[Any, Any]) -> SentCount:
    stopped = threading.Event()

    def await_stop() -> None:
        pipe.poll(None)
        stopped.set()

    start_once(await_stop, name="stop")
    try:
        with producer:
            return send_on_schedule(plan, producer, is_stopped=stopped.is_set)
    except BrokerError as error:
        return NOTHING_SENT._replace(error=error)
