"""Topics that the controller has created, until the leaders of their partitions know of it."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from typing import NamedTuple

from broker.cluster_state import ReplicatedPartition
from broker.controller.pushes import Push


class _Creation(NamedTuple):
    future: Future[list[ReplicatedPartition]]
    partitions: list[ReplicatedPartition]
    waiting: set[int]  # the brokers that do not know yet which partitions they lead


class PendingCreations:
    """Creations whose requests have no response; the controller's thread, but for `expect`.

    A client that heard of its topic sooner could produce to a home broker that knows of no
    replicas: it would acknowledge messages that no replica gets.
    """

    def __init__(self) -> None:
        self._expected: set[Future[list[ReplicatedPartition]]] = set()
        self._creations: list[_Creation] = []

    def __bool__(self) -> bool:
        """Return whether a creation waits, or may do so soon; any thread."""
        return bool(self._expected)

    def expect(self, future: Future[list[ReplicatedPartition]]) -> None:
        """Note a creation before its request is carried out; any thread."""
        self._expected.add(future)
        future.add_done_callback(self._expected.discard)

    def add(
        self, future: Future[list[ReplicatedPartition]], partitions: list[ReplicatedPartition]
    ) -> None:
        """Note a creation that was carried out."""
        leaders = {one.state.leader for one in partitions}
        self._creations.append(_Creation(future, partitions, leaders))

    def note_pushed(self, broker_id: int, push: Push) -> None:
        """Note what a broker has been told."""
        told = {one.partition.topic for one in push.partitions}
        for creation in self._creations:
            if creation.partitions[0].partition.topic in told:
                creation.waiting.discard(broker_id)

    def complete(self, live: Collection[int]) -> None:
        """Respond to creations all of whose live leaders know of them."""
        for creation in [one for one in self._creations if not one.waiting.intersection(live)]:
            self._creations.remove(creation)
            creation.future.set_result(creation.partitions)
