"""The state-change logs of brokers, read from them or from their files, and merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.client.controller_client import cluster_metadata
from broker.errors import BrokerError, BrokerUnreachableError, UnsupportedVersionError
from broker.protocol import responses
from broker.protocol.extension_requests import ReadChangesRequest
from broker.protocol.responses import BrokerAddress
from broker.state_changes import LoggedChange, decode_changes, merged
from broker.topic import TopicPartition
from pylogctl.cli.connections import Absence, connector, open_cluster
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.failures import Done, for_each, raise_failures
from pylogctl.cli.render import render
from pylogctl.cluster.document import CHANGES, change_row

_FILES = "state-changes-*.jsonl"
Selects = Callable[[LoggedChange], bool]


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


def show_files(env: Environment, paths: Sequence[Path], selects: Selects) -> None:
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
            hints=[f"a broker keeps it in its first data directory, in files {_FILES}"],
        )
    changes: list[LoggedChange] = []
    for file in files:
        try:
            lines = file.read_bytes().splitlines()
        except OSError as error:
            text = f"cannot read '{file}': {error.strerror}"
            raise CliError(ExitStatus.FAILED, text) from error
        changes += _decode(env, str(file), lines)
    return changes


def _decode(env: Environment, source: str, lines: Iterable[bytes]) -> list[LoggedChange]:
    changes, damaged_count = decode_changes(lines)
    if damaged_count:
        env.warn(f"{source}: {damaged_count} lines are no state changes and are left out")
    return changes


def show_cluster(env: Environment, selects: Selects) -> None:
    """Render the changes that all brokers of the cluster have logged."""
    with open_cluster(env, absence=Absence.WARN) as cluster:
        connect = connector(env)
        brokers = cluster.brokers()

        def read(broker: BrokerAddress) -> list[LoggedChange]:
            with closing(ChangeReader(env, connect, broker)) as reader:
                return reader.read()

        found, done = for_each(env, "brokers", brokers, read)
        absent = [_absence(id) for id in _absent_brokers(cluster, connect)]
    _show(env, [one for changes in found for one in changes], selects)
    raise_failures(
        env,
        Done([*done.failures, *absent], done.target_count + len(absent), done.plural),
    )


class ChangeReader:
    """Reads the state-change log of one broker, each time from where it ended before."""

    def __init__(self, env: Environment, connect: Connect, broker: BrokerAddress) -> None:
        self.broker = broker
        self._env = env
        self._connect = connect
        self._connection: Connection | None = None
        self._position = -1

    def move(self, broker: BrokerAddress) -> None:
        """Continue at another address of the same broker."""
        self.close()
        self.broker = broker

    def close(self) -> None:
        """Close the connection; `read` opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def read(self) -> list[LoggedChange]:
        """Return what the broker has logged since the last call."""
        if self._connection is None:
            self._connection = self._connect(self.broker)
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
        return _decode(self._env, f"broker {self.broker.id}", lines)


def _absent_brokers(cluster: Cluster, connect: Connect) -> list[int]:
    # Absent brokers are found by the partitions of which they have replicas.
    try:
        metadata = cluster_metadata(cluster.brokers(), connect, None)
    except BrokerError:  # errors of the brokers are reported already
        return []
    live = {broker.id for broker in metadata.brokers}
    partitions = [one for topic in metadata.topics for one in topic.partitions]
    return sorted({id for one in partitions for id in (one.partition.home, *one.replicas)} - live)


def _absence(broker_id: int) -> BrokerError:
    return BrokerUnreachableError(
        f"broker {broker_id} is not there: its changes are missing (they are in its data "
        f"directory: pylogctl cluster changes FILE...)"
    )


def _show(env: Environment, changes: Iterable[LoggedChange], selects: Selects) -> None:
    render(env, CHANGES, [change_row(one) for one in merged(changes) if selects(one)])
