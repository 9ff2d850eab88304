"""`pylogctl topic`: list, describe, create and delete topics.

Puts the commands together; those that look into partitions stand in `topic_reads`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from pylogctl.cli.confirmation import confirm_name
from pylogctl.cli.connections import (
    REQUEST_TIMEOUT_S,
    Absence,
    connector,
    open_cluster,
    registry_session,
)
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.options import (
    CONFIRM,
    CONNECTION,
    DRY_RUN,
    OUTPUT,
    PROGRESS,
    REGISTRY,
    TIMEOUT,
    accepts,
)
from pylogctl.cli.progress import progress
from pylogctl.cli.render import Document, Record, chosen_columns, render
from pylogctl.cli.targets import check_done, for_each
from pylogctl.cli.tree import Command, new_app
from pylogctl.topic import read_commands
from pylogctl.topic.read_commands import READS, Topics, broker_failures, open_facts

if TYPE_CHECKING:
    from broker.client.cluster import Cluster, Connect
    from broker.zk.session import Session
    from pylogctl.topic.creation import Creation
    from pylogctl.topic.deletion import Deletion
    from pylogctl.topic.facts import PartitionFacts, TopicFacts, TopicSummary

app = new_app("List, describe, create, delete, count and sample topics.")

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
    from pylogctl.cli.selection import compile_patterns
    from pylogctl.topic import document as topic_document

    included = compile_patterns([*(include or []), *(whitelist or [])], "--include")
    excluded = compile_patterns([*(exclude or []), *(blacklist or [])], "--exclude")
    document = topic_document.LIST_WITH_COUNT if count else topic_document.LIST
    with open_facts(env) as (cluster, facts):
        names = [
            name
            for name in _known_topics(env, cluster)
            if (not included or any(p.fullmatch(name) for p in included))
            and not any(p.fullmatch(name) for p in excluded)
        ]
        if _wants_names_only(env, document):
            render(env, document, [{"name": name} for name in names])
            return
        summaries = [facts.summary(name) for name in names]
        counts = _message_counts(env, facts, summaries) if count else {}
        partitions = [one for summary in summaries for one in summary.partitions]
        facts.check_any_answer(partitions)
        records = [topic_document.list_record(one, counts.get(one.topic)) for one in summaries]
        render(env, document, records)
        check_done(env, broker_failures(facts, partitions))


def _wants_names_only(env: Environment, document: Document) -> bool:
    """Say whether nothing but names is to be written, so that no broker need be asked."""
    first = chosen_columns(document, env.settings.columns)[0].name
    return env.output == "name" and first == "name" and not env.settings.sort


def _known_topics(env: Environment, cluster: Cluster) -> list[str]:
    """Return the topics; with static brokers, say which of them cannot tell theirs."""
    if env.settings.brokers:
        from pylogctl.topic.facts import brokers_of_07

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


@app.command("describe", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=(*READS, ExitStatus.NOT_FOUND),
    examples=("pylogctl topic describe syslog", "pylogctl topic describe a b --output jsonl"),
)
def describe(env: Environment, topics: Topics) -> None:
    """Show the partitions of topics: broker, offsets, segments, size and age.

    The last append is when the last segment file was written to. A broker that does not answer
    leaves gaps and makes the exit status 6.
    """
    from pylogctl.cli.selection import select_partitions, select_topics
    from pylogctl.topic.document import DESCRIBE, describe_record

    with open_facts(env) as (cluster, facts):
        now_ms = env.clock.time_ms()

        def describe_one(topic: str) -> list[PartitionFacts]:
            partitions = select_partitions(cluster, select_topics(cluster, [topic]))
            return [facts.describe(one, now_ms=now_ms) for one in partitions]

        described, done = for_each(env, "topics", topics, describe_one)
        found = [one for partitions in described for one in partitions]
        asked = [one.partition for one in found]
        facts.check_any_answer(asked)
        render(env, DESCRIBE, [describe_record(one) for one in found])
        check_done(env, done, broker_failures(facts, asked))


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
    from pylogctl.topic.creation import check_absent, plan_creation

    env, broker_ids = _split_brokers(env, targets or [])
    connect = connector(env)
    with open_cluster(env, absence=Absence.REFUSED) as cluster:
        plan = plan_creation(
            cluster, connect, topic, partition_count=partitions, broker_ids=broker_ids
        )
        if not if_not_exists:
            check_absent(topic, plan)
        _warn_of_other_counts(env, topic, plan)
        if env.settings.dry_run:
            _show_plan(env, topic, plan)
        else:
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


def _warn_of_other_counts(env: Environment, topic: str, plan: Sequence[Creation]) -> None:
    from pylogctl.topic.creation import describe_existing

    for one in plan:
        if one.before not in (0, one.partition_count):
            env.warn(f"{describe_existing(topic, one)}, not {one.partition_count}")


def _show_plan(env: Environment, topic: str, plan: Sequence[Creation]) -> None:
    from pylogctl.topic.document import CREATE, create_record

    actions = ((one, "create" if one.is_needed else "exists") for one in plan)
    render(env, CREATE, [create_record(topic, one, action) for one, action in actions])
    env.note("nothing changed; this was a dry run")


def _create(
    env: Environment, cluster: Cluster, connect: Connect, topic: str, plan: Sequence[Creation]
) -> None:
    from pylogctl.topic.creation import await_topic, create_on
    from pylogctl.topic.document import CREATE, create_record

    def create_one(one: Creation) -> Record:
        is_new = create_on(connect, topic, one)
        return create_record(topic, one, "created" if is_new else "exists")

    records, done = for_each(env, "brokers", plan, create_one)
    homes = {int(record["broker"]) for record in records}
    await_topic(cluster, topic, homes, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S))
    render(env, CREATE, records)
    check_done(env, done)


@app.command("delete", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    *CONFIRM,
    *DRY_RUN,
    exits=(
        *READS,
        ExitStatus.NOT_FOUND,
        ExitStatus.CONFLICT,
        ExitStatus.DECLINED,
        ExitStatus.UNSUPPORTED,
    ),
    examples=(
        "pylogctl topic delete orders --data --dry-run",
        "pylogctl topic delete orders --data --yes --confirm orders",
        "pylogctl topic delete abandoned",
    ),
)
def delete(
    env: Environment,
    topics: Topics,
    data: Annotated[
        bool, typer.Option("--data", help="Delete the logs on brokers too, with all messages.")
    ] = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="A topic that does not exist is fine: exit 0.")
    ] = False,
    confirm: Annotated[
        list[str] | None,
        typer.Option(
            "--confirm",
            metavar="NAME",
            rich_help_panel="Safety",
            help="With --yes: the topic's name (repeat it for each of several topics).",
        ),
    ] = None,
) -> None:
    """Delete topics from the registry and, with --data, from the brokers.

    The name of each topic must be typed to confirm it. Without --data only a topic is deleted that
    no live broker has any more. Messages that are deleted cannot be brought back.
    """
    from pylogctl.topic.deletion import plan_deletion

    if env.settings.brokers and not data:
        raise UsageError("without --data only the registry is changed, which --broker leaves out")
    connect = connector(env)
    with ExitStack() as closing:
        cluster = closing.enter_context(open_cluster(env, absence=Absence.REFUSED))
        has_registry = not env.settings.brokers
        session = closing.enter_context(registry_session(env)) if has_registry else None

        def plan_one(topic: str) -> list[Deletion]:
            try:
                return plan_deletion(cluster, connect, session, topic, with_data=data)
            except CliError as error:
                if if_exists and error.status is ExitStatus.NOT_FOUND:
                    return []
                raise

        plans, planned = for_each(env, "topics", topics, plan_one)
        if env.settings.dry_run:
            _show_deletions(env, [step for plan in plans for step in plan], "delete")
            env.note("nothing changed; this was a dry run")
            check_done(env, planned)
            return
        for plan in filter(None, plans):
            _confirm_topic(env, plan[0].topic, confirm or [])
        deleted, done = for_each(env, "topics", map(tuple, plans), partial(_delete, env, session))
        _show_deletions(env, [step for plan in deleted for step in plan], "deleted")
        check_done(env, planned, done)


def _confirm_topic(env: Environment, topic: str, given: Sequence[str]) -> None:
    name = topic if topic in given else next(iter(given), None)
    confirm_name(env, "topic delete", topic, name)


def _delete(
    env: Environment, session: Session | None, plan: Sequence[Deletion]
) -> Sequence[Deletion]:
    from pylogctl.topic.deletion import carry_out

    for step in plan:
        carry_out(connector(env), session, step, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S))
    return plan


def _show_deletions(env: Environment, steps: Sequence[Deletion], action: str) -> None:
    from pylogctl.topic.document import DELETE, delete_record

    render(env, DELETE, [delete_record(step, action) for step in steps])


app.command("offsets", cls=Command)(read_commands.offsets)
app.command("watermarks", cls=Command)(read_commands.watermarks)
app.command("sample", cls=Command)(read_commands.sample)
app.command("count", cls=Command)(read_commands.count)
