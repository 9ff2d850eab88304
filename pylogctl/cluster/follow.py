"""`pylogctl cluster changes --follow`: new state changes of all brokers, in one order."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace

from broker.client.cluster import Cluster, Connect
from broker.errors import BrokerError, BrokerUnreachableError
from broker.state_changes import LoggedChange, merged
from pylogctl.cli.connections import Absence, connector, open_cluster
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.process import graceful_stop
from pylogctl.cli.render import render
from pylogctl.cluster.changes import ChangeReader, Selects
from pylogctl.cluster.document import CHANGES, change_row

_INTERVAL_S = 1.0
"""Between two rounds, in each of which every broker is asked once."""
_REQUEST_TIMEOUT_S = 5.0
"""A broker that takes longer holds up the others once, and is left out for `_RETRY_S`."""
_RETRY_S = 5.0
_FIND_S = 5.0
"""How often the brokers of the cluster are listed."""
_AWAY_RETRY_S = 30.0
"""Pause before a broker that is not registered is asked again, and after a failed listing."""


def follow_cluster(env: Environment, selects: Selects) -> ExitStatus:
    """Show the changes that brokers have logged, and new ones, until interrupted."""
    if env.settings.output == "json":
        raise UsageError(
            "--output json is one document, which --follow would never end",
            hints=["--output jsonl has one object a line"],
        )
    if env.settings.sort:
        raise UsageError("--sort needs all changes, and --follow shows them as they come")
    connect = connector(env, timeout_s=_REQUEST_TIMEOUT_S)
    output = _Output(env, selects)
    order = Ordering()
    with ExitStack() as stack:
        cluster = stack.enter_context(open_cluster(env, absence=Absence.WARN))
        brokers = _Brokers(env, cluster, connect)
        stack.callback(brokers.close)
        stop = stack.enter_context(graceful_stop())
        output.show(order.take(brokers.read_all()))
        while not stop.wait(_INTERVAL_S):
            env.check_reader()
            output.show(order.take(brokers.read()))
        output.show(order.take_rest())
        return stop.status


class Ordering:
    """Keeps changes for one round, and returns them in order."""

    def __init__(self) -> None:
        # A change is returned once every broker was asked after it was read: the decision that led
        # to it is known then, whichever broker was asked first.
        self._held: list[LoggedChange] = []

    def take(self, changes: Iterable[LoggedChange]) -> list[LoggedChange]:
        """Return the changes of earlier rounds, and those of this one that come before them."""
        # `changes` has those of each broker in the order in which it logged them.
        old = {id(one) for one in self._held}
        ordered = merged([*self._held, *changes])
        count = max((n for n, one in enumerate(ordered, start=1) if id(one) in old), default=0)
        self._held = ordered[count:]
        return ordered[:count]

    def take_rest(self) -> list[LoggedChange]:
        """Return the changes that are left."""
        held, self._held = self._held, []
        return held


class _Output:
    """Writes changes in the format of `--output`, each round at once."""

    def __init__(self, env: Environment, selects: Selects) -> None:
        self._env = env
        self._selects = selects

    def show(self, changes: Iterable[LoggedChange]) -> None:
        records = [change_row(one) for one in changes if self._selects(one)]
        if not records:
            return
        render(self._env, CHANGES, records)
        self._env.flush()
        without_header = replace(self._env.settings, no_header=True)
        self._env = replace(self._env, settings=without_header)


@dataclass(slots=True)
class _Followed:
    """A broker whose changes are read."""

    reader: ChangeReader
    is_listed: bool = True  # by the cluster
    problem: str = ""  # why it is not asked at present
    retry_at_s: float = 0.0


class _Brokers:
    """The brokers of a cluster, including those that are down; warns when one stops responding."""

    def __init__(self, env: Environment, cluster: Cluster, connect: Connect) -> None:
        self._env = env
        self._cluster = cluster
        self._connect = connect
        self._followed: dict[int, _Followed] = {}
        self._find_at_s = 0.0
        self._find_problem = ""

    def close(self) -> None:
        for one in self._followed.values():
            one.reader.close()

    def read_all(self) -> list[LoggedChange]:
        """Return the changes at the start; raise if brokers cannot be listed, or none responds."""
        self._find()
        changes = self._read_known()
        problems = [one.problem for one in self._followed.values()]
        if problems and all(problems):
            raise BrokerUnreachableError("no broker can be asked for its changes")
        return changes

    def read(self) -> list[LoggedChange]:
        """Return the changes since the last call, of the brokers that respond."""
        if self._env.clock.monotonic_s() >= self._find_at_s:
            try:
                self._find()
            except BrokerError as error:
                if not self._find_problem:
                    self._env.warn(f"{error}; going on with the brokers that are known")
                self._find_problem = str(error)
            else:
                self._find_problem = ""
            pause_s = _AWAY_RETRY_S if self._find_problem else _FIND_S
            self._find_at_s = self._env.clock.monotonic_s() + pause_s
        return self._read_known()

    def _find(self) -> None:
        found = {one.id: one for one in self._cluster.brokers()}
        for broker_id, broker in found.items():
            known = self._followed.get(broker_id)
            if known is None:
                reader = ChangeReader(self._env, self._connect, broker)
                self._followed[broker_id] = _Followed(reader)
                continue
            if known.reader.broker != broker:
                known.reader.move(broker)
                known.retry_at_s = 0.0
            elif not known.is_listed:
                known.retry_at_s = 0.0
        for broker_id, one in self._followed.items():
            one.is_listed = broker_id in found

    def _read_known(self) -> list[LoggedChange]:
        changes: list[LoggedChange] = []
        for broker_id, one in sorted(self._followed.items()):
            if self._env.clock.monotonic_s() < one.retry_at_s:
                continue
            try:
                changes += one.reader.read()
            except BrokerError as error:
                if not one.problem:
                    self._env.warn(f"{error}; its changes are shown when it is back")
                one.problem = str(error)
                pause_s = _RETRY_S if one.is_listed else _AWAY_RETRY_S
                one.retry_at_s = self._env.clock.monotonic_s() + pause_s
                continue
            if one.problem:
                self._env.note(f"broker {broker_id} is back")
            one.problem = ""
        return changes
