"""`pylogctl context`: the options of its commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pylogctl.cli import context as contexts
from pylogctl.cli.columns import Document, Fit, Rank, Row, Text
from pylogctl.cli.connections import open_cluster
from pylogctl.cli.declarations import argument, flag, option
from pylogctl.cli.environment import CliError, Context, Environment, ExitStatus, UsageError
from pylogctl.cli.options import OUTPUT, SECURITY, TIMEOUT, App
from pylogctl.cli.render import render

app = App()


class ContextRow(Row):
    """A named cluster."""

    name: Annotated[str, "name", Fit.WHOLE]
    current: Annotated[bool, "whether commands use it that name no cluster"]
    zookeeper: Annotated[Text, "its ZooKeeper", Rank(1)]
    brokers: Annotated[Text, "or its brokers", Rank(1)]
    timeout: Annotated[Text, "limit of a request", Rank(2)]
    tls: Annotated[bool, "whether brokers are spoken to over TLS", Rank(2)]
    user: Annotated[Text, "who logs in at brokers", Rank(2)]
    protected: Annotated[bool, "whether changes ask for its name", Rank(2)]
    read_only: Annotated[bool, "whether changes are refused", Rank(2)]
    color: Annotated[Text, "of its name before questions", Rank(3)]
    file: Annotated[str, "where it is", Rank(3)]


CONTEXTS = Document(
    "context.list/1", ContextRow, "no contexts; add one: pylogctl context add NAME -Z HOST:PORT"
)


@app.command(OUTPUT, exits=(ExitStatus.CONFIG,))
def list_(env: Environment) -> None:
    """List the contexts of all configuration files.

    $ pylogctl context list
    """
    found = _read(env)
    current = contexts.current_name(env.environ, found)
    rows = (_row(found.by_name[name], current) for name in sorted(found.by_name))
    render(env, CONTEXTS, rows)


@app.command(OUTPUT, exits=(ExitStatus.CONFIG, ExitStatus.NOT_FOUND))
def show(
    env: Environment,
    name: str | None = argument("[CONTEXT]", "Name. Default: the current one.", default=None),
) -> None:
    """Show a context.

    $ pylogctl context show
    $ pylogctl context show prod --output json
    """
    found = _read(env)
    current = contexts.current_name(env.environ, found)
    if name is None and current is None:
        env.note("no context is current; commands use localhost. Choose: pylogctl context use NAME")
        return
    render(env, CONTEXTS, [_row(found.find(name or current or ""), current)])


@app.command(exits=(ExitStatus.CONFIG, ExitStatus.NOT_FOUND), changes=True)
def use(env: Environment, name: str = argument("CONTEXT", "Name; - for the one before.")) -> None:
    """Have commands use a context from now on; -Z, -b and --context go over it.

    $ pylogctl context use prod
    $ pylogctl context use -
    """
    found = contexts.use(env.environ, _read(env), name)
    env.note(f"context '{found.name}' is current: {_cluster(found)}")


@app.command(
    SECURITY[:-1],  # a descriptor is open in one run only
    exits=(ExitStatus.CONFIG, ExitStatus.CONFLICT),
    changes=True,
)
def add(
    env: Environment,
    name: str = argument("NEW", "Name: letters, digits, - and _."),
    zookeeper: str | None = option(
        "-Z, --zookeeper HOST:PORT[,..][/CHROOT]", "ZooKeeper of the cluster."
    ),
    zk_credential: str | None = option(
        "--zk-credential FILE", "File with a line user:password for ZooKeeper."
    ),
    zk_tls_config: str | None = option(
        "--zk-tls-config FILE", "File with zookeeper.ssl.* properties."
    ),
    brokers: str | None = option(
        "-b, --broker HOST:PORT[,..]", "Its brokers, if it has no ZooKeeper."
    ),
    protected: bool = flag("--protected", "Changes ask for the context's name."),
    read_only: bool = flag("--read-only", "Changes are refused."),
) -> None:
    """Add a context to the user's configuration file.

    The password of a user is never in it, but in a file of its own. In the configuration file a
    context may also have a timeout, and a colour of its name in questions.

    $ pylogctl context add dev -Z localhost:2181/dev
    $ pylogctl context add prod -b b1:9093 --tls-ca ca.pem --user me --password-file secret
    $ pylogctl context add prod -Z zk1:2181,zk2:2181,zk3:2181 --protected
    """
    if (zookeeper is None) == (brokers is None):
        raise UsageError("give the cluster's ZooKeeper (-Z) or its brokers (-b)")
    given: dict[str, str | bool | None] = {
        "zookeeper": zookeeper,
        "zk_credential": zk_credential and str(Path(zk_credential).absolute()),
        "zk_tls_config": zk_tls_config and str(Path(zk_tls_config).absolute()),
        "brokers": brokers,
        "protected": protected,
        "read_only": read_only,
    }
    for key in contexts.SECURITY_KEYS:
        value = getattr(env.settings, key)
        given[key] = str(Path(value).absolute()) if value and key in contexts.FILE_KEYS else value
    added = contexts.add(env.environ, name, {key: one for key, one in given.items() if one})
    env.note(f"context '{name}' added to {added.file}; try: pylogctl context use {name}")


@app.command(exits=(ExitStatus.CONFIG, ExitStatus.NOT_FOUND))
def current(env: Environment) -> None:
    """Write the name of the current context; status 3 if none is.

    $ pylogctl context current
    """
    name = contexts.current_name(env.environ, _read(env))
    if name is None:
        raise CliError(
            ExitStatus.NOT_FOUND,
            "no context is current",
            "choose: pylogctl context use CONTEXT",
            code="CONTEXT_NOT_FOUND",
        )
    env.write_line(name)


@app.command(exits=(ExitStatus.CONFIG, ExitStatus.NOT_FOUND, ExitStatus.CONFLICT), changes=True)
def rename(
    env: Environment,
    name: str = argument("CONTEXT", "Name."),
    new: str = argument("NEW", "Its name from now on."),
) -> None:
    """Rename a context in its configuration file; what is current stays so.

    $ pylogctl context rename prod prod-west
    """
    found = _read(env).find(name)
    contexts.rename(env.environ, found, new)
    env.note(f"context '{name}' is '{new}' in {found.file}")


@app.command(TIMEOUT, exits=(ExitStatus.CONFIG, ExitStatus.NOT_FOUND))
def test(
    env: Environment,
    name: str | None = argument("[CONTEXT]", "Name. Default: the current one.", default=None),
) -> None:
    """Connect to the cluster of a context, and say which brokers it has.

    $ pylogctl context test
    $ pylogctl context test prod
    """
    found = _read(env)
    chosen = name or contexts.current_name(env.environ, found)
    if chosen is None:
        raise UsageError("no context is current; name one", "try: pylogctl context list")
    with open_cluster(contexts.at_cluster(env, chosen)) as cluster:
        ids = ", ".join(str(one.id) for one in cluster.brokers())
    env.note(f"context '{chosen}' works: {_cluster(found.find(chosen))} has brokers {ids or '-'}")


@app.command(exits=(ExitStatus.CONFIG, ExitStatus.NOT_FOUND, ExitStatus.CONFLICT), changes=True)
def remove(env: Environment, name: str = argument("CONTEXT", "Name.")) -> None:
    """Remove a context from its configuration file.

    $ pylogctl context remove dev
    """
    found = _read(env).find(name)
    contexts.remove(env.environ, found)
    env.note(f"context '{name}' removed from {found.file}")


def _read(env: Environment) -> contexts.Contexts:
    found = contexts.read_contexts(env.environ)
    for warning in found.warnings:
        env.warn(warning)
    return found


def _cluster(context: Context) -> str:
    return context.zookeeper or ",".join(context.brokers)


def _row(context: Context, current: str | None) -> ContextRow:
    return ContextRow.of(
        context,
        current=context.name == current,
        brokers=",".join(context.brokers) or None,
        tls=context.tls or bool(context.tls_ca or context.tls_cert),
        file=str(context.file),
    )
