"""Latency through the broker: a sender at a fixed rate in another process, a reader in this one.

Knows readings, the codec and the sender's stamps; knows neither options nor output.

The process that sends for `perf e2e`: started, told to begin and to stop, asked what it sent.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from broker.client.cluster import Cluster, Connect
from broker.client.list_offsets import OffsetLister
from broker.clock import Clock
from broker.config import ProducerConfig
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import PartitionReader
from broker.producer.producer import Producer
from broker.protocol.codec import decode
from broker.topic import MessagePosition, ReadRange, TopicPartition
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.perf.measure import (
    Counted,
    Halt,
    Result,
    Tally,
    cpu_s,
    peak_rss_bytes,
    run_threads,
)
from pylogctl.perf.open_loop import GO, NOTHING_SENT, STAMP, STOP, Leaders, LoopPlan, Sent
from pylogctl.perf.produce import SizeRange

_LOOK_S = 0.1
_PROGRAM = "from pylogctl.perf.open_loop import main; main()"


class Sender:
    """Another process that sends; it is gone at the end of the block.

    Args:
        order: what it is to send.
    """

    def __init__(self, order: LoopPlan) -> None:
        self.is_done = False
        self.sent = NOTHING_SENT
        """What became of the order, once it is done."""
        self._pipe, theirs = multiprocessing.Pipe()
        with theirs:
            descriptor = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(descriptor)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.DEVNULL,
                pass_fds=[descriptor],
            )
        self._pipe.send(order)

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def run(self, halt: Halt) -> None:
        """Have it send until all is sent, or until it is time to stop.

        Raises:
            BrokerError: a message could not be delivered.
            CliError: it ended before its time.
        """
        try:
            self._answer(halt)
            if not halt():
                self._pipe.send(GO)
                self.sent = self._answer(halt)
        except (EOFError, OSError) as error:
            status = self._process.wait()
            raise CliError(
                ExitStatus.FAILED, f"the process that sends ended with status {status}"
            ) from error
        finally:
            self.is_done = True
        if self.sent.error is not None:
            raise self.sent.error

    def _answer(self, halt: Halt) -> Sent:
        """Return what it says next; it is told to stop meanwhile when it is time to."""
        is_told = False
        while not self._pipe.poll(_LOOK_S):
            if halt() and not is_told:
                self._pipe.send(STOP)
                is_told = True
        answer: Sent = self._pipe.recv()
        return answer


_FETCH_BYTES = 1 << 20
_MAX_WAIT_MS = 100


@dataclass(frozen=True, slots=True)
class E2ePlan:
    """What is sent, and how fast.

    Args:
        topic: where to; it exists.
        rate: messages a second, of all partitions together.
        message_count: messages to measure.
        warmup_count: messages to send before those, at the same rate.
        sizes: of payloads; at least `STAMP.size` bytes.
        idle_timeout_s: how long to wait for messages that do not come.
        timeout_s: how long the sender waits for an answer.
        connect_timeout_s: how long it tries to connect.
    """

    topic: str
    rate: float
    message_count: int
    warmup_count: int
    sizes: SizeRange
    idle_timeout_s: float
    timeout_s: float
    connect_timeout_s: float


@dataclass(frozen=True, slots=True)
class E2eResult:
    """What a measurement gave.

    `missing_count` is how many messages were sent and did not come, `late_s` the longest that one
    was sent after it was due.
    """

    result: Result
    missing_count: int
    late_s: float


def make_topic(producer: Producer, topic: str) -> None:
    """Have a topic come into being, with one message that no measurement counts."""
    producer.send(topic, [bytes(STAMP.size)])
    producer.barrier()


def e2e_load(
    plan: E2ePlan,
    config: ProducerConfig,
    cluster: Cluster,
    connect: Connect,
    *,
    clock: Clock,
    halt: Halt,
    on_tick: Callable[[Sequence[Tally]], None],
) -> E2eResult:
    """Send at a fixed rate, read, and measure how long after it was due each message is there.

    Args:
        plan: what to send.
        config: the producer's settings.
        cluster: tells which broker has which partition of the topic.
        connect: makes connections.
        clock: tells when it started.
        halt: ends it early; what was sent until then is the result.
        on_tick: called about ten times a second with what was counted so far.

    Raises:
        BrokerError: a message could not be delivered, or a broker is gone for good.
        CliError: the sending process ended before its time.
    """
    partitions = cluster.partitions(plan.topic)
    leaders = Leaders({partition: cluster.leader(partition) for partition in partitions})
    order = LoopPlan(
        leaders,
        secrets.randbits(32),
        plan.rate,
        plan.warmup_count + plan.message_count,
        plan.sizes,
        config,
        plan.timeout_s,
        plan.connect_timeout_s,
    )
    with ExitStack() as stack:
        sender = stack.enter_context(Sender(order))
        reader = ClusterReader(
            leaders,
            connect,
            _from_the_end(leaders, connect, partitions),
            fetch_bytes=_FETCH_BYTES,
            max_wait_ms=_MAX_WAIT_MS,
        )
        listener = _Listener(stack.enter_context(reader), plan, order, sender)
        started_ms, started_cpu_s = clock.time_ms(), cpu_s()
        run_threads(
            [listener.run, partial(sender.run, halt)], halt, partial(on_tick, [listener.tally])
        )
        used_cpu_s = cpu_s() - started_cpu_s
    result = Result(
        Counted.of([listener.tally]),
        started_ms,
        listener.seconds,
        used_cpu_s + sender.sent.cpu_s,
        peak_rss_bytes(),
    )
    missing_count = sender.sent.message_count - listener.received_count
    return E2eResult(result, missing_count, sender.sent.late_s)


def _from_the_end(
    leaders: Leaders, connect: Connect, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, ReadRange]:
    with OffsetLister(leaders, connect) as offsets:
        return {one: ReadRange(MessagePosition(offsets.latest(one))) for one in partitions}


class _Listener:
    """Reads what the sender sends, and counts how long after its time each message came.

    Args:
        source: of all partitions, from before the first message.
        plan: says what does not count, and how long to wait for the last.
        order: what the sender sends.
        sender: says how much it has sent.
    """

    def __init__(
        self, source: ClusterReader, plan: E2ePlan, order: LoopPlan, sender: Sender
    ) -> None:
        self.tally = Tally()
        self.received_count = 0
        self._source = source
        self._warmup_count = plan.warmup_count
        self._idle_timeout_s = plan.idle_timeout_s
        self._run = order.run
        self._seen = bytearray(order.message_count)
        self._sender = sender
        self._first_due_ns = self._last_ns = 0

    @property
    def seconds(self) -> float:
        """Return the time from when the first message was due until the last came."""
        return (self._last_ns - self._first_due_ns) / 1e9

    def run(self) -> None:
        """Read until all that was sent is here, or the last of it seems not to come."""
        last_s = time.monotonic()
        for readers in self._source.polls():
            for reader in readers:
                self._count(reader)
            now_s = time.monotonic()
            if readers or not self._sender.is_done:
                last_s = now_s
            if self._sender.is_done and (
                self.received_count >= self._sender.sent.message_count
                or now_s - last_s >= self._idle_timeout_s
            ):
                return

    def _count(self, reader: PartitionReader) -> None:
        decoded = decode(reader.data, reader.offset)
        now_ns = time.monotonic_ns()
        reader.take_good(decoded.valid_bytes, decoded.fault)
        unpack, add = STAMP.unpack_from, self.tally.latencies.add
        count = size = 0
        for _, _, payload in decoded.messages:
            run, number, due_ns = unpack(payload) if len(payload) >= STAMP.size else (-1, 0, 0)
            if run != self._run or self._seen[number]:
                continue  # somebody else's, or sent twice
            self._seen[number] = True
            self.received_count += 1
            if number < self._warmup_count:
                continue
            if number == self._warmup_count:
                self._first_due_ns = due_ns
            add((now_ns - due_ns) / 1e9)
            count += 1
            size += len(payload)
        if count:
            self._last_ns = now_ns
            self.tally.add(count, size)
