"""Runs the commands of `pylogctl perf`: validate the options, connect, measure, and report.

A signal ends a measurement early: its result is reported, and its status returned.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from broker.admin.brokers import request_status
from broker.client.cluster import Cluster, Connect, locked
from broker.client.list_offsets import OffsetLister
from broker.client.selection import find_partitions, select_topics
from broker.client.side import Side
from broker.consumer.config import ConsumerConfig
from broker.partition_patterns import PartitionList, parse_partition_list
from broker.producer.config import ProducerConfig
from broker.producer.settings import codec_of
from broker.topic import ReadRange, TopicPartition, validate_topic_name
from broker.units import parse_rate
from pylogctl.cli.columns import Document
from pylogctl.cli.connections import Absence, connector, open_cluster, with_addresses
from pylogctl.cli.environment import Environment, ExitStatus, UsageError
from pylogctl.cli.offsets import Span, make_span, resolve_ranges
from pylogctl.cli.process import freeze_garbage
from pylogctl.cli.properties import PERF_CONSUME, PERF_E2E, PERF_PRODUCE, Use, client_settings
from pylogctl.cli.render import render
from pylogctl.perf import document
from pylogctl.perf.consume import End, consume_load, open_readings
from pylogctl.perf.e2e import e2e_load, make_topic
from pylogctl.perf.measure import measured
from pylogctl.perf.open_loop import STAMP, LoopPlan, TopicLeaders
from pylogctl.perf.options import MeasureChoice, MeasuredRead, PacedChoice, ProduceChoice
from pylogctl.perf.produce import Batch, batches_of, make_producer, parse_sizes, produce_load

IDLE_TIMEOUT_S = 5.0


def produce(env: Environment, topic: str, choice: ProduceChoice) -> ExitStatus:
    """Send messages, measure it and report the result."""
    config = producer_config(env, PERF_PRODUCE, choice.codec)
    validate_output(env, choice, compat07=choice.compat07)
    batches = batches_of(choice.size, choice.payload_file, choice.batch)
    rate = None if choice.rate is None else parse_rate(choice.rate)
    if env.settings.dry_run:
        _show_plan(env, topic, batches, config, choice)
        return ExitStatus.OK
    with ExitStack() as stack:
        cluster, connect, _ = stack.enter_context(_open(env, config, Absence.WARN))
        cluster.brokers()  # until one has responded, a signal ends the command at once
        measurement = stack.enter_context(measured(env, choice.interval))
        shared = locked(cluster)
        producers = [
            stack.enter_context(make_producer(shared, connect, config))
            for _ in range(choice.threads)
        ]
        result = produce_load(
            producers,
            topic,
            batches,
            choice,
            measurement,
            rate=rate,
            is_sequential=config.max_in_flight == 1,
            log_end=partial(_log_end, shared, connect, topic),
        )
    csv_07 = document.produce_csv_07(result, batches, codec_of(config)) if choice.compat07 else None
    row = document.row_of(document.PerfProduceRow, result, overhead_bytes=result.overhead_bytes)
    return _report(env, document.PRODUCE, row, measurement.stop.status, csv_07)


def _log_end(cluster: Cluster, connect: Connect, topic: str) -> int:
    """Return the sum of the ends of a topic's logs; an offset is a position in bytes."""
    with OffsetLister(cluster, connect) as offsets:
        return sum(offsets.log_end(partition) for partition in cluster.partitions(topic))


def _show_plan(
    env: Environment,
    topic: str,
    batches: list[Batch],
    config: ProducerConfig,
    choice: ProduceChoice,
) -> None:
    """Render the plan, after connecting to the cluster."""
    validate_topic_name(topic)
    with _open(env, config) as (cluster, *_):
        partitions = cluster.partitions(topic)
    sizes = [sum(map(len, batch)) for batch in batches]
    row = document.PerfPlanRow(
        topic,
        [partition.name for partition in partitions] or None,
        choice.messages,
        choice.duration_s,
        len(batches[0]),
        sum(sizes) // len(sizes),
        codec_of(config).name.lower(),
        config.acks,
        choice.threads,
    )
    render(env, document.PLAN, [row])
    env.note("nothing sent; this was a dry run")


def consume(env: Environment, topic: str, choice: MeasuredRead) -> ExitStatus:
    """Read partitions of a topic, measure it and report the result."""
    if choice.simple and choice.threads > 1:
        raise UsageError("--simple reads with one thread")
    config = client_settings(env, PERF_CONSUME, ConsumerConfig, {})
    validate_output(env, choice, compat07=choice.compat07)
    idle_timeout_s = idle_timeout_s_of(config, has_duration=choice.duration is not None)
    wanted = choice.partition or (parse_partition_list("0") if choice.simple else None)
    # Without any limit, reading ends at the present end of the log.
    is_bounded = choice.messages is None and choice.duration is None
    span = make_span(env, choice.offset or [], from_beginning=False, exit_at_end=is_bounded)
    with ExitStack() as stack:
        side = stack.enter_context(_open(env, config))
        ranges = _resolve(env, side, topic, span, wanted)
        measurement = stack.enter_context(measured(env, choice.interval))
        readings = [stack.enter_context(one) for one in open_readings(side, ranges, choice, config)]
        result, end = consume_load(readings, choice, measurement, idle_timeout_s)
    csv_07 = document.consume_csv_07(result, config.fetch_bytes) if choice.compat07 else None
    row = document.row_of(document.ResultRow, result)
    status = _report(env, document.CONSUME, row, measurement.stop.status, csv_07)
    if status or end is not End.IDLE:
        return status
    env.note(f"stopped: no message came for {idle_timeout_s:g}s")
    return ExitStatus.OK if choice.messages is None else ExitStatus.TIMEOUT


def _resolve(
    env: Environment, side: Side, topic: str, span: Span, wanted: PartitionList | None
) -> dict[TopicPartition, ReadRange]:
    partitions = find_partitions(side.cluster, select_topics(side.cluster, [topic]), wanted)
    ranges = resolve_ranges(env, side, partitions, span)
    # A wrapper that the end lies inside of is left out: its messages are not counted one by one.
    return {
        partition: found._replace(end=None if found.end is None else found.end._replace(inner=0))
        for partition, found in ranges.items()
    }


def e2e(env: Environment, topic: str, choice: PacedChoice) -> ExitStatus:
    """Measure end-to-end latency and report it; return TIMEOUT if messages are missing."""
    config = producer_config(env, PERF_E2E, choice.codec)
    validate_output(env, choice)
    rate, sizes = parse_rate(choice.rate), parse_sizes(choice.size)
    if sizes.smallest < STAMP.size:
        raise UsageError(
            f"--size must be at least {STAMP.size}: a payload starts with a time",
            "valid: 100, 100..200",
        )
    # a rate of bytes is of payloads of average size
    per_s = rate.per_second * (2 / sum(sizes) if rate.in_bytes else 1)
    due_count = math.inf if choice.duration_s is None else int(per_s * choice.duration_s)
    count = int(min(due_count, math.inf if choice.messages is None else choice.messages))
    if not count:
        raise UsageError(f"no message is due within {choice.duration_s:g}s at {per_s:g} a second")
    warmup_count = math.ceil(per_s) if choice.warmup is None else choice.warmup
    validate_topic_name(topic)
    with ExitStack() as stack:
        cluster, connect, _ = stack.enter_context(_open(env, config))
        if not cluster.partitions(topic):
            with make_producer(cluster, connect, config) as producer:
                make_topic(producer, topic)
        flush = _flush_of(cluster, connect, topic, config.acks)
        order = LoopPlan(
            TopicLeaders({one: cluster.leader(one) for one in cluster.partitions(topic)}),
            secrets.randbits(32),
            per_s,
            warmup_count + count,
            sizes,
            config,
            env.timeout_s(config.socket_timeout_ms / 1000),
            env.timeout_s(config.connect_timeout_ms / 1000),
        )
        measurement = stack.enter_context(measured(env, choice.interval))
        freeze_garbage()
        found = e2e_load(order, warmup_count, connect, measurement, IDLE_TIMEOUT_S)
    row = document.row_of(
        document.E2eRow,
        found.result,
        rate=per_s,
        late_ms=round(found.late_s * 1000, 3),
        missing=found.missing_count,
        acks=config.acks,
        flush=flush,
    )
    status = _report(env, document.E2E, row, measurement.stop.status)
    if status or not found.missing_count:
        return status
    env.note(f"{found.missing_count} messages were sent but not received")
    return ExitStatus.TIMEOUT


def _flush_of(cluster: Cluster, connect: Connect, topic: str, acks: str) -> str | None:
    """Return when the brokers of a topic flush; None for 0.7 brokers, which do not report it."""
    leaders = {cluster.leader(partition) for partition in cluster.partitions(topic)}
    documents = [request_status(connect, leader).document for leader in sorted(leaders)]
    texts = {document.flush_text(one["flush"], topic, acks) for one in documents if one is not None}
    return "; ".join(sorted(texts)) or None


def validate_output(env: Environment, choice: MeasureChoice, *, compat07: bool = False) -> None:
    """Validate before a long run how its result is to be written."""
    if compat07:
        if env.settings.output not in (None, "csv"):
            raise UsageError(f"--compat07 writes csv, not {env.settings.output}")
        if env.settings.columns or env.settings.sort:
            raise UsageError("--compat07 has columns of its own; --columns and --sort do not apply")
    if not choice.interval:
        raise UsageError("--interval must be above zero")


def idle_timeout_s_of(config: ConsumerConfig, *, has_duration: bool) -> float | None:
    """Return how long to wait for a message; None for no limit."""
    if config.consumer_timeout_ms >= 0:
        return config.consumer_timeout_ms / 1000
    return None if has_duration else IDLE_TIMEOUT_S


def producer_config(env: Environment, use: Use, codec: str | None) -> ProducerConfig:
    """Return the producer's settings: `-X` properties, overridden by `--codec`."""
    return client_settings(env, use, ProducerConfig, {"compression.codec": codec})


@contextmanager
def _open(
    env: Environment, config: ProducerConfig | ConsumerConfig, absence: Absence = Absence.PARTIAL
) -> Iterator[Side]:
    """Open the cluster that options or settings name, with the settings' timeouts and buffers."""
    connect = connector(
        env,
        timeout_s=config.socket_timeout_ms / 1000,
        connect_timeout_s=config.connect_timeout_ms / 1000,
        send_bytes=config.socket_send_bytes if isinstance(config, ProducerConfig) else 0,
        receive_bytes=config.socket_receive_bytes if isinstance(config, ConsumerConfig) else 0,
    )
    env = with_addresses(env, config)
    with open_cluster(env, connect, absence=absence, config=config) as cluster:
        yield Side(cluster, connect)


def _report(
    env: Environment,
    layout: Document,
    row: document.ResultRow,
    status: ExitStatus,
    csv_07: tuple[str, str] | None = None,
) -> ExitStatus:
    """Write a result, and return the status of the signal that ended the measurement, else OK.

    `csv_07`, header and row as of Kafka 0.7's tools, replaces the document.
    """
    if csv_07 is not None:
        for line in csv_07[1:] if env.settings.no_header else csv_07:
            env.write_line(line)
    else:
        render(env, layout, [row])
    env.flush()
    if status:
        env.note("interrupted; the result covers the time until then")
    return status
