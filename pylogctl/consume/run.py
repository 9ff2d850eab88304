"""Runs a request of `pylogctl consume`: alone, or as a member of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial

from broker.client.cluster import Cluster, Connect, locked
from broker.client.selection import Selected, find_partitions, select_topics
from broker.consumer.arrivals import Arrivals
from broker.consumer.boundaries import BoundaryFinder
from broker.consumer.cluster_reader import ClusterReader
from broker.positions import Mark, resolve
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.connections import Side, connector, open_cluster
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.logs import library_warnings
from pylogctl.cli.offset_resolution import resolve_ranges
from pylogctl.cli.process import StopRequest, graceful_stop, keep_freed_memory
from pylogctl.cli.progress import announced_wait
from pylogctl.cli.selection import compile_patterns, wait_for_topics
from pylogctl.consume.output import Consumption, summary
from pylogctl.consume.plan import Request


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
        status = _run(env, request, connect, consumption, stop)
        env.note(summary(consumption))
    if plan.has_no_start and request.span.exit_at_end and not consumption.message_count:
        env.note("it began at the end; --from-beginning for all")
    return status


def _run(
    env: Environment,
    request: Request,
    connect: Connect,
    consumption: Consumption,
    stop: StopRequest,
) -> ExitStatus:
    include = compile_patterns(request.include, "--include")
    exclude = compile_patterns(request.exclude, "--exclude")
    waits = request.wait_s is not None
    with open_cluster(env, connect, config=request.config, may_be_new=waits) as cluster:
        keep_freed_memory()
        if request.wait_s is not None:
            names = ", ".join(request.topics)
            with announced_wait(env, f"topic {names} to appear"):
                wait_for_topics(cluster, request.topics, timeout_s=request.wait_s)
        if request.group is None:
            shared = locked(cluster)
            choose = partial(
                select_topics, shared, request.topics, include=include, exclude=exclude
            )
            selected = find_partitions(shared, choose(), request.partitions)
            return _run_alone(env, request, shared, connect, selected, choose, consumption, stop)
        find_partitions(cluster, request.topics)
    from pylogctl.consume.group import run_in_group  # late: the registry's client

    return run_in_group(env, request, request.group, connect, consumption, stop)


def _run_alone(
    env: Environment,
    request: Request,
    cluster: Cluster,
    connect: Connect,
    selected: Selected,
    choose: Callable[[], Sequence[str]],
    consumption: Consumption,
    stop: StopRequest,
) -> ExitStatus:
    every = [*selected.led, *selected.away]
    follows = any(request.span.range_for(one).end is None for one in every)
    report = env.warn if request.allow_missing else env.leave_out
    ranges = resolve_ranges(
        env,
        Side(cluster, connect),
        selected,
        request.span,
        default_start=Mark.LATEST,
        strict=request.strict_offset,
        leader_wait_s=request.config.leader_wait_ms / 1000,
        on_missing=(lambda cause: env.warn(f"{cause}; waiting for it")) if follows else report,
    )
    arrivals = None
    if follows:
        waiting = set(every) - ranges.keys()
        arrivals = _arrivals(request, cluster, connect, every, waiting, choose)
    groups = [{one: wanted} for one, wanted in ranges.items()] if request.one_by_one else [ranges]
    status = ExitStatus.OK
    with graceful_stop(stop):
        for group in groups:
            with ClusterReader(
                cluster,
                connect,
                group,
                fetch_bytes=request.config.fetch_bytes,
                max_wait_ms=request.config.max_wait_ms,
                min_bytes=request.config.fetch_min_bytes,
                fetcher_count=request.config.num_fetchers,
                payload_filter=request.plan.payload_filter,
                read_from=request.config.read_from,
                leader_wait_s=request.config.leader_wait_ms / 1000,
                arrivals=arrivals,
            ) as reader:
                status = consumption.run(reader)
            if status or consumption.has_enough():
                break
    return status


def _arrivals(
    request: Request,
    cluster: Cluster,
    connect: Connect,
    known: Iterable[TopicPartition],
    waiting: Iterable[TopicPartition],
    choose: Callable[[], Sequence[str]],
) -> Arrivals:
    """Return what gives partitions that come later; `choose` returns the topics of the moment."""
    env = request.env

    def find() -> list[TopicPartition]:
        there = [one for topic in choose() for one in cluster.partitions(topic)]
        return [
            one for one in there if request.partitions is None or request.partitions.matches(one)
        ]

    def range_of(partition: TopicPartition, finder: BoundaryFinder) -> ReadRange:
        wanted = request.span.range_for(partition)
        wanted = wanted._replace(start=wanted.start or Mark.LATEST)
        return resolve(wanted, partition, finder, strict=request.strict_offset, warn=env.warn)

    return Arrivals(
        cluster,
        connect,
        find=find,
        known=known,
        waiting=waiting,
        range_of=range_of,
        tell=env.warn,
    )
