"""The calls of a client on consumer groups and their offsets."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from broker.api import values
from broker.api.access import Access
from broker.api.values import UNSET, PartitionLike, Start, Timeout
from broker.client.selection import select_partitions, select_topics
from broker.clock import SystemClock
from broker.errors import ArgumentError
from broker.positions import ByMessages
from broker.topic import TopicPartition

if TYPE_CHECKING:  # what does the work is imported by the calls, as it loads kazoo
    from broker.admin.group_changes import OffsetChange
    from broker.admin.group_plans import OffsetRecord, Target
    from broker.admin.lag import GroupInfo, GroupObserver, Lag
    from broker.admin.rebalance import GroupProblem, OwnerChange


class GroupCalls(Access):
    """The calls of a client on consumer groups and their offsets; `Client.group` joins a group.

    They need the ZooKeeper of the brokers: `NoZooKeeper` if there is none, or if it cannot be
    reached from here.
    """

    def groups(self) -> list[GroupInfo]:
        """Return all groups, by name.

        Raises:
            NoZooKeeper, Unreachable: see there.
        """
        from broker.admin.groups import list_groups
        from broker.admin.lag import info_of

        with self._observing() as observer:
            return [info_of(observer.snapshot(name)) for name in list_groups(observer.session)]

    def describe_group(self, group: str) -> GroupInfo:
        """Return the members, owners and committed offsets of a group.

        Raises:
            UnknownGroup: there is none of this name.
            NoZooKeeper, Unreachable: see there.
        """
        from broker.admin.lag import info_of

        with self._observing(group) as observer:
            return info_of(observer.snapshot(group))

    def offsets_of(self, group: str) -> dict[TopicPartition, int]:
        """Return the committed offsets of a group.

        Those that cannot be used are left out; `describe_group` says why. `import_offsets` takes
        the result, and so does `to` of `reset`.

        Raises:
            UnknownGroup: there is none of this name.
            NoZooKeeper, Unreachable: see there.
        """
        with self._observing(group) as observer:
            stored = observer.snapshot(group).offsets
            return {key: one.offset for key, one in stored.items() if one.offset is not None}

    def lag(self, group: str, *, window: float = 0.0, timeout: Timeout = UNSET) -> Lag:
        """Return how far a group is behind, and a judgement of each partition.

        A partition whose broker does not respond has the status `UNKNOWN`, and then `total_bytes`
        is None.

        Args:
            group: its name.
            window: seconds for which the group is observed, in this call, to know rates and whether
                it catches up; without it a partition is `OK`, or just has `LAG`.
            timeout: seconds besides the window; by default the client's.

        Raises:
            UnknownGroup: there is none of this name.
            NoZooKeeper, Unreachable: see there.
        """
        from broker.admin.lag import lag_of

        values.number_of("window", window, 0)
        with self._observing(group, timeout=timeout, window_s=window) as observer:
            if window:
                observer.sample(group, samples=10)
            return lag_of(observer.lag(group)[0])

    def verify_group(self, group: str) -> list[GroupProblem]:
        """Return what is wrong with how a group's partitions are assigned; nothing if it is sound.

        Each partition must have one live owner, and no owner node may be stale.

        Raises:
            UnknownGroup: there is none of this name.
            NoZooKeeper, Unreachable: see there.
        """
        from broker.admin.rebalance import problems_of, read_assignment

        with self._observing(group) as observer:
            return problems_of(*read_assignment(observer, group))

    def reset(
        self,
        group: str,
        topics: str | Collection[str] | None = None,
        *,
        to: Start | None = None,
        shift: int | str | timedelta | None = None,
        partition: PartitionLike | None = None,
        plan: bool = False,
        force: bool = False,
        wait_inactive: float | None = None,
        timeout: Timeout = UNSET,
    ) -> list[OffsetChange]:
        """Move a group to other offsets, and return each before and after.

        A new offset is in the log and at the start of a message: others are moved there, back
        rather than forward, and `note` tells it. To undo it, pass the offsets `before` to
        `import_offsets`.

        Args:
            group: its name.
            topics: one or several; by default all of the group's.
            to: where to, as `start` of `read`: an offset, a time, `"earliest"`, `"@-1h"`, `"-100"`;
                or one of these by partition, such as `offsets_of` another group.
            shift: instead of `to`: messages from where the group is, back if below zero; text such
                as `"-64KiB"`; or a `timedelta` from when it committed.
            partition: only this one of the topics.
            plan: change nothing, and return what would change.
            force: do it although the group has members, which may write over it.
            wait_inactive: seconds to wait for the group to have no members.
            timeout: seconds besides `wait_inactive`; by default the client's.

        Raises:
            UnknownGroup, UnknownTopic: see there.
            GroupActive: it has members; nothing was changed.
            Partial: some offsets are not changed: the partition is on no live broker, the offset is
                no number that could be shifted, or another client has changed it meanwhile.
            ArgumentError: a place, a shift or a partition is malformed, or is not there.
            NoZooKeeper, Unreachable, TimedOut: see there.
        """
        from broker.admin.group_changes import change_offsets
        from broker.admin.group_plans import plan_reset

        values.group_of(group)
        if (to is None) == (shift is None):
            raise ArgumentError("give either `to`, where the group goes, or `shift`, by how much")
        if partition is not None and topics is None:
            raise ArgumentError("give the topics that `partition` is of")
        target = _target_of(to, shift)
        names = _names_of(topics)
        matches = None if partition is None else values.matcher_of(partition)
        _check_wait(wait_inactive)
        with self._observing(group, timeout=timeout, wait_s=wait_inactive or 0.0) as observer:
            partitions = None
            if names is not None:
                cluster = observer.cluster
                partitions = select_partitions(cluster, select_topics(cluster, names))
                if matches is not None and not (partitions := list(filter(matches, partitions))):
                    raise ArgumentError(f"the topics have no partition {partition!r}")
            plan_of = partial(plan_reset, observer, target=target, partitions=partitions)
            return change_offsets(
                observer, group, plan_of, is_plan=plan, force=force, wait_s=wait_inactive
            )

    def import_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | None],
        *,
        plan: bool = False,
        force: bool = False,
        wait_inactive: float | None = None,
        timeout: Timeout = UNSET,
    ) -> list[OffsetChange]:
        """Set offsets of a group, which may be new, and return each before and after.

        Args:
            group: its name.
            offsets: by partition; None to remove one. Those of other partitions stay.
            plan: as for `reset`.
            force: as for `reset`.
            wait_inactive: as for `reset`.
            timeout: as for `reset`.

        Raises:
            ArgumentError: the name cannot be one of a group.
            GroupActive, Partial, NoZooKeeper, Unreachable, TimedOut: as for `reset`.
        """
        from broker.admin.group_changes import change_offsets
        from broker.admin.group_plans import plan_import

        values.group_of(group)
        records = _records_of(offsets)
        _check_wait(wait_inactive)
        with self._observing(timeout=timeout, wait_s=wait_inactive or 0.0) as observer:
            plan_of = partial(plan_import, observer, entries=records)
            return change_offsets(
                observer, group, plan_of, is_plan=plan, force=force, wait_s=wait_inactive
            )

    def delete_group(
        self, group: str, *, missing_ok: bool = False, plan: bool = False
    ) -> list[OffsetChange]:
        """Delete a group, and return the offsets that it had.

        Args:
            group: its name.
            missing_ok: do nothing if there is none of this name.
            plan: change nothing.

        Raises:
            UnknownGroup: there is none of this name.
            GroupActive: it has members; nothing was deleted.
            Unreachable: ZooKeeper does not respond, and the group may be deleted in part: repeat
                the call.
            NoZooKeeper: see there.
        """
        from broker.admin.group_changes import remove_group

        values.group_of(group)
        with self._observing() as observer:
            return remove_group(observer, group, missing_ok=missing_ok, plan=plan)

    def rebalance(self, group: str, *, wait: float = 30.0, plan: bool = False) -> list[OwnerChange]:
        """Make the members of a group divide its partitions again, and return the owners.

        Args:
            group: its name.
            wait: seconds until each partition has had the same live owner for a moment.
            plan: change nothing, and return what the members would agree on.

        Raises:
            UnknownGroup: there is none of this name.
            Conflict: it has no members.
            TimedOut: `wait` is over, and a partition has no live owner.
            NoZooKeeper, Unreachable: see there.
        """
        from broker.admin.rebalance import rebalance_group

        values.number_of("wait", wait, 0)
        with self._observing(group, wait_s=wait) as observer:
            return rebalance_group(observer, group, wait_s=wait, plan=plan)

    @contextmanager
    def _observing(
        self, *groups: str, timeout: Timeout = UNSET, window_s: float = 0.0, wait_s: float = 0.0
    ) -> Iterator[GroupObserver]:
        """Run a call on groups by what reads them; those that are named must exist."""
        from broker.admin.groups import require_group
        from broker.admin.lag import GroupObserver

        self._seconds(timeout)  # raises if it is none
        for group in groups:
            values.group_of(group)
        with self._call():
            registry = self._zookeeper()
            for group in groups:
                require_group(registry.session, group)
            # only now, as this gives the call the time that it waits on purpose, too
            connect = self._side(timeout, window_s + wait_s).connect
            yield GroupObserver(registry, connect, SystemClock(), round(1000 * window_s))


def look_at_group(client: GroupCalls, group: str) -> tuple[GroupInfo, Lag]:
    """Return a group and its lag by one reading of it."""
    from broker.admin.lag import info_of, lag_of

    with client._observing(group) as observer:
        found = observer.lag(group)[0]
        return info_of(found.snapshot), lag_of(found)


def _target_of(to: Start | None, shift: object) -> Target:
    from broker.admin.group_plans import ShiftTime, parse_shift

    if to is not None:
        return values.positions_of(to, time.time_ns() // 1_000_000)
    if isinstance(shift, int) and not isinstance(shift, bool):
        return ByMessages(abs(shift), from_end=shift < 0)
    if isinstance(shift, timedelta):
        return ShiftTime(shift // timedelta(milliseconds=1))
    if isinstance(shift, str):
        return parse_shift(shift)
    raise TypeError(f"give the shift as int, str or timedelta, not {type(shift).__name__}")


def _names_of(topics: object) -> list[str] | None:
    if topics is None:
        return None
    if isinstance(topics, Collection) and not isinstance(topics, str):
        return [values.topic_of(one) for one in topics]
    return [values.topic_of(topics)]


def _records_of(offsets: object) -> list[OffsetRecord]:
    from broker.admin.group_plans import OffsetRecord

    if not isinstance(offsets, Mapping):
        raise TypeError(f"give the offsets as a mapping, not {type(offsets).__name__}")
    for partition, offset in offsets.items():
        if not isinstance(partition, TopicPartition):
            raise TypeError(
                f"give each partition as a TopicPartition, not {type(partition).__name__}"
            )
        if offset is not None and (not isinstance(offset, int) or isinstance(offset, bool)):
            raise TypeError(f"give each offset as int or None, not {type(offset).__name__}")
    return [OffsetRecord.of(partition, offset) for partition, offset in offsets.items()]


def _check_wait(wait_inactive: float | None) -> None:
    if wait_inactive is not None:
        values.number_of("wait_inactive", wait_inactive, 0)
