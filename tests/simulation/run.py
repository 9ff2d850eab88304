"""One run of the simulation: a cluster, clients, faults, then peace, all from one seed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

from broker.admin.recovery import Lost, plan
from broker.controller.context import ControllerSettings
from broker.controller.controller import Controller
from broker.ids import NO_LEADER
from broker.topic import FORMATS, TopicPartition
from tests.simulation.broker import MESSAGE_BYTES, Broker, Options
from tests.simulation.checker import RETENTION_S, Checker, Created
from tests.simulation.clients import Consumer, Producer
from tests.simulation.events import Network, Scheduler
from tests.simulation.faults import Fault
from tests.simulation.registry import ZOOKEEPER, Registry

TOPIC = "t"
_CHAOS_S = 14.0
_PEACE_S = 40.0
_MEMORY = Path("/dev/shm")
_ASKING_S = 2.0
"""The longest time that a finding, and that of a witness, can be old."""


class Simulation:
    """A cluster in simulated time.

    Args:
        seed: of all choices.
        fault: a deliberate defect, which the checker is to find.
        traces: whether to keep a trace.
        formats: those that topics are made in.
    """

    def __init__(
        self,
        seed: int,
        fault: Fault | None = None,
        *,
        traces: bool = False,
        formats: Sequence[str] = FORMATS,
    ) -> None:
        self.scheduler = scheduler = Scheduler(seed)
        if traces:
            scheduler.trace = []
        random = self.random = scheduler.random
        # of their own: the seeds of known failures stay what they are
        self._throttles, self._disks = Random(seed), Random(seed)
        self._losses = Random(seed + 1)
        self._clocks = Random(seed + 3)
        self._formats = formats
        self._format_choices, self._damages = Random(seed + 4), Random(seed + 5)
        self.is_unclean = random.random() < 0.15
        self.loses_power = random.random() < 0.7
        if fault is not None and fault.is_unclean is not None:
            self.is_unclean = fault.is_unclean
        if fault is not None and fault.loses_power is not None:
            self.loses_power = fault.loses_power
        self.checker = Checker(allows_loss=self.is_unclean, counts=scheduler.counts)
        self.checker.now_s = lambda: scheduler.now
        self.network = network = Network(scheduler)
        self.registry = Registry(
            scheduler, self.checker, lambda id: (id, ZOOKEEPER) not in network.cuts
        )
        broker_count = random.choice((3, 3, 3, 4))
        min_isr = random.choice((1, 2, 2))
        self._silences = Random(seed + 2)
        options = Options(
            silence_s=self._silences.choice((0.9, 0.9, 0.9, 0.0)),
            counts_flushed=self.loses_power,
            controller=ControllerSettings(min_isr, self.is_unclean),
        )
        if fault is not None:
            options = fault.prepare(options, self.registry)
        # Faults that come in each run come rarely in the same one: in each, some are frequent.
        self._weights = [weight * random.choice((0.0, 0.5, 1.0, 1.0, 4.0)) for weight in _WEIGHTS]
        if fault is not None and fault.frequent:
            self._weights[[one.__name__ for one in _STRIKES].index(fault.frequent)] = 12.0
        self._fault = fault
        self.brokers = {
            id: Broker(id, scheduler, network, self.registry, self.checker, options)
            for id in range(broker_count)
        }
        for broker in self.brokers.values():
            broker.peers = self.brokers
            broker.damages = self._damages
        self._creation_count = 0
        self.factor = random.choice((2, 3, 3))
        self.clients: list[Producer] = []
        self.consumers: list[Consumer] = []
        self._end_of_chaos_s = 0.0
        self._missed_s: dict[tuple[int, int], float] = {}
        self.checker.is_reached_by_others = self._is_reached_by_others

    def run(self) -> Checker:
        """Run to the end.

        Raises:
            ViolationError: an invariant did not hold.
        """
        with ExitStack() as stack:
            for owner, name, replacement in self._fault.patches if self._fault else ():
                stack.enter_context(patch.object(owner, name, replacement))
            # nothing but the simulation's own power cuts is to be survived
            stack.enter_context(patch.object(os, "fsync", _nothing))
            memory = _MEMORY if _MEMORY.is_dir() else None
            directory = stack.enter_context(TemporaryDirectory("", "pylogctl-simulation-", memory))
            for broker in self.brokers.values():
                broker.directory = Path(directory) / str(broker.id)
            return self._run()

    def _run(self) -> Checker:
        for broker in self.brokers.values():
            broker.start()
        self._look_for_missed()
        self._advance(1.0)
        self._create_topic()
        for id in range(2):
            arguments = (self.scheduler, self.network, self.brokers, self.checker)
            producer = Producer(-1 - id, *arguments, lambda: self.registry.states)
            consumer = Consumer(-11 - id, *arguments, lambda: self.registry.states)
            consumer.reads_any = bool(id)
            producer.later(0.1, producer.send_next)
            consumer.later(0.1, consumer.poll)
            self.clients.append(producer)
            self.consumers.append(consumer)
        self.network.duplication = self.random.choice((0.0, 0.05, 0.3))
        self.network.loss = self.random.choice((0.0, 0.0, 0.02))
        self.network.late = self.random.choice((0.0, 0.02))
        self.registry.lost_answers = self.random.choice((0.0, 0.05))
        self._end_of_chaos_s = self.scheduler.now + _CHAOS_S
        self._strike()
        if self._disks.random() < 0.3:
            emptied = self._disks.choice(list(self.brokers.values()))
            self.scheduler.after(self._disks.uniform(2, _CHAOS_S), partial(self._empty, emptied))
        if self._clocks.random() < 0.3:
            wrong = self._clocks.choice(list(self.brokers.values()))
            self.scheduler.after(self._clocks.uniform(0, 5), partial(self._set_clock, wrong))
        if self._clocks.random() < 0.5:
            self.scheduler.after(self._clocks.uniform(1, _CHAOS_S), self._restore_leader)
        if self._losses.random() < 0.2:
            self.scheduler.after(self._losses.random() * _CHAOS_S, self._lose_registry)
        self._advance(self._end_of_chaos_s)
        self._heal()
        self._converge()
        self.checker.check_in_the_end(
            [
                log
                for (owner, one), log in self.checker.logs.items()
                if self._is_replica(owner, one)
            ],
            {
                self._created(partition): stored.state.leader
                for partition, stored in self.registry.states.items()
            },
        )
        return self.checker

    def _advance(self, until_s: float) -> None:
        self.scheduler.run_until(until_s)

    def _create_topic(self) -> None:
        while not self.registry.states:
            self._order_topic(self.random.choice((1, 1, 2)))
            self._advance(self.scheduler.now + 0.2)

    def _order_topic(self, partition_count: int) -> None:
        """Have the topic created, if there is a controller and enough brokers are live."""
        self._creation_count += 1
        creation_id = f"creation {self._creation_count}"
        format = self._format_choices.choice(self._formats)
        self._administer(
            lambda c: c.topics.create(
                *(TOPIC, partition_count, self.factor, {}),
                format=format,
                creation_id=creation_id,
                start=0,
            )
        )

    def _administer(self, action: Callable[[Controller], object]) -> object:
        """Have the controller do something; each that believes to be it is asked."""
        answer = None
        for one in self.brokers.values():
            if one.is_alive and not one.is_paused and one.controller is not None:
                answer = one._control(action)
        return answer

    def _created(self, partition: TopicPartition) -> Created:
        return Created(partition, self.registry.topics[partition.topic].creation_id)

    def _is_replica(self, owner: int, created: Created) -> bool:
        topic = self.registry.topics.get(created.partition.topic)
        return (
            topic is not None
            and topic.creation_id == created.creation_id
            and owner in topic.replicas.get(created.partition, ())
        )

    def _leader(self) -> Broker | None:
        """Return the leader of the first partition."""
        for stored in self.registry.states.values():
            return self.brokers.get(stored.state.leader)
        return None

    def _note_missed(self) -> None:
        """Note which brokers are not reached by which now, or perhaps too late."""
        is_lossy = self.network.loss or self.network.late
        for one in self.brokers.values():
            for other in self.brokers.values():
                is_there = other.is_alive and not other.is_paused and not other.is_refusing
                is_asking = one.is_alive and not one.is_paused
                is_reached = is_there and is_asking and not is_lossy
                if not is_reached or self.network.is_cut(one.id, other.id):
                    self._missed_s[one.id, other.id] = self.scheduler.now

    def _look_for_missed(self) -> None:
        self._note_missed()
        self.scheduler.after(0.05, self._look_for_missed)

    def _is_reached_by_others(self, by: int, broker: int) -> bool:
        self._note_missed()
        others = [one for one in self.brokers if one not in (by, broker)]
        long_ago_s = self.scheduler.now - _ASKING_S
        return all(self._missed_s.get((one, broker), 0.0) < long_ago_s for one in others)

    # Faults.

    def _strike(self) -> None:
        if self.scheduler.now >= self._end_of_chaos_s:
            return
        random = self.random
        (strike,) = random.choices(_STRIKES, self._weights)
        strike(self, random.choice(list(self.brokers.values())))
        self.scheduler.after(random.expovariate(1 / random.choice((0.15, 0.8))), self._strike)

    def _for_a_while(self, longest_s: float, undo: Callable[[], None]) -> None:
        self.scheduler.after(self.random.random() * longest_s, undo)

    def _kill(self, broker: Broker) -> None:
        if broker.is_alive:
            if self.loses_power and self.random.random() < 0.6:
                broker.lose_power()
            else:
                broker.kill()
            self._start_later(broker)

    def _kill_leader(self, broker: Broker) -> None:
        leader = self._leader()
        if leader is not None:
            self._kill(leader)

    def _start_later(self, broker: Broker) -> None:
        def start() -> None:
            if not broker.is_alive:
                if self.random.random() < 0.4:
                    for session in list(self.registry.sessions):
                        if session.process is broker:
                            self.registry.expire(session)
                broker.start()

        self._for_a_while(self.random.choice((0.5, 5.0)), start)

    def _stop_cleanly(self, broker: Broker) -> None:
        if broker.is_alive and not broker.is_paused and not broker.is_stopping:
            broker.stop_cleanly()
            self._restart_stopped(broker)

    def _restart_stopped(self, broker: Broker) -> None:
        def start() -> None:
            if not broker.is_alive:
                broker.start()
            elif broker.is_stopping:
                self.scheduler.after(0.5, start)

        self._for_a_while(2.0, start)

    def _pause(self, broker: Broker) -> None:
        if broker.is_alive and not broker.is_paused:
            self.scheduler.note("broker {} is paused", broker.id)
            broker.pause()
            self._for_a_while(self.random.choice((0.5, 5.0)), broker.resume)

    def _cut(self, broker: Broker) -> None:
        others = [*(one for one in self.brokers if one != broker.id), -1, -2]
        chosen = self.random.sample(others, self.random.randint(1, len(others)))
        pairs = {(broker.id, one) for one in chosen}
        kind = self.random.random()
        if kind < 0.6:
            pairs |= {(two, one) for one, two in pairs}
        elif kind < 0.8:
            pairs = {(two, one) for one, two in pairs}
        self.scheduler.note("cut {}", pairs)
        self.network.cuts |= pairs
        self._for_a_while(5.0, lambda: self._mend(pairs))

    def _mend(self, pairs: set[tuple[int, int]]) -> None:
        self.network.cuts -= pairs

    def _cut_zookeeper(self, broker: Broker) -> None:
        self.scheduler.note("broker {} is cut from ZooKeeper", broker.id)
        pairs = {(broker.id, ZOOKEEPER)}
        self.network.cuts |= pairs
        self._for_a_while(self.random.choice((1.0, 5.0)), lambda: self._mend(pairs))

    def _isolate_leader_with_zookeeper(self, broker: Broker) -> None:
        found = self._leader()
        if found is None:
            return
        leader = found.id
        pairs = {(leader, one) for one in self.brokers if one != leader}
        pairs |= {(two, one) for one, two in pairs}
        self.network.cuts |= pairs
        self.scheduler.note("leader {} is cut from the others", leader)
        self._for_a_while(5.0, lambda: self._mend(pairs))

    def _isolate_controller(self, broker: Broker) -> None:
        """Cut a controller off from one broker, or from all, but not from ZooKeeper."""
        for one in self.brokers.values():
            if one.controller is not None:
                others = [id for id in self.brokers if id != one.id]
                chosen = self.random.sample(others, self.random.choice((1, len(others))))
                pairs = {pair for id in chosen for pair in ((one.id, id), (id, one.id))}
                self.scheduler.note("controller {} is cut off: {}", one.id, pairs)
                self.network.cuts |= pairs
                self._for_a_while(5.0, partial(self._mend, pairs))
                return

    def _refuse(self, broker: Broker) -> None:
        """Have a live broker refuse connections, once or again and again; open ones go on."""
        self.scheduler.note("broker {} refuses connections", broker.id)
        broker.is_refusing = True
        self._for_a_while(1.0, partial(self._accept, broker, self.random.choice((0, 0, 5))))

    def _accept(self, broker: Broker, times: int) -> None:
        broker.is_refusing = False
        if times and self.scheduler.now < self._end_of_chaos_s:
            broker.is_refusing = True
            self._for_a_while(0.5, partial(self._accept, broker, 0))
            self._for_a_while(2.0, partial(self._accept, broker, times - 1))

    def _expire(self, broker: Broker) -> None:
        if broker.session is not None:
            self.scheduler.note("session of broker {} is expired", broker.id)
            self.registry.expire(broker.session)

    def _expire_leader(self, broker: Broker) -> None:
        leader = self._leader()
        if leader is not None:
            self._expire(leader)

    def _stall_zookeeper(self, broker: Broker) -> None:
        self.registry.is_down = True
        self._for_a_while(3.0, self._mend_zookeeper)

    def _mend_zookeeper(self) -> None:
        self.registry.is_down = False

    def _slow_disk(self, broker: Broker) -> None:
        broker.is_slow = not broker.is_slow

    def _fill_disk(self, broker: Broker) -> None:
        self._set_full(broker, is_full=True)
        self._for_a_while(2.0, lambda: self._set_full(broker, is_full=False))

    def _set_full(self, broker: Broker, *, is_full: bool) -> None:
        broker.is_full = is_full
        for _, log in broker.logs.values():
            log.is_full = is_full

    def _retain(self, broker: Broker) -> None:
        if broker.is_alive:
            broker.retain()

    def _set_clock(self, broker: Broker) -> None:
        """Have the clock of a broker jump, which may start again meanwhile, and be set right."""
        broker.ahead_s = self._clocks.choice((-20.0, 4.0, 20.0))
        self.scheduler.note("the clock of broker {} is {} ahead", broker.id, broker.ahead_s)
        if self._clocks.random() < 0.5:
            self._kill(broker)
        self.scheduler.after(self._clocks.uniform(2, _CHAOS_S), partial(self._right_clock, broker))

    def _right_clock(self, broker: Broker) -> None:
        broker.ahead_s = 0.0

    def _restore_leader(self) -> None:
        """Have the leader remove all, as the old times of a restored disk tell it to.

        A follower may be away then, and an election may follow.
        """
        leader = self._leader()
        if leader is None:
            return
        others = [one for one in self.brokers.values() if one is not leader]
        if self._clocks.random() < 0.5:
            self._kill(self._clocks.choice(others))
        self.scheduler.after(self._clocks.uniform(0, 3), partial(self._age, leader))

    def _age(self, broker: Broker) -> None:
        self.scheduler.note("the files of broker {} get old times", broker.id)
        for _, log in broker.logs.values():
            log.times_s = [-2 * RETENTION_S for _ in log.times_s]
        self._retain(broker)
        if self._clocks.random() < 0.5:
            self._expire(broker)

    def _fail_disk(self, broker: Broker) -> None:
        if broker.is_alive and not broker.has_failed_disk:
            broker.fail_disk()
            self._for_a_while(5.0, lambda: self._replace_disk(broker))

    def _replace_disk(self, broker: Broker) -> None:
        if broker.is_alive and broker.has_failed_disk:
            broker.kill()
            self._start_later(broker)

    def _empty(self, broker: Broker) -> None:
        """Kill a broker, and start it with an empty disk, once no partition counts on it."""
        if broker.is_alive:
            broker.kill()
        self.scheduler.after(3.0, partial(self._start_emptied, broker))

    def _start_emptied(self, broker: Broker) -> None:
        if broker.is_alive:
            return
        for session in list(self.registry.sessions):
            if session.process is broker:
                self.registry.expire(session)
        lost = (self.checker.states[one] for one in self.checker.forgotten)
        if not any(broker.id in one.state.isr for one in (*self.registry.states.values(), *lost)):
            broker.replace_disk()
        broker.start()

    def _prefer(self, broker: Broker) -> None:
        if self.random.random() < 0.5:
            self._administer(lambda c: c.leadership.elect_preferred(list(self.registry.states)))
        else:
            self._administer(lambda c: c.leadership.balance_leaders(10))

    def _reassign(self, broker: Broker) -> None:
        if not self.registry.states:
            return
        ids = list(self.brokers)
        self.random.shuffle(ids)
        target = tuple(ids[: self.random.randint(2, 3)])
        partition = self.random.choice(list(self.registry.states))
        throttle = self._throttles.choice((None, 0, 16 * MESSAGE_BYTES, 64 * MESSAGE_BYTES))
        self.scheduler.note("reassign {} to {}, throttle {}", partition, target, throttle)
        if self.registry.reassignments and self.random.random() < 0.3:
            for one in list(self.registry.reassignments):
                self._administer(partial(self._cancel, partition=one))
        else:
            self._administer(lambda c: c.reassignments.begin({partition: target}, throttle))

    def _cancel(self, controller: Controller, partition: TopicPartition) -> None:
        controller.reassignments.cancel(partition)
        self.scheduler.counts["changes of replicas cancelled"] += 1

    def _change_settings(self, broker: Broker) -> None:
        topic = {"min.insync.replicas": str(self.random.randint(1, 2))}
        if self.is_unclean:
            topic["unclean.leader.election.enable"] = self.random.choice(("true", "false"))
        settings: dict[str, Mapping[str, str]] = {TOPIC: topic}
        self.scheduler.note("settings {}", settings)
        self.scheduler.counts["settings changed"] += 1
        self.registry.settings = settings
        self._administer(lambda c: c.settings_changed(settings))

    def _delete_or_create(self, broker: Broker) -> None:
        if TOPIC in self.registry.topics:
            self._administer(lambda c: c.deletions.delete_topic(TOPIC))
            self._for_a_while(3.0, lambda: self._delete_or_create(broker))
        else:
            self._order_topic(self.random.choice((1, 1, 2)))

    def _lose_registry(self) -> None:
        self.scheduler.note("ZooKeeper loses its data")
        self.scheduler.counts["losses of the registry's data"] += 1
        self.registry.lose_data()
        self._for_a_while(8.0, lambda: self._recover(gives_up=False))

    def _recover(self, *, gives_up: bool) -> None:
        """Make lost partitions again, as `pylogctl cluster recover` does.

        Args:
            gives_up: also where something may be lost; what was deleted is discarded then.
        """
        found = [one for one in self._lost() if gives_up or not one.doubts]
        if any(one.doubts and one.record.creation_id in self.checker.deleted for one in found):
            self._administer(lambda c: c.deletions.delete_topic(TOPIC))
            self.scheduler.counts["remains of deleted topics discarded"] += 1
        elif lost := [one.record for one in found]:
            restored = self._administer(lambda c: c.topics.restore(lost))
            self.scheduler.counts["topics recovered"] += isinstance(restored, list)

    def _lost(self) -> list[Lost]:
        """Return the partitions that can be restored, as far as live brokers know."""
        live = [one for one in self.brokers.values() if one.is_alive and not one.is_paused]
        topic = self.registry.topics.get(TOPIC)
        return [
            one
            for one in plan({broker.id: broker.unknown() for broker in live if broker._is_known})
            if not one.is_former and (topic is None or topic.creation_id == one.record.creation_id)
        ]

    def _add_partition(self, broker: Broker) -> None:
        # Not while partitions are lost, as docs/operations/lost-registry.md asks: brokers that are
        # away cannot tell of their logs, and a new partition could get the name of one of these.
        topic = self.registry.topics.get(TOPIC)
        lost = {one.creation_id for one in self.checker.forgotten}
        if len(self.registry.states) < 3 and (topic is None or topic.creation_id not in lost):
            start = self.random.randint(0, 2)
            added = self._administer(lambda c: c.topics.add_partitions(TOPIC, 1, start=start))
            self.scheduler.counts["partitions added"] += isinstance(added, list)

    # The end.

    def _heal(self) -> None:
        self.scheduler.note("all faults end")
        self.network.cuts.clear()
        self.network.loss = self.network.duplication = self.network.late = 0.0
        self.registry.is_down = False
        self.registry.lost_answers = 0.0
        for broker in self.brokers.values():
            self._set_full(broker, is_full=False)
            broker.is_slow = broker.is_refusing = False
            broker.ahead_s = 0.0
            if broker.is_paused:
                broker.resume()
            self._replace_disk(broker)
            if not broker.is_alive:
                broker.start()
        for client in self.clients:
            client.is_done = True

    def _converge(self) -> None:
        end = self.scheduler.now + _PEACE_S
        self._advance(self.scheduler.now + 3.0)
        while (why := self._unsettled()) is not None:
            if self.scheduler.now > end:
                self.checker.fail("I21", why)
            for broker in self.brokers.values():
                if not broker.is_alive:
                    broker.start()
            self._recover(gives_up=True)
            if TOPIC not in self.registry.topics:
                self._order_topic(1)
            self._advance(self.scheduler.now + 0.5)

    def _unsettled(self) -> str | None:
        """Return what is not yet as it should be when all is well."""
        for broker in self.brokers.values():
            if not broker.is_alive:
                return f"broker {broker.id} is down"
            if broker._publishes:
                return f"broker {broker.id} has unanswered publishes"
        if sum(one.controller is not None for one in self.brokers.values()) != 1:
            return "there is not one controller"
        if self.registry.deletions or not self.registry.states:
            return f"there is no topic, or one is being deleted: {self.registry.deletions}"
        for partition, (state, _) in self.registry.states.items():
            replicas = self.registry.topics[TOPIC].replicas[partition]
            if state.leader == NO_LEADER or set(state.isr) != set(replicas):
                return f"{partition}: {state}, replicas {replicas}"
            created = self._created(partition)
            logs = [self.checker.logs.get((one, created)) for one in replicas]
            ends = {log.log_end_offset for log in logs if log is not None}
            marks = {log.high_watermark for log in logs if log is not None}
            if len(ends) != 1 or marks != ends or None in logs:
                return f"{partition}: logs end at {ends}, high watermarks {marks}, {state}"
            for broker in self.brokers.values():
                if broker.leader_of(partition) != (state.leader, state.leader_epoch):
                    return f"broker {broker.id} does not know who leads {partition}"
        if lost := self._lost():
            return f"partitions are lost: {lost}"
        if self.registry.reassignments:
            return f"reassignments are under way: {self.registry.reassignments}"
        return None


def _nothing(*_: object) -> None:
    pass


_STRIKES_AND_WEIGHTS: tuple[tuple[Callable[[Simulation, Broker], None], float], ...] = (
    (Simulation._kill, 3),
    (Simulation._kill_leader, 2),
    (Simulation._stop_cleanly, 1),
    (Simulation._pause, 2),
    (Simulation._cut, 3),
    (Simulation._cut_zookeeper, 1.5),
    (Simulation._isolate_leader_with_zookeeper, 0.7),
    (Simulation._expire, 0.5),
    (Simulation._expire_leader, 1.5),
    (Simulation._stall_zookeeper, 0.3),
    (Simulation._slow_disk, 0.6),
    (Simulation._fill_disk, 0.6),
    (Simulation._retain, 0.6),
    (Simulation._prefer, 0.8),
    (Simulation._reassign, 0.6),
    (Simulation._change_settings, 0.3),
    (Simulation._fail_disk, 0.4),
    (Simulation._delete_or_create, 0.2),
    (Simulation._add_partition, 0.1),
    (Simulation._refuse, 0.7),
    (Simulation._isolate_controller, 0.5),
)
_STRIKES = [one for one, _ in _STRIKES_AND_WEIGHTS]
_WEIGHTS = [weight for _, weight in _STRIKES_AND_WEIGHTS]
