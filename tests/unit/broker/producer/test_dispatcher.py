"""What becomes of message sets while leaders change, connections break and brokers refuse."""

from __future__ import annotations

import itertools
import math
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker import deadlines
from broker.client.cluster import Cluster
from broker.client.connection import Connection
from broker.errors import (
    NO_ERROR,
    AcknowledgedLossError,
    BrokerError,
    BrokerStoppedError,
    BrokerUnreachableError,
    InvalidMessageError,
    LeaderNotAvailableError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderError,
    OutOfOrderSequenceError,
    ProtocolError,
    RequestTimedOutError,
    RequestTimeoutError,
    StorageError,
)
from broker.leader_epochs import FIRST_INCARNATION, term_of
from broker.log.producers import Producers, snapshot_path
from broker.log.side_files import read_snapshot
from broker.producer.delivery import Delivery
from broker.producer.dispatcher import Dispatcher, Moved, Question, Waiting
from broker.producer.settings import ProducerSettings
from broker.protocol.client_requests import (
    Acks,
    ListOffsetsRequest,
    OffsetKind,
    PublishRequest,
)
from broker.protocol.codec import Record, decode, decode_records, encode, scan_batches
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import INT32, Buffer, Reader
from broker.protocol.requests import RequestHeader
from broker.protocol.responses import (
    LISTED_OFFSETS,
    BrokerAddress,
    HelloResponse,
    ListedOffset,
    Published,
    encode_publish_response,
)
from broker.topic import NO_HOME, TopicPartition
from tests.support.fake_broker import parts_with

PARTITIONS = [TopicPartition("t", home, 0) for home in range(2)]


class Act(Enum):
    """What becomes of a request to publish."""

    TAKE = auto()
    LOSE = auto()  # the connection breaks before anything is written
    LOSE_ANSWER = auto()  # it breaks after that
    MUTE = auto()  # it is written, as are those behind it, and no response comes any more
    STOP = auto()  # the broker stops in good order, and is there again
    NO_LEADER = auto()
    FEW_IN_SYNC = auto()
    FEW_AFTER = auto()
    DISK = auto()
    LATE = auto()
    MOVE_LEADER = auto()  # to the other broker, before it is handled
    MOVE_LEADER_IN_SILENCE = auto()  # nobody knows yet where to
    REFUSE_CONTENT = auto()
    NONSENSE = auto()  # what comes is no response


_ERRORS: dict[Act, type[BrokerError]] = {
    Act.NO_LEADER: LeaderNotAvailableError,
    Act.FEW_IN_SYNC: NotEnoughReplicasError,
    Act.FEW_AFTER: NotEnoughReplicasAfterAppendError,
    Act.DISK: StorageError,
    Act.LATE: RequestTimedOutError,
    Act.REFUSE_CONTENT: InvalidMessageError,
}
_IS_WRITTEN = (Act.FEW_AFTER, Act.LATE)
_BREAKS_ORDER = (LeaderNotAvailableError, NotEnoughReplicasError, StorageError, NotLeaderError)


class World(Cluster):
    """Brokers 0 and 1, which have the same two partitions; broker 1 leads none at first.

    Args:
        acts: what becomes of publishes, in turn; later ones are taken.
        has_replicas: whether both brokers have both partitions, else each its own.
    """

    all: ClassVar[Sequence[TopicPartition]] = PARTITIONS

    def __init__(self, acts: Iterable[Act] = (), *, has_replicas: bool = True) -> None:
        self.acts = deque(acts)
        self.replicated = has_replicas
        self.leaders = {one: 0 if has_replicas else one.home for one in self.all}
        self.epochs = dict.fromkeys(self.all, 0)
        self.known = dict(self.leaders)
        self.away: set[int] = set()
        self.is_silent = False
        self.logs: dict[TopicPartition, list[bytes]] = defaultdict(list)
        self.term_ends: dict[tuple[TopicPartition, int], int] = {}
        self.asked_count = 0
        self.waits_s: list[float] = []  # for responses

    def brokers(self) -> list[BrokerAddress]:
        return [BrokerAddress(one, "fake", 1) for one in (0, 1) if one not in self.away]

    def topics(self) -> list[str]:
        return ["t"]

    def partitions(self, topic: str) -> list[TopicPartition]:
        return list(self.all)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        return self.address(self.leader_id(partition))

    def leader_id(self, partition: TopicPartition) -> int:
        return self.known[partition]

    def address(self, broker_id: int) -> BrokerAddress:
        return BrokerAddress(broker_id, "fake", 1)

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        self.asked_count += 1
        self.known = dict(self.leaders)
        return self.known

    def has_replicas(self, partition: TopicPartition) -> bool:
        return self.replicated

    def note_leader(self, partition: TopicPartition, broker_id: int) -> None:
        self.known[partition] = partition.home if broker_id < 0 else broker_id

    def connect(self, address: BrokerAddress) -> Connection:
        if address.id in self.away:
            raise BrokerUnreachableError(f"broker {address.id} refuses")
        return FakeConnection(self, address)  # type: ignore[return-value]  # all that is used

    def come_back(self) -> bool:
        self.away.clear()
        return True

    def crash(self, partition: TopicPartition, *, kept_bytes: int | None = None) -> None:
        """Have the broker of a partition without replicas start again after a crash.

        It knows where its term before the crash ended, and nothing of earlier ones.
        """
        end = self.end(partition) if kept_bytes is None else kept_bytes
        self.term_ends = {(partition, self.term(partition)): end}
        self.epochs[partition] += 1

    def term(self, partition: TopicPartition) -> int:
        epoch = self.epochs[partition]
        return term_of(7, epoch if self.replicated else FIRST_INCARNATION + epoch)

    def end(self, partition: TopicPartition) -> int:
        return sum(map(len, self.logs[partition]))

    def append(self, partition: TopicPartition, message_set: bytes) -> int:
        offset = self.end(partition)
        self.logs[partition].append(message_set)
        return offset

    def payloads(self, partition: TopicPartition) -> list[int]:
        found = decode(b"".join(self.logs[partition]), 0).messages
        return [int(payload) for _, _, payload in found]


class RecordWorld(World):
    """Brokers whose topic is of format `kafka`, and which find batches that come again."""

    all: ClassVar = [TopicPartition("t", NO_HOME, index) for index in range(2)]

    def __init__(self, acts: Iterable[Act] = ()) -> None:
        super().__init__(acts)
        self.producers = {one: Producers(one) for one in self.all}
        self.records: dict[TopicPartition, list[Record]] = defaultdict(list)

    def append(self, partition: TopicPartition, message_set: bytes) -> int:
        if not message_set:
            return self.end(partition)
        (batch,) = scan_batches(message_set).batches
        known = self.producers[partition].check([batch])
        if known is not None:
            return known.base_offset
        records = self.records[partition]
        self.producers[partition].note(batch, len(records), 0)
        found = decode_records(message_set).records
        records += [one._replace(offset=len(records) + one.offset) for one in found]
        return len(records) - len(found)

    def end(self, partition: TopicPartition) -> int:
        return len(self.records[partition])

    def payloads(self, partition: TopicPartition) -> list[int]:
        return [int(one.value or b"-1") for one in self.records[partition]]


class RestartingWorld(RecordWorld):
    """Brokers that are started again before each connection, with the last snapshot and the log.

    Args:
        acts: what becomes of publishes, in turn; later ones are taken.
        directory: for snapshots.
        rolls: the offsets at which a log begins a segment, and writes a snapshot.
    """

    def __init__(self, acts: Iterable[Act], directory: Path, rolls: Iterable[int]) -> None:
        super().__init__(acts)
        self.directory = directory
        self.rolls = set(rolls)
        self.batches: list[bytes] = []  # of the first partition, by offset
        self.kept_count: int | None = None  # of batches at the next start

    def append(self, partition: TopicPartition, message_set: bytes) -> int:
        offset = super().append(partition, message_set)
        if len(self.records[partition]) > len(self.batches):
            self.batches.append(message_set)
            if offset + 1 in self.rolls:
                path = snapshot_path(self.directory, offset + 1)
                self.producers[partition].write_snapshot(path)
        return offset

    def connect(self, address: BrokerAddress) -> Connection:
        partition = self.all[0]
        if self.kept_count is not None:
            for log in (self.batches, self.records[partition]):
                del log[self.kept_count :]
            self.kept_count = None
        producers = self.producers[partition] = Producers(partition)
        start = max((one for one in self.rolls if one <= len(self.batches)), default=0)
        if start:
            producers.load(read_snapshot(snapshot_path(self.directory, start)), 0)
        for offset, data in enumerate(self.batches[start:], start):
            producers.note(scan_batches(data).batches[0], offset, 0)
        return super().connect(address)


class FakeConnection:
    """A connection to a broker of a world, which handles requests as they are sent."""

    def __init__(self, world: World, address: BrokerAddress) -> None:
        self.address = address
        self.name = f"broker {address.id}"
        self.is_open = True
        self.client_id = "fake"
        self.retries_refused = False
        self._world = world
        self._responses: deque[bytes | BrokerError] = deque()
        self._refused: dict[TopicPartition, tuple[int, int]] = {}
        self._is_broken = self._is_mute = False

    def hello(self) -> HelloResponse:
        return HelloResponse(self.address.id, "", "", 1, 1, {68: (0, 1)})

    def next_correlation_id(self) -> int:
        return 1

    def send(self, *parts: Buffer) -> None:
        reader = Reader(b"".join(parts)[INT32.size :])
        reader.int16()
        RequestHeader.decode(reader)
        self._publish(PublishRequest.decode(reader))

    def send_extension(self, request: ExtensionRequest) -> int:
        if isinstance(request, PublishRequest):
            self._publish(request)
        return 1

    def call(self, request: ExtensionRequest) -> Reader:
        assert isinstance(request, ListOffsetsRequest)
        ((partition, kind, term),) = request.queries
        assert kind is OffsetKind.TERM_END
        end = self._world.term_ends.get((partition, term), -1)
        if term == self._world.term(partition):
            end = self._world.end(partition)
        return Reader(LISTED_OFFSETS.encode([ListedOffset(partition, 0, end, 0, end)]))

    def repeat_if_lost(self, exchange):  # type: ignore[no-untyped-def]  # as a connection has it
        return exchange()

    def _publish(self, request: PublishRequest) -> None:
        world = self._world
        if self._is_broken or self.address.id in world.away:
            self.is_open = False
            raise BrokerUnreachableError("broken")
        act = world.acts.popleft() if world.acts else Act.TAKE
        if act is Act.LOSE:
            self._is_broken = True
            self._responses.append(BrokerUnreachableError("lost"))
            return
        if act is Act.NONSENSE:
            self._responses.append(ProtocolError("no response"))
            return
        if act is Act.STOP:
            self._is_broken = True
            self._responses.append(BrokerStoppedError("stopped"))
            return
        results = [self._publish_one(act, request.acks, *one[:2]) for one in request.sets]
        if act is Act.LOSE_ANSWER:
            self._is_broken = True
            self._responses.append(BrokerUnreachableError("lost"))
            return
        self._is_mute |= act is Act.MUTE
        if request.acks is not Acks.NONE and not self._is_mute:
            self._responses.append(encode_publish_response(results))

    def _publish_one(
        self, act: Act, acks: Acks, partition: TopicPartition, message_set: Buffer
    ) -> Published:
        world = self._world
        if act in (Act.MOVE_LEADER, Act.MOVE_LEADER_IN_SILENCE) and world.replicated:
            world.term_ends[partition, world.term(partition)] = world.end(partition)
            world.leaders[partition] = 1 - world.leaders[partition]
            world.epochs[partition] += 1
        leader = world.leaders[partition]
        if partition in self._refused:
            code, hint = self._refused[partition]
            return Published(partition, code, hint, "an earlier set was refused")
        if leader != self.address.id:
            hint = -1 if act is Act.MOVE_LEADER_IN_SILENCE else leader
            self._refused[partition] = NotLeaderError.code, hint
            return Published(partition, NotLeaderError.code, hint, "not the leader")
        error = _ERRORS.get(act)
        offset = -1
        if error is None or act in _IS_WRITTEN:
            try:
                offset = world.append(partition, bytes(message_set))
            except OutOfOrderSequenceError as out_of_order:
                return Published(partition, out_of_order.code, -1, str(out_of_order))
        if error is not None:
            code = error.code  # type: ignore[attr-defined]  # all are server errors
            if error in _BREAKS_ORDER:
                self._refused[partition] = code, -1
            return Published(partition, code, -1, act.name)
        return Published(partition, NO_ERROR, offset, "", world.term(partition))

    def has_received(self, within_s: float = 0.0) -> bool:
        self._world.waits_s.append(within_s)
        if self._world.is_silent:
            return False
        return bool(self._responses) or within_s > 0  # `receive` says what is wrong

    def receive(self) -> bytes:
        if not self._responses:
            self.is_open = False
            raise BrokerUnreachableError("nothing comes")
        response = self._responses.popleft()
        if isinstance(response, BrokerError):
            self.is_open = False
            raise response
        return response

    def open_extension(self, frame: bytes, correlation_id: int) -> Reader:
        return Reader(frame)

    def interrupt(self) -> None:
        self._is_broken = True

    def close(self) -> None:
        self.is_open = False
        self._responses.clear()


def make_dispatcher(world: World, **rules: object) -> Dispatcher:
    defaults: dict[str, object] = {"backoff_s": 0.0, "max_in_flight": 4}
    settings = ProducerSettings(**(defaults | rules))  # type: ignore[arg-type]  # by name
    partitions = SimpleNamespace(
        replacement=lambda topic, broker_id: next(
            (one for one in PARTITIONS if world.leaders[one] not in (broker_id, *world.away)), None
        ),
        note_presence=lambda broker_id, is_there: None,
    )
    return Dispatcher(parts_with(world, world.connect, settings, partitions))


class Ends:
    """Makes deliveries of numbered messages, and records their ends."""

    def __init__(self) -> None:
        self.numbers: dict[int, list[int]] = defaultdict(list)
        self.order: dict[TopicPartition, list[int]] = defaultdict(list)
        self.errors: dict[int, BrokerError] = {}
        self._next = itertools.count()

    def delivery(self, partition: TopicPartition, *, can_move: bool = False) -> Delivery:
        number = next(self._next)

        def end(delivery: Delivery) -> None:
            self.order[delivery.partition].append(number)
            if delivery.error is not None:
                self.errors[number] = delivery.error

        return Delivery(partition, encode([b"%d" % number]), None, end, can_move=can_move)

    def records(self, dispatcher: Dispatcher, partition: TopicPartition) -> Delivery:
        """Return a delivery with the next number as a record."""
        delivery = self.delivery(partition)
        (payload,) = (one for _, _, one in decode(delivery.message_set, 0).messages)
        packer = dispatcher.parts.packer
        delivery.message_set = packer.pack_records("t", [Record(0, 1, b"k", payload)])
        delivery.message_count, delivery.is_numbered = 1, False
        return delivery


PASSING = [one for one in Act if one not in (Act.REFUSE_CONTENT, Act.NONSENSE, Act.MUTE)]


@example(acts=[Act.TAKE, Act.FEW_AFTER, Act.FEW_AFTER], sends=[0] * 4, together=False)
@settings(max_examples=300)
@given(
    acts=st.lists(st.sampled_from(PASSING), max_size=40),
    sends=st.lists(st.sampled_from([0, 0, 0, 1, 2, 3]), min_size=1, max_size=40),
    together=st.booleans(),
)
def test_sets_when_anything_happens_then_none_is_lost_and_first_copies_are_in_order(
    acts: list[Act], sends: list[int], together: bool
) -> None:
    world, ends = World(acts), Ends()
    dispatcher = make_dispatcher(world)
    for what in sends:
        if what == 2:
            dispatcher.poll()
        elif what == 3:
            dispatcher.step()
        elif together and what == 0:
            dispatcher.offer([ends.delivery(one) for one in PARTITIONS])
            dispatcher.drain()
        else:
            dispatcher.send(ends.delivery(PARTITIONS[what]))
    dispatcher.flush()
    assert dispatcher.is_idle
    assert dispatcher.take_failure() is None
    assert ends.errors == {}
    for partition in PARTITIONS:
        order = ends.order[partition]
        assert order == sorted(set(order))  # each is told once, and in order
        stored = world.payloads(partition)
        assert list(dict.fromkeys(stored)) == order  # all, and the first copies in order


@settings(max_examples=300)
@given(
    acts=st.lists(st.sampled_from(PASSING), max_size=40),
    sends=st.lists(st.sampled_from([0, 0, 0, 1, 2, 3]), min_size=1, max_size=40),
)
def test_record_batches_when_anything_happens_then_each_is_stored_once_and_in_order(
    acts: list[Act], sends: list[int]
) -> None:
    world, ends = RecordWorld(acts), Ends()
    dispatcher = make_dispatcher(world, max_in_flight=64)
    for what in sends:
        if what == 2:
            dispatcher.poll()
        elif what == 3:
            dispatcher.step()
        else:
            dispatcher.send(ends.records(dispatcher, world.all[what]))
    dispatcher.flush()
    assert dispatcher.take_failure() is None
    assert ends.errors == {}
    for partition in world.all:
        assert world.payloads(partition) == ends.order[partition]
        assert ends.order[partition] == sorted(ends.order[partition])


@settings(max_examples=200)
@given(
    acts=st.lists(st.sampled_from([Act.TAKE, Act.TAKE, Act.REFUSE_CONTENT, *PASSING]), max_size=30),
    count=st.integers(1, 30),
)
def test_record_batches_when_some_are_refused_then_the_others_are_stored_once_and_in_order(
    acts: list[Act], count: int
) -> None:
    world, ends = RecordWorld(acts), Ends()
    dispatcher = make_dispatcher(world, max_in_flight=64)
    for _ in range(count):
        dispatcher.send(ends.records(dispatcher, world.all[0]))
    dispatcher.flush()
    stored = world.payloads(world.all[0])
    assert stored == sorted(set(stored))
    assert set(stored) >= set(range(count)) - ends.errors.keys()


def test_record_batches_when_many_are_sent_then_a_broker_has_no_more_than_it_can_find_again() -> (
    None
):
    world, ends = RecordWorld([*[Act.TAKE] * 7, Act.LOSE_ANSWER]), Ends()
    dispatcher = make_dispatcher(world, max_in_flight=64)
    for _ in range(20):
        dispatcher.send(ends.records(dispatcher, world.all[0]))
    dispatcher.flush()
    assert world.payloads(world.all[0]) == list(range(20))


def test_record_batches_when_their_producer_is_not_known_any_more_then_they_begin_a_sequence() -> (
    None
):
    world, ends = RecordWorld(), Ends()
    dispatcher = make_dispatcher(world)
    (partition, _) = world.all
    for _ in range(2):
        dispatcher.send(ends.records(dispatcher, partition))
    dispatcher.flush()
    del world.records[partition][1:]  # the leader lost the second one
    world.producers[partition].cut(1)
    dispatcher.send(ends.records(dispatcher, partition))
    dispatcher.flush()
    assert ends.errors == {}
    assert world.payloads(partition) == [0, 2]
    assert len({one.producer_id for one in world.producers[partition].states()}) == 2


def test_record_batches_when_one_is_given_up_then_the_next_has_another_producer_id() -> None:
    world, ends = RecordWorld([Act.LOSE_ANSWER]), Ends()
    dispatcher = make_dispatcher(world, retries=0)
    (partition, _) = world.all
    dispatcher.send(ends.records(dispatcher, partition))
    dispatcher.flush()
    assert dispatcher.take_failure() is not None
    dispatcher.send(ends.records(dispatcher, partition))
    dispatcher.flush()
    assert list(ends.errors) == [0]
    assert len({one.producer_id for one in world.producers[partition].states()}) == 2


@example(acts=[Act.MUTE], rolls={3}, count=5)
@settings(max_examples=150)
@given(
    acts=st.lists(
        st.sampled_from([Act.TAKE, Act.MUTE, Act.LOSE, Act.LOSE_ANSWER, Act.FEW_IN_SYNC, Act.LATE]),
        max_size=20,
    ),
    rolls=st.sets(st.integers(1, 20)),
    count=st.integers(1, 20),
)
def test_record_batches_when_a_broker_restarts_with_a_snapshot_then_each_is_stored_once(
    acts: list[Act], rolls: set[int], count: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world, ends = RestartingWorld(acts, tmp_path_factory.mktemp("t-0"), rolls), Ends()
    dispatcher = make_dispatcher(world, max_in_flight=64)
    for _ in range(count):
        dispatcher.send(ends.records(dispatcher, world.all[0]))
    dispatcher.flush()
    assert world.payloads(world.all[0]) == list(range(count))
    for error in ends.errors.values():
        assert isinstance(error, OutOfOrderSequenceError)
        assert "an earlier attempt may have stored these messages" in str(error)


def test_record_batches_when_their_broker_knows_the_last_before_a_snapshot_then_others_fail(
    tmp_path: Path,
) -> None:
    world, ends = RestartingWorld([Act.MUTE], tmp_path, [3]), Ends()
    dispatcher = make_dispatcher(world, max_in_flight=64)
    for _ in range(7):
        dispatcher.send(ends.records(dispatcher, world.all[0]))
    dispatcher.flush()
    assert world.payloads(world.all[0]) == list(range(7))
    assert list(ends.errors) == [0, 1]
    assert ends.order[world.all[0]] == list(range(7))


def test_record_batches_when_those_before_may_be_stored_then_only_unsent_ones_are_renumbered(
    tmp_path: Path,
) -> None:
    world, ends = RestartingWorld([Act.TAKE, Act.TAKE, Act.MUTE], tmp_path, []), Ends()
    dispatcher = make_dispatcher(world, max_in_flight=64)
    (partition, _) = world.all
    for _ in range(2):
        dispatcher.send(ends.records(dispatcher, partition))
    dispatcher.flush()
    world.kept_count = 1
    for _ in range(8):
        dispatcher.send(ends.records(dispatcher, partition))
    dispatcher.flush()
    assert list(ends.errors) == [2, 3, 4, 5, 6]
    assert world.payloads(partition) == [0, 7, 8, 9]
    assert len({one.producer_id for one in world.producers[partition].states()}) == 2


def test_record_batches_when_one_is_renumbered_then_one_behind_that_may_be_stored_is_not() -> None:
    world, ends = RecordWorld([Act.TAKE, Act.TAKE, Act.TAKE, Act.MUTE]), Ends()
    dispatcher = make_dispatcher(world)
    (partition, _) = world.all
    for _ in range(2):
        dispatcher.send(ends.records(dispatcher, partition))
    dispatcher.flush()
    del world.records[partition][1:]  # the leader lost the second one
    world.producers[partition].cut(1)
    world.is_silent = True
    for _ in range(2):
        dispatcher.send(ends.records(dispatcher, partition))
    world.is_silent = False
    dispatcher.flush()
    assert list(ends.errors) == [3]
    assert world.payloads(partition) == [0, 2]


def test_set_without_messages_when_one_before_it_is_renumbered_then_is_sent_as_it_is() -> None:
    world, ends = RecordWorld([Act.TAKE, Act.TAKE, Act.TAKE, Act.NO_LEADER]), Ends()
    dispatcher = make_dispatcher(world)
    (partition, _) = world.all
    for _ in range(2):
        dispatcher.send(ends.records(dispatcher, partition))
    dispatcher.flush()
    del world.records[partition][1:]  # the leader lost the second one
    world.producers[partition].cut(1)
    world.is_silent = True
    dispatcher.send(ends.records(dispatcher, partition))
    empty = Delivery(partition)
    dispatcher.send(empty)
    world.is_silent = False
    dispatcher.flush()
    assert empty.result() == 2
    assert dispatcher.is_idle
    assert world.payloads(partition) == [0, 2]


class Events:
    """Drives a dispatcher as an event loop does: never waits, and asks the cluster apart."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._questions: deque[Question] = deque()

    def turn(self, *, answers: bool) -> None:
        dispatcher = self._dispatcher
        dispatcher.receive_ready()
        asking = {route for question in self._questions for route in question.routes}
        ready, question = dispatcher.due()
        dispatcher.resend([one for one in ready if one not in asking])
        if question is not None:
            self._questions.append(question)
        while answers and self._questions:
            first = self._questions.popleft()
            dispatcher.resend(first.routes, dispatcher.ask(first))


@settings(max_examples=300)
@given(
    acts=st.lists(st.sampled_from(PASSING), max_size=40),
    steps=st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 4]), min_size=1, max_size=40),
    max_in_flight=st.integers(1, 3),
)
def test_sets_when_nothing_waits_for_brokers_then_none_is_lost_and_first_copies_are_in_order(
    acts: list[Act], steps: list[int], max_in_flight: int
) -> None:
    world, ends = World(acts), Ends()
    dispatcher = make_dispatcher(world, max_in_flight=max_in_flight)
    events = Events(dispatcher)
    for what in steps:
        if what == 2:
            dispatcher.offer([ends.delivery(one) for one in PARTITIONS])
        elif what > 2:
            events.turn(answers=what == 4)
        else:
            dispatcher.offer([ends.delivery(PARTITIONS[what])])
    for _ in range(500):
        if dispatcher.is_idle:
            break
        events.turn(answers=True)
    assert dispatcher.is_idle
    assert ends.errors == {}
    for partition in PARTITIONS:
        order = ends.order[partition]
        assert order == sorted(set(order))
        assert list(dict.fromkeys(world.payloads(partition))) == order


def test_sets_when_a_route_waits_for_room_then_its_leader_is_asked_for_once_an_attempt() -> None:
    world, ends = World([Act.NO_LEADER]), Ends()
    dispatcher = make_dispatcher(world, max_in_flight=1)
    dispatcher.offer([ends.delivery(PARTITIONS[0])])
    dispatcher.receive_ready()
    dispatcher.offer([ends.delivery(PARTITIONS[1])])  # takes the room
    events = Events(dispatcher)
    world.is_silent = True
    for _ in range(5):
        events.turn(answers=True)
    assert world.asked_count == 1
    world.is_silent = False
    for _ in range(5):
        events.turn(answers=True)
    assert dispatcher.is_idle
    assert ends.errors == {}


def test_step_when_a_route_waits_for_room_then_it_waits_for_a_response_and_does_not_spin() -> None:
    world, ends = World([Act.NO_LEADER]), Ends()
    dispatcher = make_dispatcher(world, max_in_flight=1)
    dispatcher.offer([ends.delivery(PARTITIONS[0])])
    dispatcher.receive_ready()
    dispatcher.offer([ends.delivery(PARTITIONS[1])])  # takes the room
    world.waits_s.clear()
    dispatcher.step()
    assert world.waits_s[0] > 0
    dispatcher.flush()
    assert ends.errors == {}


@given(
    acts=st.lists(
        st.sampled_from([Act.TAKE, Act.LOSE, Act.DISK, Act.NO_LEADER, Act.FEW_IN_SYNC]),
        max_size=30,
    ),
    count=st.integers(1, 20),
)
def test_sets_when_one_is_given_up_then_none_behind_it_is_stored(
    acts: list[Act], count: int
) -> None:
    world, ends = World(acts), Ends()
    dispatcher = make_dispatcher(world, retries=1)
    for _ in range(count):
        dispatcher.send(ends.delivery(PARTITIONS[0]))
        if dispatcher.take_failure() is not None:
            break
    else:
        dispatcher.flush()
    stored = world.payloads(PARTITIONS[0])
    lost = min(ends.errors, default=math.inf)
    assert all(number < lost for number in stored)


def test_set_when_its_content_is_refused_then_those_behind_it_are_stored() -> None:
    world, ends = World([Act.TAKE, Act.REFUSE_CONTENT]), Ends()
    dispatcher = make_dispatcher(world)
    for _ in range(3):
        dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    assert world.payloads(PARTITIONS[0]) == [0, 2]
    assert list(ends.errors) == [1]
    assert dispatcher.take_failure() is None


def test_set_when_attempts_to_connect_are_cut_short_then_they_are_no_retries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.client.cluster.BRIEFLY_S", 0.01)
    limits_s: list[float] = []

    def hello(connection: FakeConnection) -> HelloResponse:
        if len(limits_s) < 3:
            limits_s.append(deadlines.left_s())
            time.sleep(limits_s[-1])
            raise RequestTimeoutError("slow")
        return HelloResponse(0, "", "", 1, 1, {68: (0, 1)})

    monkeypatch.setattr(FakeConnection, "hello", hello)
    world, ends = World(), Ends()
    dispatcher = make_dispatcher(world, retries=1)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    assert limits_s == sorted(limits_s)
    assert world.payloads(PARTITIONS[0]) == [0]


def test_set_when_its_content_is_refused_in_a_later_attempt_then_attempts_count_anew() -> None:
    acts = [Act.FEW_IN_SYNC, Act.REFUSE_CONTENT, Act.FEW_IN_SYNC]
    world, ends = World(acts), Ends()
    dispatcher = make_dispatcher(world, retries=1)
    for _ in range(2):
        dispatcher.send(ends.delivery(PARTITIONS[0]))
        dispatcher.flush()
    assert world.payloads(PARTITIONS[0]) == [1]
    assert list(ends.errors) == [0]


def test_sets_when_one_comes_back_and_the_next_has_no_response_then_both_fail() -> None:
    world, ends = World([Act.FEW_IN_SYNC, Act.NONSENSE]), Ends()
    dispatcher = make_dispatcher(world, delivery_timeout_s=0.1)
    for _ in range(2):
        dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    assert sorted(ends.errors) == [0, 1]
    assert world.payloads(PARTITIONS[0]) == []


def test_sets_when_another_attempt_has_no_response_then_none_behind_it_is_stored() -> None:
    world, ends = World([Act.LOSE, Act.LOSE, Act.NONSENSE]), Ends()
    dispatcher = make_dispatcher(world)
    for _ in range(2):
        dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    assert sorted(ends.errors) == [0, 1]
    assert world.payloads(PARTITIONS[0]) == []


def test_poll_when_sets_wait_for_a_leader_then_the_program_is_asked() -> None:
    world, ends = World(), Ends()
    dispatcher = make_dispatcher(world)
    world.away = {0, 1}
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.on_wait = lambda waiting: False
    dispatcher.poll()
    assert isinstance(ends.errors[0], BrokerUnreachableError)


def test_sets_when_the_leader_is_away_then_wait_for_the_next_and_never_move() -> None:
    world, ends = World(), Ends()
    dispatcher = make_dispatcher(world)
    dispatcher.send(ends.delivery(PARTITIONS[0], can_move=True))
    dispatcher.flush()
    world.away = {0}
    waits: list[Waiting] = []

    def on_wait(waiting: Waiting) -> bool:
        waits.append(waiting)
        if len(waits) == 5:
            world.leaders = dict.fromkeys(PARTITIONS, 1)
        return True

    dispatcher.on_wait = on_wait
    for _ in range(3):
        dispatcher.send(ends.delivery(PARTITIONS[0], can_move=True))
    dispatcher.flush()
    assert world.payloads(PARTITIONS[0]) == [0, 1, 2, 3]
    assert world.payloads(PARTITIONS[1]) == []
    assert list(waits[0].partitions) == [PARTITIONS[0]]


def test_sets_when_the_leader_is_lost_then_the_next_one_is_asked_for_without_a_wait() -> None:
    world, ends = World([Act.LOSE_ANSWER]), Ends()
    dispatcher = make_dispatcher(world, backoff_s=3600.0)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    world.away, world.leaders = {0}, dict.fromkeys(PARTITIONS, 1)
    dispatcher.flush()
    assert world.payloads(PARTITIONS[0]) == [0, 0]  # the response to the first was lost
    assert world.asked_count == 1


def test_sets_when_the_leader_has_become_a_follower_then_go_where_it_says_without_a_wait() -> None:
    world, ends = World([Act.MOVE_LEADER]), Ends()
    dispatcher = make_dispatcher(world, backoff_s=3600.0)
    for _ in range(3):
        dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    assert world.payloads(PARTITIONS[0]) == [0, 1, 2]
    assert world.asked_count == 0


@pytest.mark.parametrize("error", [Act.STOP, Act.LOSE])
def test_sets_when_a_broker_without_replicas_is_gone_then_those_that_may_move_go_in_order(
    error: Act,
) -> None:
    world, ends = World([Act.TAKE, error], has_replicas=False), Ends()
    dispatcher = make_dispatcher(world)
    moves: list[Moved] = []
    dispatcher.on_move = moves.append
    here, there = PARTITIONS
    kept = []
    for number in range(6):
        dispatcher.send(ends.delivery(here, can_move=number % 2 == 1))
        world.away = {0} if number else set()
        kept += [number] if number and number % 2 == 0 else []
    # only once those that may move have gone
    dispatcher.on_wait = lambda waiting: not world.payloads(there)[2:] or world.come_back()
    dispatcher.flush()
    assert [(one.source, one.target) for one in moves][:1] == [(here, there)]
    assert world.payloads(there) == [1, 3, 5]
    assert world.payloads(here) == [0, *kept]
    assert ends.errors == {}


def test_sets_when_told_not_to_move_then_wait_for_their_broker() -> None:
    world, ends = World(has_replicas=False), Ends()
    dispatcher = make_dispatcher(world, moves=False)
    world.away = {0}
    dispatcher.on_wait = lambda waiting: world.come_back()
    dispatcher.send(ends.delivery(PARTITIONS[0], can_move=True))
    dispatcher.flush()
    assert world.payloads(PARTITIONS[0]) == [0]


def test_sets_when_nothing_takes_them_in_time_then_all_of_the_partition_fail_and_others_go_on() -> (
    None
):
    world, ends = World(has_replicas=False), Ends()
    dispatcher = make_dispatcher(world, delivery_timeout_s=0.05, backoff_s=0.01)
    world.away = {0}
    for _ in range(3):
        dispatcher.send(ends.delivery(PARTITIONS[0]))
        dispatcher.send(ends.delivery(PARTITIONS[1]))
    dispatcher.flush()
    assert isinstance(dispatcher.take_failure(), BrokerUnreachableError)
    assert sorted(ends.errors) == [0, 2, 4]
    assert world.payloads(PARTITIONS[1]) == [1, 3, 5]
    world.away = set()
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    assert world.payloads(PARTITIONS[0]) == [6]


@pytest.mark.parametrize("first", [Act.LOSE_ANSWER, Act.LATE, Act.FEW_AFTER])
def test_set_when_given_up_after_an_attempt_of_unknown_outcome_then_the_error_says_so(
    first: Act,
) -> None:
    world, ends = World([first, Act.FEW_IN_SYNC]), Ends()
    dispatcher = make_dispatcher(world, retries=1)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    assert isinstance(ends.errors[0], NotEnoughReplicasError)
    assert "an earlier attempt may have stored these messages" in str(ends.errors[0])
    assert str(dispatcher.take_failure()) == str(ends.errors[0])


def test_set_when_no_attempt_had_an_unknown_outcome_then_the_error_is_the_brokers() -> None:
    world, ends = World([Act.FEW_IN_SYNC, Act.FEW_IN_SYNC]), Ends()
    dispatcher = make_dispatcher(world, retries=1)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    assert str(ends.errors[0]) == "FEW_IN_SYNC"


def test_sets_when_the_program_does_not_want_to_wait_then_fail_at_once() -> None:
    world, ends = World(), Ends()
    dispatcher = make_dispatcher(world)
    world.away = {0, 1}
    dispatcher.on_wait = lambda waiting: False
    for partition in PARTITIONS:
        dispatcher.send(ends.delivery(partition))
    dispatcher.flush()
    assert sorted(ends.errors) == [0, 1]


@pytest.mark.parametrize("goes_on", [False, True])
def test_sets_when_a_broker_does_not_answer_then_the_program_is_asked(
    monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    monkeypatch.setattr("broker.producer.dispatcher._SILENT_S", 0.0)
    world, ends = World(), Ends()
    dispatcher = make_dispatcher(world)
    world.is_silent = True
    waits: list[Waiting] = []

    def on_wait(waiting: Waiting) -> bool:
        waits.append(waiting)
        world.is_silent = not goes_on
        return goes_on

    dispatcher.on_wait = on_wait
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    assert isinstance(waits[0].error, RequestTimeoutError)
    assert list(waits[0].partitions) == [PARTITIONS[0]]
    assert list(ends.errors) == ([] if goes_on else [0])
    assert ends.order[PARTITIONS[0]] == [0]


class HangingWorld(World):
    """Broker 0 hangs; that broker 1 leads is found when the leaders are requested."""

    first_limit_s: float | None = None  # of a request for them

    @property
    def is_silent(self) -> bool:
        return self.known[PARTITIONS[0]] == 0

    @is_silent.setter
    def is_silent(self, _value: bool) -> None:
        return

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        if self.first_limit_s is None:
            self.first_limit_s = deadlines.left_s()
        return super().find_leaders(topics)


def test_sets_when_the_leader_hangs_and_another_is_elected_then_its_response_is_not_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.producer.dispatcher.BRIEFLY_S", 0.0)
    world, ends = HangingWorld(), Ends()
    dispatcher = make_dispatcher(world, timeout_s=3600.0)
    for _ in range(2):
        dispatcher.send(ends.delivery(PARTITIONS[0]))
    world.leaders = dict.fromkeys(PARTITIONS, 1)
    dispatcher.flush()
    assert world.payloads(PARTITIONS[0]) == [0, 1, 0, 1]
    assert not ends.errors
    # else `on_wait` would not be called while the one broker there is hangs
    assert world.first_limit_s is not None
    assert world.first_limit_s < math.inf


def test_drain_when_one_of_two_leaders_hangs_then_its_response_is_not_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.producer.dispatcher.BRIEFLY_S", 0.0)
    world, ends = HangingWorld(), Ends()
    world.leaders = {PARTITIONS[0]: 0, PARTITIONS[1]: 1}
    world.known = dict(world.leaders)
    dispatcher = make_dispatcher(world, timeout_s=3600.0)
    dispatcher.offer([ends.delivery(one) for one in PARTITIONS])
    world.leaders = dict.fromkeys(PARTITIONS, 1)
    dispatcher.drain()  # would not end before the response
    dispatcher.flush()
    assert world.payloads(PARTITIONS[1]) == [1]
    assert not ends.errors


def test_sets_when_answers_make_no_sense_then_fail_and_later_ones_are_sent() -> None:
    world, ends = World(), Ends()
    dispatcher = make_dispatcher(world)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.fail_all(ProtocolError("no sense"))
    assert isinstance(ends.errors[1], ProtocolError)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    assert list(ends.errors) == [1]


def test_await_readable_when_the_leader_changed_and_has_all_then_is_content() -> None:
    world, ends = World([Act.TAKE, Act.MOVE_LEADER]), Ends()
    dispatcher = make_dispatcher(world, acks=Acks.WRITTEN)
    for _ in range(3):
        dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.await_readable()
    assert dispatcher.take_failure() is None


def test_await_readable_when_a_new_leader_lacks_what_was_written_then_says_what() -> None:
    world, ends = World(), Ends()
    dispatcher = make_dispatcher(world, acks=Acks.WRITTEN)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    # the next leader has the first message only, and has taken others since: its log is as long
    world.term_ends[PARTITIONS[0], world.term(PARTITIONS[0])] = len(encode([b"0"]))
    world.epochs[PARTITIONS[0]] += 1
    with pytest.raises(AcknowledgedLossError, match=r"t\[0-0\]: messages before offset 22 were"):
        dispatcher.await_readable()


def test_flush_when_a_term_is_new_and_the_former_lacks_messages_then_fails_at_once() -> None:
    world, ends = World(has_replicas=False), Ends()
    dispatcher = make_dispatcher(world, acks=Acks.AUTO)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    world.epochs[PARTITIONS[0]] += 1  # its broker crashed, and is there again
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    assert isinstance(dispatcher.take_failure(), AcknowledgedLossError)


def test_flush_when_a_loss_was_told_then_does_not_tell_it_again() -> None:
    world, ends = World(has_replicas=False), Ends()
    dispatcher = make_dispatcher(world, acks=Acks.AUTO)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    world.crash(PARTITIONS[0], kept_bytes=0)
    failures = []
    for _ in range(2):
        dispatcher.send(ends.delivery(PARTITIONS[0]))
        dispatcher.flush()
        failures.append(dispatcher.take_failure())
    assert isinstance(failures[0], AcknowledgedLossError)
    assert failures[1] is None


@pytest.mark.parametrize("has_replicas", [False, True])
def test_await_readable_when_terms_have_changed_again_and_again_then_is_content(
    has_replicas: bool,
) -> None:
    world, ends = World(has_replicas=has_replicas), Ends()
    dispatcher = make_dispatcher(world, acks=Acks.WRITTEN)
    for number in range(4):
        if number and has_replicas:
            world.acts.append(Act.MOVE_LEADER)
        elif number:
            world.crash(PARTITIONS[0])
        for _ in range(2):  # a fast feed, without a flush
            dispatcher.send(ends.delivery(PARTITIONS[0]))
            dispatcher.poll()
    dispatcher.await_readable()
    assert dispatcher.take_failure() is None


def test_await_readable_when_the_broker_has_crashed_and_stopped_since_then_says_what_is_lost() -> (
    None
):
    world, ends = World(has_replicas=False), Ends()
    dispatcher = make_dispatcher(world, acks=Acks.AUTO)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.poll()
    world.crash(PARTITIONS[0], kept_bytes=0)
    world.acts.extend([Act.TAKE, Act.STOP])
    for _ in range(2):
        dispatcher.send(ends.delivery(PARTITIONS[0]))
    with pytest.raises(AcknowledgedLossError):
        dispatcher.await_readable()


@pytest.mark.parametrize(("acks", "has_replicas"), [(Acks.COMMITTED, False), (Acks.AUTO, True)])
def test_await_readable_when_all_is_committed_then_asks_nobody(
    acks: Acks, has_replicas: bool
) -> None:
    world, ends = World(has_replicas=has_replicas), Ends()
    dispatcher = make_dispatcher(world, acks=acks)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    world.away = {0, 1}
    dispatcher.await_readable()


def test_await_readable_when_the_broker_has_stopped_then_what_it_has_is_safe() -> None:
    world, ends = World([Act.TAKE, Act.STOP], has_replicas=False), Ends()
    dispatcher = make_dispatcher(world, acks=Acks.AUTO, delivery_timeout_s=60)
    dispatcher.send(ends.delivery(PARTITIONS[0]))
    dispatcher.flush()
    world.away = set()
    dispatcher.await_readable()
    assert dispatcher.take_failure() is None
