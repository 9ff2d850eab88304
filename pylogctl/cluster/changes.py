"""The state-change logs of brokers, read from them or from their files, and merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from broker.admin import changes as admin
from broker.errors import BrokerUnreachableError
from broker.protocol.responses import BrokerAddress
from broker.state_changes import LoggedChange, decode_changes, merged
from pylogctl.cli.connections import Absence, connector, open_for_requests
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.failures import Done, for_each, raise_failures
from pylogctl.cli.process import graceful_stop
from pylogctl.cli.render import render
from pylogctl.cluster.document import CHANGES, change_row

_FILES = "state-changes-*.jsonl"


def show_files(env: Environment, paths: Sequence[Path], selects: admin.Selects) -> None:
    """Render the changes in files, or in data directories."""
    found, done = for_each(env, "paths", paths, lambda path: _read_path(env, path))
    _show(env, [one for changes in found for one in changes], selects)
    raise_failures(env, done)


def _read_path(env: Environment, path: Path) -> list[LoggedChange]:
    files = sorted(path.glob(_FILES)) if path.is_dir() else [path]
    if not files or not path.exists():
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"'{path}' has no state-change log" if path.exists() else f"no file '{path}'",
            f"a broker keeps it in its first data directory, in files {_FILES}",
        )
    changes: list[LoggedChange] = []
    for file in files:
        try:
            lines = file.read_bytes().splitlines()
        except OSError as error:
            text = f"cannot read '{file}': {error.strerror}"
            raise CliError(ExitStatus.FAILED, text) from error
        found, damaged_count = decode_changes(lines)
        if damaged_count:
            env.warn(admin.damage_text(str(file), damaged_count))
        changes += found
    return changes


def show_cluster(env: Environment, selects: admin.Selects) -> None:
    """Render the changes that all brokers of the cluster have logged."""
    with open_for_requests(env, absence=Absence.WARN) as side:

        def read(broker: BrokerAddress) -> list[LoggedChange]:
            with closing(admin.ChangeReader(side.connect, broker, env.warn)) as reader:
                return reader.read()

        found, done = for_each(env, "brokers", side.brokers(), read)
        absent = [
            BrokerUnreachableError(
                f"{error} (they are in its data directory: pylogctl cluster changes FILE...)"
            )
            for error in admin.absent_brokers(side).values()
        ]
    _show(env, [one for changes in found for one in changes], selects)
    raise_failures(
        env, Done([*done.failures, *absent], done.target_count + len(absent), done.plural)
    )


def _show(env: Environment, changes: Iterable[LoggedChange], selects: admin.Selects) -> None:
    render(env, CHANGES, [change_row(one) for one in merged(changes) if selects(one)])


def follow_cluster(env: Environment, selects: admin.Selects) -> ExitStatus:
    """Show the changes that brokers have logged, and new ones, until interrupted."""
    if env.settings.output == "json":
        raise UsageError(
            "--output json is one document, which --follow would never end",
            "--output jsonl has one object a line",
        )
    if env.settings.sort:
        raise UsageError("--sort needs all changes, and --follow shows them as they come")
    shown = env

    def show(changes: Iterable[LoggedChange]) -> None:
        """Write the changes of a round at once, with a header above the first ones only."""
        nonlocal shown
        if records := [change_row(one) for one in changes if selects(one)]:
            render(shown, CHANGES, records, is_part=True)
            shown.flush()
            shown = shown.changed(settings=shown.settings._replace(no_header=True))

    order = admin.Ordering()
    with ExitStack() as stack:
        side = stack.enter_context(open_for_requests(env, absence=Absence.WARN))
        connect = connector(env, timeout_s=admin.REQUEST_TIMEOUT_S)
        brokers = admin.FollowedBrokers(side._replace(connect=connect), env.warn, env.note)
        stack.callback(brokers.close)
        show(order.take(brokers.read_all()))
        stop = stack.enter_context(graceful_stop())
        while not stop.wait(admin.INTERVAL_S):
            env.check_reader()
            show(order.take(brokers.read()))
        show(order.take_rest())
        return stop.status
