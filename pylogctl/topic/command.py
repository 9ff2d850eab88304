"""`pylogctl topic`: the options of its commands."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from broker.topic import FORMAT_07, FORMAT_KAFKA, MAX_PARTITIONS, validate_topic_name
from pylogctl.cli import declarations
from pylogctl.cli import options as shared
from pylogctl.cli.connections import Absence, open_for_requests
from pylogctl.cli.declarations import argument, flag, option, replication, selection
from pylogctl.cli.environment import Environment, ExitStatus, UsageError
from pylogctl.cli.selection import TopicPatterns, topic_filter

if TYPE_CHECKING:
    from pylogctl.cli.offsets import Span

app = shared.App()

_READS = (ExitStatus.PARTIAL, ExitStatus.NOT_FOUND, ExitStatus.CORRUPT)
_CHANGES = (ExitStatus.PARTIAL, ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.UNSUPPORTED)
_READ_OPTIONS = shared.OUTPUT + shared.CONNECTION
_CHANGE_OPTIONS = _READ_OPTIONS + shared.CHANGE

_Topics = Annotated[list[str], argument("TOPIC...", "Topics.")]
_Total = Annotated[
    int | None,
    option("--partitions N", "Partitions of all brokers together.", min=1, max=MAX_PARTITIONS),
]
_PerBroker = Annotated[
    int | None,
    option(
        "--partitions-per-broker N",
        "Partitions on each broker, without replicas.",
        min=1,
        max=MAX_PARTITIONS,
    ),
]
_Offset = Annotated[
    list[str] | None,
    shared.offset_option("Offsets to read, START or START:END. Default: start:end."),
]


class TopicFormat(StrEnum):
    """What the messages of a topic are stored as."""

    ENTRIES = FORMAT_07
    KAFKA = FORMAT_KAFKA


def _span(env: Environment, offset: list[str] | None) -> Span:
    from pylogctl.cli.offsets import make_span

    return make_span(env, offset or [], from_beginning=False, exit_at_end=True)


@app.command(
    _READ_OPTIONS + shared.PROGRESS,
    name="list",
    exits=(ExitStatus.PARTIAL, ExitStatus.CORRUPT, ExitStatus.UNSUPPORTED),
)
def list_topics(
    env: Environment,
    patterns: Annotated[TopicPatterns, shared.TOPIC_PATTERNS_07] = shared.ALL_TOPICS,
    count: bool = flag("--count", "Count messages too, by reading all of them."),
) -> None:
    r"""List topics with their size.

    Sizes and offsets are in bytes. STATE marks topics with partitions that have no leader
    (OFFLINE), or a replica that is not in sync (UNDER-REPLICATED). A broker that does not respond,
    or a partition without a leader, leaves gaps and makes the exit status 6.

    $ pylogctl topic list
    $ pylogctl topic list --include 'app\..*' --count
    $ pylogctl topic list --output name | xargs pylogctl topic describe
    """
    from pylogctl.topic import reads

    reads.list_topics(env, topic_filter(patterns), with_count=count)


@app.command(_READ_OPTIONS, exits=(ExitStatus.PARTIAL, ExitStatus.NOT_FOUND))
def describe(env: Environment, topics: _Topics) -> None:
    """Show the partitions of topics: broker, state, offsets, segments, size and age.

    The last append is when the last segment file was written to. Of topics with replicas it shows
    leaders, leader epochs, in-sync replicas, and how many bytes each follower is behind; offsets,
    segments and age with --columns. A broker that does not respond, or a partition without a
    leader, leaves gaps and makes the exit status 6.

    $ pylogctl topic describe syslog
    $ pylogctl topic describe a b --output jsonl
    """
    from pylogctl.topic import reads

    reads.describe(env, topics)


@app.command(shared.OUTPUT + shared.CLUSTER + shared.CHANGE, exits=_CHANGES)
def create(
    env: Environment,
    topic: str = argument("TOPIC", "Name of the topic."),
    partitions: _Total = None,
    per_broker: _PerBroker = None,
    targets: list[str] | None = declarations.connection.option(
        "-b, --broker ID|HOST:PORT",
        "Broker to create it on (repeatable), by id. Default: all live ones. Addresses are "
        "brokers to use instead of those registered in ZooKeeper.",
        envvar="PYLOGCTL_BROKER",
    ),
    if_not_exists: bool = flag("--if-not-exists", "Leave a topic that exists as it is: exit 0."),
    replication_factor: int | None = replication.option(
        "--replication-factor N",
        "Copies of each partition, spread over the brokers by the controller.",
        min=1,
    ),
    settings: list[str] | None = replication.option(
        "--set NAME=VALUE", "With replicas: a setting of the topic (repeatable)."
    ),
    format: TopicFormat | None = option(
        "--format FORMAT", "For life: 0.7 or kafka. Default: log.format of the brokers."
    ),
) -> None:
    """Create a topic, its partitions spread over the brokers.

    Without a number it has one partition; or, if partition.count was set for it before, as many on
    each broker. All brokers are checked before anything is changed. Without this command a topic is
    created by its first message, with a broker's own number of partitions (num.partitions), on each
    broker that gets one, as in Kafka 0.7. With --replication-factor each partition gets as many
    copies, and another of them leads it when its leader goes.

    A topic of the format kafka has Kafka's record batches: offsets count records, and partitions
    are numbers, 0, 1 and up. In a cluster it has replicas, by default default.replication.factor;
    without ZooKeeper it is on one broker.

    $ pylogctl topic create orders --partitions 4
    $ pylogctl topic create orders --partitions 4 --format kafka
    $ pylogctl topic create orders --partitions-per-broker 2 --broker 0 --broker 2
    $ pylogctl topic create orders --partitions 6 --replication-factor 3 --set min.insync.replicas=2
    """
    from broker.admin.topic_changes import NewTopic
    from pylogctl.topic.changes import create_topic
    from pylogctl.topic.replication import parse_settings

    validate_topic_name(topic)
    count = _partition_count(partitions, per_broker)
    env, broker_ids = _split_brokers(env, targets or [])
    if replication_factor is not None:
        if broker_ids:
            raise UsageError("--replication-factor places replicas itself: leave out --broker ID")
        if per_broker is not None:
            raise UsageError("--replication-factor places replicas itself: give --partitions")
    elif settings and format is not TopicFormat.KAFKA:
        raise UsageError("--set needs --replication-factor; else: pylogctl config set --topic")
    if format is TopicFormat.KAFKA and per_broker is not None:
        raise UsageError("--format kafka knows no home brokers: give --partitions")
    given = parse_settings(settings or [])
    is_per_broker = per_broker is not None
    named = "" if format is None else format.value
    wanted = NewTopic(topic, count, is_per_broker, replication_factor, broker_ids, given, named)
    create_topic(env, wanted, if_not_exists=if_not_exists)


def _partition_count(total: int | None, per_broker: int | None) -> int | None:
    """Return the number that is given."""
    if total is not None and per_broker is not None:
        raise UsageError("either --partitions or --partitions-per-broker, not both")
    return total if per_broker is None else per_broker


def _split_brokers(env: Environment, given: Sequence[str]) -> tuple[Environment, list[int]]:
    """Return the broker ids of `--broker`, and the environment with its addresses."""
    items = [item for text in given for item in text.split(",") if item]
    ids = [int(item) for item in items if item.isdecimal()]
    addresses = tuple(item for item in items if not item.isdecimal())
    if not addresses:
        # Ids given on the command line hide the addresses of the environment from Typer.
        from_environment = env.environ.get("PYLOGCTL_BROKER", "").split(",")
        addresses = tuple(item for item in from_environment if item and not item.isdecimal())
    return env.changed(settings=env.settings._replace(brokers=addresses)), ids


@app.command(_CHANGE_OPTIONS, exits=_CHANGES)
def alter(
    env: Environment,
    topic: str = argument("TOPIC", "Topic."),
    partitions: _Total = None,
    per_broker: _PerBroker = None,
    replication_factor: int | None = option(
        "--replication-factor N", "Copies of each partition to have.", min=1
    ),
) -> None:
    """Change how many partitions, or replicas, a topic has.

    Partitions cannot become fewer. A topic without replicas has one number for all brokers that
    have it: a total that this cannot give is refused, with those that are possible. A change of
    replicas goes on after the command, as `topic reassign status` shows. A topic without replicas
    gets some from its home brokers, all of which must be live. Settings of topics: pylogctl config
    set --topic.

    $ pylogctl topic alter orders --partitions 12
    $ pylogctl topic alter orders --replication-factor 3
    """
    from pylogctl.topic.changes import alter_topic

    validate_topic_name(topic)
    count = _partition_count(partitions, per_broker)
    if (count is None) == (replication_factor is None):
        raise UsageError(
            "either --partitions (or --partitions-per-broker) or --replication-factor is needed"
        )
    alter_topic(env, topic, count, per_broker is not None, replication_factor)


@app.command(_CHANGE_OPTIONS, exits=_CHANGES)
def elect(
    env: Environment,
    topics: list[str] | None = argument("[TOPIC...]", "Topics. Default: all.", default=None),
    unclean: bool = flag(
        "--unclean",
        "Let a replica lead that is not in sync, where there is no leader: acknowledged messages "
        "may be lost.",
    ),
    confirm: str | None = shared.confirm_option("With --yes and --unclean: the topic's name."),
) -> None:
    """Give leaderships back to the preferred replicas, the first of each partition.

    With --unclean, one topic's partitions without a leader get one that lacks messages; the topic
    must allow it (unclean.leader.election.enable).

    $ pylogctl topic elect
    $ pylogctl topic elect orders --unclean --yes --confirm orders
    """
    from broker.protocol.cluster_requests import ElectionKind
    from pylogctl.topic.replication import elect_leaders

    if unclean and len(topics or ()) != 1:
        raise UsageError("--unclean needs one topic")
    kind = ElectionKind.UNCLEAN if unclean else ElectionKind.PREFERRED
    with open_for_requests(env, absence=Absence.WARN) as side:
        elect_leaders(env, side, topics or [], kind, confirmed=confirm)


class ReassignAction(StrEnum):
    """What `topic reassign` does."""

    PLAN = "plan"
    EXECUTE = "execute"
    THROTTLE = "throttle"
    STATUS = "status"
    CANCEL = "cancel"


@app.command(_CHANGE_OPTIONS, name="reassign", exits=_CHANGES)
def reassign_replicas(
    env: Environment,
    action: ReassignAction = argument("ACTION", "plan, execute, throttle, status or cancel."),
    topics: list[str] | None = argument("[TOPIC...]", "Topics. Default: all.", default=None),
    to: str | None = option("--to ID,...", "Brokers to use. Default: all live ones."),
    replication_factor: int | None = option("--replication-factor N", "Copies to have.", min=1),
    plan: Path | None = option("--plan FILE", "With execute: the plan; - for stdin."),
    throttle: shared.ThrottleOption = None,
) -> None:
    """Move partitions to other brokers, with their messages, while they are used.

    plan shows what would move, in JSON with --output json; execute begins it, with a --plan or
    what plan would show; status shows what is under way, and how far; cancel gives partitions
    their former replicas back. --throttle limits how fast each broker copies to replicas that are
    being added, until these are in sync; throttle changes that limit for all that is under way.

    $ pylogctl topic reassign plan orders --to 1,2,3 --output json > plan.json
    $ pylogctl topic reassign execute --plan plan.json --throttle 50MB/s
    $ pylogctl topic reassign throttle --throttle 10MB/s
    $ pylogctl topic reassign status
    """
    from broker.admin.reassignment import make_plan
    from broker.admin.replicas import replicas_of
    from pylogctl.topic import replication

    if plan is not None and action is not ReassignAction.EXECUTE:
        raise UsageError("--plan is for `topic reassign execute`")
    if throttle is None and action is ReassignAction.THROTTLE:
        raise UsageError("--throttle RATE is missing", "--throttle none lifts it")
    if throttle is not None and action not in (ReassignAction.EXECUTE, ReassignAction.THROTTLE):
        raise UsageError("--throttle is for `topic reassign execute` and `throttle`")
    limit = replication.parse_throttle(throttle)
    with open_for_requests(env, absence=Absence.WARN) as side:
        match action:
            case ReassignAction.STATUS:
                replication.show_status(env, side, topics or [])
            case ReassignAction.THROTTLE:
                replication.change_throttle(env, side, limit or 0)
            case ReassignAction.CANCEL:
                replication.cancel(env, side, topics or [])
            case ReassignAction.EXECUTE if plan is not None:
                replication.execute(env, side, replication.read_plan(env, plan), throttle=limit)
            case _:
                made = make_plan(
                    side,
                    topics or [],
                    broker_ids=_broker_ids(to),
                    replication_factor=replication_factor,
                )
                if action is ReassignAction.EXECUTE:
                    replication.execute(env, side, made, throttle=limit)
                else:
                    replication.show_plan(env, made, replicas_of(side, topics or []))


def _broker_ids(text: str | None) -> list[int]:
    ids = [one for one in (text or "").split(",") if one]
    if not all(one.isdecimal() for one in ids):
        raise UsageError(f"--to '{text}' is not ID,ID,...")
    return [int(one) for one in ids]


@app.command(_CHANGE_OPTIONS, exits=_CHANGES)
def delete(
    env: Environment,
    topics: _Topics,
    data: bool = flag("--data", "Delete the logs on brokers too, with all messages."),
    group_offsets: bool = flag(
        "--group-offsets", "Delete the offsets that groups have stored, too."
    ),
    if_exists: bool = flag("--if-exists", "A topic that does not exist is no error: exit 0."),
    confirm: list[str] | None = shared.confirm_option(
        "With --yes: the topic's name (repeat it for each of several topics)."
    ),
) -> None:
    """Delete topics from ZooKeeper and, with --data, from the brokers.

    The name of each topic must be typed to confirm it. Removes the registry entry of a topic whose
    data is gone; to delete a topic with its messages, add --data. A topic with replicas is deleted
    by the controller on all brokers, on those that are away once they are back. Deleted messages
    cannot be restored. Offsets of groups that stay stored are void once the topic is created again.

    $ pylogctl topic delete orders --data --dry-run
    $ pylogctl topic delete orders --data --yes --confirm orders
    $ pylogctl topic delete abandoned
    """
    from pylogctl.topic.changes import delete_topics

    for topic in topics:
        validate_topic_name(topic)
    if env.settings.brokers and not data:
        raise UsageError("without --data only ZooKeeper is changed, which --broker leaves out")
    delete_topics(
        env, topics, confirm or (), with_data=data, with_offsets=group_offsets, if_exists=if_exists
    )


@app.command(_READ_OPTIONS, exits=_READS)
def offsets(
    env: Environment,
    topics: _Topics,
    at: list[str] | None = selection.option(
        "--at SPEC", "Offset expression, START or START:END. Default: start:end."
    ),
    partition: shared.PartitionsOption = None,
    strict_offset: shared.StrictOffsetOption = False,
    allow_missing: shared.AllowMissingOption = False,
) -> None:
    """Find the offsets that an expression means in each partition now.

    By time they are as precise as segments are: at most one segment too early.

    $ pylogctl topic offsets syslog
    $ pylogctl topic offsets syslog --at -100
    $ pylogctl topic offsets syslog --at @-1h:end -p 0 --columns start --no-header
    """
    from pylogctl.topic import reads

    wanted = reads.Wanted(_span(env, at), partition, strict_offset, allow_missing)
    reads.list_offsets(env, topics, wanted)


@app.command(_READ_OPTIONS, exits=_READS)
def sample(
    env: Environment,
    topics: _Topics,
    max_messages: int = declarations.limits.option(
        "-n, --max-messages N", "Messages of each partition.", min=1, default=5
    ),
    offset: _Offset = None,
    partition: shared.PartitionsOption = None,
    payload: shared.PayloadOption = "utf8",
    allow_missing: shared.AllowMissingOption = False,
    *,
    decoding: shared.DecodeChoice,
) -> None:
    """Show a few messages of each partition, with their offsets.

    They are evenly spaced, starting with the first one. In a range of more than 1 MiB, positions
    are chosen and only the messages at them are read: a large message is likelier than a small one.

    $ pylogctl topic sample syslog
    $ pylogctl topic sample syslog -n 20 -o @-1h
    $ pylogctl topic sample frames -p 0 --payload hex --output jsonl
    $ pylogctl topic sample orders --decode auto
    """
    from pylogctl.topic import reads

    wanted = reads.Wanted(_span(env, offset), partition, allow_missing=allow_missing)
    reads.sample(env, topics, wanted, max_messages, payload, decoding)


@app.command(_READ_OPTIONS + shared.PROGRESS, exits=_READS)
def count(
    env: Environment,
    topics: _Topics,
    offset: _Offset = None,
    partition: shared.PartitionsOption = None,
    strict_offset: shared.StrictOffsetOption = False,
    allow_missing: shared.AllowMissingOption = False,
) -> None:
    """Count the messages of each partition, by reading all of them.

    Messages inside compressed sets are counted one by one. The last line is the total.

    $ pylogctl topic count syslog
    $ pylogctl topic count syslog -o @-1h -p 0
    $ pylogctl topic count syslog orders --output csv
    """
    from pylogctl.topic import reads

    wanted = reads.Wanted(_span(env, offset), partition, strict_offset, allow_missing)
    reads.count(env, topics, wanted)
