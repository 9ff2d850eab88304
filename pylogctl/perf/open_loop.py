"""Sending at a fixed rate whatever comes back: one half of `perf e2e`, in a process of its own.

Each message carries the moment it was due, not the one it was sent at: where broker or sender
stand still, what was due meanwhile counts as late (no coordinated omission). The moments are those
of the monotonic clock, which the processes of one machine share.

`main` takes a `LoopPlan` from a pipe, and ends when who holds the other end of it does.
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

from broker.client.connection import Connection
from broker.config import ProducerConfig
from broker.errors import BrokerError
from broker.producer.producer import Delivery, Producer
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from pylogctl.cli.process import freeze_garbage
from pylogctl.perf.measure import cpu_s
from pylogctl.perf.produce import SizeRange, make_batches, make_producer

STAMP = struct.Struct(">IIq")
"""What each payload starts with: run, number of the message in it, nanoseconds when it was due."""
GO, STOP = "go", "stop"
"""What the process is told."""
_FIRST_DUE_NS = 5_000_000
_LONGEST_SLEEP_S = 0.1
_BURST_MESSAGES = 1000
_BURST_BYTES = 512 << 10


class Leaders:
    """A cluster as it was when the load began, so that no other process has to look for it.

    Args:
        addresses: the broker of each partition; of one topic.
    """

    def __init__(self, addresses: Mapping[TopicPartition, BrokerAddress]) -> None:
        self._addresses = addresses

    def brokers(self) -> list[BrokerAddress]:
        """Return the brokers that have a partition, by id."""
        return sorted(set(self._addresses.values()))

    def topics(self) -> list[str]:
        """Return the only topic."""
        return sorted({partition.topic for partition in self._addresses})

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions by home and index; none for an unknown topic."""
        return sorted(one for one in self._addresses if one.topic == topic)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that has a partition."""
        return self._addresses[partition]


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """What to send, and when.

    Args:
        leaders: where the partitions of the topic are.
        run: marks the messages of this run.
        rate: messages a second.
        message_count: how many messages to send.
        sizes: of the payloads, each with room for a stamp.
        config: the producer's settings.
        timeout_s: how long an answer is waited for.
        connect_timeout_s: how long connecting is tried.
    """

    leaders: Leaders
    run: int
    rate: float
    message_count: int
    sizes: SizeRange
    config: ProducerConfig
    timeout_s: float
    connect_timeout_s: float

    def connect(self, address: BrokerAddress) -> Connection:
        """Return a connection to a broker."""
        return Connection(
            address,
            timeout_s=self.timeout_s,
            connect_timeout_s=self.connect_timeout_s,
            send_bytes=self.config.socket_send_bytes,
        )


class Sent(NamedTuple):
    """What became of a plan: how many were sent, and the longest that one was sent too late."""

    message_count: int
    late_s: float
    cpu_s: float
    error: BrokerError | None = None


NOTHING_SENT = Sent(0, 0.0, 0.0)


class Schedule(NamedTuple):
    """When messages are due: evenly, from a first moment on."""

    first_ns: int
    rate: float

    def due_ns(self, number: int) -> int:
        """Return when a message is due."""
        return self.first_ns + int(number * 1e9 / self.rate)

    def due_by(self, now_ns: int) -> int:
        """Return how many messages are due by now."""
        number = max(0, int((now_ns - self.first_ns) * self.rate / 1e9))
        # What is rounded must not make a message due before its time, nor have it forgotten.
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
) -> Sent:
    """Send every message when it is due, or as soon after as the producer takes it.

    What is due at the same time goes as one batch.

    Args:
        plan: what to send.
        producer: sends it.
        is_stopped: ends it early.
        monotonic_ns: tells the time.
        sleep: waits for so many seconds.

    Raises:
        BrokerError: a batch could not be delivered.
    """
    (topic,) = plan.leaders.topics()
    fillers = cycle([batch[0][STAMP.size :] for batch in make_batches(plan.sizes, 1)])
    burst = max(1, min(_BURST_MESSAGES, _BURST_BYTES // plan.sizes.largest))
    schedule = Schedule(monotonic_ns() + _FIRST_DUE_NS, plan.rate)
    under_way: deque[Delivery] = deque()
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
        under_way.append(producer.send(topic, payloads))
        number = due
        while under_way and under_way[0].is_done:
            under_way.popleft().result()
    producer.flush()
    for delivery in under_way:
        delivery.result()
    return Sent(number, late_ns / 1e9, cpu_s() - started_cpu_s)


def main() -> None:
    """Take a plan from the pipe of this number, say that it can start, wait for the word, send."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this process says when to stop
    with Pipe(int(sys.argv[1])) as pipe, suppress(EOFError):
        plan: LoopPlan = pipe.recv()
        producer = make_producer(plan.leaders, plan.connect, plan.config)
        freeze_garbage()
        pipe.send(NOTHING_SENT)
        if pipe.recv() == GO:
            pipe.send(_send(plan, producer, pipe))


def _send(plan: LoopPlan, producer: Producer, pipe: Pipe[Any, Any]) -> Sent:
    stopped = threading.Event()

    def await_word() -> None:
        pipe.poll(None)
        stopped.set()

    threading.Thread(target=await_word, name="word", daemon=True).start()
    try:
        with producer:
            return send_on_schedule(plan, producer, is_stopped=stopped.is_set)
    except BrokerError as error:
        return NOTHING_SENT._replace(error=error)
