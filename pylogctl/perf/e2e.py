"""End-to-end latency: another process sends at a fixed rate (`open_loop`), this one reads."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from broker.client.cluster import Connect
from broker.client.list_offsets import OffsetLister
from broker.closing import SelfClosing
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import PartitionReader
from broker.producer.producer import Producer
from broker.topic import MessagePosition, ReadRange
from pylogctl.cli.environment import CliError, ExitStatus
from pylogctl.perf import measure
from pylogctl.perf.open_loop import GO, NOTHING_SENT, STAMP, STOP, LoopPlan, SentCount

_POLL_S = 0.1
_PROGRAM = "from pylogctl.perf.open_loop import main; main()"


class SendingProcess(SelfClosing):
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

    def close(self) -> None:
        """Kill the process, if it has not ended."""
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
    order: LoopPlan,
    warmup_count: int,
    connect: Connect,
    measurement: measure.Measurement,
    idle_timeout_s: float,
) -> E2eResult:
    """Send at a fixed rate, read, and measure the time from when each message was due.

    The first `warmup_count` messages are not measured; `idle_timeout_s` is how long missing
    messages are waited for.
    """
    with ExitStack() as stack:
        sender = stack.enter_context(SendingProcess(order))
        (topic,) = order.leaders.topics()
        with OffsetLister(order.leaders, connect) as offsets:
            ranges = {
                one: ReadRange(MessagePosition(offsets.latest(one)))
                for one in order.leaders.partitions(topic)
            }
        reader = ClusterReader(
            order.leaders, connect, ranges, fetch_bytes=_FETCH_BYTES, max_wait_ms=_MAX_WAIT_MS
        )
        listener = _Listener(
            stack.enter_context(reader), order, sender, warmup_count, idle_timeout_s
        )
        work = (listener.run, lambda: sender.run(measurement.halt))
        result = measurement.run(work, [listener.tally])
    result = replace(result, seconds=listener.seconds, cpu_s=result.cpu_s + sender.sent.cpu_s)
    missing_count = sender.sent.message_count - listener.received_count
    return E2eResult(result, missing_count, sender.sent.late_s)


@dataclass(eq=False)
class _Listener:
    """Reads the sender's messages, and counts the time since each message was due.

    `source` must read all partitions from before the first message.
    """

    source: ClusterReader
    order: LoopPlan
    sender: SendingProcess
    warmup_count: int
    idle_timeout_s: float
    tally: measure.Tally = field(default_factory=measure.Tally, init=False)
    received_count: int = field(default=0, init=False)
    _first_due_ns: int = field(default=0, init=False)
    _last_ns: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._seen = bytearray(self.order.message_count)

    @property
    def seconds(self) -> float:
        """Return the time from when the first message was due until the last was received."""
        return (self._last_ns - self._first_due_ns) / 1e9

    def run(self) -> None:
        """Read until all sent messages are received, or none was for the idle timeout."""
        last_s = time.monotonic()
        for readers in self.source.polls():
            for reader in readers:
                self._count(reader)
            now_s = time.monotonic()
            if readers or not self.sender.is_done:
                last_s = now_s
            if self.sender.is_done and (
                self.received_count >= self.sender.sent.message_count
                or now_s - last_s >= self.idle_timeout_s
            ):
                return

    def _count(self, reader: PartitionReader) -> None:
        messages = reader.take_messages()
        now_ns = time.monotonic_ns()
        unpack, add = STAMP.unpack_from, self.tally.latencies.add
        count = size = 0
        for _, _, payload in messages:
            run, number, due_ns = unpack(payload) if len(payload) >= STAMP.size else (-1, 0, 0)
            if run != self.order.run or self._seen[number]:
                continue  # sent by others, or a duplicate
            self._seen[number] = True
            self.received_count += 1
            if number < self.warmup_count:
                continue
            if number == self.warmup_count:
                self._first_due_ns = due_ns
            add((now_ns - due_ns) / 1e9)
            count += 1
            size += len(payload)
        if count:
            self._last_ns = now_ns
            self.tally.add(count, size)
