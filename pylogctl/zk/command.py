"""`pylogctl zk`: show the registry in ZooKeeper, or run an embedded server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from broker.errors import CoordinationError
from pylogctl.cli.connections import zookeeper_session
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.escapes import printable_bytes
from pylogctl.cli.options import OUTPUT, REGISTRY, SUMMARY, TIMEOUT, accepts, argument, flag, option
from pylogctl.cli.render import render
from pylogctl.cli.tree import Command, new_app
from pylogctl.zk.document import (
    GET,
    LS,
    LS_LONG,
    READY,
    STAT,
    TREE,
    ChildRow,
    NodeColumns,
    ReadyRow,
    TreeRow,
    ValueRow,
    describe_value,
    node_columns,
    stat_row,
)

if TYPE_CHECKING:
    from broker.zk.session import Session

app = new_app("Look into ZooKeeper, or start one.")

_READS = (ExitStatus.NOT_FOUND,)
_READ_OPTIONS = (*OUTPUT, *REGISTRY, *TIMEOUT)


def _checked_path(path: str) -> str:
    from broker.zk.paths import resolve

    try:
        return resolve("", path)
    except CoordinationError as error:
        raise UsageError(str(error)) from error


PathArgument = Annotated[str, argument("PATH", "Path below the chroot.", parser=_checked_path)]


def _below(session: Session, path: str, max_depth: int | None) -> Iterator[tuple[int, str]]:
    nodes = session.walk(path, max_depth=max_depth)
    next(nodes)  # the node itself
    yield from nodes


@app.command("ls", cls=Command)
@accepts(
    *_READ_OPTIONS,
    exits=_READS,
    examples=("pylogctl zk ls /brokers/ids", "pylogctl zk ls -l -R /consumers"),
)
def ls(
    env: Environment,
    path: PathArgument = "/",
    long: bool = flag("-l, --long", "Options", "Show version, size, children and times."),
    recursive: bool = flag("-R, --recursive", "Options", "Show everything below."),
) -> None:
    """List the children of a node."""
    with zookeeper_session(env) as session:
        depth = None if recursive else 1
        rows = []
        for _, child in _below(session, path, depth):
            name = child if recursive else child.rpartition("/")[2]
            stat = session.exists(child) if long or env.settings.output else None
            rows.append(ChildRow(name, node_columns(stat) if stat else NodeColumns()))
    render(env, LS_LONG if long else LS, rows)


@app.command("tree", cls=Command)
@accepts(
    *_READ_OPTIONS,
    exits=_READS,
    examples=("pylogctl zk tree /brokers --data", "pylogctl zk tree --output jsonl"),
)
def tree(
    env: Environment,
    path: PathArgument = "/",
    depth: int | None = option("--depth N", "Options", "Levels to go down. Default: all.", min=0),
    data: bool = flag("--data", "Options", "Show values too."),
    raw: bool = flag("--raw", "Options", "Do not decode the values of known nodes."),
) -> None:
    """Draw a node and everything below it."""
    with zookeeper_session(env) as session:
        nodes = list(session.walk(path, max_depth=depth))
        if env.settings.output is None and not env.settings.columns:
            _draw(env, session, nodes, data=data or raw, raw=raw)
        else:
            render(env, TREE, _tree_rows(session, nodes, raw=raw))


def _tree_rows(session: Session, nodes: list[tuple[int, str]], *, raw: bool) -> Iterator[TreeRow]:
    for depth, path in nodes:
        value, stat = session.get(path)
        yield TreeRow(path, depth, describe_value(path, value, raw=raw), node_columns(stat))


def _draw(
    env: Environment, session: Session, nodes: list[tuple[int, str]], *, data: bool, raw: bool
) -> None:
    branch, corner, bar = (
        ("├── ", "└── ", "│   ") if env.unicode_output else ("|-- ", "`-- ", "|   ")
    )
    # each open level has a bar if a later node continues it, else a blank
    continues: list[bool] = []
    for position, (depth, path) in enumerate(nodes):
        later = (d for d, _ in nodes[position + 1 :])
        has_sibling = next((d == depth for d in later if d <= depth), False)
        continues = [*continues[:depth], has_sibling]
        indent = "".join(bar if more else "    " for more in continues[1:depth])
        mark = (branch if has_sibling else corner) if depth else ""
        name = path.rpartition("/")[2] if depth else path
        value = describe_value(path, session.get(path)[0], raw=raw) if data else ""
        env.write_line(f"{indent}{mark}{name}{f'  {value}' if value else ''}")


@app.command("get", cls=Command)
@accepts(
    *_READ_OPTIONS,
    exits=_READS,
    examples=("pylogctl zk get /brokers/ids/0", "pylogctl zk get /brokers/ids/0 --output json"),
)
def get(
    env: Environment,
    path: PathArgument,
    as_hex: bool = flag("--hex", "Options", "Write it in hexadecimal."),
    as_json: bool = flag("--json", "Options", "Parse it and write it as JSON."),
    raw: bool = flag("--raw", "Options", "Write it exactly, on a terminal too."),
    show_stat: bool = flag("-s, --stat", "Options", "Show version, size, times and owner too."),
) -> None:
    """Write the value of a node, byte for byte.

    On a terminal control characters are shown as escapes, unless --raw is given.
    """
    if as_hex + as_json + raw > 1:
        raise UsageError("only one of --raw, --json and --hex is possible")
    with zookeeper_session(env) as session:
        value, stat = session.get(path)
    if env.settings.output or env.settings.columns:
        text = value.decode("utf-8", "backslashreplace")
        render(env, GET, [ValueRow(path, text, value.hex(), node_columns(stat))])
        return
    written = _written(value, path, as_hex=as_hex, as_json=as_json)
    if env.streams.stdout_is_tty and not raw:
        written = printable_bytes(written, keep="\t\n")
    env.write(written)
    if show_stat:
        env.write(b"\n")
        render(env, STAT, [stat_row(path, stat)])
    elif env.streams.stdout_is_tty and not raw:
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


@app.command("stat", cls=Command)
@accepts(*_READ_OPTIONS, exits=_READS, examples=("pylogctl zk stat /brokers/ids/0",))
def stat(env: Environment, path: PathArgument) -> None:
    """Show version, size, times and owner of a node."""
    with zookeeper_session(env) as session:
        _, node_stat = session.get(path)
    render(env, STAT, [stat_row(path, node_stat)])


@app.command("start", cls=Command)
@accepts(
    *SUMMARY,
    exits=(ExitStatus.CONFLICT, ExitStatus.CONFIG, ExitStatus.REMOTE, ExitStatus.FAILED),
    examples=("pylogctl zk start --data /var/lib/pylogctl/zookeeper", "pylogctl zk start --port 0"),
)
def start(
    env: Environment,
    data: Path = option("--data DIR", "Options", "Data directory.", default=Path("data/zookeeper")),
    host: str = option("--host HOST", "Options", "Address to listen on.", default="127.0.0.1"),
    port: int = option(
        "--port PORT", "Options", "0 picks a free one.", min=0, max=65535, default=2181
    ),
    log_file: Path | None = option(
        "--log-file FILE", "Options", "Default: zookeeper.log beside the data."
    ),
) -> None:
    """Run an embedded ZooKeeper server until it is told to stop.

    Prints one line once it is ready. It is ZooKeeper's own server, from the jars that come with
    PySpark, for development and single machines; it ends with this command.
    """
    from broker.zk.embedded import EmbeddedZooKeeper
    from pylogctl.cli.process import graceful_stop
    from pylogctl.cli.service import announce_ready

    server = EmbeddedZooKeeper(data, host=host, port=port, log_file=log_file)
    with graceful_stop() as stop:
        server.start()
        try:
            log = str(log_file or data / "zookeeper.log")
            announce_ready(env, READY, ReadyRow(server.connect, os.getpid(), str(data), log))
            while not stop.wait(0.5):
                if server.pid is None:
                    raise CliError(
                        ExitStatus.FAILED,
                        f"ZooKeeper at {server.connect} ended by itself",
                        hints=[f"its log is {log}"],
                    )
        finally:
            server.stop()
