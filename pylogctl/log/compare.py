"""`pylogctl log compare`: the copies of a log against each other, byte by byte.

Each copy is asked for digests of the same ranges, which its broker computes; where they differ,
ranges are halved until the first byte that differs is found. A copy counts up to its own high
watermark: bytes above it may differ, as they are not committed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from broker import errors
from broker.client.connection import Connection
from broker.client.controller_client import cluster_metadata
from broker.client.selection import topic_not_found
from broker.files import reason_of
from broker.log.data_directory import DataDirectory, read_broker_id, read_high_watermarks
from broker.log.format import format_of
from broker.log.offline.rewrite import validate_format
from broker.log.offline.segments import base_offset_of, expand_paths, segments_of
from broker.partition_patterns import PartitionList
from broker.protocol import responses
from broker.protocol.client_requests import DigestLogRequest
from broker.topic import TopicPartition
from pylogctl.cli.connections import Absence, connector, open_cluster
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.failures import Done, raise_failures
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.log.document import COMPARE, SEGMENT_NAMES, CompareRow

_CHUNK_BYTES = 4 << 20
_READ_BYTES = 1 << 20
_KAFKA_SUFFIX = ".log"


class LogEnds(NamedTuple):
    """The first offset of a copy, and the end of its part that is compared."""

    start: int
    end: int


_Digest = tuple[bytes, str]  # of a range, and the name of the segment with its first byte
_Found = TypeVar("_Found")


class ComparedCopy(Protocol):
    """A copy of a log; BrokerError if it cannot be read."""

    @property
    def name(self) -> str:
        """Return the id of the broker that has it, or its path."""

    def ends(self) -> LogEnds:
        """Return its ends."""

    def digest(self, offset: int, length: int) -> _Digest | None:
        """Return the digest of a range; None if the copy lacks a part, such as after retention."""


class LogDifference(NamedTuple):
    """The first difference between copies."""

    offset: int  # of the first byte
    groups: tuple[tuple[str, ...], ...]  # names of copies, those together that are equal there
    segments: Mapping[str, str]  # with that byte, by copy


class LogComparison(NamedTuple):
    """The result of comparing the copies of a log, named in `copies`."""

    copies: tuple[str, ...]
    start: int  # the first offset that at least two of them have, -1 if there is none
    end: int  # the end of what at least two of them have; the start if all are empty
    compared_bytes: int  # up to a difference
    difference: LogDifference | None  # the first one
    failures: tuple[errors.BrokerError, ...]  # of copies that could not be read


class _Readable:
    """The copies of a log that can be read; one that fails is left out from then on."""

    def __init__(self, copies: Iterable[ComparedCopy]) -> None:
        self._copies = {copy.name: copy for copy in copies}
        self.failures: list[errors.BrokerError] = []

    def ends(self) -> dict[str, LogEnds]:
        """Return the ends of each copy."""
        return self._ask(list(self._copies), lambda copy: copy.ends())

    def digests(self, names: Iterable[str], offset: int, length: int) -> dict[str, _Digest]:
        """Return the digest of a range of each named copy that has all of it."""
        return self._ask(names, lambda copy: copy.digest(offset, length))

    def _ask(
        self, names: Iterable[str], ask: Callable[[ComparedCopy], _Found | None]
    ) -> dict[str, _Found]:
        found = {}
        for name in names:
            if name not in self._copies:
                continue
            try:
                one = ask(self._copies[name])
            except errors.BrokerError as error:
                self.failures.append(error)
                del self._copies[name]
                continue
            if one is not None:
                found[name] = one
        return found


def compare(
    copies: Sequence[ComparedCopy], advance: Callable[[int], None] = lambda _: None
) -> LogComparison:
    """Compare copies of a log up to the first difference; one that cannot be read is left out."""
    readable = _Readable(copies)
    ends = readable.ends()
    ranges = _common_ranges(ends)
    compared_bytes = 0
    difference = None
    for offset, length, names in _chunks(ranges):
        difference = _first_difference(readable, names, offset, length)
        if difference is not None:
            compared_bytes += difference.offset - offset
            break
        compared_bytes += length
        advance(length)
    start, end = (ranges[0][0], ranges[-1][1]) if ranges else (-1, -1)
    if not ranges and len(ends) > 1 and len(set(ends.values())) == 1:
        start, end = next(iter(ends.values()))
    names = tuple(copy.name for copy in copies)
    return LogComparison(names, start, end, compared_bytes, difference, tuple(readable.failures))


def _common_ranges(ends: Mapping[str, LogEnds]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Return the ranges that at least two copies have, and which, by offset."""
    cuts = sorted({offset for one in ends.values() for offset in one})
    found = []
    for start, end in pairwise(cuts):
        names = tuple(name for name, one in ends.items() if one.start <= start and end <= one.end)
        if len(names) > 1:
            found.append((start, end, names))
    return found


def _chunks(
    ranges: Iterable[tuple[int, int, tuple[str, ...]]],
) -> Iterable[tuple[int, int, tuple[str, ...]]]:
    for start, end, names in ranges:
        for offset in range(start, end, _CHUNK_BYTES):
            yield offset, min(_CHUNK_BYTES, end - offset), names


def _first_difference(
    readable: _Readable, names: Iterable[str], offset: int, length: int
) -> LogDifference | None:
    """Return the first byte of a range that differs; None if the range is the same."""
    digests = readable.digests(names, offset, length)
    if len({digest for digest, _ in digests.values()}) < 2:
        return None
    if length > 1:
        half = length // 2  # if a copy is lost meanwhile, the others may be the same in both
        left = _first_difference(readable, digests, offset, half)
        return left or _first_difference(readable, digests, offset + half, length - half)
    groups: dict[bytes, list[str]] = {}
    for name, (digest, _) in digests.items():
        groups.setdefault(digest, []).append(name)
    named = [tuple(sorted(one, key=lambda name: (len(name), name))) for one in groups.values()]
    in_order = sorted(named, key=lambda one: (-len(one), one))
    return LogDifference(offset, tuple(in_order), {name: one[1] for name, one in digests.items()})


@dataclass(frozen=True, slots=True)
class _BrokerCopy:
    """The replica of a partition on a broker."""

    name: str
    connection: Connection
    partition: TopicPartition

    def ends(self) -> LogEnds:
        found = self._ask(0, 0)
        return LogEnds(found.log_start_offset, max(found.log_start_offset, found.high_watermark))

    def digest(self, offset: int, length: int) -> _Digest | None:
        first, digests, end = "", [], offset + length
        while offset < end:  # of a log of batches, a response may not reach to the end
            found = self._ask_whole(offset, end - offset)
            if not found.length:
                return None
            first = first or format_of(self.partition).segment_name(found.segment)
            digests.append(found.digest)
            offset += found.length
        return (digests[0] if len(digests) == 1 else b"".join(digests)), first

    def _ask_whole(self, offset: int, length: int) -> responses.LogDigest:
        """Return the digest of a range without damage."""
        found = self._ask(offset, length)
        if found.damage.state is not responses.DamageState.NONE:
            end = (
                "the broker fetches the segment anew from its leader"
                if found.damage.state is responses.DamageState.MENDABLE
                else "no other replica in sync is known to have it in good order"
            )
            raise errors.InvalidMessageError(
                f"{self.partition} on broker {self.name}: the message at offset "
                f"{found.damage.offset} is damaged; {end}"
            )
        return found

    def _ask(self, offset: int, length: int) -> responses.LogDigest:
        connection = self.connection
        if not connection.understands(DigestLogRequest):
            raise errors.UnsupportedVersionError(
                f"{connection.name} cannot tell digests of its logs"
            )
        request = DigestLogRequest(self.partition, offset, length)
        try:
            return responses.LOG_DIGEST.decode(connection.call(request))
        except errors.BrokerUnreachableError:
            raise
        except errors.BrokerError as error:
            raise type(error)(f"{self.partition} on broker {self.name}: {error}") from error


class FileCopy:
    """The segment files of a log."""

    def __init__(self, name: str, paths: Iterable[Path], high_watermark: int | None = None) -> None:
        self.name = name
        self._high_watermark = high_watermark
        self._files: list[tuple[int, int, Path]] = []  # offset, size; opened when they are read
        for path in paths:
            try:
                self._files.append((base_offset_of(path) or 0, path.stat().st_size, path))
            except OSError as error:
                raise errors.StorageError(f"cannot read '{path}': {reason_of(error)}") from error
        self._files.sort()

    def ends(self) -> LogEnds:
        """See `ComparedCopy`."""
        if not self._files:
            return LogEnds(0, 0)
        start = self._files[0][0]
        end = self._files[-1][0] + self._files[-1][1]
        if self._high_watermark is not None:
            end = max(start, min(end, self._high_watermark))
        return LogEnds(start, end)

    def digest(self, offset: int, length: int) -> _Digest | None:
        """See `ComparedCopy`."""
        digest = hashlib.sha256()
        first = ""
        for base, size, path in self._files:
            if not length or not base <= offset < base + size:
                continue
            end = min(base + size, offset + length)
            length -= end - offset
            try:
                with path.open("rb", buffering=0) as file:
                    file.seek(offset - base)
                    while offset < end and (data := file.read(min(end - offset, _READ_BYTES))):
                        digest.update(data)
                        offset += len(data)
            except FileNotFoundError:
                return None  # retention has removed it
            except OSError as error:
                text = f"cannot read '{path}' at {offset - base}: {reason_of(error)}"
                raise errors.StorageError(text) from error
            if offset < end:
                return None
            first = first or path.name
        return None if length else (digest.digest(), first)


def compare_replicas(env: Environment, topics: Sequence[str], wanted: PartitionList | None) -> None:
    """Compare the replicas of partitions, of all topics if none is named; render the result."""
    with open_cluster(env, absence=Absence.WARN) as cluster, ExitStack() as closing:
        connect = connector(env)
        brokers = cluster.brokers()
        metadata = cluster_metadata(brokers, connect, tuple(topics) or None)
        partitions = metadata.partitions
        _validate_replicated(topics, partitions, cluster.topics)
        live = {broker.id: broker for broker in metadata.brokers}
        connections: dict[int, Connection] = {}

        def connection_to(broker: responses.BrokerAddress) -> Connection:
            if broker.id not in connections:
                connections[broker.id] = connect(broker)
                closing.callback(connections[broker.id].close)
            return connections[broker.id]

        logs: dict[str, list[ComparedCopy]] = {}
        absent: dict[int, errors.BrokerError] = {}
        for one in sorted(partitions):
            if len(one.replicas) < 2 or (wanted is not None and not wanted.matches(one.partition)):
                continue
            copies: list[ComparedCopy] = []
            for id in one.replicas:
                if id in live:
                    copies.append(_BrokerCopy(str(id), connection_to(live[id]), one.partition))
                else:
                    absent[id] = errors.BrokerUnreachableError(
                        f"broker {id} is not there: its replicas are not compared"
                    )
            logs[str(one.partition)] = copies
        if not logs:
            raise CliError(ExitStatus.NOT_FOUND, "no partition with replicas is selected")
        _compare_all(env, logs, "broker", list(absent.values()))


def _validate_replicated(
    topics: Iterable[str],
    partitions: Iterable[responses.PartitionMetadata],
    known_topics: Callable[[], list[str]],
) -> None:
    factors: dict[str, int] = {}
    for one in partitions:
        topic = one.partition.topic
        factors[topic] = max(factors.get(topic, 0), len(one.replicas))
    for topic in topics:
        if topic not in factors:
            raise topic_not_found(topic, known_topics())
        if factors[topic] < 2:
            raise CliError(
                ExitStatus.UNSUPPORTED,
                f"topic '{topic}' has no replicas to compare",
                "pylogctl log verify checks the one copy that there is",
                code="NOT_REPLICATED",
            )


def compare_paths(
    env: Environment, paths: Sequence[Path], topics: Sequence[str], wanted: PartitionList | None
) -> None:
    """Compare logs in files, and render the result.

    `paths` are data directories of brokers, of which the logs of the same partitions are compared,
    up to the high watermarks in them; or directories of logs, or segment files, which are all
    compared with each other. `topics` and `wanted` select partitions of data directories.
    """
    for path in paths:
        if not path.exists():
            raise CliError(ExitStatus.NOT_FOUND, f"no file or directory '{path}'")
    validate_format(
        one for one in expand_paths(paths) if one.suffix == _KAFKA_SUFFIX or one in paths
    )
    data_dirs = {path: id for path in paths if (id := read_broker_id(path)) is not None}
    if data_dirs and len(data_dirs) < len(paths):
        other = next(path for path in paths if path not in data_dirs)
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"'{other}' is no data directory of a broker, as '{next(iter(data_dirs))}' is",
            "compare data directories with each other, or logs with each other",
        )
    logs: dict[str, list[ComparedCopy]] = {}
    if not data_dirs:
        given = {path: segments_of(path) if path.is_dir() else [path] for path in paths}
        if empty := [path for path, found in given.items() if not found]:
            message = f"no segment files in '{empty[0]}'"
            raise CliError(ExitStatus.NOT_FOUND, message, SEGMENT_NAMES)
        logs[""] = [FileCopy(str(path), found) for path, found in given.items()]
    for data_dir, broker_id in data_dirs.items():
        high_watermarks = read_high_watermarks(data_dir)
        for partition, directory in sorted(DataDirectory(data_dir, broker_id).logs().items()):
            if (topics and partition.topic not in topics) or (
                wanted is not None and not wanted.matches(partition)
            ):
                continue
            try:
                files = segments_of(directory)
                copy = FileCopy(str(data_dir), files, high_watermarks.get(partition))
            except (OSError, errors.StorageError) as error:  # removed meanwhile
                env.leave_out(str(error))
                continue
            logs.setdefault(str(partition), []).append(copy)
    logs = {name: copies for name, copies in sorted(logs.items()) if len(copies) > 1}
    if not logs:
        raise CliError(
            ExitStatus.NOT_FOUND,
            "no two of the paths have a log of the same partition",
            "name data directories of several brokers, directories of logs, or segments",
        )
    _compare_all(env, logs, "", [])


def _compare_all(
    env: Environment,
    logs: Mapping[str, Sequence[ComparedCopy]],
    kind: str,
    absent: Sequence[errors.BrokerError],
) -> None:
    """Compare the copies of each log, render, and raise if some differ or could not be read."""
    failures = list(absent)
    rows: list[CompareRow] = []
    differing: list[str] = []
    damaged: list[errors.BrokerError] = []
    with progress(env, "compare", None) as meter:
        for name, copies in logs.items():
            found = compare(copies, meter.advance)
            failures += found.failures
            rows.append(_row(name, found))
            damaged += [
                one for one in found.failures if isinstance(one, errors.InvalidMessageError)
            ]
            if found.difference is not None:
                differing.append(_describe(name, kind, found.difference))
    render(env, COMPARE, rows)
    for text in differing[:-1]:
        env.error(text)
    if differing or damaged:
        for error in dict.fromkeys(map(str, failures)):
            env.error(error)
    if differing:
        raise CliError(
            ExitStatus.CORRUPT,
            differing[-1],
            "pylogctl log verify on these segments tells which copy is damaged",
            code="COPIES_DIFFER",
        )
    if damaged:
        raise CliError(ExitStatus.CORRUPT, f"{len(damaged)} copies have damaged messages")
    raise_failures(env, Done(failures, sum(map(len, logs.values())) + len(absent), "copies"))


def _describe(name: str, kind: str, found: LogDifference) -> str:
    groups = [
        f"{kind}{'s' * (len(one) > 1)} {', '.join(one)}" if kind else ", ".join(one)
        for one in found.groups
    ]
    of_segments = " and ".join(sorted(set(found.segments.values())))
    place = f"{name} differs" if name else "the logs differ"
    return f"{place} at offset {found.offset}: {' from '.join(groups)}, in segment {of_segments}"


def _row(name: str, found: LogComparison) -> CompareRow:
    difference = found.difference
    result = "same" if difference is None else "differ"
    if difference is None and any(
        isinstance(one, errors.InvalidMessageError) for one in found.failures
    ):
        result = "damaged"
    return CompareRow(
        log=name or None,
        result=result if found.start >= 0 or difference else "none",
        start=None if found.start < 0 else found.start,
        end=None if found.end < 0 else found.end,
        bytes=found.compared_bytes,
        copies=found.copies,
        offset=None if difference is None else difference.offset,
        groups=None if difference is None else " / ".join(map(",".join, difference.groups)),
        segments=None if difference is None else dict(difference.segments),
    )
