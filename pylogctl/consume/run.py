"""Runs a request of `pylogctl consume`: alone, or as a member of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial

from broker.client.cluster import Connect, locked
from broker.client.selection import Selected, find_partitions, select_topics
from broker.client.side import Side
from broker.consumer.arrivals import Arrivals
from broker.consumer.boundaries import BoundaryFinder
from broker.consumer.cluster_reader import ClusterReader
from broker.positions import Mark, resolve
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.connections import connector, open_cluster
from pylogctl.cli.decoding import Decoding, decoder_of
from pylogctl.cli.environment import ExitStatus
from pylogctl.cli.failures import OnCorrupt
from pylogctl.cli.logs import library_warnings
from pylogctl.cli.offsets import resolve_ranges
from pylogctl.cli.process import StopRequest, graceful_stop, keep_freed_memory
from pylogctl.cli.progress import announced_wait
from pylogctl.cli.selection import compile_patterns, wait_for_topics
from pylogctl.consume.output import Consumption, summary
from pylogctl.consume.plan import Request

_LOOKUP_S = 30.0  # for a schema, while brokers restart


def run(request: Request) -> ExitStatus:
    """Consume until a signal, a limit or the end of the ranges."""
    env, config = request.env, request.config
    connect = connector(
        env,
        timeout_s=config.socket_timeout_ms / 1000,
        connect_timeout_s=config.connect_timeout_ms / 1000,
        receive_bytes=config.socket_receive_bytes,
    )
    with ExitStack() as stack:
        stack.enter_context(library_warnings(env))
        stop = StopRequest()
        plan = request.plan
        if request.execution is not None:
            from pylogctl.consume.exec import open_executor  # late: the retry store's database

            executor = stack.enter_context(open_executor(env, request.execution, stop))
            plan = plan._replace(executor=executor)
        consumption = Consumption(env, plan, stop)
        status = _run(request, connect, consumption)
        env.note(summary(consumption))
    if plan.has_no_start and request.span.exit_at_end and not consumption.message_count:
        env.note("it began at the end; --from-beginning for all")
    return status


def _run(request: Request, connect: Connect, consumption: Consumption) -> ExitStatus:
    env, patterns, wait_s = request.env, request.options.reading.patterns, request.wait_s
    include = compile_patterns(patterns.include, "--include")
    exclude = compile_patterns(patterns.exclude, "--exclude")
    waits = wait_s is not None
    with open_cluster(env, connect, config=request.config, may_be_new=waits) as cluster:
        keep_freed_memory()
        if wait_s is not None:
            names = ", ".join(request.topics)
            with announced_wait(env, f"topic {names} to appear"):
                wait_for_topics(cluster, request.topics, timeout_s=wait_s)
        shared, form = locked(cluster), request.options.form
        if form.decoding.decode is not None:
            on_failure = OnCorrupt(request.plan.chosen.on_corrupt or "raw")
            decode = decoder_of(form.decoding, Side(shared, connect), patience_s=_LOOKUP_S)
            consumption.decoding = Decoding(env, decode, on_failure)
        if request.group_pattern is None:
            choose = partial(
                select_topics, shared, request.topics, include=include, exclude=exclude
            )
            selected = find_partitions(shared, choose(), request.options.reading.partition)
            return _run_alone(request, Side(shared, connect), selected, choose, consumption)
        find_partitions(cluster, request.topics)
        if consumption.decoding is not None:  # it asks the brokers of this cluster for schemas
            return _run_in_group(request, request.group_pattern, connect, consumption)
    return _run_in_group(request, request.group_pattern, connect, consumption)


def _run_in_group(
    request: Request, pattern: str, connect: Connect, consumption: Consumption
) -> ExitStatus:
    from pylogctl.consume.group import run_in_group  # late: the registry's client

    return run_in_group(request, pattern, connect, consumption)


def _run_alone(
    request: Request,
    side: Side,
    selected: Selected,
    choose: Callable[[], Sequence[str]],
    consumption: Consumption,
) -> ExitStatus:
    env, config, reading = request.env, request.config, request.options.reading
    every = [*selected.led, *selected.away]
    follows = any(request.span.range_for(one).end is None for one in every)
    report = env.warn if reading.allow_missing else env.leave_out
    leader_wait_s = config.leader_wait_ms / 1000
    ranges = resolve_ranges(
        env,
        side,
        selected,
        request.span,
        default_start=Mark.LATEST,
        strict=reading.strict_offset,
        leader_wait_s=leader_wait_s,
        on_missing=(lambda cause: env.warn(f"{cause}; waiting for it")) if follows else report,
    )
    arrivals = None
    if follows:
        arrivals = _arrivals(request, side, every, set(every) - ranges.keys(), choose)
    one_by_one = reading.order == "partition"
    groups = [{one: wanted} for one, wanted in ranges.items()] if one_by_one else [ranges]
    status = ExitStatus.OK
    with graceful_stop(consumption.stop):
        for group in groups:
            with ClusterReader(
                *side[:2],
                group,
                fetch_bytes=config.fetch_bytes,
                max_wait_ms=config.max_wait_ms,
                min_bytes=config.fetch_min_bytes,
                fetcher_count=config.num_fetchers,
                payload_filter=request.plan.payload_filter,
                read_from=config.read_from,
                leader_wait_s=leader_wait_s,
                arrivals=arrivals,
            ) as reader:
                status = consumption.run(reader)
            if status or consumption.has_enough():
                break
    return status


def _arrivals(
    request: Request,
    side: Side,
    known: Iterable[TopicPartition],
    waiting: Iterable[TopicPartition],
    choose: Callable[[], Sequence[str]],
) -> Arrivals:
    """Return what gives partitions that come later; `choose` returns the topics of the moment."""
    env, reading = request.env, request.options.reading

    def find() -> list[TopicPartition]:
        there = [one for topic in choose() for one in side.cluster.partitions(topic)]
        return [one for one in there if reading.partition is None or reading.partition.matches(one)]

    def range_of(partition: TopicPartition, finder: BoundaryFinder) -> ReadRange:
        wanted = request.span.range_for(partition)
        wanted = wanted._replace(start=wanted.start or Mark.LATEST)
        return resolve(wanted, partition, finder, strict=reading.strict_offset, warn=env.warn)

    return Arrivals(
        *side[:2], find=find, known=known, waiting=waiting, range_of=range_of, tell=env.warn
    )
