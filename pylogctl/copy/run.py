"""Runs `pylogctl copy`: plans the copy, copies, waits until consumers can read it, and verifies."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Annotated

from broker.admin.copies import MAX_IN_FLIGHT, CopyReport, Ranges, place, plan_copy, report_of
from broker.client.cluster import are_same
from broker.client.selection import find_partitions
from broker.client.side import Side
from broker.consumer.cluster_reader import ClusterReader
from broker.errors import BrokerError
from broker.producer.producer import Producer
from broker.producer.settings import DEFAULT_DELIVERY_TIMEOUT_S, ProducerSettings
from broker.tools.copying import Copied, Copy, CopyLimits
from broker.tools.mirror_producer import MirroredSet, MirrorProducer
from broker.topic import TopicPartition, validate_topic_name
from broker.units import Pacer, Rate, count_text, format_size, parse_rate
from pylogctl.cli.columns import Bytes, Document, Flag, Integer, Rank, Row, Text
from pylogctl.cli.connections import Absence, open_side
from pylogctl.cli.decoding import carried_schemas
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.failures import CorruptMessages, OnCorrupt
from pylogctl.cli.offsets import make_span, resolve_ranges, total_bytes
from pylogctl.cli.process import StopRequest, graceful_stop
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.copy.options import CopyChoice
from pylogctl.produce.broker_loss import BrokerWaits
from pylogctl.produce.readback import SentSets
from pylogctl.produce.sender import Confirmed, MessageBatch, explained, pace_text


class CopyRow(Row):
    """What was copied of a partition."""

    source: Annotated[Text, "topic and partition read from"]
    target: Annotated[Text, "topic and partition written to"]
    start: Annotated[Integer, "offset in the source where the copy starts", Rank(3)]
    end: Annotated[Integer, "offset in the source where it ends", Rank(2)]
    next_offset: Annotated[Integer, "offset in the source after what is copied"]
    messages: Annotated[Integer, "messages confirmed in the target"]
    bytes: Annotated[Bytes, "what they take in its log", Rank(1)]
    verified: Annotated[Flag, "all was read back and compared"]


DOCUMENT = Document("copy/1", CopyRow, empty="no partitions")


def copy_rows(report: CopyReport, *, is_verified: bool) -> list[CopyRow]:
    """Return a row for each source partition."""
    return [
        CopyRow(
            str(one.source),
            str(one.target),
            one.start,
            one.end,
            one.next_offset,
            one.message_count,
            one.size_bytes,
            is_verified,
        )
        for one in report.partitions
    ]


def _summary_text(copy: Copy, *, corrupt_count: int, is_verified: bool) -> str:
    """Return the summary of a copy for standard error."""
    ((source, done), *_) = copy.copied.items()
    return (
        f"{count_text(copy.message_count)}, {format_size(copy.size_bytes)} from {source.topic} to "
        f"{done.target.topic} {pace_text(copy.message_count, copy.seconds)}"
        + (f", {corrupt_count} corrupt" if corrupt_count else "")
        + ("; all read back and compared" if is_verified else "")
    )


_TIMEOUT_S = 30.0


def producer_of_sets(env: Environment, side: Side) -> Producer:
    """Return a producer for the message sets of another log, which are sent as they are."""
    return Producer(
        side.cluster,
        side.connect,
        ProducerSettings(
            delivery_timeout_s=env.timeout_s(DEFAULT_DELIVERY_TIMEOUT_S),
            max_in_flight=MAX_IN_FLIGHT,
            timeout_s=min(env.timeout_s(_TIMEOUT_S), _TIMEOUT_S),
            creates_topics=not env.settings.dry_run,
        ),
    )


def run(
    env: Environment,
    source_env: Environment,
    target_env: Environment,
    source_topic: str,
    target_topic: str,
    choice: CopyChoice,
) -> ExitStatus:
    """Copy a topic, of one cluster or to another one.

    Returns the status of a signal that ended it; PARTIAL if corrupt messages were left out; else
    OK.
    """
    span = make_span(env, choice.offset or [], from_beginning=False, exit_at_end=True)
    rate = None if choice.rate is None else parse_rate(choice.rate)
    validate_topic_name(target_topic)
    with ExitStack() as stack:
        source = stack.enter_context(open_side(source_env, is_stream=True))
        target = stack.enter_context(open_side(target_env, absence=Absence.WARN, is_stream=True))
        partitions = find_partitions(source.cluster, [source_topic])
        is_one = are_same(source.cluster, target.cluster)
        if source_topic == target_topic and is_one:
            raise UsageError(f"cannot copy topic '{source_topic}' to itself")
        ranges = resolve_ranges(
            env,
            source,
            partitions,
            span,
            strict=choice.strict_offset,
            on_missing=env.warn if choice.allow_missing else None,
        )
        placement = place(
            sorted([*partitions.led, *partitions.away]),
            target._replace(timeout_s=env.timeout_s(_TIMEOUT_S)),
            target_topic,
            keeps_names=choice.keep_partition,
            is_dry_run=env.settings.dry_run,
        )
        copied = plan_copy(ranges, placement)
        if not is_one:
            carried_schemas(env, source, target, [source_topic], is_wanted=choice.schemas)
        if env.settings.dry_run:
            render(env, DOCUMENT, copy_rows(report_of(ranges, copied), is_verified=False))
            env.note("nothing was copied")
            return ExitStatus.OK
        stop = stack.enter_context(graceful_stop())
        is_verified, corrupt_count = _copy(env, source, target, choice, rate, ranges, copied, stop)
    if env.settings.output is not None:
        render(env, DOCUMENT, copy_rows(report_of(ranges, copied), is_verified=is_verified))
    if corrupt_count and not stop.is_set:
        return ExitStatus.PARTIAL
    return stop.status


def _copy(
    env: Environment,
    source: Side,
    target: Side,
    choice: CopyChoice,
    rate: Rate | None,
    ranges: Ranges,
    copied: dict[TopicPartition, Copied],
    stop: StopRequest,
) -> tuple[bool, int]:
    """Copy; return whether all was verified, and the number of corrupt messages."""
    limit_s = env.timeout_s(_TIMEOUT_S)
    waits = BrokerWaits(stop, env.warn)
    pacer = None if rate is None else Pacer(rate, env.clock, stop.wait)
    target_producer = producer_of_sets(env, target)
    target_producer.watch(waits.on_wait)
    producer = MirrorProducer(target_producer)
    corrupt = CorruptMessages(env, OnCorrupt(choice.on_corrupt))
    sent_sets = SentSets() if choice.verify else None

    def note(confirmed: MirroredSet, base_offset: int) -> None:
        assert sent_sets is not None
        numbers = range(copy.message_count + 1, copy.message_count + 1 + confirmed.message_count)
        batch = MessageBatch(confirmed.target, confirmed.message_set, numbers)
        sent_sets.note(Confirmed(batch, base_offset, confirmed.message_set))

    with ExitStack() as stack:
        stack.callback(producer.close)
        meter = stack.enter_context(progress(env, "copy", total_bytes(ranges)))
        reader = stack.enter_context(ClusterReader(source.cluster, source.connect, ranges))
        copy = Copy(
            producer,
            copied,
            CopyLimits(choice.max_messages, pacer),
            lambda: stop.is_set,
            meter.advance,
            corrupt.pass_over,
            None if sent_sets is None else note,
        )
        try:
            copy.run(reader)
        except BrokerError as error:
            if not copy.has_failed:
                raise
            raise _target_failure(copy, error) from error
    is_verified = sent_sets is not None and not stop.is_set
    if sent_sets is not None and is_verified:
        sent_sets.verify(target.cluster, target.connect, timeout_s=limit_s)
    env.note(_summary_text(copy, corrupt_count=corrupt.count, is_verified=is_verified))
    if stop.is_set:
        env.note(f"interrupted; {_resume_hint(copied)}")
    return is_verified, corrupt.count


def _target_failure(copy: Copy, error: BrokerError) -> CliError:
    """Return the failure of the target, with how much it has confirmed."""
    text = f"{count_text(copy.message_count)} confirmed in the target"
    return explained(error, text, [_resume_hint(copy.copied)], confirmed=copy.message_count)


def _resume_hint(copied: Mapping[TopicPartition, Copied]) -> str:
    """Return the option that copies the rest."""
    starts = ",".join(f"{one.name}={done.next_offset}" for one, done in copied.items())
    return f"to copy the rest: -o {starts}"
