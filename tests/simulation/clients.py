"""Simulated producers and consumers, and what they note of the outcome of each request."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from broker.errors import OutOfOrderSequenceError
from broker.topic import FORMAT_KAFKA, TopicPartition
from tests.simulation.batch_log import encode_batch
from tests.simulation.broker import Broker, Published, Read
from tests.simulation.checker import Checker, Created, Send
from tests.simulation.events import Network, Process, Scheduler

_TIMEOUT_S = 2.0


class Client(Process):
    """What producers and consumers share: they find the leader by asking any broker.

    Args:
        partitions: returns those there are.
    """

    def __init__(
        self,
        id: int,
        scheduler: Scheduler,
        network: Network,
        brokers: dict[int, Broker],
        checker: Checker,
        partitions: Callable[[], Collection[TopicPartition]],
    ) -> None:
        super().__init__(id, scheduler)
        self.network = network
        self.brokers = brokers
        self.checker = checker
        self.partitions = partitions
        self.partition = scheduler.random.choice(list(partitions()))
        self.is_alive = True
        self.is_done = False
        self.leader = -1
        self.sequences: dict[TopicPartition, int] = {}
        """Of a producer: that of its next batch in the format kafka."""

    def find_leader(self) -> None:
        """Ask a broker, which may be wrong; take another partition if this one is no more."""
        partitions = list(self.partitions())
        if partitions and self.partition not in partitions:
            self.partition = self.scheduler.random.choice(partitions)
        live = [one for one in self.brokers.values() if one.is_alive and not one.is_paused]
        if live:
            asked = self.scheduler.random.choice(live)
            self.leader, _ = asked.leader_of(self.partition)


@dataclass
class _Batch:
    """A batch in the format kafka that is sent until its outcome is known."""

    partition: TopicPartition
    sequence: int
    content: bytes


class Producer(Client):
    """Sends one message at a time, or a batch, and again what had an unknown outcome."""

    count = 0
    tries = 0
    last: tuple[Created, int] | None = None
    batch: _Batch | None = None
    id_count = 0
    """How many ids it has had by which brokers know its batches."""

    def send_next(self) -> None:
        """Send the next message, or messages, which are new."""
        if self.is_done:
            return
        count = self.scheduler.random.randint(1, 3) if self.partition.format == FORMAT_KAFKA else 1
        self.tries = 0
        self.batch = None
        self._send(tuple(Send(self.id, self.count + one + 1) for one in range(count)))
        self.count += count

    def _send(self, messages: tuple[Send, ...]) -> None:
        random = self.scheduler.random
        target = self.brokers.get(self.leader)
        if target is None:
            self.find_leader()
            self._next(messages, is_again=True)
            return
        partition = self.partition
        batch = self._batch_of(messages) if partition.format == FORMAT_KAFKA else None
        if batch is None:
            for message in messages:
                self.checker.sent[message] = self.checker.sent.get(message, 0) + 1
        acks = -1 if random.random() < 0.8 else 1
        begins = {
            created: len(committed)
            for created, committed in self.checker.committed.items()
            if created.partition == partition
        }

        def done(response: object) -> None:
            if isinstance(response, Published):
                if batch is not None:
                    self.sequences[partition] = batch.sequence + len(messages)
                if acks == -1:
                    begin = begins.get(response.created, 0)
                    self._acknowledged(messages, response, begin)
                self._next(messages, is_again=False)
                return
            if isinstance(response, OutOfOrderSequenceError):
                self._forget_sequences()
            # a batch that was refused can be appended where the network delivers it once more
            if batch is None and isinstance(response, Exception):  # it was not appended
                for message in messages:
                    self.checker.sent[message] -= 1
                    self.checker.refused.add(message)
            self.find_leader()
            self._next(messages, is_again=True)

        message_set = messages if batch is None else batch.content
        self.network.call(
            *(self, target, lambda r: target.publish(partition, message_set, acks, r)),
            *(done, _TIMEOUT_S),
            may_repeat=batch is not None,
        )

    def _batch_of(self, messages: tuple[Send, ...]) -> _Batch:
        """Return the batch to send: the same one again, which can be in a log only once.

        With another partition or sequence it is another one, and each can be there.
        """
        batch = self.batch
        if batch is None or batch.partition != self.partition:
            for message in messages:
                self.checker.sent[message] = self.checker.sent.get(message, 0) + 1
            sequence = self.sequences.get(self.partition, 0)
            producer_id = self.id_count << 8 | -self.id
            content = encode_batch(messages, producer_id, sequence)
            batch = self.batch = _Batch(self.partition, sequence, content)
        return batch

    def _forget_sequences(self) -> None:
        """Begin anew with another id, as it is not known which batch a log has last."""
        self.id_count += 1
        self.sequences.clear()
        self.batch = None
        self.scheduler.counts["producers that take another id"] += 1

    def _acknowledged(self, messages: tuple[Send, ...], response: Published, begin: int) -> None:
        created, offset = response
        for number, message in enumerate(messages):
            self.checker.acknowledged_send(created, offset + number, message)
        if self.tries == 0 and not self.checker.allows_loss:
            if self.last is not None and created == self.last[0] and offset <= self.last[1]:
                self.checker.fail("I5", f"{messages} are at {response}, after {self.last}")
            if offset < begin:
                self.checker.fail("I6", f"{messages} are at {offset}, {begin} was committed before")
        self.last = (created, offset)

    def _next(self, messages: tuple[Send, ...], *, is_again: bool) -> None:
        random = self.scheduler.random
        delay = (0.02 + random.random() * 0.15) * len(messages)
        if is_again and self.tries < 4 and not self.is_done:
            self.tries += 1
            self.later(delay * 2, self._send, messages)
        else:
            if is_again and self.batch is not None:
                self._forget_sequences()
            self.later(delay, self.send_next)


class Consumer(Client):
    """Reads a partition from its leader, or from any of its replicas.

    It starts again where it is told that the topic was created again, as groups, loads and streams.
    """

    reading: tuple[TopicPartition, str] | None = None
    """The partition, and the creation id that it was told of."""
    created: Created | None = None
    """Which topic it reads, for the checker."""
    offset = 0
    reads_any = False

    def poll(self) -> None:
        """Read what comes next."""
        if self.scheduler.random.random() < 0.1 or self.leader < 0:
            self.find_leader()
        ids = [self.leader]
        if self.reads_any:
            ids = list(self.brokers)
        target = self.brokers.get(self.scheduler.random.choice(ids))
        if target is None:
            self.later(0.3, self.poll)
            return
        partition, offset = self.partition, self.offset

        def done(response: object) -> None:
            if isinstance(response, Read):
                self._read(partition, offset, response)
            else:
                self.find_leader()
            self.later(0.1 + self.scheduler.random.random() * 0.2, self.poll)

        self.network.call(
            *(self, target, lambda r: target.read(partition, offset, r)), *(done, _TIMEOUT_S)
        )

    def _read(self, partition: TopicPartition, offset: int, response: Read) -> None:
        creation_id, created, start, messages = response
        is_another = (partition, creation_id) != self.reading
        if self.created is not None:
            self.checker.read_on(self.created, created, is_another=is_another)
        if is_another or offset < start:
            self.reading, self.created, self.offset = (partition, creation_id), created, start
            return
        if not self.checker.allows_loss:
            committed = self.checker.committed.get(created, [])
            expected = committed[offset : offset + len(messages)]
            if messages != expected:
                self.checker.fail("I2, I7", f"{created} at {offset}: {messages}, not {expected}")
        self.offset = offset + len(messages)
