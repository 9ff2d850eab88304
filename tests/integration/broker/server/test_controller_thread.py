"""The controller's thread with a real ZooKeeper, and brokers that only take pushes."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from broker.clock import SystemClock
from broker.cluster_state import (
    IsrChange,
    IsrMember,
    Reassignment,
    ReplicatedPartition,
    TopicAssignment,
    creation_key,
)
from broker.config import BrokerConfig
from broker.errors import (
    InvalidRequestError,
    NotControllerError,
    ShuttingDownError,
    StaleBrokerEpochError,
    StaleControllerEpochError,
    StorageError,
    TopicExistsError,
    UnknownTopicError,
)
from broker.protocol.cluster_requests import (
    AddPartitionsRequest,
    CreateReplicatedTopicRequest,
    DeleteReplicatedTopicRequest,
    ElectionKind,
    ElectLeadersRequest,
    ListedReassignments,
    ListReassignmentsRequest,
    PartitionReassignment,
    ReassignRequest,
    ReplicaTarget,
    SettingText,
)
from broker.protocol.primitives import Reader
from broker.protocol.replica_requests import (
    UNKNOWN_REPLICAS,
    ChangeIsrRequest,
    ControlledShutdownRequest,
    PushStatesRequest,
)
from broker.protocol.requests import RequestHeader, RequestType
from broker.protocol.responses import encode_extension_error, encode_extension_response
from broker.server.cluster.controller_requests import ControllerRequests
from broker.server.cluster.controller_thread import ControllerThread
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.state_change_log import StateChangeLog
from broker.topic import TopicPartition
from broker.zk.registry import Registry
from broker.zk.replicated_topics import ReplicatedTopics
from broker.zk.replicated_values import decode_state, encode_assignment
from broker.zk.session import Session
from tests.integration.broker.peers import Server
from tests.support.framing import FrameDecoder
from tests.support.waiting import wait_until
from tests.support.zookeeper import expire_session
from tests.support.zookeeper_proxy import ZooKeeperProxy

pytestmark = pytest.mark.zookeeper


class PushTaker:
    """A broker that is registered and takes pushes.

    Attributes:
        pushes: those it has taken.
        errors: the codes of its next answers; then it takes all.
    """

    def __init__(self, zookeeper: str, broker_id: int) -> None:
        self.id = broker_id
        self.pushes: list[PushStatesRequest] = []
        self.errors: list[int] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.server = Server(self._serve)
        self.registry = Registry(zookeeper, session_timeout_ms=10_000)
        self.registry.start()
        self.register()
        self.controllers: list[int] = []
        topics = ReplicatedTopics(self.registry.session, lambda _topic: {})
        config = BrokerConfig(
            broker_id=broker_id, leader_balance_interval_ms=200, max_leader_imbalance=0
        )
        self.thread = ControllerThread(
            self.registry,
            topics,
            config,
            SystemClock(),
            self.controllers.append,
            StateChangeLog(broker_id, SystemClock()),
            LiveBrokers(config),
        )
        self.requests = ControllerRequests(self.thread, self.registry, topics)

    def register(self) -> None:
        self.registry.register_broker(
            self.id, "127.0.0.1", self.server.port, creator=f"h-{self.id}", is_clean=True
        )

    @property
    def epoch(self) -> int:
        assert self.registry.broker_epoch is not None
        return self.registry.broker_epoch

    @property
    def known(self) -> dict[TopicPartition, ReplicatedPartition]:
        """What it was told last of each partition."""
        return {one.partition: one for push in list(self.pushes) for one in push.partitions}

    def stop(self) -> None:
        self.may_answer.set()
        self.thread.request_stop()
        self.registry.stop()
        self.thread.join()
        self.server.stop()

    def _serve(self, sock: socket.socket) -> None:
        decoder = FrameDecoder()
        while data := sock.recv(1 << 16):
            decoder.receive_data(data)
            while (frame := decoder.next_frame()) is not None:
                reader = Reader(frame)
                request_type = reader.int16()
                header = RequestHeader.decode(reader)
                if request_type != RequestType.PUSH_STATES:  # whether it is there: it is
                    with suppress(OSError):  # nobody waits for it any more
                        sock.sendall(encode_extension_response(header.correlation_id, b"\0\0"))
                    continue
                push = PushStatesRequest.decode(reader)
                assert self.may_answer.wait(60)
                if self.errors:
                    error = self.errors.pop(0)
                    sock.sendall(encode_extension_error(header.correlation_id, error, "refused"))
                else:
                    self.pushes.append(push)
                    body = UNKNOWN_REPLICAS.encode([])
                    sock.sendall(encode_extension_response(header.correlation_id, body))


NO_CHANGES = ListedReassignments(0, ())


@pytest.fixture
def proxy(zookeeper: str) -> Iterator[ZooKeeperProxy]:
    made = ZooKeeperProxy(zookeeper)
    yield made
    made.close()


@pytest.fixture
def start(zookeeper: str) -> Iterator[Callable[[int], PushTaker]]:
    """Start brokers; their controller threads are started by the tests."""
    started: list[PushTaker] = []

    def make(broker_id: int, connect: str = zookeeper) -> PushTaker:
        started.append(PushTaker(connect, broker_id))
        return started[-1]

    yield make
    for one in started:
        one.stop()


Brokers = list[PushTaker]


@pytest.fixture
def brokers(start: Callable[[int], PushTaker]) -> Brokers:
    """Three brokers of which the first is the controller."""
    made = [start(broker_id) for broker_id in range(3)]
    made[0].thread.start()
    wait_until(lambda: made[0].thread.controller, "the election")
    return made


def create(brokers: Brokers, topic: str = "t", count: int = 1, factor: int = 3) -> None:
    request = CreateReplicatedTopicRequest(topic, count, factor, ())
    brokers[0].requests.handle(request).result(60)


def await_count(broker: PushTaker, partition_count: int) -> None:
    """Wait until a broker has been told of so many partitions."""
    wait_until(lambda: len(broker.known) == partition_count, f"a push to broker {broker.id}")


def await_told(broker: PushTaker, condition: Callable[[ReplicatedPartition], bool]) -> None:
    """Wait until a broker has been told of a state of the only partition."""

    def is_told() -> bool:
        (found,) = broker.known.values() or (None,)
        return found is not None and condition(found)

    wait_until(is_told, f"a push to broker {broker.id}")


def led(broker: PushTaker) -> ReplicatedPartition:
    (found,) = broker.known.values()
    return found


def test_topic_when_created_then_all_brokers_are_told_who_leads(brokers: Brokers) -> None:
    request = CreateReplicatedTopicRequest("t", 3, 2, (SettingText("min.insync.replicas", "2"),))

    created = brokers[0].requests.handle(request).result(60)

    assert len(created) == 3
    for broker in brokers:
        await_count(broker, 3)
        assert list(broker.known.values()) == created
        (push,) = broker.pushes
        assert (push.is_full, push.controller_id, push.controller_epoch) == (True, 0, 1)
        assert push.broker_epoch == broker.epoch
        assert {one.id for one in push.brokers} == {0, 1, 2}
    assert {one.min_isr for one in created} == {2}


def test_cluster_when_no_topic_has_replicas_then_no_broker_is_connected_to(
    brokers: Brokers, start: Callable[[int], PushTaker]
) -> None:
    start(3)
    controller = brokers[0].thread.controller
    assert controller is not None
    wait_until(lambda: len(controller.context.brokers) == 4, "the news")

    assert [one.server.connection_count for one in brokers] == [0, 0, 0]

    def pushing() -> list[threading.Thread]:
        return [one for one in threading.enumerate() if one.name.startswith("controller-to")]

    wait_until(lambda: not pushing(), "the end of those of earlier tests")


def test_topic_when_news_of_a_broker_is_late_then_it_is_created_all_the_same(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, start: Callable[[int], PushTaker]
) -> None:
    monkeypatch.setattr(brokers[0].thread, "_read_brokers", lambda: None)
    start(3)

    request = CreateReplicatedTopicRequest("t", 1, 4, ())
    (created,) = brokers[0].requests.handle(request).result(60)

    assert set(created.state.isr) == {0, 1, 2, 3}


def test_topic_when_it_is_created_again_while_brokers_are_told_then_the_first_creation_ends(
    brokers: Brokers,
) -> None:
    request = CreateReplicatedTopicRequest("t", 3, 1, ())
    for broker in brokers:
        broker.may_answer.clear()
    first = brokers[0].requests.handle(request)
    with pytest.raises(TopicExistsError):
        brokers[0].requests.handle(request).result(60)
    for broker in brokers:
        broker.may_answer.set()
    assert len(first.result(60)) == 3


def test_topic_when_it_exists_without_replicas_then_is_refused(brokers: Brokers) -> None:
    brokers[1].registry.register_topic("t", 2)
    brokers[1].registry.await_registered(60)

    with pytest.raises(TopicExistsError, match=r"without replicas on brokers \[1\]"):
        create(brokers)


def test_broker_when_its_session_ends_then_others_lead_and_all_are_told(brokers: Brokers) -> None:
    create(brokers, count=3)
    await_count(brokers[0], 3)
    assert {one.state.leader for one in brokers[0].known.values()} == {0, 1, 2}

    brokers[2].registry.stop()

    def have_heard() -> bool:
        told = [one for broker in brokers[:2] for one in broker.known.values()]
        return all(set(one.state.isr) == {0, 1} for one in told)

    wait_until(have_heard, "the news")
    assert brokers[0].thread.election_count == brokers[0].thread.election_stats.count == 1
    for broker in brokers[:2]:
        epochs = {one.partition.home: one.state.leader_epoch for one in broker.known.values()}
        assert epochs == {0: 0, 1: 0, 2: 1}
        assert {one.state.leader for one in broker.known.values()} == {0, 1}


def test_controller_when_its_session_ends_then_another_broker_goes_on(
    brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "broker.state_change")
    create(brokers)
    brokers[1].thread.start()
    wait_until(lambda: brokers[1].controllers == [0], "the news of who is the controller")

    brokers[0].registry.stop()

    wait_until(lambda: brokers[1].thread.controller, "another controller")
    for broker in brokers[1:]:
        await_told(broker, lambda one: 0 not in one.state.isr)
        assert broker.pushes[-1].controller_epoch == 2
    wait_until(lambda: brokers[1].controllers[-1] == 1, "the news")
    assert "controller epoch 1: t[" in caplog.text
    assert "controller epoch 2: t[" in caplog.text


def test_controller_when_its_session_expires_then_it_is_elected_again_in_a_later_epoch(
    brokers: Brokers,
) -> None:
    create(brokers)
    await_told(brokers[2], lambda one: True)
    first = brokers[0].epoch

    expire_session(brokers[0].registry.session)

    wait_until(lambda: brokers[0].epoch > first, "another registration")
    await_told(
        brokers[2], lambda one: 0 not in one.state.isr and brokers[2].pushes[-1].brokers[0].id == 0
    )
    wait_until(
        lambda: brokers[0].pushes[-1].broker_epoch == brokers[0].epoch, "a push to its new run"
    )
    assert brokers[2].pushes[-1].controller_epoch >= 2


def test_broker_when_it_registers_again_at_once_then_it_is_told_everything_anew(
    brokers: Brokers,
) -> None:
    create(brokers)
    await_told(brokers[2], lambda one: True)

    expire_session(brokers[2].registry.session)

    former = brokers[2].pushes[0].broker_epoch
    wait_until(lambda: brokers[2].pushes[-1].broker_epoch > former, "it")
    assert next(one for one in brokers[2].pushes if one.broker_epoch > former).is_full
    others = tuple(one for one in led(brokers[2]).replicas if one != 2)
    await_told(brokers[2], lambda one: one.state.isr == others)


def test_pushes_when_a_broker_does_not_answer_then_its_oldest_push_ages_until_it_does(
    brokers: Brokers,
) -> None:
    create(brokers)
    await_told(brokers[2], lambda one: True)
    senders = brokers[0].thread.senders
    wait_until(lambda: not any(one.oldest_s for one in senders.times().values()), "all answers")
    brokers[2].may_answer.clear()

    request = CreateReplicatedTopicRequest("u", 1, 3, ())
    created = brokers[0].requests.handle(request)
    wait_until(lambda: senders.times()[2].oldest_s > 0.2, "a push that waits")
    wait_until(lambda: not senders.times()[1].oldest_s, "the answer of another broker")
    brokers[2].may_answer.set()

    wait_until(lambda: not senders.times()[2].oldest_s, "the answer")
    created.result(60)
    assert senders.times()[2].stats.count >= 2
    assert senders.times()[2].stats.total_s > 0.2


def test_events_when_one_takes_long_then_the_oldest_ages_and_the_others_wait(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, events = brokers[0].thread, brokers[0].thread.events
    may_go_on = threading.Event()
    monkeypatch.setattr(thread, "_read_settings", lambda: may_go_on.wait(60))

    thread.settings_changed()
    thread.settings_changed()

    wait_until(lambda: events.waiting_count and events.oldest_s > 0.1, "an event that is slow")
    may_go_on.set()
    wait_until(lambda: not events.waiting_count and not events.oldest_s, "their end")


def test_change_isr_when_leader_asks_then_is_decided_and_told(brokers: Brokers) -> None:
    create(brokers)
    await_told(brokers[0], lambda one: True)
    info = led(brokers[0])
    leader = brokers[info.state.leader]
    members = (IsrMember(leader.id, leader.epoch),)
    change = IsrChange(info.partition, 0, info.version, members, creation_key(info.creation_id))

    request = ChangeIsrRequest(leader.id, leader.epoch, (change,))
    (decision,) = brokers[0].requests.handle(request).result(60)

    assert decision.decided is not None
    assert decision.decided.state.isr == (leader.id,)
    for broker in brokers:
        await_told(broker, lambda one: one == decision.decided)


def test_leader_when_gone_and_nobody_else_is_in_sync_then_an_unclean_election_is_counted(
    brokers: Brokers,
) -> None:
    setting = SettingText("unclean.leader.election.enable", "true")
    created = brokers[0].requests.handle(CreateReplicatedTopicRequest("t", 3, 3, (setting,)))
    (info,) = (one for one in created.result(60) if one.state.leader == 2)
    leader = brokers[2]
    members = (IsrMember(leader.id, leader.epoch),)
    change = IsrChange(info.partition, 0, info.version, members, creation_key(info.creation_id))
    brokers[0].requests.handle(ChangeIsrRequest(2, leader.epoch, (change,))).result(60)
    assert brokers[0].thread.unclean_election_count == 0

    leader.registry.stop()

    wait_until(lambda: brokers[0].thread.unclean_election_count == 1, "the election")


def test_shutdown_when_asked_for_then_leaderships_move_and_old_registrations_are_refused(
    brokers: Brokers,
) -> None:
    create(brokers)
    await_told(brokers[0], lambda one: True)
    leader = brokers[led(brokers[0]).state.leader]
    requests = brokers[0].requests

    with pytest.raises(StaleBrokerEpochError):
        requests.handle(ControlledShutdownRequest(leader.id, leader.epoch - 1)).result(60)
    progress = requests.handle(ControlledShutdownRequest(leader.id, leader.epoch)).result(60)

    assert [one.state.leader != leader.id for one in progress.moved] == [True]
    assert progress.unmoved == ()


def test_request_when_broker_is_not_the_controller_then_error_names_the_one_that_is(
    brokers: Brokers,
) -> None:
    brokers[2].thread.start()
    wait_until(lambda: brokers[2].controllers, "the look")

    request = CreateReplicatedTopicRequest("t", 1, 1, ())
    with pytest.raises(NotControllerError, match="broker 0 is"):
        brokers[2].requests.handle(request).result(60)


def test_request_when_thread_has_stopped_then_shutting_down(brokers: Brokers) -> None:
    brokers[0].thread.request_stop()
    brokers[0].thread.join()

    with pytest.raises(ShuttingDownError):
        create(brokers)


def test_stop_when_in_office_then_another_broker_takes_it_at_once(brokers: Brokers) -> None:
    brokers[1].thread.start()
    wait_until(lambda: brokers[1].controllers == [0], "the look")
    epoch = brokers[0].epoch

    brokers[0].thread.request_stop()
    brokers[0].thread.join()

    wait_until(lambda: brokers[1].thread.controller, "another controller")
    assert brokers[0].registry.status.is_registered
    assert brokers[0].epoch == epoch  # its session, which holds the office, has not ended


def test_push_when_broker_refuses_or_hangs_up_then_is_sent_until_it_takes_it(
    brokers: Brokers,
) -> None:
    brokers[1].errors = [StorageError.code, StorageError.code]

    create(brokers)

    await_told(brokers[1], lambda one: True)
    brokers[1].server.drop_connections()
    create(brokers, "u")
    await_count(brokers[1], 2)


def test_push_when_broker_does_not_know_its_registration_yet_then_is_sent_again(
    brokers: Brokers,
) -> None:
    brokers[1].errors = [StaleBrokerEpochError.code]

    create(brokers)

    await_told(brokers[1], lambda one: True)


def test_push_when_broker_is_slow_then_others_are_told_and_it_gets_the_rest_in_one(
    brokers: Brokers,
) -> None:
    brokers[1].may_answer.clear()
    created = [
        brokers[0].requests.handle(CreateReplicatedTopicRequest(f"t{number}", 3, 3, ()))
        for number in range(4)
    ]
    for other in (brokers[0], brokers[2]):
        await_count(other, 12)
    assert not any(one.done() for one in created)  # broker 1 does not know yet what it leads

    brokers[1].may_answer.set()

    await_count(brokers[1], 12)
    for one in created:
        assert len(one.result(60)) == 3
    assert len(brokers[1].pushes) <= 3
    assert brokers[1].pushes[0].is_full


def test_push_when_it_is_refused_for_a_later_controller_then_thread_looks_again(
    brokers: Brokers,
) -> None:
    brokers[1].errors = [StaleControllerEpochError.code]
    before = len(brokers[0].controllers)

    create(brokers)

    wait_until(lambda: len(brokers[0].controllers) > before, "another look")
    assert brokers[0].controllers[-1] == 0


def test_event_when_answer_of_zookeeper_is_lost_then_decision_stands(
    proxy: ZooKeeperProxy, start: Callable[..., PushTaker], session: Session
) -> None:
    broker = start(0, proxy.connect)
    broker.thread.start()
    wait_until(lambda: broker.thread.controller, "the election")
    proxy.lose_next_answers(2)

    create([broker], factor=1)

    await_told(broker, lambda one: one.state.leader == 0)
    assert proxy.lost_count == 2
    assert session.get("/controller_epoch")[0] == b"1"


def test_thread_when_another_takes_the_office_meanwhile_then_first_writes_nothing(
    brokers: Brokers, session: Session
) -> None:
    create(brokers)
    before = session.get("/replicated/topics/t")[1]
    session.set("/controller_epoch", b"7")  # a controller that this one has not heard of

    with pytest.raises(Exception, match="another broker has become the controller"):
        create(brokers, "u")

    assert session.exists("/replicated/topics/u") is None
    assert session.get("/replicated/topics/t")[1] == before
    wait_until(lambda: brokers[0].thread.controller, "a new term")
    create(brokers, "u")
    wait_until(lambda: brokers[1].pushes[-1].controller_epoch == 7, "pushes of the new term")


def test_topic_when_deleted_by_hand_then_states_are_read_again(
    brokers: Brokers, session: Session
) -> None:
    create(brokers)
    for path in [path for _, path in session.walk("/replicated/topics/t")][::-1]:
        session.delete(path)

    wait_until(
        lambda: (one := brokers[0].thread.controller) is not None and not one.context.topics,
        "another look",
    )
    create(brokers)


@pytest.fixture
def fast_reread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have topics that cannot be read looked at often."""
    monkeypatch.setattr("broker.server.cluster.controller_thread._REREAD_S", 0.1)


def replace_controller(brokers: Brokers) -> PushTaker:
    """End the office of the first broker; return its successor, which reads all nodes."""
    brokers[1].thread.start()
    wait_until(lambda: brokers[1].controllers == [0], "the look")
    brokers[0].thread.request_stop()
    wait_until(lambda: brokers[1].thread.controller, "another controller")
    return brokers[1]


STATE = "/replicated/topics/damaged/partitions/{}/state"


@pytest.mark.parametrize("is_deleted", [False, True])
@pytest.mark.usefixtures("fast_reread")
def test_topic_when_a_state_is_damaged_then_it_is_set_aside_until_it_is_mended(
    brokers: Brokers, session: Session, caplog: pytest.LogCaptureFixture, is_deleted: bool
) -> None:
    create(brokers, "t")
    create(brokers, "damaged")
    await_count(brokers[2], 2)
    (partition,) = [one for one in brokers[2].known if one.topic == "damaged"]
    path = STATE.format(partition.name)
    value, _ = session.get(path)
    if is_deleted:
        session.delete(path)
    else:
        session.set(path, b"{")

    successor = replace_controller(brokers)

    def pushes() -> list[PushStatesRequest]:
        return [one for one in list(brokers[2].pushes) if one.controller_epoch >= 2]

    wait_until(pushes, "a push of the successor")
    assert not any(one.is_full for one in pushes())
    assert {one.partition.topic for push in pushes() for one in push.partitions} == {"t"}
    request = CreateReplicatedTopicRequest("u", 1, 3, ())
    successor.requests.handle(request).result(60)
    time.sleep(0.5)  # several looks
    assert caplog.text.count("topic 'damaged' cannot be read: node " + path) == 1
    assert "pylogctl topic delete damaged --data" in caplog.text
    if is_deleted:
        session.create(path, value)
    else:
        session.set(path, value)

    wait_until(lambda: any(one.is_full for one in pushes()), "a full push", deadline_s=60)
    full = next(one for one in pushes() if one.is_full)
    assert {one.partition.topic for one in full.partitions} == {"t", "damaged", "u"}


@pytest.mark.usefixtures("fast_reread")
def test_topic_when_its_own_node_is_damaged_then_others_go_on_and_it_cannot_be_created(
    brokers: Brokers, session: Session
) -> None:
    create(brokers, "t")
    create(brokers, "damaged")
    value, _ = session.get("/replicated/topics/damaged")
    session.set("/replicated/topics/damaged", b"not JSON")
    successor = replace_controller(brokers)

    request = CreateReplicatedTopicRequest("damaged", 1, 3, ())
    with pytest.raises(TopicExistsError, match="node /replicated/topics/damaged is malformed"):
        successor.requests.handle(request).result(60)
    with pytest.raises(InvalidRequestError, match="stays as it is"):
        successor.requests.handle(DeleteReplicatedTopicRequest("damaged")).result(60)
    assert session.get("/replicated/topics/damaged")[0] == b"not JSON"

    session.set("/replicated/topics/damaged", value)

    def is_taken_in() -> bool:
        controller = successor.thread.controller
        return controller is not None and set(controller.context.topics) == {"t", "damaged"}

    wait_until(is_taken_in, "another look", deadline_s=60)


def test_topic_when_its_states_were_never_written_then_the_next_controller_writes_them(
    brokers: Brokers, session: Session
) -> None:
    create(brokers, "t")
    value = encode_assignment(TopicAssignment("new", "id", {TopicPartition("new", 1, 0): (1, 2)}))
    session.create("/replicated/topics/new", value)
    session.create("/replicated/topics/new/partitions")

    replace_controller(brokers)

    await_count(brokers[2], 2)
    (told,) = [one for one in brokers[2].known.values() if one.partition.topic == "new"]
    assert (told.state.leader, told.state.isr) == (1, (1, 2))


@pytest.mark.parametrize("value", [None, b"1"])
def test_epoch_when_its_node_was_deleted_or_lowered_then_the_next_is_above_all_there_were(
    brokers: Brokers, session: Session, value: bytes | None
) -> None:
    session.set("/controller_epoch", b"7")
    wait_until(lambda: create_or_fail(brokers, "t"), "a topic in epoch 7", deadline_s=60)
    wait_until(lambda: brokers[2].pushes, "a push")
    if value is None:
        session.delete("/controller_epoch")
    else:
        session.set("/controller_epoch", value)

    wait_until(lambda: create_or_fail(brokers, "u"), "a topic in the next epoch", deadline_s=60)

    wait_until(lambda: brokers[2].pushes[-1].controller_epoch == 8, "a push", deadline_s=60)
    assert session.get("/controller_epoch")[0] == b"8"


def create_or_fail(brokers: Brokers, topic: str) -> bool:
    """Create a topic; return whether that succeeded, also before."""
    request = CreateReplicatedTopicRequest(topic, 1, 3, ())
    error = brokers[0].requests.handle(request).exception(60)
    return error is None or isinstance(error, TopicExistsError)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_state_when_damaged_in_a_term_then_the_next_decision_mends_it(
    brokers: Brokers, session: Session, is_deleted: bool
) -> None:
    create(brokers, "damaged")
    await_told(brokers[0], lambda one: True)
    info = led(brokers[0])
    path = STATE.format(info.partition.name)
    if is_deleted:
        session.delete(path)
    else:
        session.set(path, b"{")
    leader = brokers[info.state.leader]
    members = (IsrMember(leader.id, leader.epoch),)
    change = IsrChange(info.partition, 0, info.version, members, creation_key(info.creation_id))

    request = ChangeIsrRequest(leader.id, leader.epoch, (change,))
    (decision,) = brokers[0].requests.handle(request).result(60)

    assert decision.error == 0
    assert decision.decided is not None
    assert (decision.decided.state.isr == (leader.id,)) == (not is_deleted)  # else it asks again
    value, stat = session.get(path)
    assert decode_state(info.partition, value) == decision.decided.state
    assert stat.version == decision.decided.version


def test_settings_when_changed_then_brokers_are_told(brokers: Brokers, session: Session) -> None:
    create(brokers)
    await_told(brokers[1], lambda one: one.min_isr == 1)
    session.create("/config/topics/t", b'{"version":1,"config":{"min.insync.replicas":"2"}}')

    brokers[0].thread.settings_changed()

    await_told(brokers[1], lambda one: one.min_isr == 2)


def test_topic_when_partitions_are_added_then_brokers_are_told(brokers: Brokers) -> None:
    create(brokers)

    added = brokers[0].requests.handle(AddPartitionsRequest("t", 2)).result(60)

    assert len(added) == 2
    await_count(brokers[1], 3)


def test_topic_when_deleted_then_is_gone_once_all_brokers_have_deleted_it(
    brokers: Brokers, session: Session
) -> None:
    create(brokers)
    await_told(brokers[2], lambda one: True)
    brokers[2].may_answer.clear()

    brokers[0].requests.handle(DeleteReplicatedTopicRequest("t")).result(60)

    wait_until(lambda: any(push.stopped for push in brokers[0].pushes), "the order")
    assert session.exists("/replicated/topics/t")
    with pytest.raises(TopicExistsError, match="is being deleted"):
        create(brokers)
    brokers[2].may_answer.set()
    wait_until(lambda: session.exists("/replicated/topics/t") is None, "the end of the nodes")
    create(brokers)


def test_leaders_when_elected_by_request_then_outcomes_are_by_partition(brokers: Brokers) -> None:
    create(brokers)
    await_told(brokers[0], lambda one: True)
    info = led(brokers[0])
    leader = brokers[info.state.leader]
    shutdown = ControlledShutdownRequest(leader.id, leader.epoch)
    brokers[0].requests.handle(shutdown).result(60)
    unknown = TopicPartition("x", 0, 0)

    for kind in ElectionKind:
        request = ElectLeadersRequest(kind, (info.partition, unknown))
        first, second = brokers[0].requests.handle(request).result(60)

        assert (first.partition, first.error) == (info.partition, InvalidRequestError.code)
        assert (second.partition, second.error) == (unknown, UnknownTopicError.code)


def test_replicas_when_reassigned_then_change_is_listed_and_can_be_cancelled(
    brokers: Brokers, start: Callable[[int], PushTaker]
) -> None:
    create(brokers, factor=1)
    await_told(brokers[0], lambda one: True)
    info = led(brokers[0])
    requests = brokers[0].requests
    target = next(one.id for one in brokers if one.id not in info.replicas)

    moved = requests.handle(
        ReassignRequest((ReplicaTarget(info.partition, (target,)),), throttle_bytes_per_s=9000)
    )

    assert [one.error for one in moved.result(60)] == [0]
    listed = requests.handle(ListReassignmentsRequest()).result(60)
    change = Reassignment(info.replicas, (target,))
    assert listed == ListedReassignments(9000, (PartitionReassignment(info.partition, change),))
    await_told(brokers[0], lambda one: one.replicas == (*info.replicas, target))
    assert led(brokers[0]).adding == (target,)
    wait_until(lambda: brokers[target].pushes[-1].throttle_bytes_per_s == 9000, "the throttle")
    requests.handle(ReassignRequest((), throttle_bytes_per_s=0)).result(60)
    wait_until(lambda: brokers[target].pushes[-1].throttle_bytes_per_s == 0, "the new throttle")
    cancel = requests.handle(ReassignRequest((ReplicaTarget(info.partition, ()),)))
    assert [one.error for one in cancel.result(60)] == [0]
    await_told(brokers[0], lambda one: one.replicas == info.replicas)
    assert requests.handle(ListReassignmentsRequest()).result(60) == NO_CHANGES


def test_replicas_when_a_target_is_not_live_then_nothing_is_begun(brokers: Brokers) -> None:
    create(brokers, factor=1)
    await_told(brokers[0], lambda one: True)
    partition = led(brokers[0]).partition
    request = ReassignRequest((ReplicaTarget(partition, (9,)),))

    with pytest.raises(InvalidRequestError, match="broker 9, which is not live"):
        brokers[0].requests.handle(request).result(60)

    assert brokers[0].requests.handle(ListReassignmentsRequest()).result(60) == ListedReassignments(
        0, ()
    )


def test_leadership_when_preferred_replica_is_in_sync_again_then_goes_back_by_itself(
    brokers: Brokers,
) -> None:
    create(brokers)
    await_told(brokers[0], lambda one: True)
    preferred = brokers[led(brokers[0]).replicas[0]]
    expire_session(preferred.registry.session)
    await_told(brokers[1], lambda one: one.state.leader != preferred.id)

    def rejoin() -> bool:
        controller = next((b.thread.controller for b in brokers if b.thread.controller), None)
        if controller is None or not controller.context.states:
            return False
        info = controller.context.described(next(iter(controller.context.states)))
        if info.state.leader < 0:
            return False
        leader = brokers[info.state.leader]
        isr = tuple(IsrMember(one, brokers[one].epoch) for one in info.replicas)
        epoch, creation = info.state.leader_epoch, creation_key(info.creation_id)
        change = IsrChange(info.partition, epoch, info.version, isr, creation)
        request = ChangeIsrRequest(leader.id, leader.epoch, (change,))
        brokers[0].requests.handle(request).exception(60)
        return led(brokers[1]).state.leader == preferred.id

    wait_until(rejoin, "the leadership")
