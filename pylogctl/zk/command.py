"""`pylogctl zk`: show and change nodes of ZooKeeper, or run an embedded server."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from broker.endpoints import join_address
from broker.errors import CoordinationError, RegistryConflictError
from broker.patterns import Pattern
from broker.units import counted, format_time
from broker.zk.paths import parse_connect_string, resolve
from pylogctl.cli import options as shared
from pylogctl.cli.confirmation import confirm_name
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, zookeeper_security, zookeeper_session
from pylogctl.cli.declarations import argument, flag, inputs, option, safety
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.escapes import printable_bytes
from pylogctl.cli.process import graceful_stop
from pylogctl.cli.render import render
from pylogctl.zk import document
from pylogctl.zk.document import describe_value, fields_of, node_columns

if TYPE_CHECKING:
    from broker.admin.registry_nodes import FoundNode
    from broker.zk.health import ServerHealth
    from broker.zk.session import Session

app = shared.App()  # the functions import what works on nodes, so that help starts fast

_POLL_S = 0.2
_CHILDREN_ONLY = 1
_DRAWN_AT_ONCE = 64

_READS = (ExitStatus.NOT_FOUND,)
_READ_OPTIONS = (*shared.OUTPUT, *shared.REGISTRY, *shared.TIMEOUT)
_CHANGE_OPTIONS = (*_READ_OPTIONS, *shared.CONFIRM, *shared.DRY_RUN)
_CHANGES = (ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.PARTIAL)


def checked_path(text: str) -> str:
    """Return an absolute path; UsageError if it is none."""
    try:
        return resolve("", text)
    except CoordinationError as error:
        raise UsageError(str(error)) from error


PathArgument = Annotated[str, argument("PATH", "Path below the chroot.", parser=checked_path)]
_TreeArgument = Annotated[
    str, argument("PATH", "Path below the chroot. Default: all.", parser=checked_path)
]
_Value = Annotated[str, argument("VALUE", "The value, as it is; - reads it from standard input.")]


@app.command(_READ_OPTIONS, exits=_READS)
def ls(
    env: Environment,
    path: _TreeArgument = "/",
    long: bool = flag("-l, --long", "Show version, size, children and times."),
    recursive: bool = flag("-R, --recursive", "Show everything below."),
) -> None:
    """List the children of a node.

    $ pylogctl zk ls /brokers/ids
    $ pylogctl zk ls -l -R /consumers
    """
    from broker.admin.registry_nodes import read_nodes

    def rows(session: Session) -> Iterator[document.ChildRow]:
        nodes = session.walk(path, max_depth=None if recursive else _CHILDREN_ONLY)
        next(nodes)  # the node itself
        children = (child for _, child in nodes)
        if long or env.settings.output:
            for node in read_nodes(session, children):
                yield document.ChildRow(name_of(node.path), node_columns(node.stat))
        else:
            yield from (document.ChildRow(name_of(child)) for child in children)

    def name_of(child: str) -> str:
        return child if recursive else child.rpartition("/")[2]

    with zookeeper_session(env) as session:
        render(env, document.LS_LONG if long else document.LS, rows(session))


@app.command(_READ_OPTIONS, exits=_READS)
def tree(
    env: Environment,
    path: _TreeArgument = "/",
    depth: int | None = option("--depth N", "Levels to go down. Default: all.", min=0),
    data: bool = flag("--data", "Show values too."),
    raw: bool = flag("--raw", "Do not decode the values of known nodes."),
) -> None:
    """Draw a node and everything below it.

    $ pylogctl zk tree /brokers --data
    $ pylogctl zk tree --output jsonl
    """
    with zookeeper_session(env) as session:
        if env.settings.output is None and not env.settings.columns:
            _draw(env, session, path, depth, data=data or raw, raw=raw)
        else:
            render(env, document.TREE, _tree_rows(session, path, depth, raw=raw))


@app.command(_READ_OPTIONS, exits=_READS)
def get(
    env: Environment,
    path: PathArgument,
    as_hex: bool = flag("--hex", "Write it in hexadecimal."),
    as_json: bool = flag("--json", "Parse it and write it as JSON."),
    raw: bool = flag("--raw", "Write it exactly, on a terminal too."),
    show_stat: bool = flag("-s, --stat", "Show it, version, size, times and owner."),
) -> None:
    """Write the value of a node, byte for byte.

    On a terminal control characters are shown as escapes, unless --raw is given.

    $ pylogctl zk get /brokers/ids/0
    $ pylogctl zk get /brokers/ids/0 --output json
    """
    if as_hex + as_json + raw + show_stat > 1:
        raise UsageError("only one of --raw, --json, --hex and --stat is possible")
    with zookeeper_session(env) as session:
        value, stat = session.get(path)
    if env.settings.output or env.settings.columns or show_stat:
        render(
            env,
            document.GET_STAT if show_stat else document.GET,
            [document.value_row(path, value, stat)],
        )
        return
    written = _written(value, path, as_hex=as_hex, as_json=as_json)
    if env.streams.stdout_is_tty and not raw:
        written = printable_bytes(written, keep="\t\n")
    env.write(written)
    if env.streams.stdout_is_tty and not raw:
        env.write(b"\n")


@app.command(_READ_OPTIONS, exits=_READS)
def find(
    env: Environment,
    path: PathArgument,
    pattern: str = argument("RE", "Regular expression that a part of the path matches."),
    data: bool = flag("--data", "Also find nodes whose value matches."),
) -> None:
    """Find nodes by their paths or values.

    $ pylogctl zk find / orders
    $ pylogctl zk find /consumers 'box-17' --data --output name
    """
    from broker.admin.registry_nodes import read_nodes, read_tree

    matches = Pattern(pattern).search

    def is_found(node: FoundNode) -> bool:
        text = node.value.decode("utf-8", "replace")
        return bool(matches(node.path) or matches(text))

    with zookeeper_session(env) as session:
        if data:
            nodes: Iterable[FoundNode] = filter(is_found, read_tree(session, path))
        else:
            nodes = read_nodes(session, (one for _, one in session.walk(path) if matches(one)))
        render(
            env,
            document.FIND,
            (
                document.FoundRow(
                    one.path,
                    describe_value(one.path, one.value),
                    node_columns(one.stat),
                    fields_of(one.path, one.value),
                )
                for one in nodes
            ),
        )


@app.command(_READ_OPTIONS, exits=_READS)
def watch(
    env: Environment,
    path: PathArgument,
    recursive: bool = flag("-R, --recursive", "Watch everything below."),
) -> None:
    """Write a line for each change of a node and its children, until stopped.

    Changes in quick succession are one.

    $ pylogctl zk watch /brokers/ids
    $ pylogctl zk watch -R /consumers --output jsonl
    """
    from broker.zk.watched_reads import TreeWatch  # late: kazoo

    with zookeeper_session(env) as session, graceful_stop() as stop:
        tree = TreeWatch(session, path, max_depth=None if recursive else _CHILDREN_ONLY)
        env.report(f"watching {counted(tree.node_count, 'node')}")
        header_env = env
        while not stop.is_set:
            env.check_reader()
            for event in tree.events(_POLL_S):
                value = None if event.value is None else describe_value(event.path, event.value)
                fields = None if event.value is None else fields_of(event.path, event.value)
                row = document.EventRow(
                    env.clock.time_ms(), event.action, event.path, event.stat.version, value, fields
                )
                if env.settings.output is None and not env.settings.columns:
                    words = (format_time(row.time or 0), f"{row.event:<7}", row.path, value or "")
                    env.write_line("  ".join(words).rstrip())
                else:
                    render(header_env, document.WATCH, [row])
                    header_env = _as_next(env)
                env.flush()


@app.command(_READ_OPTIONS, exits=_READS)
def sessions(env: Environment, path: _TreeArgument = "/") -> None:
    """List the sessions with ephemeral nodes: who is registered by which.

    $ pylogctl zk sessions
    $ pylogctl zk sessions /brokers
    """
    from broker.admin.registry_nodes import read_tree

    found: dict[int, list[FoundNode]] = {}
    with zookeeper_session(env) as session:
        for node in read_tree(session, path):
            if node.is_ephemeral:
                found.setdefault(node.stat.ephemeral_owner, []).append(node)
    render(env, document.SESSIONS, (_session_row(owner, nodes) for owner, nodes in found.items()))


@app.command(_READ_OPTIONS, exits=(ExitStatus.PARTIAL, ExitStatus.CONFIG))
def health(env: Environment) -> None:
    """Ask each server how it is: by four-letter words, or its admin server at port 8080.

    $ pylogctl zk health -Z zk1,zk2,zk3
    """
    from broker.zk.health import server_health

    hosts = parse_connect_string(env.zookeeper).hosts
    timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)
    security = zookeeper_security(env)
    tls = None if security is None else security.tls

    def ask() -> Iterator[tuple[str, ServerHealth]]:
        for host, port in hosts:
            yield join_address(host, port), server_health(host, port, timeout_s=timeout_s, tls=tls)

    found = dict(ask())
    render(env, document.HEALTH, [_health_row(server, one) for server, one in found.items()])
    down = [f"{server}: {one.problem}" for server, one in found.items() if one.problem]
    if down:
        raise CliError(
            ExitStatus.PARTIAL if len(down) < len(found) else ExitStatus.UNREACHABLE,
            f"{len(down)} of {counted(len(found), 'server')} of ZooKeeper cannot serve",
            *down,
        )


@app.command(_CHANGE_OPTIONS, exits=_CHANGES)
def set_(
    env: Environment,
    path: PathArgument,
    value: _Value,
    if_version: int | None = option("--if-version N", "Only if the node has this version.", min=0),
) -> None:
    """Replace the value of a node; the former one is saved.

    $ pylogctl zk set /consumers/billing/offsets/orders/0-0 4096
    $ pylogctl zk set /app/limits - --if-version 3 < limits.json
    """
    from broker.admin.registry_nodes import NodeChange
    from pylogctl.zk.changes import asks, carry_out, value_of

    after = value_of(env, value)
    with zookeeper_session(env) as session:
        before, stat = session.get(path)
        if if_version not in (None, stat.version):
            raise RegistryConflictError(f"node {path} has version {stat.version}, not {if_version}")
        is_ephemeral = stat.ephemeral_owner != 0
        change = NodeChange(path, "set", before, after, stat.version, is_ephemeral)
        carry_out(env, session, document.CHANGES_OF_VALUES, [change], asks(env, "set", path))


@app.command(_CHANGE_OPTIONS, exits=_CHANGES)
def create(env: Environment, path: PathArgument, value: _Value = "") -> None:
    """Create a persistent node, and its parents where they are missing.

    $ pylogctl zk create /app/limits '{"rate":10}'
    """
    from broker.admin import registry_nodes
    from pylogctl.zk.changes import asks, carry_out, value_of

    content = value_of(env, value)
    with zookeeper_session(env, may_be_new=True) as session:
        changes = registry_nodes.plan_creation(session, path, content)
        carry_out(env, session, document.CHANGES_OF_VALUES, changes, asks(env, "create", path))


@app.command(_CHANGE_OPTIONS, exits=_CHANGES)
def rm(
    env: Environment,
    path: PathArgument,
    recursive: bool = flag("-R, --recursive", "Delete everything below, too."),
    confirmed: str | None = safety.option(
        "--confirm PATH", "The path again; with --yes nothing is asked."
    ),
) -> None:
    """Delete a node; its value is saved.

    $ pylogctl zk rm -R /consumers/billing --dry-run
    $ pylogctl zk rm -R /consumers/billing --yes --confirm /consumers/billing
    """
    from broker.admin import registry_nodes
    from pylogctl.zk.changes import carry_out

    with zookeeper_session(env) as session:
        if path == "/":
            raise UsageError("'/' is the whole tree; name a node below it")
        if not recursive and (names := session.children(path)):
            raise CliError(
                ExitStatus.CONFLICT,
                f"node {path} has {len(names)} children",
                "-R deletes them, too",
                code="NODE_NOT_EMPTY",
            )
        session.get(path)  # must exist
        changes = registry_nodes.plan_removal(registry_nodes.read_tree(session, path))
        carry_out(
            env,
            session,
            document.CHANGES,
            changes,
            lambda _: confirm_name(env, "zk rm", path, confirmed),
        )


@app.command(shared.REGISTRY + shared.TIMEOUT, exits=_READS)
def export(env: Environment, path: _TreeArgument = "/") -> None:
    """Write a node and everything below it as lines of JSON, with exact values.

    $ pylogctl zk export /consumers > consumers.jsonl
    """
    from broker.admin import registry_nodes

    node_count = 0
    with zookeeper_session(env) as session:
        for node in registry_nodes.read_tree(session, path):
            env.write(registry_nodes.encode_node(node))
            node_count += 1
    env.note(f"{counted(node_count, 'node')} exported")


@app.command(_CHANGE_OPTIONS, exits=_CHANGES)
def import_(
    env: Environment,
    file: str = inputs.option(
        "--file FILE", "What `zk export` wrote; `-` is standard input.", default=...
    ),
    execute: shared.ExecuteOption = False,
) -> None:
    """Create and set nodes as an export has them.

    Nodes that the export lacks stay; ephemeral ones are skipped, as only a session can make them.

    $ pylogctl zk import --file consumers.jsonl
    $ pylogctl zk import --file consumers.jsonl --execute
    """
    from broker.admin import registry_nodes
    from pylogctl.zk.changes import asks, carry_out, opened

    with opened(env, file) as lines, zookeeper_session(env, may_be_new=True) as session:
        changes = registry_nodes.plan_import(session, registry_nodes.decode_lines(lines))
        ask = asks(env, "import", file)
        carry_out(env, session, document.CHANGES_OF_VALUES, changes, ask, is_shown_only=not execute)


@app.command(_READ_OPTIONS, exits=(*_READS, ExitStatus.CORRUPT, ExitStatus.CONFIG))
def diff(
    env: Environment,
    path: PathArgument,
    other: str = argument("FILE|HOST:PORT", "An export, or another ZooKeeper, or a context."),
) -> None:
    """Compare a node and everything below it with an export or another ZooKeeper.

    Ends with status 8 if they differ.

    $ pylogctl zk diff /consumers consumers.jsonl
    $ pylogctl zk diff /config zk-of-the-other-site:2181
    """
    from broker.admin import registry_nodes
    from pylogctl.zk.changes import other_tree

    found: Counter[str] = Counter()
    with zookeeper_session(env) as session, other_tree(env, path, other) as records:
        here = map(registry_nodes.as_record, registry_nodes.read_tree(session, path))

        def rows() -> Iterator[document.DifferenceRow]:
            for one in registry_nodes.compare(here, records):
                row = document.difference_row(one)
                found[row.difference] += 1
                yield row

        render(env, document.DIFF, rows())
    if found:
        differing = counted(found.total(), "node")
        raise CliError(ExitStatus.CORRUPT, f"{differing} at or below '{path}' differ")


@app.command(_CHANGE_OPTIONS, exits=(*_CHANGES, ExitStatus.CONFIG))
def secure(env: Environment) -> None:
    """Close the brokers' nodes to all but the user of the credential.

    All brokers must run with zookeeper.set.acl=true already. /consumers and /mirrors stay open;
    interrupted, it goes on when run again.

    $ pylogctl zk secure --zk-credential zk.secret --dry-run
    $ pylogctl zk secure -Z zk1:2181/kafka --zk-credential zk.secret --yes
    """
    from pylogctl.zk.changes import change_acls_of_brokers

    change_acls_of_brokers(env, is_secured=True)


@app.command(_CHANGE_OPTIONS, exits=(*_CHANGES, ExitStatus.CONFIG))
def open_(env: Environment) -> None:
    """Open the brokers' nodes to all clients, the way back from `zk secure`.

    All brokers must run with zookeeper.set.acl=false, and still with the credential.

    $ pylogctl zk open --zk-credential zk.secret
    """
    from pylogctl.zk.changes import change_acls_of_brokers

    change_acls_of_brokers(env, is_secured=False)


@app.command(shared.SUMMARY, exits=(ExitStatus.CONFLICT, ExitStatus.CONFIG, ExitStatus.REMOTE))
def start(
    env: Environment,
    data: Path = option("--data DIR", "Data directory.", default=Path("data/zookeeper")),
    port: int = option("--port PORT", "0 picks a free one.", min=0, max=65535, default=2181),
) -> None:
    """Run an embedded ZooKeeper server until it is told to stop.

    Prints one line once it is ready; its log is zookeeper.log in the data directory. It is
    ZooKeeper's own server, from the jars that come with PySpark, for development and single
    machines; it is started again if it ends, and ends with this command.

    $ pylogctl zk start --data /var/lib/pylogctl/zookeeper
    $ pylogctl zk start --port 0
    """
    from broker.zk.embedded import EmbeddedZooKeeper  # late: kazoo
    from pylogctl.cli.service import announce_ready

    server = EmbeddedZooKeeper(data, port=port, is_kept_up=True)
    with graceful_stop() as stop:
        server.start()
        try:
            log = str(data / "zookeeper.log")
            announce_ready(
                env,
                document.READY,
                document.ZooKeeperReadyRow(server.connect, os.getpid(), str(data), log),
            )
            while not stop.wait(0.5):
                pass
        finally:
            server.stop()


def _tree_rows(
    session: Session, path: str, depth: int | None, *, raw: bool
) -> Iterator[document.TreeRow]:
    from broker.admin.registry_nodes import read_nodes

    top = path.rstrip("/").count("/")
    for one, value, stat in read_nodes(
        session, (p for _, p in session.walk(path, max_depth=depth))
    ):
        text, level = describe_value(one, value, raw=raw), one.rstrip("/").count("/") - top
        yield document.TreeRow(one, level, text, node_columns(stat), fields_of(one, value))


def _draw(
    env: Environment, session: Session, top: str, max_depth: int | None, *, data: bool, raw: bool
) -> None:
    branch, corner, bar = (
        ("├── ", "└── ", "│   ") if env.unicode_output else ("|-- ", "`-- ", "|   ")
    )
    # each open level has a bar if a later node continues it, else a blank
    continues: list[bool] = []
    nodes = session.branches(top, max_depth=max_depth)
    while some := list(islice(nodes, _DRAWN_AT_ONCE)):
        values = session.get_many(path for _, path, _ in some) if data else {}
        for depth, path, is_last in some:
            continues = [*continues[:depth], not is_last]
            indent = "".join(bar if more else "    " for more in continues[1:depth])
            mark = (corner if is_last else branch) if depth else ""
            name = path.rpartition("/")[2] if depth else path
            value = describe_value(path, values[path][0], raw=raw) if path in values else ""
            env.write_line(f"{indent}{mark}{name}{f'  {value}' if value else ''}")


def _written(value: bytes, path: str, *, as_hex: bool, as_json: bool) -> bytes:
    if as_hex:
        return value.hex().encode()
    if not as_json:
        return value
    try:
        return json.dumps(json.loads(value), indent=2).encode()
    except ValueError as error:
        raise UsageError(f"the value of '{path}' is not JSON: {error}") from error


def _as_next(env: Environment) -> Environment:
    """Return the environment for the records after the first, which need no header."""
    output = "jsonl" if env.output == "json" else env.output
    return env.changed(settings=env.settings._replace(output=output, no_header=True))


def _session_row(owner: int, nodes: list[FoundNode]) -> document.SessionRow:
    brokers, members = [], []
    for node in nodes:
        match (fields_of(node.path, node.value) or {}).get("kind"), node.path.split("/"):
            case "broker", [*_, broker_id]:
                brokers.append(broker_id)
            case "member", [_, _, group, _, consumer_id]:
                members.append(f"{group}/{consumer_id}")
    paths = [node.path for node in nodes]
    return document.SessionRow(f"0x{owner & (1 << 64) - 1:x}", len(nodes), brokers, members, paths)


def _health_row(server: str, found: ServerHealth) -> document.HealthRow:
    facts = found.facts

    def number(name: str) -> int | None:
        text = facts.get(name, "")
        return int(text) if text.isdigit() else None

    return document.HealthRow(
        server,
        "down" if found.problem else "ok",
        facts.get("server_state"),
        list(found.answered_by),
        number("num_alive_connections"),
        number("outstanding_requests"),
        number("znode_count"),
        number("ephemerals_count"),
        number("watch_count"),
        facts.get("version", "").partition("-")[0].partition(",")[0] or None,
        found.problem,
        facts,
    )
