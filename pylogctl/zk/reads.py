"""The work of the commands of `pylogctl zk` that read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice

from broker.admin.registry_nodes import Node, read_nodes, read_tree
from broker.endpoints import join_address
from broker.patterns import Pattern
from broker.units import counted, format_time
from broker.zk.health import ServerHealth, server_health
from broker.zk.known_nodes import decode_node
from broker.zk.paths import parse_connect_string
from broker.zk.session import Session
from broker.zk.tree_watch import TreeWatch
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, zookeeper_security, zookeeper_session
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.escapes import printable_bytes
from pylogctl.cli.process import graceful_stop
from pylogctl.cli.render import render
from pylogctl.zk.document import (
    FIND,
    GET,
    GET_STAT,
    HEALTH,
    LS,
    LS_LONG,
    SESSIONS,
    TREE,
    WATCH,
    ChildRow,
    EventRow,
    FoundRow,
    HealthRow,
    SessionRow,
    TreeRow,
    describe_value,
    node_columns,
    value_row,
)

_POLL_S = 0.2
_CHILDREN_ONLY = 1
_DRAWN_AT_ONCE = 64


def list_children(env: Environment, path: str, *, is_long: bool, recursive: bool) -> None:
    """List the children of a node, or all nodes below it."""

    def rows(session: Session) -> Iterator[ChildRow]:
        nodes = session.walk(path, max_depth=None if recursive else _CHILDREN_ONLY)
        next(nodes)  # the node itself
        children = (child for _, child in nodes)
        if is_long or env.settings.output:
            for node in read_nodes(session, children):
                yield ChildRow(name_of(node.path), node_columns(node.stat))
        else:
            yield from (ChildRow(name_of(child)) for child in children)

    def name_of(child: str) -> str:
        return child if recursive else child.rpartition("/")[2]

    with zookeeper_session(env) as session:
        render(env, LS_LONG if is_long else LS, rows(session))


def show_tree(env: Environment, path: str, depth: int | None, *, data: bool, raw: bool) -> None:
    """Draw a node and everything below it, or write a row for each."""
    with zookeeper_session(env) as session:
        if env.settings.output is None and not env.settings.columns:
            _draw(env, session, path, depth, data=data, raw=raw)
        else:
            render(env, TREE, _tree_rows(session, path, depth, raw=raw))


def _tree_rows(session: Session, path: str, depth: int | None, *, raw: bool) -> Iterator[TreeRow]:
    top = path.rstrip("/").count("/")
    for one, value, stat in read_nodes(
        session, (p for _, p in session.walk(path, max_depth=depth))
    ):
        text, level = describe_value(one, value, raw=raw), one.rstrip("/").count("/") - top
        yield TreeRow(one, level, text, node_columns(stat), decode_node(one, value))


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


def get(
    env: Environment, path: str, *, as_hex: bool, as_json: bool, raw: bool, show_stat: bool
) -> None:
    """Write the value of a node; on a terminal with escapes, unless `raw`."""
    with zookeeper_session(env) as session:
        value, stat = session.get(path)
    if env.settings.output or env.settings.columns or show_stat:
        render(env, GET_STAT if show_stat else GET, [value_row(path, value, stat)])
        return
    written = _written(value, path, as_hex=as_hex, as_json=as_json)
    if env.streams.stdout_is_tty and not raw:
        written = printable_bytes(written, keep="\t\n")
    env.write(written)
    if env.streams.stdout_is_tty and not raw:
        env.write(b"\n")


def _written(value: bytes, path: str, *, as_hex: bool, as_json: bool) -> bytes:
    if as_hex:
        return value.hex().encode()
    if not as_json:
        return value
    try:
        return json.dumps(json.loads(value), indent=2).encode()
    except ValueError as error:
        raise UsageError(f"the value of '{path}' is not JSON: {error}") from error


def find(env: Environment, path: str, pattern: str, *, in_data: bool) -> None:
    """List the nodes whose path, or also whose value, matches a regular expression."""
    matches = Pattern(pattern).search

    def is_found(node: Node) -> bool:
        text = node.value.decode("utf-8", "replace")
        return bool(matches(node.path) or matches(text))

    with zookeeper_session(env) as session:
        if in_data:
            nodes: Iterable[Node] = filter(is_found, read_tree(session, path))
        else:
            nodes = read_nodes(session, (one for _, one in session.walk(path) if matches(one)))
        render(
            env,
            FIND,
            (
                FoundRow(
                    one.path,
                    describe_value(one.path, one.value),
                    node_columns(one.stat),
                    decode_node(one.path, one.value),
                )
                for one in nodes
            ),
        )


def watch(env: Environment, path: str, *, recursive: bool) -> None:
    """Write a line for each change of a node and its children, or all below, until stopped."""
    with zookeeper_session(env) as session, graceful_stop() as stop:
        tree = TreeWatch(session, path, max_depth=None if recursive else _CHILDREN_ONLY)
        env.report(f"watching {counted(tree.node_count, 'node')}")
        header_env = env
        while not stop.is_set:
            env.check_reader()
            for event in tree.events(_POLL_S):
                value = None if event.value is None else describe_value(event.path, event.value)
                fields = None if event.value is None else decode_node(event.path, event.value)
                row = EventRow(
                    env.clock.time_ms(), event.action, event.path, event.stat.version, value, fields
                )
                if env.settings.output is None and not env.settings.columns:
                    words = (format_time(row.time or 0), f"{row.event:<7}", row.path, value or "")
                    env.write_line("  ".join(words).rstrip())
                else:
                    render(header_env, WATCH, [row])
                    header_env = _as_next(env)
                env.flush()


def _as_next(env: Environment) -> Environment:
    """Return the environment for the records after the first, which need no header."""
    output = "jsonl" if env.output == "json" else env.output
    return env.changed(settings=env.settings._replace(output=output, no_header=True))


def sessions(env: Environment, path: str) -> None:
    """List the sessions that have ephemeral nodes below a path."""
    found: dict[int, list[Node]] = {}
    with zookeeper_session(env) as session:
        for node in read_tree(session, path):
            if node.is_ephemeral:
                found.setdefault(node.stat.ephemeral_owner, []).append(node)
    render(env, SESSIONS, (_session_row(owner, nodes) for owner, nodes in found.items()))


def _session_row(owner: int, nodes: list[Node]) -> SessionRow:
    brokers, members = [], []
    for node in nodes:
        match (decode_node(node.path, node.value) or {}).get("kind"), node.path.split("/"):
            case "broker", [*_, broker_id]:
                brokers.append(broker_id)
            case "member", [_, _, group, _, consumer_id]:
                members.append(f"{group}/{consumer_id}")
    paths = [node.path for node in nodes]
    return SessionRow(f"0x{owner & (1 << 64) - 1:x}", len(nodes), brokers, members, paths)


def health(env: Environment) -> None:
    """Ask each server of ZooKeeper how it is."""
    hosts = parse_connect_string(env.zookeeper).hosts
    timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)
    security = zookeeper_security(env)
    tls = None if security is None else security.tls

    def ask() -> Iterator[tuple[str, ServerHealth]]:
        for host, port in hosts:
            yield join_address(host, port), server_health(host, port, timeout_s=timeout_s, tls=tls)

    found = dict(ask())
    render(env, HEALTH, [_health_row(server, one) for server, one in found.items()])
    down = [f"{server}: {one.problem}" for server, one in found.items() if one.problem]
    if down:
        raise CliError(
            ExitStatus.PARTIAL if len(down) < len(found) else ExitStatus.UNREACHABLE,
            f"{len(down)} of {counted(len(found), 'server')} of ZooKeeper cannot serve",
            *down,
        )


def _health_row(server: str, found: ServerHealth) -> HealthRow:
    facts = found.facts

    def number(name: str) -> int | None:
        text = facts.get(name, "")
        return int(text) if text.isdigit() else None

    return HealthRow(
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
