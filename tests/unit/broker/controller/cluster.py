"""A controller with a model of the registry, in which brokers come and go."""

from __future__ import annotations

from broker.cluster_state import (
    IsrChange,
    IsrDecision,
    IsrMember,
    LiveBroker,
    PartitionState,
    StoredState,
    TopicAssignment,
    creation_key,
)
from broker.controller.context import ControllerSettings
from broker.controller.controller import Controller
from broker.controller.pushes import Push
from broker.topic import TopicPartition
from tests.support.model_store import ModelRegistry, ModelStore

P = TopicPartition("t", 0, 0)
"""A partition with the replicas 0, 1 and 2."""
CREATION = creation_key("id")


class Cluster:
    """Three brokers, topic `t` with one partition, and a controller in office."""

    def __init__(self, state: PartitionState | None = None, *, unclean: bool = False) -> None:
        self.registry = ModelRegistry()
        self.live: dict[int, LiveBroker] = {}
        self._epoch = 100
        for broker_id in range(3):
            self._register(broker_id)
        self.registry.topics["t"] = TopicAssignment("t", "id", {P: (0, 1, 2)})
        if state is not None:
            self.registry.states[P] = StoredState(state, 0)
        self.settings = ControllerSettings(allows_unclean=unclean)
        self.elect()

    def elect(self) -> None:
        """Have a new controller take office."""
        self.store = ModelStore(self.registry)
        self.controller = Controller(0, self.store.epoch, self.store, self.settings)
        self.controller.load(self.registry.snapshot(list(self.live.values())))

    def _register(self, broker_id: int, *, is_clean: bool = True) -> None:
        self._epoch += 1
        self.live[broker_id] = LiveBroker(broker_id, "h", 9092, self._epoch, is_clean, "")

    def start(self, *broker_ids: int, is_clean: bool = True) -> None:
        """Register brokers (again), and tell the controller."""
        for broker_id in broker_ids:
            self._register(broker_id, is_clean=is_clean)
        self.controller.brokers_changed(self.live.values())

    def fail(self, *broker_ids: int) -> None:
        """Remove registrations, and tell the controller."""
        for broker_id in broker_ids:
            del self.live[broker_id]
        self.controller.brokers_changed(self.live.values())

    def shut_down(self, broker_id: int) -> list[str]:
        """Return the partitions that could not be moved away from a broker."""
        epoch = self.live[broker_id].epoch
        progress = self.controller.controlled_shutdown(broker_id, epoch)
        return [one.partition.name for one in progress.unmoved]

    def change_isr(self, *isr: int, version: int | None = None) -> IsrDecision:
        """Ask for in-sync replicas as the present leader."""
        stored = self.registry.states[P]
        leader = stored.state.leader
        change = self.isr_change(
            P, stored.state.leader_epoch, stored.version if version is None else version, isr
        )
        return self.controller.change_isr(leader, self.epoch_of(leader), [change])[0]

    def isr_change(
        self, partition: TopicPartition, leader_epoch: int, version: int, isr: tuple[int, ...]
    ) -> IsrChange:
        """Return what a leader asks for."""
        members = tuple(IsrMember(one, self.epoch_of(one)) for one in isr)
        return IsrChange(partition, leader_epoch, version, members, CREATION)

    def epoch_of(self, broker_id: int) -> int:
        return self.live[broker_id].epoch if broker_id in self.live else 1

    @property
    def state(self) -> tuple[int, int, tuple[int, ...]]:
        """Leader, leader epoch and in-sync replicas of `P`, as the registry has them."""
        state = self.registry.states[P].state
        return state.leader, state.leader_epoch, state.isr

    def pushes(self) -> dict[int, Push]:
        return self.controller.pushes.take()
