"""The commands of `pylogctl topic` that only read: they ask brokers and render."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from broker.admin.topics import PartitionInfo, TopicFacts, brokers_of_07, count_messages
from broker.client.selection import find_partitions
from broker.client.side import Side
from broker.consumer.boundaries import BoundaryFinder
from broker.partition_patterns import PartitionList
from broker.positions import ByTime
from broker.protocol.message_set import Message
from broker.topic import ReadRange, TopicPartition
from broker.units import format_time
from pylogctl.cli.columns import Document
from pylogctl.cli.connections import open_for_requests, open_side
from pylogctl.cli.decoding import Decoding, check_decode, decoder_of
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.failures import Done, for_each, raise_failures
from pylogctl.cli.offsets import Span, resolve_ranges, total_bytes
from pylogctl.cli.options import DecodeChoice, PayloadForm
from pylogctl.cli.progress import progress
from pylogctl.cli.render import chosen_columns, render
from pylogctl.format.envelope import facts_of
from pylogctl.format.message_format import PAYLOAD_TEXTS
from pylogctl.topic import document


@contextmanager
def _open_facts(env: Environment) -> Iterator[tuple[Side, TopicFacts]]:
    with open_for_requests(env) as side, TopicFacts(side) as facts:
        yield side, facts


def _failures(facts: TopicFacts, partitions: Sequence[TopicPartition]) -> tuple[Done, Done]:
    """Return which brokers failed to respond, and which partitions they cannot read."""
    return (
        Done(facts.failures, len(facts.brokers_of(partitions)), "brokers"),
        Done(facts.unreadable, len(partitions), "partitions"),
    )


def list_topics(env: Environment, selects: Callable[[str], bool], *, with_count: bool) -> None:
    """Render topics and their sizes; names alone are rendered without asking brokers."""
    columns = document.LIST_WITH_COUNT if with_count else document.LIST
    with _open_facts(env) as (side, facts):
        names = [name for name in _known_topics(env, side) if selects(name)]
        if _shows_names_only(env, columns):
            render(env, columns, [{"name": name} for name in names])
            return
        known = facts.metadata(names)
        partitions = {name: known.get(name, ()) for name in names}
        found, ends = facts.summaries(partitions)
        counts = {}
        if with_count:
            with progress(env, "count", sum(one.size_bytes or 0 for one in found)) as meter:
                counts = {
                    one.name: facts.count_messages(
                        {p.partition: ends[p.partition] for p in partitions[one.name]},
                        meter.advance,
                    )
                    for one in found
                    if one.size_bytes is not None
                }
        asked = [one.partition for some in partitions.values() for one in some]
        facts.check_any_response(asked)
        rows = [document.topic_row(one, counts.get(one.name)) for one in found]
        render(env, columns, rows)
        raise_failures(env, *_failures(facts, asked))


def _shows_names_only(env: Environment, columns: Document) -> bool:
    first = chosen_columns(columns, env.settings.columns)[0].name
    return env.output == "name" and first == "name" and not env.settings.sort


def _known_topics(env: Environment, side: Side) -> list[str]:
    """Return all topics; warn of brokers given by address that cannot list theirs."""
    if env.settings.brokers:
        without_list = brokers_of_07(side)
        text = "broker {0.id} at {0.host}:{0.port} speaks only Kafka 0.7 and cannot list its topics"
        if without_list and len(without_list) == len(side.brokers()):
            raise CliError(
                ExitStatus.UNSUPPORTED,
                text.format(without_list[0]),
                "with --zookeeper instead of --broker, topics are listed from ZooKeeper",
            )
        for broker in without_list:
            env.warn(text.format(broker))
    return side.cluster.topics()


def describe(env: Environment, topics: Iterable[str]) -> None:
    """Render the partitions of topics, and the settings of topics with replicas."""
    now_ms = env.clock.time_ms()
    with _open_facts(env) as (_, facts):
        topics = list(topics)
        known = facts.metadata(topics)

        def describe_one(topic: str) -> list[PartitionInfo]:
            return facts.describe_topic(topic, known, now_ms=now_ms)

        described, done = for_each(env, "topics", topics, describe_one)
        found = [one for partitions in described for one in partitions]
        asked = [one.partition for one in found]
        if all(one.leader_epoch is None for one in found):
            facts.check_any_response(asked)
        render(env, document.DESCRIBE, map(document.partition_row, found))
        _note_settings(env, found)
        raise_failures(env, done, *_failures(facts, asked))


def _note_settings(env: Environment, described: Iterable[PartitionInfo]) -> None:
    """Write a note of the settings of topics; documents for programs have them in each record."""
    settings = {one.partition.topic: one.settings for one in described}
    for topic, of_topic in settings.items():
        if of_topic:
            shown = ", ".join(f"{name}={value}" for name, value in sorted(of_topic.items()))
            env.note(f"settings of topic '{topic}': {shown}")


class Wanted(NamedTuple):
    """The ranges of topics that a command is about."""

    span: Span
    partitions: PartitionList | None = None
    is_strict: bool = False  # an offset out of range is an error
    allow_missing: bool = False  # partitions that cannot be read are left out


def list_offsets(env: Environment, topics: Iterable[str], wanted: Wanted) -> None:
    """Render the offsets that the span means in each partition."""
    with open_side(env) as side:

        def resolve_one(topic: str) -> list[document.OffsetsRow]:
            found, missing = _ranges(env, side, topic, wanted)
            for one in found:
                for bound in wanted.span.range_for(one):
                    if isinstance(bound, ByTime):
                        env.trace(1, f"{one}: listed offsets at {format_time(bound.time_ms)}")
            return [document.offsets_row(one, found.get(one)) for one in sorted([*found, *missing])]

        found, done = for_each(env, "topics", topics, resolve_one)
        render(env, document.OFFSETS, [row for rows in found for row in rows])
        raise_failures(env, done)


def sample(
    env: Environment,
    topics: Iterable[str],
    wanted: Wanted,
    message_count: int,
    form: PayloadForm,
    choice: DecodeChoice,
) -> None:
    """Render some messages of each partition, with payloads in this form, or decoded."""
    from broker.admin.sampling import Sampler  # late: other commands read no messages

    check_decode(choice, takes_plugins=True)
    show_payload = PAYLOAD_TEXTS[form]
    with open_side(env) as side, BoundaryFinder(side.cluster, side.connect) as positions:
        decoding = None if choice.decode is None else Decoding(env, decoder_of(choice, side))

        def row_of(partition: TopicPartition, message: Message) -> document.SampleRow:
            facts = facts_of(partition, message)
            if decoding is not None:
                shown = decoding.payload(partition, facts.offset, facts.payload)
                facts = facts if shown is None else facts._replace(payload=shown)
            return document.sample_row(facts, show_payload)

        def sample_one(topic: str) -> list[document.SampleRow]:
            ranges, _ = _ranges(env, side, topic, wanted)
            return [
                row_of(one, message)
                for one, found in ranges.items()
                for message in Sampler(positions, one).sample(found, message_count)
            ]

        sampled, done = for_each(env, "topics", topics, sample_one)
        render(env, document.SAMPLE, [row for rows in sampled for row in rows])
        if decoding is not None:
            decoding.report()
        raise_failures(env, done)


def count(env: Environment, topics: Iterable[str], wanted: Wanted) -> None:
    """Render the number of messages in each partition; no total if one is not known."""
    with open_side(env) as side:

        def count_one(topic: str) -> list[document.CountRow]:
            ranges, missing = _ranges(env, side, topic, wanted)
            with progress(env, f"count {topic}", total_bytes(ranges)) as meter:
                counts = count_messages(side, ranges, meter.advance)
            return [
                document.count_row(one, ranges.get(one), counts.get(one))
                for one in sorted([*ranges, *missing])
            ]

        counted, done = for_each(env, "topics", topics, count_one)
        rows = [row for of_topic in counted for row in of_topic]
        total = document.count_total(rows) if len(rows) > 1 else None
        render(env, document.COUNT, rows, total=total)
        raise_failures(env, done)


def _ranges(
    env: Environment, side: Side, topic: str, wanted: Wanted
) -> tuple[dict[TopicPartition, ReadRange], set[TopicPartition]]:
    """Return the ranges of partitions, and the partitions that cannot be read."""
    selected = find_partitions(side.cluster, [topic], wanted.partitions)
    ranges = resolve_ranges(
        env,
        side,
        selected,
        wanted.span,
        strict=wanted.is_strict,
        on_missing=env.warn if wanted.allow_missing else env.leave_out,
    )
    return ranges, {*selected.led, *selected.away} - ranges.keys()
