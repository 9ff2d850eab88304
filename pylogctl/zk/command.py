"""`pylogctl zk`: show and change nodes of ZooKeeper, or run an embedded server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pylogctl.cli.declarations import argument, flag, inputs, option, safety
from pylogctl.cli.environment import Environment, ExitStatus, UsageError
from pylogctl.cli.options import (
    CONFIRM,
    DRY_RUN,
    OUTPUT,
    REGISTRY,
    SUMMARY,
    TIMEOUT,
    App,
    ExecuteOption,
)
from pylogctl.zk.paths import checked_path

app = App()

_READS = (ExitStatus.NOT_FOUND,)
_READ_OPTIONS = (*OUTPUT, *REGISTRY, *TIMEOUT)
_CHANGE_OPTIONS = (*_READ_OPTIONS, *CONFIRM, *DRY_RUN)
_CHANGES = (ExitStatus.NOT_FOUND, ExitStatus.CONFLICT, ExitStatus.PARTIAL)

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
    from pylogctl.zk import reads

    reads.list_children(env, path, is_long=long, recursive=recursive)


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
    from pylogctl.zk import reads

    reads.show_tree(env, path, depth, data=data or raw, raw=raw)


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
    from pylogctl.zk import reads

    if as_hex + as_json + raw + show_stat > 1:
        raise UsageError("only one of --raw, --json, --hex and --stat is possible")
    reads.get(env, path, as_hex=as_hex, as_json=as_json, raw=raw, show_stat=show_stat)


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
    from pylogctl.zk import reads

    reads.find(env, path, pattern, in_data=data)


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
    from pylogctl.zk import reads

    reads.watch(env, path, recursive=recursive)


@app.command(_READ_OPTIONS, exits=_READS)
def sessions(env: Environment, path: _TreeArgument = "/") -> None:
    """List the sessions with ephemeral nodes: who is registered by which.

    $ pylogctl zk sessions
    $ pylogctl zk sessions /brokers
    """
    from pylogctl.zk import reads

    reads.sessions(env, path)


@app.command(_READ_OPTIONS, exits=(ExitStatus.PARTIAL, ExitStatus.CONFIG))
def health(env: Environment) -> None:
    """Ask each server how it is: by four-letter words, or its admin server at port 8080.

    $ pylogctl zk health -Z zk1,zk2,zk3
    """
    from pylogctl.zk import reads

    reads.health(env)


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
    from pylogctl.zk import changes

    changes.set_value(env, path, changes.value_of(env, value), version=if_version)


@app.command(_CHANGE_OPTIONS, exits=_CHANGES)
def create(env: Environment, path: PathArgument, value: _Value = "") -> None:
    """Create a persistent node, and its parents where they are missing.

    $ pylogctl zk create /app/limits '{"rate":10}'
    """
    from pylogctl.zk import changes

    changes.create(env, path, changes.value_of(env, value))


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
    from pylogctl.zk import changes

    changes.remove(env, path, recursive=recursive, confirmed=confirmed)


@app.command(REGISTRY + TIMEOUT, exits=_READS)
def export(env: Environment, path: _TreeArgument = "/") -> None:
    """Write a node and everything below it as lines of JSON, with exact values.

    $ pylogctl zk export /consumers > consumers.jsonl
    """
    from pylogctl.zk import changes

    changes.export(env, path)


@app.command(_CHANGE_OPTIONS, exits=_CHANGES)
def import_(
    env: Environment,
    file: str = inputs.option(
        "--file FILE", "What `zk export` wrote; `-` is standard input.", default=...
    ),
    execute: ExecuteOption = False,
) -> None:
    """Create and set nodes as an export has them.

    Nodes that the export lacks stay; ephemeral ones are skipped, as only a session can make them.

    $ pylogctl zk import --file consumers.jsonl
    $ pylogctl zk import --file consumers.jsonl --execute
    """
    from pylogctl.zk import changes

    changes.import_nodes(env, file, execute=execute)


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
    from pylogctl.zk import changes

    changes.diff(env, path, other)


@app.command(_CHANGE_OPTIONS, exits=(*_CHANGES, ExitStatus.CONFIG))
def secure(env: Environment) -> None:
    """Close the brokers' nodes to all but the user of the credential.

    All brokers must run with zookeeper.set.acl=true already. /consumers and /mirrors stay open;
    interrupted, it goes on when run again.

    $ pylogctl zk secure --zk-credential zk.secret --dry-run
    $ pylogctl zk secure -Z zk1:2181/kafka --zk-credential zk.secret --yes
    """
    from pylogctl.zk import changes

    changes.change_acls_of_brokers(env, is_secured=True)


@app.command(_CHANGE_OPTIONS, exits=(*_CHANGES, ExitStatus.CONFIG))
def open_(env: Environment) -> None:
    """Open the brokers' nodes to all clients, the way back from `zk secure`.

    All brokers must run with zookeeper.set.acl=false, and still with the credential.

    $ pylogctl zk open --zk-credential zk.secret
    """
    from pylogctl.zk import changes

    changes.change_acls_of_brokers(env, is_secured=False)


@app.command(SUMMARY, exits=(ExitStatus.CONFLICT, ExitStatus.CONFIG, ExitStatus.REMOTE))
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
    from broker.zk.embedded import EmbeddedZooKeeper
    from pylogctl.cli.process import graceful_stop
    from pylogctl.cli.service import announce_ready
    from pylogctl.zk.document import READY, ReadyRow

    server = EmbeddedZooKeeper(data, port=port, is_kept_up=True)
    with graceful_stop() as stop:
        server.start()
        try:
            log = str(data / "zookeeper.log")
            announce_ready(env, READY, ReadyRow(server.connect, os.getpid(), str(data), log))
            while not stop.wait(0.5):
                pass
        finally:
            server.stop()
