"""What became of each route of a mirror: how much it moved, how far it is, what went wrong last.

Knows no broker. Safe for several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace

from broker.client.relay import Parcel
from broker.clock import Clock
from broker.topic import TopicPartition


@dataclass(frozen=True, slots=True)
class RouteStatus:
    """One route, from a partition of the source to one of the target.

    Attributes:
        source: where messages come from.
        target: where they go; None until a place is found.
        message_count: what the target has acknowledged.
        size_bytes: what that takes in a log.
        next_offset: of the source, after the last message acknowledged; None before the first.
        error_count: how often something went wrong.
        error: what went wrong last; empty for nothing so far.
        error_ms: when that was, milliseconds since 1970.
        is_failing: nothing was acknowledged since; of a message that cannot go on, nothing behind
            it.
        stuck_at: offset of a corrupt message in the source, behind which nothing gets through.
        corrupt_count: corrupt messages that were left out.
    """

    source: TopicPartition
    target: TopicPartition | None = None
    message_count: int = 0
    size_bytes: int = 0
    next_offset: int | None = None
    error_count: int = 0
    error: str = ""
    error_ms: int | None = None
    is_failing: bool = False
    stuck_at: int | None = None
    corrupt_count: int = 0


class RouteLog:
    """The state of all routes of a mirror.

    Args:
        clock: tells when something went wrong.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._routes: dict[TopicPartition, RouteStatus] = {}

    def routes(self) -> list[RouteStatus]:
        """Return all routes so far, by source."""
        with self._lock:
            return sorted(self._routes.values(), key=lambda route: route.source)

    def placed(self, source: TopicPartition, target: TopicPartition) -> None:
        """Note where a partition goes."""
        with self._lock:
            self._routes[source] = replace(self._route(source), target=target)

    def acknowledged(self, parcel: Parcel) -> None:
        """Note that the target has a set for good."""
        with self._lock:
            route = self._route(parcel.source)
            is_stuck = route.stuck_at is not None and parcel.next_offset <= route.stuck_at
            self._routes[parcel.source] = replace(
                route,
                target=parcel.target,
                message_count=route.message_count + parcel.message_count,
                size_bytes=route.size_bytes + len(parcel.message_set),
                next_offset=parcel.next_offset,
                is_failing=is_stuck,
                stuck_at=route.stuck_at if is_stuck else None,
            )

    def failed(self, sources: Iterable[TopicPartition], error: str) -> None:
        """Note what went wrong on some routes.

        Args:
            sources: the partitions whose messages do not get through for it.
            error: one sentence.
        """
        now_ms = self._clock.time_ms()
        with self._lock:
            for source in sources:
                route = self._route(source)
                self._routes[source] = replace(
                    route,
                    error_count=route.error_count + 1,
                    error=error,
                    error_ms=now_ms,
                    is_failing=True,
                )

    def stuck(self, source: TopicPartition, offset: int, error: str) -> None:
        """Note that a corrupt message at an offset of the source holds up all behind it."""
        self.failed([source], error)
        with self._lock:
            self._routes[source] = replace(self._route(source), stuck_at=offset)

    def left_out(self, source: TopicPartition, error: str) -> None:
        """Note that a corrupt message was left out, and that its partition goes on."""
        self.failed([source], error)
        with self._lock:
            route = self._route(source)
            self._routes[source] = replace(
                route, is_failing=False, corrupt_count=route.corrupt_count + 1
            )

    def _route(self, source: TopicPartition) -> RouteStatus:
        """Return the state of a route; the caller holds the lock."""
        return self._routes.get(source) or RouteStatus(source)
