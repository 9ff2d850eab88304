"""Load of producers: batches generated or read from a file, sent from several threads and timed."""

from __future__ import annotations

import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.clock import Clock
from broker.producer.config import ProducerConfig
from broker.producer.partitioner import round_robin_partitioner
from broker.producer.producer import Delivery, Producer, settings_of
from broker.units import Pacer, Rate
from pylogctl.perf import measure

_POOL_BYTES = 16 << 20
_POOL_COUNT = 1000
_MAX_FILE_BYTES = 64 << 20

Batch = Sequence[bytes]


class SizeRange(NamedTuple):
    """Range of payload sizes in bytes, both ends included."""

    smallest: int
    largest: int


@dataclass(frozen=True, slots=True)
class ProducePlan:
    """The messages to send; None for no limit."""

    topic: str
    batches: Sequence[Batch]  # sent repeatedly in this order; at least one, none empty
    message_count: int | None = None
    duration_s: float | None = None
    warmup_count: int = 0  # messages to send before the clock starts, in addition
    thread_count: int = 1  # each with its own producer
    rate: Rate | None = None  # of all threads together
    is_sequential: bool = False  # wait for each acknowledgement before the next batch


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


def make_producer(cluster: Cluster, connect: Connect, config: ProducerConfig) -> Producer:
    """Return a producer that sends batches to the partitions of a topic in turn.

    Several producers need a thread-safe cluster.
    """
    return Producer(cluster, connect, **settings_of(config), partitioner=round_robin_partitioner())


def produce_load(
    plan: ProducePlan,
    make_producer: Callable[[], Producer],
    *,
    clock: Clock,
    halt: measure.Halt,
    on_tick: Callable[[Sequence[measure.Tally]], None],
    log_end: Callable[[], int],
) -> measure.Result:
    """Send the messages of a plan, and measure until all are readable.

    A latency is the time from sending a batch until its acknowledgement is read; there are none
    for brokers that do not acknowledge. Each thread makes a producer; `log_end` returns the sum of
    the ends of the topic's logs; for `halt` and `on_tick` see `run_threads`.
    """
    with ExitStack() as stack:
        producers = [stack.enter_context(make_producer()) for _ in range(plan.thread_count)]
        if plan.warmup_count:
            budget = measure.Budget(plan.warmup_count)
            senders = [
                _Sender(plan, one, n, budget, halt, clock) for n, one in enumerate(producers)
            ]
            measure.run_threads([one.run for one in senders], halt, lambda: None)
        budget = measure.Budget(plan.message_count)
        senders = [_Sender(plan, one, n, budget, halt, clock) for n, one in enumerate(producers)]
        tallies = [one.tally for one in senders]
        log_start = log_end()
        started_ms, started_s, started_cpu_s = clock.time_ms(), time.monotonic(), measure.cpu_s()
        halt.set_duration(plan.duration_s)
        measure.run_threads([one.run for one in senders], halt, partial(on_tick, tallies))
        seconds, used_cpu_s = time.monotonic() - started_s, measure.cpu_s() - started_cpu_s
        return measure.Result(
            measure.Totals.of(tallies),
            started_ms,
            seconds,
            used_cpu_s,
            measure.peak_rss_bytes(),
            log_end() - log_start,
        )


class _Sent(NamedTuple):
    delivery: Delivery
    message_count: int
    payload_bytes: int
    sent_s: float


class _Sender:
    """Sends batches with one producer, and counts those that are acknowledged."""

    def __init__(
        self,
        plan: ProducePlan,
        producer: Producer,
        number: int,
        budget: measure.Budget,
        halt: measure.Halt,
        clock: Clock,
    ) -> None:
        self.tally = measure.Tally()
        self._plan = plan
        self._producer = producer
        self._number = number
        self._budget = budget
        self._halt = halt
        self._pacer: Pacer | None = None
        if plan.rate is not None:
            share = plan.rate._replace(per_second=plan.rate.per_second / plan.thread_count)
            self._pacer = Pacer(share, clock, self._wait)
        self._in_flight: defaultdict[int, deque[_Sent]] = defaultdict(deque)

    def run(self) -> None:
        """Send until the budget is spent or threads must stop, then wait for acknowledgements."""
        plan = self._plan
        # Threads start at different batches, so that they do not send the same payloads at once.
        first = self._number * len(plan.batches) // plan.thread_count
        for batch in islice(cycle(plan.batches), first, None):
            if self._halt():
                break
            granted = self._budget.take(len(batch))
            if not granted:
                break
            self._send(batch[:granted])
        self._producer.wait_until_readable()
        self._count_acknowledged()

    def _send(self, batch: Batch) -> None:
        payload_bytes = sum(map(len, batch))
        if self._pacer is not None:
            self._pacer.wait_for(len(batch), payload_bytes)
        sent_s = time.monotonic()
        delivery = self._producer.send(self._plan.topic, batch)
        home = delivery.partition.home
        self._in_flight[home].append(_Sent(delivery, len(batch), payload_bytes, sent_s))
        if self._plan.is_sequential:
            self._producer.flush()
        self._count_acknowledged()

    def _wait(self, seconds: float) -> None:
        """Wait for the rate limit, but read acknowledgements first, so their times are exact."""
        give_up_s = time.monotonic() + seconds
        self._producer.flush()
        self._count_acknowledged()
        self._halt.wait(give_up_s - time.monotonic())

    def _count_acknowledged(self) -> None:
        """Count the acknowledged batches; a broker acknowledges in the order of sending."""
        now_s = time.monotonic()
        for queue in self._in_flight.values():
            while queue and queue[0].delivery.is_done:
                one = queue.popleft()
                if one.delivery.result() >= 0:
                    self.tally.latencies.add(now_s - one.sent_s)
                self.tally.add(one.message_count, one.payload_bytes)
