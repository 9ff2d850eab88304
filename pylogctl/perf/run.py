"""A measurement from its plan to its result: the way to brokers, signals, rows, report.

Knows what a run needs from an environment; knows no option.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.config import ConsumerConfig, ProducerConfig
from broker.consumer.list_offsets import Positions
from broker.producer.producer import codec_of
from broker.topic import TopicPartition, check_topic_name
from pylogctl.broker.control import request_status
from pylogctl.cli.connections import Absence, Side, open_cluster, with_addresses
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.offset_resolution import ResolvedRange, resolve_ranges
from pylogctl.cli.offsets import Span
from pylogctl.cli.process import freeze_garbage, graceful_stop
from pylogctl.cli.render import Document, Record, render
from pylogctl.cli.selection import PartitionList, select_partitions, select_topics
from pylogctl.perf.consume import ConsumePlan, End, OpenReadings, consume_load
from pylogctl.perf.display import Interval, intervals
from pylogctl.perf.e2e import E2ePlan, E2eResult, e2e_load, make_topic
from pylogctl.perf.measure import Halt, Result
from pylogctl.perf.plan import connect_with
from pylogctl.perf.produce import (
    ProducePlan,
    SharedCluster,
    make_producer,
    produce_load,
)
from pylogctl.perf.report import FIGURES, Run, figures, flush_text, save_run


class Outcome(NamedTuple):
    """What a run gave, in intervals too, and how it ended: OK or interrupted by a signal."""

    result: Result
    intervals: Sequence[Interval]
    status: ExitStatus
    end: End = End.COUNT


class Selection(NamedTuple):
    """What is read: partitions of a topic (None: all), and from where to where."""

    topic: str
    partitions: PartitionList | None
    span: Span


def run_produce(
    env: Environment, plan: ProducePlan, config: ProducerConfig, *, every_s: float
) -> Outcome:
    """Send what a plan says and measure it; a signal ends it early.

    Args:
        env: which brokers, and where rows are shown.
        plan: what to send.
        config: the producers' settings.
        every_s: time from row to row.

    Raises:
        BrokerError: a broker or the registry does not answer, or refuses.
    """
    connect = connect_with(env, config)
    with (
        open_cluster(
            with_addresses(env, config), connect, absence=Absence.WARN, config=config
        ) as cluster,
        graceful_stop() as stop,
        intervals(env, every_s) as shown,
    ):
        shared = SharedCluster(cluster)
        result = produce_load(
            plan,
            lambda: make_producer(shared, connect, config),
            clock=env.clock,
            halt=Halt(lambda: stop.is_set),
            on_tick=shown.tick,
            log_end=partial(_log_end, shared, connect, plan.topic),
        )
    return Outcome(result, shown.done, stop.status)


def _log_end(cluster: Cluster, connect: Connect, topic: str) -> int:
    """Return the ends of all logs of a topic, added up: an offset is a position in bytes."""
    with Positions(cluster, connect) as positions:
        return sum(positions.log_end(partition) for partition in cluster.partitions(topic))


def plan_record(env: Environment, plan: ProducePlan, config: ProducerConfig) -> Record:
    """Return what a plan would send where, having checked that the way is clear.

    Raises:
        InvalidTopicError: there can be no such topic.
        BrokerError: a broker or the registry does not answer.
    """
    check_topic_name(plan.topic)
    with open_cluster(
        with_addresses(env, config), connect_with(env, config), config=config
    ) as cluster:
        partitions = cluster.partitions(plan.topic)
    sizes = [sum(map(len, batch)) for batch in plan.batches]
    return {
        "topic": plan.topic,
        "partitions": [partition.name for partition in partitions] or None,
        "messages": plan.message_count,
        "seconds": plan.duration_s,
        "batch": len(plan.batches[0]),
        "bytes": sum(sizes) // len(sizes),
        "codec": codec_of(config).name.lower(),
        "acks": config.acks,
        "threads": plan.thread_count,
    }


def run_consume(
    env: Environment,
    plan: ConsumePlan,
    config: ConsumerConfig,
    selection: Selection,
    open_readings: OpenReadings,
    *,
    every_s: float,
) -> Outcome:
    """Read what is selected and measure it; a signal ends it early.

    Args:
        env: which brokers, and where rows are shown.
        plan: how to read, and until when.
        config: the readers' settings.
        selection: what to read.
        open_readings: how to read it.
        every_s: time from row to row.

    Raises:
        CliError: topic or partition do not exist, an offset is no message boundary, or a message
            is corrupt.
        BrokerError: a broker or the registry does not answer.
    """
    connect = connect_with(env, config)
    with ExitStack() as stack:
        cluster = stack.enter_context(
            open_cluster(with_addresses(env, config), connect, config=config)
        )
        ranges = _resolve(env, cluster, connect, selection)
        stop = stack.enter_context(graceful_stop())
        shown = stack.enter_context(intervals(env, every_s))
        readings = stack.enter_context(open_readings(plan, ranges, cluster, connect))
        result, end = consume_load(
            plan,
            readings,
            clock=env.clock,
            halt=Halt(lambda: stop.is_set),
            on_tick=shown.tick,
        )
    return Outcome(result, shown.done, stop.status, end)


class E2eOutcome(NamedTuple):
    """What an end-to-end run gave, and how it ended; `flush` as in `flush_text`."""

    found: E2eResult
    flush: str | None
    intervals: Sequence[Interval]
    status: ExitStatus


def run_e2e(
    env: Environment, plan: E2ePlan, config: ProducerConfig, *, every_s: float
) -> E2eOutcome:
    """Measure latency as a plan says; a signal ends it early.

    Args:
        env: which brokers, and where rows are shown.
        plan: what to send how fast.
        config: the producer's settings.
        every_s: time from row to row.

    Raises:
        BrokerError: a broker or the registry does not answer, or refuses.
        CliError: the sending process ended before its time.
    """
    check_topic_name(plan.topic)
    connect = connect_with(env, config)
    with ExitStack() as stack:
        cluster = stack.enter_context(
            open_cluster(with_addresses(env, config), connect, config=config)
        )
        if not cluster.partitions(plan.topic):
            with make_producer(cluster, connect, config) as producer:
                make_topic(producer, plan.topic)
        flush = _flush_of(cluster, connect, plan.topic, config.acks)
        stop = stack.enter_context(graceful_stop())
        shown = stack.enter_context(intervals(env, every_s))
        freeze_garbage()
        found = e2e_load(
            plan,
            config,
            cluster,
            connect,
            clock=env.clock,
            halt=Halt(lambda: stop.is_set),
            on_tick=shown.tick,
        )
    return E2eOutcome(found, flush, shown.done, stop.status)


def _flush_of(cluster: Cluster, connect: Connect, topic: str, acks: str) -> str | None:
    """Say when the brokers of a topic flush; None if they do not tell, as 0.7's do not."""
    leaders = {cluster.leader(partition) for partition in cluster.partitions(topic)}
    documents = [request_status(connect, leader).document for leader in sorted(leaders)]
    texts = {None if one is None else flush_text(one["flush"], topic, acks) for one in documents}
    return "; ".join(sorted(filter(None, texts))) or None


def _resolve(
    env: Environment,
    cluster: Cluster,
    connect: Connect,
    selection: Selection,
) -> dict[TopicPartition, ResolvedRange]:
    """Return from where to where each partition is read."""
    topics = select_topics(cluster, [selection.topic])
    partitions = select_partitions(cluster, topics, selection.partitions)
    ranges = resolve_ranges(env, Side(cluster, connect), partitions, selection.span)
    # An end inside a compressed set would have each message looked at; it is left out.
    return {
        partition: found._replace(end=None if found.end is None else found.end._replace(inner=0))
        for partition, found in ranges.items()
    }


def report(
    env: Environment,
    document: Document,
    run: Run,
    *,
    save: Path | None,
    csv_07: tuple[str, str] | None,
) -> None:
    """Write a result to standard output, and all of the run to a file if asked for.

    A terminal gets a line for each figure unless a format or columns are asked for.

    Args:
        env: where to, and in which format.
        document: the columns.
        run: what was measured and how.
        save: the file, if any.
        csv_07: header and row to write instead, as Kafka 0.7's tools do.

    Raises:
        OSError: standard output or the file cannot be written.
    """
    record = run.record
    if csv_07 is not None:
        for line in csv_07 if env.settings.header else csv_07[1:]:
            env.write_line(line)
    elif env.settings.output is None and env.streams.stdout_is_tty and not env.settings.columns:
        render(env, FIGURES, figures(document, record))
    else:
        render(env, document, [record])
    env.flush()
    if save is not None:
        save_run(save, run)
