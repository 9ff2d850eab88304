"""One run of `pylogctl mirror run`: a service that mirrors until a signal ends it."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from broker.client.cluster import locked
from broker.client.counts import ClientCounts
from broker.client.registry_cluster import RegistryCluster
from broker.client.side import Side
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.errors import BrokerError, InvalidMessageError
from broker.metrics_server import served_metrics
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings
from broker.tools.mirror import Mirror, Route, RouteLog
from broker.tools.schemas import carry_schemas, client_of
from broker.units import count_text, counted, format_duration, format_size, format_time
from pylogctl.cli import connections
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.decoding import carried_schemas
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.logs import set_up_logging
from pylogctl.cli.process import graceful_stop
from pylogctl.cli.render import render
from pylogctl.cli.security import zookeeper_properties
from pylogctl.mirror.document import SUMMARY, SummaryRow
from pylogctl.mirror.errors import published_errors
from pylogctl.mirror.facing import Presence, registry_of
from pylogctl.mirror.metrics import LagTimes, exposition, source_ends
from pylogctl.mirror.options import RunChoice
from pylogctl.mirror.plan import MirrorSelection, check_no_loop, make_selection, show_plan

logger = logging.getLogger(__name__)
_CONNECT_TIMEOUT_S = 2.0
_PRODUCE_TIMEOUT_S = 30.0
_DRAIN_S = 10.0
_SCRAPE_TIMEOUT_S = 2.0
_MAX_IN_FLIGHT = 8
_STREAM_TIMEOUT_MS = 200
_COMMIT_INTERVAL_MS = 1000
_SCHEMAS_EVERY_S = 10.0


def consumer_config(env: Environment, group: str) -> ConsumerConfig:
    """Return the settings of a mirror's consumer; properties override a mirror's defaults."""
    defaults = {
        "autocommit.interval.ms": str(_COMMIT_INTERVAL_MS),
        "autooffset.outofrange.reset": "smallest",  # a start at the largest is for new partitions
    }
    config = ConsumerConfig.from_properties(
        defaults, env.settings.properties, zookeeper_properties(env)
    )
    # a mirror depends on these
    return replace(
        config,
        group=group,
        zookeeper=env.zookeeper,
        auto_commit=True,
        consumer_timeout_ms=_STREAM_TIMEOUT_MS,
    )


def run(
    env: Environment, source_env: Environment, target_env: Environment, choice: RunChoice
) -> ExitStatus:
    """Mirror until a signal asks to stop, then complete the requests in flight.

    With `--dry-run` only the plan is shown. Returns PARTIAL if corrupt messages were left out, else
    OK.

    Args:
        env: for output.
        source_env: names the registry of the cluster to read from.
        target_env: names the cluster to write to.
        choice: what to mirror, and how.
    """
    patterns, group = choice.patterns, choice.group
    selection = make_selection(patterns.include, patterns.exclude, choice.topic_map or [])
    config = consumer_config(source_env, group)
    if env.settings.dry_run:
        show_plan(env, source_env, target_env, selection)
        return ExitStatus.OK
    where = f"{connections.cluster_name(source_env)} to {connections.cluster_name(target_env)}"
    with ExitStack() as stack:
        registry = stack.enter_context(connections.open_registry(source_env))
        connect = connections.stream_connector(source_env)
        source = Side(RegistryCluster(registry, connect), connect)
        target = stack.enter_context(
            connections.open_side(target_env, absence=connections.Absence.WARN, is_stream=True)
        )
        is_one = check_no_loop(selection, source, target)
        topics = counted(len(selection.topics(source)), "topic")
        confirm(env, "mirror run", f"mirror {topics} from {where}?")
        set_up_logging(env, None)
        target_cluster = locked(target.cluster)
        sides = source, target._replace(cluster=target_cluster)
        if not is_one:
            carried_schemas(env, *sides, selection.topics(source), is_wanted=choice.schemas)
        target_registry = stack.enter_context(registry_of(target_env, target))
        addresses = [f"{one.host}:{one.port}" for one in target.cluster.brokers()]
        presence = Presence(group, selection, registry, target_registry, addresses)
        presence.claim(env)
        stack.callback(presence.end)
        stop = stack.enter_context(graceful_stop())
        log = RouteLog(env.clock)
        keep: Callable[[], object] = partial(presence.keep, stop.wake)
        if choice.schemas and not is_one:
            keep = _carrying(keep, *sides, selection)
        stack.enter_context(published_errors(registry.session, group, log.routes, keep))
        metrics = None
        counts = ClientCounts()
        if choice.metrics_port is not None:
            figures = partial(_figures, source_env, source, log, LagTimes(), counts)
            metrics = stack.enter_context(served_metrics(figures, choice.metrics_port))
        produce_connect = connections.connector(
            target_env, timeout_s=connections.STREAM_TIMEOUT_S, connect_timeout_s=_CONNECT_TIMEOUT_S
        )
        route = Route(
            source.cluster,
            target_cluster,
            produce_connect,
            selection.rename,
            is_read=lambda topic: is_one and selection.chosen.allows(topic),
        )
        consumer = ConsumerConnector(config, connect=source.connect)
        mirror = Mirror(
            consumer,
            consumer.create_message_streams_by_filter(selection.chosen, choice.streams),
            route,
            partial(
                Producer,
                target_cluster,
                produce_connect,
                ProducerSettings(
                    delivery_timeout_s=math.inf,
                    max_in_flight=_MAX_IN_FLIGHT,
                    timeout_s=target_env.timeout_s(_PRODUCE_TIMEOUT_S),
                ),
                counts=counts,
            ),
            producer_count=choice.producers,
            queue_size=choice.queue,
            drain_s=_DRAIN_S,
            skips_corrupt=choice.on_corrupt == "skip",
            log=log,
        )
        env.note(f"mirroring from {where} in group '{group}'")
        if metrics is not None:
            env.note(f"metrics at {metrics}")
        started_s = time.monotonic()
        try:
            mirror.run(stop.wait)
        except InvalidMessageError as error:
            raise _stopped_at(error, log) from error
        finally:
            _tell(env, group, mirror, time.monotonic() - started_s)
        if presence.failure is not None:
            raise presence.failure
    return ExitStatus.PARTIAL if mirror.corrupt_count else ExitStatus.OK


def _carrying(
    keep: Callable[[], object], source: Side, target: Side, selection: MirrorSelection
) -> Callable[[], None]:
    """Return `keep` with a look now and then for schemas that the target lacks."""
    due_s = time.monotonic() + _SCHEMAS_EVERY_S
    schemas, target_schemas = map(client_of, (source, target))
    known: set[tuple[str, int]] = set()

    def chore() -> None:
        nonlocal due_s
        keep()
        if time.monotonic() < due_s:
            return
        due_s = time.monotonic() + _SCHEMAS_EVERY_S
        try:
            for one in carry_schemas(schemas, target_schemas, selection.topics(source), known):
                logger.info("carried schema %d of '%s'", one.id, one.subject)
        except BrokerError as error:
            logger.error("schemas are not carried, but messages are: %s", error)

    return chore


def _stopped_at(error: InvalidMessageError, log: RouteLog) -> BrokerError | CliError:
    """Return an error with hints if a message of the source is corrupt."""
    if all(route.stuck_at is None for route in log.routes()):
        return error
    return CliError(
        ExitStatus.CORRUPT,
        str(error),
        "--on-corrupt skip leaves out corrupt messages",
        "try: pylogctl log verify on the broker's segment files",
        code="INVALID_MESSAGE",
    )


def _figures(
    source_env: Environment, source: Side, log: RouteLog, times: LagTimes, counts: ClientCounts
) -> str:
    """Return the metrics of a scrape; uses connections of its own to the source's brokers."""
    limited = connections.connector(
        source_env, timeout_s=_SCRAPE_TIMEOUT_S, connect_timeout_s=_SCRAPE_TIMEOUT_S
    )
    routes = log.routes()
    ends = source_ends(source._replace(connect=limited), routes)
    lags_s = times.at(source_env.clock.time_ms(), routes, ends)
    return exposition(routes, ends, lags_s, counts.producers.total())


def _tell(env: Environment, group: str, mirror: Mirror, seconds: float) -> None:
    failed = [route for route in mirror.log.routes() if route.error_ms is not None]
    last = max(failed, key=lambda route: route.error_ms or 0, default=None)
    if env.settings.output is None:
        env.note(
            f"{count_text(mirror.message_count)}, {format_size(mirror.size_bytes)} mirrored in "
            f"{format_duration(seconds)}"
            + (f", {mirror.corrupt_count} corrupt" if mirror.corrupt_count else "")
        )
        if last is not None and last.error_ms is not None:
            env.note(f"last error, of {last.source} at {format_time(last.error_ms)}: {last.error}")
        return
    why, when = (None, None) if last is None else (last.error, last.error_ms)
    sums = mirror.message_count, mirror.size_bytes, round(seconds, 3)
    render(env, SUMMARY, [SummaryRow(group, *sums, why, when, mirror.corrupt_count)])
