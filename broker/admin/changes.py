"""The state-change logs of brokers: read from all of them, once or repeatedly, in one order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.client.side import Side
from broker.errors import BrokerError, BrokerUnreachableError, UnsupportedVersionError
from broker.protocol import responses
from broker.protocol.extension_requests import ReadChangesRequest
from broker.protocol.responses import BrokerAddress
from broker.state_changes import LoggedChange, decode_changes, merged
from broker.topic import NO_HOME, TopicPartition

REQUEST_TIMEOUT_S = 5.0
"""A broker that takes longer holds up the others once, and is left out for `_RETRY_S`."""
INTERVAL_S = 1.0
"""Between two rounds of followed changes, in each of which every broker is asked once."""
_RETRY_S = 5.0
_FIND_S = 5.0
"""How often the brokers of the cluster are listed."""
_AWAY_RETRY_S = 30.0
"""Pause before a broker that is not registered is asked again, and after a failed listing."""

Selects = Callable[[LoggedChange], bool]
Tell = Callable[[str], None]


def selecting(
    topic: str | None, matches: Callable[[TopicPartition], bool] | None, since_ms: int | None
) -> Selects:
    """Return a filter of changes; those without a partition are only selected by time."""

    def selects(one: LoggedChange) -> bool:
        if since_ms is not None and one.time_ms < since_ms:  # by the clock of its broker
            return False
        if one.partition is None:
            return True
        if topic is not None and one.partition.topic != topic:
            return False
        return matches is None or matches(one.partition)

    return selects


def damage_text(source: str, damaged_count: int) -> str:
    """Return for a message that lines of a log are not understood."""
    return f"{source}: {damaged_count} lines are no state changes and are left out"


@dataclass(eq=False, slots=True)
class ChangeReader:
    """Reads the state-change log of one broker, each time from where it ended before."""

    connect: Connect
    broker: BrokerAddress
    warn: Tell
    is_listed: bool = True  # by the cluster
    problem: BrokerError | None = None  # why it is not asked at present
    retry_at_s: float = 0.0
    _connection: Connection | None = None
    _position: int = -1

    def move(self, broker: BrokerAddress) -> None:
        """Continue at another address of the same broker."""
        self.close()
        self.broker = broker
        self.retry_at_s = 0.0

    def close(self) -> None:
        """Close the connection; `read` opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def read(self) -> list[LoggedChange]:
        """Return what the broker has logged since the last call."""
        if self._connection is None:
            self._connection = self.connect(self.broker)
        try:
            return self._read(self._connection)
        except BrokerError:
            self.close()
            raise

    def _read(self, connection: Connection) -> list[LoggedChange]:
        if not connection.understands(ReadChangesRequest):
            raise UnsupportedVersionError(f"{connection.name} keeps no state-change log")
        lines: list[bytes] = []
        position = self._position
        while True:
            start, data = responses.CHANGES.decode(connection.call(ReadChangesRequest(position)))
            if not data:
                break
            lines += data.splitlines()
            position = start + len(data)
        self._position = position  # not before: after an error, the next call reads all again
        changes, damaged_count = decode_changes(lines)
        if damaged_count:
            self.warn(damage_text(f"broker {self.broker.id}", damaged_count))
        return changes


def absent_brokers(side: Side) -> dict[int, BrokerError]:
    """Return the brokers that have replicas and are not live: why their changes are missing."""
    try:
        metadata = side.metadata(None)
    except BrokerError:  # errors of the brokers are reported already
        return {}
    live = {broker.id for broker in metadata.brokers}
    partitions = metadata.partitions
    absent = {id for one in partitions for id in (one.partition.home, *one.replicas)}
    absent -= {*live, NO_HOME}
    return {
        one: BrokerUnreachableError(f"broker {one} is not there: its changes are missing")
        for one in sorted(absent)
    }


@dataclass(eq=False)
class Ordering:
    """Keeps changes for one round, and returns them in order."""

    # A change is returned once every broker was asked after it was read: the decision that led
    # to it is known then, whichever broker was asked first.
    _held: list[LoggedChange] = field(default_factory=list, init=False)

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


@dataclass(eq=False)
class FollowedBrokers:
    """Reads the new changes of all brokers of a cluster, including those that are down."""

    side: Side
    warn: Tell  # is told once that a broker stops responding
    note: Tell  # is told that it is back
    _followed: dict[int, ChangeReader] = field(default_factory=dict, init=False)
    _find_at_s: float = field(default=0.0, init=False)
    _find_problem: str = field(default="", init=False)

    def close(self) -> None:
        """Close the connections."""
        for one in self._followed.values():
            one.close()

    @property
    def problems(self) -> dict[int, BrokerError]:
        """Return why brokers are not asked at present."""
        found = self._followed.items()
        return {id: one.problem for id, one in found if one.problem is not None}

    def read_all(self) -> list[LoggedChange]:
        """Return the changes at the start; raise if brokers cannot be listed, or none responds."""
        self._find()
        changes = self._read_known()
        if self._followed and len(self.problems) == len(self._followed):
            raise BrokerUnreachableError("no broker can be asked for its changes")
        return changes

    def read(self) -> list[LoggedChange]:
        """Return the changes since the last call, of the brokers that respond."""
        if time.monotonic() >= self._find_at_s:
            try:
                self._find()
            except BrokerError as error:
                if not self._find_problem:
                    self.warn(f"{error}; going on with the brokers that are known")
                self._find_problem = str(error)
            else:
                self._find_problem = ""
            pause_s = _AWAY_RETRY_S if self._find_problem else _FIND_S
            self._find_at_s = time.monotonic() + pause_s
        return self._read_known()

    def _find(self) -> None:
        found = {one.id: one for one in self.side.brokers()}
        for broker_id, broker in found.items():
            known = self._followed.get(broker_id)
            if known is None:
                reader = ChangeReader(self.side.connect, broker, self.warn)
                self._followed[broker_id] = reader
            elif known.broker != broker:
                known.move(broker)
            elif not known.is_listed:
                known.retry_at_s = 0.0
        for broker_id, one in self._followed.items():
            one.is_listed = broker_id in found

    def _read_known(self) -> list[LoggedChange]:
        changes: list[LoggedChange] = []
        for broker_id, one in sorted(self._followed.items()):
            if time.monotonic() < one.retry_at_s:
                continue
            try:
                changes += one.read()
            except BrokerError as error:
                if one.problem is None:
                    self.warn(f"{error}; its changes are shown when it is back")
                one.problem = error
                pause_s = _RETRY_S if one.is_listed else _AWAY_RETRY_S
                one.retry_at_s = time.monotonic() + pause_s
                continue
            if one.problem is not None:
                self.note(f"broker {broker_id} is back")
            one.problem = None
        return changes
