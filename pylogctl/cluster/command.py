"""`pylogctl cluster`: the options of its commands."""

from __future__ import annotations

from pathlib import Path

import typer

from broker import deadlines
from pylogctl.cli import connections
from pylogctl.cli import options as shared
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import Absence, open_for_requests, open_registry, registry_side
from pylogctl.cli.declarations import argument, flag, safety, selection
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.render import render

app = shared.App()

_OPTIONS = shared.OUTPUT + shared.CONNECTION
_CHANGES = (ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.PARTIAL)


@app.command(_OPTIONS, exits=(ExitStatus.UNSUPPORTED,))
def describe(env: Environment) -> None:
    """Show the brokers, the controller, and how partitions are spread.

    A broker that is not registered is down, and shown as long as it has replicas or logs of
    topics. Any one broker tells of the whole cluster.

    $ pylogctl cluster describe
    $ pylogctl cluster describe -b broker-1:9092
    """
    from broker.admin.cluster import broker_infos, describe_cluster
    from pylogctl.cluster.document import DESCRIBE

    with open_for_requests(env, absence=Absence.WARN) as side:
        metadata = describe_cluster(side)
    render(env, DESCRIBE, broker_infos(metadata))


@app.command(_OPTIONS, exits=(ExitStatus.UNSUPPORTED, ExitStatus.THRESHOLD))
def health(env: Environment) -> None:
    """Check that brokers are there, disks work, partitions are led, and replicas are in sync.

    The exit status is 12 if a check fails, for monitoring, and 15 if none does and this user is not
    allowed to see what some are about. A warning is no failure: partitions that one more broker can
    make unavailable, leaders that are not the preferred ones, and, where there are several brokers,
    topics with a single copy. Part of what disks have lost is found with --zookeeper only, which
    remembers the homes of topics and how far groups have read.

    $ pylogctl cluster health
    $ pylogctl cluster health --output json | jq '.data[] | select(.result == "fail")'
    """
    from broker.admin.cluster import check_health
    from broker.client.registry_cluster import RegistryCluster
    from pylogctl.cluster.document import HEALTH

    limit = deadlines.Limit(env.timeout_s(connections.REQUEST_TIMEOUT_S))
    with limit, open_for_requests(env, absence=Absence.WARN) as side:
        cluster = side.cluster
        registry = cluster.registry if isinstance(cluster, RegistryCluster) else None
        found = check_health(side, registry)
    render(env, HEALTH, found.checks)
    if not found.ok:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"not healthy: {', '.join(one.name for one in found.failed)}",
            "try: pylogctl topic describe TOPIC, pylogctl broker list",
        )
    if found.hidden:
        raise CliError(
            ExitStatus.NOT_ALLOWED,
            f"this user is not allowed to see: {', '.join(one.name for one in found.hidden)}",
            "it takes the right to describe the cluster (pylogctl acl add)",
            code="NOT_ALLOWED",
        )


@app.command(_OPTIONS + shared.CONFIRM, exits=(ExitStatus.UNSUPPORTED, *_CHANGES))
def recover(
    env: Environment,
    topic: list[str] | None = selection.option(
        "--topic TOPIC", "Only this topic, also if something of it would be lost. Can be repeated."
    ),
    discard: bool = safety.flag(
        "--discard", "Delete the logs of live brokers instead, as of a topic that was deleted."
    ),
    execute: shared.ExecuteOption = False,
) -> None:
    """Make topics again that ZooKeeper has lost, over the logs that brokers have of them.

    Shows for each partition which broker has which copy, which of them the others will follow (the
    longest of the latest leader epoch), and what would be lost. --execute recreates the
    topics whose replicas are all present; others must be named with --topic.

    $ pylogctl cluster recover
    $ pylogctl cluster recover --execute --yes
    $ pylogctl cluster recover --topic orders --execute
    $ pylogctl cluster recover --topic deleted-last-year --discard --execute
    """
    from pylogctl.cluster.recover import recover as work

    if discard and not topic:
        raise UsageError("--discard needs --topic")
    with open_for_requests(env, absence=Absence.WARN) as side:
        work(env, side, topic or (), executes=execute, discards=discard)


@app.command(_OPTIONS, exits=(ExitStatus.NOT_FOUND,))
def keys(env: Environment) -> None:
    """Show the keys with which brokers prove themselves, and who accepts which; not the secrets.

    $ pylogctl cluster keys
    """
    from broker.admin.cluster_keys import list_keys
    from pylogctl.cluster.document import KEYS, key_row

    with open_registry(env) as registry:
        found = list_keys(registry, registry_side(env, registry))
    render(env, KEYS, map(key_row, found))


@app.command(shared.CONNECTION + shared.CONFIRM, exits=_CHANGES)
def rotate_key(
    env: Environment,
    now: bool = flag(
        "--now", "The key has leaked: end it at once, and do not wait for any broker."
    ),
) -> None:
    """Give the brokers another key to prove themselves with, while they run.

    All brokers that are registered accept the new key first; then they choose it, and the old one
    ends an hour later, when all connections have proved themselves anew. A rotation that was broken
    off is continued by the next one.

    $ pylogctl cluster rotate-key --yes
    $ pylogctl cluster rotate-key --now
    """
    from broker.admin.cluster_keys import rotate

    with open_registry(env) as registry:
        question = "end the cluster's key now, and" if now else "rotate the cluster's key:"
        confirm(env, "cluster rotate-key", f"{question} give the brokers another one?")
        key_id = rotate(registry, registry_side(env, registry), at_once=now)
    ends = "ended" if now else "ends in an hour"
    env.note(f"brokers prove themselves with key {key_id} now; the one before {ends}")


@app.command(_OPTIONS, exits=(ExitStatus.UNSUPPORTED, ExitStatus.NOT_FOUND, ExitStatus.PARTIAL))
def changes(
    env: Environment,
    files: list[Path] | None = argument(
        "[FILE...]",
        "State-change logs, or data directories. Default: ask the brokers.",
        default=None,
    ),
    topic: str | None = selection.option("--topic TOPIC", "This topic."),
    partition: shared.PartitionsOption = None,
    since: int | None = selection.option(
        "--since DUR", "What happened in the last 10m, 1h, 2d .., by the clocks of the brokers."
    ),
    follow: bool = flag("--follow", "Go on with what comes, until interrupted."),
) -> None:
    """Show who led what, when and why, from the state-change logs of all brokers in one order.

    Epochs count before clocks: a later controller epoch, and a later leader epoch of a partition,
    come later. Changes of the controller and of whole brokers are always shown. A broker that
    could not be asked is named, and makes the exit status 6.

    With `--follow`, changes that come are shown within about two seconds, and brokers may go and
    come: what one has written down meanwhile is shown when it is back.

    $ pylogctl cluster changes --since 1h
    $ pylogctl cluster changes --topic orders -p 0-0 --output jsonl
    $ pylogctl cluster changes --follow --since 0s
    $ pylogctl cluster changes /disk1/pylog /backup/broker-2/state-changes-*.jsonl
    """
    from broker.admin.changes import selecting
    from pylogctl.cluster import changes as work

    since_ms = None if since is None else env.clock.time_ms() - since
    matches = None if partition is None else partition.matches
    selects = selecting(topic, matches, since_ms)
    if follow:
        if files:
            raise UsageError("--follow asks the brokers; it cannot be given with files")
        raise typer.Exit(work.follow_cluster(env, selects))
    if files:
        work.show_files(env, files, selects)
    else:
        work.show_cluster(env, selects)
