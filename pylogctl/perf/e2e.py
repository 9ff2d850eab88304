"""End-to-end latency: another process sends at a fixed rate (`open_loop`), this one reads."""

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
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import PartitionReader
from broker.producer.config import ProducerConfig
from broker.producer.producer import Producer
from broker.topic import MessagePosition, ReadRange, TopicPartition
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.perf import measure
from pylogctl.perf.open_loop import GO, NOTHING_SENT, STAMP, STOP, LoopPlan, SentCount, TopicLeaders
from pylogctl.perf.produce import SizeRange

_POLL_S = 0.1
_PROGRAM = "from pylogctl.perf.open_loop import main; main()"


class Sender:
    """The sending process; killed at the end of the block."""

    def __init__(self, order: LoopPlan) -> None:
        self.is_done = False
        self.sent = NOTHING_SENT
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
        """Return the process id."""
        return self._process.pid

    def run(self, halt: measure.Halt) -> None:
        """Make the process send until all messages are sent, or until `halt` returns True."""
        try:
            self._receive(halt)
            if not halt():
                self._pipe.send(GO)
                self.sent = self._receive(halt)
        except (EOFError, OSError) as error:
            status = self._process.wait()
            raise CliError(
                ExitStatus.FAILED, f"the sending process ended with status {status}"
            ) from error
        finally:
            self.is_done = True
        if self.sent.error is not None:
            raise self.sent.error

    def _receive(self, halt: measure.Halt) -> SentCount:
        """Return the next report of the process; send STOP once when `halt` returns True."""
        is_stopped = False
        while not self._pipe.poll(_POLL_S):
            if halt() and not is_stopped:
                self._pipe.send(STOP)
                is_stopped = True
        sent: SentCount = self._pipe.recv()
        return sent


_FETCH_BYTES = 1 << 20
_MAX_WAIT_MS = 100


@dataclass(frozen=True, slots=True)
class E2ePlan:
    """The messages to send, and their rate."""

    topic: str  # exists
    rate: float  # messages a second, of all partitions together
    message_count: int  # messages to measure
    warmup_count: int  # messages to send before those, at the same rate
    sizes: SizeRange  # of payloads; at least `STAMP.size` bytes
    idle_timeout_s: float  # how long to wait for missing messages
    timeout_s: float  # the sender's, for a response
    connect_timeout_s: float  # the sender's


@dataclass(frozen=True, slots=True)
class E2eResult:
    """The result of a measurement."""

    result: measure.Result
    missing_count: int  # messages sent but not received
    late_s: float  # the longest delay between a message's due time and its sending


def make_topic(producer: Producer, topic: str) -> None:
    """Create a topic with one message, which is not measured."""
    producer.send(topic, [bytes(STAMP.size)])
    producer.wait_until_readable()


def e2e_load(
    plan: E2ePlan,
    config: ProducerConfig,
    cluster: Cluster,
    connect: Connect,
    *,
    clock: Clock,
    halt: measure.Halt,
    on_tick: Callable[[Sequence[measure.Tally]], None],
) -> E2eResult:
    """Send at a fixed rate, read, and measure the time from when each message was due.

    For `halt`, which ends sending, and `on_tick` see `run_threads`.
    """
    partitions = cluster.partitions(plan.topic)
    leaders = TopicLeaders({partition: cluster.leader(partition) for partition in partitions})
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
        started_ms, started_cpu_s = clock.time_ms(), measure.cpu_s()
        measure.run_threads(
            [listener.run, partial(sender.run, halt)], halt, partial(on_tick, [listener.tally])
        )
        used_cpu_s = measure.cpu_s() - started_cpu_s
    result = measure.Result(
        measure.Totals.of([listener.tally]),
        started_ms,
        listener.seconds,
        used_cpu_s + sender.sent.cpu_s,
        measure.peak_rss_bytes(),
    )
    missing_count = sender.sent.message_count - listener.received_count
    return E2eResult(result, missing_count, sender.sent.late_s)


def _from_the_end(
    leaders: TopicLeaders, connect: Connect, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, ReadRange]:
    with OffsetLister(leaders, connect) as offsets:
        return {one: ReadRange(MessagePosition(offsets.latest(one))) for one in partitions}


class _Listener:
    """Reads the sender's messages, and counts the time since each message was due.

    `source` must read all partitions from before the first message.
    """

    def __init__(
        self, source: ClusterReader, plan: E2ePlan, order: LoopPlan, sender: Sender
    ) -> None:
        self.tally = measure.Tally()
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
        """Return the time from when the first message was due until the last was received."""
        return (self._last_ns - self._first_due_ns) / 1e9

    def run(self) -> None:
        """Read until all sent messages are received, or none was for the idle timeout."""
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
        messages = reader.take_messages()
        now_ns = time.monotonic_ns()
        unpack, add = STAMP.unpack_from, self.tally.latencies.add
        count = size = 0
        for _, _, payload in messages:
            run, number, due_ns = unpack(payload) if len(payload) >= STAMP.size else (-1, 0, 0)
            if run != self._run or self._seen[number]:
                continue  # sent by others, or a duplicate
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
