"""Values that a follower and its leader exchange about one partition."""

from __future__ import annotations

from typing import NamedTuple

from broker.cluster_state import NO_EPOCH, EpochEnd

NO_DIVERGENCE = EpochEnd(NO_EPOCH, -1)
"""The logs of follower and leader agree up to the follower's end."""


class FetchPosition(NamedTuple):
    """Where a follower continues in a partition.

    Attributes:
        leader_epoch: the present one, as the follower knows it.
        offset: the end of its log; a fetch acknowledges everything before it as appended.
        last_epoch: the leader epoch in which its log ends, `NO_EPOCH` for an empty log.
        flushed_offset: it has flushed all before it.
        creation: the `creation_key` of the topic that the follower means.
    """

    leader_epoch: int
    offset: int
    last_epoch: int
    flushed_offset: int
    creation: int


class FetchAnswer(NamedTuple):
    """What a leader answers besides bytes.

    Attributes:
        high_watermark: the leader's.
        log_start_offset: the leader's.
        diverging: where the follower's log parts from the leader's, or `NO_DIVERGENCE`. If the
            logs part, there are no bytes, and the fetch does not count as progress.
    """

    high_watermark: int
    log_start_offset: int
    diverging: EpochEnd
