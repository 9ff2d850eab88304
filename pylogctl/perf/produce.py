"""Producing as load: payloads made up or from a file, sent from several threads and timed.

Knows the library's producer; knows neither options nor output.
"""

from __future__ import annotations

import random
import threading
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
from broker.config import ProducerConfig
from broker.producer.partitioner import round_robin_partitioner
from broker.producer.producer import (
    Delivery,
    Producer,
    codec_of,
    compressed_topics_of,
    reconnect_rule_of,
)
from broker.protocol.extension_requests import Acks
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from pylogctl.cli.units import Pacer, Rate
from pylogctl.perf.measure import (
    Budget,
    Counted,
    Halt,
    Result,
    Tally,
    cpu_s,
    peak_rss_bytes,
    run_threads,
)

_POOL_BYTES = 16 << 20
_POOL_COUNT = 1000
MAX_FILE_BYTES = 64 << 20
"""How much of a payload file is used."""

Batch = Sequence[bytes]


class SharedCluster:
    """A cluster that several threads may ask, one at a time.

    Args:
        cluster: asked by nobody else meanwhile.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        with self._lock:
            return self._cluster.brokers()

    def topics(self) -> list[str]:
        """Return the topics, by name."""
        with self._lock:
            return self._cluster.topics()

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions by home and index; none for an unknown topic."""
        with self._lock:
            return self._cluster.partitions(topic)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that serves a partition."""
        with self._lock:
            return self._cluster.leader(partition)


class SizeRange(NamedTuple):
    """Sizes of payloads in bytes, both ends included."""

    smallest: int
    largest: int


@dataclass(frozen=True, slots=True)
class ProducePlan:
    """What to send.

    Args:
        topic: where to.
        batches: sent again and again in this order; at least one, none empty.
        message_count: how many messages to send, None for no limit.
        duration_s: how long to send, None for no limit.
        warmup_count: messages to send before the clock starts, on top of the others.
        thread_count: threads with a producer each.
        rate: of all threads together, None for as fast as can be.
        is_sequential: wait for each acknowledgement before the next batch.
    """

    topic: str
    batches: Sequence[Batch]
    message_count: int | None = None
    duration_s: float | None = None
    warmup_count: int = 0
    thread_count: int = 1
    rate: Rate | None = None
    is_sequential: bool = False


def make_batches(sizes: SizeRange, batch_count: int) -> list[Batch]:
    """Return batches of printable payloads, always the same ones for the same arguments.

    Args:
        sizes: of the payloads, evenly distributed.
        batch_count: messages in a batch, at least 1.
    """
    source = random.Random(7)
    pool_count = max(1, min(_POOL_COUNT, _POOL_BYTES // max(1, sizes.largest)))
    pool = cycle([_payload(source, source.randint(*sizes)) for _ in range(pool_count)])
    return [list(islice(pool, batch_count)) for _ in range(max(1, pool_count // batch_count))]


def _payload(source: random.Random, size: int) -> bytes:
    return source.randbytes((size + 1) // 2).hex().encode()[:size]


def read_batches(path: Path, batch_count: int) -> list[Batch]:
    """Return batches of the lines of a file; none if it is empty.

    Args:
        path: its first `MAX_FILE_BYTES` are used.
        batch_count: messages in a batch, at least 1.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        text = file.read(MAX_FILE_BYTES)
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [lines[at : at + batch_count] for at in range(0, len(lines), batch_count)]


def make_producer(cluster: Cluster, connect: Connect, config: ProducerConfig) -> Producer:
    """Return a producer that goes round the partitions of a topic, batch by batch.

    Args:
        cluster: where topics are; if several producers share it, safe for several threads.
        connect: makes connections.
        config: its settings.
    """
    return Producer(
        cluster,
        connect,
        partitioner=round_robin_partitioner(),
        acks=Acks(int(config.acks)),
        codec=codec_of(config),
        compressed_topics=compressed_topics_of(config),
        backoff_s=config.retry_backoff_ms / 1000,
        reconnect=reconnect_rule_of(config),
        max_in_flight=config.max_in_flight,
        max_message_bytes=config.max_message_bytes,
        retries=config.num_retries,
        timeout_s=config.socket_timeout_ms / 1000,
    )


def produce_load(
    plan: ProducePlan,
    make_producer: Callable[[], Producer],
    *,
    clock: Clock,
    halt: Halt,
    on_tick: Callable[[Sequence[Tally]], None],
    log_end: Callable[[], int],
) -> Result:
    """Send what a plan says and measure it, until all is sent and can be read.

    A latency is the time from handing a batch over until its acknowledgement is read; brokers that
    do not acknowledge give none.

    Args:
        plan: what to send.
        make_producer: called once for each thread.
        clock: tells when it started.
        halt: ends it early; what was sent until then is the result.
        on_tick: called about ten times a second with what was counted so far.
        log_end: tells where the topic's logs end, added up.

    Raises:
        BrokerError: a batch could not be delivered.
    """
    with ExitStack() as stack:
        producers = [stack.enter_context(make_producer()) for _ in range(plan.thread_count)]
        if plan.warmup_count:
            budget = Budget(plan.warmup_count)
            senders = [
                _Sender(plan, one, n, budget, halt, clock) for n, one in enumerate(producers)
            ]
            run_threads([one.run for one in senders], halt, lambda: None)
        budget = Budget(plan.message_count)
        senders = [_Sender(plan, one, n, budget, halt, clock) for n, one in enumerate(producers)]
        tallies = [one.tally for one in senders]
        log_start = log_end()
        started_ms, started_s, started_cpu_s = clock.time_ms(), time.monotonic(), cpu_s()
        halt.set_duration(plan.duration_s)
        run_threads([one.run for one in senders], halt, partial(on_tick, tallies))
        seconds, used_cpu_s = time.monotonic() - started_s, cpu_s() - started_cpu_s
        return Result(
            Counted.of(tallies),
            started_ms,
            seconds,
            used_cpu_s,
            peak_rss_bytes(),
            log_end() - log_start,
        )


class _Sent(NamedTuple):
    """A batch under way."""

    delivery: Delivery
    message_count: int
    payload_bytes: int
    sent_s: float


class _Sender:
    """Sends batches with one producer, and counts each when it is acknowledged."""

    def __init__(
        self,
        plan: ProducePlan,
        producer: Producer,
        number: int,
        budget: Budget,
        halt: Halt,
        clock: Clock,
    ) -> None:
        self.tally = Tally()
        self._plan = plan
        self._producer = producer
        self._number = number
        self._budget = budget
        self._halt = halt
        self._pacer: Pacer | None = None
        if plan.rate is not None:
            share = plan.rate._replace(per_second=plan.rate.per_second / plan.thread_count)
            self._pacer = Pacer(share, clock, self._wait)
        self._under_way: defaultdict[int, deque[_Sent]] = defaultdict(deque)

    def run(self) -> None:
        """Send until the budget is spent or it is time to stop, then wait for all of it."""
        plan = self._plan
        # Threads start at different places, so that they do not send the same at once.
        first = self._number * len(plan.batches) // plan.thread_count
        for batch in islice(cycle(plan.batches), first, None):
            if self._halt():
                break
            granted = self._budget.take(len(batch))
            if not granted:
                break
            self._send(batch[:granted])
        self._producer.barrier()
        self._settle()

    def _send(self, batch: Batch) -> None:
        payload_bytes = sum(map(len, batch))
        if self._pacer is not None:
            self._pacer.wait_for(len(batch), payload_bytes)
        sent_s = time.monotonic()
        delivery = self._producer.send(self._plan.topic, batch)
        home = delivery.partition.home
        self._under_way[home].append(_Sent(delivery, len(batch), payload_bytes, sent_s))
        if self._plan.is_sequential:
            self._producer.flush()
        self._settle()

    def _wait(self, seconds: float) -> None:
        """Wait; with time to spare, acknowledgements are read as they come, not with a send."""
        give_up_s = time.monotonic() + seconds
        self._producer.flush()
        self._settle()
        self._halt.wait(give_up_s - time.monotonic())

    def _settle(self) -> None:
        """Count what is acknowledged by now; a broker acknowledges in the order of sending."""
        now_s = time.monotonic()
        for queue in self._under_way.values():
            while queue and queue[0].delivery.is_done:
                one = queue.popleft()
                if one.delivery.result() >= 0:
                    self.tally.latencies.add(now_s - one.sent_s)
                self.tally.add(one.message_count, one.payload_bytes)
