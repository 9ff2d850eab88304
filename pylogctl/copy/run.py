"""Runs `pylogctl copy`: plans the copy, copies, waits until consumers can read it, and verifies."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated

from broker.client.cluster import with_assigned
from broker.client.selection import select_partitions
from broker.consumer.cluster_reader import ClusterReader
from broker.producer.producer import DEFAULT_DELIVERY_TIMEOUT_S, Producer
from broker.tools.mirror_producer import MirrorProducer
from broker.tools.mirror_routes import (
    counts_by_name,
    counts_like,
    create_topic,
    place_by_name,
    place_by_order,
)
from broker.topic import ReadRange, TopicPartition, validate_topic_name
from broker.units import Pacer, Rate, count_text, format_count, format_duration, format_size
from pylogctl.cli.columns import Bytes, Document, Flag, Integer, Row, Text
from pylogctl.cli.connections import Absence, Side, are_same, open_side
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.failures import CorruptMessages, OnCorrupt
from pylogctl.cli.offset_resolution import resolve_ranges, total_bytes
from pylogctl.cli.offsets import Span
from pylogctl.cli.process import StopRequest, graceful_stop
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.copy.copying import Copied, Copy, Limits
from pylogctl.produce.broker_loss import BrokerWaits
from pylogctl.produce.readback import SentSets


class CopyRow(Row):
    """What was copied of a partition."""

    source: Annotated[Text, "topic and partition read from"]
    target: Annotated[Text, "topic and partition written to"]
    start: Annotated[Integer, "offset in the source where the copy starts"]
    end: Annotated[Integer, "offset in the source where it ends"]
    next_offset: Annotated[Integer, "offset in the source after what is copied"]
    messages: Annotated[Integer, "messages confirmed in the target"]
    bytes: Annotated[Bytes, "what they take in its log"]
    verified: Annotated[Flag, "all was read back and compared"]


DOCUMENT = Document("copy/1", CopyRow, empty="no partitions")


def copy_rows(
    ranges: Mapping[TopicPartition, ReadRange],
    copied: Mapping[TopicPartition, Copied],
    *,
    is_verified: bool,
) -> list[CopyRow]:
    """Return a row for each source partition."""
    return [
        CopyRow(
            str(source),
            str(done.target),
            ranges[source].start.offset,
            None if (end := ranges[source].end) is None else end.offset,
            done.next_offset,
            done.message_count,
            done.size_bytes,
            is_verified,
        )
        for source, done in copied.items()
    ]


def summary_text(copy: Copy, source: str, target: str, *, is_verified: bool) -> str:
    """Return the summary of a copy for standard error."""
    rate = format_count(copy.message_count / max(copy.seconds, 1e-9))
    return (
        f"{count_text(copy.message_count)}, {format_size(copy.size_bytes)} from {source} to "
        f"{target} in {format_duration(copy.seconds)} ({rate} msg/s)"
        + (f", {copy.corrupt.count} corrupt" if copy.corrupt.count else "")
        + ("; all read back and compared" if is_verified else "")
    )


_TIMEOUT_S = 30.0
_MAX_IN_FLIGHT = 8  # keeps a broker busy; at an error, so many sets may be written unconfirmed

Ranges = Mapping[TopicPartition, ReadRange]
Placement = Mapping[TopicPartition, TopicPartition]


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """The options of a copy; None for no limit."""

    source: str
    target: str
    span: Span
    max_messages: int | None
    keeps_names: bool  # to partitions of the same name; else of the same index in order
    rate: Rate | None
    on_corrupt: OnCorrupt
    is_verified: bool  # everything is read back and compared
    is_strict: bool  # an offset out of range is an error


def run(
    env: Environment, source_env: Environment, target_env: Environment, plan: CopyPlan
) -> ExitStatus:
    """Copy as planned.

    Returns the status of a signal that ended it; PARTIAL if corrupt messages were left out; else
    OK.
    """
    validate_topic_name(plan.target)
    with ExitStack() as stack:
        stop = stack.enter_context(graceful_stop())
        source = stack.enter_context(open_side(source_env, is_stream=True))
        target = stack.enter_context(open_side(target_env, absence=Absence.WARN, is_stream=True))
        partitions = select_partitions(source.cluster, [plan.source])
        if plan.source == plan.target and are_same(source, target):
            raise UsageError(f"cannot copy topic '{plan.source}' to itself")
        ranges = resolve_ranges(env, source, partitions, plan.span, strict=plan.is_strict)
        placement = _place(env, partitions, target, plan)
        copied = {one: Copied(placement[one], ranges[one].start.offset) for one in partitions}
        if env.settings.dry_run:
            render(env, DOCUMENT, copy_rows(ranges, copied, is_verified=False))
            env.note("nothing was copied")
            return ExitStatus.OK
        is_verified, corrupt_count = _copy(env, source, target, plan, ranges, copied, stop)
    if env.settings.output is not None:
        render(env, DOCUMENT, copy_rows(ranges, copied, is_verified=is_verified))
    if corrupt_count and not stop.is_set:
        return ExitStatus.PARTIAL
    return stop.status


def _place(
    env: Environment, sources: list[TopicPartition], target: Side, plan: CopyPlan
) -> Placement:
    """Return the target of each source partition; create the target topic if it is missing."""
    there = target.cluster.partitions(plan.target)
    targets = with_assigned(target.cluster, plan.target, there)
    if not targets:
        broker_ids = [broker.id for broker in target.cluster.brokers()]
        counts = counts_by_name(sources) if plan.keeps_names else counts_like(sources, broker_ids)
        if env.settings.dry_run:
            targets = [
                TopicPartition(plan.target, h, i) for h, n in counts.items() for i in range(n)
            ]
        else:
            targets = create_topic(
                target.cluster,
                target.connect,
                plan.target,
                counts,
                timeout_s=env.timeout_s(_TIMEOUT_S),
            )
    return (place_by_name if plan.keeps_names else place_by_order)(sources, targets)


def _copy(
    env: Environment,
    source: Side,
    target: Side,
    plan: CopyPlan,
    ranges: Ranges,
    copied: dict[TopicPartition, Copied],
    stop: StopRequest,
) -> tuple[bool, int]:
    """Copy; return whether all was verified, and the number of corrupt messages."""
    limit_s = env.timeout_s(_TIMEOUT_S)
    waits = BrokerWaits(stop, env.warn)
    pacer = None if plan.rate is None else Pacer(plan.rate, env.clock, stop.wait)
    target_producer = Producer(
        target.cluster,
        target.connect,
        delivery_timeout_s=env.timeout_s(DEFAULT_DELIVERY_TIMEOUT_S),
        max_in_flight=_MAX_IN_FLIGHT,
        timeout_s=min(limit_s, _TIMEOUT_S),
    )
    target_producer.watch(waits.on_wait)
    producer = MirrorProducer(target_producer)
    with ExitStack() as stack:
        stack.callback(producer.close)
        meter = stack.enter_context(progress(env, "copy", total_bytes(ranges)))
        reader = stack.enter_context(ClusterReader(source.cluster, source.connect, ranges))
        copy = Copy(
            producer,
            copied,
            Limits(plan.max_messages, pacer),
            lambda: stop.is_set,
            meter.advance,
            CorruptMessages(env, plan.on_corrupt),
            SentSets() if plan.is_verified else None,
        )
        copy.run(reader)
    is_verified = copy.sent_sets is not None and not stop.is_set
    if copy.sent_sets is not None and is_verified:
        copy.sent_sets.verify(target.cluster, target.connect, timeout_s=limit_s)
    env.note(summary_text(copy, plan.source, plan.target, is_verified=is_verified))
    if stop.is_set:
        env.note(f"interrupted; {copy.resume_hint()}")
    return is_verified, copy.corrupt.count
