"""A broker is taken for dead on the word of two, and loses nothing if it was not."""

from __future__ import annotations

import pytest

from broker.cluster_state import PartitionState, PeerFinding
from broker.controller.suspicion import BACKOFF_S, SilentOffice, Suspicion, Witness
from broker.errors import FencedEpochError, StaleBrokerEpochError
from tests.unit.broker.controller.cluster import Cluster, P

ALL = (0, 1, 2)


def suspect(cluster: Cluster, broker_id: int) -> None:
    cluster.controller.suspect(broker_id, cluster.epoch_of(broker_id), "it does not answer")


def trust(cluster: Cluster, broker_id: int) -> None:
    cluster.controller.trust(broker_id, cluster.epoch_of(broker_id))


@pytest.fixture
def suspicion() -> Suspicion:
    return Suspicion(3.0, 0.0)


def test_broker_when_it_refuses_two_then_is_taken_for_dead_at_once(suspicion: Suspicion) -> None:
    assert suspicion.note(PeerFinding.REFUSES, 0.1)
    suspicion.judge(Witness(2, PeerFinding.REFUSES), has_others=True)

    assert "broker 2" in suspicion.evidence


@pytest.mark.parametrize("witness", [Witness(2, PeerFinding.ANSWERS), None])
def test_broker_when_one_alone_misses_it_then_is_not_taken_for_dead(
    suspicion: Suspicion, witness: Witness | None
) -> None:
    assert suspicion.note(PeerFinding.REFUSES, 0.1)
    suspicion.judge(witness, has_others=True)

    assert not suspicion.evidence
    assert suspicion.note(PeerFinding.REFUSES, 0.4), "another is asked again"


def test_broker_when_nobody_else_is_there_then_refusal_is_enough_and_silence_is_not(
    suspicion: Suspicion,
) -> None:
    suspicion.note(PeerFinding.SILENT, 5.0)
    suspicion.judge(None, has_others=False)
    assert not suspicion.evidence

    suspicion.note(PeerFinding.REFUSES, 5.1)
    suspicion.judge(None, has_others=False)
    assert suspicion.evidence


def test_broker_when_silent_then_is_missed_after_two_thirds_of_the_time() -> None:
    suspicion = Suspicion(3.0, 0.0)
    assert not suspicion.note(PeerFinding.SILENT, 1.9)
    assert not suspicion.is_missed
    assert suspicion.note(PeerFinding.SILENT, 2.0)

    assert not Suspicion(0.0, 0.0).note(PeerFinding.SILENT, 60.0)


def test_broker_when_it_answers_again_then_is_not_suspected_for_a_while(
    suspicion: Suspicion,
) -> None:
    suspicion.note(PeerFinding.REFUSES, 0.1)
    suspicion.judge(Witness(2, PeerFinding.SILENT), has_others=True)
    suspicion.note(PeerFinding.ANSWERS, 1.0)
    assert not suspicion.evidence

    for finding, backoff_s in BACKOFF_S.items():
        assert not suspicion.note(finding, 0.9 + backoff_s)
        assert suspicion.note(finding, 1.1 + backoff_s)


def test_broker_when_another_hears_it_again_then_is_trusted_though_this_one_misses_it(
    suspicion: Suspicion,
) -> None:
    suspicion.note(PeerFinding.REFUSES, 0.1)
    suspicion.judge(Witness(2, PeerFinding.SILENT), has_others=True)
    assert suspicion.evidence
    assert not suspicion.note(PeerFinding.REFUSES, 1.0)
    assert suspicion.note(PeerFinding.REFUSES, 1.2), "the witness is asked again"
    suspicion.judge(Witness(2, PeerFinding.ANSWERS), has_others=True)
    assert not suspicion.evidence
    assert not suspicion.note(PeerFinding.REFUSES, 11.0)


def test_office_when_it_has_just_changed_hands_then_is_not_taken_for_silence() -> None:
    office = SilentOffice()
    office.note(0, 0.0)
    assert office.can_be_taken(PeerFinding.SILENT, 1.0), "the first holder"
    office.note(1, 10.0)
    office.note(1, 60.0)
    assert not office.can_be_taken(PeerFinding.SILENT, 69.0)
    assert office.can_be_taken(PeerFinding.SILENT, 71.0)
    assert office.can_be_taken(PeerFinding.REFUSES, 11.0)


def test_suspected_leader_when_another_is_in_sync_then_that_leads_in_the_next_epoch() -> None:
    cluster = Cluster(PartitionState(0, 4, ALL, 0))
    suspect(cluster, 0)

    assert cluster.state == (1, 5, (1, 2))
    assert cluster.controller.counts().suspected == 1
    assert 0 in cluster.pushes(), "it is told as soon as it answers"
    old = cluster.isr_change(P, 4, 0, (0, 1))
    decision = cluster.controller.change_isr(0, cluster.epoch_of(0), [old])[0]
    assert decision.error == FencedEpochError.code


def test_suspected_leader_when_it_alone_is_in_sync_then_stays_also_if_unclean_is_allowed() -> None:
    cluster = Cluster(PartitionState(0, 4, (0,), 0), unclean=True)
    suspect(cluster, 0)
    assert cluster.state == (0, 4, (0,))

    cluster.fail(0)
    assert cluster.state == (1, 5, (1,)), "its registration is what tells that it is gone"


def test_suspected_follower_when_it_wants_to_join_then_is_refused_until_it_is_trusted() -> None:
    cluster = Cluster(PartitionState(0, 4, ALL, 0))
    suspect(cluster, 2)
    assert cluster.state == (0, 4, (0, 1))
    assert cluster.change_isr(0, 1, 2).error == StaleBrokerEpochError.code

    trust(cluster, 2)
    assert cluster.change_isr(0, 1, 2).error == 0


def test_suspected_broker_when_trusted_then_gets_nothing_back_but_can_be_elected() -> None:
    cluster = Cluster(PartitionState(0, 4, ALL, 0))
    suspect(cluster, 0)
    trust(cluster, 0)
    assert cluster.state == (1, 5, (1, 2))

    cluster.change_isr(0, 1, 2)
    cluster.controller.leadership.elect_preferred([P])
    assert cluster.controller.context.leader_of(P) == 0


def test_broker_when_the_controller_alone_misses_it_then_leads_only_if_no_other_can() -> None:
    cluster = Cluster(PartitionState(1, 4, ALL, 0))
    controller = cluster.controller
    controller.note_reach(0, cluster.epoch_of(0), is_missed=True)

    outcome = controller.leadership.elect_preferred([P])[P]
    assert "not reached by the controller" in str(outcome)
    suspect(cluster, 1)
    assert controller.context.leader_of(P) == 2
    cluster.fail(2)
    assert controller.context.leader_of(P) == 0

    trust(cluster, 1)
    controller.note_reach(0, cluster.epoch_of(0), is_missed=False)
    assert controller.leadership.elect_preferred([P]) == {P: None}


def test_suspicion_when_of_a_former_registration_or_of_one_that_stops_then_elects_nobody() -> None:
    cluster = Cluster(PartitionState(0, 4, ALL, 0))
    cluster.controller.suspect(0, cluster.epoch_of(0) - 1, "")
    assert cluster.state == (0, 4, ALL)

    cluster.shut_down(0)
    elected = cluster.state
    suspect(cluster, 0)
    assert cluster.state == elected


def test_suspected_broker_when_registered_anew_then_is_live() -> None:
    cluster = Cluster(PartitionState(0, 4, ALL, 0))
    suspect(cluster, 0)
    cluster.start(0)

    assert cluster.controller.counts().suspected == 0
