"""`pylogctl cluster changes --follow`: new state changes of all brokers, in one order."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from broker.admin.changes import (
    INTERVAL_S,
    REQUEST_TIMEOUT_S,
    FollowedBrokers,
    Ordering,
    Selects,
)
from broker.state_changes import LoggedChange
from pylogctl.cli.connections import Absence, connector, open_cluster
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.process import graceful_stop
from pylogctl.cli.render import render
from pylogctl.cluster.document import CHANGES, change_row


def follow_cluster(env: Environment, selects: Selects) -> ExitStatus:
    """Show the changes that brokers have logged, and new ones, until interrupted."""
    if env.settings.output == "json":
        raise UsageError(
            "--output json is one document, which --follow would never end",
            hints=["--output jsonl has one object a line"],
        )
    if env.settings.sort:
        raise UsageError("--sort needs all changes, and --follow shows them as they come")
    connect = connector(env, timeout_s=REQUEST_TIMEOUT_S)
    output = _Output(env, selects)
    order = Ordering()
    with ExitStack() as stack:
        cluster = stack.enter_context(open_cluster(env, absence=Absence.WARN))
        brokers = FollowedBrokers(cluster, connect, env.warn, env.note)
        stack.callback(brokers.close)
        output.show(order.take(brokers.read_all()))
        stop = stack.enter_context(graceful_stop())
        while not stop.wait(INTERVAL_S):
            env.check_reader()
            output.show(order.take(brokers.read()))
        output.show(order.take_rest())
        return stop.status


class _Output:
    """Writes changes in the format of `--output`, each round at once."""

    def __init__(self, env: Environment, selects: Selects) -> None:
        self._env = env
        self._selects = selects

    def show(self, changes: Iterable[LoggedChange]) -> None:
        records = [change_row(one) for one in changes if self._selects(one)]
        if not records:
            return
        render(self._env, CHANGES, records, is_part=True)
        self._env.flush()
        without_header = self._env.settings._replace(no_header=True)
        self._env = self._env.changed(settings=without_header)
