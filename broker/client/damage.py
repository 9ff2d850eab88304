"""Whether a message that came damaged is read again, as another replica may have an intact copy."""

from __future__ import annotations

import time

from broker import deadlines
from broker.protocol.responses import DamageState
from broker.topic import TopicPartition

_WAIT_S = 0.2


class DamagedReads:
    """Counts, by partition, how often and for how long a damaged message was read again.

    `limit_s` is how long a broker has to hand its partition over, or to mend its copy.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._found: dict[TopicPartition, tuple[int, float, int]] = {}

    def is_read_again(self, partition: TopicPartition, offset: int, state: DamageState) -> bool:
        """Return whether to read a message again, after a short wait while its broker mends it."""
        now_s = time.monotonic()
        known_offset, since_s, sound_count = self._found.get(partition, (-1, now_s, 0))
        if known_offset != offset:
            since_s, sound_count = now_s, 0
        # A message intact on disk may have been mended since it was read. Read damaged a second
        # time, it is damaged elsewhere.
        sound_count += state is DamageState.NONE
        self._found[partition] = offset, since_s, sound_count
        if state is DamageState.LASTING or sound_count > 1 or now_s > since_s + self._limit_s:
            return False
        if state is DamageState.MENDABLE:
            deadlines.sleep(_WAIT_S)
        return True
