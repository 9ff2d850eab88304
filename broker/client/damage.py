"""Whether a message that came damaged is read again, as another replica may have it sound."""

from __future__ import annotations

import time

from broker.protocol.responses import DamageState
from broker.topic import TopicPartition

_WAIT_S = 0.2


class DamagedReads:
    """The messages that came damaged, and how often and for how long they were read again.

    Args:
        limit_s: how long a broker has to hand its partition over, or to mend its copy.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._found: dict[TopicPartition, tuple[int, float, int]] = {}

    def is_read_again(self, partition: TopicPartition, offset: int, state: DamageState) -> bool:
        """Return whether to read a message again; where its broker mends it, wait a little first.

        Args:
            partition: of the message.
            offset: of the message.
            state: as the broker found it. One that is in good order on its disk may have been
                mended since it was read; what comes damaged then twice is so for another reason.
        """
        now_s = time.monotonic()
        known_offset, since_s, sound_count = self._found.get(partition, (-1, now_s, 0))
        if known_offset != offset:
            since_s, sound_count = now_s, 0
        sound_count += state is DamageState.NONE
        self._found[partition] = offset, since_s, sound_count
        if state is DamageState.LASTING or sound_count > 1 or now_s > since_s + self._limit_s:
            return False
        if state is DamageState.MENDABLE:
            time.sleep(_WAIT_S)
        return True
