"""The calls of a client on replicas: elections of leaders, and moves to other brokers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from broker.api.access import Access
from broker.api.values import UNSET, Timeout, broker_id_of, topic_of, whole_of
from broker.client.side import Side

if TYPE_CHECKING:  # what does the work is imported by the calls, as most programs make none of them
    from broker.admin.reassignment import Move, MoveProgress
    from broker.admin.replicas import Outcome
    from broker.topic import TopicPartition


class Reassignment:
    """Partitions of one topic that get other replicas: `moves`, each with brokers before and after.

    Brokers copy on their own: neither the client nor this object is needed until they are done.
    """

    __slots__ = ("_client", "moves", "topic")

    def __init__(self, client: ReplicaCalls, topic: str, moves: Iterable[Move]) -> None:
        self._client = client
        self.topic: str = topic
        self.moves: tuple[Move, ...] = tuple(moves)

    def __repr__(self) -> str:
        return f"Reassignment({self.topic}: {len(self.moves)} partitions)"

    def progress(self, *, timeout: Timeout = UNSET) -> list[MoveProgress]:
        """Return how far those of the moves are that are under way; none once all have ended."""
        moving = {one.partition for one in self.moves}
        from broker.admin.reassignment import progress

        with self._client._asking(timeout) as side:
            found = progress(side, [self.topic]).moves
        return [one for one in found if one.partition in moving]

    def wait(self, timeout: Timeout = UNSET) -> None:
        """Wait until the partitions have their new replicas, all in sync, and only these.

        Args:
            timeout: seconds, by default the client's; None for no limit.

        Raises:
            TimedOut: brokers still copy, and go on.
            Conflict: a move was cancelled, replaced by another one, or only planned.
        """
        from broker.admin.reassignment import wait_for_moves

        client = self._client
        with client._waiting(timeout) as seconds:
            limit_s = math.inf if seconds is None else seconds
            wait_for_moves(Side(client._cluster, client._connect, limit_s), self.moves)


class ReplicaCalls(Access):
    """The calls of a client on replicas. The brokers have a ZooKeeper; its address is not needed.

    Raises:
        UnknownTopic: the topic is on no broker.
        Conflict: its `reason` is NOT_REPLICATED, or one that a call names.
        Refused: there is no controller at the moment; `is_retriable` says so.
    """

    def elect(
        self, topic: str | None = None, *, unclean: bool = False, timeout: Timeout = UNSET
    ) -> list[Outcome]:
        """Give leaderships back to the preferred replicas, and return those that have moved.

        Args:
            topic: one topic; None for all.
            unclean: instead, let any live replica lead the partitions of the topic that have no
                leader. Acknowledged messages may be lost: the topic must allow it
                (`unclean.leader.election.enable`).
            timeout: seconds; by default the client's.

        Raises:
            Partial: for some partitions that cannot be; `done` has the others' outcomes.
            Conflict: for none it can be; NOT_OFFLINE, if all have a leader and it is unclean.
            TimedOut: brokers do not name the new leaders in time.
        """
        from broker.admin.replicas import elect
        from broker.protocol.cluster_requests import ElectionKind

        if topic is None and unclean:
            raise TypeError("give the topic of an unclean election")
        topics = [] if topic is None else [topic_of(topic)]
        kind = ElectionKind.UNCLEAN if unclean else ElectionKind.PREFERRED
        with self._asking(timeout) as side:
            return elect(side, topics, kind)

    def reassign(
        self,
        topic: str,
        brokers: Collection[int] = (),
        *,
        replicas: int | None = None,
        throttle: int | None = None,
        plan: bool = False,
        timeout: Timeout = UNSET,
    ) -> Reassignment:
        """Begin to move a topic's partitions, with their messages, while they are used.

        As little moves as possible: replicas stay on brokers that may have them.

        Args:
            topic: a topic with replicas.
            brokers: ids of those that may have them; none for all live ones.
            replicas: of each partition; None for as many as it has.
            throttle: bytes per second that each broker may copy, for all that is under way; 0 for
                no limit, None to leave it as it is.
            plan: whether to return what would move, and change nothing.
            timeout: seconds until the moves have begun; by default the client's.

        Raises:
            Conflict: BROKER_NOT_LIVE, or partitions cannot have these replicas.
            Refused: there are fewer brokers than replicas.
        """
        from broker.admin import reassignment
        from broker.admin.replicas import raise_refused, replicas_of

        if replicas is not None:
            whole_of("replicas", replicas, 1)
        if throttle is not None:
            whole_of("throttle", throttle, 0)
        with self._asking(timeout) as side:
            topic_of(topic)
            ids = _broker_ids(brokers)
            give_up_s = side.give_up_s
            known = replicas_of(side, [topic])
            found = reassignment.make_plan(
                side, [topic], broker_ids=ids, replication_factor=replicas
            )
            if plan:
                reassignment.validate_plan(side, found)
            elif found or throttle is not None:
                left = side.until(give_up_s)
                raise_refused(reassignment.request_reassignment(left, found, throttle=throttle))
            return Reassignment(self, topic, reassignment.moves_of(found, known))

    def reassignments(self, *, timeout: Timeout = UNSET) -> list[Reassignment]:
        """Return the moves that are under way, by topic."""
        from broker.admin.reassignment import Move, list_reassignments

        with self._asking(timeout) as side:
            changes = list_reassignments(side).changes
        moves = [Move(one.partition, *one.reassignment) for one in sorted(changes)]
        return [
            Reassignment(self, topic, tuple(found))
            for topic, found in groupby(moves, lambda one: one.partition.topic)
        ]

    def throttle_reassignments(self, bytes_per_s: int, *, timeout: Timeout = UNSET) -> None:
        """Change how much each broker may copy for the moves that are under way; 0 for no limit."""
        from broker.admin.reassignment import request_reassignment

        whole_of("bytes_per_s", bytes_per_s, 0)
        with self._asking(timeout) as side:
            request_reassignment(side, {}, throttle=bytes_per_s)

    def cancel_reassignment(self, topic: str, *, timeout: Timeout = UNSET) -> list[TopicPartition]:
        """Give partitions of a topic that move their former replicas back, and return them.

        Raises:
            Partial: for some that cannot be, as no former replica is in sync.
            Conflict: for none it can be.
        """
        from broker.admin.reassignment import cancel

        with self._asking(timeout) as side:
            return cancel(side, topic_of(topic))


def _broker_ids(brokers: object) -> list[int]:
    if isinstance(brokers, str | bytes) or not isinstance(brokers, Collection):
        raise TypeError(f"give brokers as a list of ids, not {type(brokers).__name__}")
    return [broker_id_of(one) for one in brokers]
