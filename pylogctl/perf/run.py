"""Runs the commands of `pylogctl perf`: connect, measure, and report the result.

A signal ends a measurement early: its result is reported, and `typer.Exit` raised. `choice` says
how long to measure and where the figures go.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

import typer

from broker.admin.brokers import request_status
from broker.client.cluster import Cluster, Connect, locked
from broker.client.list_offsets import OffsetLister
from broker.client.selection import find_partitions, select_topics
from broker.consumer.config import ConsumerConfig
from broker.partition_patterns import PartitionList
from broker.producer.config import ProducerConfig
from broker.producer.producer import codec_of
from broker.topic import ReadRange, TopicPartition, validate_topic_name
from pylogctl.cli.columns import Document
from pylogctl.cli.connections import Absence, Side, open_cluster, with_addresses
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.offset_resolution import resolve_ranges
from pylogctl.cli.offsets import Span
from pylogctl.cli.process import freeze_garbage, graceful_stop
from pylogctl.cli.render import render
from pylogctl.perf import document
from pylogctl.perf.consume import ConsumePlan, End, OpenReadings, consume_load
from pylogctl.perf.e2e import E2ePlan, e2e_load, make_topic
from pylogctl.perf.measure import Halt, show_intervals
from pylogctl.perf.options import LoadChoice, RunChoice
from pylogctl.perf.plan import connect_with
from pylogctl.perf.produce import (
    ProducePlan,
    make_producer,
    produce_load,
)


def measure_produce(
    env: Environment,
    plan: ProducePlan,
    config: ProducerConfig,
    choice: LoadChoice,
) -> None:
    """Send messages, measure it and report the result."""
    connect = connect_with(env, config)
    with ExitStack() as stack:
        cluster = stack.enter_context(
            open_cluster(with_addresses(env, config), connect, absence=Absence.WARN, config=config)
        )
        cluster.brokers()  # until one has responded, a signal ends the command at once
        stop = stack.enter_context(graceful_stop())
        shown = stack.enter_context(show_intervals(env, choice.interval))
        shared = locked(cluster)
        result = produce_load(
            plan,
            lambda: make_producer(shared, connect, config),
            clock=env.clock,
            halt=Halt(lambda: stop.is_set),
            on_tick=shown.tick,
            log_end=partial(_log_end, shared, connect, plan.topic),
        )
    csv_07 = document.produce_csv_07(result, plan, codec_of(config)) if choice.compat07 else None
    _report(env, document.PRODUCE, document.produce_row(result), csv_07)
    _exit_if_interrupted(env, stop.status)


def _log_end(cluster: Cluster, connect: Connect, topic: str) -> int:
    """Return the sum of the ends of a topic's logs; an offset is a position in bytes."""
    with OffsetLister(cluster, connect) as offsets:
        return sum(offsets.log_end(partition) for partition in cluster.partitions(topic))


def show_plan(env: Environment, plan: ProducePlan, config: ProducerConfig) -> None:
    """Render the plan, after connecting to the cluster."""
    validate_topic_name(plan.topic)
    with open_cluster(
        with_addresses(env, config), connect_with(env, config), config=config
    ) as cluster:
        partitions = cluster.partitions(plan.topic)
    sizes = [sum(map(len, batch)) for batch in plan.batches]
    row = document.PlanRow(
        plan.topic,
        [partition.name for partition in partitions] or None,
        plan.message_count,
        plan.duration_s,
        len(plan.batches[0]),
        sum(sizes) // len(sizes),
        codec_of(config).name.lower(),
        config.acks,
        plan.thread_count,
    )
    render(env, document.PLAN, [row])
    env.note("nothing sent; this was a dry run")


def measure_reading(
    env: Environment,
    open_readings: OpenReadings,
    plan: ConsumePlan,
    config: ConsumerConfig,
    choice: LoadChoice,
    *,
    topic: str,
    span: Span,
    wanted: PartitionList | None,
) -> None:
    """Read partitions of a topic, measure it and report the result.

    Args:
        span: offsets to read.
        wanted: partitions to read; None for all.
    """
    connect = connect_with(env, config)
    with ExitStack() as stack:
        cluster = stack.enter_context(
            open_cluster(with_addresses(env, config), connect, config=config)
        )
        ranges = _resolve(env, cluster, connect, topic, span, wanted)
        stop = stack.enter_context(graceful_stop())
        shown = stack.enter_context(show_intervals(env, choice.interval))
        readings = stack.enter_context(open_readings(plan, ranges, cluster, connect))
        result, end = consume_load(
            plan,
            readings,
            clock=env.clock,
            halt=Halt(lambda: stop.is_set),
            on_tick=shown.tick,
        )
    csv_07 = document.consume_csv_07(result, plan) if choice.compat07 else None
    row = document.ResultRow(**document.result_fields(result))
    _report(env, document.CONSUME, row, csv_07)
    _exit_if_interrupted(env, stop.status)
    if end is End.IDLE:
        env.note(f"stopped: no message came for {plan.idle_timeout_s:g}s")
        raise typer.Exit(ExitStatus.OK if plan.message_count is None else ExitStatus.TIMEOUT)


def _resolve(
    env: Environment,
    cluster: Cluster,
    connect: Connect,
    topic: str,
    span: Span,
    wanted: PartitionList | None,
) -> dict[TopicPartition, ReadRange]:
    partitions = find_partitions(cluster, select_topics(cluster, [topic]), wanted)
    ranges = resolve_ranges(env, Side(cluster, connect), partitions, span)
    # A wrapper that the end lies inside of is left out: its messages are not counted one by one.
    return {
        partition: found._replace(end=None if found.end is None else found.end._replace(inner=0))
        for partition, found in ranges.items()
    }


def measure_e2e(
    env: Environment,
    plan: E2ePlan,
    config: ProducerConfig,
    choice: RunChoice,
) -> None:
    """Measure end-to-end latency and report it; exit with a timeout if messages are missing."""
    validate_topic_name(plan.topic)
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
        shown = stack.enter_context(show_intervals(env, choice.interval))
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
    row = document.e2e_row(found, rate=plan.rate, acks=config.acks, flush=flush)
    _report(env, document.E2E, row)
    _exit_if_interrupted(env, stop.status)
    if found.missing_count:
        env.note(f"{found.missing_count} messages were sent but not received")
        raise typer.Exit(ExitStatus.TIMEOUT)


def _flush_of(cluster: Cluster, connect: Connect, topic: str, acks: str) -> str | None:
    """Return when the brokers of a topic flush; None for 0.7 brokers, which do not report it."""
    leaders = {cluster.leader(partition) for partition in cluster.partitions(topic)}
    documents = [request_status(connect, leader).document for leader in sorted(leaders)]
    texts = {
        None if one is None else document.flush_text(one["flush"], topic, acks) for one in documents
    }
    return "; ".join(sorted(filter(None, texts))) or None


def _report(
    env: Environment,
    layout: Document,
    row: document.ResultRow,
    csv_07: tuple[str, str] | None = None,
) -> None:
    """Write a result; `csv_07`, header and row as of Kafka 0.7's tools, replaces it."""
    if csv_07 is not None:
        for line in csv_07[1:] if env.settings.no_header else csv_07:
            env.write_line(line)
    else:
        render(env, layout, [row])
    env.flush()


def _exit_if_interrupted(env: Environment, status: ExitStatus) -> None:
    if status:
        env.note("interrupted; the result covers the time until then")
        raise typer.Exit(status)
