"""How a simulated broker finds out that others are gone; the shell of `Suspicion`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from broker.cluster_state import LiveBroker, PeerFinding
from broker.controller.suspicion import SilentOffice, Suspicion, Witness
from broker.errors import RegistryUnreachableError
from broker.ids import NO_CONTROLLER
from tests.simulation.events import Done

if TYPE_CHECKING:
    from tests.simulation.broker import Broker

_BEAT_S = 0.15


class Watch:
    """The watches of one broker, in one of its runs."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.told: tuple[LiveBroker, ...] = ()  # the live brokers, as a controller told last
        self._suspicions: dict[tuple[int, int], Suspicion] = {}  # by id and registration
        self._asked: set[tuple[int, int]] = set()
        self._office = SilentOffice()

    def beat(self) -> None:
        """Ask all that are watched, again and again."""
        broker = self._broker
        holder = broker.id if broker.controller is not None else broker.controller_id
        self._office.note(NO_CONTROLLER if holder is None else holder, broker.scheduler.now)
        peers, _ = self._watched()
        for peer in peers:
            key = _key(peer)
            if key not in self._suspicions:
                self._suspicions[key] = Suspicion(broker.options.silence_s, broker.scheduler.now)
            if key not in self._asked and peer.id != broker.id:
                self._asked.add(key)
                self._probe(peer.id, self._suspicions[key].patience_s, partial(self._found, peer))
        broker.later(_BEAT_S, self.beat)

    def _watched(self) -> tuple[list[LiveBroker], list[LiveBroker]]:
        """Return whom to watch, and who is live."""
        broker = self._broker
        if broker.controller is not None:
            live = list(broker.controller.context.brokers.values())
            return live, live
        return [one for one in self.told if one.id == broker.controller_id], list(self.told)

    def _probe(self, broker_id: int, patience_s: float, done: Done) -> None:
        source, target = self._broker, self._broker.peers[broker_id]
        if source.network.refuses(source, target):
            source.later(0.001, done, PeerFinding.REFUSES)
            return
        source.network.call(
            *(source, target, lambda respond: respond(PeerFinding.ANSWERS)),
            lambda found: done(PeerFinding.SILENT if found is None else found),
            patience_s,
            may_repeat=False,
        )

    def witness(self, peer: LiveBroker, respond: Done) -> None:
        """Tell another broker what this one finds."""
        if _key(peer) in map(_key, self.told):
            patience_s = Suspicion(self._broker.options.silence_s, 0.0).witness_patience_s
            self._probe(peer.id, patience_s, respond)
        else:
            respond("another registration is known")

    def _found(self, peer: LiveBroker, finding: PeerFinding) -> None:
        self._asked.discard(_key(peer))
        broker, suspicion = self._broker, self._suspicions[_key(peer)]
        asks = suspicion.note(finding, broker.scheduler.now)
        if (controller := broker.controller) is not None:
            controller.note_reach(peer.id, peer.epoch, is_missed=suspicion.is_missed)
        if asks:
            self._asked.add(_key(peer))
            self._ask(peer, iter(self._others(peer)))
        elif suspicion.evidence:
            self._take_for_dead(peer)
        else:
            self._trust(peer)

    def _trust(self, peer: LiveBroker) -> None:
        broker = self._broker
        if broker.controller is not None and peer.id in broker.controller.context.suspected:
            broker.scheduler.counts["brokers taken for dead that answer again"] += 1
            broker._control(lambda c: c.trust(peer.id, peer.epoch))

    def _others(self, peer: LiveBroker) -> list[LiveBroker]:
        return [
            one
            for one in self._watched()[1]
            if one.id not in (self._broker.id, peer.id)
            and not (_key(one) in self._suspicions and self._suspicions[_key(one)].is_missed)
        ]

    def _ask(self, peer: LiveBroker, others: Iterator[LiveBroker]) -> None:
        """Have the first of others that can tell be the witness."""
        broker, suspicion = self._broker, self._suspicions[_key(peer)]
        for other in others:
            target = broker.peers[other.id]
            if broker.network.refuses(broker, target):
                continue

            def done(found: object, other: LiveBroker = other) -> None:
                if isinstance(found, PeerFinding):
                    self._judge(peer, Witness(other.id, found))
                else:
                    self._ask(peer, others)

            broker.network.call(
                *(broker, target, lambda r, target=target: target.watch.witness(peer, r)),
                *(done, 2 * suspicion.witness_patience_s),
            )
            return
        self._judge(peer, None)

    def _judge(self, peer: LiveBroker, witness: Witness | None) -> None:
        self._asked.discard(_key(peer))
        suspicion = self._suspicions[_key(peer)]
        ids = {one.id for one in self._watched()[1]} - {self._broker.id, peer.id}
        had_evidence = bool(suspicion.evidence)
        suspicion.judge(witness, has_others=bool(ids))
        if not suspicion.evidence:
            self._trust(peer)
        elif had_evidence:
            self._take_for_dead(peer)
        else:
            broker = self._broker
            broker.scheduler.note(
                "broker {} takes {} for dead: {}", broker.id, peer.id, suspicion.evidence
            )
            if broker.peers[peer.id].broker_epoch == peer.epoch:  # else it was away, and is back
                broker.checker.taken_for_dead(broker.id, peer.id)
            self._take_for_dead(peer)

    def _take_for_dead(self, peer: LiveBroker) -> None:
        broker = self._broker
        if (controller := broker.controller) is not None:
            if peer.id not in controller.context.suspected:
                broker.scheduler.counts["brokers taken for dead"] += 1
                evidence = self._suspicions[_key(peer)].evidence
                broker._control(lambda c: c.suspect(peer.id, peer.epoch, evidence))
        elif (
            peer.id == broker.controller_id
            and broker.session is not None
            and self._office.can_be_taken(self._suspicions[_key(peer)].own, broker.scheduler.now)
        ):
            try:
                broker.registry.take_over(broker.session, peer)
            except RegistryUnreachableError:
                return
            broker._registry_changed()


def _key(peer: LiveBroker) -> tuple[int, int]:
    return peer.id, peer.epoch
