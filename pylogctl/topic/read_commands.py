"""The commands of `pylogctl topic` that look into partitions: offsets and messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pylogctl.cli.connections import connector, open_cluster
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.options import CONNECTION, OUTPUT, PROGRESS, accepts
from pylogctl.cli.progress import progress
from pylogctl.cli.render import Record, render
from pylogctl.cli.targets import Done, check_done, for_each
from pylogctl.cli.units import format_time
from pylogctl.format.message_format import PAYLOAD_TEXTS, PayloadOption

if TYPE_CHECKING:
    from broker.client.cluster import Cluster
    from broker.topic import TopicPartition
    from pylogctl.cli.connections import Side
    from pylogctl.cli.offset_resolution import ResolvedRange
    from pylogctl.cli.offsets import Span
    from pylogctl.cli.selection import PartitionList
    from pylogctl.topic.facts import TopicFacts

READS = (
    ExitStatus.PARTIAL,
    ExitStatus.TIMEOUT,
    ExitStatus.UNREACHABLE,
    ExitStatus.REMOTE,
)

Topics = Annotated[
    list[str], typer.Argument(metavar="TOPIC...", help="Topics.", show_default=False)
]
PartitionOption = Annotated[
    str | None,
    typer.Option(
        "-p",
        "--partition",
        metavar="LIST",
        help="Partitions: 0, 2-0, *-0, 0,1 or 0..3. Default: all.",
        rich_help_panel="Selection",
    ),
]
OffsetOption = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--offset",
        metavar="SPEC",
        help="From where to where, START or START:END. Default: start:end.",
        rich_help_panel="Selection",
    ),
]
StrictOffset = Annotated[
    bool, typer.Option("--strict-offset", help="An offset out of range is an error, not moved.")
]


@contextmanager
def open_facts(env: Environment) -> Iterator[tuple[Cluster, TopicFacts]]:
    """Open the way to topics and what is known of them."""
    from pylogctl.topic.facts import TopicFacts

    connect = connector(env)
    with open_cluster(env) as cluster, TopicFacts(cluster, connect) as facts:
        yield cluster, facts


def broker_failures(facts: TopicFacts, partitions: Iterable[TopicPartition]) -> Done:
    """Return which of the brokers of some partitions have failed to answer."""
    return Done(facts.failures, len({partition.home for partition in partitions}), "brokers")


@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=(*READS, ExitStatus.NOT_FOUND, ExitStatus.CORRUPT),
    examples=(
        "pylogctl topic offsets syslog",
        "pylogctl topic offsets syslog --at -100",
        "pylogctl topic offsets syslog --at @-1h:end -p 0 --columns start --no-header",
    ),
)
def offsets(
    env: Environment,
    topics: Topics,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="SPEC",
            help="Offset expression, START or START:END. Default: start:end.",
            rich_help_panel="Selection",
        ),
    ] = None,
    partition: PartitionOption = None,
    strict_offset: StrictOffset = False,
) -> None:
    """Find the offsets that an expression means in each partition now.

    By time they are as precise as segments are: at most one segment too early.
    """
    from pylogctl.cli.offset_resolution import resolve
    from pylogctl.cli.offsets import ByTime, Mark, OffsetRange, make_span
    from pylogctl.cli.selection import parse_partition_list, select_partitions, select_topics
    from pylogctl.topic.document import OFFSETS, offsets_record

    span = make_span(env, at or [], from_beginning=False, exit_at_end=False)
    wanted = None if partition is None else parse_partition_list(partition)
    with open_facts(env) as (cluster, facts):

        def resolve_one(topic: str) -> list[Record]:
            records: list[Record] = []
            for one in select_partitions(cluster, select_topics(cluster, [topic]), wanted):
                # A side that is not given is that of the whole log.
                start, end = span.range_for(one)
                whole = OffsetRange(start or Mark.EARLIEST, end or Mark.LATEST)
                found = resolve(whole, one, facts.positions, strict=strict_offset)
                for warning in found.warnings:
                    env.warn(warning)
                for side in (start, end):
                    if isinstance(side, ByTime):
                        env.trace(1, f"{one}: looked up {format_time(side.time_ms)}")
                records.append(offsets_record(one, found))
            return records

        found, done = for_each(env, "topics", topics, resolve_one)
        render(env, OFFSETS, [record for records in found for record in records])
        check_done(env, done)


@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=(*READS, ExitStatus.NOT_FOUND),
    examples=(
        "pylogctl topic watermarks syslog",
        "pylogctl topic watermarks syslog orders --output jsonl",
    ),
)
def watermarks(env: Environment, topics: Topics, partition: PartitionOption = None) -> None:
    """Show the offsets that bound each partition: log start, high watermark, log end.

    Between the high watermark and the log end lies what is written but not flushed, so that nobody
    can read it yet. A broker that does not answer leaves gaps and makes the exit status 6.
    """
    from pylogctl.cli.selection import parse_partition_list, select_partitions, select_topics
    from pylogctl.topic.document import WATERMARKS, watermarks_record

    wanted = None if partition is None else parse_partition_list(partition)
    with open_facts(env) as (cluster, facts):

        def look(topic: str) -> list[TopicPartition]:
            return select_partitions(cluster, select_topics(cluster, [topic]), wanted)

        found, done = for_each(env, "topics", topics, look)
        asked = [one for partitions in found for one in partitions]
        records = [watermarks_record(one, facts.watermarks(one)) for one in asked]
        facts.check_any_answer(asked)
        render(env, WATERMARKS, records)
        check_done(env, done, broker_failures(facts, asked))


@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=(*READS, ExitStatus.NOT_FOUND, ExitStatus.CORRUPT),
    examples=(
        "pylogctl topic sample syslog",
        "pylogctl topic sample syslog -n 20 --random -o @-1h",
        "pylogctl topic sample frames -p 0 --payload hex --output jsonl",
    ),
)
def sample(
    env: Environment,
    topics: Topics,
    max_messages: Annotated[
        int,
        typer.Option(
            "-n",
            "--max-messages",
            metavar="N",
            min=1,
            help="Messages of each partition.",
            rich_help_panel="Limits",
        ),
    ] = 5,
    offset: OffsetOption = None,
    partition: PartitionOption = None,
    by_chance: Annotated[
        bool,
        typer.Option(
            "--random",
            help="Choose them by chance, not evenly spaced.",
            rich_help_panel="Selection",
        ),
    ] = False,
    payload: PayloadOption = "utf8",
    strict_offset: StrictOffset = False,
) -> None:
    """Show a few messages of each partition, with their offsets.

    They are evenly spaced, beginning with the first one, or chosen by chance. Of more than 1 MiB
    only the chosen messages are read, by their place: a large one is likelier than a small one.
    """
    from random import Random

    from broker.consumer.list_offsets import Positions
    from pylogctl.cli.connections import open_side
    from pylogctl.topic.document import SAMPLE, sample_record
    from pylogctl.topic.sampling import Sampler

    choice = _chosen(env, offset, partition, is_strict=strict_offset)
    chance = Random() if by_chance else None
    with open_side(env) as side, Positions(side.cluster, side.connect) as positions:

        def sample_one(topic: str) -> list[Record]:
            return [
                sample_record(message, PAYLOAD_TEXTS[payload])
                for one, found in _ranges(env, side, topic, choice).items()
                for message in Sampler(positions, one, chance).sample(found, max_messages)
            ]

        sampled, done = for_each(env, "topics", topics, sample_one)
        render(env, SAMPLE, [record for records in sampled for record in records])
        check_done(env, done)


@accepts(
    *OUTPUT,
    *CONNECTION,
    *PROGRESS,
    exits=(*READS, ExitStatus.NOT_FOUND, ExitStatus.CORRUPT),
    examples=(
        "pylogctl topic count syslog",
        "pylogctl topic count syslog -o @-1h -p 0",
        "pylogctl topic count syslog orders --output csv",
    ),
)
def count(
    env: Environment,
    topics: Topics,
    offset: OffsetOption = None,
    partition: PartitionOption = None,
    strict_offset: StrictOffset = False,
) -> None:
    """Count the messages of each partition, by reading all of them.

    Messages inside compressed sets are counted one by one. The last line is the total.
    """
    from pylogctl.cli.connections import open_side
    from pylogctl.cli.offset_resolution import total_bytes
    from pylogctl.consume.reading import count_messages
    from pylogctl.topic.document import COUNT, count_record, count_total

    choice = _chosen(env, offset, partition, is_strict=strict_offset)
    with open_side(env) as side:

        def count_one(topic: str) -> list[dict[str, Any]]:
            ranges = _ranges(env, side, topic, choice)
            with progress(env, f"count {topic}", total_bytes(ranges)) as meter:
                counts = count_messages(side.cluster, side.connect, ranges, meter.advance)
            return [count_record(one, ranges[one], counts[one]) for one in ranges]

        counted, done = for_each(env, "topics", topics, count_one)
        records = [record for of_topic in counted for record in of_topic]
        render(env, COUNT, records, total=count_total(records) if len(records) > 1 else None)
        check_done(env, done)


class _Choice(NamedTuple):
    """What to read of each topic."""

    span: Span
    partitions: PartitionList | None
    is_strict: bool


def _chosen(
    env: Environment, offset: list[str] | None, partition: str | None, *, is_strict: bool
) -> _Choice:
    from pylogctl.cli.offsets import make_span
    from pylogctl.cli.selection import parse_partition_list

    span = make_span(env, offset or [], from_beginning=False, exit_at_end=True)
    wanted = None if partition is None else parse_partition_list(partition)
    return _Choice(span, wanted, is_strict)


def _ranges(
    env: Environment, side: Side, topic: str, choice: _Choice
) -> dict[TopicPartition, ResolvedRange]:
    from pylogctl.cli.offset_resolution import resolve_ranges
    from pylogctl.cli.selection import select_partitions, select_topics

    there = select_partitions(side.cluster, select_topics(side.cluster, [topic]), choice.partitions)
    return resolve_ranges(env, side, there, choice.span, strict=choice.is_strict)
