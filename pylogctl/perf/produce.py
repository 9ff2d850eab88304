"""Load of producers: batches generated or read from a file, sent from several threads and timed."""

from __future__ import annotations

import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.producer.config import ProducerConfig
from broker.producer.partitioner import round_robin_partitioner
from broker.producer.producer import Delivery, Producer
from broker.producer.settings import settings_of
from broker.units import Pacer, Rate, parse_size
from pylogctl.cli.environment import UsageError
from pylogctl.perf import measure
from pylogctl.perf.options import ProduceChoice

_DEFAULT_SIZE = "100"
_POOL_BYTES = 16 << 20
_POOL_COUNT = 1000
_MAX_FILE_BYTES = 64 << 20

Batch = Sequence[bytes]


class SizeRange(NamedTuple):
    """Range of payload sizes in bytes, both ends included."""

    smallest: int
    largest: int


def make_batches(sizes: SizeRange, batch_count: int) -> list[Batch]:
    """Return batches of printable payloads, the same for the same arguments.

    Sizes are evenly distributed in the range; `batch_count` messages, at least 1, are in a batch.
    """
    source = random.Random(7)
    pool_count = max(1, min(_POOL_COUNT, _POOL_BYTES // max(1, sizes.largest)))
    pool = cycle([_payload(source, source.randint(*sizes)) for _ in range(pool_count)])
    return [list(islice(pool, batch_count)) for _ in range(max(1, pool_count // batch_count))]


def _payload(source: random.Random, size: int) -> bytes:
    return source.randbytes((size + 1) // 2).hex().encode()[:size]


def read_batches(path: Path, batch_count: int) -> list[Batch]:
    """Return the lines of the first 64 MiB of a file in batches; none if it is empty."""
    with path.open("rb") as file:
        text = file.read(_MAX_FILE_BYTES)
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [lines[at : at + batch_count] for at in range(0, len(lines), batch_count)]


def parse_sizes(text: str | None) -> SizeRange:
    """Parse `--size`, such as `100` or `1KiB..2KiB`; None for the default."""
    smallest, dots, largest = (text or _DEFAULT_SIZE).partition("..")
    sizes = SizeRange(parse_size(smallest), parse_size(largest if dots else smallest))
    if sizes.largest < sizes.smallest:
        raise UsageError(f"not a size: '{text}' runs backwards", "valid: 100, 100..200")
    return sizes


def batches_of(size: str | None, payload_file: Path | None, batch_count: int) -> list[Batch]:
    """Return the batches of `--size` or `--payload-file`; `batch_count` is at least 1."""
    if payload_file is None:
        return make_batches(parse_sizes(size), batch_count)
    if size is not None:
        raise UsageError("--size and --payload-file cannot go together")
    batches = read_batches(payload_file, batch_count)
    if not batches:
        raise UsageError(f"payload file '{payload_file}' is empty")
    return batches


def make_producer(cluster: Cluster, connect: Connect, config: ProducerConfig) -> Producer:
    """Return a producer that sends batches to the partitions of a topic in turn.

    Several producers need a thread-safe cluster.
    """
    return Producer(cluster, connect, settings_of(config), partitioner=round_robin_partitioner())


def produce_load(
    producers: Sequence[Producer],
    topic: str,
    batches: Sequence[Batch],
    choice: ProduceChoice,
    measurement: measure.Measurement,
    *,
    rate: Rate | None,
    is_sequential: bool,
    log_end: Callable[[], int],
) -> measure.Result:
    """Send messages, with a thread for each producer, and measure until all are readable.

    A latency is the time from sending a batch until its acknowledgement is read; there are none
    for brokers that do not acknowledge.

    Args:
        producers: send batches.
        topic: the topic.
        batches: sent repeatedly in this order; at least one, none empty.
        choice: how many messages are sent, and for how long.
        measurement: runs the threads.
        rate: of all threads together; None for no limit.
        is_sequential: wait for each acknowledgement before the next batch.
        log_end: returns the sum of the ends of the topic's logs.
    """

    def senders(message_count: int | None) -> list[_Sender]:
        budget, count = measure.Budget(message_count), len(producers)
        share = None if rate is None else rate._replace(per_second=rate.per_second / count)
        found = []
        for number, producer in enumerate(producers):
            # threads start at different batches, so that they do not send the same ones at once
            first = number * len(batches) // count
            own = islice(cycle(batches), first, None)
            found.append(_Sender(producer, topic, own, budget, measurement.halt, is_sequential))
            if share is not None:
                found[-1].pacer = Pacer(share, measurement.clock, found[-1].wait)
        return found

    if choice.warmup:
        work = [one.run for one in senders(choice.warmup)]
        measure.run_threads(work, measurement.halt, lambda: None)
    counted = senders(choice.messages)
    log_start = log_end()
    tallies = [one.tally for one in counted]
    result = measurement.run([one.run for one in counted], tallies, choice.duration_s)
    return replace(result, log_bytes=log_end() - log_start)


class _Sent(NamedTuple):
    delivery: Delivery
    message_count: int
    payload_bytes: int
    sent_s: float


@dataclass(eq=False)
class _Sender:
    """Sends batches with one producer, and counts those that are acknowledged."""

    producer: Producer
    topic: str
    batches: Iterator[Batch]  # without end
    budget: measure.Budget
    halt: measure.Halt
    is_sequential: bool
    pacer: Pacer | None = None
    tally: measure.Tally = field(default_factory=measure.Tally, init=False)
    _in_flight: defaultdict[int, deque[_Sent]] = field(
        default_factory=lambda: defaultdict(deque), init=False
    )

    def run(self) -> None:
        """Send until the budget is spent or threads must stop, then wait for acknowledgements."""
        for batch in self.batches:
            if self.halt() or not (granted := self.budget.take(len(batch))):
                break
            self._send(batch[:granted])
        self.producer.wait_until_readable()
        self._count_acknowledged()

    def _send(self, batch: Batch) -> None:
        payload_bytes = sum(map(len, batch))
        if self.pacer is not None:
            self.pacer.wait_for(len(batch), payload_bytes)
        sent_s = time.monotonic()
        delivery = self.producer.send(self.topic, batch)
        home = delivery.partition.home
        self._in_flight[home].append(_Sent(delivery, len(batch), payload_bytes, sent_s))
        if self.is_sequential:
            self.producer.flush()
        self._count_acknowledged()

    def wait(self, seconds: float) -> None:
        """Wait for the rate limit, but read acknowledgements first, so their times are exact."""
        give_up_s = time.monotonic() + seconds
        self.producer.flush()
        self._count_acknowledged()
        self.halt.wait(give_up_s - time.monotonic())

    def _count_acknowledged(self) -> None:
        """Count the acknowledged batches; a broker acknowledges in the order of sending."""
        now_s = time.monotonic()
        for queue in self._in_flight.values():
            while queue and queue[0].delivery.is_done:
                one = queue.popleft()
                if one.delivery.result() >= 0:
                    self.tally.latencies.add(now_s - one.sent_s)
                self.tally.add(one.message_count, one.payload_bytes)
