"""Role changes of replicas, and orders that are late or come twice."""

from __future__ import annotations

import pytest

from broker.cluster_state import (
    LAST_EPOCH,
    EpochStart,
    LiveBroker,
    PartitionState,
    ReplicatedPartition,
    StoppedReplica,
)
from broker.errors import (
    NotLeaderError,
    ServerError,
    StaleBrokerEpochError,
    StaleControllerEpochError,
    StorageError,
    UnknownEpochError,
)
from broker.replication.follower import Follower
from broker.replication.leader import Leader
from broker.replication.replicas import Applied, Replica, Replicas, ReplicaSettings, RoleChange
from broker.topic import TopicPartition
from tests.support.replica_log import MemoryLog

PARTITION = TopicPartition("t", 0, 0)
ME = 1


def info_of(
    leader: int,
    epoch: int,
    *,
    version: int = 1,
    replicas: tuple[int, ...] = (0, 1),
    isr: tuple[int, ...] = (0, 1),
    created: str = "a",
) -> ReplicatedPartition:
    state = PartitionState(leader, epoch, isr, controller_epoch=1)
    return ReplicatedPartition(PARTITION, created, replicas, 1, state, version)


def replica_with(log: MemoryLog) -> Replica:
    return Replica(ME, info_of(0, 0), log, ReplicaSettings())


class Broker:
    """Replicas with logs in memory."""

    def __init__(self) -> None:
        self.logs: dict[str, MemoryLog] = {}
        self.deleted: list[str] = []
        self.replicas = Replicas(ME, ReplicaSettings(), self.open, self.delete)
        self.replicas.registered(10)

    def open(self, info: ReplicatedPartition) -> MemoryLog:
        return self.logs.setdefault(info.creation_id, MemoryLog())

    def delete(self, replica: Replica) -> None:
        self.deleted.append(replica.creation_id)

    def push(
        self,
        *partitions: ReplicatedPartition,
        stopped: tuple[StoppedReplica, ...] = (),
        controller_epoch: int = 1,
        broker_epoch: int = 10,
        is_full: bool = False,
    ) -> Applied:
        return self.replicas.push(
            controller_epoch, broker_epoch, partitions, stopped, 0.0, is_full=is_full
        )

    @property
    def role(self) -> Leader | Follower | None:
        replica = self.replicas.get(PARTITION)
        return replica.role if replica else None


def test_leader_when_elected_then_begins_its_epoch_without_data_and_keeps_its_log() -> None:
    log = MemoryLog()
    log.begin_epoch(1, 0)
    log.append("a", "b")
    log.advance_high_watermark(1)
    replica = replica_with(log)

    assert replica.apply(info_of(ME, 3), 0.0) is RoleChange.LEADS

    assert log.epochs.entries == (EpochStart(1, 0), EpochStart(3, 2))
    assert (log.log_end_offset, log.high_watermark) == (2, 1)
    assert replica.leader.epoch_start_offset == 2


def test_leader_when_its_log_was_not_replicated_before_then_all_of_it_is_in_its_epoch() -> None:
    log = MemoryLog()
    log.append("a", "b")
    replica = replica_with(log)
    replica.apply(info_of(ME, 0), 0.0)

    assert log.epochs.entries == (EpochStart(0, 0),)


def test_follower_when_its_log_has_bytes_without_epochs_then_fetches_all_again() -> None:
    log = MemoryLog()
    log.append("a", "b")
    replica = replica_with(log)
    replica.apply(info_of(0, 0), 0.0)

    assert log.log_end_offset == 0


def test_terms_when_one_begins_then_the_former_one_is_stopped() -> None:
    replica = replica_with(MemoryLog())
    replica.apply(info_of(ME, 1), 0.0)
    leader = replica.leader
    replica.apply(info_of(0, 2), 0.0)
    follower = replica.role

    assert leader.is_stopped
    with pytest.raises(NotLeaderError) as error:
        _ = replica.leader
    assert error.value.leader == 0
    replica.apply(info_of(ME, 3), 0.0)
    assert isinstance(follower, Follower)
    assert follower.is_stopped


def test_order_when_of_an_earlier_epoch_then_is_skipped_and_of_the_same_refreshes() -> None:
    replica = replica_with(MemoryLog())
    replica.apply(info_of(ME, 2), 0.0)
    leader = replica.leader

    assert replica.apply(info_of(0, 1), 0.0) is RoleChange.SKIPPED
    assert replica.apply(info_of(ME, 2, version=4, isr=(1,)), 0.0) is RoleChange.REFRESHED
    assert replica.leader is leader
    assert leader.info.state.isr == (1,)


def test_leader_when_the_disk_refuses_its_epoch_then_has_no_role_and_can_try_again() -> None:
    log = MemoryLog()
    log.is_full = True
    replica = replica_with(log)
    with pytest.raises(StorageError):
        replica.apply(info_of(ME, 1), 0.0)
    assert replica.role is None

    log.is_full = False
    assert replica.apply(info_of(ME, 1), 0.0) is RoleChange.LEADS


def test_proposal_when_the_controller_answers_the_present_version_then_is_refused() -> None:
    replica = replica_with(MemoryLog())
    replica.apply(info_of(ME, 1), 0.0)
    replica.leader.log.append("x")  # type: ignore[attr-defined]
    proposal = replica.leader.tick(60.0)
    assert proposal is not None
    replica.isr_answered(proposal, info_of(ME, 1), 60.0)

    assert replica.leader.counted_isr == {0, 1}
    assert replica.leader.tick(62.0) is not None


def test_orders_when_of_a_former_controller_or_another_registration_then_are_refused() -> None:
    broker = Broker()
    broker.push(controller_epoch=2)

    with pytest.raises(StaleControllerEpochError):
        broker.push(info_of(ME, 1), controller_epoch=1)
    for broker_epoch in (9, 11, 2**62):
        with pytest.raises(StaleBrokerEpochError):
            broker.push(info_of(ME, 1), controller_epoch=2, broker_epoch=broker_epoch)
    assert broker.role is None


@pytest.mark.parametrize(
    "state",
    [
        info_of(ME, 1, isr=(ME, 7)),
        info_of(ME, 1, isr=()),
        info_of(ME, 1, isr=(0,)),
        info_of(ME, 1, isr=(ME, ME)),
        info_of(ME, 1, replicas=(0, ME, ME)),
        info_of(ME, -1),
        info_of(ME, 2**31 - 1),
    ],
)
def test_orders_when_a_state_cannot_be_then_fails_alone_and_the_role_stays(
    state: ReplicatedPartition,
) -> None:
    broker = Broker()
    broker.push(info_of(0, 0))
    role = broker.role
    other = info_of(ME, 3)._replace(partition=TopicPartition("other", 0, 0))

    applied = broker.push(state, other)

    assert [partition for partition, _ in applied.failures] == [PARTITION]
    assert [replica.partition for replica, _ in applied.changes] == [other.partition]
    assert broker.role is role


def test_orders_when_this_run_has_not_registered_then_are_for_the_former_one() -> None:
    replicas = Replicas(ME, ReplicaSettings(), Broker().open, Broker().delete)

    with pytest.raises(StaleBrokerEpochError):
        replicas.push(1, 10, [info_of(ME, 1)], [], 0.0, is_full=True)


def test_fetch_when_of_a_registration_that_no_controller_told_then_is_refused() -> None:
    replicas = Broker().replicas
    with pytest.raises(UnknownEpochError):
        replicas.check_follower(0, 7)
    replicas.note_brokers([LiveBroker(0, "host", 9092, 8, is_clean=False, rack="")])
    replicas.note_brokers(
        [LiveBroker(0, "host", 9092, 7, is_clean=False, rack="")]
    )  # of a push that was late

    replicas.check_follower(0, 8)
    refusals = set()
    for other in (-1, 7, 9, 2**62):  # all alike: else the epoch could be found by halving
        with pytest.raises(UnknownEpochError) as refused:
            replicas.check_follower(0, other)
        refusals.add(str(refused.value))
    assert len(refusals) == 1


def test_fetch_when_a_later_controller_announces_a_lower_registration_then_that_counts() -> None:
    """The former controller was of a registry that has lost its data, and numbers them anew."""
    broker = Broker()
    broker.push(controller_epoch=3)
    broker.replicas.note_brokers([LiveBroker(0, "host", 9092, 9, is_clean=True, rack="")])

    broker.push(controller_epoch=7)
    broker.replicas.note_brokers([LiveBroker(0, "host", 9092, 2, is_clean=True, rack="")])

    broker.replicas.check_follower(0, 2)


def test_orders_when_refused_then_the_error_tells_no_epoch() -> None:
    broker = Broker()
    broker.replicas.registered(4711)
    broker.push(controller_epoch=4712, broker_epoch=4711)

    for controller_epoch, broker_epoch in ((1, 4711), (4712, 1)):
        with pytest.raises(ServerError) as refused:
            broker.replicas.check_orders(controller_epoch, broker_epoch)
        assert "471" not in str(refused.value)


def test_orders_when_for_another_registration_then_the_error_tells_nothing_of_the_controller() -> (
    None
):
    broker = Broker()
    broker.push(controller_epoch=7)

    for controller_epoch in (1, 7, 8):
        with pytest.raises(StaleBrokerEpochError):
            broker.replicas.check_orders(controller_epoch, 9)


def test_replica_when_stopped_then_starts_only_in_a_later_epoch() -> None:
    broker = Broker()
    broker.push(info_of(0, 1))
    broker.push(stopped=(StoppedReplica(PARTITION, "a", 1, False),))
    assert broker.role is None

    broker.push(info_of(0, 1))
    assert broker.role is None, "an order from before the stop came twice"
    broker.push(info_of(0, 2))
    assert isinstance(broker.role, Follower)


def test_stop_when_of_an_earlier_epoch_or_another_creation_then_is_skipped() -> None:
    broker = Broker()
    broker.push(info_of(ME, 2))
    broker.push(
        stopped=(StoppedReplica(PARTITION, "a", 1, True), StoppedReplica(PARTITION, "b", 9, True))
    )

    assert isinstance(broker.role, Leader)
    assert broker.deleted == []


def test_topic_when_deleted_and_created_again_then_late_orders_for_the_former_are_skipped() -> None:
    broker = Broker()
    broker.push(info_of(ME, 5))
    broker.push(stopped=(StoppedReplica(PARTITION, "a", LAST_EPOCH, True),))
    assert broker.deleted == ["a"]
    broker.push(info_of(ME, 0, created="b"))

    broker.push(info_of(0, 5))
    replica = broker.replicas.get(PARTITION)
    assert replica is not None
    assert replica.creation_id == "b"
    assert isinstance(replica.role, Leader)


def test_replica_when_removed_and_assigned_again_then_starts_in_a_later_epoch() -> None:
    broker = Broker()
    broker.push(info_of(0, 5))
    broker.push(stopped=(StoppedReplica(PARTITION, "a", 6, True),))

    broker.push(info_of(0, 6))
    assert broker.role is None
    broker.push(info_of(0, 7))
    assert isinstance(broker.role, Follower)


def test_replicas_when_a_full_push_does_not_name_them_then_stop_and_keep_their_logs() -> None:
    broker = Broker()
    broker.push(info_of(ME, 1), is_full=True)
    broker.push(is_full=True)
    leader = broker.role
    assert isinstance(leader, Leader), "the same push may come twice, late"
    broker.push(controller_epoch=2, is_full=True)
    assert leader.is_stopped
    assert broker.deleted == []


def test_replica_when_the_broker_is_no_replica_any_more_then_has_no_role() -> None:
    broker = Broker()
    broker.push(info_of(0, 1))
    applied = broker.push(info_of(0, 2, replicas=(0, 2), isr=(0,)))

    assert [change for _, change in applied.changes] == [RoleChange.STOPPED]
    assert broker.role is None


def test_news_when_older_than_what_is_known_then_are_none() -> None:
    broker = Broker()
    late, now = info_of(0, 5, version=8), info_of(2, 6, version=9, replicas=(0, 2), isr=(0, 2))
    broker.push(now)

    broker.push(late)

    assert broker.replicas.known == {PARTITION: now}
    assert not broker.replicas.note(late)
    assert broker.replicas.note(now._replace(min_isr=2))


def test_news_when_of_a_deleted_topic_then_are_none_and_a_new_one_of_its_name_is_known() -> None:
    broker = Broker()
    former, created = info_of(2, 5, replicas=(0, 2), isr=(2,)), info_of(0, 0, created="b")
    broker.push(former)
    broker.push(stopped=(StoppedReplica(PARTITION, "a", LAST_EPOCH, True),))
    assert broker.replicas.known == {}

    broker.push(former)
    assert broker.replicas.known == {}
    broker.push(created)
    broker.push(former)
    assert broker.replicas.known == {PARTITION: created}


def test_news_when_a_full_push_does_not_name_a_partition_then_it_is_unknown() -> None:
    broker = Broker()
    broker.push(info_of(0, 1, replicas=(0, 2)), is_full=True)

    broker.push(controller_epoch=2, is_full=True)

    assert broker.replicas.known == {}


def test_orders_when_the_registry_lost_its_epochs_then_only_later_controllers_count() -> None:
    broker = Broker()
    broker.push(info_of(0, 3), controller_epoch=7)

    broker.replicas.registered(2, registry_id=1)

    with pytest.raises(StaleControllerEpochError):
        broker.push(controller_epoch=7, broker_epoch=2, is_full=True)
    broker.push(controller_epoch=8, broker_epoch=2, is_full=True)
    assert broker.replicas.unnamed == {PARTITION: info_of(0, 3)}


def test_partition_when_restored_in_a_lower_epoch_than_was_known_before_then_is_noted() -> None:
    """This broker has no log of it: a restored partition goes on above the epochs of the logs."""
    broker = Broker()
    broker.push(info_of(1, 7, replicas=(1, 2)), controller_epoch=7)

    broker.replicas.registered(2, registry_id=1)
    restored = info_of(2, 5, replicas=(1, 2))
    broker.push(restored, controller_epoch=8, broker_epoch=2)
    assert broker.replicas.known == {PARTITION: restored}

    broker.push(info_of(1, 4, replicas=(1, 2)), controller_epoch=8, broker_epoch=2)
    assert broker.replicas.known == {PARTITION: restored}


def test_partition_when_unnamed_then_is_remembered_until_it_is_told_again_or_deleted() -> None:
    broker = Broker()
    broker.push(info_of(0, 3))
    broker.push(is_full=True)
    assert broker.replicas.unnamed == {PARTITION: info_of(0, 3)}

    broker.push(info_of(0, 4))
    assert broker.replicas.unnamed == {}
    broker.push(controller_epoch=2, is_full=True)
    broker.push(stopped=(StoppedReplica(PARTITION, "a", LAST_EPOCH, True),), controller_epoch=2)

    assert broker.replicas.unnamed == {}
    assert broker.deleted == ["a"]
