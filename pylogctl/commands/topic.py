"""`pylogctl topic`: list, describe and create topics, and find offsets in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pylogctl.connections import REQUEST_TIMEOUT_S, connector, open_cluster
from pylogctl.context import Environment
from pylogctl.errors import CliError
from pylogctl.exit_status import ExitStatus
from pylogctl.options import (
    CONNECTION,
    DRY_RUN,
    OUTPUT,
    PROGRESS,
    REGISTRY,
    TIMEOUT,
    accepts,
)
from pylogctl.progress import progress
from pylogctl.render import Column, Document, Kind, Record, chosen_columns, render
from pylogctl.tree import Command, new_app

if TYPE_CHECKING:
    from broker.client.cluster import Cluster, Connect
    from pylogctl.topic_creation import Creation
    from pylogctl.topic_facts import PartitionFacts, TopicFacts, TopicSummary

app = new_app("List, describe and create topics.")

READS = (
    ExitStatus.PARTIAL,
    ExitStatus.TIMEOUT,
    ExitStatus.UNREACHABLE,
    ExitStatus.REMOTE,
)

LIST = Document(
    "topic.list/1",
    (
        Column("name", "name of the topic"),
        Column("brokers", "ids of the brokers that have partitions of it"),
        Column("partitions", "number of partitions", Kind.INTEGER),
        Column("bytes", "bytes that can be read", Kind.BYTES),
        Column("messages", "number of messages, with --count", Kind.INTEGER, shown=False),
        Column("first", "smallest first offset of its partitions", Kind.INTEGER),
        Column("last", "largest end offset of its partitions", Kind.INTEGER),
    ),
    empty="no topics",
)
DESCRIBE = Document(
    "topic.describe/1",
    (
        Column("topic", "name of the topic"),
        Column("partition", "partition as home broker and index"),
        Column("broker", "id of the broker that serves it", Kind.INTEGER),
        Column("address", "where that broker listens"),
        Column("start", "first offset", Kind.INTEGER),
        Column("end", "offset after the last message that can be read", Kind.INTEGER),
        Column("segments", "number of segment files", Kind.INTEGER),
        Column("bytes", "bytes that can be read", Kind.BYTES),
        Column("last_append", "when something was last written", Kind.TIME),
    ),
    empty="no partitions",
)
CREATE = Document(
    "topic.create/1",
    (
        Column("topic", "name of the topic"),
        Column("broker", "id of the broker", Kind.INTEGER),
        Column("before", "partitions it had there before", Kind.INTEGER),
        Column("partitions", "partitions it has there now", Kind.INTEGER),
        Column("action", "create, created or exists"),
    ),
    empty="nothing to create",
)
OFFSETS = Document(
    "topic.offsets/1",
    (
        Column("topic", "name of the topic"),
        Column("partition", "partition as home broker and index"),
        Column("start", "offset that START means", Kind.INTEGER),
        Column("end", "offset that END means", Kind.INTEGER),
        Column("bytes", "bytes from start to end", Kind.BYTES),
        Column("inner", "messages to skip in the compressed set at start", Kind.INTEGER, False),
        Column("end_inner", "messages to take of the set at end", Kind.INTEGER, False),
    ),
    empty="no partitions",
)

Topics = Annotated[
    list[str], typer.Argument(metavar="TOPIC...", help="Topics.", show_default=False)
]
Hidden = Annotated[list[str] | None, typer.Option(hidden=True)]


@app.command("list", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    *PROGRESS,
    exits=(*READS, ExitStatus.CORRUPT, ExitStatus.UNSUPPORTED),
    examples=(
        "pylogctl topic list",
        "pylogctl topic list --include 'app\\..*' --count",
        "pylogctl topic list --output name | xargs pylogctl topic describe",
    ),
)
def list_topics(
    env: Environment,
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            metavar="RE",
            help="Only topics whose whole name matches (repeatable).",
            rich_help_panel="Selection",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="RE",
            help="Leave out topics whose whole name matches (repeatable).",
            rich_help_panel="Selection",
        ),
    ] = None,
    count: Annotated[
        bool, typer.Option("--count", help="Count messages too, by reading all of them.")
    ] = False,
    whitelist: Hidden = None,
    blacklist: Hidden = None,
) -> None:
    """List topics with their size.

    Sizes and offsets are in bytes. A broker that does not answer leaves gaps and makes the exit
    status 6.
    """
    from pylogctl.selection import compile_patterns

    included = compile_patterns([*(include or []), *(whitelist or [])], "--include")
    excluded = compile_patterns([*(exclude or []), *(blacklist or [])], "--exclude")
    with _facts(env) as (cluster, facts):
        names = [
            name
            for name in _known_topics(env, cluster)
            if (not included or any(p.fullmatch(name) for p in included))
            and not any(p.fullmatch(name) for p in excluded)
        ]
        document = _with_messages(LIST) if count else LIST
        if (
            env.output == "name"
            and chosen_columns(document, env.settings.columns)[0].name == "name"
        ):
            render(env, document, [{"name": name} for name in names])
            return
        summaries = [facts.summary(name) for name in names]
        counts = _message_counts(env, facts, summaries) if count else {}
        records = [_list_record(one, counts.get(one.topic)) for one in summaries]
        if facts.failures and all(one.ends is None for one in summaries):
            raise facts.failures[0]
        render(env, document, records)
        for failure in facts.failures:
            env.complain(str(failure))
        if facts.failures:
            raise typer.Exit(ExitStatus.PARTIAL)


@contextmanager
def _facts(env: Environment) -> Iterator[tuple[Cluster, TopicFacts]]:
    from pylogctl.topic_facts import TopicFacts

    connect = connector(env)
    with open_cluster(env) as cluster, TopicFacts(cluster, connect) as facts:
        yield cluster, facts


def _with_messages(document: Document) -> Document:
    columns = tuple(c._replace(shown=c.shown or c.name == "messages") for c in document.columns)
    return document._replace(columns=columns)


def _known_topics(env: Environment, cluster: Cluster) -> list[str]:
    """Return the topics; with static brokers, say which of them cannot tell theirs."""
    if env.settings.brokers:
        from pylogctl.topic_facts import brokers_of_07

        mute = brokers_of_07(cluster, connector(env))
        text = "broker {0.id} at {0.host}:{0.port} speaks only Kafka 0.7 and cannot list its topics"
        if mute and len(mute) == len(cluster.brokers()):
            raise CliError(
                ExitStatus.UNSUPPORTED,
                text.format(mute[0]),
                hints=["with --zookeeper, instead of --broker, the registry lists them"],
            )
        for broker in mute:
            env.warn(text.format(broker))
    return cluster.topics()


def _message_counts(
    env: Environment, facts: TopicFacts, summaries: Sequence[TopicSummary]
) -> dict[str, int]:
    total = sum(one.size_bytes or 0 for one in summaries)
    with progress(env, "count", total) as meter:
        return {
            one.topic: facts.count_messages(one.ends, meter.advance)
            for one in summaries
            if one.ends is not None
        }


def _list_record(summary: TopicSummary, message_count: int | None) -> Record:
    ends = list((summary.ends or {}).values())
    return {
        "name": summary.topic,
        "brokers": sorted({partition.home for partition in summary.partitions}),
        "partitions": len(summary.partitions),
        "bytes": summary.size_bytes,
        "messages": message_count,
        "first": min((one.start for one in ends), default=None),
        "last": max((one.end for one in ends), default=None),
    }


@app.command("describe", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=(*READS, ExitStatus.NOT_FOUND),
    examples=("pylogctl topic describe syslog", "pylogctl topic describe a b --output jsonl"),
)
def describe(env: Environment, topics: Topics) -> None:
    """Show the partitions of topics: broker, offsets, segments, size and age.

    The last append is when the last segment file was written to.
    """
    with _facts(env) as (cluster, facts):
        now_ms = env.clock.time_ms()

        def describe_one(topic: str) -> list[Record]:
            from pylogctl.selection import select_partitions

            _check_name(topic)
            partitions = select_partitions(cluster, [topic])
            return [_describe_record(facts.describe(one, now_ms=now_ms)) for one in partitions]

        records, status = _for_each(env, topics, describe_one)
        render(env, DESCRIBE, records)
    raise typer.Exit(status)


def _describe_record(facts: PartitionFacts) -> Record:
    return {
        "topic": facts.partition.topic,
        "partition": facts.partition.name,
        "broker": facts.leader.id,
        "address": f"{facts.leader.host}:{facts.leader.port}",
        "start": facts.ends.start,
        "end": facts.ends.end,
        "segments": facts.segment_count,
        "bytes": facts.ends.end - facts.ends.start,
        "last_append": facts.last_append_ms,
    }


def _check_name(topic: str) -> None:
    from broker.topic import check_topic_name

    check_topic_name(topic)


def _for_each(
    env: Environment, topics: Sequence[str], work: Callable[[str], list[Record]]
) -> tuple[list[Record], ExitStatus]:
    """Return the records of all topics; one that fails is told, and the rest is done.

    The failure of a single topic, or of all of them, is the command's.
    """
    from broker.errors import BrokerError

    records: list[Record] = []
    failures: list[CliError | BrokerError] = []
    chosen = list(dict.fromkeys(topics))
    for topic in chosen:
        try:
            records += work(topic)
        except (CliError, BrokerError) as error:
            failures.append(error)
    final = failures.pop() if len(failures) == len(chosen) else None
    for message in dict.fromkeys(map(str, failures)):
        env.complain(message)
    if final is not None:
        raise final
    return records, ExitStatus.PARTIAL if failures else ExitStatus.OK


@app.command("create", cls=Command)
@accepts(
    *OUTPUT,
    *REGISTRY,
    *TIMEOUT,
    *DRY_RUN,
    exits=(*READS, ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.UNSUPPORTED),
    examples=(
        "pylogctl topic create orders --partitions 4",
        "pylogctl topic create orders --partitions 4 --broker 0 --broker 2 --if-not-exists",
    ),
)
def create(
    env: Environment,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions",
            metavar="N",
            min=1,
            help="Partitions on each broker.",
            show_default=False,
        ),
    ],
    targets: Annotated[
        list[str] | None,
        typer.Option(
            "-b",
            "--broker",
            metavar="ID|HOST:PORT",
            envvar="PYLOGCTL_BROKER",
            rich_help_panel="Connection",
            help="Broker to create it on (repeatable), by id; all live ones without an id. "
            "Addresses are brokers to use instead of the registry.",
        ),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave a topic that exists as it is: exit 0.")
    ] = False,
) -> None:
    """Create a topic with a number of partitions on each of some brokers.

    Everything is checked on all brokers before anything is changed. Without this command a topic
    comes into being with the first message, with the broker's own number of partitions.
    """
    from pylogctl.topic_creation import plan_creation

    env, broker_ids = _split_brokers(env, targets or [])
    connect = connector(env)
    with open_cluster(env) as cluster:
        plan = plan_creation(
            cluster, connect, topic, partition_count=partitions, broker_ids=broker_ids
        )
        _check_conflicts(env, topic, plan, if_not_exists=if_not_exists)
        if env.settings.dry_run:
            records = [_create_record(topic, one, "create") for one in plan]
            render(env, CREATE, records)
            env.note("nothing changed; this was a dry run")
            return
        _create(env, cluster, connect, topic, plan)


def _split_brokers(env: Environment, given: Sequence[str]) -> tuple[Environment, list[int]]:
    """Separate broker ids from addresses; the addresses go where they belong."""
    items = [item for text in given for item in text.split(",") if item]
    ids = [int(item) for item in items if item.isdecimal()]
    addresses = tuple(item for item in items if not item.isdecimal())
    if not addresses:
        # Ids given on the command line hide the addresses of the environment from Typer.
        from_environment = env.environ.get("PYLOGCTL_BROKER", "").split(",")
        addresses = tuple(item for item in from_environment if item and not item.isdecimal())
    return replace(env, settings=replace(env.settings, brokers=addresses)), ids


def _check_conflicts(
    env: Environment, topic: str, plan: Sequence[Creation], *, if_not_exists: bool
) -> None:
    for one in plan:
        if one.is_needed:
            continue
        plural = "" if one.before == 1 else "s"
        text = (
            f"topic '{topic}' exists on broker {one.broker.id} with {one.before} partition{plural}"
        )
        if not if_not_exists:
            raise CliError(
                ExitStatus.CONFLICT,
                text,
                hints=["--if-not-exists leaves it as it is"],
                code="TOPIC_EXISTS",
            )
        if one.before != one.partition_count:
            env.warn(f"{text}, not {one.partition_count}")


def _create(
    env: Environment, cluster: Cluster, connect: Connect, topic: str, plan: Sequence[Creation]
) -> None:
    from broker.errors import BrokerError
    from pylogctl.topic_creation import await_topic, create_on

    records: list[Record] = []
    failures: list[BrokerError] = []
    for one in plan:
        try:
            is_new = one.is_needed and create_on(connect, topic, one)
        except BrokerError as error:
            failures.append(error)
            continue
        records.append(_create_record(topic, one, "created" if is_new else "exists"))
    if not records:
        raise failures[0]
    homes = {int(record["broker"]) for record in records}
    await_topic(cluster, topic, homes, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S))
    render(env, CREATE, records)
    for failure in failures:
        env.complain(str(failure))
    if failures:
        raise typer.Exit(ExitStatus.PARTIAL)


def _create_record(topic: str, creation: Creation, action: str) -> dict[str, Any]:
    return {
        "topic": topic,
        "broker": creation.broker.id,
        "before": creation.before,
        "partitions": creation.before or creation.partition_count,
        "action": action if creation.is_needed else "exists",
    }


@app.command("offsets", cls=Command)
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
    partition: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--partition",
            metavar="LIST",
            help="Partitions: 0, 2-0, *-0, 0,1 or 0..3. Default: all.",
            rich_help_panel="Selection",
        ),
    ] = None,
    strict_offset: Annotated[
        bool,
        typer.Option("--strict-offset", help="An offset out of range is an error, not moved."),
    ] = False,
) -> None:
    """Find the offsets that an expression means in each partition now.

    By time they are as precise as segments are: at most one segment too early.
    """
    from pylogctl.consume_options import make_span
    from pylogctl.offset_resolution import resolve
    from pylogctl.partition_list import parse_partition_list
    from pylogctl.selection import select_partitions

    # Any side that is not given is that of the whole log.
    span = make_span(env, ["start:end", *(at or [])], from_beginning=False, exit_at_end=False)
    wanted = None if partition is None else parse_partition_list(partition)
    with _facts(env) as (cluster, facts):

        def resolve_one(topic: str) -> list[Record]:
            _check_name(topic)
            records: list[Record] = []
            for one in select_partitions(cluster, [topic], wanted):
                found = resolve(span.range_for(one), one, facts.positions, strict=strict_offset)
                for warning in found.warnings:
                    env.warn(warning)
                end = found.end
                records.append(
                    {
                        "topic": topic,
                        "partition": one.name,
                        "start": found.start.offset,
                        "inner": found.start.inner,
                        "end": None if end is None else end.offset,
                        "end_inner": None if end is None else end.inner,
                        "bytes": None if end is None else max(0, end.offset - found.start.offset),
                    }
                )
            return records

        records, status = _for_each(env, topics, resolve_one)
        render(env, OFFSETS, records)
    raise typer.Exit(status)
