"""What brokers are to be told of decisions, collected until it is sent.

Source: Kafka 0.8 `ControllerBrokerRequestBatch`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from broker.cluster_state import LAST_EPOCH, LiveBroker, ReplicatedPartition, StoppedReplica
from broker.controller.context import ControllerContext
from broker.topic import TopicPartition


class Push(NamedTuple):
    """The states and orders that a broker gets; `stopped` takes effect after `partitions`."""

    broker_epoch: int  # of the registration of the broker that it is for
    # `partitions` is complete: others do not exist. Never while a topic cannot be read.
    is_full: bool
    brokers: tuple[LiveBroker, ...]  # all that are registered
    partitions: tuple[ReplicatedPartition, ...]
    stopped: tuple[StoppedReplica, ...]
    throttle_bytes_per_s: int  # for copies to replicas that are being added; 0: no limit


class PendingPushes:
    """The changes that brokers have not been told of."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._changed: dict[TopicPartition, None] = {}  # in the order of the decisions
        self._without_full: set[int] = set()
        self._tells_all = False
        self._stops: dict[int, list[StoppedReplica]] = {}

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Have all brokers told of partitions."""
        self._changed.update(dict.fromkeys(partitions))

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Tell nobody of partitions that are gone."""
        for partition in partitions:
            self._changed.pop(partition, None)

    def add_full(self, broker_ids: Iterable[int]) -> None:
        """Have brokers told of every partition."""
        self._without_full.update(broker_ids)

    def tell_all(self) -> None:
        """Have every broker told of the brokers and the throttle, which have changed."""
        self._tells_all = True

    def stop(self, broker_id: int, partition: TopicPartition, epoch: int, *, deletes: bool) -> None:
        """Have a broker stop its replica of a partition."""
        creation_id = self._context.topics[partition.topic].creation_id
        stopped = StoppedReplica(partition, creation_id, epoch, deletes)
        self._stops.setdefault(broker_id, []).append(stopped)

    def delete_log(self, broker_id: int, partition: TopicPartition, creation_id: str) -> None:
        """Have a broker delete its log of a deleted topic, which may be a former one."""
        stopped = StoppedReplica(partition, creation_id, LAST_EPOCH, True)
        self._stops.setdefault(broker_id, []).append(stopped)

    def forget_brokers(self, broker_ids: Collection[int]) -> None:
        """Drop what registrations that have ended were to be told."""
        for broker_id in broker_ids:
            self._stops.pop(broker_id, None)
        self._without_full.difference_update(broker_ids)

    def take(self) -> dict[int, Push]:
        """Return the pushes for changes since the last call, by broker id.

        The first push after a broker has registered, or the controller has taken office, names all
        partitions. It is full unless some topics cannot be read: a broker stops replicas that a
        full push does not name.
        """
        context = self._context
        changed = tuple(context.described(one) for one in self._changed if context.is_known(one))
        everything: tuple[ReplicatedPartition, ...] = ()
        if self._without_full:
            known = (one for one in context.partitions() if one in context.states)
            everything = tuple(context.described(one) for one in known)
        brokers = tuple(context.brokers[one] for one in sorted(context.brokers))
        pushes = {}
        for broker_id, broker in context.brokers.items():
            gets_all = broker_id in self._without_full
            stopped = tuple(self._stops.get(broker_id, ()))
            if gets_all or changed or stopped or self._tells_all:
                pushes[broker_id] = Push(
                    broker.epoch,
                    gets_all and not context.unreadable,
                    brokers,
                    everything if gets_all else changed,
                    stopped,
                    context.throttle_bytes_per_s,
                )
        self._changed.clear()
        self._without_full.clear()
        self._tells_all = False
        self._stops.clear()
        return pushes
