"""The strategies by which a leader is chosen, and the in-sync replicas that go with it.

Source: Kafka 0.8 `PartitionLeaderSelector`, with the repairs of later versions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Election(NamedTuple):
    """The outcome of an election."""

    leader: int
    isr: tuple[int, ...]  # the in-sync replicas from now on
    is_unclean: bool = False  # the leader was not in sync: committed messages may be lost


def elect_offline(
    replicas: Sequence[int], isr: Collection[int], eligible: Collection[int], *, is_unclean: bool
) -> Election | None:
    """Choose a leader for a partition whose leader is gone: the first eligible in-sync replica.

    The eligible in-sync replicas stay in sync. With `is_unclean`, an eligible replica that is not
    in sync may lead if none is. `replicas` has the preferred leader first; `eligible` are brokers
    that are live and do not shut down.
    """
    if election := _first(replicas, isr, eligible):
        return election
    live = [one for one in replicas if one in eligible]
    return Election(live[0], (live[0],), is_unclean=True) if is_unclean and live else None


def elect_preferred(
    replicas: Sequence[int], isr: Sequence[int], eligible: Collection[int]
) -> Election | None:
    """Give the leadership to the first replica, if it is in sync and live."""
    preferred = replicas[0]
    if preferred in isr and preferred in eligible:
        return Election(preferred, tuple(isr))
    return None


def elect_reassigned(
    replicas: Sequence[int], isr: Sequence[int], eligible: Collection[int]
) -> Election | None:
    """Choose a leader among the replicas a partition is to have; the in-sync ones stay."""
    found = _first(replicas, isr, eligible)
    return found and Election(found.leader, tuple(isr))


def _first(
    replicas: Sequence[int], isr: Collection[int], eligible: Collection[int]
) -> Election | None:
    candidates = tuple(one for one in replicas if one in isr and one in eligible)
    return Election(candidates[0], candidates) if candidates else None
