"""Reads sent messages back, and compares checksums.

Only a CRC for each set is kept while sending, so that memory does not grow with the messages.
"""

from __future__ import annotations

from collections import defaultdict

from broker.client.cluster import Cluster, Connect
from broker.client.side import Side
from broker.protocol.checksum import crc32
from broker.topic import TopicPartition
from pylogctl.cli.environment import CliError, ExitStatus
from pylogctl.comparison import Expected, MismatchError, read_back
from pylogctl.produce.sender import Confirmed, numbers_text

_MAX_WAIT_MS = 20


class SentSets:
    """The sets that were acknowledged, by partition."""

    def __init__(self) -> None:
        self._sets: defaultdict[TopicPartition, list[Expected]] = defaultdict(list)

    def note(self, confirmed: Confirmed) -> None:
        """Record a batch; refuse one of a broker that returns no offsets."""
        batch, offset, message_set = confirmed
        if offset < 0:
            raise CliError(
                ExitStatus.UNSUPPORTED,
                f"broker {batch.partition.home} does not tell offsets, so nothing can be verified",
            )
        end, numbers = offset + len(message_set), (batch.numbers[0], batch.numbers[-1])
        self._sets[batch.partition].append(Expected(offset, end, crc32(message_set), numbers))

    def verify(self, cluster: Cluster, connect: Connect, *, timeout_s: float) -> None:
        """Read everything back and compare it; fail after `timeout_s` without data."""
        side = Side(cluster, connect)
        try:
            read_back(side, self._sets, max_wait_ms=_MAX_WAIT_MS, silence_s=timeout_s)
        except MismatchError as error:
            sent = error.expected
            raise CliError(
                ExitStatus.CORRUPT,
                f"{error.partition}: {numbers_text(sent.numbers)} read back at offset "
                f"{sent.offset} differ from what was sent",
                "try: pylogctl log verify on the broker's segment files",
                code="VERIFY_MISMATCH",
                details={"partition": error.partition.name, "offset": sent.offset},
            ) from error
