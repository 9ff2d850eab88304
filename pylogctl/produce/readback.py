"""Reads sent messages back, and compares checksums.

Only a CRC for each set is kept while sending, so that memory does not grow with the messages.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import PartitionReader
from broker.errors import RequestTimeoutError
from broker.protocol.checksum import crc32
from broker.protocol.codec import Fault, scan
from broker.topic import MessagePosition, ReadRange, TopicPartition
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.produce.sender import Confirmed, numbers_text

_MAX_WAIT_MS = 20


class SentSet(NamedTuple):
    """The range of a set in the log, its checksum, and its first and last message."""

    offset: int
    end: int
    crc: int
    numbers: tuple[int, int]


class SentSets:
    """The sets that were acknowledged, by partition."""

    def __init__(self) -> None:
        self._sets: dict[TopicPartition, list[SentSet]] = {}

    def note(self, confirmed: Confirmed) -> None:
        """Record a batch; refuse one of a broker that returns no offsets."""
        batch, offset, message_set = confirmed
        if offset < 0:
            raise CliError(
                ExitStatus.UNSUPPORTED,
                f"broker {batch.partition.home} does not tell offsets, so nothing can be verified",
            )
        self._sets.setdefault(batch.partition, []).append(
            SentSet(
                offset,
                offset + len(message_set),
                crc32(message_set),
                (batch.numbers[0], batch.numbers[-1]),
            )
        )

    def verify(self, cluster: Cluster, connect: Connect, *, timeout_s: float) -> None:
        """Read everything back and compare it; fail after `timeout_s` without data."""
        checks = {partition: _Check(partition, sets) for partition, sets in self._sets.items()}
        ranges = {partition: check.range for partition, check in checks.items()}
        cluster_reader = ClusterReader(cluster, connect, ranges, max_wait_ms=_MAX_WAIT_MS)
        last_s = time.monotonic()
        with cluster_reader:
            for readers in cluster_reader.polls():
                for reader in readers:
                    checks[reader.partition].take(reader)
                now_s = time.monotonic()
                last_s = now_s if readers else last_s
                if now_s - last_s > timeout_s:
                    raise RequestTimeoutError(f"nothing came to verify for {timeout_s:g}s")


class _Check:
    """Compares chunks of one partition with the sets sent to it."""

    def __init__(self, partition: TopicPartition, sets: list[SentSet]) -> None:
        self._partition = partition
        self._sets = sorted(sets)
        self._place = 0
        self._crc = 0

    @property
    def range(self) -> ReadRange:
        """Return the range that contains all sets."""
        return ReadRange(MessagePosition(self._sets[0].offset), MessagePosition(self._sets[-1].end))

    def take(self, reader: PartitionReader) -> None:
        found = scan(reader.data)
        self._compare(reader.offset, reader.data[: found.valid_bytes])
        reader.take(found.valid_bytes)
        if found.fault not in (Fault.NONE, Fault.PARTIAL):
            raise self._mismatch(self._sets[self._place])

    def _compare(self, offset: int, data: memoryview) -> None:
        end = offset + len(data)
        while self._place < len(self._sets):
            sent = self._sets[self._place]
            start = max(offset, sent.offset)
            if start >= end:
                return
            self._crc = crc32(data[start - offset : sent.end - offset], self._crc)
            if end < sent.end:
                return
            if self._crc != sent.crc:
                raise self._mismatch(sent)
            self._place, self._crc = self._place + 1, 0

    def _mismatch(self, sent: SentSet) -> CliError:
        return CliError(
            ExitStatus.CORRUPT,
            f"{self._partition}: {numbers_text(sent.numbers)} read back at offset {sent.offset} "
            "differ from what was sent",
            hints=["try: pylogctl log verify on the broker's segment files"],
            code="VERIFY_MISMATCH",
            details={"partition": self._partition.name, "offset": sent.offset},
        )
