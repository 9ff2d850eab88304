"""Values that a follower and its leader exchange about one partition."""

from __future__ import annotations

from typing import NamedTuple

from broker.cluster_state import EpochEnd
from broker.ids import NO_EPOCH

NO_DIVERGENCE = EpochEnd(NO_EPOCH, -1)
"""The logs of follower and leader agree up to the follower's end."""


class FetchPosition(NamedTuple):
    """Where a follower continues in a partition."""

    leader_epoch: int  # as the follower knows it
    offset: int  # the end of its log; a fetch acknowledges all before it as appended
    last_epoch: int  # in which its log ends; `NO_EPOCH` for an empty log
    flushed_offset: int
    creation: int  # the `creation_key` of the topic that the follower means


class FetchAnswer(NamedTuple):
    """What a leader responds besides bytes: its offsets, and where the follower's log diverges."""

    high_watermark: int
    log_start_offset: int
    # unless `NO_DIVERGENCE`, the response has no bytes, and the fetch does not count as progress
    diverging: EpochEnd
